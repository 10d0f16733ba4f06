//! `ralph clean`: removes what runs that are over have left behind.

use crate::confirm::{confirm, may_ask};
use crate::error::CommandError;
use crate::output::{Out, Sign};
use crate::parse::age;
use crate::table::{Cell, Table, columns};
use crate::words::{ago, size};
use ralph_app::App;
use ralph_app::clean::{self, CleanPlan, CleanRequest, LeftBehind};
use ralph_core::clock::SystemClock;
use ralph_domain::describe::Tone;
use ralph_domain::ports::Clock as _;
use ralph_domain::text::count;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// Removes worktrees, clones and copies of runs that are over, their sandboxes, the engine's own refs (so that `git log --all`
/// shows your history alone) and raw logs. Journal, receipts and proof stay: `ralph list`, `show` and `cost` still know every
/// run; `ralph restore` and `ralph diff` no longer do. Never touched: branches, runs that are not finished, runs whose end
/// nobody has looked at, and clones that alone hold their work.
///
/// On a terminal it asks first. Without one it asks nobody and removes: it says what, and only what is over goes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph clean --dry-run               what would go, of this folder's runs
  ralph clean --older-than 3d
  ralph clean --all --yes             of every folder, without a question")]
pub struct CleanArgs {
    /// Only runs that ended at least this long ago: `30m`, `12h`, `14d`, `2w`; `0d` for all that are over.
    #[arg(long, value_name = "AGE", default_value = "14d", value_parser = age)]
    pub older_than: Duration,
    /// Only say what would be removed.
    #[arg(long)]
    pub dry_run: bool,
    /// Runs of every folder, not only of this one.
    #[arg(short, long)]
    pub all: bool,
    /// Also runs whose end nobody has looked at.
    #[arg(long)]
    pub unread: bool,
    /// Do it without asking.
    #[arg(short, long)]
    pub yes: bool,
}

/// Runs the command.
pub fn run(args: CleanArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let env = app.environment();
    let now = SystemClock::default().now();
    let before = now.checked_sub(args.older_than).unwrap_or(now);
    let request = CleanRequest { before, everywhere: args.all, unseen: args.unread };
    let plan = clean::plan(env, folder, &request)?;
    if !out.json {
        show(&plan, now, out);
    }
    let wanted = !args.dry_run && !plan.remove.is_empty();
    // Headless never asks: whoever calls it there means it.
    let go = wanted && (args.yes || !may_ask(out) || confirm("Remove this?", out));
    let problems = if go { clean::apply(env, &plan)? } else { Vec::new() };
    if out.json {
        out.value(&json!({
            "removed": go,
            "bytes": plan.bytes(),
            "runs": plan.remove,
            "kept": plan.keep,
            "problems": problems,
        }));
    } else if go {
        problems.iter().for_each(|problem| out.warn(problem));
        let sign = out.err(Tone::Good, out.sign(Sign::Good));
        let runs = count(plan.remove.len(), "run");
        out.say(format!("{sign} {} of {runs} removed", size(plan.bytes())));
    } else if wanted {
        out.say("nothing was removed");
    } else if args.dry_run && !plan.remove.is_empty() {
        out.say(format!("{} `ralph clean` without `--dry-run` removes it", out.err(Tone::Plain, "next:")));
    }
    Ok(if problems.is_empty() { 0 } else { 1 })
}

fn show(plan: &CleanPlan, now: jiff::Timestamp, out: &Out) {
    if plan.remove.is_empty() {
        out.line("nothing to clean up");
    } else {
        let runs = count(plan.remove.len(), "run");
        out.line(format!("{} of {runs} that are over:", size(plan.bytes())));
    }
    let mut table = Table::new(1).indent(2);
    for left in &plan.remove {
        let what = Cell::toned(Tone::Muted, words(left));
        table.row([
            left.run_id.as_str().into(),
            left.title.as_str().into(),
            what,
            ago(left.ended_at, now).into(),
        ]);
    }
    table.lines(columns(), out).iter().for_each(|line| out.line(line));
    for alone in &plan.keep {
        out.line(format!("  {} stays: {}", alone.run_id, alone.why));
    }
}

fn words(left: &LeftBehind) -> String {
    let mut parts = Vec::new();
    if left.workspace.is_some() {
        parts.push(format!("files {}", size(left.workspace_bytes)));
    }
    if left.log_bytes > 0 {
        parts.push(format!("logs {}", size(left.log_bytes)));
    }
    if !left.refs.is_empty() {
        parts.push(count(left.refs.len(), "ref"));
    }
    if !left.sandboxes.is_empty() {
        parts.push(count(left.sandboxes.len(), "sandbox"));
    }
    parts.join(", ")
}
