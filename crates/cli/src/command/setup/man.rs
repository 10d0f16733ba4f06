//! `ralph man`: manual pages, generated from `--help`.

use crate::error::CommandError;
use crate::output::Out;
use clap::Command;
use ralph_loop_protocol::display::text::count;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph man | man -l -
  ralph man --dir ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Write all pages to this folder
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Print the environment variables as Markdown
    #[arg(long, hide = true, conflicts_with = "dir")]
    pub variables: bool,
}

/// `whole` is the command line with all commands.
pub fn run(args: ManArgs, whole: Command, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    if args.variables {
        out.own(ralph_loop_app::variables::markdown().as_bytes());
        return Ok(0);
    }
    let Some(dir) = args.dir else {
        let page = page(whole)?;
        if out.json {
            out.value(&serde_json::json!({ "page": String::from_utf8_lossy(&page) }));
        } else {
            out.own(&page);
        }
        return Ok(0);
    };
    let dir = folder.join(dir);
    let written = install(whole, &dir)?;
    if out.json {
        out.value(&serde_json::json!({ "dir": dir, "pages": written }));
    } else {
        out.say(format!("wrote {} to {}", count(written.len(), "page"), dir.display()));
    }
    Ok(0)
}

fn page(whole: Command) -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    clap_mangen::Man::new(whole)
        .render(&mut bytes)
        .map_err(|e| CommandError::environment(format!("cannot make the manual page: {e}")))?;
    Ok(bytes)
}

/// Writes all pages and returns their names.
fn install(whole: Command, dir: &Path) -> Result<Vec<String>, CommandError> {
    let failed = |e: std::io::Error| {
        CommandError::environment(format!("cannot write manual pages to `{}`: {e}", dir.display()))
            .hint("name a folder that you may write to")
    };
    std::fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(whole, dir).map_err(failed)?;
    let names =
        std::fs::read_dir(dir).map_err(failed)?.flatten().filter_map(|e| e.file_name().into_string().ok());
    let mut pages: Vec<String> = names.filter(|n| n.starts_with("ralph") && n.ends_with(".1")).collect();
    pages.sort();
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory as _;

    #[test]
    fn every_command_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let pages = install(Cli::command(), &folder.path().join("man1")).unwrap();
        for name in ["ralph.1", "ralph-run.1", "ralph-status.1", "ralph-restore.1"] {
            assert!(pages.iter().any(|p| p == name), "{name} is missing: {pages:?}");
        }
        assert!(
            String::from_utf8(page(Cli::command()).unwrap()).unwrap().contains("until your checks prove")
        );
    }
}
