//! What of a hidden home is still needed: the programs on the PATH and what they are made of. Read-only.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Homes of tool managers; none of them holds logins.
const MANAGERS: [&str; 25] = [
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
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".local/share/pipx",
    ".local/share/virtualenvs",
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

/// Most bytes of a `pyvenv.cfg`.
const CONFIG_MAX: u64 = 64 * 1024;

/// Variables that name the folder of a tool. What they name is shown where it looks like one: [`ROOTS`].
const NAMED: [&str; 12] = [
    "RUSTUP_HOME",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "NVM_DIR",
    "VOLTA_HOME",
    "ASDF_DATA_DIR",
    "MISE_DATA_DIR",
    "GOROOT",
    "JAVA_HOME",
    "DOTNET_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
];

/// What tells the folder of a tool, with its `bin`, from any other: a virtual environment, conda, Go, Node, Java, .NET, version
/// managers.
const ROOTS: [&str; 10] = [
    "pyvenv.cfg",
    "conda-meta",
    "src/runtime",
    "lib/node_modules",
    "lib/modules",
    "shared/Microsoft.NETCore.App",
    "shims",
    "nvm.sh",
    "toolchains",
    "tools/image",
];

/// What to show of the places in `hidden`, by the variables `var` of the user. What lies in `trees`, or leads through one, is not
/// the user's word: of that only what looks like a tool is shown.
pub(super) fn visible<'a>(
    home: &Path,
    var: impl Fn(&str) -> Option<&'a OsStr>,
    hidden: &[PathBuf],
    trees: &[&Path],
) -> Vec<PathBuf> {
    let below = |path: &Path| hidden.iter().any(|place| path.starts_with(place));
    let mut found = BTreeSet::new();
    let named = NAMED.iter().filter_map(|name| var(name)).map(PathBuf::from);
    for root in named.filter(|root| root.is_absolute() && below(root) && is_root(home, root)) {
        found.extend(behind(home, &root).filter(|path| below(path)));
        found.insert(root);
    }
    for manager in MANAGERS {
        let folder = home.join(manager);
        if folder.is_dir() {
            found.insert(folder);
        }
    }
    for folder in var("PATH").map(std::env::split_paths).into_iter().flatten() {
        if !folder.is_absolute() || !folder.is_dir() {
            continue;
        }
        if below(&folder) && folder != home {
            found.insert(folder.clone());
            if let Some(root) = root_of(home, &folder) {
                found.extend(behind(home, &root).filter(|path| below(path)));
                found.insert(root);
            }
        }
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten().take(ENTRIES);
        for link in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink())) {
            if let Ok(target) = link.path().canonicalize()
                && below(&target)
            {
                let own = !leads_through(&link.path(), trees);
                found.extend(if own { Some(package(home, &target)) } else { tool_around(home, &target) });
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

/// The folder of the tool whose programs are in `programs`.
fn root_of(home: &Path, programs: &Path) -> Option<PathBuf> {
    let own = ["bin", "shims", "condabin"].iter().any(|name| programs.file_name() == Some(OsStr::new(name)));
    programs.parent().filter(|root| own && is_root(home, root)).map(Path::to_owned)
}

/// Whether a folder is that of a tool and of nothing else.
fn is_root(home: &Path, folder: &Path) -> bool {
    // What is installed there lies beside everything that programs keep.
    let shared = folder.starts_with(home) && folder == home.join(".local");
    let python = || {
        let libraries = std::fs::read_dir(folder.join("lib")).into_iter().flatten().flatten().take(ENTRIES);
        libraries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("python"))
    };
    !shared
        && !home.starts_with(folder)
        && (ROOTS.iter().any(|name| folder.join(name).exists()) || folder.join("bin").is_dir() && python())
}

/// What a virtual environment was made from: the Python whose libraries it uses.
fn behind(home: &Path, root: &Path) -> impl Iterator<Item = PathBuf> {
    // It may lie in the repo: never waited for, and no more than it can be.
    let config = ralph_safe_fs::read_plain(root.join("pyvenv.cfg"), CONFIG_MAX).unwrap_or_default();
    let config = String::from_utf8_lossy(&config).into_owned();
    let programs = config.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == "home").then(|| PathBuf::from(value.trim()))
    });
    // By its own name and by where it really is: links lead from the one to the other.
    let real = programs.as_ref().and_then(|path| path.canonicalize().ok());
    let home = home.to_owned();
    programs.into_iter().chain(real).filter_map(move |path| root_of(&home, &path))
}

/// Whether a link lies in one of `trees`, or one of the links on its way does.
fn leads_through(link: &Path, trees: &[&Path]) -> bool {
    const LINKS: usize = 40;
    let mut at = link.to_owned();
    for _ in 0..LINKS {
        let (Some(folder), Some(name)) =
            (at.parent().and_then(|folder| folder.canonicalize().ok()), at.file_name())
        else {
            return true;
        };
        let place = folder.join(name);
        if trees.iter().any(|tree| place.starts_with(tree)) {
            return true;
        }
        match std::fs::read_link(&place) {
            Ok(target) => at = folder.join(target),
            Err(_) => return false,
        }
    }
    true
}

/// The tool that a program belongs to, where it is clearly one.
fn tool_around(home: &Path, target: &Path) -> Option<PathBuf> {
    is_program(target).then(|| target.parent().and_then(|programs| root_of(home, programs))).flatten()
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The folder that a program needs around itself: that of all node packages, that of its tool, or its own.
fn package(home: &Path, target: &Path) -> PathBuf {
    let modules = target.ancestors().filter(|at| at.file_name() == Some(OsStr::new("node_modules"))).last();
    match (modules, target.parent()) {
        (Some(modules), _) => modules.to_owned(),
        (None, Some(parent)) if root_of(home, parent).is_some() => {
            root_of(home, parent).unwrap_or_else(|| parent.to_owned())
        }
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
        let shown =
            visible(&home, |name| (name == "PATH").then_some(&*path), std::slice::from_ref(&home), &[]);
        assert_eq!(shown, [".claude/local", ".local/bin", "app/node_modules"].map(|p| home.join(p)));
    }

    #[test]
    fn a_link_of_the_repo_shows_nothing_but_a_tool() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let folders = [
            "repo/bin",
            "repo/.venv/bin",
            "work",
            "secrets/bin",
            "py/bin",
            "py/lib/python3.12",
            ".local/bin",
            ".local/lib",
        ];
        for folder in folders {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        for file in ["work/notes.txt", "secrets/bin/python3", "py/bin/python3"] {
            std::fs::write(home.join(file), "").unwrap();
            std::fs::set_permissions(home.join(file), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let link = |target: &str, name: &str| symlink(home.join(target), home.join(name)).unwrap();
        link("work/notes.txt", "repo/bin/x");
        link("secrets/bin/python3", "repo/.venv/bin/python3");
        link("py/bin/python3", "repo/.venv/bin/python");
        // The way of `npm link`: from the user's own folder through the repo.
        link("repo", ".local/lib/foo");
        link("work/notes.txt", "repo/cli.js");
        symlink("../lib/foo/cli.js", home.join(".local/bin/foo")).unwrap();
        let path = std::env::join_paths(
            ["repo/bin", "repo/.venv/bin", ".local/bin"].map(|folder| home.join(folder)),
        );
        let path = path.unwrap();
        let repo = home.join("repo");
        let var = |name: &str| (name == "PATH").then_some(&*path);
        let shown = visible(&home, var, std::slice::from_ref(&home), &[&repo]);
        let wanted = [".local/bin", ".local/lib", "py", "repo/.venv/bin", "repo/bin"];
        assert_eq!(shown, wanted.map(|folder| home.join(folder)));
    }

    #[test]
    fn a_tool_is_shown_whole_and_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        for folder in [
            "venvs/x/bin",
            "pythons/3.12/bin",
            "pythons/3.12/lib/python3.12",
            "sdk/go/bin",
            "sdk/go/src/runtime",
            "rust/toolchains",
            "private/bin",
            "private/letters",
            ".ssh/bin",
            ".ssh/shims",
            ".local/bin",
            ".local/lib/python3.12",
            ".local/share/keyrings",
        ] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        std::fs::create_dir(home.join("bin")).unwrap();
        let python = home.join("pythons/3.12/bin");
        std::fs::write(home.join("venvs/x/pyvenv.cfg"), format!("home = {}\n", python.display())).unwrap();
        let bins = ["venvs/x/bin", "sdk/go/bin", "private/bin", ".ssh/bin", ".local/bin", "bin"];
        let path = std::env::join_paths(bins.map(|folder| home.join(folder))).unwrap();
        let (rust, letters, keys) = (home.join("rust"), home.join("private"), home.join(".ssh"));
        let var = |name: &str| match name {
            "PATH" => Some(&*path),
            "RUSTUP_HOME" => Some(rust.as_os_str()),
            "JAVA_HOME" => Some(letters.as_os_str()),
            "PYENV_ROOT" => Some(keys.as_os_str()),
            "VOLTA_HOME" => Some(home.as_os_str()),
            _ => None,
        };
        let shown = visible(&home, var, std::slice::from_ref(&home), &[]);
        let wanted =
            [".local/bin", ".local/lib", "bin", "private/bin", "pythons/3.12", "rust", "sdk/go", "venvs/x"];
        assert_eq!(shown, wanted.map(|folder| home.join(folder)));
    }
}
