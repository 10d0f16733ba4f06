//! Contents of tabs that load when opened, for local and server runs.

use crate::data::ToneLine;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::sanitize;
use ralph_loop_protocol::display::text::{count, duration, one_line};
use ralph_loop_protocol::money::Cost;
use ralph_loop_protocol::money::receipt::Receipt;
use std::collections::BTreeSet;
use std::time::Duration;

/// A changed file: status, lines added and removed, path.
pub fn file(word: &str, lines: Option<(u64, u64)>, path: &str) -> ToneLine {
    let tone = match word {
        "new" => Tone::Good,
        "deleted" => Tone::Attention,
        _ => Tone::Plain,
    };
    let size = lines.map_or_else(|| "binary".to_owned(), |(added, removed)| format!("+{added} −{removed}"));
    ToneLine::new(tone, format!("{:<8} {size:>12}  {}", one_line(word, 8), one_line(path, 300)))
}

/// A run's files, then its patch.
pub fn changes(files: Vec<ToneLine>, patch: &str, cut: bool) -> Vec<ToneLine> {
    let mut lines = files;
    lines.push(ToneLine::new(Tone::Plain, ""));
    for line in sanitize::block(patch).lines() {
        let tone = match line.as_bytes().first() {
            Some(b'+') if !line.starts_with("+++ ") => Tone::Good,
            Some(b'-') if !line.starts_with("--- ") => Tone::Bad,
            Some(b' ') => Tone::Plain,
            _ => Tone::Muted,
        };
        lines.push(ToneLine::new(tone, line.replace('\t', "    ")));
    }
    if cut {
        lines.push(ToneLine::new(Tone::Muted, "… cut here; g shows all of it"));
    }
    lines
}

/// An iteration's receipt.
pub fn receipt(number: u32, receipt: &Receipt) -> Vec<ToneLine> {
    let took = duration(Duration::from_millis(receipt.session_ms));
    let cost = match receipt.cost {
        Cost::UNKNOWN => Cost::UNKNOWN.alone(),
        cost => cost.with_basis(),
    };
    let tokens = receipt.tokens.map_or_else(String::new, |t| format!("  {} in, {} out", t.input, t.output));
    let model =
        receipt.model.as_deref().map(|model| format!("  {}", one_line(model, 60))).unwrap_or_default();
    let mut lines = vec![
        ToneLine::new(
            Tone::Attention,
            format!("{number:>3}  {}{model}  {}", receipt.agent, receipt.verdict.words()),
        ),
        ToneLine::new(
            Tone::Plain,
            format!(
                "     {took}  {cost}{tokens}  +{} −{}  {}",
                receipt.lines_added,
                receipt.lines_removed,
                count(receipt.files_changed, "file")
            ),
        ),
    ];
    for check in &receipt.checks {
        let (tone, word) = if check.passed { (Tone::Good, "passed") } else { (Tone::Bad, "failed") };
        let why = check.why.as_deref().map(|why| format!(": {}", one_line(why, 200))).unwrap_or_default();
        lines.push(ToneLine::new(tone, format!("     {word} {}{why}", one_line(&check.name, 80))));
        if !check.passed {
            let said = check.evidence(12);
            lines.extend(said.iter().map(|line| ToneLine::new(Tone::Plain, format!("         {line}"))));
        }
    }
    if !receipt.message.trim().is_empty() {
        lines.push(ToneLine::new(Tone::Muted, format!("     {}", one_line(&receipt.message, 300))));
    }
    lines.push(ToneLine::new(Tone::Plain, ""));
    lines
}

/// The tests that the work between two iterations fixed and broke.
pub fn tests_between(from: Option<&Receipt>, to: Option<&Receipt>) -> Vec<ToneLine> {
    let failing = |receipt: Option<&Receipt>| -> BTreeSet<String> {
        receipt.iter().flat_map(|receipt| &receipt.checks).flat_map(|check| check.failing.clone()).collect()
    };
    let (before, after) = (failing(from), failing(to));
    let line =
        |tone, word: &str, test: &String| ToneLine::new(tone, format!("{word} {}", one_line(test, 300)));
    let mut lines: Vec<ToneLine> =
        before.difference(&after).map(|test| line(Tone::Good, "fixed  ", test)).collect();
    lines.extend(after.difference(&before).map(|test| line(Tone::Bad, "broken ", test)));
    lines.extend(after.intersection(&before).map(|test| line(Tone::Plain, "failing", test)));
    lines
}
