//! The guardrails of a repo during a run. Rules that a run adds reach the repo's own file, also from a
//! worktree or clone; rules the user removes there leave the run.

use crate::ledger::Ledger;
use ralph_loop_domain::repo::guardrail::{self, Rule};
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_protocol::id::Digest;
use ralph_loop_task::spec::WorkspaceKind;
use std::collections::BTreeSet;
use std::path::Path;

pub(crate) const GUARDRAILS: &str = "guardrails.md";
pub(crate) const MEMORY_MAX: u64 = 16 * 1024 * 1024;
/// What both files had in common at the last sync; in the record.
const KNOWN: &str = "guardrails.known";

/// The file without rules the user removed; `None` if nothing changes.
pub(crate) fn without_removed_guardrails(ledger: &Ledger, text: &str) -> Option<String> {
    let removed = digests(&ledger.record_dir.removed_guardrails())?;
    let left = guardrail::without(text, |rule| removed.contains(rule.digest().as_str()));
    (left != text).then_some(left)
}

/// Merges the repo's guardrails and the run's. Failures are ignored: the run doesn't depend on it.
pub(crate) fn sync_guardrails(ledger: &Ledger) {
    let before = ledger.dir.read_text(GUARDRAILS, MEMORY_MAX);
    let own = without_removed_guardrails(ledger, &before).unwrap_or_else(|| before.clone());
    let Some(repo) = repo_dir(ledger) else {
        if own != before {
            let _ = ledger.dir.write(GUARDRAILS, own.as_bytes());
        }
        return;
    };
    let path = ledger.record_dir.path().join(KNOWN);
    let known: BTreeSet<Digest> = match digests(&path) {
        Some(known) => guardrail::rules(&own)
            .iter()
            .chain(&guardrail::rules(&repo.read_text(GUARDRAILS, MEMORY_MAX)))
            .map(Rule::digest)
            .filter(|digest| known.contains(digest.as_str()))
            .collect(),
        // The run started with a copy of the repo's.
        None => guardrail::rules(&own).iter().map(Rule::digest).collect(),
    };
    let theirs = repo.read(GUARDRAILS, MEMORY_MAX);
    let text = match &theirs {
        Some(theirs) => guardrail::merged(&String::from_utf8_lossy(theirs), &own, &known),
        None => own.clone(),
    };
    let grown = guardrail::rules(&own).iter().any(|rule| !known.contains(&rule.digest()));
    let differs = theirs.map_or(grown, |theirs| theirs != text.as_bytes());
    if differs {
        let _ = repo.write(GUARDRAILS, text.as_bytes());
    }
    if text != before {
        let _ = ledger.dir.write(GUARDRAILS, text.as_bytes());
    }
    let all: Vec<String> =
        guardrail::rules(&text).iter().map(|rule| rule.digest().as_str().to_owned()).collect();
    let _ = artifacts::write_atomic(&path, format!("{}\n", all.join("\n")).as_bytes());
}

/// The `.ralph/` of the user's repo, for a run in a worktree or clone.
fn repo_dir(ledger: &Ledger) -> Option<RalphDir> {
    let spec = &ledger.state.spec;
    let same = match &spec.place {
        WorkspaceKind::InPlace => false,
        WorkspaceKind::Worktree => true,
        WorkspaceKind::Clone { from, .. } => Path::new(from) == spec.origin,
    };
    same.then(|| RalphDir::of(&spec.origin))
}

fn digests(path: &Path) -> Option<BTreeSet<String>> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}
