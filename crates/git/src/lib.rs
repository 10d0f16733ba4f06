//! The hardened git that everyone shares.
//!
//! [`Git`] starts git without hooks, prompts or surprises. [`Repo`] finds the repo around a folder. [`GitWorkspace`] is the
//! `Workspace` port: a start snapshot, one commit per iteration on `refs/ralph/<run>/work`, changes, moved refs, protected
//! files, clean checkouts. [`place`] makes the branch, worktree or clone that a run works in, [`agent_copy`] the agent's own copy
//! of the user's tree, whose results [`HandBack`] hands back; [`restore`] brings the user's files back to the start.
//!
//! What must stay true: the user's index, stash, `HEAD`, branches and unfinished changes are never touched, unless the run
//! was asked to commit on its own branch. Snapshots go through a private index under `.git/ralph/<run>/`; a look at an
//! unchanged tree starts no process (`watch`), a checkpoint of a changed one starts two. Trees, commits and refs are
//! written in-process with git's own file formats and lock files. Every step can be repeated after a crash.

pub mod agent_copy;
mod agent_git_dir;
mod agent_sparse;
mod alternates;
mod any_bytes;
mod branch;
pub mod bundle;
mod checkpoint;
mod clean;
pub mod command;
mod diff;
mod entry;
mod error;
mod extent;
mod folder;
mod git_error;
mod guard;
pub mod hand_back;
mod history;
mod index;
mod installed;
mod left_lock;
mod left_over;
pub mod left_record;
pub mod left_work;
mod living;
mod lock_file;
mod mirror;
mod object;
mod oid;
mod outgoing;
mod own_path;
pub mod place;
mod port;
mod private_index;
mod protected;
mod pump;
mod push;
mod record;
mod refs;
mod relocate;
mod repo;
pub mod restore;
mod session;
mod snapshot;
mod stage;
mod state_dir;
mod state_ref;
mod store;
pub mod submodule;
mod submodule_edits;
mod survey;
mod tree_git;
mod tree_programs;
pub mod user_hooks;
mod user_index;
mod wait_lock;
mod watch;
mod work_tree;
mod workspace;
mod worktree;

#[doc(hidden)]
pub use any_bytes::read_anything;
pub use command::{Git, GitError, GitFailure};
pub use error::Error;
pub use extent::{Extent, sparse_folder};
pub use hand_back::HandBack;
pub use hand_back::result::{ApplyMode, ApplyReport, RunCommits, UserChanges};
pub use installed::installed_folders;
pub use left_over::LeftOut;
pub use object::CommitIdentity;
pub use oid::ObjectFormat;
pub use own_path::outside_of_repo;
pub use push::{fetch, path_remote, remote_branches};
pub use relocate::read_files;
pub use repo::{RefFormat, Repo, RepoError};
pub use tree_programs::{TreeProgram, tree_programs};
pub use wait_lock::WaitLock;
pub use workspace::{GitWorkspace, LARGE_FILE_LIMIT, WorkspaceOptions};
