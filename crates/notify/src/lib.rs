//! Backends of [`Notifier`]: how people are told of a run while nobody watches it.
//!
//! One way per file: [`slack`], [`webhook`], [`email`], [`desktop`], [`command`]. Each is a [`Way`] that may take as long as
//! the other side lets it; [`Herald`] puts it on a thread of its own and stops waiting after [`LIMIT`], so that no receiver can
//! hold up a run.

mod command;
mod desktop;
mod email;
mod herald;
mod hmac;
mod http;
mod mail_text;
mod process;
mod slack;
mod smtp;
mod way;
mod webhook;

pub use herald::{Herald, heralds};
pub use hmac::signature;
pub use way::{LIMIT, Way};
