//! Errors of this crate, each with a next step.

use crate::process::command::GitError;
use ralph_loop_domain::ports::WorkspaceError;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("cannot {verb} `{}`: {source}", path.display())]
    File { verb: &'static str, path: PathBuf, source: io::Error },
    /// A ref isn't where this run left it, so it stays untouched.
    #[error("`{name}` was moved by another process: expected {expected}, found {actual}")]
    RefMoved { name: String, expected: String, actual: String },
    /// Another process holds git's lock on a file.
    #[error("`{}` is locked by another git command: `{}` exists", target.display(), lock.display())]
    Locked { target: PathBuf, lock: PathBuf },
    #[error("cannot read {what}: {reason}")]
    Unreadable { what: String, reason: String },
    #[error("{reason}")]
    Refused { reason: String, hint: String },
}

impl Error {
    pub(crate) fn file(verb: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File { verb, path: path.to_owned(), source }
    }

    pub(crate) fn unreadable(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Unreadable { what: what.into(), reason: reason.into() }
    }

    pub(crate) fn locked(target: &Path, lock: &Path) -> Self {
        Self::Locked { target: target.to_owned(), lock: lock.to_owned() }
    }

    pub(crate) fn refused(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused { reason: reason.into(), hint: hint.into() }
    }

    /// What to do next, if known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Git(error) => error.hint.clone(),
            Self::RefMoved { name, .. } => {
                Some(format!("look at it with `git log {name}`; nothing was changed"))
            }
            Self::Locked { lock, .. } => Some(format!(
                "wait for the other git command to end (a `git commit` with an open editor, a `git gc`); if none is running, it was killed: remove `{}`",
                lock.display()
            )),
            Self::Refused { hint, .. } if !hint.is_empty() => Some(hint.clone()),
            _ => None,
        }
    }

    pub(crate) fn during(self, what: &str) -> WorkspaceError {
        WorkspaceError { what: format!("cannot {what}"), hint: self.hint(), reason: self.to_string() }
    }
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
