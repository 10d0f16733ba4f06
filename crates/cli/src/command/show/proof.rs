//! `proof.json` as a table: each criterion with its command, exit code, time, tests and the digest of its log.

use crate::error::CommandError;
use crate::output::{Out, Sign};
use crate::table::{Cell, Table, columns};
use crate::words::{ago, heading};
use jiff::Timestamp;
use ralph_loop_app::facts::RunReading;
use ralph_loop_app::repo_file;
use ralph_loop_domain::proof::{Proof, ProofCheck, ProofLevel};
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::text::{duration, one_line};
use std::path::Path;
use std::time::Duration;

/// Weakened tests that are listed.
const WEAKENED_MAX: usize = 10;

/// Reads it; `None` where there is none, or it is not whole.
pub fn read(path: &Path) -> Option<Proof> {
    Proof::parse(&repo_file::read_record(path).ok()?).ok()
}

/// `ralph show --proof`: the proof and nothing else.
pub fn show(facts: &RunReading, out: &Out) -> Result<u8, CommandError> {
    let id = &facts.entry.run_id;
    let path = facts.entry.run_dir().proof();
    let Ok(text) = repo_file::read_record(&path) else {
        return Err(CommandError::usage(format!("run {id} has no proof (yet)"))
            .hint("the final check comes when the agent claims that it is done and every check passes"));
    };
    if out.json {
        let value: serde_json::Value = serde_json::from_slice(&text)
            .map_err(|e| CommandError::environment(format!("cannot read `{}`: {e}", path.display())))?;
        out.value(&value);
        return Ok(0);
    }
    let proof = Proof::parse(&text)
        .map_err(|e| CommandError::environment(format!("cannot read `{}`: {e}", path.display())))?;
    print(&proof, facts.now, out);
    Ok(0)
}

/// Prints it.
pub fn print(proof: &Proof, now: Timestamp, out: &Out) {
    heading(out, "Proof");
    let (sign, tone, word) = match proof.passed {
        true => (Sign::Good, Tone::Good, ProofLevel::verdict(proof.level)),
        false => (Sign::Bad, Tone::Bad, "not proven"),
    };
    let (commit, tree) = (proof.commit.short(), proof.tree.short());
    out.line(format!(
        "  {} {word} {} · commit {commit} · tree {tree} · {}",
        out.out(tone, out.sign(sign)),
        ago(proof.at, now),
        proof.place
    ));
    if let Some(level) = proof.level {
        out.line(format!("  level: {}, {}", level.words(), proof.watched.words()));
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
    if let Some(by) = &proof.approved_by {
        out.line(format!("  the changed tests are approved by {by}"));
    }
    for change in proof.harness.iter().take(WEAKENED_MAX) {
        out.line(format!("  {}", out.out(Tone::Attention, &one_line(&change.line(), 160))));
    }
    table(proof).lines(columns(), out).iter().for_each(|l| out.line(l));
    for failed in &proof.failed {
        out.line(format!("  {} {failed}", out.out(Tone::Bad, out.sign(Sign::Bad))));
    }
    if let Some(hint) = &proof.hint {
        out.line(format!("  {} {hint}", out.out(Tone::Attention, "next:")));
    }
    for line in weakened(proof) {
        out.line(format!("  {}", out.out(Tone::Attention, &line)));
    }
}

/// Changes to tests that a person should look at.
fn weakened(proof: &Proof) -> Vec<String> {
    if proof.weakened.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![format!("{}:", ralph_loop_protocol::weakened::summary(&proof.weakened))];
    for finding in proof.weakened.iter().take(WEAKENED_MAX) {
        let line = finding.line.map_or_else(String::new, |n| format!(":{n}"));
        let text = format!("{}{line}  {}  {}", finding.path, finding.kind.words(), finding.excerpt);
        lines.push(format!("  {}", one_line(&text, 160)));
    }
    if proof.weakened.len() > WEAKENED_MAX {
        lines.push(format!("  … and {} more (`--json` lists all)", proof.weakened.len() - WEAKENED_MAX));
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
    use crate::table::tests::plain;

    #[test]
    fn the_table_fits_80_columns_and_names_the_evidence() {
        let text = r#"{"version":1,"run_id":"r","passed":true,"commit":"0123456789abcdef","tree":"fedcba9876543210",
            "base":"x","place":"clean checkout","failed":[],"iterations":4,
            "protected":{"patterns":[],"changed":[]},"agents":{},"tokens":{"input":1,"output":2},"cost_usd":1.5,
            "cost_basis":"reported","weakened":[{"path":"tests/test_a.py","kind":"skipped","line":3,"excerpt":"@skip"}],"at":"2026-11-15T12:00:00Z",
            "checks":[{"command":"cargo test --workspace --all-features -- --include-ignored --nocapture","name":"tests",
            "tree":"fedcba9876543210","passed":true,"exit_code":0,"duration_ms":192000,"tests":{"passed":44,"failed":0},
            "log":"proof/tests.log","log_digest":"00112233445566778899"}]}"#;
        let proof: Proof = serde_json::from_str(text).unwrap();
        let lines = table(&proof).lines(80, &plain());
        assert!(lines.iter().all(|l| crate::table::width(l) <= 80), "{lines:#?}");
        insta::assert_snapshot!(lines.join("\n"), @r#"
        CRITERION  COMMAND                       EXIT  TIME        TESTS  LOG DIGEST
        tests      cargo test --workspace --al…  0     3 min 12 s  44     001122334455
        "#);
        insta::assert_snapshot!(weakened(&proof).join("\n"), @r"
        1 change to tests needs a look:
          tests/test_a.py:3 a test is skipped or expected to fail @skip
        ");
    }
}
