//! A proof as text: headline, difference, harness changes, and a table of the checks.

use crate::output::{Out, Sign};
use crate::text::table::{Cell, Table, columns};
use crate::text::words::{ago, heading};
use jiff::Timestamp;
use ralph_loop_domain::proof::{Proof, ProofCheck, ProofLevel};
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::{duration, one_line};
use std::time::Duration;

/// Lines per list.
const LISTED_MAX: usize = 10;

pub fn print(proof: &Proof, now: Timestamp, out: &Out) {
    heading(out, "Proof");
    let word = proof.headline();
    let (sign, tone) = match (proof.passed, proof.level.is_some_and(ProofLevel::is_proven)) {
        (true, true) => (Sign::Good, Tone::Good),
        (true, false) => (Sign::Wait, Tone::Attention),
        (false, _) => (Sign::Bad, Tone::Bad),
    };
    let (commit, tree) = (proof.commit.short(), proof.tree.short());
    out.line(format!(
        "  {} {word} {} · commit {commit} · tree {tree} · {}, {}",
        out.out(tone, out.sign(sign)),
        ago(proof.at, now),
        proof.place,
        proof.watched.words()
    ));
    if let Some(reason) = proof.reason.as_deref().filter(|_| proof.passed) {
        out.line(format!("  {}", out.out(Tone::Attention, reason)));
    }
    for difference in proof.difference.iter().take(LISTED_MAX) {
        out.line(format!("  {}", one_line(&difference.line(), 160)));
    }
    if !proof.beside.is_empty() {
        let files = one_line(&proof.beside.join(", "), 160);
        out.line(format!(
            "  {}",
            out.out(
                Tone::Attention,
                &format!("checked with your own changes, which are not committed: {files}")
            )
        ));
    }
    for line in harness(proof) {
        out.line(format!("  {}", out.out(Tone::Attention, &line)));
    }
    table(proof).lines(columns(), out).iter().for_each(|l| out.line(l));
    for failed in &proof.failed {
        out.line(format!("  {} {failed}", out.out(Tone::Bad, out.sign(Sign::Bad))));
    }
    // Your approval doesn't make the original tests pass.
    let accepted = proof.question.iter().filter(|_| proof.approved_by.is_some());
    for line in accepted.flat_map(|question| question.details()).filter(|line| !is_listed(proof, line)) {
        out.line(format!("  {}", out.out(Tone::Attention, &one_line(&line, 160))));
    }
    if let Some(hint) = &proof.hint {
        out.line(format!("  {} {hint}", out.out(Tone::Attention, "next:")));
    }
}

fn is_listed(proof: &Proof, line: &str) -> bool {
    proof.reason.as_deref() == Some(line) || proof.harness.iter().any(|change| change.line() == line)
}

/// Harness changes and suppression comments, bounded.
fn harness(proof: &Proof) -> Vec<String> {
    let changes = proof.harness.iter().map(|change| format!("harness: {}", change.line()));
    let comments =
        proof.suppressions.iter().map(|one| format!("suppression: {}:{} {}", one.path, one.line, one.text));
    let all: Vec<String> = changes.chain(comments).map(|line| one_line(&line, 160)).collect();
    let more = all.len().saturating_sub(LISTED_MAX);
    let mut lines: Vec<String> = all.into_iter().take(LISTED_MAX).collect();
    if more > 0 {
        lines.push(format!("… and {more} more (`--json` lists all)"));
    }
    lines
}

fn table(proof: &Proof) -> Table {
    let mut table = Table::new(1).indent(2);
    table.row(
        ["CRITERION", "COMMAND", "EXIT", "TIME", "TESTS", "LOG DIGEST"].map(|h| Cell::toned(Tone::Muted, h)),
    );
    for ProofCheck { command, result, .. } in &proof.checks {
        let tests = result.tests.map_or_else(
            || "–".to_owned(),
            |t| {
                if t.failed == 0 { t.passed.to_string() } else { format!("{} of {}", t.passed, t.executed()) }
            },
        );
        let exit = result.exit_code.map_or_else(|| "–".to_owned(), |c| c.to_string());
        let tone = if result.passed { Tone::Good } else { Tone::Bad };
        table.row([
            Cell::toned(tone, result.name.as_str()),
            command.as_str().into(),
            exit.into(),
            duration(Duration::from_millis(result.duration_ms)).into(),
            tests.into(),
            result.log_digest.short().into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::tests::plain;

    #[test]
    fn the_table_fits_80_columns_and_names_the_evidence() {
        let text = r#"{"version":1,"run_id":"r","passed":true,"commit":"0123456789abcdef","tree":"fedcba9876543210",
            "base":"x","place":"clean checkout","failed":[],"iterations":4,
            "protected":{"patterns":[],"changed":[]},"agents":{},"tokens":{"input":1,"output":2},"cost_usd":1.5,
            "cost_basis":"reported","suppressions":[{"path":"a.py","line":3,"text":"x //nolint"}],"harness":[{"path":"tests/test_a.py","source":"glob","what":"changed: tests"}],"at":"2026-11-15T12:00:00Z",
            "checks":[{"command":"cargo test --workspace --all-features -- --include-ignored --nocapture","name":"tests",
            "tree":"fedcba9876543210","passed":true,"exit_code":0,"duration_ms":192000,"tests":{"passed":44,"failed":0},
            "log":"proof/tests.log","log_digest":"00112233445566778899"}]}"#;
        let proof: Proof = serde_json::from_str(text).unwrap();
        let lines = table(&proof).lines(80, &plain());
        assert!(lines.iter().all(|l| crate::text::table::width(l) <= 80), "{lines:#?}");
        insta::assert_snapshot!(lines.join("\n"), @r#"
        CRITERION  COMMAND                       EXIT  TIME        TESTS  LOG DIGEST
        tests      cargo test --workspace --al…  0     3 min 12 s  44     001122334455
        "#);
        insta::assert_snapshot!(harness(&proof).join("\n"), @r"
        harness: tests/test_a.py: changed: tests
        suppression: a.py:3 x //nolint
        ");
    }
}
