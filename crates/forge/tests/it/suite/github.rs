//! The fake GitHub as a host with users.

use super::Host;
use ralph_loop_domain::ports::{CiState, Comment, Forge, ReviewState};
use ralph_loop_forge::{AppKey, GitHub, GitHubAuth, GitHubOptions, RepoAddress};
use ralph_loop_testkit::fake_github::{CheckRun, FakeGitHub};
use std::time::Duration;

pub struct OnFake {
    pub fake: FakeGitHub,
    pub forge: GitHub,
}

/// Options for the fake's repo, with its user's token.
pub fn options(fake: &FakeGitHub) -> GitHubOptions {
    let address = RepoAddress::parse(&fake.git_url()).unwrap();
    let mut options = GitHubOptions::new(address, GitHubAuth::Token(fake.token()));
    options.api_url = fake.url();
    options.graphql_url = format!("{}/graphql", fake.url());
    options.git_url = fake.git_url();
    options.backoff = Duration::from_millis(5);
    options.timeout = Duration::from_secs(200);
    options
}

pub fn app(fake: &FakeGitHub) -> AppKey {
    AppKey { id: fake.app_id(), pem: fake.app_pem(), installation: None }
}

impl OnFake {
    pub fn new() -> Self {
        Self::with(|_| {})
    }
    pub fn with(change: impl FnOnce(&mut GitHubOptions)) -> Self {
        let fake = FakeGitHub::start().unwrap();
        let mut options = options(&fake);
        change(&mut options);
        let forge = GitHub::new(options).unwrap();
        Self { fake, forge }
    }
    pub fn as_app() -> Self {
        let fake = FakeGitHub::start().unwrap();
        let mut options = options(&fake);
        options.auth = GitHubAuth::App(app(&fake));
        let forge = GitHub::new(options).unwrap();
        Self { fake, forge }
    }
}

pub fn conclusion(state: CiState) -> Option<String> {
    match state {
        CiState::Pending => None,
        CiState::Passed => Some("success".into()),
        CiState::Skipped => Some("skipped".into()),
        CiState::Failed => Some("failure".into()),
    }
}

impl Host for OnFake {
    fn forge(&self) -> &dyn Forge {
        &self.forge
    }
    fn review(&self, number: u64, author: &str, state: ReviewState, body: &str, lines: &[(&str, u64, &str)]) {
        let verdict = match state {
            ReviewState::Approved => "APPROVED",
            ReviewState::ChangesRequested => "CHANGES_REQUESTED",
            ReviewState::Commented => "COMMENTED",
        };
        self.fake.review(number, author, verdict, body, lines);
    }
    fn dismiss(&self, number: u64, author: &str) {
        self.fake.dismiss(number, author);
    }
    fn close(&self, number: u64) {
        self.fake.close(number);
    }
    fn merge(&self, number: u64) {
        self.fake.merge(number);
    }
    fn set_check(&self, commit: &str, name: &str, state: CiState, summary: &str, log: Option<&str>) {
        self.fake.check(CheckRun {
            commit: commit.into(),
            name: name.into(),
            conclusion: conclusion(state),
            title: summary.into(),
            log: log.map(str::to_owned),
            suite: 1,
            workflow: 1,
            ..CheckRun::default()
        });
    }
    fn add_issue(&self, title: &str, body: &str, labels: &[&str]) -> u64 {
        self.fake.add_issue(title, body, labels)
    }
    fn say(&self, number: u64, author: &str, body: &str) {
        self.fake.say(number, author, body);
    }
    fn comments(&self, number: u64) -> Vec<Comment> {
        let comment = |(id, author, body)| Comment { id, author, body, path: None, line: None, at: None };
        self.fake.comments(number).into_iter().map(comment).collect()
    }
    fn labels(&self, number: u64) -> Vec<String> {
        self.fake.labels(number)
    }
}
