//! Variables that some program takes for a command.

use super::Shell;
use crate::guard::rules;

/// Their names.
const RUN: &[&str] = &[
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MANPAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "BROWSER",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "BASH_ENV",
    "ENV",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "RSYNC_RSH",
    "CVS_RSH",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC",
    "RUSTDOC",
    "CC",
    "CXX",
    "MAKE",
    "TAR_OPTIONS",
    "KUBE_EDITOR",
    "SYSTEMD_EDITOR",
    "PERL5DB",
    "PYTHONSTARTUP",
    "FCEDIT",
    "SVN_EDITOR",
    "SVN_SSH",
    "HGEDITOR",
    "GOFLAGS",
    "npm_config_script_shell",
    "npm_config_editor",
];

impl Shell<'_> {
    /// Looks at what a variable is set to.
    pub(super) fn assigned_value(&mut self, name: &str, value: &str, words: &str) {
        self.judged(rules::assignment(name, value, self.places), words);
        let of_git = name.starts_with("GIT_")
            && ["_COMMAND", "_EDITOR", "_PAGER", "_ASKPASS", "_DIFF", "GIT_SSH"]
                .iter()
                .any(|end| name.ends_with(end));
        let runner =
            name.starts_with("CARGO_TARGET_") && (name.ends_with("_RUNNER") || name.ends_with("_LINKER"));
        if RUN.contains(&name) || of_git || runner {
            let line = value.trim_start_matches(['|', '-']).replace("-toolexec=", "").replace("-exec=", "");
            self.quiet_script(&line);
            self.prompt(value);
        }
    }

    /// A text that is expanded once more when it is used.
    pub(super) fn prompt(&mut self, text: &str) {
        if text.contains("$(") || text.contains('`') {
            self.inner_text(text);
        }
    }

    /// A text that is calculated with: what is substituted in it, and in the variables that it names.
    pub(super) fn arithmetic(&mut self, text: &str) {
        self.prompt(text);
        let names =
            text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|name| !name.is_empty());
        for name in names.take(64) {
            let value = self.vars.get(name).and_then(|fields| fields.first()).map(|field| field.text.clone());
            if let Some(value) = value.filter(|value| value != text) {
                self.prompt(&value);
            }
        }
    }
}
