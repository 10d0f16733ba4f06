//! What every channel to people has in common.

use ralph_loop_domain::ports::Notification;
use ralph_loop_domain::vars::Vars;
use ralph_loop_http::ProxySettings;
use std::time::Duration;

/// How long a message may take before the run goes on without knowing what became of it.
pub const LIMIT: Duration = Duration::from_secs(5);

/// One channel to people: Slack, a webhook, a mail, …. It may block for about [`LIMIT`].
pub trait Channel: Send + Sync {
    /// Sends one message; the error says in words what went wrong, without keys and passwords.
    fn send(&self, message: &Notification) -> Result<(), String>;
}

/// The value of a variable that the configuration names.
pub(crate) fn variable(name: &str, vars: &Vars) -> Result<String, String> {
    vars.filled(name).ok_or_else(|| format!("the variable `{name}` is not set"))
}

/// The way to servers, as the run's variables say.
pub(crate) fn proxy_settings(vars: &Vars) -> ProxySettings {
    ProxySettings::from_vars(&|name| vars.get(name))
}
