//! How a git command fails, with a next step.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitFailure {
    /// `git` isn't installed.
    NotInstalled,
    CannotStart(String),
    Exited(i32),
    Signaled(i32),
    TimedOut,
}

impl fmt::Display for GitFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInstalled => f.write_str("could not be started: git is not installed"),
            Self::CannotStart(reason) => write!(f, "could not be started: {reason}"),
            Self::Exited(code) => write!(f, "failed with exit code {code}"),
            Self::Signaled(signal) => write!(f, "was ended by signal {signal}"),
            Self::TimedOut => f.write_str("took too long and was ended"),
        }
    }
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("`git {args}` {kind}{}{stderr}", if stderr.is_empty() { "" } else { ": " })]
pub struct GitError {
    /// Its arguments, without the hardening.
    pub args: String,
    pub kind: GitFailure,
    pub stderr: String,
    /// What to do next, if known.
    pub hint: Option<String>,
}

impl GitError {
    /// The exit code, if it exited.
    pub fn code(&self) -> Option<i32> {
        if let GitFailure::Exited(code) = self.kind { Some(code) } else { None }
    }
}

pub(crate) fn tail(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

pub(crate) fn hint_for(stderr: &str) -> Option<String> {
    const HINTS: &[(&str, &str)] = &[
        (
            "dubious ownership",
            "run `git config --global --add safe.directory <folder>` if you trust the folder",
        ),
        (
            ".lock': File exists",
            "another git command is running there, or one crashed: wait, or remove the lock file",
        ),
        (
            "could not read Username",
            "log in first: ralph never asks for passwords (credential helper, `gh auth login`, ssh key)",
        ),
        (
            "Authentication failed",
            "log in first: ralph never asks for passwords (credential helper, `gh auth login`, ssh key)",
        ),
        ("Permission denied (publickey", "load your key into ssh-agent: ralph never asks for passphrases"),
        ("Host key verification failed", "connect once by hand with ssh, so that the host key is known"),
        ("No space left on device", "free some disk space"),
        ("git-lfs", "install git-lfs, then run `git lfs install`"),
        ("does not point to a valid object", "the repo is damaged: run `git fsck`"),
    ];
    HINTS.iter().find(|(word, _)| stderr.contains(word)).map(|(_, hint)| (*hint).to_owned())
}
