use super::*;
use crate::proof::{
    Difference, DifferenceKind, HarnessChange, HarnessSource, ProofLevel, ProtectedEvidence, ScoreFacts,
    Suppression, Watching,
};
use crate::repo::protect::{ProtectedChange, ProtectedKind};
use crate::state::AgentTotals;
use ralph_loop_protocol::event::CheckResult;
use ralph_loop_protocol::id::{AgentName, CommitId, Digest, RunId, TreeId};
use ralph_loop_protocol::money::{Cost, Tokens, Usd};
use ralph_loop_protocol::proof::test_counts::TestCounts;

fn check(name: &str, command: &str) -> ProofCheck {
    ProofCheck {
        command: command.to_owned(),
        commit: Some(CommitId::new("0123456789abcdef0123456789abcdef01234567")),
        result: CheckResult {
            name: name.to_owned(),
            tree: TreeId::new("fedcba9876543210fedcba9876543210fedcba98"),
            passed: true,
            why: None,
            exit_code: Some(0),
            duration_ms: 192_000,
            tests: Some(TestCounts { passed: 44, failed: 0 }),
            log: "proof/check-tests.log".into(),
            log_digest: Digest::of(b"log"),
            failing: Vec::new(),
            last_lines: Vec::new(),
        },
    }
}

fn proof() -> Proof {
    let totals = AgentTotals { sessions: 3, ..AgentTotals::default() };
    Proof {
        version: 1,
        run_id: RunId::new("r1"),
        passed: true,
        commit: CommitId::new("0123456789abcdef0123456789abcdef01234567"),
        tree: TreeId::new("fedcba9876543210fedcba9876543210fedcba98"),
        base: CommitId::new("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        place: "clean checkout".into(),
        beside: Vec::new(),
        level: Some(ProofLevel::Independent),
        reason: None,
        difference: vec![Difference {
            check: "M1.1".into(),
            tests: vec!["test_a".into(), "test_b".into()],
            kind: DifferenceKind::RedToGreen,
        }],
        watched: Watching::NotWatched,
        harness: Vec::new(),
        harness_diff: String::new(),
        suppressions: Vec::new(),
        baseline: Vec::new(),
        original_harness: Vec::new(),
        original_product: Vec::new(),
        question: None,
        approved_by: None,
        criteria: Vec::new(),
        checks: vec![check("M1.1", "cargo test --workspace"), check("lint", "cargo clippy")],
        protected: ProtectedEvidence { patterns: vec!["PROMPT.md".into()], changed: Vec::new() },
        failed: Vec::new(),
        hint: None,
        iterations: 4,
        agents: [
            (AgentName::new("claude"), totals),
            (AgentName::new("codex"), AgentTotals { sessions: 1, ..totals }),
        ]
        .into(),
        tokens: Tokens { input: 120_000, output: 4_000, ..Tokens::default() }.into(),
        cost: Cost::reported(Usd::from_dollars(1.34)),
        loop_score: ScoreFacts { max: 0.72, last: 0.0, gutters: 1 },
        at: "2026-11-15T12:00:00Z".parse().unwrap(),
    }
}

fn change(path: &str, what: &str) -> HarnessChange {
    HarnessChange {
        path: path.into(),
        added: false,
        source: HarnessSource::Glob,
        named: false,
        what: what.into(),
    }
}

fn suppression(path: &str, text: &str) -> Suppression {
    Suppression { path: path.into(), line: 12, text: text.into() }
}

#[test]
fn the_table_names_every_check_and_what_the_run_took() {
    insta::assert_snapshot!(evidence_markdown(&proof()));
}

#[test]
fn a_failed_proof_lists_failures_and_harness_changes() {
    let mut proof = proof();
    proof.passed = false;
    let result = &mut proof.checks[1].result;
    (result.passed, result.why, result.exit_code) = (false, Some("exit code 2".into()), Some(2));
    result.tests = Some(TestCounts { passed: 3, failed: 1 });
    proof.failed = vec!["lint: exit code 2".into()];
    proof.protected.changed = vec![ProtectedChange { path: "a".into(), change: ProtectedKind::Changed }];
    proof.harness = vec![change("tests/test_a.py", "changed: tests")];
    proof.suppressions = vec![suppression("src/a.py", "import os  # noqa")];
    insta::assert_snapshot!(evidence_markdown(&proof));
}

#[test]
fn nothing_an_agent_writes_becomes_markup() {
    let mut proof = proof();
    let evil = "a | b `x` <img src=x onerror=1> @octocat #12 [l](https://evil.example) **bold**\n| forged | row |\n# H\u{202e}";
    proof.checks = vec![check(evil, evil)];
    proof.failed = vec![evil.to_owned()];
    proof.agents = [(AgentName::new("@all|x"), AgentTotals::default())].into();
    proof.suppressions = vec![suppression("tests/|`@me`.py", evil)];
    let text = evidence_markdown(&proof);
    insta::assert_snapshot!(text);
    for bad in ["<img", "@octocat", "@all", "@me", "](", "**bold**", " #12", "\u{202e}", "`x`"] {
        assert!(!text.contains(bad), "{bad}: {text}");
    }
    let cells =
        text.lines().find(|l| l.starts_with("| a") && l.contains("octocat")).unwrap().matches('|').count();
    assert_eq!(cells, 9, "one row stays one row of eight cells");
}

#[test]
fn evidence_is_bounded_for_a_pull_request() {
    let mut proof = proof();
    proof.checks = vec![check(&"n".repeat(1000), &"&".repeat(10_000)); 500];
    proof.failed = vec!["|".repeat(10_000); 500];
    proof.suppressions = vec![suppression(&"`".repeat(5000), &"<".repeat(5000)); 500];
    let text = evidence_markdown(&proof);
    assert!(text.len() < 120_000, "{}", text.len());
    assert!(text.contains("and 440 more"));
}

#[test]
fn a_proof_reads_back_as_written() {
    let proof = proof();
    let text = serde_json::to_vec(&proof).unwrap();
    assert_eq!(Proof::parse(&text).unwrap(), proof);
    let mut old = serde_json::to_value(&proof).unwrap();
    old.as_object_mut().unwrap().remove("loop_score");
    old["checks"][0].as_object_mut().unwrap().remove("commit");
    assert!(Proof::parse(old.to_string().as_bytes()).is_ok());
}

#[test]
fn headlines_name_the_level_and_harness_changes_are_no_markup() {
    let own = Proof {
        level: Some(ProofLevel::OwnTests),
        harness: vec![change("tests/<b>.py", "changed: tests")],
        ..proof()
    };
    let text = evidence_markdown(&own);
    assert!(text.contains("**proven by its own tests (original tests pass)**"), "{text}");
    assert!(text.contains("- tests/&#60;b&#62;.py: changed: tests"), "{text}");
    let unverified = Proof { level: Some(ProofLevel::Unverified), difference: Vec::new(), ..proof() };
    let text = evidence_markdown(&unverified);
    assert!(text.contains("**done, unverified**") && !text.contains("proven"), "{text}");
}
