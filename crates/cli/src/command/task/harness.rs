//! `ralph harness`: which files decide a check besides the product, and why.

use crate::error::CommandError;
use crate::output::Out;
use crate::text::table::{Cell, Table, columns};
use ralph_loop_app::App;
use ralph_loop_app::config::settings;
use ralph_loop_app::read::find;
use ralph_loop_app::trust::repo_file;
use ralph_loop_domain::ports::ExecTrace;
use ralph_loop_git::Repo;
use ralph_loop_proof::harness::{Harness, globs};
use ralph_loop_protocol::describe::Tone;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph harness                  list the files that decide a check in this repo
  ralph harness --list           the published list of globs

`\"harness\": [\"tools/**\", \"!calc.sh\"]` in .ralph/config.json adds files or takes them out.")]
pub struct HarnessArgs {
    /// Print the list of globs with their reasons
    #[arg(long)]
    pub list: bool,
}

pub fn run(args: &HarnessArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    if args.list {
        return Ok(list(out));
    }
    let env = app.environment();
    let top = find::top(folder);
    let repo = Repo::discover(env.vars(), &top)?;
    let config = settings::load(env, &top)?.file.harness.unwrap_or_default();
    let watched = watched(app, folder);
    let known = watched.is_some();
    let harness = Harness { config, watched: watched.unwrap_or_default(), task: String::new() };
    let listed = repo.git().call(["ls-files", "-z"]).run();
    let listed = listed.map_err(|error| CommandError::environment(error.to_string()))?.stdout;
    let files: Vec<String> =
        listed.split(|byte| *byte == 0).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let mut found = Vec::new();
    for path in files.iter().filter(|path| !path.is_empty()) {
        if let Some(rule) = harness.matched(path) {
            found.push((path.as_str(), rule));
        }
    }
    if out.json {
        let files = found.iter().map(|(path, rule)| {
            json!({ "path": path, "source": rule.source, "rule": rule.rule, "reason": rule.reason })
        });
        out.value(&json!({ "watched": known, "files": files.collect::<Vec<_>>() }));
        return Ok(0);
    }
    let mut table = Table::new(0);
    table.row(["FILE", "RULE", "REASON"].map(|head| Cell::toned(Tone::Muted, head)));
    for (path, rule) in &found {
        table.row([Cell::from(*path), rule.rule.into(), rule.reason.into()]);
    }
    table.lines(columns(), out).iter().for_each(|line| out.line(line));
    if !known {
        out.say("scripts that the checks execute or read are known after the first run here");
    }
    Ok(0)
}

fn list(out: &Out) -> u8 {
    if out.json {
        let all: Vec<_> =
            globs().map(|glob| json!({ "glob": glob.pattern, "reason": glob.reason })).collect();
        out.value(&json!({ "globs": all }));
        return 0;
    }
    let mut table = Table::new(0);
    table.row(["GLOB", "REASON"].map(|head| Cell::toned(Tone::Muted, head)));
    for glob in globs() {
        table.row([Cell::from(glob.pattern), glob.reason.into()]);
    }
    table.lines(columns(), out).iter().for_each(|line| out.line(line));
    0
}

/// Files that the checks of this folder's newest run executed and read on the original tree.
fn watched(app: &App, folder: &Path) -> Option<BTreeSet<String>> {
    let run = find::run(app.environment(), folder, None).ok()?;
    let text = repo_file::read_record(&run.run_dir().path().join("baseline/trace.json")).ok()?;
    let trace: ExecTrace = serde_json::from_slice(&text).ok()?;
    Some(trace.executed_or_read().map(str::to_owned).collect())
}
