//! Commands in task and config files.

use serde::{Deserialize, Serialize};

/// A command: a shell line, or an argument list that is run directly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
#[cfg_attr(feature = "schema", schemars(rename = "command"))]
pub enum CommandLine {
    /// Run by `sh -c`.
    Shell(#[cfg_attr(feature = "schema", schemars(length(min = 1)))] String),
    /// Run directly.
    Argv(#[cfg_attr(feature = "schema", schemars(length(min = 1)))] Vec<String>),
}

impl CommandLine {
    pub fn argv(&self) -> Vec<String> {
        match self {
            Self::Shell(line) => vec!["sh".into(), "-c".into(), line.clone()],
            Self::Argv(argv) => argv.clone(),
        }
    }
    /// The command as typed in a shell.
    pub fn display(&self) -> String {
        match self {
            Self::Shell(line) => line.clone(),
            Self::Argv(argv) => join_argv(argv),
        }
    }
}

/// An argument list as typed in a shell.
pub fn join_argv(argv: &[String]) -> String {
    let mut out = String::new();
    for (i, arg) in argv.iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        let plain =
            !arg.is_empty() && arg.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&b));
        if plain {
            out.push_str(arg);
        } else {
            out.push('\'');
            out.push_str(&arg.replace('\'', "'\\''"));
            out.push('\'');
        }
    }
    out
}
