//! Which workspace paths are shown.

use crate::http::problem::Problem;
use ralph_loop_app::Environment;
use ralph_loop_domain::secret_name::{FileSecrecy, file_secrecy, is_secret_folder};
use ralph_loop_git::Git;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_task::config::is_inside;
use ralph_loop_task::dialect::Dialect;
use std::path::{Component, Path as FilePath, PathBuf};

/// A workspace path that may be shown. Rejects paths that lead elsewhere, belong to git or look secret.
pub(in crate::routes) fn shown_path(path: &str) -> Result<PathBuf, Problem> {
    if path.len() > 4096 || path.contains('\0') || !is_inside(path) {
        return Err(Problem::missing("no such path in the workspace"));
    }
    let parts: PathBuf =
        FilePath::new(path).components().filter(|part| matches!(part, Component::Normal(_))).collect();
    if parts.components().any(|part| part.as_os_str() == ".git") {
        return Err(Problem::forbidden("git's own files aren't served"));
    }
    let in_secret_folder = parts.ancestors().any(|at| !at.as_os_str().is_empty() && is_secret_folder(at));
    if in_secret_folder || file_secrecy(&parts) != FileSecrecy::Open {
        return Err(Problem::forbidden("the name of this file says that it holds secrets: it is not shown")
            .hint("secrets are set on the settings page, and never shown again"));
    }
    Ok(parts)
}

/// Refuses a file of the repo in `folder` as a task that is neither named like one nor tracked by git: all users can
/// read a task.
pub(in crate::routes) fn refuse_private_task(
    env: &Environment,
    folder: &FilePath,
    file: &FilePath,
) -> Result<(), Problem> {
    let name = file.file_name().unwrap_or_default();
    if Dialect::ALL.iter().any(|dialect| FilePath::new(dialect.main_file()).file_name() == Some(name)) {
        return Ok(());
    }
    let own = RalphDir::of(FilePath::new("")).path().join("tasks");
    let git = Git::in_folder(env.vars(), folder);
    let path = file.to_string_lossy();
    match file.starts_with(own)
        || git.call(["ls-files", "--error-unmatch", "--", path.as_ref()]).run().is_ok()
    {
        true => Ok(()),
        false => Err(Problem::forbidden(format!("`{path}` can't be a task here: git doesn't track it"))
            .hint("commit it, or send its text as `text`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leaves_the_workspace_or_shows_a_secret() {
        for fine in ["a.rs", "src/a.rs", "./src/a.rs", ".env.example", ".ralph/notes.md"] {
            assert!(shown_path(fine).is_ok(), "{fine}");
        }
        for wrong in [
            "",
            "..",
            "../x",
            "a/../../x",
            "/etc/passwd",
            "a\0b",
            ".git/config",
            "sub/.git/config",
            ".env",
            "deep/.env.local",
            ".ssh/config",
            "id_rsa",
            "server.pem",
            ".aws/credentials",
        ] {
            assert!(shown_path(wrong).is_err(), "{wrong}");
        }
    }
}
