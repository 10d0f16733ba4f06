//! The port to whoever is told of a run while nobody watches it.

pub use ralph_loop_protocol::notification::{Notification, Occasion};

/// Tells people.
///
/// An implementer guarantees: it returns within its own time-out, whatever the other side does; what it sends holds no secret.
pub trait Notifier: Send {
    /// How it is named in messages: `slack`, `webhook`, `email`, `desktop`, `command`.
    fn name(&self) -> &str;
    /// Which occasions it is for.
    fn wants(&self, occasion: Occasion) -> bool;
    /// Sends one message; the error says in words what went wrong.
    fn send(&self, message: &Notification) -> Result<(), String>;
}
