//! Agents of kind `tools` with real processes under the real guard, and a model that plays a script.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test fails by panicking")]

mod browser;
mod conversation;
mod files;
mod processes;
mod support;
