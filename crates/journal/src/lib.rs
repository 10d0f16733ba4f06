//! The record of a run on disk.
//!
//! `$XDG_STATE_HOME/ralph/runs/<id>/events.jsonl` is the source of truth; [`journal::Journal`] is its only writer. No
//! sandboxed agent can write there. Each event goes to a sealed copy ([`seal::Seal`]) first, so that edits of an
//! agent without a sandbox are noticed and nothing erased is lost. [`shown`] shows the record in `.ralph/runs/<id>`.
//! [`stream::RunStream`] gives events and live output of any process's run, from any point and without loss;
//! [`snapshot`] keeps `state.json` so that readers need only the tail, [`inbox`] carries user controls, [`lock`] says
//! which process drives, [`registry`] finds runs of any folder, and [`artifacts`] writes everything that an event may
//! name by its digest.

pub mod ahead;
pub mod artifacts;
pub mod error;
mod flush;
pub mod follow;
pub mod inbox;
pub mod index;
pub mod journal;
pub mod layout;
pub mod live;
mod live_read;
mod live_record;
pub mod lock;
pub mod machine;
mod places;
pub mod plain;
mod ralph_files;
pub mod read;
pub mod registry;
pub mod repair;
pub mod seal;
pub mod shown;
pub mod snapshot;
mod stamp;
pub mod stream;
pub mod tail;
pub mod wake;

pub use error::JournalError;
