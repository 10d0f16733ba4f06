//! All paths of `.ralph/`, of a run's record, and of `ralph`'s state folder.

use crate::error::JournalError;
use ralph_loop_protocol::id::{Digest, RunId};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The `.ralph/` folder of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RalphDir(PathBuf);

impl RalphDir {
    /// The `.ralph/` of this workspace.
    pub fn of(workspace: &Path) -> Self {
        Self(workspace.join(".ralph"))
    }
    pub fn path(&self) -> &Path {
        &self.0
    }
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    pub fn config(&self) -> PathBuf {
        self.join("config.json")
    }
    /// The current run's state, for users.
    pub fn state(&self) -> PathBuf {
        self.join("state.json")
    }
    pub fn cooldowns(&self) -> PathBuf {
        self.join("cooldowns.json")
    }
    /// The lock of runs whose record is in here.
    pub fn lock(&self) -> PathBuf {
        self.join("lock")
    }
    pub fn active(&self) -> PathBuf {
        self.join("active.json")
    }
    pub fn run(&self, run: &RunId) -> RunDir {
        RunDir(self.0.join("runs").join(run.as_str()))
    }
    /// The ids of all runs shown here, oldest first.
    pub fn runs(&self) -> Vec<RunId> {
        let Ok(entries) = std::fs::read_dir(self.0.join("runs")) else { return Vec::new() };
        let mut ids: Vec<RunId> = entries
            .flatten()
            .filter_map(|e| RunId::parse(e.file_name().to_str()?).ok())
            .filter(|id| self.run(id).spec().is_file())
            .collect();
        ids.sort();
        ids
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir(PathBuf);

impl RunDir {
    /// Wraps a folder that is known to be a run's.
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }
    pub fn path(&self) -> &Path {
        &self.0
    }
    /// The `.ralph/` that contains it, if any (a copy).
    pub fn ralph_dir(&self) -> Option<RalphDir> {
        let dir = self.0.parent().filter(|runs| runs.ends_with("runs"))?.parent()?;
        dir.ends_with(".ralph").then(|| RalphDir(dir.to_owned()))
    }
    pub fn events(&self) -> PathBuf {
        self.0.join("events.jsonl")
    }
    pub fn index(&self) -> PathBuf {
        self.0.join("events.idx")
    }
    pub fn live(&self) -> PathBuf {
        self.0.join("live.jsonl")
    }
    pub fn live_before(&self) -> PathBuf {
        self.0.join("live.1.jsonl")
    }
    /// The socket that wakes the driver.
    pub fn wake(&self) -> PathBuf {
        self.0.join("wake")
    }
    pub fn state(&self) -> PathBuf {
        self.0.join("state.json")
    }
    /// The lock of the folder that the run works in.
    pub fn lock(&self) -> PathBuf {
        use std::os::unix::ffi::OsStrExt as _;
        if let Some(dir) = self.ralph_dir() {
            return dir.lock();
        }
        let named = std::fs::read(self.lock_place()).unwrap_or_default();
        match named.starts_with(b"/") {
            true => PathBuf::from(std::ffi::OsStr::from_bytes(&named)),
            // A link made by an older version is followed.
            false => self.lock_place(),
        }
    }
    /// The file with the path of that lock. Not a link: in a sandbox that would dangle, and programs that walk the
    /// tree fail on it.
    pub fn lock_place(&self) -> PathBuf {
        self.0.join("lock")
    }
    /// Git's records of the run for the user's repo.
    pub fn git(&self) -> PathBuf {
        self.0.join("git")
    }
    /// Git's records of the run for the agent's copy of the tree.
    pub fn copy_git(&self) -> PathBuf {
        self.0.join("copy-git")
    }
    /// What agents keep alive between their sessions.
    pub fn resources(&self) -> PathBuf {
        self.0.join("resources.json")
    }
    /// Copies of the append-only files.
    pub fn grown(&self) -> PathBuf {
        self.0.join("grown")
    }
    pub fn spec(&self) -> PathBuf {
        self.0.join("spec.json")
    }
    pub fn inbox(&self) -> PathBuf {
        self.0.join("inbox.jsonl")
    }
    /// The user's notes for this run.
    pub fn notes(&self) -> PathBuf {
        self.0.join("notes.md")
    }
    /// Errors in this run, as its prompts quote them.
    pub fn errors(&self) -> PathBuf {
        self.0.join("errors.log")
    }
    /// Guardrails that the user has removed during the run, by digest, one per line.
    pub fn removed_guardrails(&self) -> PathBuf {
        self.0.join("guardrails.removed")
    }
    pub fn proof(&self) -> PathBuf {
        self.0.join("proof.json")
    }
    pub fn iterations(&self) -> PathBuf {
        self.0.join("iterations")
    }
    pub fn iteration(&self, number: u32) -> PathBuf {
        self.iterations().join(number.to_string())
    }
    /// Creates the folder and its parents, for this user only.
    pub fn create(&self) -> Result<(), JournalError> {
        let iterations = self.iterations();
        let mut maker = std::fs::DirBuilder::new();
        if self.ralph_dir().is_none() {
            maker.mode(0o700);
        }
        maker
            .recursive(true)
            .create(&iterations)
            .map_err(|e| JournalError::file("make the folder", &iterations, e))
    }
    /// A path inside the run's folder, as events write it.
    pub fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.0).unwrap_or(path).display().to_string()
    }
}

/// `ralph`'s state folder, outside any repo: `$XDG_STATE_HOME/ralph`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateHome(PathBuf);

impl StateHome {
    /// From the values of `XDG_STATE_HOME` and `HOME`.
    pub fn from_env(xdg_state_home: Option<&str>, home: Option<&str>) -> Option<Self> {
        match (xdg_state_home.filter(|p| p.starts_with('/')), home.filter(|p| !p.is_empty())) {
            (Some(xdg), _) => Some(Self(Path::new(xdg).join("ralph"))),
            (None, Some(home)) => Some(Self(Path::new(home).join(".local/state/ralph"))),
            (None, None) => None,
        }
    }
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }
    pub fn path(&self) -> &Path {
        &self.0
    }
    /// The sealed copy of a run's journal.
    pub fn seal(&self, run: &RunId) -> PathBuf {
        self.0.join("seals").join(format!("{run}.jsonl"))
    }
    pub fn machine_id(&self) -> PathBuf {
        self.0.join("machine-id")
    }
    /// A run's entry in the registry.
    pub fn registration(&self, run: &RunId) -> PathBuf {
        self.0.join("runs").join(format!("{run}.json"))
    }
    pub fn record(&self, run: &RunId) -> RunDir {
        RunDir(self.0.join("runs").join(run.as_str()))
    }
    /// The lock of a folder that runs work in.
    pub fn folder_lock(&self, folder: &Path) -> PathBuf {
        self.of_folder(folder, "lock")
    }
    /// Agents that rest, according to runs in a folder.
    pub fn folder_cooldowns(&self, folder: &Path) -> PathBuf {
        self.of_folder(folder, "cooldowns.json")
    }
    pub(crate) fn folder_runs(&self, folder: &Path) -> PathBuf {
        use std::os::unix::ffi::OsStrExt as _;
        self.0.join("folders").join(format!("{}.runs", Digest::of(folder.as_os_str().as_bytes())))
    }
    fn of_folder(&self, folder: &Path, what: &str) -> PathBuf {
        use std::os::unix::ffi::OsStrExt as _;
        let digest = Digest::of(settled(folder).as_os_str().as_bytes());
        self.0.join("folders").join(format!("{digest}.{what}"))
    }
    pub fn registrations(&self) -> PathBuf {
        self.0.join("runs")
    }
    pub fn workspace(&self, run: &RunId) -> PathBuf {
        self.0.join("workspaces").join(run.as_str())
    }
    /// Where the agent of a run in a worktree or clone works on a copy of it.
    pub fn agent_copy(&self, run: &RunId) -> PathBuf {
        self.0.join("copies").join(run.as_str())
    }
}

/// A path without links, with missing parts kept.
fn settled(path: &Path) -> PathBuf {
    let mut rest = PathBuf::new();
    let mut at = path;
    loop {
        if let Ok(found) = at.canonicalize() {
            return if rest.as_os_str().is_empty() { found } else { found.join(rest) };
        }
        let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else { return path.to_owned() };
        rest = if rest.as_os_str().is_empty() { PathBuf::from(name) } else { Path::new(name).join(rest) };
        at = parent;
    }
}
