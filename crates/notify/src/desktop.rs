//! Desktop notifications, through the usual Linux program.

use crate::channel::Channel;
use crate::process;
use ralph_loop_domain::ports::{Notification, Occasion};
use ralph_loop_domain::text::notify::{body, heading};
use ralph_loop_domain::vars::Vars;

pub(crate) struct Desktop {
    vars: Vars,
}

impl Desktop {
    pub fn new(vars: &Vars) -> Self {
        Self { vars: vars.clone() }
    }
}

impl Channel for Desktop {
    fn send(&self, message: &Notification) -> Result<(), String> {
        process::run(&argv(message), &self.vars, "").map_err(|why| match why.contains("cannot be started") {
            true => format!("{why}; Debian's package `libnotify-bin` has it"),
            false => why,
        })
    }
}

fn argv(message: &Notification) -> Vec<String> {
    let urgency = match message.occasion {
        Occasion::NeedsHuman | Occasion::Failure => "critical",
        Occasion::Start => "low",
        Occasion::Gutter | Occasion::LimitWait | Occasion::Success => "normal",
    };
    // Notifications interpret some markup, and an argument must not look like an option.
    let plain = |text: String| text.replace('&', "&amp;").replace('<', "&lt;").replace('\0', " ");
    let heading = heading(message).replace('\0', " ");
    [
        "notify-send",
        "--app-name=ralph",
        &format!("--urgency={urgency}"),
        "--",
        &heading,
        &plain(body(message)),
    ]
    .map(str::to_owned)
    .to_vec()
}
