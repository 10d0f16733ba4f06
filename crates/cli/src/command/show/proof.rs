//! `proof.json` as a table: each criterion with its command, exit code, time, tests and the digest of its log.

use crate::command::list::table::{Cell, Table, columns};
use crate::command::status::words::{ago, heading};
use crate::output::{Out, Sign};
use jiff::Timestamp;
use ralph_domain::describe::Tone;
use ralph_domain::event::CheckResult;
use ralph_domain::id::{CommitId, TreeId};
use ralph_domain::text::duration;
use serde::Deserialize;
use std::path::Path;
use std::time::Duration;

/// The evidence, as far as it is shown.
#[derive(Debug, Deserialize)]
pub struct Proof {
    passed: bool,
    commit: CommitId,
    tree: TreeId,
    place: String,
    checks: Vec<Evidence>,
    failed: Vec<String>,
    at: Timestamp,
}

#[derive(Debug, Deserialize)]
struct Evidence {
    command: String,
    #[serde(flatten)]
    result: CheckResult,
}

/// Reads it; `None` where there is none, or it is not whole.
pub fn read(path: &Path) -> Option<Proof> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

impl Proof {
    /// Prints it.
    pub fn print(&self, now: Timestamp, out: &Out) {
        heading(out, "Proof");
        let (sign, tone, word) = if self.passed {
            (Sign::Good, Tone::Good, "proven")
        } else {
            (Sign::Bad, Tone::Bad, "not proven")
        };
        let (commit, tree) = (self.commit.short(), self.tree.short());
        out.line(format!(
            "  {} {word} {} · commit {commit} · tree {tree} · {}",
            out.out(tone, out.sign(sign)),
            ago(self.at, now),
            self.place
        ));
        self.table().lines(columns(), out).iter().for_each(|l| out.line(l));
        for failed in &self.failed {
            out.line(format!("  {} {failed}", out.out(Tone::Bad, out.sign(Sign::Bad))));
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new(1).indent(2);
        table.row(
            ["CRITERION", "COMMAND", "EXIT", "TIME", "TESTS", "LOG DIGEST"]
                .map(|h| Cell::toned(Tone::Muted, h)),
        );
        for Evidence { command, result } in &self.checks {
            let tests = result.tests.map_or_else(
                || "–".to_owned(),
                |t| {
                    if t.failed == 0 {
                        t.passed.to_string()
                    } else {
                        format!("{} of {}", t.passed, t.executed())
                    }
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::list::table::tests::plain;

    #[test]
    fn the_table_fits_80_columns_and_names_the_evidence() {
        let text = r#"{"version":1,"run_id":"r","passed":true,"commit":"0123456789abcdef","tree":"fedcba9876543210",
            "base":"x","place":"clean checkout","failed":[],"iterations":4,"at":"2026-11-15T12:00:00Z",
            "checks":[{"command":"cargo test --workspace --all-features -- --include-ignored --nocapture","name":"tests",
            "tree":"fedcba9876543210","passed":true,"exit_code":0,"duration_ms":192000,"tests":{"passed":44,"failed":0},
            "log":"proof/tests.log","log_digest":"00112233445566778899"}]}"#;
        let proof: Proof = serde_json::from_str(text).unwrap();
        let lines = proof.table().lines(80, &plain());
        assert!(lines.iter().all(|l| crate::command::list::table::width(l) <= 80), "{lines:#?}");
        insta::assert_snapshot!(lines.join("\n"), @r#"
        CRITERION  COMMAND                       EXIT  TIME        TESTS  LOG DIGEST
        tests      cargo test --workspace --al…  0     3 min 12 s  44     001122334455
        "#);
    }
}
