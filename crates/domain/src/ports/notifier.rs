//! The notification port.

pub use ralph_loop_protocol::notification::{Notification, Occasion};

/// Sends notifications.
///
/// Implementations guarantee: a call returns within the notifier's timeout, and messages hold no secrets.
pub trait Notifier: Send {
    /// Its name in messages: `slack`, `webhook`, `email`, `desktop`, `command`.
    fn name(&self) -> &str;
    fn wants(&self, occasion: Occasion) -> bool;
    /// Sends a notification; the error says what went wrong.
    fn send(&self, message: &Notification) -> Result<(), String>;
}
