//! Where `ralph` was installed: a prefix with `bin/ralph`, and in `share/ralph/installed` the list of what was put there.

use crate::error::UpgradeError;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The list, below the prefix. Its first line is `ralph VERSION TARGET`; each other is the path of a file.
pub(crate) const LIST: &str = "share/ralph/installed";
/// Bytes of the list that are read.
const LIST_MAX: u64 = 1024 * 1024;

/// A place that `install.sh` made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The folder above `bin`.
    pub prefix: PathBuf,
    /// What was put there, relative to it.
    pub files: Vec<PathBuf>,
}

impl Place {
    /// The place of a program; an error says what renews it where it came another way.
    pub fn of(program: &Path) -> Result<Self, UpgradeError> {
        let real = program.canonicalize().map_err(UpgradeError::file("find", program))?;
        let prefix = real.parent().filter(|bin| bin.ends_with("bin")).and_then(Path::parent);
        let list = prefix.map(|prefix| prefix.join(LIST));
        let text = list.filter(|list| fs::metadata(list).is_ok_and(|m| m.is_file() && m.len() < LIST_MAX));
        let text = text.and_then(|list| fs::read_to_string(list).ok());
        let (Some(prefix), Some(text)) = (prefix, text) else {
            return Err(UpgradeError::NotOurs {
                program: real.display().to_string(),
                instead: instead(&real),
            });
        };
        let files = text.lines().skip(1).map(PathBuf::from).filter(|path| is_below(path)).collect();
        Ok(Self { prefix: prefix.to_owned(), files })
    }

    /// The list of what is installed now.
    pub(crate) fn list(version: &str, target: &str, files: &[PathBuf]) -> String {
        let mut lines: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
        lines.push(LIST.to_owned());
        lines.sort();
        lines.dedup();
        format!("ralph {version} {target}\n{}\n", lines.join("\n"))
    }
}

/// Whether a path of the list stays below the prefix.
fn is_below(path: &Path) -> bool {
    !path.as_os_str().is_empty() && path.components().all(|part| matches!(part, Component::Normal(_)))
}

/// What renews a program that a package manager put there.
fn instead(program: &Path) -> String {
    let has = |name: &str| program.components().any(|part| part.as_os_str() == name);
    let known = if has("node_modules") || has("_npx") {
        "npm did: `npm install -g ralph-loop-cli@latest`"
    } else if has("Cellar") || has("homebrew") || has("linuxbrew") {
        "Homebrew did: `brew upgrade ralph`"
    } else if has("pipx") {
        "pipx did: `pipx upgrade ralph-loop-cli`"
    } else if has("uv") {
        "uv did: `uv tool upgrade ralph-loop-cli`"
    } else if has(".cargo") {
        "cargo did: `cargo install --locked --path crates/cli`, in a newer checkout"
    } else if has("nix") {
        "Nix did: renew its input"
    } else if program.starts_with("/usr/bin") {
        "a package did: `sudo apt install --only-upgrade ralph-loop-cli`, or the way of your system"
    } else {
        "install it with install.sh, or renew it the way it came"
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_known_by_its_list_and_paths_that_lead_out_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let prefix = folder.path().canonicalize().unwrap();
        fs::create_dir_all(prefix.join("bin")).unwrap();
        fs::create_dir_all(prefix.join("share/ralph")).unwrap();
        fs::write(prefix.join("bin/ralph"), "").unwrap();
        assert!(matches!(Place::of(&prefix.join("bin/ralph")), Err(UpgradeError::NotOurs { .. })));
        fs::write(prefix.join(LIST), "ralph 0.1.0 t\nbin/ralph\n../../etc/passwd\n/etc/passwd\n\n").unwrap();
        let place = Place::of(&prefix.join("bin/ralph")).unwrap();
        assert_eq!(place, Place { prefix, files: vec!["bin/ralph".into()] });
    }

    #[test]
    fn each_package_manager_is_named() {
        for (path, word) in [
            ("/usr/lib/node_modules/ralph-loop/bin/ralph", "npm"),
            ("/home/a/.local/pipx/venvs/ralph-loop/bin/ralph", "pipx"),
            ("/home/a/.cargo/bin/ralph", "cargo"),
            ("/usr/bin/ralph", "apt"),
            ("/opt/homebrew/bin/ralph", "brew"),
            ("/srv/ralph", "install.sh"),
        ] {
            assert!(instead(Path::new(path)).contains(word), "{path}");
        }
    }
}
