//! The frozen definition of a run: task, settings and where it works. Written once as `spec.json`; an accepted edit
//! makes a new version.

use crate::config::Settings;
use crate::criterion::Criterion;
use jiff::Timestamp;
use ralph_loop_protocol::id::{CommitId, Digest, RunId, Seq};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The newest format of `spec.json` that is read, and the one that is written.
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
    /// Every dialect, in the order in which candidates are named.
    pub const ALL: [Self; 4] = [Self::RalphTaskMd, Self::RalphJson, Self::Plan, Self::PromptMd];

    /// The word used in files and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RalphTaskMd => "ralph_task.md",
            Self::RalphJson => "ralph.json",
            Self::Plan => "plan",
            Self::PromptMd => "PROMPT.md",
        }
    }
    /// The file that is looked for, relative to the folder of the run.
    pub fn main_file(self) -> &'static str {
        match self {
            Self::RalphTaskMd => "ralph_task.md",
            Self::RalphJson => "ralph.json",
            Self::Plan => "ralph/tasks.json",
            Self::PromptMd => "PROMPT.md",
        }
    }
    /// Names of the files beside the main one that belong to the task.
    pub fn side_files(self) -> &'static [&'static str] {
        match self {
            Self::Plan => &["prd.md", "prompt.md", "progress.txt"],
            _ => &[],
        }
    }
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its id, where its file has or implies one: what `{{task_id}}` stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The ticket that `{{ticket_id}}` stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// A short name: the first heading or line.
    pub title: String,
    /// The whole text given to agents.
    pub text: String,
    /// The file it came from, relative to the folder of the run.
    pub source: String,
    /// How it was written.
    #[serde(default = "prompt_md")]
    pub dialect: Dialect,
    /// The file as it was read, where agents may claim in it (boxes, `passes`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// The single conditions that make it done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<Criterion>,
    /// Folder below the workspace that agents and checks run in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Files of the workspace shown in every prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context_files: Vec<String>,
    /// Standing rules, given to every session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
}

impl Task {
    /// Everything that you asked for: title, text and criteria.
    pub fn words(&self) -> String {
        let criteria = self.criteria.iter().map(|criterion| criterion.text.as_str());
        let all: Vec<&str> = [self.title.as_str(), self.text.as_str()].into_iter().chain(criteria).collect();
        all.join("\n")
    }
}

fn prompt_md() -> Dialect {
    Dialect::PromptMd
}

impl Task {
    /// Reads a `PROMPT.md`.
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
            title: ralph_loop_protocol::text::one_line(title, 80),
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

/// The kind of workspace a run has: in place, a worktree or a clone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum WorkspaceKind {
    /// The user's own working tree; in a sandbox on a copy of it.
    InPlace,
    /// A linked worktree of the user's repo.
    Worktree,
    /// A clone.
    Clone {
        /// From where.
        from: String,
        /// The only folders that it has, where it is a sparse one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sparse: Vec<String>,
    },
}

impl WorkspaceKind {
    /// The word used in files and messages.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::InPlace => "in place",
            Self::Worktree => "worktree",
            Self::Clone { .. } => "clone",
        }
    }
}

/// A run as it was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// Format version.
    pub version: u32,
    /// 1 at the start; each accepted edit of the task adds one.
    pub spec_version: u32,
    /// The run.
    pub run_id: RunId,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// What to do.
    pub task: Task,
    /// How.
    pub settings: Settings,
    /// Where.
    pub place: WorkspaceKind,
    /// The folder of the agent's tree.
    pub workspace: PathBuf,
    /// The user's folder that the run was started from.
    pub origin: PathBuf,
    /// The worktree or clone of a sandboxed run, whose agent works on a copy of it (`workspace`): what comes of that is handed
    /// back here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_to: Option<PathBuf>,
    /// The branch that the run commits on, where it does.
    pub branch: Option<String>,
    /// Digest of the repo's `.ralph/config.json` as it was read, if there was one.
    pub config_digest: Option<Digest>,
    /// The run that this one was made from, and after which of its events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkedFrom>,
    /// Earlier runs in this folder that are neither proven nor approved, newest first: what they left counts as `HEAD` has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unproven_runs: Vec<RunId>,
}

/// Where a run branched off from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkedFrom {
    /// The other run.
    pub run: RunId,
    /// The last of its events that counts for this one.
    pub seq: Seq,
    /// What it began with: what decides the result is held against that, not against what its sessions made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<CommitId>,
    /// The same with what the user had not committed then, where there was something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<CommitId>,
}

impl RunSpec {
    /// Whether iterations are committed on the branch too.
    pub fn commits_on_branch(&self) -> bool {
        self.branch.is_some()
    }
    /// Whether the agent works on a copy of the run's own tree, whose files are handed back.
    pub fn hands_back(&self) -> bool {
        self.handed_to.is_some() || self.place == WorkspaceKind::InPlace && self.workspace != self.origin
    }
    /// The folder that the run belongs to, with its run folder in `.ralph/`, wherever the agent works: the user's own for a
    /// run in place, else its worktree or clone.
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
