//! Starting git: hardened, with a deadline and bounded output.

pub mod command;
pub(crate) mod engine_dir;
pub(crate) mod git_error;
pub(crate) mod output;
pub(crate) mod path;
pub(crate) mod running;
pub(crate) mod settings;
pub(crate) mod tree_git;
pub(crate) mod view;
