//! Code hosts, the backends of the `Forge` port.
//!
//! [`LocalForge`] is a folder: a bare repo, and pull requests as files that people and tests can edit. [`GitHub`] speaks to
//! github.com and to Enterprise servers, with a personal token or as an App. [`find`] chooses for a remote.

mod error;
mod find;
mod github;
mod local;
mod mark;
mod review;

pub use find::find;
pub use github::{AppKey, GitHub, GitHubAuth, GitHubOptions, IssueAddress, RepoAddress, parse_issue_url};
pub use local::LocalForge;

/// The code host: a folder that stands in for one, or what the remote names.
pub fn find(
    _remote_url: Option<&str>,
    local: Option<&std::path::Path>,
    _vars: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Box<dyn ralph_domain::ports::Forge>>, ralph_domain::ports::ForgeError> {
    Ok(match local {
        Some(folder) => Some(Box::new(LocalForge::open(folder)?)),
        None => None,
    })
}

/// Where an issue is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuePlace {
    /// The host.
    pub host: String,
    /// Owner of the repo.
    pub owner: String,
    /// Name of the repo.
    pub name: String,
    /// The issue.
    pub number: u64,
}

impl IssuePlace {
    /// The address of its repo.
    pub fn repo_url(&self) -> String {
        format!("https://{}/{}/{}", self.host, self.owner, self.name)
    }
}

/// Reads `https://HOST/OWNER/NAME/issues/7`.
pub fn parse_issue_url(url: &str) -> Option<IssuePlace> {
    let rest = url.split_once("://")?.1;
    let mut parts = rest.split(['/', '?', '#']);
    let (host, owner, name) = (parts.next()?, parts.next()?, parts.next()?);
    (parts.next()? == "issues").then_some(())?;
    let number = parts.next()?.parse().ok()?;
    Some(IssuePlace { host: host.into(), owner: owner.into(), name: name.into(), number })
}
