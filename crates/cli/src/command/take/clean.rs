//! `ralph clean`: removes what finished runs left behind.

use crate::confirm::{confirm, may_ask};
use crate::error::CommandError;
use crate::output::{Out, Sign};
use crate::parse::age;
use crate::text::table::{Cell, Table, columns, wrap};
use crate::text::words::{ago, size};
use ralph_loop_app::App;
use ralph_loop_app::clean::{self, CleanPlan, CleanRequest, Reclaimable};
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::{count, duration};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph clean --dry-run               show what would be deleted
  ralph clean --older-than 3d
  ralph clean --all --yes             clean every folder without asking
Deletes worktrees, clones, copies, sandboxes, refs and raw logs. Journals, receipts and proofs stay.")]
pub struct CleanArgs {
    /// Only runs that ended this long ago: 30m, 12h, 14d, 0d
    #[arg(long, value_name = "AGE", default_value = "14d", value_parser = age)]
    pub older_than: Duration,
    /// Show what would be deleted
    #[arg(long)]
    pub dry_run: bool,
    /// Include runs of every folder
    #[arg(short, long)]
    pub all: bool,
    /// Include runs whose result you haven't seen
    #[arg(long)]
    pub unread: bool,
    /// Delete without asking
    #[arg(short, long)]
    pub yes: bool,
}

pub fn run(args: CleanArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let env = app.environment();
    let now = SystemClock::default().now();
    let before = now.checked_sub(args.older_than).unwrap_or(now);
    let request = CleanRequest { before, everywhere: args.all, unseen: args.unread };
    let plan = clean::plan(env, folder, &request)?;
    if !out.json {
        show(&plan, now, &args, out);
    }
    let wanted = !args.dry_run && !plan.is_empty();
    // Without a terminal, only `--yes` confirms.
    let go = wanted && (args.yes || (may_ask(out) && confirm("Remove this?", out)));
    let problems = if go { clean::apply(env, &plan)? } else { Vec::new() };
    if out.json {
        out.value(&json!({
            "removed": go,
            "bytes": plan.bytes(),
            "runs": plan.remove,
            "sources": plan.sources,
            "kept": plan.keep,
            "problems": problems,
        }));
    } else if go {
        problems.iter().for_each(|problem| out.warn(problem));
        let sign = out.err(Tone::Good, out.sign(Sign::Good));
        out.say(format!("{sign} {} of {} removed", size(plan.bytes()), things(&plan)));
    } else if wanted && may_ask(out) {
        out.say("nothing was removed");
    } else if !plan.is_empty() {
        let next = out.err(Tone::Plain, "next:");
        out.say(format!("{next} nothing was removed; remove it with `{}`", args.again()));
    }
    Ok(if problems.is_empty() { 0 } else { 1 })
}

impl CleanArgs {
    /// The command that performs it.
    fn again(&self) -> String {
        let days = self.older_than.as_secs() / 86_400;
        let age = match self.older_than.as_secs() % 86_400 {
            0 => format!("{days}d"),
            _ => format!("{}m", self.older_than.as_secs() / 60),
        };
        let mut words = format!("ralph clean --older-than {age}");
        for (flag, given) in [(" --all", self.all), (" --unread", self.unread)] {
            words.push_str(if given { flag } else { "" });
        }
        words + " --yes"
    }
}

/// Describes a plan's content.
fn things(plan: &CleanPlan) -> String {
    let runs = (!plan.remove.is_empty()).then(|| count(plan.remove.len(), "finished run"));
    let sources = (!plan.sources.is_empty()).then(|| count(plan.sources.len(), "checkout of other repos"));
    let all: Vec<String> = runs.into_iter().chain(sources).collect();
    all.join(" and ").replace("checkout of other reposs", "checkouts of other repos")
}

fn show(plan: &CleanPlan, now: jiff::Timestamp, args: &CleanArgs, out: &Out) {
    if plan.is_empty() {
        let age = duration(args.older_than);
        out.line(match args.older_than.is_zero() {
            true => "nothing to clean up".to_owned(),
            false => format!(
                "nothing to clean up: no run ended more than {age} ago (`--older-than 0d` includes every finished run)"
            ),
        });
    } else {
        out.line(format!("{} of {}:", size(plan.bytes()), things(plan)));
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
    for source in &plan.sources {
        out.line(format!("  {} ({})", source.path.display(), size(source.bytes)));
    }
    for alone in &plan.keep {
        let line = format!("{} stays: {}", alone.run_id, alone.why);
        for (at, line) in wrap(&line, columns().saturating_sub(4)).iter().enumerate() {
            out.line(format!("{}{line}", if at == 0 { "  " } else { "    " }));
        }
    }
}

fn words(left: &Reclaimable) -> String {
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
    if left.branch.is_some() {
        parts.push("its branch, whose work is elsewhere".to_owned());
    }
    if !left.sandboxes.is_empty() {
        parts.push(count(left.sandboxes.len(), "sandbox"));
    }
    parts.join(", ")
}
