//! Email through the user's mail server.

use crate::channel::{Channel, variable};
use crate::mail_text::mail;
use crate::smtp::{Login, Server};
use ralph_loop_domain::ports::Notification;
use ralph_loop_domain::vars::Vars;
use ralph_loop_task::config::NotifyConfig;

pub(crate) struct Email {
    server: Server,
    from: String,
    to: Vec<String>,
}

impl Email {
    pub fn new(config: &NotifyConfig, vars: &Vars) -> Result<Self, String> {
        let tls = config.tls.unwrap_or_default();
        let login = match (&config.user, &config.password_env) {
            (Some(user), Some(name)) => Some(Login { user: user.clone(), password: variable(name, vars)? }),
            _ => None,
        };
        let host = config.host.clone().ok_or("it has no mail server")?;
        let port = config.port.unwrap_or(tls.usual_port());
        let from = config.from.clone().ok_or("it has no sender")?;
        Ok(Self { server: Server { host, port, tls, login }, from, to: config.to.clone() })
    }
}

impl Channel for Email {
    fn send(&self, message: &Notification) -> Result<(), String> {
        self.server.deliver(&self.from, &self.to, &mail(message, &self.from, &self.to))
    }
}
