//! Notification targets from the user's configuration, the environment and flags. Never from the repo:
//! notifications run programs and send text elsewhere.

use crate::config::settings;
use crate::environment::Environment;
use crate::error::AppError;
use crate::request::NotifyRequest;
use ralph_loop_domain::ports::Notifier;
use ralph_loop_notify::ChannelNotifier;
use ralph_loop_task::config::{NotifyConfig, NotifyKind, SLACK_VARIABLE};

/// Parses `slack`, `desktop`, `command:LINE` or `none`.
pub fn parse(text: &str) -> Result<NotifyRequest, String> {
    let also = |config| NotifyRequest::Also(Box::new(config));
    match text.split_once(':') {
        None if text == "none" => Ok(NotifyRequest::Off),
        None if text == "slack" => Ok(also(NotifyConfig::of(NotifyKind::Slack))),
        None if text == "desktop" => Ok(also(NotifyConfig::of(NotifyKind::Desktop))),
        Some(("command", line)) if !line.trim().is_empty() => Ok(also(NotifyConfig {
            command_argv: vec!["sh".into(), "-c".into(), line.to_owned()],
            ..NotifyConfig::of(NotifyKind::Command)
        })),
        _ => Err(
            "expected slack, desktop, command:LINE or none; configure other channels with `notify` in your own config"
                .into(),
        ),
    }
}

pub fn chosen(env: &Environment, requests: &[NotifyRequest]) -> Result<Vec<ChannelNotifier>, AppError> {
    if requests.contains(&NotifyRequest::Off) {
        return Ok(Vec::new());
    }
    let vars = env.vars();
    let slack = || vars.filled(SLACK_VARIABLE).map(|_| NotifyConfig::of(NotifyKind::Slack));
    let mut configs = match settings::user_notify(env)? {
        Some(configs) => configs,
        None => slack().into_iter().collect(),
    };
    for request in requests {
        if let NotifyRequest::Also(config) = request
            && !configs.iter().any(|known| *known == **config)
        {
            configs.push((**config).clone());
        }
    }
    Ok(ralph_loop_notify::notifiers(&configs, vars))
}

/// The notifiers for a run.
pub fn notifiers(env: &Environment, requests: &[NotifyRequest]) -> Result<Vec<Box<dyn Notifier>>, AppError> {
    Ok(chosen(env, requests)?.into_iter().map(|notifier| Box::new(notifier) as Box<dyn Notifier>).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_read_by_name() {
        assert_eq!(parse("none"), Ok(NotifyRequest::Off));
        let Ok(NotifyRequest::Also(command)) = parse("command:echo a:b") else { panic!("a command") };
        assert_eq!(command.command_argv, ["sh", "-c", "echo a:b"]);
        assert!(parse("slack").is_ok() && parse("desktop").is_ok());
        for bad in ["command:", "pigeon"] {
            assert!(
                parse(bad).unwrap_err().starts_with("expected slack, desktop, command:LINE or none"),
                "{bad}"
            );
        }
    }
}
