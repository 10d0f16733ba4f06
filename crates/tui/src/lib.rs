//! The terminal UI: from a task description to the finished branch.
//!
//! A plain value ([`model`]) that messages change ([`update`]) and frames show ([`view`]); both are pure.
//! Effects are performed by [`runtime`] over `ralph-loop-app`: it starts runs as separate processes, sends
//! controls to their inbox and reads their stream. Runs continue when the UI is closed.
//!
//! Modules depend on each other in one direction: `data`, `text`, `theme` → `editor`, `form`, `log`, `draft`,
//! `findings` → `keys`, `msg` → `model` → `draw` → `screen` → `overlay` → `update`, `view`, `remote` →
//! `runtime`.

mod data;
mod draft;
mod findings;
mod keys;
mod log;
mod model;
mod msg;
pub mod remote;
mod runtime;
mod screen;
mod update;
mod view;

#[cfg(test)]
mod tests;

mod widget;

pub use runtime::{Left, Opening, can_open, run};
