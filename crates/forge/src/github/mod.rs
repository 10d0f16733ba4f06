//! GitHub: github.com and Enterprise servers, with a personal token or as an App.

mod address;
mod app;
mod checks;
mod client;
mod errors;
mod limits;
mod pulls;
mod talk;
mod wire;

pub use address::{IssueAddress, RepoAddress, parse_issue_url};
pub use app::AppKey;

use crate::error::{Result, auth, refused};
use app::App;
use client::{ApiClient, ApiRequest, TokenSource};
use jiff::SignedDuration;
use ralph_loop_domain::ports::{
    Access, CiCheck, Comment, DismissedApproval, Forge, ForgeError, GitRemote, Issue, NewPr, NewStatus,
    PrChange, PullRequest, Review,
};
use ralph_loop_http::ProxySettings;
use std::cell::RefCell;
use std::time::Duration;
use wire::{WireRepo, WireUser};

pub(crate) use address::{host_of, serves};

/// A push may take this long without its token expiring.
const PUSH_MARGIN: SignedDuration = SignedDuration::from_mins(15);

#[derive(Clone)]
pub enum GitHubAuth {
    Token(String),
    App(AppKey),
}

impl std::fmt::Debug for GitHubAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Token(_) => f.write_str("Token(…)"),
            Self::App(key) => key.fmt(f),
        }
    }
}

impl GitHubAuth {
    /// From `GITHUB_APP_ID` and `GITHUB_APP_PRIVATE_KEY_PEM` (`GITHUB_APP_INSTALLATION_ID`), else `GITHUB_PAT` or
    /// `GITHUB_TOKEN`; `None` if none is set.
    pub fn from_vars(vars: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, ForgeError> {
        let set = |name: &str| vars(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty());
        if let (Some(id), Some(pem)) = (set("GITHUB_APP_ID"), set("GITHUB_APP_PRIVATE_KEY_PEM")) {
            let installation = match set("GITHUB_APP_INSTALLATION_ID").map(|v| v.parse::<u64>()) {
                None => None,
                Some(Ok(id)) => Some(id),
                Some(Err(_)) => {
                    let reason = "GITHUB_APP_INSTALLATION_ID isn't a number";
                    return Err(auth(
                        "log in to GitHub",
                        reason,
                        "leave it unset: `ralph` finds it from the repo",
                    ));
                }
            };
            return Ok(Some(Self::App(AppKey { id, pem, installation })));
        }
        Ok(set("GITHUB_PAT").or_else(|| set("GITHUB_TOKEN")).map(Self::Token))
    }
}

#[derive(Debug, Clone)]
pub struct GitHubOptions {
    pub address: RepoAddress,
    /// The REST API: `https://api.github.com`, `https://HOST/api/v3`.
    pub api_url: String,
    /// The GraphQL API, for drafts: `https://api.github.com/graphql`, `https://HOST/api/graphql`.
    pub graphql_url: String,
    /// The push URL: `https://HOST/owner/name.git`.
    pub git_url: String,
    pub auth: GitHubAuth,
    pub timeout: Duration,
    /// The wait before the second try; it doubles.
    pub backoff: Duration,
    pub proxy: ProxySettings,
}

impl GitHubOptions {
    pub fn new(address: RepoAddress, auth: GitHubAuth) -> Self {
        let api_url = address::api_url(&address.host);
        Self {
            graphql_url: address::graphql_url(&api_url),
            git_url: format!("https://{}/{}.git", address.host, address.full_name()),
            api_url,
            address,
            auth,
            timeout: Duration::from_secs(30),
            backoff: Duration::from_millis(500),
            proxy: ProxySettings::NONE,
        }
    }

    /// From a remote and variables: `GITHUB_API_URL`, `GITHUB_GRAPHQL_URL` and those of [`GitHubAuth::from_vars`].
    pub fn from_remote(remote: &str, vars: &dyn Fn(&str) -> Option<String>) -> Result<Self, ForgeError> {
        let shown =
            || ralph_loop_protocol::display::text::one_line(host_of(remote).unwrap_or("the remote"), 100);
        let address = RepoAddress::parse(remote).ok_or_else(|| {
            refused(
                format!("cannot find the repo on {}", shown()),
                "the remote's address has no owner and name",
                "it looks like https://github.com/owner/name.git",
            )
        })?;
        let found = GitHubAuth::from_vars(vars)?.ok_or_else(|| {
            auth(
                format!("log in to {} for {}", address.host, address.full_name()),
                "there is no token",
                format!(
                    "set GITHUB_TOKEN (or GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY_PEM); {}",
                    errors::NEEDED
                ),
            )
        })?;
        let mut options = Self { proxy: ProxySettings::from_vars(vars), ..Self::new(address, found) };
        let url = |name: &str| {
            vars(name).map(|v| v.trim().trim_end_matches('/').to_owned()).filter(|v| !v.is_empty())
        };
        // A GitHub runner names its own API for every repo, even for another host's.
        if let Some(api_url) = url("GITHUB_API_URL").filter(|url| serves(url, &options.address.host)) {
            options.graphql_url = url("GITHUB_GRAPHQL_URL")
                .filter(|url| serves(url, &options.address.host))
                .unwrap_or_else(|| address::graphql_url(&api_url));
            options.api_url = api_url;
        }
        if host_of(&options.api_url).is_some_and(address::is_at_home) {
            // A local server isn't shared, so polling may be fast.
            options.backoff = Duration::from_millis(20);
        }
        if remote.trim().starts_with("http://") && address::is_at_home(&options.address.host) {
            options.git_url = format!("http://{}/{}.git", options.address.host, options.address.full_name());
        }
        Ok(options)
    }
}

struct Token(String);

impl TokenSource for Token {
    fn token(&self, _: &ApiClient, _: Option<&str>) -> Result<String> {
        Ok(self.0.clone())
    }
    fn renews(&self) -> bool {
        false
    }
}

enum Login {
    Token(Token),
    App(Box<App>),
}

pub struct GitHub {
    options: GitHubOptions,
    http: ApiClient,
    login: Login,
    name: String,
    /// Our login, once requested; the inner `None` means that the host doesn't tell.
    me: RefCell<Option<Option<String>>>,
}

impl std::fmt::Debug for GitHub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GitHub").field("options", &self.options).finish_non_exhaustive()
    }
}

impl GitHub {
    /// The repo of these options. Makes no calls yet.
    pub fn new(options: GitHubOptions) -> Result<Self, ForgeError> {
        for url in [&options.api_url, &options.graphql_url, &options.git_url] {
            client::is_safe(url)?;
        }
        let name = options.address.full_name();
        let login = match &options.auth {
            GitHubAuth::Token(token) => Login::Token(Token(token.clone())),
            GitHubAuth::App(key) => Login::App(Box::new(App::new(key, &options.api_url, &options.address)?)),
        };
        let http = ApiClient::new(name.clone(), options.timeout, options.backoff, options.proxy.clone())?;
        Ok(Self { options, http, login, name, me: RefCell::new(None) })
    }

    /// The repo of a remote, with settings from the variables.
    pub fn from_remote(remote: &str, vars: &dyn Fn(&str) -> Option<String>) -> Result<Self, ForgeError> {
        Self::new(GitHubOptions::from_remote(remote, vars)?)
    }

    fn tokens(&self) -> &dyn TokenSource {
        match &self.login {
            Login::Token(token) => token,
            Login::App(app) => app.as_ref(),
        }
    }

    fn url(&self, rest: &str) -> String {
        format!("{}/repos/{}{rest}", self.options.api_url, self.name)
    }

    /// Our login, if the host tells: a workflow's token has none.
    fn me(&self) -> Result<Option<String>> {
        if let Some(me) = self.me.borrow().as_ref() {
            return Ok(me.clone());
        }
        let me = match &self.login {
            Login::App(app) => app.login(&self.http)?,
            Login::Token(token) => {
                let ask =
                    ApiRequest::get("ask who the token belongs to", format!("{}/user", self.options.api_url));
                let answer = self.http.send(&ask.also(&[403, 404]), token)?;
                if answer.status == 200 {
                    Some(answer.json::<WireUser>("read who the token belongs to")?.login)
                } else {
                    None
                }
            }
        };
        *self.me.borrow_mut() = Some(me.clone());
        Ok(me)
    }

    fn wire_repo(&self) -> Result<WireRepo> {
        self.http.json(&ApiRequest::get(format!("look at {}", self.name), self.url("")), self.tokens())
    }
}

impl Forge for GitHub {
    fn kind(&self) -> &'static str {
        "github"
    }

    fn repo(&self) -> &str {
        &self.name
    }

    fn access(&self) -> Result<Access> {
        let repo = self.wire_repo()?;
        let push = match &self.login {
            Login::App(app) => app.may_push(&self.http)?,
            Login::Token(_) => repo.permissions.is_some_and(|may| may.push),
        };
        let login = self.me()?.unwrap_or_else(|| "github-actions[bot]".into());
        Ok(Access { login, push: push && !repo.archived, private: repo.private })
    }

    fn default_branch(&self) -> Result<String> {
        Ok(self.wire_repo()?.default_branch)
    }

    fn remote(&self) -> Result<GitRemote> {
        let token = match &self.login {
            Login::Token(token) => token.0.clone(),
            Login::App(app) => app.token_for(&self.http, PUSH_MARGIN)?,
        };
        Ok(GitRemote { url: self.options.git_url.clone(), login: Some(("x-access-token".into(), token)) })
    }

    fn find_pr(&self, head: &str) -> Result<Option<PullRequest>> {
        self.pr_of(head)
    }

    fn pr(&self, number: u64) -> Result<PullRequest> {
        Ok(self.wire_pr(number)?.seen())
    }

    fn open_pr(&self, new: &NewPr) -> Result<PullRequest> {
        self.open(new)
    }

    fn update_pr(&self, number: u64, change: &PrChange) -> Result<PullRequest> {
        self.update(number, change)
    }

    fn add_labels(&self, number: u64, labels: &[String]) -> Result<()> {
        self.label(number, labels)
    }

    fn comment(&self, number: u64, mark: &str, body: &str) -> Result<Comment> {
        self.say(number, mark, body)
    }

    fn checks(&self, commit: &str) -> Result<Vec<CiCheck>> {
        self.all_checks(commit)
    }

    fn check_log(&self, check: &CiCheck, max: usize) -> Result<String> {
        self.log_of(check, max)
    }

    fn set_status(&self, commit: &str, status: &NewStatus) -> Result<()> {
        self.put_status(commit, status)
    }

    fn reviews(&self, number: u64) -> Result<Vec<Review>> {
        self.latest_reviews(number)
    }

    fn dismissed_approvals(&self, number: u64) -> Result<Vec<DismissedApproval>> {
        self.approvals_dismissed(number)
    }

    fn review_comments(&self, number: u64) -> Result<Vec<Comment>> {
        self.said_in_reviews(number)
    }

    fn pr_files(&self, number: u64) -> Result<Vec<String>> {
        self.touched(number)
    }

    fn open_prs(&self) -> Result<Vec<PullRequest>> {
        self.all_open()
    }

    fn issue(&self, number: u64) -> Result<Issue> {
        self.read_issue(number)
    }
}
