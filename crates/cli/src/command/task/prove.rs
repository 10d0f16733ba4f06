//! `ralph prove`: the same proof as for a run, for any commit or pull request.

use crate::error::CommandError;
use crate::output::Out;
use crate::parse::isolation;
use crate::process::signals;
use crate::progress::report::Presenter;
use crate::text::proof_text;
use crate::text::table::{columns, wrap};
use crate::text::words::heading;
use ralph_loop_app::prove::{self, ProveRequest, ProvedCommit};
use ralph_loop_app::{App, Notice, Reporter};
use ralph_loop_core::clock::SystemClock;
use ralph_loop_core::{CommitProof, HunkLimits, HunkReport, Observer, SessionProgress};
use ralph_loop_domain::ports::{Clock as _, Stream};
use ralph_loop_domain::proof::{Proof, ProofLevel};
use ralph_loop_domain::state::RunState;
use ralph_loop_proof::state::Tree;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::{count, duration};
use ralph_loop_protocol::event::{CheckResult, Event, EventBody};
use ralph_loop_task::config::Isolation;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Lines of a failed check's output.
const OUTPUT_LINES: usize = 10;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph prove                          the checked-out commit, against the default branch
  ralph prove 7 --json                 pull request 7
  ralph prove HEAD~1 --base v1.2 --verify 'make test'
  ralph prove --thorough               also list changes that no check notices
Exit codes: 0 proven · 1 unverified or failed · 2 usage error · 4 environment problem")]
pub struct ProveArgs {
    /// Commit, or pull request by number or URL [default: HEAD]
    #[arg(value_name = "REV|PR")]
    pub what: Option<String>,
    /// Compare with this revision [default: the default branch]
    #[arg(long, value_name = "REV")]
    pub base: Option<String>,
    /// Command that must pass (repeatable) [default: the repo's]
    #[arg(long, value_name = "CMD")]
    pub verify: Vec<String>,
    /// Task file whose checks count as well
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub task: Option<PathBuf>,
    /// Revert each hunk in turn and list those no check notices
    #[arg(long)]
    pub thorough: bool,
    /// Revert at most this many hunks
    #[arg(long, value_name = "N", default_value_t = 40, requires = "thorough")]
    pub max_hunks: usize,
    /// Revert no further hunk after this many minutes
    #[arg(long, value_name = "N", default_value_t = 10, requires = "thorough", value_parser = clap::value_parser!(u64).range(1..=10_080))]
    pub max_minutes: u64,
    /// Sandbox strength: auto, bwrap, landlock, none
    #[arg(long, value_name = "HOW", value_parser = isolation)]
    pub isolation: Option<Isolation>,
}

pub fn run(args: ProveArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let limits = HunkLimits { count: args.max_hunks, time: Duration::from_secs(args.max_minutes * 60) };
    let request = ProveRequest {
        folder: folder.to_owned(),
        what: args.what,
        base: args.base,
        verify: args.verify,
        task: args.task,
        isolation: args.isolation,
        hunks: args.thorough.then_some(limits),
    };
    let cancel = signals::install();
    let report = Progress { presenter: Presenter::new(app, out), out: *out };
    let Some(proved) = prove::prove(app.environment(), &request, cancel, &report)? else { return Ok(130) };
    let proof = &proved.result.proof;
    match out.json {
        true => out.value(&as_json(&proved)),
        false => print(&proved, out),
    }
    Ok(if proof.passed && proof.level.is_some_and(ProofLevel::is_proven) { 0 } else { 1 })
}

/// Prints the run's messages for the user on stderr.
struct Progress<'a> {
    presenter: Presenter<'a>,
    out: Out,
}

impl Reporter for Progress<'_> {
    fn notice(&self, notice: &Notice<'_>) {
        self.presenter.notice(notice);
    }

    fn observer(&self) -> Box<dyn Observer> {
        Box::new(Messages(self.out))
    }
}

struct Messages(Out);

impl Observer for Messages {
    fn event(&mut self, _: &RunState, event: &Event) {
        if let EventBody::Notice { message } = &event.body {
            self.0.say(message);
        }
    }

    fn live(&mut self, _: &RunState, _: &SessionProgress<'_>) {}

    fn output(&mut self, _: Stream, _: &[u8]) {}
}

fn as_json(proved: &ProvedCommit) -> serde_json::Value {
    let CommitProof { proof, took, hunks } = &proved.result;
    let mut value = serde_json::to_value(proof).unwrap_or_default();
    value["headline"] = json!(proof.headline());
    value["runs"] = took
        .iter()
        .map(|(tree, time)| json!({ "run": letter(*tree), "tree": words(*tree), "seconds": time.as_secs_f64() }))
        .collect();
    if let Some(hunks) = hunks {
        let unnoticed = hunks.unnoticed.iter().map(
            |hunk| json!({ "path": hunk.path, "line": hunk.line, "lines": hunk.lines, "text": hunk.text }),
        );
        value["thorough"] = json!({
            "hunks": hunks.total,
            "reverted": hunks.reverted,
            "unnoticed": unnoticed.collect::<Vec<_>>(),
        });
    }
    value
}

fn letter(tree: Tree) -> &'static str {
    match tree {
        Tree::Commit => "B",
        Tree::OriginalHarness | Tree::OriginalTests => "A",
        Tree::OriginalProduct => "C",
    }
}

fn words(tree: Tree) -> &'static str {
    match tree {
        Tree::Commit => "the commit",
        Tree::OriginalHarness => "the commit with the original harness",
        Tree::OriginalTests => "the commit with the original tests",
        Tree::OriginalProduct => "the original product with the new harness",
    }
}

fn print(proved: &ProvedCommit, out: &Out) {
    let CommitProof { proof, took, hunks } = &proved.result;
    proof_text::print(proof, SystemClock::default().now(), out);
    out.line(format!("  compared with {}", proof.base.short()));
    for check in proof.checks.iter().map(|check| &check.result).filter(|result| !result.passed) {
        for line in check.last_lines.iter().rev().take(OUTPUT_LINES).rev() {
            out.line(format!("    {}", out.out(Tone::Muted, line)));
        }
    }
    heading(out, "Runs");
    let sum =
        |results: &[CheckResult]| Duration::from_millis(results.iter().map(|one| one.duration_ms).sum());
    if !proof.baseline.is_empty() {
        out.line(format!("  the original: {}", duration(sum(&proof.baseline))));
    }
    for (tree, time) in took {
        out.line(format!("  {} {}: {}", letter(*tree), words(*tree), duration(*time)));
    }
    if let Some(hunks) = hunks {
        print_hunks(hunks, out);
    }
    if proof.hint.is_none()
        && let Some(next) = next_step(proof)
    {
        out.line(format!("{} {next}", out.out(Tone::Attention, "next:")));
    }
    for request in &proved.left_out {
        out.say(format!("not allowed, so left out: {request} (`ralph trust`)"));
    }
}

/// What would make a commit proven.
fn next_step(proof: &Proof) -> Option<&'static str> {
    match (proof.passed, proof.level) {
        (true, Some(ProofLevel::AlreadyTrue | ProofLevel::Unverified)) => Some(
            "commit a test that fails without this work, or name a check that does with `--verify 'COMMAND'`; then `ralph prove` again",
        ),
        (true, _) => None,
        (false, _) if proof.question.is_some() => {
            Some("commit the original tests and make the work pass them, or review why they had to change")
        }
        (false, _) => Some("fix what fails, commit it, then `ralph prove` again"),
    }
}

fn print_hunks(report: &HunkReport, out: &Out) {
    heading(out, "Changes that no check notices");
    for hunk in &report.unnoticed {
        let lines = count(hunk.lines, "line");
        for line in wrap(&format!("{}:{} ({lines}) {}", hunk.path, hunk.line, hunk.text), columns() - 2) {
            out.line(format!("  {}", out.out(Tone::Attention, &line)));
        }
    }
    let left = match report.total - report.reverted {
        0 => String::new(),
        left => format!("; {left} not tried (`--max-hunks`, `--max-minutes`)"),
    };
    let (found, tried) = (report.unnoticed.len(), count(report.reverted, "change"));
    out.line(format!("  {found} of {tried} that were reverted{left}"));
}
