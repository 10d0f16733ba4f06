//! The used data types of GitHub's API.

use crate::review::Verdict;
use jiff::Timestamp;
use ralph_loop_domain::ports::{CiCheck, CiState, Comment, Issue, PrState, PullRequest, Review};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub(crate) struct WireUser {
    pub login: String,
    #[serde(default, rename = "type")]
    pub kind: String,
}

/// A deleted account.
const GHOST: &str = "ghost";

pub(crate) fn login(user: Option<&WireUser>) -> String {
    user.map_or_else(|| GHOST.to_owned(), |user| user.login.clone())
}

#[derive(Debug, Deserialize)]
pub(crate) struct WireRepo {
    pub default_branch: String,
    #[serde(default)]
    pub private: bool,
    #[serde(default)]
    pub archived: bool,
    #[serde(default)]
    pub permissions: Option<WirePermissions>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct WirePermissions {
    #[serde(default)]
    pub push: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct WireBranch {
    #[serde(rename = "ref")]
    pub name: String,
    pub sha: String,
    #[serde(default)]
    pub label: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct WirePr {
    pub number: u64,
    pub node_id: String,
    pub html_url: String,
    pub state: String,
    #[serde(default)]
    pub draft: Option<bool>,
    #[serde(default)]
    pub merged_at: Option<String>,
    pub title: String,
    #[serde(default)]
    pub body: Option<String>,
    pub head: WireBranch,
    pub base: WireBranch,
    #[serde(default)]
    pub user: Option<WireUser>,
}

impl WirePr {
    pub fn seen(self) -> PullRequest {
        let state = match (self.merged_at.is_some(), self.state.as_str()) {
            (true, _) => PrState::Merged,
            (false, "open") => PrState::Open,
            (false, _) => PrState::Closed,
        };
        PullRequest {
            number: self.number,
            url: self.html_url,
            state,
            draft: self.draft.unwrap_or(false),
            head: self.head.name,
            head_commit: self.head.sha,
            base: self.base.name,
            title: self.title,
            body: self.body.unwrap_or_default(),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct WireComment {
    pub id: u64,
    #[serde(default)]
    pub user: Option<WireUser>,
    #[serde(default)]
    pub body: Option<String>,
    #[serde(default)]
    pub path: Option<String>,
    #[serde(default)]
    pub line: Option<u64>,
    /// Its position before the line was changed.
    #[serde(default)]
    pub original_line: Option<u64>,
    #[serde(default)]
    pub created_at: Option<Timestamp>,
    #[serde(default)]
    pub pull_request_review_id: Option<u64>,
    /// The author's relation to the repo: `MEMBER`, `NONE`.
    #[serde(default)]
    pub author_association: Option<String>,
}

impl WireComment {
    pub fn seen(self) -> Comment {
        Comment {
            id: self.id,
            author: login(self.user.as_ref()),
            body: crate::mark::without(&self.body.unwrap_or_default()).to_owned(),
            path: self.path,
            line: self.line.or(self.original_line),
            at: self.created_at,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct WireReview {
    pub id: u64,
    #[serde(default)]
    pub user: Option<WireUser>,
    #[serde(default)]
    pub body: Option<String>,
    pub state: String,
    #[serde(default)]
    pub commit_id: Option<String>,
    #[serde(default)]
    pub submitted_at: Option<Timestamp>,
    /// The author's relation to the repo: `MEMBER`, `NONE`.
    #[serde(default)]
    pub author_association: Option<String>,
}

/// A pull request event; most kinds are ignored.
#[derive(Debug, Deserialize)]
pub(crate) struct WireEvent {
    #[serde(default)]
    pub actor: Option<WireUser>,
    #[serde(default)]
    pub dismissed_review: Option<WireDismissed>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct WireDismissed {
    pub review_id: u64,
    #[serde(default)]
    pub state: String,
    #[serde(default)]
    pub dismissal_message: Option<String>,
    /// The commit that made it stale, if the host dismissed it.
    #[serde(default)]
    pub dismissal_commit_id: Option<String>,
}

/// A user's permission in a repo.
#[derive(Debug, Deserialize)]
pub(crate) struct WirePermission {
    pub permission: String,
}

impl WireReview {
    /// `None` while the review is pending.
    pub fn seen(&self) -> Option<(Verdict, Review)> {
        let verdict = match self.state.to_ascii_uppercase().as_str() {
            "APPROVED" => Verdict::Approved,
            "CHANGES_REQUESTED" => Verdict::ChangesRequested,
            "DISMISSED" => Verdict::Dismissed,
            "PENDING" => return None,
            _ => Verdict::Commented,
        };
        let review = Review {
            id: self.id,
            author: login(self.user.as_ref()),
            state: verdict.state(),
            body: self.body.clone().unwrap_or_default(),
            commit: self.commit_id.clone(),
            at: self.submitted_at,
        };
        Some((verdict, review))
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct WireFile {
    pub filename: String,
    #[serde(default)]
    pub previous_filename: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct WireIssue {
    pub number: u64,
    pub html_url: String,
    pub title: String,
    #[serde(default)]
    pub body: Option<String>,
    pub state: String,
    #[serde(default)]
    pub labels: Vec<Value>,
}

impl WireIssue {
    pub fn seen(self) -> Issue {
        let name = |label: &Value| label.as_str().or_else(|| label["name"].as_str()).map(str::to_owned);
        Issue {
            number: self.number,
            url: self.html_url,
            title: self.title,
            body: self.body.unwrap_or_default(),
            labels: self.labels.iter().filter_map(name).collect(),
            closed: self.state != "open",
        }
    }
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct WireOutput {
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub summary: Option<String>,
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default)]
    pub annotations_count: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct WireApp {
    #[serde(default)]
    pub slug: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct WireSuite {
    pub id: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct WireCheck {
    pub id: u64,
    pub name: String,
    pub status: String,
    #[serde(default)]
    pub conclusion: Option<String>,
    #[serde(default)]
    pub output: Option<WireOutput>,
    #[serde(default)]
    pub details_url: Option<String>,
    #[serde(default)]
    pub html_url: Option<String>,
    #[serde(default)]
    pub app: Option<WireApp>,
    #[serde(default)]
    pub check_suite: Option<WireSuite>,
}

impl WireCheck {
    pub fn is_of_actions(&self) -> bool {
        self.app.as_ref().and_then(|app| app.slug.as_deref()) == Some("github-actions")
    }

    pub fn seen(self) -> CiCheck {
        let state = match (self.status.as_str(), self.conclusion.as_deref()) {
            ("completed", Some("success")) => CiState::Passed,
            ("completed", Some("neutral" | "skipped")) => CiState::Skipped,
            ("completed", _) => CiState::Failed,
            _ => CiState::Pending,
        };
        let word = self.conclusion.unwrap_or(self.status);
        let title = self.output.and_then(|output| output.title).filter(|title| !title.trim().is_empty());
        CiCheck {
            id: Some(self.id),
            name: self.name,
            state,
            summary: title.map_or(word.clone(), |title| format!("{word}: {title}")),
            url: self.html_url.or(self.details_url),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct WireStatus {
    pub context: String,
    pub state: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub target_url: Option<String>,
}

impl WireStatus {
    pub fn seen(self) -> CiCheck {
        let state = match self.state.as_str() {
            "success" => CiState::Passed,
            "pending" => CiState::Pending,
            _ => CiState::Failed,
        };
        CiCheck {
            id: None,
            name: self.context,
            state,
            summary: self.description.unwrap_or(self.state),
            url: self.target_url.filter(|url| !url.is_empty()),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct WireAnnotation {
    pub path: String,
    #[serde(default)]
    pub start_line: Option<u64>,
    #[serde(default)]
    pub message: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct WireRun {
    #[serde(default)]
    pub check_suite_id: Option<u64>,
    pub workflow_id: u64,
    #[serde(default)]
    pub event: String,
}
