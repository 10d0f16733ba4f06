//! The public data formats of `ralph`: plain data and its wording.
//!
//! A run is a list of [`event::Event`]s, one JSON object per line of its journal; a [`control::Control`] in its inbox
//! steers it. Its results are a [`outcome::RunResult`], a [`proof::Proof`] and one [`receipt::Receipt`] per
//! iteration. A [`view::RunView`] is everything to show of a run at one moment, [`status::Status`] is its status
//! word, and [`mod@describe`] puts an event into one sentence.
//!
//! These formats are published: they grow but don't break. The crate doesn't depend on any other, so that a reader of
//! a run needs nothing else of the engine.

pub mod control;
pub mod describe;
pub mod display;
pub mod event;
pub mod id;
pub mod lease;
pub mod money;
pub mod notification;
pub mod outcome;
pub mod proof;
#[cfg(feature = "schema")]
mod requires;
pub mod role;
#[cfg(feature = "schema")]
pub mod schema;
pub mod status;
pub mod stuck;
