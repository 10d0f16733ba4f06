//! Backends of [`Notifier`]: notifications about a run.
//!
//! One channel per file: [`slack`], [`webhook`], [`email`], [`desktop`], [`command`]. Each is a [`Channel`] that may
//! take as long as the other side; [`ChannelNotifier`] runs it on a separate thread and stops waiting after
//! [`LIMIT`], so that no receiver can delay a run.

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
