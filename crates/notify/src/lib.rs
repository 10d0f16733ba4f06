//! Backends of [`Notifier`]: how people are told of a run while nobody watches it.
//!
//! One channel per file: [`slack`], [`webhook`], [`email`], [`desktop`], [`command`]. Each is a [`Channel`] that may take as long as
//! the other side lets it; [`ChannelNotifier`] puts it on a thread of its own and stops waiting after [`LIMIT`], so that no receiver can
//! hold up a run.

mod channel;
mod command;
mod desktop;
mod email;
mod hmac;
mod http;
mod mail_text;
mod notifier;
mod process;
mod slack;
mod smtp;
mod webhook;

pub use channel::{Channel, LIMIT};
pub use hmac::signature;
pub use notifier::{ChannelNotifier, notifiers};
