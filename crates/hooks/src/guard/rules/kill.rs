//! Ending processes that are not the session's own.

use super::Call;
use crate::guard::category::{Category, Refusal};

/// Names whose end takes the session, its loop or the user's other work with it.
const OTHERS: &[&str] = &[
    "ralph",
    "claude",
    "codex",
    "gemini",
    "qwen",
    "opencode",
    "node",
    "python",
    "python3",
    "bash",
    "sh",
    "zsh",
    "sshd",
    "systemd",
    "init",
    "dockerd",
    "containerd",
    "docker",
    "tmux",
    "screen",
    "code",
    "cursor",
    "bwrap",
    "ssh-agent",
    "gpg-agent",
    "java",
    "ruby",
    "Xorg",
    "postgres",
    "mysqld",
];

/// Whether a name is that of the session, its loop or the user's other work.
pub fn is_others(name: &str) -> bool {
    OTHERS.contains(&name)
}

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    let refuse = |why: &str| call.refuse(Category::Kill, why);
    match call.name {
        "kill" => {
            let lists = call.has(&["-l", "-L", "--list"]);
            // The first `-9` names the signal; a later one would be a group of processes.
            let targets = call.args.iter().enumerate().filter(|(at, arg)| {
                let signal = *at == 0 && arg.text.starts_with('-');
                let named = *at > 0 && call.args[at - 1].text == "-s";
                !signal && !named && arg.text != "--"
            });
            let all = targets.map(|(_, arg)| arg.text.as_str()).any(|pid| ["1", "-1", "0"].contains(&pid));
            if all && !lists { refuse("It ends processes that it did not start.") } else { None }
        }
        "killall5" | "skill" | "slay" => refuse("It ends processes that it did not start."),
        "pkill" | "killall" => {
            let by_user = call.args.iter().any(|arg| {
                let text = arg.text.as_str();
                ["--uid", "--euid", "--user", "--group", "--session", "--parent"]
                    .contains(&text.split('=').next().unwrap_or(text))
                    || text.starts_with('-') && !text.starts_with("--") && text[1..].contains(['u', 'U', 'G'])
            });
            let broad = call.operands().any(|arg| {
                let name = arg.text.trim_matches(['^', '$', '"']);
                let short = name.trim_matches(['.', '*', '+', '?']);
                short.is_empty()
                    || OTHERS.contains(&short)
                    || short.rsplit('/').next().is_some_and(|base| OTHERS.contains(&base))
            });
            let signal_only = call.operands().next().is_none()
                && !call.args.is_empty()
                && !call.has(&["--help", "-V", "--version", "-l"]);
            if by_user || broad || signal_only {
                refuse("It ends processes that it did not start.")
            } else {
                None
            }
        }
        "xkill" | "systemd-cgls" => None,
        "fuser" if call.short('k') => None,
        _ => None,
    }
}
