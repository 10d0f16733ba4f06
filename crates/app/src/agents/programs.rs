//! Finds programs of known agents by path, outside the repo, because they get keys and logins. A program in
//! the repo, or named only by it, needs approval.

use crate::trust::{self, Ask, PrivilegeKind, quoted};
use ralph_loop_agents::presets;
use ralph_loop_protocol::id::Digest;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Size limit for hashing a program.
const CONTENT_MAX: u64 = 256 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownProgram {
    /// Name of the agent.
    pub name: &'static str,
    pub path: PathBuf,
    /// Approval needed before it starts.
    pub ask: Option<Ask>,
}

#[derive(Debug, Clone)]
pub struct Programs {
    top: PathBuf,
    folders: Vec<PathBuf>,
    path: String,
}

impl Programs {
    /// For the repo at `top`, with this `PATH`.
    pub fn new(top: &Path, path: &str) -> Self {
        Self { top: top.to_owned(), folders: trust::folders(top), path: path.to_owned() }
    }

    pub fn is_inside(&self, path: &Path) -> bool {
        let below = |path: &Path| self.folders.iter().any(|folder| path.starts_with(folder));
        below(path) || path.canonicalize().is_ok_and(|real| below(&real))
    }

    /// The program on the `PATH`, outside the repo.
    pub fn outside(&self, name: &str) -> Option<PathBuf> {
        self.on_path(name).find(|found| !self.is_inside(found))
    }

    /// Installed known agents: those outside the repo, or if there are none, those in it.
    pub fn installed(&self) -> Vec<&'static str> {
        let outside: Vec<_> =
            presets::NAMES.into_iter().filter(|name| self.outside(name).is_some()).collect();
        match outside.is_empty() {
            false => outside,
            true => presets::NAMES.into_iter().filter(|name| self.on_path(name).next().is_some()).collect(),
        }
    }

    /// The program of a command, if it belongs to a known agent and exists.
    pub fn known(&self, argv: &[String]) -> Option<KnownProgram> {
        let name = presets::preset_of(argv)?;
        let command = argv.first()?;
        if !command.contains('/') {
            if let Some(path) = self.outside(name) {
                return Some(KnownProgram { name, path, ask: None });
            }
            let path = self.on_path(name).next()?;
            return Some(KnownProgram { ask: Some(self.ask(name, &path)), name, path });
        }
        let path = self.top.join(command);
        if !is_executable(&path) {
            return None;
        }
        let same = |other: PathBuf| other.canonicalize().ok() == path.canonicalize().ok();
        let usual = !self.is_inside(&path) && self.outside(name).is_some_and(same);
        let ask = (!usual).then(|| self.ask(name, &path));
        Some(KnownProgram { name, path: plain(&path), ask })
    }

    fn on_path<'a>(&'a self, name: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
        let folders = std::env::split_paths(&self.path).filter(|folder| folder.is_absolute());
        folders.map(move |folder| folder.join(name)).filter(|path| is_executable(path))
    }

    fn ask(&self, name: &str, path: &Path) -> Ask {
        let path = plain(path);
        let below = self.folders.iter().find_map(|folder| path.strip_prefix(folder).ok());
        let shown = below.unwrap_or(&path).display().to_string();
        // A repo file is identified by its content; others change with their updates.
        let content = match self.is_inside(&path) {
            true => content(&path),
            false => String::new(),
        };
        Ask::new(
            PrivilegeKind::Program,
            &shown,
            format!("program {name}"),
            &format!("{shown}\0{content}"),
            format!("{} to be started as `{name}`, with the keys and the login of `{name}`", quoted(&shown)),
        )
    }

    /// A `PATH` for programs that get keys: repo folders come last and relative entries are dropped, so that
    /// `node` or `git` never resolve into the repo.
    pub fn guarded_path(&self) -> String {
        let folders = std::env::split_paths(&self.path).filter(|folder| folder.is_absolute());
        let (inside, outside): (Vec<_>, Vec<_>) = folders.partition(|folder| self.is_inside(folder));
        let joined = std::env::join_paths(outside.into_iter().chain(inside)).unwrap_or_default();
        joined.to_string_lossy().into_owned()
    }
}

/// A path without `.` and `..`; links stay.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}

fn content(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read =
        ralph_loop_safe_fs::open_plain(path).and_then(|file| file.take(CONTENT_MAX).read_to_end(&mut bytes));
    match read {
        Ok(_) => Digest::of(&bytes).to_string(),
        Err(_) => "unreadable".to_owned(),
    }
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            std::fs::create_dir_all(place.at("repo/.git")).unwrap();
            place
        }
        fn at(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }
        fn program(&self, name: &str, text: &str) -> PathBuf {
            let path = self.at(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        }
        fn programs(&self, folders: &[&str]) -> Programs {
            let folder = |name: &&str| match ["", "relative"].contains(name) {
                true => (*name).to_owned(),
                false => self.at(name).display().to_string(),
            };
            let path: Vec<String> = folders.iter().map(folder).collect();
            Programs::new(&self.at("repo"), &path.join(":"))
        }
    }

    fn argv(command: &str) -> Vec<String> {
        vec![command.to_owned(), "-p".to_owned()]
    }

    #[test]
    fn a_program_outside_the_repo_counts_before_one_inside() {
        let machine = Machine::new();
        let own = machine.program("bin/claude", "own");
        machine.program("repo/bin/claude", "evil");
        symlink(machine.at("repo/bin"), machine.at("linked")).unwrap();
        machine.program("elsewhere/codex", "x");
        symlink(machine.program("repo/tool", "evil"), machine.at("elsewhere/gemini")).unwrap();
        let programs = machine.programs(&["repo/bin", "linked", "", "relative", "bin", "elsewhere"]);
        let found = programs.known(&argv("claude")).unwrap();
        assert_eq!((found.path, found.ask), (own, None));
        assert_eq!(programs.installed(), ["claude", "codex"], "a link into the repo is a file of the repo");
        assert!(programs.known(&argv("gemini")).unwrap().ask.is_some());
        assert!(programs.known(&argv("sh")).is_none());
        let path = programs.guarded_path();
        let last: Vec<&str> = path.split(':').collect();
        assert_eq!(last.len(), 4);
        assert!(last[0].ends_with("/bin") && last[2].ends_with("repo/bin"), "{path}");
    }

    #[test]
    fn one_that_only_the_repo_has_or_names_is_asked_about_by_its_content() {
        let machine = Machine::new();
        machine.program("repo/node_modules/.bin/claude", "one");
        let programs = machine.programs(&["repo/node_modules/.bin"]);
        assert_eq!(programs.installed(), ["claude"]);
        let first = programs.known(&argv("claude")).unwrap().ask.unwrap();
        assert_eq!(first.source, "node_modules/.bin/claude");
        assert_eq!(
            programs.known(&argv("./node_modules/.bin/../.bin/claude")).unwrap().ask.unwrap().digest,
            first.digest
        );
        machine.program("repo/node_modules/.bin/claude", "two");
        assert_ne!(programs.known(&argv("claude")).unwrap().ask.unwrap().digest, first.digest);
        let own = machine.program("opt/claude", "x").display().to_string();
        assert!(machine.programs(&[]).known(&argv(&own)).unwrap().ask.is_some());
        assert_eq!(machine.programs(&["opt"]).known(&argv(&own)).unwrap().ask, None);
        assert_eq!(programs.known(&argv("bin/claude")), None);
    }
}
