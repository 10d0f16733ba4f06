//! A user's program: gets the message as JSON on stdin, and in `RALPH_NOTIFY_*` variables.

use crate::channel::Channel;
use crate::process;
use ralph_loop_domain::ports::Notification;
use ralph_loop_domain::text::notify::heading;
use ralph_loop_domain::vars::Vars;
use ralph_loop_task::config::NotifyConfig;

pub(crate) struct Command {
    argv: Vec<String>,
    vars: Vars,
}

impl Command {
    pub fn new(config: &NotifyConfig, vars: &Vars) -> Self {
        Self { argv: config.command_argv.clone(), vars: vars.clone() }
    }
}

impl Channel for Command {
    fn send(&self, message: &Notification) -> Result<(), String> {
        let told = [
            ("RALPH_NOTIFY_ID", message.id.clone()),
            ("RALPH_NOTIFY_OCCASION", message.occasion.as_str().to_owned()),
            ("RALPH_NOTIFY_RUN", message.run_id.to_string()),
            ("RALPH_NOTIFY_TITLE", message.title.clone()),
            ("RALPH_NOTIFY_HEADING", heading(message)),
            ("RALPH_NOTIFY_TEXT", message.text.clone()),
            ("RALPH_NOTIFY_HINT", message.hint.clone().unwrap_or_default()),
            ("RALPH_NOTIFY_PR_URL", message.pr_url.clone().unwrap_or_default()),
        ];
        let told = told.map(|(name, value)| (name, value.replace('\0', " ")));
        let input = serde_json::to_string(message).map_err(|e| e.to_string())?;
        process::run(&self.argv, &self.vars.with(told), &input)
    }
}
