//! Safety: what must never get out or in.

pub(crate) mod bad_input;
pub(crate) mod boundary;
pub(crate) mod copy_contents;
pub(crate) mod escapes;
pub(crate) mod output_safety;
pub(crate) mod sandbox;
pub(crate) mod sandboxed_browser;
pub(crate) mod secrets;
pub(crate) mod trust;
