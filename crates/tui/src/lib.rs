//! The terminal UI: from "what is to be done?" to the finished branch, in one terminal.
//!
//! It is a plain value ([`model`]) that messages change ([`update`]) and frames show ([`view`]); both are pure. What the world must
//! do is an effect, performed by [`runtime`] over `ralph-loop-app`: it starts runs as processes of their own, sends controls to their
//! inbox and reads their stream, so what is shown is what `ralph status --json` says. It runs no loop of its own, and a run
//! goes on when this is closed.
//!
//! Modules depend on each other in one direction: `data`, `text`, `theme` → `editor`, `form`, `log`, `draft`, `findings` → `keys`,
//! `msg` → `model` → `draw` → `screen` → `overlay` → `update`, `view`, `remote` → `runtime`.

mod data;
mod draft;
mod draw;
mod editor;
mod findings;
mod form;
mod keys;
mod log;
mod model;
mod msg;
mod overlay;
pub mod remote;
mod runtime;
mod screen;
mod text;
mod theme;
mod update;
mod view;

#[cfg(test)]
mod tests;

#[doc(hidden)]
pub mod bench;

pub use runtime::{Left, Opening, can_open, run};
