//! Being started again later.

use super::Call;
use crate::guard::category::{Category, Refusal};

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    let refuse = || call.refuse(Category::Persistence, "It would start by itself later.");
    match call.name {
        "crontab" if !call.has(&["-l"]) => refuse(),
        "at" | "batch" if !call.args.is_empty() || !call.stdin.text.is_empty() => refuse(),
        "systemctl" | "service" | "rc-update" | "update-rc.d" | "chkconfig" => {
            let changes = [
                "enable",
                "disable",
                "start",
                "stop",
                "restart",
                "mask",
                "unmask",
                "edit",
                "link",
                "daemon-reload",
                "reload",
                "set-property",
                "add",
                "defaults",
                "poweroff",
                "reboot",
                "halt",
                "isolate",
                "kill",
            ];
            if call.has(&changes) { refuse() } else { None }
        }
        "launchctl" if call.has(&["load", "bootstrap", "enable", "submit", "bootout", "unload"]) => refuse(),
        "schtasks" | "loginctl" if !call.has(&["list-sessions", "show", "status"]) => refuse(),
        "npm" | "pnpm" | "yarn"
            if call.has(&["config"])
                && call.has(&["set"])
                && call.args.iter().any(|arg| arg.text.starts_with("script-shell")) =>
        {
            refuse()
        }
        "ssh-copy-id" => refuse(),
        "pm2" if call.has(&["startup"]) => refuse(),
        _ => None,
    }
}
