//! The JSON files of a local forge. Users may leave out all optional fields.

use crate::mark;
use crate::review::Verdict;
use jiff::Timestamp;
use ralph_loop_domain::ports::{CiCheck, CiState, Comment, Issue, PrState, Review};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PrFile {
    pub number: u64,
    pub state: PrState,
    #[serde(default)]
    pub draft: bool,
    pub head: String,
    #[serde(default)]
    pub head_commit: String,
    pub base: String,
    /// Where the branch left its base when it was opened.
    #[serde(default)]
    pub base_commit: String,
    pub title: String,
    #[serde(default)]
    pub body: String,
    #[serde(default)]
    pub author: String,
    #[serde(default)]
    pub labels: Vec<String>,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CommentFile {
    pub author: String,
    pub body: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

impl CommentFile {
    pub fn seen(&self, id: u64, at: Option<Timestamp>) -> Comment {
        Comment {
            id,
            author: self.author.clone(),
            body: mark::without(&self.body).to_owned(),
            path: None,
            line: None,
            at: self.at.or(at),
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ReviewFile {
    pub author: String,
    pub state: Verdict,
    #[serde(default)]
    pub body: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<LineComment>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LineComment {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    pub body: String,
}

impl ReviewFile {
    pub fn seen(&self, id: u64, at: Option<Timestamp>) -> Review {
        Review {
            id,
            author: self.author.clone(),
            state: self.state.state(),
            body: self.body.clone(),
            commit: self.commit.clone(),
            at: self.at.or(at),
        }
    }

    pub fn comments_seen(&self, id: u64, at: Option<Timestamp>) -> Vec<Comment> {
        let comment = |id, body: &str| Comment {
            id,
            author: self.author.clone(),
            body: body.to_owned(),
            path: None,
            line: None,
            at: self.at.or(at),
        };
        // Separate ids, to tell line comments apart.
        let first = id.saturating_mul(1000);
        let own = (!self.body.trim().is_empty()).then(|| comment(first, &self.body));
        let lines = self.comments.iter().zip(first + 1..).map(|(line, id)| Comment {
            path: Some(line.path.clone()),
            line: line.line,
            ..comment(id, &line.body)
        });
        own.into_iter().chain(lines).collect()
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CheckFile {
    /// Default: the file's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub state: CiState,
    #[serde(default)]
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl CheckFile {
    pub fn seen(self, path: &Path) -> CiCheck {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        CiCheck {
            id: None,
            name: self.name.unwrap_or(stem),
            state: self.state,
            summary: self.summary,
            url: Some(self.url.unwrap_or_else(|| super::address(path))),
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct IssueFile {
    pub title: String,
    #[serde(default)]
    pub body: String,
    #[serde(default)]
    pub labels: Vec<String>,
    #[serde(default)]
    pub closed: bool,
}

impl IssueFile {
    pub fn seen(self, number: u64, url: String) -> Issue {
        Issue { number, url, title: self.title, body: self.body, labels: self.labels, closed: self.closed }
    }
}
