//! A fake GitHub on this machine: its REST API, the mutations that drafts need, and a real `git http-backend` at `/octo/app.git`.
//!
//! Also served under `/api/v3` and `/api/graphql`, like Enterprise servers. The tests of `ralph-loop-forge` check it against the
//! vendor's published specification.
#![allow(clippy::disallowed_methods, reason = "tokens end by the clock")]

mod api;
mod app;
mod checks;
mod git;
mod shapes;
mod state;

pub use crate::fake_cloud::{Fault, Seen};
pub use state::{CheckRun, Reach};

use crate::fake_cloud::{Query, Reply, Server};
use crate::model_server::http::Request;
use state::{Dismissed, Holder, Reviewed, Said, State, Ticket};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The server; it ends when it is dropped, with its repo.
pub struct FakeGitHub {
    server: Server,
    state: Arc<Mutex<State>>,
    _dir: tempfile::TempDir,
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FakeGitHub {
    /// Starts it on a free port, with an empty private repo `octo/app` and a user `ralph-user` who may write.
    pub fn start() -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let state = State {
            url: String::new(),
            owner: "octo".into(),
            name: "app".into(),
            private: true,
            archived: false,
            drafts: true,
            graphql_limited: false,
            stale_lists: 0,
            strangers: BTreeSet::new(),
            page: 100,
            root: dir.path().canonicalize()?,
            holders: BTreeMap::new(),
            app_id: "4711".into(),
            installed: true,
            lifetime: 3600,
            issued: 0,
            pulls: Vec::new(),
            tickets: Vec::new(),
            comments: Vec::new(),
            reviews: Vec::new(),
            dismissals: Vec::new(),
            checks: Vec::new(),
            statuses: Vec::new(),
            count: 0,
            last_number: 0,
        };
        git::make(&state.bare())?;
        let state = Arc::new(Mutex::new(state));
        let for_server = Arc::clone(&state);
        let server = Server::start(move |request| answer(&for_server, request), api::refusal)?;
        lock(&state).url = server.url();
        let fake = Self { server, state, _dir: dir };
        fake.add_token(&fake.token(), "ralph-user", Reach::Write);
        Ok(fake)
    }

    /// The URL of the REST API, of `/graphql`, and of git.
    pub fn url(&self) -> String {
        self.server.url()
    }

    pub fn git_url(&self) -> String {
        format!("{}/octo/app.git", self.server.url())
    }

    /// The token of `ralph-user`.
    pub fn token(&self) -> String {
        ["ghp", "fake", "0123456789abcdef"].join("_")
    }

    pub fn add_token(&self, token: &str, login: &str, reach: Reach) {
        let holder = Holder { login: login.into(), reach, expires: None };
        lock(&self.state).holders.insert(token.into(), holder);
    }

    pub fn revoke(&self, token: &str) {
        lock(&self.state).holders.remove(token);
    }

    pub fn app_id(&self) -> String {
        lock(&self.state).app_id.clone()
    }

    pub fn app_pem(&self) -> String {
        app::pem()
    }

    /// The same key in the format of other tools (PKCS#8).
    pub fn app_pem_pkcs8(&self) -> String {
        app::pem_pkcs8()
    }

    pub fn token_lifetime(&self, seconds: i64) {
        lock(&self.state).lifetime = seconds;
    }

    pub fn tokens_issued(&self) -> u64 {
        lock(&self.state).issued
    }

    pub fn uninstall(&self) {
        lock(&self.state).installed = false;
    }

    pub fn private(&self, private: bool) {
        lock(&self.state).private = private;
    }

    pub fn archive(&self) {
        lock(&self.state).archived = true;
    }

    pub fn without_drafts(&self) {
        lock(&self.state).drafts = false;
    }

    pub fn limit_graphql(&self) {
        lock(&self.state).graphql_limited = true;
    }

    /// The next pull request lists don't show the newest one yet, as under load.
    pub fn stale_lists(&self, count: u32) {
        lock(&self.state).stale_lists = count;
    }

    /// Sets the maximum page size of lists.
    pub fn page_size(&self, size: usize) {
        lock(&self.state).page = size.max(1);
    }

    /// Makes the next response fail if the request line (`POST /repos/octo/app/pulls`) contains `part`; may be called several times.
    pub fn fail(&self, part: &str, fault: Fault) {
        self.server.fail(part, fault);
    }

    /// All requests, oldest first, including git's.
    pub fn seen(&self) -> Vec<Seen> {
        self.server.seen()
    }

    /// The number of requests whose line contains `part`.
    pub fn count(&self, part: &str) -> usize {
        self.seen().iter().filter(|seen| seen.line.contains(part)).count()
    }

    pub fn pulls_made(&self) -> usize {
        lock(&self.state).pulls.len()
    }

    pub fn branch(&self, name: &str) -> Option<String> {
        git::branch(&lock(&self.state).bare(), name)
    }

    /// Runs git on the bare repo; `None` if it fails.
    pub fn git(&self, args: &[&str]) -> Option<String> {
        git::git(&lock(&self.state).bare(), args)
    }

    /// A user reviews: `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED`, `PENDING`; with line comments.
    pub fn review(&self, number: u64, author: &str, verdict: &str, body: &str, lines: &[(&str, u64, &str)]) {
        let mut state = lock(&self.state);
        let commit = state
            .pulls
            .iter()
            .find(|p| p.number == number)
            .map(|p| shapes::head_of(&state, p))
            .unwrap_or_default();
        let id = state.next_id();
        let lines = lines
            .iter()
            .map(|(path, line, text)| (state.next_id(), (*path).into(), *line, (*text).into()))
            .collect();
        let at = state.count;
        let (author, verdict, body) = (author.into(), verdict.into(), body.into());
        state.reviews.push(Reviewed { id, number, author, state: verdict, body, commit, at, lines });
    }

    /// A user with read access only, as in a public repo.
    pub fn stranger(&self, login: &str) {
        lock(&self.state).strangers.insert(login.into());
    }

    pub fn dismiss(&self, number: u64, author: &str) {
        self.dismiss_by(number, author, "", "", None);
    }

    /// `by` dismisses a user's decisions with a reason; `stale`: the host does it because of that commit.
    pub fn dismiss_by(&self, number: u64, author: &str, by: &str, message: &str, stale: Option<&str>) {
        let mut state = lock(&self.state);
        let State { reviews, dismissals, .. } = &mut *state;
        for review in reviews.iter_mut().filter(|r| r.number == number && r.author == author) {
            if matches!(review.state.as_str(), "APPROVED" | "CHANGES_REQUESTED") {
                let was = std::mem::replace(&mut review.state, "DISMISSED".into());
                dismissals.push(Dismissed {
                    number,
                    review: review.id,
                    was: was.to_lowercase(),
                    by: if by.is_empty() { author.into() } else { by.into() },
                    message: message.into(),
                    stale: stale.map(str::to_owned),
                });
            }
        }
    }

    pub fn say(&self, number: u64, author: &str, body: &str) {
        let mut state = lock(&self.state);
        let id = state.next_id();
        let at = state.count;
        state.comments.push(Said { id, number, author: author.into(), body: body.into(), at });
    }

    /// The comments of a pull request or issue: id, author, text.
    pub fn comments(&self, number: u64) -> Vec<(u64, String, String)> {
        let state = lock(&self.state);
        let found = state.comments.iter().filter(|c| c.number == number);
        found.map(|c| (c.id, c.author.clone(), c.body.clone())).collect()
    }

    pub fn labels(&self, number: u64) -> Vec<String> {
        lock(&self.state).pull(number).map(|pull| pull.labels.clone()).unwrap_or_default()
    }

    /// Starts or ends a check; returns its id.
    pub fn check(&self, run: CheckRun) -> u64 {
        let mut state = lock(&self.state);
        let id = state.next_id();
        state.checks.push((id, run));
        id
    }

    /// A user opens an issue; returns its number.
    pub fn add_issue(&self, title: &str, body: &str, labels: &[&str]) -> u64 {
        let mut state = lock(&self.state);
        let number = state.next_number();
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        state.tickets.push(Ticket { number, title: title.into(), body: body.into(), labels, open: true });
        number
    }

    pub fn close(&self, number: u64) {
        self.end(number, false);
    }

    pub fn merge(&self, number: u64) {
        self.end(number, true);
    }

    fn end(&self, number: u64, merged: bool) {
        let mut state = lock(&self.state);
        let bare = state.bare();
        let Some(pull) = state.pull(number) else { return };
        let head = git::branch(&bare, &pull.head);
        pull.base_commit = head
            .as_ref()
            .and_then(|head| git::git(&bare, &["merge-base", &format!("refs/heads/{}", pull.base), head]));
        if merged && let Some(head) = &head {
            git::merge(&bare, &pull.base, head);
        }
        pull.head_commit = head;
        pull.open = false;
        pull.merged = merged;
    }
}

fn answer(state: &Mutex<State>, request: &Request) -> Reply {
    let (path, query) = Query::split(&request.target);
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["api", "v3", rest @ ..] => api::answer(&mut lock(state), request, rest, &query, now()),
        ["api", "graphql"] => api::answer(&mut lock(state), request, &["graphql"], &query, now()),
        ["log-store", id] => checks::log(&lock(state), id, request.header("authorization").is_some()),
        [_, name, ..] if name.ends_with(".git") => git::answer(&lock(state), request, now()),
        rest => api::answer(&mut lock(state), request, rest, &query, now()),
    }
}
