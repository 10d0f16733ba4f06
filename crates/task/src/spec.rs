//! The frozen definition of a run: task, settings and workspace. Written once as `spec.json`; an accepted edit makes
//! a new version.

use crate::config::Settings;
use crate::criterion::Criterion;
use jiff::Timestamp;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::id::{CommitId, Digest, RunId, Seq};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The newest format of `spec.json` that can be read; also the one that is written.
pub const VERSION: u32 = 1;

/// The four ways to write a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// `ralph_task.md`: YAML frontmatter and checkboxes.
    RalphTaskMd,
    /// `ralph.json`, version 2.
    RalphJson,
    /// `ralph/tasks.json` with `prd.md`, `prompt.md` and `progress.txt`.
    Plan,
    /// `PROMPT.md` with `.ralph/config.json`.
    PromptMd,
}

impl Dialect {
    /// Every dialect, in the order in which candidates are listed.
    pub const ALL: [Self; 4] = [Self::RalphTaskMd, Self::RalphJson, Self::Plan, Self::PromptMd];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::RalphTaskMd => "ralph_task.md",
            Self::RalphJson => "ralph.json",
            Self::Plan => "plan",
            Self::PromptMd => "PROMPT.md",
        }
    }
    /// The file to look for, relative to the run's folder.
    pub fn main_file(self) -> &'static str {
        match self {
            Self::RalphTaskMd => "ralph_task.md",
            Self::RalphJson => "ralph.json",
            Self::Plan => "ralph/tasks.json",
            Self::PromptMd => "PROMPT.md",
        }
    }
    /// Names of the other files that belong to the task.
    pub fn side_files(self) -> &'static [&'static str] {
        match self {
            Self::Plan => &["prd.md", "prompt.md", "progress.txt"],
            _ => &[],
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its id, if its file has or implies one: the value of `{{task_id}}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The value of `{{ticket_id}}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// A short name: the first heading or line.
    pub title: String,
    pub text: String,
    /// Its file, relative to the run's folder.
    pub source: String,
    #[serde(default = "prompt_md")]
    pub dialect: Dialect,
    /// The original file, if it isn't the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<Criterion>,
    /// Folder below the workspace for agents and checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Files of the workspace shown in every prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context_files: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
}

impl Task {
    /// Everything that you requested: title, text and criteria.
    pub fn words(&self) -> String {
        let criteria = self.criteria.iter().map(|criterion| criterion.text.as_str());
        let all: Vec<&str> = [self.title.as_str(), self.text.as_str()].into_iter().chain(criteria).collect();
        all.join("\n")
    }

    /// The text of its file, which edits replace.
    pub fn file_text(&self) -> &str {
        self.raw.as_deref().unwrap_or(&self.text)
    }

    /// Whether it is a text without a separate file: `ralph run "…"` keeps it in `.ralph/tasks/`.
    pub fn is_sentence(&self) -> bool {
        let name = self.source.strip_prefix(".ralph/tasks/");
        self.dialect == Dialect::PromptMd && name.is_some_and(|name| !name.contains('/'))
    }
}

fn prompt_md() -> Dialect {
    Dialect::PromptMd
}

impl Task {
    /// Parses a `PROMPT.md`.
    pub fn from_prompt(text: &str, source: &str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim().is_empty() {
            return Err(format!("`{source}` is empty"));
        }
        let title = text
            .lines()
            .map(|line| line.trim().trim_start_matches('#').trim())
            .find(|line| !line.is_empty())
            .unwrap_or("task");
        Ok(Self {
            id: None,
            ticket: None,
            title: one_line(title, 80),
            text: text.replace("\r\n", "\n"),
            source: source.to_owned(),
            dialect: Dialect::PromptMd,
            raw: None,
            criteria: Vec::new(),
            working_dir: None,
            context_files: Vec::new(),
            rules: Vec::new(),
        })
    }
}

/// The kind of a run's workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum WorkspaceKind {
    /// The user's working tree; when sandboxed, a copy of it.
    InPlace,
    Worktree,
    Clone {
        from: String,
        /// The only folders of a sparse clone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sparse: Vec<String>,
    },
}

impl WorkspaceKind {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::InPlace => "in place",
            Self::Worktree => "worktree",
            Self::Clone { .. } => "clone",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    pub version: u32,
    /// 1 at the start; each accepted edit of the task adds one.
    pub spec_version: u32,
    pub run_id: RunId,
    pub created_at: Timestamp,
    pub task: Task,
    pub settings: Settings,
    pub place: WorkspaceKind,
    /// The folder of the agent's tree.
    pub workspace: PathBuf,
    /// The user's folder that the run was started from.
    pub origin: PathBuf,
    /// The worktree or clone of a sandboxed run whose agent works on a copy of it (`workspace`): results are handed
    /// back here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_to: Option<PathBuf>,
    /// The branch that the run commits on, if any.
    pub branch: Option<String>,
    /// Digest of the repo's original `.ralph/config.json`, if any.
    pub config_digest: Option<Digest>,
    /// The run that this one was forked from, and after which of its events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkedFrom>,
    /// Earlier runs in this folder that are neither proven nor approved, newest first: their leftovers count as
    /// `HEAD` has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unproven_runs: Vec<RunId>,
}

/// Where a run was forked from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkedFrom {
    pub run: RunId,
    /// The last of its events that counts for this one.
    pub seq: Seq,
    /// Its start commit: tests and build scripts are compared with that, not with what its sessions made of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<CommitId>,
    /// The start with the user's uncommitted changes, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<CommitId>,
}

impl RunSpec {
    /// Whether iterations are also committed on the branch.
    pub fn commits_on_branch(&self) -> bool {
        self.branch.is_some()
    }
    /// Whether the agent works on a copy of the run's tree, whose files are handed back.
    pub fn hands_back(&self) -> bool {
        self.handed_to.is_some() || self.place == WorkspaceKind::InPlace && self.workspace != self.origin
    }
    /// The folder that the run belongs to, with its run folder in `.ralph/`: the user's for a run in place, else its
    /// worktree or clone.
    pub fn home(&self) -> &Path {
        match (&self.handed_to, &self.place) {
            (Some(tree), _) => tree,
            (None, WorkspaceKind::InPlace) => &self.origin,
            (None, _) => &self.workspace,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_named_by_its_first_heading() {
        let task = Task::from_prompt("\u{feff}\r\n# Fix the router\r\n\r\nText", "PROMPT.md").unwrap();
        assert_eq!(task.title, "Fix the router");
        assert!(!task.text.contains('\r'));
        assert_eq!(Task::from_prompt(" \n\t\n", "PROMPT.md").unwrap_err(), "`PROMPT.md` is empty");
    }
}
