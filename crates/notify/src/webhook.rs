//! A JSON POST to any server, signed if a key is set.
//!
//! The receiver checks `X-Ralph-Signature-256` against the raw body, and may refuse old messages: `sent_at` is part
//! of what is signed. `X-Ralph-Delivery` stays the same when a message is sent again.
#![allow(clippy::disallowed_methods, reason = "a message says when it was sent")]

use crate::channel::{Channel, proxy_settings, variable};
use crate::hmac::signature;
use crate::http::Post;
use ralph_loop_domain::ports::Notification;
use ralph_loop_domain::vars::Vars;
use ralph_loop_http::ProxySettings;
use ralph_loop_task::config::NotifyConfig;
use std::time::SystemTime;

pub(crate) struct Webhook {
    url: String,
    key: Option<String>,
    proxy: ProxySettings,
}

impl Webhook {
    pub fn new(config: &NotifyConfig, vars: &Vars) -> Result<Self, String> {
        let url = match (&config.url, &config.url_env) {
            (Some(url), _) => url.clone(),
            (None, Some(name)) => variable(name, vars)?,
            (None, None) => return Err("it has no address".into()),
        };
        // A configured but missing key must not lead to an unsigned message.
        let key = config.secret_env.as_deref().map(|name| variable(name, vars)).transpose()?;
        Ok(Self { url, key, proxy: proxy_settings(vars) })
    }
}

impl Channel for Webhook {
    fn send(&self, message: &Notification) -> Result<(), String> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut value = serde_json::to_value(message).map_err(|e| e.to_string())?;
        value["sent_at"] = now.into();
        let body = value.to_string();
        let mut headers = vec![
            ("x-ralph-event", message.occasion.as_str().to_owned()),
            ("x-ralph-delivery", message.id.clone()),
            ("x-ralph-timestamp", now.to_string()),
        ];
        if let Some(key) = &self.key {
            headers.push(("x-ralph-signature-256", signature(key.as_bytes(), body.as_bytes())));
        }
        Post { url: &self.url, headers, body, proxy: &self.proxy }.send()
    }
}
