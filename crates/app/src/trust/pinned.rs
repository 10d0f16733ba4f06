//! Texts as they were when a person approved them. A run works on these bytes, whatever their source says later.

use crate::error::AppError;
use crate::task::task_source;
use jiff::Timestamp;
use ralph_loop_protocol::id::Digest;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A task with the approval of exactly this text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pinned {
    /// Who approved it.
    pub by: String,
    pub at: Timestamp,
    pub task: PinnedTask,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PinnedTask {
    /// An issue's words: the run works on them, and doesn't take newer ones.
    Issue { title: String, body: String },
    /// The digest of a task file and the files next to it: the run starts with these bytes or not at all.
    File { digest: Digest },
}

impl Pinned {
    /// Pins the task file that a request means; `None` if there is none, which the run reports.
    pub fn file(folder: &Path, named: Option<&Path>, by: &str, at: Timestamp) -> Option<Self> {
        let digest = task_source::find(folder, named).ok()?.digest();
        Some(Self { by: by.to_owned(), at, task: PinnedTask::File { digest } })
    }

    /// Refuses a task file that was edited since.
    pub(crate) fn check_file(&self, folder: &Path, named: Option<&Path>) -> Result<(), AppError> {
        let PinnedTask::File { digest } = &self.task else { return Ok(()) };
        let source = task_source::find(folder, named)?;
        if source.digest() == *digest {
            return Ok(());
        }
        let name = source.files.name();
        Err(AppError::needs_person(format!("`{name}` was edited after {} started this run", self.by))
            .cause(format!("the run was approved at {} with another text", self.at))
            .hint("read the task again and start a new run, which approves its text as it is now"))
    }
}

/// Identifies an issue's text.
pub(crate) fn issue_digest(title: &str, body: &str) -> Digest {
    Digest::of(format!("{title}\n{body}").as_bytes())
}
