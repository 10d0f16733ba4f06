//! A command in the arguments of a program that nobody here knows: whatever that program is, it may start it.

use super::Shell;
use crate::guard::value::{Field, Value};

/// Programs whose arguments are texts, patterns or names, or that work in a machine of their own.
const TALKERS: &[&str] = &[
    "echo",
    "printf",
    "print",
    "git",
    "gh",
    "glab",
    "hub",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "ag",
    "ack",
    "cat",
    "jq",
    "yq",
    "logger",
    "notify-send",
    "test",
    "[",
    "expr",
    "say",
    "ls",
    "touch",
    "mkdir",
    "claude",
    "codex",
    "gemini",
    "qwen",
    "opencode",
    "ralph",
    "docker",
    "podman",
    "nerdctl",
    "docker-compose",
    "kubectl",
    "vagrant",
    "lxc",
    "man",
    "which",
    "type",
    "read",
    "export",
    "alias",
    "sed",
    "awk",
    "gawk",
    "tee",
    "diff",
    "wc",
    "head",
    "tail",
    "sort",
    "curl",
    "wget",
    "slack",
    "http",
];
/// Programs that nobody names in passing, with what must follow them.
const STRONG: &[&str] = &["rm", "shred", "dd", "mkfs", "sh", "bash", "zsh", "dash"];
/// Arguments that are looked at.
const ARGUMENTS_MAX: usize = 24;

impl Shell<'_> {
    /// Looks at arguments that are a command themselves.
    pub(super) fn hidden_in_arguments(&mut self, name: &str, args: &[Field]) {
        let args = match name {
            // What stands after the dashes is a command, or goes to one.
            "npm" | "yarn" | "pnpm" => {
                let at = args.iter().position(|arg| arg.text == "--").map_or(args.len(), |at| at + 1);
                &args[at..]
            }
            _ if TALKERS.contains(&name) => return,
            _ => args,
        };
        for (at, arg) in args.iter().enumerate().take(ARGUMENTS_MAX) {
            let text = arg.text.as_str();
            let value = text.split_once('=').map_or(text, |(_, value)| value);
            if is_strong(text) && args.get(at + 1).is_some_and(|next| next.text.starts_with(['-', '/', '~']))
            {
                self.invoke(args[at..].to_vec(), &Value::default());
            } else if let Some((first, rest)) = value.trim_start().split_once(char::is_whitespace)
                && is_strong(first)
                && rest.trim_start().starts_with(['-', '/', '~'])
            {
                let line = value.trim_end_matches(['&', '|', ';', ' ']).to_owned();
                self.quiet_script(&line);
            }
            if self.is_over() {
                return;
            }
        }
    }
}

fn is_strong(word: &str) -> bool {
    STRONG.contains(&word.rsplit('/').next().unwrap_or(word))
}
