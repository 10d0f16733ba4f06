//! `ralph lint`: finds everything wrong with a task before it costs money.

use crate::error::CommandError;
use crate::output::{Out, Sign};
use crate::process::signals;
use ralph_loop_app::App;
use ralph_loop_app::task::lint::checks::TaskCheck;
use ralph_loop_app::task::lint::probe::{ProbeEnd, ProbeWatch, SECONDS};
use ralph_loop_app::task::lint::{LintedTask, lint_task, probe_task};
use ralph_loop_app::task::task_source;
use ralph_loop_app::task::task_source::TaskSource;
use ralph_loop_app::trust::repo_file;
use ralph_loop_core::CancelToken;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::count;
use ralph_loop_task::lint::{Diagnostic, LintReport, Severity, apply_fixes};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Rounds of fixes: one fix can reveal the next.
const ROUNDS: usize = 5;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph lint                      check this folder's task
  ralph lint tasks/*.md
  ralph lint --fix                fix what has only one fix
  ralph lint --probe-checks       also run each check once, sandboxed
Exits with 2 if there are errors.")]
pub struct LintArgs {
    /// Task files [default: the one in this folder]
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Folder of the plan [default: ralph]
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    pub ralph_dir: Option<PathBuf>,
    /// Apply the fixes that are always right
    #[arg(long)]
    pub fix: bool,
    /// Run each check once: it must start, and fail before the work
    #[arg(long)]
    pub probe_checks: bool,
    /// Time limit per probed check
    #[arg(long, value_name = "N", default_value_t = SECONDS, requires = "probe_checks")]
    pub probe_seconds: u64,
}

pub fn run(args: LintArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    if args.files.len() < 2 {
        let plan = args.ralph_dir.as_ref().map(|dir| dir.join("tasks.json"));
        let file = plan.as_deref().or(args.files.first().map(PathBuf::as_path));
        let (refuses, value) = one(&args, file, app, folder, out)?;
        if out.json {
            out.value(&value);
        }
        return Ok(if refuses { 2 } else { 0 });
    }
    let (mut refuses, mut values) = (false, Vec::new());
    for file in &args.files {
        let (refused, value) = one(&args, Some(file), app, folder, out)?;
        refuses |= refused;
        values.push(value);
    }
    if out.json {
        out.value(&json!({ "ok": !refuses, "files": values }));
    }
    Ok(if refuses { 2 } else { 0 })
}

/// Checks one task: whether a run would be rejected, and the report.
fn one(
    args: &LintArgs,
    file: Option<&Path>,
    app: &App,
    folder: &Path,
    out: &Out,
) -> Result<(bool, serde_json::Value), CommandError> {
    let env = app.environment();
    let mut source = task_source::find(folder, file)?;
    let mut fixed = Vec::new();
    let mut linted = lint_task(env, &source);
    if args.fix {
        for _ in 0..ROUNDS {
            let done = fix(&source, &linted.report.diagnostics)?;
            if done.is_empty() {
                break;
            }
            fixed.extend(done);
            source = task_source::read(&source.folder, source.dialect, source.files.name())?;
            linted = lint_task(env, &source);
        }
    }
    if args.probe_checks && linted.report.task.as_ref().is_some_and(|task| task.git.repo_url.is_some()) {
        out.say("the checks are not tried: the task works in a clone that is yet to be made");
    } else if args.probe_checks {
        let watch = Trying { out, cancel: signals::install() };
        linted = probe_task(env, &source, Duration::from_secs(args.probe_seconds.max(1)), &watch)?;
    }
    if !out.json {
        print_report(&source, &linted, &fixed, out);
    }
    Ok((linted.report.refuses(), object(&source, &linted, &fixed)))
}

/// Shows which check is tried; an interrupt ends it.
struct Trying<'a> {
    out: &'a Out,
    cancel: Arc<CancelToken>,
}

impl ProbeWatch for Trying<'_> {
    fn starts(&self, check: &TaskCheck) {
        self.out.say(format!("trying {}: {}", check.verifier.name, check.line()));
    }
    fn is_cancelled(&self) -> bool {
        self.cancel.get().is_some()
    }
}

/// Applies the safe fixes and describes them.
fn fix(source: &TaskSource, found: &[Diagnostic]) -> Result<Vec<String>, CommandError> {
    let mut names: Vec<&str> = found.iter().filter(|d| d.edit.is_some()).map(|d| d.file.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut done = Vec::new();
    for name in names {
        let of_file: Vec<Diagnostic> =
            found.iter().filter(|d| d.file == name && d.edit.is_some()).cloned().collect();
        let text = if name == source.files.name() {
            source.files.text()
        } else {
            source.files.beside(ralph_loop_task::dialect::names::base_name(name)).map_or("", |(_, text)| text)
        };
        let fixed = apply_fixes(text, &of_file);
        if fixed == text {
            continue;
        }
        repo_file::replace(&source.path_of(name), fixed.as_bytes())?;
        done.extend(of_file.iter().map(|d| format!("{}:{}: {} ({})", d.file, d.line, d.message, d.fix)));
    }
    Ok(done)
}

fn counts(report: &LintReport) -> (usize, usize) {
    let errors = report.diagnostics.iter().filter(|d| d.is_error()).count();
    (errors, report.diagnostics.len() - errors)
}

fn object(source: &TaskSource, linted: &LintedTask, fixed: &[String]) -> serde_json::Value {
    let report = &linted.report;
    let (errors, warnings) = counts(report);
    let checks = linted.checks.iter().map(|check| {
        let probed = linted.probed.iter().find(|one| one.check == *check).map(|one| end_word(&one.end));
        json!({
            "name": check.verifier.name,
            "command": check.verifier.command_line(),
            "source": check.source.to_string(),
            "probe": probed,
        })
    });
    json!({
        "ok": errors == 0,
        "file": source.files.name(),
        "dialect": source.dialect.as_str(),
        "errors": errors,
        "warnings": warnings,
        "fixed": fixed,
        "checks": checks.collect::<Vec<_>>(),
        "diagnostics": report.diagnostics,
    })
}

fn end_word(end: &ProbeEnd) -> &'static str {
    match end {
        ProbeEnd::Passes => "passes",
        ProbeEnd::Fails => "fails",
        ProbeEnd::NotFound => "not_found",
        ProbeEnd::NoEnd(_) => "no_end",
    }
}

fn print_report(source: &TaskSource, linted: &LintedTask, fixed: &[String], out: &Out) {
    let report = &linted.report;
    for change in fixed {
        out.say(format!("{} {change}", out.err(Tone::Good, "fixed:")));
    }
    for found in &report.diagnostics {
        if out.quiet && !found.is_error() {
            continue;
        }
        let tone = if found.severity == Severity::Error { Tone::Bad } else { Tone::Attention };
        let word = out.err(tone, &format!("{}:", found.severity.as_str()));
        let place = format!("{}:{}:{}:", found.file, found.line, found.column);
        // Errors are shown even with `--quiet`.
        out.warn(format!("{place} {word} {}", found.message));
        out.warn(format!("  {} {}", out.err(Tone::Plain, "fix:"), found.fix));
    }
    for check in &linted.checks {
        out.say_below(12, format!("  {} {}", out.err(Tone::Muted, &format!("{:<9}", "check")), check.line()));
    }
    let (errors, warnings) = counts(report);
    let sign = if errors == 0 {
        out.err(Tone::Good, out.sign(Sign::Good))
    } else {
        out.err(Tone::Bad, out.sign(Sign::Bad))
    };
    let said = match (errors, warnings) {
        (0, 0) => "no problems".to_owned(),
        (0, _) => format!("no errors, {}", count(warnings, "warning")),
        (_, 0) => count(errors, "error"),
        _ => format!("{}, {}", count(errors, "error"), count(warnings, "warning")),
    };
    let (name, dialect) = (source.files.name(), source.dialect.as_str());
    let written = if name == dialect { String::new() } else { format!(" ({dialect})") };
    out.say(format!("{sign} {name}{written}: {said}"));
    let mendable = report.diagnostics.iter().filter(|d| d.edit.is_some()).count();
    if mendable > 0 {
        out.say(format!("{} `ralph lint --fix` fixes {mendable} of them", out.err(Tone::Plain, "next:")));
    }
}
