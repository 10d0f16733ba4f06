//! Creates notifiers from the configuration, each with a name and a time limit.

use crate::channel::{Channel, LIMIT};
use crate::{command, desktop, email, slack, webhook};
use ralph_loop_domain::ports::{Notification, Notifier, Occasion};
use ralph_loop_domain::vars::Vars;
use ralph_loop_task::config::{NotifyConfig, NotifyKind};
use std::sync::Arc;
use std::sync::mpsc;

/// A channel with its name and its occasions, as a [`Notifier`].
pub struct ChannelNotifier {
    name: String,
    config: NotifyConfig,
    channel: Result<Arc<dyn Channel>, String>,
}

impl std::fmt::Debug for ChannelNotifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelNotifier").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All configured notifiers. One that can't work (a missing variable) fails only when it sends: notifications must
/// not keep a run from working.
pub fn notifiers(configs: &[NotifyConfig], vars: &Vars) -> Vec<ChannelNotifier> {
    let mut all: Vec<ChannelNotifier> = Vec::new();
    for config in configs {
        let wish = config.name.clone().unwrap_or_else(|| config.kind.as_str().to_owned());
        let taken = |name: &str| all.iter().any(|notifier| notifier.name == name);
        let more = (2..).map(|number| format!("{wish}-{number}"));
        let name = std::iter::once(wish.clone()).chain(more).find(|name| !taken(name)).unwrap_or(wish);
        all.push(ChannelNotifier { name, config: config.clone(), channel: open(config, vars) });
    }
    all
}

fn open(config: &NotifyConfig, vars: &Vars) -> Result<Arc<dyn Channel>, String> {
    Ok(match config.kind {
        NotifyKind::Slack => Arc::new(slack::Slack::new(config, vars)?),
        NotifyKind::Webhook => Arc::new(webhook::Webhook::new(config, vars)?),
        NotifyKind::Email => Arc::new(email::Email::new(config, vars)?),
        NotifyKind::Desktop => Arc::new(desktop::Desktop::new(vars)),
        NotifyKind::Command => Arc::new(command::Command::new(config, vars)),
    })
}

impl ChannelNotifier {
    pub fn kind(&self) -> NotifyKind {
        self.config.kind
    }

    pub fn occasions(&self) -> impl Iterator<Item = Occasion> {
        Occasion::ALL.into_iter().filter(|occasion| self.config.wants(*occasion))
    }
}

impl Notifier for ChannelNotifier {
    fn name(&self) -> &str {
        &self.name
    }

    fn wants(&self, occasion: Occasion) -> bool {
        self.config.wants(occasion)
    }

    fn send(&self, message: &Notification) -> Result<(), String> {
        let channel = self.channel.clone()?;
        let (message, occasion) = (message.clone(), message.occasion.as_str());
        let (done, result) = mpsc::channel();
        // A hanging name lookup or program can't be interrupted: the thread is abandoned.
        let thread = std::thread::Builder::new().name("notifier".into());
        thread
            .spawn(move || done.send(channel.send(&message)))
            .map_err(|e| format!("no thread could be started: {e}"))?;
        let sent = result
            .recv_timeout(LIMIT)
            .unwrap_or_else(|_| Err(format!("no answer within {} seconds", LIMIT.as_secs())));
        let (channel, kind) = (self.name.as_str(), self.config.kind.as_str());
        match &sent {
            Ok(()) => tracing::debug!(channel, kind, occasion, "people told"),
            Err(error) => tracing::debug!(channel, kind, occasion, error, "user not notified"),
        }
        sent
    }
}
