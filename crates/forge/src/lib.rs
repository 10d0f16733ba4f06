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

pub use find::{NamedBy, find};
pub use github::{AppKey, GitHub, GitHubAuth, GitHubOptions, IssueAddress, RepoAddress, parse_issue_url};
pub use local::LocalForge;
