//! The guardrails of a repo while a run works on it. Whatever the run adds comes to the repo's own file, also from a worktree or
//! a clone of it; what a person takes out there goes from the run, too.

use crate::context::Context;
use ralph_loop_domain::guardrail::{self, Rule};
use ralph_loop_journal::artifacts;
use ralph_loop_journal::layout::RalphDir;
use ralph_loop_protocol::id::Digest;
use ralph_loop_task::spec::WorkspaceKind;
use std::collections::BTreeSet;
use std::path::Path;

/// The file's name in `.ralph/`.
pub(crate) const GUARDRAILS: &str = "guardrails.md";
/// Bytes of it that are read.
pub(crate) const MEMORY_MAX: u64 = 16 * 1024 * 1024;
/// What both files had when they were last the same, in the record.
const KNOWN: &str = "guardrails.known";

impl Context {
    /// The file without what a person has removed from it; `None` where nothing was.
    pub(crate) fn without_removed_guardrails(&self, text: &str) -> Option<String> {
        let removed = digests(&self.run.removed_guardrails())?;
        let left = guardrail::without(text, |rule| removed.contains(rule.digest().as_str()));
        (left != text).then_some(left)
    }

    /// Brings the repo's guardrails and those of this run together. Whatever cannot be read or written stays as it is: the run
    /// does not depend on it.
    pub(crate) fn sync_guardrails(&self) {
        let before = self.dir.read_text(GUARDRAILS, MEMORY_MAX);
        let own = self.without_removed_guardrails(&before).unwrap_or_else(|| before.clone());
        let Some(repo) = self.repo_dir() else {
            if own != before {
                let _ = self.dir.write(GUARDRAILS, own.as_bytes());
            }
            return;
        };
        let path = self.run.path().join(KNOWN);
        let known: BTreeSet<Digest> = match digests(&path) {
            Some(known) => guardrail::rules(&own)
                .iter()
                .chain(&guardrail::rules(&repo.read_text(GUARDRAILS, MEMORY_MAX)))
                .map(Rule::digest)
                .filter(|digest| known.contains(digest.as_str()))
                .collect(),
            // The run has begun with a copy of the repo's.
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
            let _ = self.dir.write(GUARDRAILS, text.as_bytes());
        }
        let all: Vec<String> =
            guardrail::rules(&text).iter().map(|rule| rule.digest().as_str().to_owned()).collect();
        let _ = artifacts::write_atomic(&path, format!("{}\n", all.join("\n")).as_bytes());
    }

    /// The `.ralph/` of the user's repo, where the run works in a worktree or clone of it.
    fn repo_dir(&self) -> Option<RalphDir> {
        let spec = &self.state.spec;
        let same = match &spec.place {
            WorkspaceKind::InPlace => false,
            WorkspaceKind::Worktree => true,
            WorkspaceKind::Clone { from, .. } => Path::new(from) == spec.origin,
        };
        same.then(|| RalphDir::of(&spec.origin))
    }
}

fn digests(path: &Path) -> Option<BTreeSet<String>> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}
