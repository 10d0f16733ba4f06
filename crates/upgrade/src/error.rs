//! What can go wrong, and what mends it.

use std::path::{Path, PathBuf};

/// An upgrade that did not happen. The version that was there still is.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    /// The place of releases cannot be used.
    #[error("`{address}` is no address of releases")]
    Address {
        /// As it was given.
        address: String,
    },
    /// A server gave no file.
    #[error("{what} cannot be fetched from {host}")]
    Fetch {
        /// Which file.
        what: String,
        /// From where.
        host: String,
        /// In the words of the network or the server.
        reason: String,
    },
    /// The list of sums names no archive for this machine.
    #[error("the release has no archive for {target}")]
    NoArchive {
        /// What this program was built for.
        target: String,
    },
    /// The list of sums is not one.
    #[error("the list of sums cannot be read")]
    Sums {
        /// Why.
        reason: String,
    },
    /// The archive is not the one that the sum belongs to.
    #[error("{name} is not what its sum says")]
    WrongSum {
        /// The archive.
        name: String,
        /// The sum that was named.
        wanted: String,
        /// The sum of what came.
        found: String,
    },
    /// What came cannot be unpacked.
    #[error("{name} cannot be unpacked")]
    Archive {
        /// The archive.
        name: String,
        /// Why.
        reason: String,
    },
    /// The new program does not start here, or is another version.
    #[error("the new program does not start here")]
    DoesNotStart {
        /// Why.
        reason: String,
    },
    /// A version is not written like one.
    #[error("`{text}` is no version")]
    Version {
        /// As it was given.
        text: String,
    },
    /// This program was not put there by `install.sh` or `ralph upgrade`.
    #[error("{program} was not installed from an archive")]
    NotOurs {
        /// Where it is.
        program: String,
        /// What renews it instead.
        instead: String,
    },
    /// Another upgrade is at work.
    #[error("another upgrade of {prefix} is at work")]
    Busy {
        /// Where.
        prefix: String,
    },
    /// A file cannot be used.
    #[error("cannot {verb} `{path}`")]
    File {
        /// What was tried.
        verb: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

impl UpgradeError {
    pub(crate) fn file(verb: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { verb, path, source }
    }

    /// Why, where more is known than what failed.
    pub fn cause(&self) -> Option<String> {
        match self {
            Self::Fetch { reason, .. }
            | Self::Sums { reason }
            | Self::Archive { reason, .. }
            | Self::DoesNotStart { reason } => Some(reason.clone()),
            Self::WrongSum { wanted, found, .. } => Some(format!("it is {found} and should be {wanted}")),
            Self::File { source, .. } => Some(source.to_string()),
            Self::Address { .. }
            | Self::NoArchive { .. }
            | Self::Version { .. }
            | Self::NotOurs { .. }
            | Self::Busy { .. } => None,
        }
    }

    /// What mends it.
    pub fn hint(&self) -> String {
        match self {
            Self::Address { .. } => {
                "RALPH_DOWNLOAD_URL takes an address that begins with https:// (http:// on this machine alone)".into()
            }
            Self::Fetch { reason, .. } if reason.starts_with("404") => {
                "name a version that was released, or none for the newest; nothing was changed".into()
            }
            Self::Fetch { .. } => {
                "look at the network and the proxy (HTTPS_PROXY), then try again; nothing was changed".into()
            }
            Self::NoArchive { .. } => "build it from its source: `cargo install --locked --path crates/cli`".into(),
            Self::Sums { .. } | Self::Archive { .. } => {
                "try again; where it stays so, report it. Nothing was changed".into()
            }
            Self::WrongSum { .. } => {
                "the download was torn or changed on its way: try again, and do not use what came. Nothing was changed"
                    .into()
            }
            Self::DoesNotStart { .. } => "nothing was changed; the version that is here goes on".into(),
            Self::Version { .. } => "a version looks like 0.2.0".into(),
            Self::NotOurs { instead, .. } => instead.clone(),
            Self::Busy { .. } => "wait for it to end".into(),
            Self::File { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                "run it as whoever installed it (`sudo ralph upgrade` where that was root). Nothing was changed".into()
            }
            Self::File { .. } => "make room or mend what the line above names, then try again".into(),
        }
    }

    /// Whether the command line was wrong, rather than the machine.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Version { .. } | Self::Address { .. } | Self::NotOurs { .. })
    }

    /// Whether a file of this machine is in the way, rather than what was fetched.
    pub fn is_of_files(&self) -> bool {
        matches!(self, Self::File { .. } | Self::Busy { .. })
    }
}
