//! `ralph sandbox`: the sandbox of this machine, and the containers and machines that runs have made.

pub mod list;
pub mod rm;
pub mod test;

use crate::error::CommandError;
use crate::output::Out;
use ralph_app::App;
use ralph_domain::ports::{SandboxInfo, SandboxProvider};
use serde::Serialize;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// Tests the sandbox of this machine, and looks after the containers and machines that runs have made.
#[derive(Debug, clap::Args)]
pub struct SandboxArgs {
    /// What to do with them.
    #[command(subcommand)]
    pub command: SandboxCommand,
}

/// What to do with sandboxes.
#[derive(Debug, clap::Subcommand)]
pub enum SandboxCommand {
    /// Try every known way out of the sandbox.
    Test(test::TestArgs),
    /// List the sandboxes of every provider.
    List(list::ListArgs),
    /// Remove a sandbox and its files.
    Rm(rm::RmArgs),
}

/// Runs the command.
pub fn run(args: SandboxArgs, app: &App, out: &Out) -> Result<u8, CommandError> {
    match args.command {
        SandboxCommand::Test(args) => test::run(args, app, out),
        SandboxCommand::List(args) => list::run(args, app, out),
        SandboxCommand::Rm(args) => rm::run(args, app, out),
    }
}

/// A provider that could not be asked.
#[derive(Debug, Serialize)]
struct Problem {
    provider: &'static str,
    problem: String,
}

/// What all providers have.
struct FoundSandboxes<'a> {
    sandboxes: Vec<(SandboxInfo, &'a dyn SandboxProvider)>,
    problems: Vec<Problem>,
}

/// How long a provider may take to say what it has, however many answers that takes.
const LIST_LIMIT: Duration = Duration::from_secs(60);

/// Asks every provider, all at the same time; one that does not answer, or not to its end, does not hide what the others have.
fn ask(providers: &[Arc<dyn SandboxProvider>]) -> FoundSandboxes<'_> {
    let mut found = FoundSandboxes { sandboxes: Vec::new(), problems: Vec::new() };
    let until = Instant::now() + LIST_LIMIT;
    let asked: Vec<_> = providers
        .iter()
        .map(|provider| {
            let (tell, answer) = mpsc::channel();
            let asking = Arc::clone(provider);
            // One that is still being waited for when this command ends, ends with it.
            std::thread::spawn(move || tell.send(asking.list()));
            answer
        })
        .collect();
    for (provider, answer) in providers.iter().zip(asked) {
        let problem = match answer.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Ok(infos)) => {
                found.sandboxes.extend(infos.into_iter().map(|info| (info, provider.as_ref())));
                continue;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no whole answer within {} seconds", LIST_LIMIT.as_secs()),
        };
        found.problems.push(Problem { provider: provider.name(), problem });
    }
    found
}
