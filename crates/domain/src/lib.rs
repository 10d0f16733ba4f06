//! The domain of `ralph`: state, decisions and ports.
//!
//! A run is the fold of its [`event::Event`]s into a [`state::RunState`]; [`decide::decide`] reads that state and
//! returns the next [`decide::Step`]. Nothing here opens a file, starts a process or reads a clock: the driver in
//! `ralph-loop-core` performs a step, appends what happened and asks again. So start, resume, replay and tests take
//! the same path.
//!
//! The outside world is a handful of small traits in [`ports`]; their backends are in other crates and are passed to
//! the driver.

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
