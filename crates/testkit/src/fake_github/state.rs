//! The state of the code host.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// No access; the repo looks missing.
    Nothing,
    Read,
    Write,
    /// Write access, but the organization requires single sign-on first.
    SingleSignOn,
}

#[derive(Debug, Clone)]
pub(crate) struct Holder {
    pub login: String,
    pub reach: Reach,
    /// Seconds since 1970; `None` for never.
    pub expires: Option<i64>,
}

#[derive(Debug, Clone)]
pub(crate) struct Pull {
    pub number: u64,
    pub author: String,
    pub title: String,
    pub body: String,
    pub head: String,
    /// The commit that the branch had when the pull request was closed or merged.
    pub head_commit: Option<String>,
    pub base: String,
    pub base_commit: Option<String>,
    pub draft: bool,
    pub open: bool,
    pub merged: bool,
    pub labels: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub id: u64,
    pub number: u64,
    pub author: String,
    pub body: String,
    pub at: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Reviewed {
    pub id: u64,
    pub number: u64,
    pub author: String,
    pub state: String,
    pub body: String,
    pub commit: String,
    pub at: u64,
    pub lines: Vec<(u64, String, u64, String)>,
}

#[derive(Debug, Clone, Default)]
pub struct CheckRun {
    pub commit: String,
    pub name: String,
    /// `success`, `failure`, …; `None` while it runs.
    pub conclusion: Option<String>,
    pub title: String,
    pub log: Option<String>,
    /// `github-actions` by default.
    pub app: Option<String>,
    pub suite: u64,
    pub workflow: u64,
    /// Line comments: path, line, text.
    pub annotations: Vec<(String, u64, String)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Status {
    pub id: u64,
    pub commit: String,
    pub context: String,
    pub state: String,
    pub description: Value,
    pub target_url: Value,
    pub at: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Ticket {
    pub number: u64,
    pub title: String,
    pub body: String,
    pub labels: Vec<String>,
    pub open: bool,
}

#[derive(Debug)]
pub(crate) struct State {
    pub url: String,
    pub owner: String,
    pub name: String,
    pub private: bool,
    pub archived: bool,
    pub drafts: bool,
    pub graphql_limited: bool,
    /// Number of pull request lists that don't show the newest one yet.
    pub stale_lists: u32,
    pub page: usize,
    /// The folder with `owner/name.git`.
    pub root: PathBuf,
    pub holders: BTreeMap<String, Holder>,
    /// Users with read access only.
    pub strangers: BTreeSet<String>,
    pub app_id: String,
    pub installed: bool,
    /// How long tokens of installations live, in seconds.
    pub lifetime: i64,
    pub issued: u64,
    pub pulls: Vec<Pull>,
    pub tickets: Vec<Ticket>,
    pub comments: Vec<Said>,
    pub reviews: Vec<Reviewed>,
    pub dismissals: Vec<Dismissed>,
    pub checks: Vec<(u64, CheckRun)>,
    pub statuses: Vec<Status>,
    /// The last id; ids and timestamps count up together.
    pub count: u64,
    pub last_number: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Dismissed {
    pub number: u64,
    pub review: u64,
    pub was: String,
    pub by: String,
    pub message: String,
    /// The commit that made it stale, if the host dismissed it.
    pub stale: Option<String>,
}

impl State {
    pub(crate) fn next_id(&mut self) -> u64 {
        self.count += 1;
        1000 + self.count
    }
    pub(crate) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }
    pub(crate) fn bare(&self) -> PathBuf {
        self.root.join(format!("{}.git", self.full_name()))
    }
    pub(crate) fn pull(&mut self, number: u64) -> Option<&mut Pull> {
        self.pulls.iter_mut().find(|pull| pull.number == number)
    }
    pub(crate) fn has(&self, number: u64) -> bool {
        self.pulls.iter().any(|p| p.number == number) || self.tickets.iter().any(|t| t.number == number)
    }
}

pub(crate) fn moment(count: u64) -> String {
    let second = i64::try_from(count).unwrap_or(0) + 1_794_744_000;
    jiff::Timestamp::from_second(second).unwrap_or_default().to_string()
}
