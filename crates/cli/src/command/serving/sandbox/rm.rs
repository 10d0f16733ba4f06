//! `ralph sandbox rm`: removes them.

use crate::error::CommandError;
use crate::output::Out;
use ralph_loop_app::config::provider_calls;
use ralph_loop_app::config::provider_calls::FoundSandboxes;
use ralph_loop_app::config::providers::providers;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::{App, Environment};
use ralph_loop_domain::ports::SandboxInfo;
use ralph_loop_journal::folder::registry;
use ralph_loop_protocol::id::RunId;
use serde_json::json;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph sandbox rm 20261115-143307-k3f9
  ralph sandbox rm --all")]
pub struct RmArgs {
    /// Sandbox ids or run ids
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    pub ids: Vec<String>,
    /// Remove every sandbox `ralph` created
    #[arg(long)]
    pub all: bool,
    /// Also remove sandboxes of active runs
    #[arg(long)]
    pub force: bool,
}

pub fn run(args: RmArgs, app: &App, out: &Out) -> Result<u8, CommandError> {
    let env = app.environment();
    let FoundSandboxes { sandboxes, problems } =
        provider_calls::list_all(&providers(env), provider_calls::limit(env));
    let wanted = |info: &SandboxInfo, id: &String| {
        info.id == *id || info.run.as_ref().is_some_and(|run| ralph_loop_sandbox::hosted::is_of_run(run, id))
    };
    if let Some(unknown) = args.ids.iter().find(|id| !sandboxes.iter().any(|(info, _)| wanted(info, id))) {
        return Err(match problems.first() {
            None => {
                CommandError::usage(format!("sandbox `{unknown}` doesn't exist, or `ralph` didn't create it"))
                    .hint("`ralph sandbox list` shows them all")
            }
            // Its sandboxes are unknown.
            Some(problem) => CommandError::environment(format!("the sandbox `{unknown}` was not found"))
                .cause(format!("{} could not be asked: {}", problem.provider, problem.problem))
                .hint("try again when it answers; nothing was removed"),
        });
    }
    let mut removed = Vec::new();
    let mut kept = Vec::new();
    for (info, provider) in &sandboxes {
        if !args.all && !args.ids.iter().any(|id| wanted(info, id)) {
            continue;
        }
        if !args.force && info.run.as_ref().is_some_and(|run| in_use(env, run)) {
            kept.push(info.id.clone());
            continue;
        }
        provider.destroy(&info.id).map_err(|error| {
            CommandError::environment(format!("`{}` could not be removed", info.id)).cause(error.to_string())
        })?;
        removed.push(info.id.clone());
    }
    if out.json {
        out.value(&json!({ "removed": removed, "kept": kept, "problems": problems }));
    } else {
        for problem in &problems {
            out.say(format!("{}: {}", problem.provider, problem.problem));
        }
        for id in &kept {
            out.say(format!("`{id}` stays: its run is alive (`--force` removes it all the same)"));
        }
        out.say(match removed.as_slice() {
            [] => "nothing removed".to_owned(),
            [one] => format!("removed `{one}`"),
            more => format!("removed {} sandboxes", more.len()),
        });
    }
    Ok(if kept.is_empty() { 0 } else { 3 })
}

/// Whether a process drives the run.
fn in_use(env: &Environment, run: &RunId) -> bool {
    let Ok(home) = env.state_home() else { return false };
    let registered = registry::all(&home)
        .into_iter()
        .find(|entry| ralph_loop_sandbox::hosted::is_of_run(run, entry.run_id.as_str()));
    registered
        .and_then(|entry| RunSnapshot::load(env, entry).ok())
        .is_some_and(|facts| facts.driver.is_some())
}
