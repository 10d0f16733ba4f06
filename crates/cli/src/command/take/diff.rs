//! `ralph diff`: everything a run changed, including new files.

use crate::error::CommandError;
use crate::output::Out;
use crate::text::table::{Cell, Table, columns};
use ralph_loop_app::App;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::read::taking_home::{RunChanges, RunResultFiles};
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::count;
use ralph_loop_protocol::event::FileChange;
use serde_json::json;
use std::path::Path;

/// Size limit of the patch.
const PATCH_MAX: usize = 64 * 1024 * 1024;
const JSON_MAX: usize = 4 * 1024 * 1024;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph diff                  show the latest run's changes
  ralph diff k3f9 --stat      list its files")]
pub struct DiffArgs {
    /// Run id [default: the latest run in this folder]
    pub run: Option<String>,
    /// Show file names and line counts only
    #[arg(long)]
    pub stat: bool,
}

pub fn run(args: DiffArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let found = match RunResultFiles::open(app.environment(), folder, args.run.as_deref())? {
        RunChanges::Recorded(found) => found,
        RunChanges::Nothing(reading) => return Ok(nothing(&reading, args.stat, out)),
    };
    let files = found.work.files(&found.repo)?;
    found.reading.mark_seen();
    let run = &found.reading.entry.run_id;
    if out.json {
        let (patch, cut) = found.work.patch(&found.repo, JSON_MAX)?;
        let patch = (!args.stat).then(|| String::from_utf8_lossy(&patch).into_owned());
        out.value(&json!({
            "run_id": run,
            "from": found.work.start,
            "to": found.work.work,
            "files": files.iter().map(file).collect::<Vec<_>>(),
            "patch": patch,
            "patch_cut": cut && !args.stat,
        }));
        return Ok(0);
    }
    if files.is_empty() {
        out.say(format!("run {run} has changed no file"));
        return Ok(0);
    }
    if args.stat {
        stat(&files, out);
        return Ok(0);
    }
    let (patch, cut) = found.work.patch(&found.repo, PATCH_MAX)?;
    for line in String::from_utf8_lossy(&patch).lines() {
        out.block(match line.as_bytes().first() {
            Some(b'+') if !line.starts_with("+++ ") => out.out(Tone::Good, line),
            Some(b'-') if !line.starts_with("--- ") => out.out(Tone::Bad, line),
            Some(b'@') => out.out(Tone::Plain, line),
            Some(b'+' | b'-' | b' ' | b'\\') => line.to_owned(),
            _ => out.out(Tone::Muted, line),
        });
    }
    if cut {
        out.say(format!("… cut; `git diff refs/ralph/{run}/start refs/ralph/{run}/work` has all of it"));
    }
    Ok(0)
}

/// Handles a run without changes.
fn nothing(reading: &RunSnapshot, stat: bool, out: &Out) -> u8 {
    reading.mark_seen();
    let run = &reading.entry.run_id;
    if out.json {
        let patch = (!stat).then_some("");
        out.value(&json!({
            "run_id": run, "from": null, "to": null, "files": [], "patch": patch, "patch_cut": false,
        }));
    } else {
        out.say(format!("run {run} changed no files; run `ralph show {run}` to see what it did"));
    }
    0
}

fn file(change: &FileChange) -> serde_json::Value {
    json!({ "path": change.path, "status": word(change.status), "added": change.added, "removed": change.removed })
}

fn word(status: char) -> &'static str {
    match status {
        'A' => "new",
        'D' => "deleted",
        _ => "changed",
    }
}

fn stat(files: &[FileChange], out: &Out) {
    let mut table = Table::new(1).indent(2);
    for change in files {
        let lines = match (change.added, change.removed) {
            (Some(added), Some(removed)) => format!("+{added} −{removed}"),
            _ => "binary".to_owned(),
        };
        let tone = if change.status == 'D' { Tone::Attention } else { Tone::Muted };
        let path = ralph_loop_protocol::display::text::one_line(&change.path, 400);
        table.row([Cell::toned(tone, word(change.status)), path.into(), lines.into()]);
    }
    table.lines(columns(), out).iter().for_each(|line| out.line(line));
    let sum = |of: fn(&FileChange) -> Option<u64>| files.iter().filter_map(of).sum::<u64>();
    out.line(format!("{} +{} −{}", count(files.len(), "file"), sum(|f| f.added), sum(|f| f.removed)));
}
