//! The words, the decisions and the ports of `ralph`.
//!
//! A run is the fold of its [`event::Event`]s into a [`state::RunState`]; [`decide::decide`] reads that state and names
//! the next [`decide::Step`]. Nothing here opens a file, starts a process or asks for the time: the driver in
//! `ralph-loop-core` performs a step at the edge, appends what happened and asks again. That is why start, resume,
//! replay and tests are one path.
//!
//! The outside world is a handful of small traits in [`ports`]; their backends live in other crates and are handed
//! to the driver by whoever wires them.

pub mod address;
pub mod best;
pub mod budget_warning;
pub mod change_text;
pub mod claim;
pub mod decide;
mod end_summary;
pub mod guardrail;
pub mod handover;
pub mod installed;
pub mod model;
pub mod notify;
pub mod ports;
pub mod price;
pub mod proof;
pub mod protect;
pub mod recovery;
pub mod redact;
pub mod secret_name;
pub mod select;
pub mod setup;
pub mod state;
pub mod step;
pub mod stuck;
pub mod vars;
pub mod view;
