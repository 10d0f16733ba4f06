//! Sends commits to other repos.

pub mod bundle;
pub(crate) mod push;
pub(crate) mod pushed_content;
pub(crate) mod state_ref;
