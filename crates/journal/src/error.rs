//! Errors of the run folder.

use std::io;
use std::path::{Path, PathBuf};

/// The largest event: events carry excerpts ([`EventBody::bounded`]), artifacts the whole.
pub const EVENT_MAX: usize = 256 * 1024;

/// A file of the run folder couldn't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("cannot {verb} `{path}`: {source}")]
    File { verb: &'static str, path: PathBuf, source: io::Error },
    /// A line in the middle of a journal is unreadable.
    #[error("`{path}` line {line} is not an event: {reason}")]
    Corrupt { path: PathBuf, line: u64, reason: String },
    /// A newer version wrote it, so its meaning is unknown.
    #[error("`{path}` line {line} holds {found}, which this version does not know: a newer `ralph` wrote it")]
    Newer { path: PathBuf, line: u64, found: String },
    #[error("`{path}` differs from its sealed copy `{seal}` at byte {at}")]
    Tampered {
        path: PathBuf,
        seal: PathBuf,
        /// The first byte that differs.
        at: u64,
    },
    /// An event that can't be cut without changing decisions.
    #[error("an event of kind `{kind}` would have {bytes} bytes; the journal takes {}", EVENT_MAX)]
    TooLarge { kind: &'static str, bytes: usize },
    #[error("there is no run in `{0}`")]
    NoRun(PathBuf),
}

impl JournalError {
    /// Wraps an I/O error with what was tried.
    pub fn file(verb: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File { verb, path: path.to_owned(), source }
    }

    /// What to do next, if known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::File { source, path, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(
                    "free some disk space, then `ralph resume`: everything up to the last event is safe"
                        .into(),
                ),
                io::ErrorKind::ReadOnlyFilesystem => {
                    Some("the disk is read-only: work in a folder that can be written".into())
                }
                io::ErrorKind::PermissionDenied => {
                    Some(format!("make `{}` writable for you", path.display()))
                }
                _ => None,
            },
            Self::Corrupt { path, .. } => {
                Some(format!("restore `{}` from a backup, or remove that line", path.display()))
            }
            Self::Newer { .. } => {
                Some("install a newer `ralph` (`ralph --version` says which this is)".into())
            }
            Self::Tampered { .. } => {
                Some("`ralph approve` keeps the sealed copy and sets the edited journal aside".into())
            }
            Self::TooLarge { .. } => Some(
                "shorten the task or reduce its files, then run `ralph resume`; no earlier work is lost"
                    .into(),
            ),
            Self::NoRun(_) => Some(
                "`ralph list` shows the runs of this folder, `ralph list --all` those of all folders".into(),
            ),
        }
    }
}
