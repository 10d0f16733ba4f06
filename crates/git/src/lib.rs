//! Git for a run: hardened, and the same for every user.
//!
//! | folder | what it does |
//! |---|---|
//! | [`process`] | starts git without hooks or prompts |
//! | [`snapshot`] | the start, one commit per iteration, moved refs, protected files |
//! | [`agent_copy`] | the agent's copy of the user's tree |
//! | [`hand_back`] | brings results into the user's tree; `ralph apply`; restore |
//! | [`checkout`] | branches, worktrees, clones, clean checkouts, submodules |
//! | [`publish`] | push, fetch, bundles, and what a push would show |
//! | [`filters`] | filters of the user's settings, in a sandbox; LFS |
//! | [`objects`] | git's files: objects, refs, the index |
//! | [`locks`] | git's lock files, and locks between runs |
//!
//! Invariants: the user's index, stash, `HEAD`, branches and unfinished changes are never touched, unless the run
//! commits on its own branch. Every step can be repeated after a crash.

pub mod agent_copy;
pub mod checkout;
mod diff;
mod error;
mod filters;
mod fuzz;
pub mod hand_back;
mod locks;
mod objects;
mod port;
mod process;
pub mod publish;
mod repo;
mod snapshot;
mod workspace;

pub use agent_copy::copy_files::LeftOut;
pub use agent_copy::installed::installed_folders;
pub use checkout::clone_options::{CloneDepth, sparse_folder};
pub use checkout::relocate::read_files;
pub use error::Error;
pub use filters::{FilterRoom, set_filter_sandbox};
#[doc(hidden)]
pub use fuzz::read_anything;
pub use hand_back::HandBack;
pub use hand_back::leftovers::leftovers_in_checkout;
pub use hand_back::result::{ApplyMode, ApplyReport, RunCommits, UserChanges};
pub use locks::wait_lock::WaitLock;
pub use objects::oid::ObjectFormat;
pub use objects::writer::CommitIdentity;
pub use process::command::{Git, GitError, GitFailure, UserGit, processes_started};
pub use process::path::outside_of_repo;
pub use publish::push::{fetch, path_remote, remote_branches};
pub use repo::{RefFormat, Repo, RepoError};
pub use workspace::{GitWorkspace, LARGE_FILE_LIMIT, WorkspaceOptions};
