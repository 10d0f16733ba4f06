//! What others read and write of `ralph`: nothing but data, and the words that belong to it.
//!
//! A run is a list of [`event::Event`]s, one JSON object per line of its journal; whoever steers it appends a
//! [`control::Control`] to its inbox. What comes of it is a [`outcome::RunResult`], a [`proof::Proof`] and one
//! [`receipt::Receipt`] per iteration. A [`view::RunView`] is what there is to show of a run at one moment,
//! [`status::Status`] says it in one word, and [`mod@describe`] says in one sentence what an event means.
//!
//! These shapes are published: they grow, they do not break. The crate knows nothing of the others, so that a reader of a run
//! needs nothing else of the engine.

pub mod budget;
pub mod control;
pub mod describe;
pub mod diagnosis;
pub mod event;
pub mod id;
pub mod in_session;
pub mod lease;
pub mod level;
pub mod look;
pub mod money;
pub mod notification;
pub mod outcome;
pub mod proof;
pub mod protected;
pub mod race;
pub mod receipt;
#[cfg(feature = "schema")]
mod requires;
pub mod role;
pub mod sanitize;
#[cfg(feature = "schema")]
pub mod schema;
pub mod signals;
pub mod status;
pub mod stuck;
pub mod test_counts;
pub mod text;
pub mod view;
