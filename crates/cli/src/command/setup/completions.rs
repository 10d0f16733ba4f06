//! `ralph completions`: prints a shell completion script.

use crate::error::CommandError;
use crate::output::Out;
use clap::Command;
use clap_complete::Shell;

#[derive(Debug, Clone, Copy, clap::Args)]
#[command(after_help = "Examples:
  ralph completions bash > ~/.local/share/bash-completion/completions/ralph
  ralph completions zsh > \"${fpath[1]}/_ralph\"
  ralph completions fish > ~/.config/fish/completions/ralph.fish")]
pub struct CompletionsArgs {
    /// Shell
    pub shell: Shell,
}

/// `whole` is the command line with all commands.
pub fn run(args: CompletionsArgs, whole: Command, out: &Out) -> Result<u8, CommandError> {
    let CompletionsArgs { shell } = args;
    let script = script(shell, whole);
    if out.json {
        out.value(
            &serde_json::json!({ "shell": shell.to_string(), "script": String::from_utf8_lossy(&script) }),
        );
    } else {
        out.own(&script);
    }
    Ok(0)
}

fn script(shell: Shell, mut whole: Command) -> Vec<u8> {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut whole, "ralph", &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::{CommandFactory as _, ValueEnum as _};

    #[test]
    fn every_shell_gets_a_script_that_knows_the_commands() {
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell, Cli::command())).unwrap();
            assert!(script.contains("restore") && script.contains("status"), "{shell}");
        }
    }
}
