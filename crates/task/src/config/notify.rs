//! The `notify` list: who gets notified about a run.
//!
//! Only the user's configuration, environment and flags count: a repo must not be able to run a command on the user's
//! machine or to send messages to a server of its choice.

use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::notification::Occasion;
use serde::{Deserialize, Serialize};

/// The default variable for a Slack-compatible webhook.
pub const SLACK_VARIABLE: &str = "SLACK_WEBHOOK_URL";

/// A notification channel.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct NotifyConfig {
    /// The kind of channel.
    pub kind: NotifyKind,
    /// Its name in messages; default: its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The occasions it reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = ["needs_human", "success", "failure"])))]
    pub on: Option<Vec<Occasion>>,
    /// `slack`, `webhook`: the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^https?://")))]
    pub url: Option<String>,
    /// `slack`, `webhook`: the environment variable that holds the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_env: Option<String>,
    /// `webhook`: the environment variable that holds the key of the signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_env: Option<String>,
    /// `email`: the mail server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// `email`: its port; default: the usual one for `tls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// `email`: the connection's encryption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "starttls")))]
    pub tls: Option<MailTls>,
    /// `email`: the login name, if the server requires one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// `email`: the environment variable that holds the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_env: Option<String>,
    /// `email`: the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// `email`: the recipients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// `command`: the program. It gets the message as JSON on stdin and in `RALPH_NOTIFY_*` variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command_argv: Vec<String>,
}

/// The kinds of notification channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum NotifyKind {
    /// A Slack-compatible webhook.
    #[default]
    Slack,
    /// A JSON POST, signed if a key is given.
    Webhook,
    /// An email.
    Email,
    /// A desktop notification on this machine.
    Desktop,
    /// Any program.
    Command,
}

impl NotifyKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Slack => "slack",
            Self::Webhook => "webhook",
            Self::Email => "email",
            Self::Desktop => "desktop",
            Self::Command => "command",
        }
    }
}

/// The encryption of a connection to a mail server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum MailTls {
    /// None: for a server on this machine. Never sends a password to another machine.
    None,
    /// STARTTLS before anything else is sent.
    #[default]
    Starttls,
    /// TLS from the first byte.
    Implicit,
}

impl MailTls {
    pub fn usual_port(self) -> u16 {
        match self {
            Self::None => 25,
            Self::Starttls => 587,
            Self::Implicit => 465,
        }
    }
}

impl NotifyConfig {
    /// A channel with only its kind.
    pub fn of(kind: NotifyKind) -> Self {
        Self { kind, ..Self::default() }
    }

    pub fn wants(&self, occasion: Occasion) -> bool {
        const USUAL: [Occasion; 3] = [Occasion::NeedsHuman, Occasion::Success, Occasion::Failure];
        self.on.as_deref().unwrap_or(&USUAL).contains(&occasion)
    }

    /// The problem and the fix, if any.
    pub fn fault(&self) -> Option<(String, &'static str)> {
        let kind = self.kind.as_str();
        let lacks = |key: &str, hint| Some((format!("a `{kind}` notification needs `{key}`"), hint));
        if self.url.is_some() && self.url_env.is_some() {
            return Some((
                format!("a `{kind}` notification has both `url` and `url_env`"),
                "keep one of them",
            ));
        }
        if let Some(url) = &self.url
            && !(url.starts_with("https://") || url.starts_with("http://"))
        {
            return Some((
                format!("the `url` of a `{kind}` notification isn't a web URL"),
                "it begins with `https://`",
            ));
        }
        match self.kind {
            NotifyKind::Webhook if self.url.is_none() && self.url_env.is_none() => lacks(
                "url",
                "for example `\"url\": \"https://example.org/hook\"`, or `url_env` with the name of a variable",
            ),
            NotifyKind::Email if self.host.is_none() => lacks("host", "name the mail server"),
            NotifyKind::Email if self.from.is_none() => lacks("from", "name the sender's address"),
            NotifyKind::Email if self.to.is_empty() => {
                lacks("to", "for example `\"to\": [\"me@example.org\"]`")
            }
            NotifyKind::Email if self.user.is_some() != self.password_env.is_some() => {
                lacks("user` and `password_env", "set both, or neither if the server needs no login")
            }
            NotifyKind::Email => {
                self.from.iter().chain(&self.to).find(|address| !is_address(address)).map(|address| {
                    (
                        format!("`{}` isn't an email address", one_line(address, 80)),
                        "for example `me@example.org`",
                    )
                })
            }
            NotifyKind::Command if self.command_argv.first().is_none_or(String::is_empty) => {
                lacks("command_argv", "for example `\"command_argv\": [\"my-notifier\", \"--now\"]`")
            }
            _ => None,
        }
    }
}

/// Only plain addresses: nothing that could end a line or a command of the mail protocol.
fn is_address(text: &str) -> bool {
    let fine = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_graphic() && !"<>,;:\"()[]\\@".contains(c))
    };
    text.rsplit_once('@').is_some_and(|(name, host)| fine(name) && fine(host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigFile;

    fn refused(text: &str) -> String {
        ConfigFile::parse(&format!("{{\"notify\": [{text}]}}")).unwrap_err().to_string()
    }

    #[test]
    fn the_short_form_of_each_kind_is_enough() {
        let text = r#"{"notify": [{"kind":"slack"}, {"kind":"webhook","url_env":"HOOK"}, {"kind":"desktop","on":["start"]},
            {"kind":"email","host":"localhost","from":"a@b.org","to":["c@d.org"]}, {"kind":"command","command_argv":["x"]}]}"#;
        let notify = ConfigFile::parse(text).unwrap().notify.unwrap();
        assert!(notify[0].wants(Occasion::NeedsHuman) && !notify[0].wants(Occasion::Start));
        assert!(notify[2].wants(Occasion::Start) && !notify[2].wants(Occasion::Success));
    }

    #[test]
    fn unusable_channels_are_refused_by_name() {
        assert!(refused(r#"{"kind":"webhook"}"#).contains("`url`"));
        assert!(refused(r#"{"kind":"slack","url":"file:///etc/passwd"}"#).contains("isn't a web URL"));
        assert!(
            refused(r#"{"kind":"email","host":"h","from":"a@b","to":["x\r\nRCPT TO:<y@z>"]}"#)
                .contains("isn't an email address")
        );
        assert!(
            refused(r#"{"kind":"email","host":"h","from":"a@b","to":["c@d"],"user":"u"}"#)
                .contains("password_env")
        );
        assert!(refused(r#"{"kind":"command"}"#).contains("command_argv"));
        assert!(refused(r#"{"kind":"slack","on":["sometimes"]}"#).contains("sometimes"));
    }
}
