//! `ralph completions`: a completion script for a shell.

use crate::args::Cli;
use crate::error::CommandError;
use crate::output::Out;
use clap::CommandFactory as _;
use clap_complete::Shell;
use std::path::Path;

/// Prints the script to stdout; where it belongs depends on the shell.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(after_help = "Examples:
  ralph completions bash > ~/.local/share/bash-completion/completions/ralph
  ralph completions zsh > \"${fpath[1]}/_ralph\"
  ralph completions fish > ~/.config/fish/completions/ralph.fish")]
pub struct CompletionsArgs {
    /// The shell.
    pub shell: Shell,
}

/// Runs the command.
pub fn run(args: CompletionsArgs, _folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let CompletionsArgs { shell } = args;
    let script = script(shell);
    if out.json {
        out.value(
            &serde_json::json!({ "shell": shell.to_string(), "script": String::from_utf8_lossy(&script) }),
        );
    } else {
        out.raw(&script);
    }
    Ok(0)
}

fn script(shell: Shell) -> Vec<u8> {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ralph", &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum as _;

    #[test]
    fn every_shell_gets_a_script_that_knows_the_commands() {
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell)).unwrap();
            assert!(script.contains("restore") && script.contains("status"), "{shell}");
        }
    }
}
