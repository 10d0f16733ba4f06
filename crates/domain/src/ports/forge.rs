//! The port to the code host: pull requests, their checks and reviews, issues.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One repo on a code host.
///
/// An implementer guarantees: every method may be repeated after a crash or a time-out without doubling its effect (a pull
/// request is found by its head branch, a comment by its mark); limits that the host names are waited out or told as
/// [`ForgeError::RateLimited`]; tokens stand in headers and in [`GitRemote::login`] only, never in a URL or a message.
pub trait Forge: Send {
    /// `github`, `local`.
    fn kind(&self) -> &'static str;
    /// The repo as people name it: `owner/name`, or a path.
    fn repo(&self) -> &str;
    /// Whether the credentials are good, and what they may do.
    fn access(&self) -> Result<Access, ForgeError>;
    /// The branch that pull requests go to unless told otherwise.
    fn default_branch(&self) -> Result<String, ForgeError>;
    /// Where git pushes to, with a token that is still good for a while.
    fn remote(&self) -> Result<GitRemote, ForgeError>;
    /// The pull request from this branch: the open one, else the latest.
    fn find_pr(&self, head: &str) -> Result<Option<PullRequest>, ForgeError>;
    /// One pull request.
    fn pr(&self, number: u64) -> Result<PullRequest, ForgeError>;
    /// Opens a pull request, or finds the open one of the same branch (a crash after an earlier call).
    fn open_pr(&self, new: &NewPr) -> Result<PullRequest, ForgeError>;
    /// Changes what is named.
    fn update_pr(&self, number: u64, change: &PrChange) -> Result<PullRequest, ForgeError>;
    /// Adds labels; those that are there stay.
    fn add_labels(&self, number: u64, labels: &[String]) -> Result<(), ForgeError>;
    /// Writes a comment on a pull request or issue, or replaces the one that carries the same `mark`. The mark stands in the
    /// comment invisibly.
    fn comment(&self, number: u64, mark: &str, body: &str) -> Result<Comment, ForgeError>;
    /// The checks of a commit: check runs and commit statuses together, the latest of each name.
    fn checks(&self, commit: &str) -> Result<Vec<CiCheck>, ForgeError>;
    /// What a check printed, as far as the host tells: at most `max` bytes, the end of it.
    fn check_log(&self, check: &CiCheck, max: usize) -> Result<String, ForgeError>;
    /// Sets the status of a commit under a name of our own.
    fn set_status(&self, commit: &str, status: &NewStatus) -> Result<(), ForgeError>;
    /// Reviews: the latest that counts of each person.
    fn reviews(&self, number: u64) -> Result<Vec<Review>, ForgeError>;
    /// Approvals that a person took back and did not give again. Without those that the host itself took back because of new
    /// commits. A host that does not tell has none.
    fn dismissed_approvals(&self, _number: u64) -> Result<Vec<DismissedApproval>, ForgeError> {
        Ok(Vec::new())
    }
    /// What people wrote in reviews and on lines of the diff, oldest first.
    fn review_comments(&self, number: u64) -> Result<Vec<Comment>, ForgeError>;
    /// Paths that a pull request touches, old names of renamed files included.
    fn pr_files(&self, number: u64) -> Result<Vec<String>, ForgeError>;
    /// Open pull requests, newest first, a bounded number.
    fn open_prs(&self) -> Result<Vec<PullRequest>, ForgeError>;
    /// One issue.
    fn issue(&self, number: u64) -> Result<Issue, ForgeError>;
}

/// What the credentials may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Who acts: a login, the name of an app.
    pub login: String,
    /// Whether branches can be pushed.
    pub push: bool,
    /// Whether the repo is private.
    pub private: bool,
}

/// Where git pushes to.
#[derive(Clone, PartialEq, Eq)]
pub struct GitRemote {
    /// Without any secret.
    pub url: String,
    /// User name and secret, handed to git through the environment.
    pub login: Option<(String, String)>,
}

impl std::fmt::Debug for GitRemote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GitRemote")
            .field("url", &self.url)
            .field("login", &self.login.as_ref().map(|_| "…"))
            .finish()
    }
}

/// How a pull request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrState {
    /// Open.
    Open,
    /// Closed without a merge.
    Closed,
    /// Merged.
    Merged,
}

/// A pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// Where people read it.
    pub url: String,
    /// How it stands.
    pub state: PrState,
    /// Not yet for review.
    pub draft: bool,
    /// The branch with the work.
    pub head: String,
    /// The commit that branch has on the host.
    pub head_commit: String,
    /// The branch it goes to.
    pub base: String,
    /// Its title.
    pub title: String,
    /// Its text.
    #[serde(default)]
    pub body: String,
}

/// A pull request to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPr {
    /// The branch with the work.
    pub head: String,
    /// The branch it goes to.
    pub base: String,
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
    /// Not yet for review.
    pub draft: bool,
}

/// What of a pull request is to change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrChange {
    /// New title.
    pub title: Option<String>,
    /// New text.
    pub body: Option<String>,
    /// Ready for review (`false`) or a draft again. A host that cannot do it leaves it as it is.
    pub draft: Option<bool>,
}

/// A comment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    /// The host's id.
    pub id: u64,
    /// Who wrote it.
    pub author: String,
    /// What it says.
    pub body: String,
    /// The file it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The line it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// When it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// How a check stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CiState {
    /// Not finished.
    Pending,
    /// Fine.
    Passed,
    /// It ended without having looked at anything: skipped, or neutral. Beside others it is fine, as hosts see it; where all
    /// are, nothing was checked.
    Skipped,
    /// Failed, timed out, cancelled, or waits for somebody's action.
    Failed,
}

/// One check of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CiCheck {
    /// The host's id, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// Its name.
    pub name: String,
    /// How it stands.
    pub state: CiState,
    /// The host's own words for the result.
    #[serde(default)]
    pub summary: String,
    /// Where people read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A status to set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewStatus {
    /// How it stands.
    pub state: CiState,
    /// The name it stands under.
    pub context: String,
    /// One line.
    pub description: String,
    /// Where people read more.
    pub url: Option<String>,
}

/// What a review says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewState {
    /// Approved.
    Approved,
    /// Changes are asked for.
    ChangesRequested,
    /// Only remarks.
    Commented,
}

/// A person's review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// The host's id.
    pub id: u64,
    /// Who.
    pub author: String,
    /// What it says.
    pub state: ReviewState,
    /// Its text.
    #[serde(default)]
    pub body: String,
    /// The commit that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// An approval that was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DismissedApproval {
    /// The host's id of the review.
    pub id: u64,
    /// Whose approval it was.
    pub author: String,
    /// Who took it back, where the host tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    #[serde(default)]
    pub message: String,
    /// The commit that had been approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// An issue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// Its number.
    pub number: u64,
    /// Where people read it.
    pub url: String,
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
    /// Its labels.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Whether it is closed.
    #[serde(default)]
    pub closed: bool,
}

/// The code host did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    /// The credentials are missing or not good enough.
    #[error("{what}: {reason}")]
    Auth {
        /// What was tried.
        what: String,
        /// Why it failed.
        reason: String,
        /// What fixes it.
        hint: String,
    },
    /// There is no such thing, or the credentials may not see it.
    #[error("{what}: {reason}")]
    NotFound {
        /// What was tried.
        what: String,
        /// Why it failed.
        reason: String,
        /// What fixes it.
        hint: String,
    },
    /// The host refuses: trying again changes nothing.
    #[error("{what}: {reason}")]
    Refused {
        /// What was tried.
        what: String,
        /// Why it failed.
        reason: String,
        /// What fixes it.
        hint: String,
    },
    /// Too many calls.
    #[error("{what}: the host allows no more calls for {} s", wait.as_secs())]
    RateLimited {
        /// What was tried.
        what: String,
        /// How long to wait.
        wait: Duration,
    },
    /// The host cannot be reached or is broken at the moment. What was asked for may have happened.
    #[error("{what}: {reason}")]
    Unavailable {
        /// What was tried.
        what: String,
        /// Why it failed.
        reason: String,
    },
}

impl ForgeError {
    /// What fixes it, in words.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Auth { hint, .. } | Self::NotFound { hint, .. } | Self::Refused { hint, .. } => Some(hint),
            Self::RateLimited { .. } | Self::Unavailable { .. } => None,
        }
    }
    /// Whether the same call may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::RateLimited { .. } | Self::Unavailable { .. })
    }
}
