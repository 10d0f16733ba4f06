//! The record of a run on disk.
//!
//! `$XDG_STATE_HOME/ralph/runs/<id>/events.jsonl` is the source of truth; [`journal::Journal`] is its only writer. No
//! sandboxed agent can write there. Each event goes to a sealed copy ([`seal::Seal`]) first, so that edits of an
//! agent without a sandbox are noticed and nothing erased is lost. [`shown`] shows the record in `.ralph/runs/<id>`.
//! [`stream::RunStream`] gives events and live output of any process's run, from any point and without loss;
//! [`snapshot`] keeps `state.json` so that readers need only the tail, [`inbox`] carries user controls, [`lock`] says
//! which process drives, [`registry`] finds runs of any folder, and [`artifacts`] writes everything that an event may
//! name by its digest.

pub mod error;
pub mod folder;
pub mod inbox;
pub mod journal;
pub mod live;
pub mod lock;

pub use error::JournalError;
