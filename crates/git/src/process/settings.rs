//! The user's git settings, sorted by what they can do. Git on a tree gets those that describe files and the repo;
//! none of them names a program.

use crate::objects::index::Stat;
use crate::process::command::{GitError, UserGit};
use ralph_loop_domain::vars::Vars;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What files look like on the disk, and which of them git ignores.
const FILES: &[&str] = &[
    "core.autocrlf",
    "core.eol",
    "core.symlinks",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.longpaths",
    "core.attributesfile",
    "core.excludesfile",
];
/// How the repo is stored, and who works in it.
const REPO: &[&str] = &[
    "core.repositoryformatversion",
    "core.sharedrepository",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "index.sparse",
    "index.version",
    "index.skiphash",
    "extensions.objectformat",
    "extensions.refstorage",
    "extensions.partialclone",
    "user.name",
    "user.email",
];
const REPO_PARTS: &[(&str, &[&str])] = &[
    ("remote", &["url", "fetch", "promisor", "partialclonefilter"]),
    ("branch", &["remote", "merge"]),
    ("ralph", &["clonedfrom"]),
];
/// How a remote is reached. Only git that talks to one gets these.
const TRANSPORT: &[&str] = &["credential", "http", "https", "ssh", "url", "protocol", "transfer", "fetch"];
const TRANSPORT_KEYS: &[&str] = &["core.sshcommand", "core.gitproxy", "core.askpass"];

/// Settings as `git config --list` names them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Settings(Vec<(String, String)>);

/// A program that changes files between the disk and git.
#[derive(Debug, Clone, Default)]
pub(crate) struct Driver {
    pub(crate) settings: Vec<(String, String)>,
}

impl Driver {
    pub(crate) fn commands(&self) -> impl Iterator<Item = &str> {
        let is_command = |key: &str| ["clean", "smudge", "process"].contains(&key);
        self.settings.iter().filter(move |(key, _)| is_command(key)).map(|(_, command)| command.as_str())
    }
}

impl Settings {
    /// Those that a run keeps from its start, before any agent could change them.
    pub(crate) fn kept(&self) -> Self {
        let is_kept = |key: &str| is_of_files(key) || is_of_filters(key);
        Self(self.0.iter().filter(|(key, _)| is_kept(key)).cloned().collect())
    }

    /// All of the user's settings for the repo. They are read again when a file of them changes.
    pub(crate) fn now(vars: &Vars, git_dir: &Path, common_dir: &Path) -> Result<Arc<Self>, GitError> {
        type Known = (PathBuf, [Option<Stat>; 4], Arc<Settings>);
        /// More than the repos of one machine that a process works in at the same time.
        const KNOWN_MAX: usize = 64;
        static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
        let home = vars.home().unwrap_or(Path::new("/"));
        let config = vars.filled("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
        let files = [
            common_dir.join("config"),
            git_dir.join("config.worktree"),
            home.join(".gitconfig"),
            config.join("git/config"),
        ];
        let stats = files.map(|file| file.symlink_metadata().ok().map(|meta| Stat::from(&meta)));
        let is_it = |known: &Known| known.0 == git_dir && known.1 == stats;
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, _, settings)) = known().iter().find(|one| is_it(one)) {
            return Ok(Arc::clone(settings));
        }
        let output = UserGit::in_repo(vars, git_dir)
            .call(["config", "--includes", "--list", "-z"])
            .accept(&[1])
            .run()?;
        let records = output.stdout.split(|b| *b == 0).filter(|r| !r.is_empty());
        let settings = records.map(|record| {
            let record = String::from_utf8_lossy(record);
            let (key, value) = record.split_once('\n').unwrap_or((&record, "true"));
            (key.to_owned(), value.to_owned())
        });
        let settings = Arc::new(Self(settings.collect()));
        let mut known = known();
        known.retain(|one| one.0 != git_dir);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.push((git_dir.to_owned(), stats, Arc::clone(&settings)));
        Ok(settings)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// What files look like on the disk.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.some(is_of_files)
    }

    pub(crate) fn of_tree(&self) -> String {
        text(self.some(|key| is_of_files(key) || is_of_repo(key)))
    }

    /// What git needs to reach a remote.
    pub(crate) fn of_remotes(&self) -> String {
        text(self.some(|key| {
            TRANSPORT_KEYS.contains(&key)
                || key.split_once('.').is_some_and(|(section, _)| TRANSPORT.contains(&section))
        }))
    }

    /// Filters and their settings, as a configuration. Only for commands inside a sandbox.
    pub(crate) fn of_filters(&self) -> String {
        text(self.some(is_of_filters))
    }

    pub(crate) fn of_files(&self) -> String {
        text(self.iter())
    }

    pub(crate) fn drivers(&self) -> BTreeMap<String, Driver> {
        let mut drivers: BTreeMap<String, Driver> = BTreeMap::new();
        for (key, value) in self.some(is_of_filters) {
            if let Some((name, key)) = key.strip_prefix("filter.").and_then(|rest| rest.rsplit_once('.')) {
                let driver = drivers.entry(name.to_owned()).or_default();
                driver.settings.push((key.to_owned(), value.to_owned()));
            }
        }
        drivers.retain(|_, driver| driver.commands().any(|command| !command.is_empty()));
        drivers
    }

    fn some(&self, is_wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .filter(move |(key, _)| is_wanted(key))
    }
}

fn is_of_files(key: &str) -> bool {
    FILES.contains(&key)
}

fn is_of_filters(key: &str) -> bool {
    key.starts_with("filter.") || key.starts_with("lfs.")
}

fn is_of_repo(key: &str) -> bool {
    let name = key.rsplit('.').next().unwrap_or_default();
    REPO.contains(&key)
        || key.split_once('.').is_some_and(|(section, _)| {
            REPO_PARTS.iter().any(|(part, names)| *part == section && names.contains(&name))
        })
}

fn text<'a>(settings: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    settings
        .filter_map(|(key, value)| {
            let (section, name) = key.rsplit_once('.')?;
            Some(setting(section, name, value))
        })
        .collect()
}

fn setting(section: &str, name: &str, value: &str) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let heading = match section.split_once('.') {
        Some((section, sub)) => format!("[{section} \"{}\"]", quoted(sub)),
        None => format!("[{section}]"),
    };
    format!("{heading}\n\t{name} = \"{}\"\n", quoted(value))
}
