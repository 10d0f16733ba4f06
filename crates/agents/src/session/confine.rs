//! Where an agent's own file actions may write.
//!
//! This only refuses early, with a reason. The sandbox enforces it (it refuses links that lead out), and the engine
//! checks protected files after every session, as a command can write anywhere in the workspace.

use ralph_loop_domain::repo::protect;
use std::path::{Component, Path, PathBuf};

const PATH_MAX: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileOperation {
    /// Text is appended.
    Append,
    /// Anything else: created, overwritten, edited, removed.
    Edit,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathRefusal {
    #[error("`{0}` names no file; give a path relative to the workspace")]
    NoFile(String),
    /// It is too long or contains invalid characters.
    #[error("a path of {0} bytes or with control characters is not taken")]
    Odd(usize),
    /// It leads outside.
    #[error("`{0}` leads out of the workspace; give a path relative to it, without `..`")]
    Outside(String),
    /// It is in git's folder.
    #[error("`{0}` belongs to git; files are committed by the engine")]
    Git(String),
    /// It belongs to the engine.
    #[error(
        "`{0}` belongs to the engine; of `.ralph/` only `progress.md` is yours, and `guardrails.md` may grow"
    )]
    Engine(String),
    /// It must stay unchanged.
    #[error("`{0}` is protected: it must stay as it was when the run started")]
    Protected(String),
}

/// The path of a changeable file, without `.` and doubled slashes.
pub(crate) fn file(path: &str, change: FileOperation, protected: &[String]) -> Result<PathBuf, PathRefusal> {
    let names = names(path)?;
    let (Some(first), Some(_)) = (names.first(), names.last()) else {
        return Err(PathRefusal::NoFile(path.to_owned()));
    };
    if path.ends_with('/') || path.ends_with("/.") {
        return Err(PathRefusal::NoFile(path.to_owned()));
    }
    if first.eq_ignore_ascii_case(".ralph") && !theirs(&names, change) {
        return Err(PathRefusal::Engine(path.to_owned()));
    }
    let plain = names.join("/");
    if protect::covers(protected, &plain) {
        return Err(PathRefusal::Protected(path.to_owned()));
    }
    Ok(PathBuf::from(plain))
}

/// The path of a folder that commands may start in; "" is the workspace itself.
pub(crate) fn folder(path: &str) -> Result<PathBuf, PathRefusal> {
    Ok(PathBuf::from(names(path)?.join("/")))
}

/// What sessions may write in the engine's folder: messages for each other, and append-only lessons.
fn theirs(names: &[&str], change: FileOperation) -> bool {
    match names {
        [".ralph", "progress.md"] => true,
        [".ralph", "guardrails.md"] => change == FileOperation::Append,
        _ => false,
    }
}

fn names(path: &str) -> Result<Vec<&str>, PathRefusal> {
    if path.len() > PATH_MAX || path.chars().any(char::is_control) {
        return Err(PathRefusal::Odd(path.len()));
    }
    // A backslash is a plain character here, but `..\x` or `C:\x` is meant as a path.
    if path.contains('\\') || path.starts_with('~') {
        return Err(PathRefusal::Outside(path.to_owned()));
    }
    let mut names = Vec::new();
    for component in Path::new(path).components() {
        match component {
            Component::CurDir => {}
            Component::Normal(name) => {
                let name = name.to_str().unwrap_or_default();
                // Some file systems drop dots and spaces at the end of a name, or ignore case.
                if name.trim_end_matches(['.', ' ']).eq_ignore_ascii_case(".git")
                    || name.eq_ignore_ascii_case("git~1")
                {
                    return Err(PathRefusal::Git(path.to_owned()));
                }
                names.push(name);
            }
            _ => return Err(PathRefusal::Outside(path.to_owned())),
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(path: &str) -> Result<PathBuf, PathRefusal> {
        file(path, FileOperation::Edit, &["tests/**".to_owned(), "Makefile".to_owned(), "docs/".to_owned()])
    }

    #[test]
    fn evil_paths_are_refused_each_for_its_reason() {
        let outside =
            ["../x", "/etc/x", "a/../../x", "a/..", "..", "C:\\x", "..\\x", "~/x", "~root/x", "/", "//x"];
        for path in outside {
            assert_eq!(edit(path), Err(PathRefusal::Outside(path.into())), "{path}");
        }
        for path in [".git", ".git/hooks/x", ".GIT/config", "sub/.Git/x", "./.git", ".git./x", "GIT~1/x"] {
            assert_eq!(edit(path), Err(PathRefusal::Git(path.into())), "{path}");
        }
        for path in [".ralph/guardrails.md", ".ralph", ".RALPH/progress.md", ".ralph/runs/1/x", "./.ralph/x"]
        {
            assert_eq!(edit(path), Err(PathRefusal::Engine(path.into())), "{path}");
        }
        for path in ["tests/a.rs", "./tests/deep/b", "Makefile", "docs/x/y.md", "docs//x", "tests//a"] {
            assert_eq!(edit(path), Err(PathRefusal::Protected(path.into())), "{path}");
        }
        for path in ["", ".", "./", "a/", "a/."] {
            assert_eq!(edit(path), Err(PathRefusal::NoFile(path.into())), "{path}");
        }
        for path in ["a\nb", "a\0b", &"x".repeat(2000)] {
            assert!(matches!(edit(path), Err(PathRefusal::Odd(_))), "{path}");
        }
    }

    #[test]
    fn good_paths_come_out_plain() {
        for (path, plain) in [
            ("a", "a"),
            ("./a//b/./c", "a/b/c"),
            (".gitignore", ".gitignore"),
            (".github/x", ".github/x"),
            (".ralph/progress.md", ".ralph/progress.md"),
            ("sub/.ralph/x", "sub/.ralph/x"),
            ("ünï/c öde", "ünï/c öde"),
            ("a..b", "a..b"),
        ] {
            assert_eq!(edit(path), Ok(PathBuf::from(plain)), "{path}");
        }
        assert!(file(".ralph/guardrails.md", FileOperation::Append, &[]).is_ok());
        assert_eq!(folder("."), Ok(PathBuf::new()));
        assert_eq!(folder("sub/x/"), Ok(PathBuf::from("sub/x")));
        assert_eq!(folder(".."), Err(PathRefusal::Outside("..".into())));
        assert_eq!(folder("/"), Err(PathRefusal::Outside("/".into())));
        assert_eq!(folder(".git"), Err(PathRefusal::Git(".git".into())));
    }
}
