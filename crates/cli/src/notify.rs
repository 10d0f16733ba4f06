//! Who is told of a run: the user's own configuration, the environment, flags. Never the repo: what stands in it comes from
//! whoever wrote it, and a notification runs programs and sends words elsewhere.

use crate::error::CommandError;
use crate::settings;
use ralph_domain::config::{NotifyConfig, NotifyKind, SLACK_VARIABLE};
use ralph_domain::ports::Notifier;
use ralph_notify::{Herald, heralds};

/// The value of `--notify`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// Nobody, whatever the configuration says.
    Nobody,
    /// One more.
    Also(Box<NotifyConfig>),
}

/// Reads one value of `--notify`.
pub fn wish(text: &str) -> Result<Wish, String> {
    let also = |config| Wish::Also(Box::new(config));
    match text.split_once(':') {
        None if text == "none" => Ok(Wish::Nobody),
        None if text == "slack" => Ok(also(NotifyConfig::of(NotifyKind::Slack))),
        None if text == "desktop" => Ok(also(NotifyConfig::of(NotifyKind::Desktop))),
        Some(("command", line)) if !line.trim().is_empty() => Ok(also(NotifyConfig {
            command_argv: vec!["sh".into(), "-c".into(), line.to_owned()],
            ..NotifyConfig::of(NotifyKind::Command)
        })),
        _ => Err(
            "one of slack, desktop, command:LINE, none; other ways stand under `notify` in your own config"
                .into(),
        ),
    }
}

/// As it was written.
pub fn written(wish: &Wish) -> String {
    match wish {
        Wish::Nobody => "none".into(),
        Wish::Also(config) if config.kind == NotifyKind::Command => {
            format!("command:{}", config.command_argv.last().map_or("", String::as_str))
        }
        Wish::Also(config) => config.kind.as_str().into(),
    }
}

/// All who are to be told.
pub fn chosen(wishes: &[Wish]) -> Result<Vec<Herald>, CommandError> {
    if wishes.contains(&Wish::Nobody) {
        return Ok(Vec::new());
    }
    let vars = |name: &str| std::env::var(name).ok();
    let slack =
        || vars(SLACK_VARIABLE).filter(|url| !url.is_empty()).map(|_| NotifyConfig::of(NotifyKind::Slack));
    let mut configs = match settings::user_notify()? {
        Some(configs) => configs,
        None => slack().into_iter().collect(),
    };
    for wish in wishes {
        if let Wish::Also(config) = wish
            && !configs.iter().any(|known| *known == **config)
        {
            configs.push((**config).clone());
        }
    }
    Ok(heralds(&configs, &vars))
}

/// The same, as a run takes them.
pub fn notifiers(wishes: &[Wish]) -> Result<Vec<Box<dyn Notifier>>, CommandError> {
    Ok(chosen(wishes)?.into_iter().map(|herald| Box::new(herald) as Box<dyn Notifier>).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_passed_on_as_it_was_written() {
        for text in ["none", "slack", "desktop", "command:echo a:b"] {
            assert_eq!(written(&wish(text).unwrap()), text);
        }
        assert!(wish("command:").is_err() && wish("pigeon").is_err());
    }
}
