//! Agents of kind `tools` with real processes under the real guard, and a model that plays a script.

mod browser;
mod conversation;
mod files;
mod processes;
mod support;
