//! `ralph sandbox list`: containers and machines made by runs.

use crate::error::CommandError;
use crate::output::Out;
use crate::text::table::{Cell, Table, columns};
use crate::text::words::ago;
use ralph_loop_app::App;
use ralph_loop_app::config::provider_calls;
use ralph_loop_app::config::provider_calls::FoundSandboxes;
use ralph_loop_app::config::providers::providers;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::{Clock as _, SandboxInfo};
use ralph_loop_protocol::describe::Tone;
use serde_json::json;

#[derive(Debug, Clone, Copy, clap::Args)]
#[command(after_help = "Examples:
  ralph sandbox list
  ralph sandbox list --json
Exits with 4 if no provider answers.")]
pub struct ListArgs {}

pub fn run(_: ListArgs, app: &App, out: &Out) -> Result<u8, CommandError> {
    let env = app.environment();
    let providers = providers(env);
    let FoundSandboxes { sandboxes, problems } =
        provider_calls::list_all(&providers, provider_calls::limit(env));
    let deaf = !providers.is_empty() && problems.len() == providers.len();
    let infos: Vec<SandboxInfo> = sandboxes.into_iter().map(|(info, _)| info).collect();
    if out.json {
        out.value(&json!({ "sandboxes": infos, "problems": problems }));
        return Ok(if deaf { 4 } else { 0 });
    }
    for problem in &problems {
        out.say(format!("{}: {}", problem.provider, problem.problem));
    }
    if infos.is_empty() {
        out.say(match providers.is_empty() {
            true => "no provider of sandboxes is configured here",
            false => "no sandbox",
        });
        let next = "`ralph doctor` shows what this machine has";
        if providers.is_empty() {
            out.say(format!("{} {next}", out.err(Tone::Plain, "next:")));
        }
        return Ok(if deaf { 4 } else { 0 });
    }
    print(&infos, out);
    Ok(0)
}

fn print(infos: &[SandboxInfo], out: &Out) {
    let now = SystemClock::default().now();
    let mut table = Table::new(0);
    for info in infos {
        let run = info.run.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
        let made = info.created_at.map_or_else(|| "-".to_owned(), |at| ago(at, now));
        let cells = [info.id.clone(), info.provider.clone(), info.state.clone(), run, made];
        table.row(cells.map(Cell::new));
    }
    for line in table.lines(columns(), out) {
        out.line(line);
    }
}
