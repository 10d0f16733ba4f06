//! The code host port: pull requests, their checks and reviews, issues.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A repo on a code host.
///
/// Implementations guarantee: every method may be repeated after a crash or a timeout without doubling its effect (a
/// pull request is recognized by its head branch, a comment by its mark); rate limits are waited out or returned as
/// [`ForgeError::RateLimited`]; tokens appear only in headers and in [`GitRemote::login`], never in a URL or a
/// message.
pub trait Forge: Send {
    /// `github`, `local`.
    fn kind(&self) -> &'static str;
    /// The repo's display name: `owner/name`, or a path.
    fn repo(&self) -> &str;
    fn access(&self) -> Result<Access, ForgeError>;
    /// The default target branch of pull requests.
    fn default_branch(&self) -> Result<String, ForgeError>;
    /// The push URL, with a token that stays valid for a while.
    fn remote(&self) -> Result<GitRemote, ForgeError>;
    /// The pull request from this branch: the open one, else the latest.
    fn find_pr(&self, head: &str) -> Result<Option<PullRequest>, ForgeError>;
    fn pr(&self, number: u64) -> Result<PullRequest, ForgeError>;
    /// Opens a pull request, or finds the open one of the same branch (after a crash).
    fn open_pr(&self, new: &NewPr) -> Result<PullRequest, ForgeError>;
    fn update_pr(&self, number: u64, change: &PrChange) -> Result<PullRequest, ForgeError>;
    /// Adds labels; existing ones stay.
    fn add_labels(&self, number: u64, labels: &[String]) -> Result<(), ForgeError>;
    /// Writes a comment on a pull request or issue, or replaces the one with the same `mark`, which is invisible in
    /// the comment.
    fn comment(&self, number: u64, mark: &str, body: &str) -> Result<Comment, ForgeError>;
    /// The checks of a commit: check runs and commit statuses, the latest of each name.
    fn checks(&self, commit: &str) -> Result<Vec<CiCheck>, ForgeError>;
    /// The end of a check's output, at most `max` bytes, if the host provides it.
    fn check_log(&self, check: &CiCheck, max: usize) -> Result<String, ForgeError>;
    fn set_status(&self, commit: &str, status: &NewStatus) -> Result<(), ForgeError>;
    fn reviews(&self, number: u64) -> Result<Vec<Review>, ForgeError>;
    /// Approvals that a reviewer withdrew and didn't renew, except for those that the host dismissed because of new
    /// commits. Empty for hosts that don't report them.
    fn dismissed_approvals(&self, _number: u64) -> Result<Vec<DismissedApproval>, ForgeError> {
        Ok(Vec::new())
    }
    /// Review comments and line comments, oldest first.
    fn review_comments(&self, number: u64) -> Result<Vec<Comment>, ForgeError>;
    /// Paths that a pull request touches, including old names of renamed files.
    fn pr_files(&self, number: u64) -> Result<Vec<String>, ForgeError>;
    /// Open pull requests, newest first, a bounded number.
    fn open_prs(&self) -> Result<Vec<PullRequest>, ForgeError>;
    fn issue(&self, number: u64) -> Result<Issue, ForgeError>;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    pub login: String,
    pub push: bool,
    pub private: bool,
}

#[derive(Clone, PartialEq, Eq)]
pub struct GitRemote {
    /// Without secrets.
    pub url: String,
    /// User name and secret, passed to git through the environment.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrState {
    Open,
    /// Closed without a merge.
    Closed,
    Merged,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequest {
    pub number: u64,
    pub url: String,
    pub state: PrState,
    pub draft: bool,
    pub head: String,
    /// That branch's commit on the host.
    pub head_commit: String,
    pub base: String,
    pub title: String,
    #[serde(default)]
    pub body: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPr {
    pub head: String,
    pub base: String,
    pub title: String,
    pub body: String,
    pub draft: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrChange {
    pub title: Option<String>,
    pub body: Option<String>,
    /// Ready for review (`false`) or a draft again. Ignored by hosts without support.
    pub draft: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    pub id: u64,
    pub author: String,
    pub body: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CiState {
    /// Not finished.
    Pending,
    Passed,
    /// It ended without a result: skipped, or neutral. Hosts accept it next to others; if all are skipped, nothing
    /// was checked.
    Skipped,
    /// Failed, timed out, was canceled, or needs an action.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CiCheck {
    /// The host's id, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    pub name: String,
    pub state: CiState,
    /// The host's description of the result.
    #[serde(default)]
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewStatus {
    pub state: CiState,
    pub context: String,
    pub description: String,
    pub url: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewState {
    Approved,
    ChangesRequested,
    /// Only comments.
    Commented,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    pub id: u64,
    pub author: String,
    pub state: ReviewState,
    #[serde(default)]
    pub body: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DismissedApproval {
    /// The host's id of the review.
    pub id: u64,
    pub author: String,
    /// Who withdrew it, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default)]
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    pub number: u64,
    pub url: String,
    pub title: String,
    pub body: String,
    #[serde(default)]
    pub labels: Vec<String>,
    #[serde(default)]
    pub closed: bool,
}

/// The code host didn't do what was requested.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    #[error("{what}: {reason}")]
    Auth { what: String, reason: String, hint: String },
    /// It doesn't exist, or the credentials may not see it.
    #[error("{what}: {reason}")]
    NotFound { what: String, reason: String, hint: String },
    /// The host refuses permanently.
    #[error("{what}: {reason}")]
    Refused { what: String, reason: String, hint: String },
    #[error("{what}: the host allows no more calls for {} s", wait.as_secs())]
    RateLimited { what: String, wait: Duration },
    /// The host is unreachable or temporarily broken. The request may have taken effect.
    #[error("{what}: {reason}")]
    Unavailable { what: String, reason: String },
}

impl ForgeError {
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
