//! What of a hidden home is still needed: the programs on the PATH and what they are made of. Read-only.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Homes of tool managers; none of them holds logins.
const MANAGERS: [&str; 21] = [
    ".rustup",
    ".pyenv",
    ".nvm",
    ".volta",
    ".asdf",
    ".sdkman/candidates",
    ".rbenv",
    ".bun/bin",
    ".deno/bin",
    ".fnm",
    ".local/bin",
    ".local/lib",
    ".local/share/claude",
    ".local/share/mise",
    ".local/share/fnm",
    ".local/share/pnpm",
    ".npm-global",
    ".cargo/bin",
    "go/bin",
    ".nix-profile",
    ".claude/local",
];

/// Names that are never shown, whatever leads there.
const NEVER: [&str; 12] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".config",
    ".netrc",
    ".git-credentials",
    ".claude",
    ".codex",
    ".gemini",
];

/// Most entries looked at in one folder of the PATH.
const ENTRIES: usize = 500;

/// What to show of the places in `hidden`.
pub(super) fn visible(home: &Path, path: Option<&OsStr>, hidden: &[PathBuf]) -> Vec<PathBuf> {
    let below = |path: &Path| hidden.iter().any(|place| path.starts_with(place));
    let mut found = BTreeSet::new();
    for manager in MANAGERS {
        let folder = home.join(manager);
        if folder.is_dir() {
            found.insert(folder);
        }
    }
    for folder in path.map(std::env::split_paths).into_iter().flatten() {
        if !folder.is_absolute() || !folder.is_dir() {
            continue;
        }
        if below(&folder) && folder != home {
            found.insert(folder.clone());
        }
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten().take(ENTRIES);
        for link in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink())) {
            if let Ok(target) = link.path().canonicalize()
                && below(&target)
            {
                found.insert(package(home, &target));
            }
        }
    }
    let secret = |path: &Path| {
        !path.starts_with(home.join(".claude/local"))
            && path.strip_prefix(home).is_ok_and(|inside| {
                inside
                    .components()
                    .next()
                    .is_none_or(|first| NEVER.iter().any(|name| first.as_os_str() == *name))
            })
    };
    found.retain(|path| !secret(path) && !hidden.contains(path));
    // The outer one of two shows the inner one, too.
    let all: Vec<PathBuf> = found.into_iter().collect();
    all.iter()
        .filter(|path| !all.iter().any(|other| other != *path && path.starts_with(other)))
        .cloned()
        .collect()
}

/// The folder that a program needs around itself: that of all node packages, or its own.
fn package(home: &Path, target: &Path) -> PathBuf {
    let modules = target.ancestors().filter(|at| at.file_name() == Some(OsStr::new("node_modules"))).last();
    match (modules, target.parent()) {
        (Some(modules), _) => modules.to_owned(),
        (None, Some(parent)) if parent != home && home.starts_with(parent) => target.to_owned(),
        (None, Some(parent)) if parent != home => parent.to_owned(),
        _ => target.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_shown_and_secrets_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        for folder in [".local/bin", ".ssh", "app/node_modules/x/bin", ".claude/local"] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        std::fs::write(home.join("app/node_modules/x/bin/x.js"), "").unwrap();
        std::os::unix::fs::symlink(home.join("app/node_modules/x/bin/x.js"), home.join(".local/bin/x"))
            .unwrap();
        let path = std::env::join_paths([home.join(".local/bin"), home.join(".ssh"), home.clone()]).unwrap();
        let shown = visible(&home, Some(&path), std::slice::from_ref(&home));
        assert_eq!(shown, [".claude/local", ".local/bin", "app/node_modules"].map(|p| home.join(p)));
    }
}
