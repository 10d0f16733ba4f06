//! Finds what is needed outside the system's view: the programs on the PATH, named ones, and their parts. Real files and
//! folders are mounted, links recreated: nothing is ever mounted over a link.

use super::system::SystemView;
use super::trail::Trail;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
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

/// Names that are never visible, whatever leads there.
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

const ENTRIES: usize = 5000;

const FIRST_LINE_MAX: u64 = 256;

const CONFIG_MAX: u64 = 64 * 1024;

/// Variables that name a tool's folder, which is visible if it looks like one: [`ROOTS`].
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

/// Marks a tool's folder, with its `bin`: Homebrew, a virtual environment, conda, Go, Node, Java, .NET, version
/// managers.
const ROOTS: [&str; 11] = [
    "Cellar",
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

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(in crate::local::isolation) struct Shown {
    /// Files and folders by real path, none inside another: read-only.
    pub(in crate::local::isolation) mounts: Vec<PathBuf>,
    /// Links outside those, with their targets.
    pub(in crate::local::isolation) links: BTreeMap<PathBuf, PathBuf>,
}

/// Where to look, and what was requested by name.
pub(in crate::local::isolation) struct Wanted<'a> {
    pub(in crate::local::isolation) home: &'a Path,
    pub(in crate::local::isolation) system: &'a SystemView,
    /// Hidden whatever is around them, and never visible as a whole.
    pub(in crate::local::isolation) hidden: &'a [PathBuf],
    /// The repo. Its links don't speak for the user: behind them, only what looks like a tool is visible.
    pub(in crate::local::isolation) trees: &'a [&'a Path],
    /// Programs, each with its tool.
    pub(in crate::local::isolation) programs: &'a [PathBuf],
    /// Files and folders, each alone.
    pub(in crate::local::isolation) named: &'a [PathBuf],
    /// Virtual environments: each one's base Python is visible.
    pub(in crate::local::isolation) environments: &'a [PathBuf],
}

/// Finds what to make visible: what was requested by name, and what the user's variables `var` lead to.
pub(in crate::local::isolation) fn shown<'a>(
    wanted: &Wanted<'_>,
    var: impl Fn(&str) -> Option<&'a OsStr>,
) -> Shown {
    let mut view =
        View { wanted, mounts: BTreeSet::new(), links: BTreeMap::new(), followed: BTreeSet::new() };
    for root in NAMED.iter().filter_map(|name| var(name)).map(Path::new) {
        view.show(root, |view, root, _| view.is_root(root).then(|| root.to_owned()));
    }
    for environment in wanted.environments {
        view.show_behind(environment, environment);
    }
    for manager in MANAGERS {
        let folder = wanted.home.join(manager);
        view.show(&folder, |_, folder, by_repo| (folder.is_dir() && !by_repo).then(|| folder.to_owned()));
    }
    let path = var("PATH").map(std::env::split_paths).into_iter().flatten();
    for folder in path.filter(|folder| folder.is_absolute()) {
        view.show(&folder, |view, folder, by_repo| {
            let own = || (folder.is_dir() && !by_repo).then(|| add_on(folder).unwrap_or(folder.to_owned()));
            view.root_of(folder).or_else(own)
        });
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten().take(ENTRIES);
        for link in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink())) {
            view.show(&link.path(), |view, file, by_repo| match by_repo {
                true => view.tool_around(file),
                false => is_program(file).then(|| view.package(file)),
            });
        }
    }
    for program in wanted.programs {
        view.show(program, |view, file, by_repo| match by_repo {
            true => Some(view.tool_around(file).unwrap_or_else(|| file.to_owned())),
            false => Some(view.package(file)),
        });
    }
    for path in wanted.programs.iter().chain(wanted.named) {
        view.show_named(path);
    }
    view.finish()
}

/// The parts of a program in the repo: itself, its real file, and all packages around it.
pub(in crate::local::isolation) fn parts_in_repo(program: &Path) -> Vec<PathBuf> {
    let real = Trail::of(program).map(|trail| trail.end);
    [Some(program), real.as_deref(), packages(program)].into_iter().flatten().map(Path::to_owned).collect()
}

/// The outermost folder of node packages around a file.
fn packages(file: &Path) -> Option<&Path> {
    file.ancestors().filter(|at| at.file_name() == Some(OsStr::new("node_modules"))).last()
}

struct View<'a> {
    wanted: &'a Wanted<'a>,
    mounts: BTreeSet<PathBuf>,
    links: BTreeMap<PathBuf, PathBuf>,
    /// Real files whose interpreters are known.
    followed: BTreeSet<PathBuf>,
}

impl View<'_> {
    /// Makes `path` visible, with the links that lead there and its parts. `whole` says what to include around its
    /// real file or folder; its last argument is whether a link of the repo led there.
    fn show(&mut self, path: &Path, whole: impl Fn(&Self, &Path, bool) -> Option<PathBuf>) {
        let Some(trail) = Trail::of(path) else { return };
        if !self.is_hidden(&trail.end) && !trail.links.iter().any(|(at, _)| self.is_hidden(at)) {
            return;
        }
        let by_repo = trail.leads_through(self.wanted.trees);
        let part = whole(self, &trail.end, by_repo);
        let hidden = self.is_hidden(&trail.end);
        let Some(part) = part.filter(|part| !hidden || self.may_be_seen(part)) else { return };
        // Logins are put at these names: a link there would replace them.
        if !trail.links.iter().all(|(at, _)| self.may_be_seen(at)) {
            return;
        }
        self.links.extend(trail.links);
        self.show_behind(&part, &trail.end);
        if hidden {
            self.mounts.insert(part);
        }
    }

    /// Makes a requested name visible, and nothing around it; for a script also its interpreter.
    fn show_named(&mut self, path: &Path) {
        let Some(trail) = Trail::of(path) else { return };
        if self.is_hidden(&trail.end) && !self.wanted.home.starts_with(&trail.end) {
            self.mounts.insert(trail.end.clone());
        }
        let links: Vec<_> = trail.links.into_iter().filter(|(at, _)| self.may_be_seen(at)).collect();
        self.links.extend(links);
        self.show_behind(&trail.end, &trail.end);
    }

    /// Makes visible what the tool in `part` with the program `end` depends on: a virtual environment's Python, and a
    /// script's interpreter.
    fn show_behind(&mut self, part: &Path, end: &Path) {
        if !self.followed.insert(end.to_owned()) {
            return;
        }
        for behind in python_of(part).into_iter().chain(interpreter(end)) {
            self.show(&behind, |view, end, _| match end.is_dir() {
                true => view.root_of(end),
                false => view.tool_around(end),
            });
        }
    }

    fn finish(self) -> Shown {
        let apart = |at: &Path| self.wanted.hidden.iter().any(|hidden| hidden == at);
        let outer = |path: &Path| {
            let around = path.ancestors().skip(1).take_while(|around| !apart(around));
            around.into_iter().any(|around| self.mounts.contains(around))
        };
        let mounts: Vec<PathBuf> = self.mounts.iter().filter(|path| !outer(path)).cloned().collect();
        let seen = |at: &Path| !self.is_hidden(at) || mounts.iter().any(|mount| at.starts_with(mount));
        let links = self.links.iter().filter(|(at, _)| !seen(at)).map(|(at, to)| (at.clone(), to.clone()));
        Shown { links: links.collect(), mounts }
    }

    fn is_hidden(&self, path: &Path) -> bool {
        !self.wanted.system.shows(path) || self.wanted.hidden.iter().any(|place| path.starts_with(place))
    }

    /// Whether a real file or folder may be visible: never a whole hidden path or one that holds parts of the system,
    /// and none of [`NEVER`] except packages in it.
    fn may_be_seen(&self, path: &Path) -> bool {
        let home = self.wanted.home;
        let tool = path.starts_with(home.join(".claude/local"))
            || path.components().any(|part| part.as_os_str() == "node_modules");
        (!self.is_secret(path) || tool)
            && !home.starts_with(path)
            && !self.wanted.system.is_around(path)
            && !self.wanted.hidden.iter().any(|place| place == path)
    }

    fn is_secret(&self, path: &Path) -> bool {
        let first = |inside: &Path| inside.components().next().map(|part| part.as_os_str().to_owned());
        let inside = path.strip_prefix(self.wanted.home).ok();
        inside.is_some_and(|inside| first(inside).is_none_or(|first| NEVER.iter().any(|name| first == *name)))
    }

    /// The folder of the tool whose programs are in `programs`.
    fn root_of(&self, programs: &Path) -> Option<PathBuf> {
        let own =
            ["bin", "shims", "condabin"].iter().any(|name| programs.file_name() == Some(OsStr::new(name)));
        programs.parent().filter(|root| own && self.is_root(root)).map(Path::to_owned)
    }

    /// Whether a folder belongs to a single tool and nothing else.
    fn is_root(&self, folder: &Path) -> bool {
        let python = || {
            let libraries =
                std::fs::read_dir(folder.join("lib")).into_iter().flatten().flatten().take(ENTRIES);
            libraries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("python"))
        };
        !self.is_shared(folder, true)
            && (ROOTS.iter().any(|name| folder.join(name).exists())
                || folder.join("bin").is_dir() && python())
    }

    /// Whether a folder holds several tools: the home and its parents, and those in which managers keep their
    /// folders.
    fn is_shared(&self, folder: &Path, own_bin: bool) -> bool {
        let home = self.wanted.home;
        let mut managers = MANAGERS.iter().map(|name| home.join(name));
        home.starts_with(folder)
            || self.wanted.system.is_around(folder)
            // `/opt`, `/srv`: not one tool, unless it looks like one.
            || !own_bin && folder.parent().is_some_and(|above| above.parent().is_none())
            || managers.any(|manager| {
                manager != folder
                    && manager.starts_with(folder)
                    && !(own_bin && manager.parent() == Some(folder) && manager.ends_with("bin"))
            })
    }

    /// The tool that a program clearly belongs to, if any.
    fn tool_around(&self, program: &Path) -> Option<PathBuf> {
        is_program(program).then(|| program.parent().and_then(|programs| self.root_of(programs))).flatten()
    }

    /// What a program needs around itself: the folder of all node packages, its tool's, or its own.
    fn package(&self, file: &Path) -> PathBuf {
        let around = file.parent().filter(|folder| !self.is_shared(folder, false));
        let tool = || file.parent().and_then(|programs| self.root_of(programs).or_else(|| add_on(programs)));
        match packages(file) {
            Some(packages) => packages.to_owned(),
            None => tool().unwrap_or_else(|| around.unwrap_or(file).to_owned()),
        }
    }
}

/// The package below `/opt` that a folder belongs to: each has a folder there.
fn add_on(folder: &Path) -> Option<PathBuf> {
    let name = folder.strip_prefix("/opt").ok()?.components().next()?;
    Some(Path::new("/opt").join(name))
}

/// The folder with the Python that a virtual environment was made from.
fn python_of(environment: &Path) -> Option<PathBuf> {
    // It may be in the repo: doesn't block, and reads a bounded size.
    let config = ralph_loop_safe_fs::read_plain(environment.join("pyvenv.cfg"), CONFIG_MAX).ok()?;
    String::from_utf8_lossy(&config).lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == "home").then(|| PathBuf::from(value.trim()))
    })
}

/// The program that runs a script, by its first line.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut start = Vec::new();
    let file = is_program(script).then(|| ralph_loop_safe_fs::open_plain(script).ok()).flatten()?;
    file.take(FIRST_LINE_MAX).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let word = line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(word)))
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(path: &Path, text: &str) {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A system of which only what a test hides is hidden.
    fn everything() -> SystemView {
        SystemView { readable: vec!["/".into()], links: Vec::new() }
    }

    fn mounts<'a>(home: &Path, trees: &[&Path], var: impl Fn(&str) -> Option<&'a OsStr>) -> Vec<PathBuf> {
        shown_with(home, trees, &[], var)
    }

    fn shown_with<'a>(
        home: &Path,
        trees: &[&Path],
        environments: &[PathBuf],
        var: impl Fn(&str) -> Option<&'a OsStr>,
    ) -> Vec<PathBuf> {
        let (system, hidden) = (everything(), [home.to_owned()]);
        shown(
            &Wanted {
                home,
                system: &system,
                hidden: &hidden,
                trees,
                programs: &[],
                named: &[],
                environments,
            },
            var,
        )
        .mounts
    }

    #[test]
    fn programs_are_shown_and_secrets_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        for folder in [".local/bin", ".ssh", "app/node_modules/x/bin", ".claude/local"] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        program(&home.join("app/node_modules/x/bin/x.js"), "");
        std::os::unix::fs::symlink(home.join("app/node_modules/x/bin/x.js"), home.join(".local/bin/x"))
            .unwrap();
        let path = std::env::join_paths([home.join(".local/bin"), home.join(".ssh"), home.clone()]).unwrap();
        let shown = mounts(&home, &[], |name| (name == "PATH").then_some(&*path));
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
            program(&home.join(file), "");
        }
        let link = |target: &str, name: &str| symlink(home.join(target), home.join(name)).unwrap();
        link("work/notes.txt", "repo/bin/x");
        link("secrets/bin/python3", "repo/.venv/bin/python3");
        link("py/bin/python3", "repo/.venv/bin/python");
        // As `npm link` does it: from the user's folder through the repo.
        link("repo", ".local/lib/foo");
        link("work/notes.txt", "repo/cli.js");
        symlink("../lib/foo/cli.js", home.join(".local/bin/foo")).unwrap();
        let path = std::env::join_paths(
            ["repo/bin", "repo/.venv/bin", ".local/bin"].map(|folder| home.join(folder)),
        );
        let path = path.unwrap();
        let repo = home.join("repo");
        let var = |name: &str| (name == "PATH").then_some(&*path);
        let shown = mounts(&home, &[&repo], var);
        let wanted = [".local/bin", ".local/lib", "py", "repo/.venv/bin", "repo/bin"];
        assert_eq!(shown, wanted.map(|folder| home.join(folder)));
    }

    #[test]
    fn named_paths_are_shown_alone_and_shared_folders_never() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        for file in ["x/agent", "letters/script", "dot/claude/run", ".local/share/tool", ".cargo/tool"] {
            std::fs::create_dir_all(home.join(file).parent().unwrap()).unwrap();
            program(&home.join(file), "#!/bin/sh\n");
        }
        std::fs::create_dir_all(home.join("bin")).unwrap();
        std::fs::create_dir_all(home.join(".local/share/claude")).unwrap();
        let link = |target: &str, name: &str| symlink(home.join(target), home.join(name)).unwrap();
        link("dot/claude", ".claude");
        link(".claude/run", "bin/secret");
        link(".local/share/tool", "bin/tool");
        link(".cargo/tool", "bin/cargo-tool");
        link("letters", "bin/letters");
        link("x/agent", "agent");
        let hidden = [home.clone()];
        let named = [home.join("agent"), home.join("missing"), home.clone()];
        let wanted = Wanted {
            home: &home,
            system: &everything(),
            hidden: &hidden,
            trees: &[],
            programs: &[],
            named: &named,
            environments: &[],
        };
        let path = home.join("bin");
        let found = shown(&wanted, |name| (name == "PATH").then_some(path.as_os_str()));
        let mounts = [".cargo/tool", ".local/share/claude", ".local/share/tool", "bin", "x/agent"];
        assert_eq!(found.mounts, mounts.map(|name| home.join(name)));
        assert_eq!(found.links, [(home.join("agent"), home.join("x/agent"))].into());
    }

    #[test]
    fn a_tool_is_shown_completely_without_its_neighbors() {
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
        let own = home.join("repo/.venv");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::create_dir_all(home.join("pythons/3.13/bin")).unwrap();
        std::fs::create_dir_all(home.join("pythons/3.13/lib/python3.13")).unwrap();
        std::fs::write(
            own.join("pyvenv.cfg"),
            format!("home = {}\n", home.join("pythons/3.13/bin").display()),
        )
        .unwrap();
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
        let shown = shown_with(&home, &[], &[own], var);
        let wanted = [
            ".local/bin",
            ".local/lib",
            "bin",
            "private/bin",
            "pythons/3.12",
            "pythons/3.13",
            "rust",
            "sdk/go",
            "venvs/x",
        ];
        assert_eq!(shown, wanted.map(|folder| home.join(folder)));
    }
}
