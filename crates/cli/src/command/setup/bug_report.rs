//! `ralph bug-report`: everything a bug report needs in one redacted text file, to review before sending.

use super::doctor;
use crate::error::CommandError;
use crate::output::Out;
use crate::text::words::home_path;
use ralph_loop_app::App;
use ralph_loop_app::read::find;
use ralph_loop_app::start::log;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Size limit per log; its end is kept.
const LOG_MAX: usize = 200 * 1024;
const CONFIG_MAX: u64 = 64 * 1024;
const EVENTS: usize = 200;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph bug-report              describe this folder and its latest run
  ralph bug-report -o -         print to stdout
Known secrets are removed. Nothing is sent.")]
pub struct BugReportArgs {
    /// Run id [default: the latest run in this folder]
    pub run: Option<String>,
    /// File to write, `-` for stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

pub fn run(args: BugReportArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let BugReportArgs { run, output } = args;
    let now = SystemClock::default().now();
    let mut report = format!("# ralph bug report, {now}\n\n## What happened\n\n(write it here)\n");
    section(&mut report, "Version", &version());
    section(&mut report, "Doctor", &doctor::lines(app, folder));
    let top = find::top(folder);
    if let Some(config) = RalphDir::of(&top).read("config.json", CONFIG_MAX) {
        section(&mut report, ".ralph/config.json", &String::from_utf8_lossy(&config));
    }
    // The run is optional unless it was named.
    let facts = match app.facts(folder, run.as_deref()) {
        Ok(facts) => Some(facts),
        Err(error) if run.is_some() => return Err(error),
        Err(_) => None,
    };
    if let Some(facts) = &facts {
        let status = serde_json::to_string_pretty(&facts.view()).unwrap_or_default();
        section(&mut report, &format!("Run {}", facts.entry.run_id), &status);
        let record = facts.entry.run_dir();
        let events = end_of(&record.events());
        let lines: Vec<&str> = events.lines().collect();
        section(&mut report, "Last events", &lines[lines.len().saturating_sub(EVENTS)..].join("\n"));
        for name in [log::FILE_BEFORE, log::FILE, "driver.log"] {
            let end = end_of(&record.path().join(name));
            if !end.is_empty() {
                section(&mut report, name, &end);
            }
        }
    }
    let origin = facts.as_ref().map_or(top.as_path(), |facts| facts.entry.origin.as_path());
    let report = app.environment().redactor(origin).text(&report).into_owned();
    write(&report, output, folder, now, out)
}

fn write(
    report: &str,
    output: Option<PathBuf>,
    folder: &Path,
    now: jiff::Timestamp,
    out: &Out,
) -> Result<u8, CommandError> {
    if output.as_deref() == Some(Path::new("-")) {
        if out.json {
            out.value(&serde_json::json!({ "file": null, "bytes": report.len(), "report": report }));
        } else {
            out.text(report);
        }
        return Ok(0);
    }
    let named = || PathBuf::from(format!("ralph-bug-report-{}.md", now.strftime("%Y%m%d-%H%M%S")));
    let path = folder.join(output.unwrap_or_else(named));
    // Never overwrites a file.
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
    let written = file.and_then(|mut file| std::io::Write::write_all(&mut file, report.as_bytes()));
    written.map_err(|e| CommandError::environment(format!("cannot write `{}`: {e}", path.display())))?;
    if out.json {
        out.value(&serde_json::json!({ "file": path, "bytes": report.len() }));
    }
    out.say(format!("the report is in {}", home_path(&path)));
    out.say(format!(
        "{} read it: known secrets are taken out, but it has names of files, parts of your task and of outputs",
        out.err(Tone::Plain, "next:")
    ));
    Ok(0)
}

fn version() -> String {
    let system = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{}system:   {} {}", crate::text::version::text(), std::env::consts::OS, system.trim())
}

fn section(report: &mut String, title: &str, body: &str) {
    // A fence longer than any in the body.
    let fence = "`".repeat(3.max(longest_fence(body) + 1));
    let _ = write!(report, "\n## {title}\n\n{fence}\n{}\n{fence}\n", body.trim_end());
}

fn longest_fence(body: &str) -> usize {
    body.lines().map(|line| line.trim_start().chars().take_while(|c| *c == '`').count()).max().unwrap_or(0)
}

/// The end of a record file, from a line start.
fn end_of(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    text::tail(&String::from_utf8_lossy(&bytes), LOG_MAX).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_cannot_close_its_block() {
        let mut report = String::new();
        section(&mut report, "Log", "a\n```\n# not a heading\n````\nb");
        assert_eq!(report, "\n## Log\n\n`````\na\n```\n# not a heading\n````\nb\n`````\n");
    }
}
