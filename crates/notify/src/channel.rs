//! What all notification channels have in common.

use ralph_loop_domain::ports::Notification;
use ralph_loop_domain::vars::Vars;
use ralph_loop_http::ProxySettings;
use std::time::Duration;

/// How long a message may take before the run continues without its result.
pub const LIMIT: Duration = Duration::from_secs(5);

/// A notification channel: Slack, a webhook, email, …. It may block for about [`LIMIT`].
pub trait Channel: Send + Sync {
    /// Sends one message; the error says what went wrong, without keys and passwords.
    fn send(&self, message: &Notification) -> Result<(), String>;
}

pub(crate) fn variable(name: &str, vars: &Vars) -> Result<String, String> {
    vars.filled(name).ok_or_else(|| format!("the variable `{name}` is not set"))
}

pub(crate) fn proxy_settings(vars: &Vars) -> ProxySettings {
    ProxySettings::from_vars(&|name| vars.get(name))
}
