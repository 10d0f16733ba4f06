//! One iteration: receipt, checks, files, artifacts.

use super::require_iteration;
use crate::error::CommandError;
use crate::output::{Out, Sign};
use crate::text::table::{Cell, Table, columns, wrap};
use crate::text::words::{ago, heading, local, row, short_count, size, tests, verdict_sign};
use jiff::Timestamp;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::read::timeline::RunTimeline;
use ralph_loop_app::trust::repo_file;
use ralph_loop_domain::repo::protect::ProtectedChange;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::{count, duration, one_line};
use ralph_loop_protocol::event::{CheckResult, FileChange, SessionEnd, Verdict};
use ralph_loop_protocol::money::{Cost, Tokens, Usd};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Files listed.
const SHOWN: usize = 40;

/// The displayed part of `receipt.json`.
#[derive(Debug, Deserialize)]
struct Receipt {
    agent: String,
    attempt: u32,
    model: Option<String>,
    started_at: Timestamp,
    session_ms: u64,
    end: Option<SessionEnd>,
    exit_code: Option<i32>,
    promised: bool,
    message: String,
    tokens: Option<Tokens>,
    #[serde(default)]
    saved_usd: Option<Usd>,
    #[serde(flatten)]
    cost: Cost,
    commit: Option<String>,
    lines_added: u64,
    lines_removed: u64,
    checks: Vec<CheckResult>,
    protected_changed: Vec<ProtectedChange>,
    verdict: Verdict,
}

pub fn show(facts: &RunSnapshot, number: u32, story: &RunTimeline, out: &Out) -> Result<(), CommandError> {
    require_iteration(facts, number)?;
    let folder = facts.entry.run_dir().iteration(number);
    let text = repo_file::read_record(&folder.join("receipt.json")).unwrap_or_default();
    let files = files_in(&folder);
    if out.json {
        out.value(&json!({
            "run_id": facts.entry.run_id,
            "iteration": number,
            "receipt": serde_json::from_slice::<Value>(&text).ok(),
            "signals": story.signals,
            "files": story.files,
            "files_total": story.files_total,
            "artifacts": files.iter().map(|(path, bytes)| json!({ "path": path, "bytes": bytes })).collect::<Vec<_>>(),
        }));
        return Ok(());
    }
    out.line(format!("iteration {number} of run {}", facts.entry.run_id));
    match serde_json::from_slice::<Receipt>(&text) {
        Ok(receipt) => print_receipt(&receipt, facts.now, story, out),
        Err(_) => out.line("  it has no receipt yet: it's running or was interrupted"),
    }
    print_signals(story, out);
    print_files(story, out);
    // In full, so that it can be copied.
    heading(out, &format!("Artifacts in {}", folder.display()));
    let mut table = Table::new(1).indent(2);
    for (path, bytes) in &files {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        table.row([Cell::new(size(*bytes)).right(), name.into()]);
    }
    table.lines(columns(), out).iter().for_each(|l| out.line(l));
    Ok(())
}

fn print_receipt(receipt: &Receipt, now: Timestamp, story: &RunTimeline, out: &Out) {
    let (sign, tone) = verdict_sign(receipt.verdict);
    out.line(format!("{} {}", out.out(tone, out.sign(sign)), receipt.verdict.words()));
    if !receipt.message.is_empty() {
        wrap(&receipt.message, columns() - 4).iter().for_each(|l| out.line(format!("  {l}")));
    }
    heading(out, "Session");
    let mut who = receipt.agent.clone();
    if let Some(model) = &receipt.model {
        who.push_str(&format!(" with {model}"));
    }
    if receipt.attempt > 1 {
        who.push_str(&format!(", try {}", receipt.attempt));
    }
    row(out, "agent", &who);
    row(out, "started", &format!("{} ({})", local(receipt.started_at, now), ago(receipt.started_at, now)));
    row(out, "took", &duration(Duration::from_millis(receipt.session_ms)));
    if let Some(end) = &receipt.end {
        let mut words = end.word().to_owned();
        if let Some(reason) = end.reason() {
            words.push_str(&format!(": {}", one_line(reason, 300)));
        }
        if let Some(code) = receipt.exit_code {
            words.push_str(&format!(" (exit code {code})"));
        }
        row(out, "ended", &words);
    }
    row(out, "promise", if receipt.promised { "given" } else { "not given" });
    row(out, "cost", &receipt.cost.with_basis());
    if let Some(tokens) = receipt.tokens {
        let (input, output, cached) =
            (short_count(tokens.input), short_count(tokens.output), short_count(tokens.cached));
        let saved = match receipt.saved_usd {
            Some(saved) if saved > Usd::ZERO => format!(" (saved {saved})"),
            _ => String::new(),
        };
        row(out, "tokens", &format!("{input} in, {output} out, {cached} from cache{saved}"));
    }
    let commit = receipt
        .commit
        .as_deref()
        .map_or_else(String::new, |c| format!(" · commit {}", c.get(..10).unwrap_or(c)));
    row(
        out,
        "changed",
        &format!(
            "{} +{} −{}{commit}",
            count(story.files_total, "file"),
            receipt.lines_added,
            receipt.lines_removed
        ),
    );
    if !receipt.checks.is_empty() {
        heading(out, "Checks");
    }
    for check in &receipt.checks {
        print_check(check, out);
    }
    for change in &receipt.protected_changed {
        let text = format!("protected path {} was {}", change.path, change.change.as_str());
        out.line(format!("  {} {text}", out.out(Tone::Bad, out.sign(Sign::Bad))));
    }
}

/// The stuck signals, if any.
fn print_signals(story: &RunTimeline, out: &Out) {
    let Some(signals) = story.signals.as_ref().filter(|s| s.loop_score > 0.0 || s.progress.is_some()) else {
        return;
    };
    heading(out, "Circling");
    row(out, "loop score", &format!("{:.1}", signals.loop_score));
    if let Some(progress) = &signals.progress {
        row(out, "progress", progress);
    }
    for (signal, weight, words) in signals.seen() {
        out.line(format!("  {weight:.1} {}: {words}", signal.name().replace('_', " ")));
    }
}

fn print_check(check: &CheckResult, out: &Out) {
    let (sign, tone) = if check.passed { (Sign::Good, Tone::Good) } else { (Sign::Bad, Tone::Bad) };
    let mut words = vec![match (&check.why, check.passed) {
        (_, true) => "passed".to_owned(),
        (why, false) => why.clone().unwrap_or_else(|| "failed".into()),
    }];
    words.extend(check.tests.map(|t| tests(t, None)));
    words.push(duration(Duration::from_millis(check.duration_ms)));
    words.push(check.log.clone());
    out.line(format!("  {} {}: {}", out.out(tone, out.sign(sign)), check.name, words.join(" · ")));
}

fn print_files(story: &RunTimeline, out: &Out) {
    if story.files.is_empty() {
        return;
    }
    heading(out, "Files");
    let mut table = Table::new(2).indent(2);
    for FileChange { path, status, added, removed, .. } in story.files.iter().take(SHOWN) {
        let lines = match (added, removed) {
            (Some(added), Some(removed)) => format!("+{added} −{removed}"),
            _ => "binary".to_owned(),
        };
        let word = match status {
            'A' => "new",
            'D' => "deleted",
            'T' => "type",
            _ => "changed",
        };
        table.row([word.into(), lines.into(), one_line(path, 400).into()]);
    }
    table.lines(columns(), out).iter().for_each(|l| out.line(l));
    if story.files_total > SHOWN {
        out.line(format!("  … and {} more", story.files_total - SHOWN.min(story.files.len())));
    }
}

/// The iteration's files with sizes.
fn files_in(folder: &Path) -> Vec<(PathBuf, u64)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<(PathBuf, u64)> =
        entries.filter_map(|e| Some((e.path(), e.metadata().ok()?.len()))).collect();
    files.sort();
    files
}
