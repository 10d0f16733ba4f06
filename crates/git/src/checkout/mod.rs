//! Folders that a run works in: branches, worktrees, clones and clean checkouts.

pub(crate) mod branch;
pub(crate) mod clean;
pub(crate) mod clone;
pub(crate) mod clone_options;
pub(crate) mod relocate;
pub(crate) mod submodule_edits;
pub mod submodules;
pub(crate) mod worktree;

pub use crate::process::running::kill_git_in;
pub use branch::{
    branch_names, create_branch, create_branch_in_place, create_exactly, free_branch_name, leave_branch,
    remove_branch, restore_branch, switch_in_place,
};
pub use clean::{separate, switch};
pub use clone::{clone, clone_part, commit_of_branch, refresh_clone, remote, shown};
pub use worktree::{add_worktree, remake_worktree, remove_worktree};
