//! Code hosts, the backends of the `Forge` port.
//!
//! [`LocalForge`] is a folder: a bare repo, and pull requests as files that users and tests can edit. [`GitHub`]
//! supports github.com and Enterprise servers, with a personal token or as an App. [`find`] chooses for a remote.
//! [`GitHub`] and [`find`] require the feature `github`, which is on by default.

mod error;
#[cfg(feature = "github")]
mod find;
#[cfg(feature = "github")]
mod github;
mod local;
mod mark;
mod review;

#[cfg(feature = "github")]
pub use find::{NamedBy, find};
#[cfg(feature = "github")]
pub use github::{AppKey, GitHub, GitHubAuth, GitHubOptions, IssueAddress, RepoAddress, parse_issue_url};
pub use local::LocalForge;
