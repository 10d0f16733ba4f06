//! Slack and compatible webhooks (Mattermost, Rocket.Chat, Discord's `/slack`).

use crate::channel::{Channel, proxy_settings, variable};
use crate::http::Post;
use ralph_loop_domain::ports::Notification;
use ralph_loop_domain::text::notify::{body, heading};
use ralph_loop_domain::vars::Vars;
use ralph_loop_http::ProxySettings;
use ralph_loop_task::config::{NotifyConfig, SLACK_VARIABLE};

pub(crate) struct Slack {
    url: String,
    proxy: ProxySettings,
}

impl Slack {
    pub fn new(config: &NotifyConfig, vars: &Vars) -> Result<Self, String> {
        let url = match (&config.url, &config.url_env) {
            (Some(url), _) => url.clone(),
            (None, Some(name)) => variable(name, vars)?,
            (None, None) => variable(SLACK_VARIABLE, vars)?,
        };
        Ok(Self { url, proxy: proxy_settings(vars) })
    }
}

impl Channel for Slack {
    fn send(&self, message: &Notification) -> Result<(), String> {
        let text = format!("*{}*\n{}", escaped(&heading(message)), escaped(&body(message)));
        let body = serde_json::json!({ "text": text }).to_string();
        Post { url: &self.url, headers: Vec::new(), body, proxy: &self.proxy }.send()
    }
}

/// Slack interprets `<!channel>`; a title must not notify everyone.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    #[test]
    fn title_cannot_notify_everyone() {
        assert_eq!(super::escaped("<!channel> a & b"), "&lt;!channel&gt; a &amp; b");
    }
}
