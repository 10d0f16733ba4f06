//! The event of copying an agent's files into the user's tree.

use crate::display::text::count;
use crate::id::CommitId;
use serde::{Deserialize, Serialize};

/// What was handed back, and what the user's edits prevented.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Handed {
    /// The iteration of the files.
    pub iteration: u32,
    /// How many files were written or removed.
    pub written: usize,
    /// Files that the user has changed as well, at most 200: theirs stay, the agent's are in the work commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// The branch that stayed, because the user has moved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_kept: Option<String>,
    /// The work commit with the agent's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
}

impl Handed {
    /// What the user must know; `None` if there were no conflicts.
    pub fn words(&self) -> Option<String> {
        let at = self.commit.as_ref().map_or("refs/ralph/…/work", |commit| commit.short());
        let mut words = Vec::new();
        match self.conflicts.as_slice() {
            [] => {}
            [one] => words.push(format!(
                "you have changed `{one}`, too: yours stays, the agent's is in `git show {at}:{one}`"
            )),
            many => {
                let names: Vec<String> = many.iter().take(5).map(|name| format!("`{name}`")).collect();
                let more = if many.len() > names.len() { ", …" } else { "" };
                words.push(format!(
                    "you have changed {}, too ({}{more}): yours stay, the agent's are in commit {at}",
                    count(many.len(), "file"),
                    names.join(", "),
                ));
            }
        }
        if let Some(branch) = &self.branch_kept {
            words.push(format!("you have moved the branch `{branch}`: the run's commits are at {at}"));
        }
        (!words.is_empty()).then(|| words.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_kept_back_are_reported() {
        let mut handed =
            Handed { written: 3, commit: Some(CommitId::new("0123456789abcdef")), ..Handed::default() };
        assert_eq!(handed.words(), None);
        handed.conflicts = vec!["a.txt".into()];
        assert!(handed.words().is_some_and(|w| w.contains("yours stays") && w.contains(":a.txt`")));
        handed.conflicts.push("b.txt".into());
        handed.branch_kept = Some("fix".into());
        assert!(handed.words().is_some_and(|w| w.contains("2 files") && w.contains("`fix`")));
    }
}
