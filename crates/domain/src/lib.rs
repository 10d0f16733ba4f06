//! The domain of `ralph`: state, decisions and ports.
//!
//! A run is the fold of its [`event::Event`]s into a [`state::RunState`]; [`decide::decide`] reads that state and
//! returns the next [`decide::Step`]. Nothing here opens a file, starts a process or reads a clock: the driver in
//! `ralph-loop-core` performs a step, appends what happened and asks again. So start, resume, replay and tests take
//! the same path.
//!
//! The outside world is a handful of small traits in [`ports`]; their backends are in other crates and are passed to
//! the driver.

pub mod best;
pub mod budget_warning;
pub mod decide;
pub mod handover;
pub mod model;
pub mod ports;
pub mod proof;
pub mod recovery;
pub mod redact;
pub mod repo;
pub mod secret_name;
pub mod state;
pub mod step;
pub mod stuck;
pub mod text;
pub mod vars;
pub mod view;
