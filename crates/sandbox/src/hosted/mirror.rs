//! Syncs a local folder with its copy in a sandbox: changes go in before a command and come out after it.
//!
//! The local side is authoritative. Git's folder and the run's records never leave it; ignored files (packages, build
//! results) never come back. If both sides changed a file, the local one stays.

use super::host::{self, Stamp};
use super::inside;
use super::tar::{Body, Member, Writer};
use ralph_loop_domain::ports::{Sandbox, SandboxError, WriteMode};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Largest archive, unless a single file is larger.
const BATCH: u64 = 16 * 1024 * 1024;
/// Larger files are sent alone, not in an archive.
const ALONE: u64 = 32 * 1024 * 1024;
/// Larger files aren't copied back.
const FILE_MAX: u64 = 64 * 1024 * 1024;
/// Most folders that the list inside leaves out.
const PRUNED_MAX: usize = 64;

/// Which of these paths git ignores. Folders end with `/`.
pub type Ignored = Arc<dyn Fn(&[String]) -> BTreeSet<String> + Send + Sync>;

pub(super) struct FolderMirror {
    host: PathBuf,
    back: Option<Ignored>,
    record: Option<(String, PathBuf)>,
    state: Mutex<SyncedState>,
}

/// Both sides when they were last in sync.
#[derive(Default)]
struct SyncedState {
    begun: bool,
    host: BTreeMap<String, Stamp>,
    inside: BTreeMap<String, String>,
    ignored: BTreeSet<String>,
    pruned: BTreeSet<String>,
}

impl FolderMirror {
    pub(super) fn new(host: &Path, back: Option<Ignored>, record: Option<&Path>) -> Self {
        let record = record.and_then(|path| {
            Some((format!(".ralph/runs/{}/", path.file_name()?.to_str()?), path.to_owned()))
        });
        Self { host: host.to_owned(), back, record, state: Mutex::new(SyncedState::default()) }
    }

    /// A file for the copy: of the workspace, or of the run's record.
    fn member(&self, path: &str) -> Option<Member> {
        let own = self.record.as_ref().and_then(|(shown, record)| Some((record, path.strip_prefix(shown)?)));
        match own {
            Some((record, inside)) => Some(Member { path: path.to_owned(), ..host::member(record, inside)? }),
            None => host::member(&self.host, path),
        }
    }

    fn state(&self) -> MutexGuard<'_, SyncedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The copy is a new one; the next push starts from scratch.
    pub(super) fn forget(&self) {
        *self.state() = SyncedState::default();
    }

    /// Updates the copy; `named` are files of the run's records that the next command mentions.
    pub(super) fn push(&self, sandbox: &dyn Sandbox, named: &[String]) -> Result<(), SandboxError> {
        let mut state = self.state();
        let now = host::scan(&self.host)?;
        let begin = !state.begun;
        let mut gone: Vec<String> = if begin {
            inside::sweep(sandbox)?;
            let there = inside::list(sandbox, &BTreeSet::new())?;
            let extra: Vec<String> = there.into_keys().filter(|path| !now.contains_key(path)).collect();
            let ignored = self.ignored(&extra);
            extra.into_iter().filter(|path| !ignored.contains(path)).collect()
        } else {
            state.host.keys().filter(|path| !now.contains_key(*path)).cloned().collect()
        };
        // The sandbox's own repo isn't a copy of anything here.
        gone.retain(|path| host::is_shared(path));
        let changed: Vec<(String, u64)> = now
            .iter()
            .filter(|(path, stamp)| state.host.get(*path) != Some(stamp))
            .map(|(path, stamp)| (path.clone(), stamp.size))
            .chain(named.iter().map(|path| (path.clone(), 0)))
            .collect();
        inside::remove(sandbox, &gone)?;
        self.send(sandbox, &changed)?;
        for path in &gone {
            state.inside.remove(path);
        }
        if !changed.is_empty() {
            if changed.iter().any(|(path, _)| is_rule(path)) {
                state.ignored.clear();
                state.pruned.clear();
            }
            let there = inside::list(sandbox, &state.pruned)?;
            for (path, _) in &changed {
                if let Some(stamp) = there.get(path) {
                    state.inside.insert(path.clone(), stamp.clone());
                }
            }
        }
        state.host = now;
        state.begun = true;
        if begin && self.back.is_some() {
            inside::own_repo(sandbox)?;
        }
        Ok(())
    }

    fn send(&self, sandbox: &dyn Sandbox, files: &[(String, u64)]) -> Result<(), SandboxError> {
        let unpacked = |error| SandboxError::Broken(format!("files could not be packed: {error}"));
        let mut archive = Writer::default();
        for (path, _) in files {
            let Some(member) = self.member(path) else { continue };
            match &member.body {
                Body::File(bytes) if bytes.len() as u64 > ALONE => {
                    sandbox.write(Path::new(path), bytes, WriteMode::Replace)?;
                }
                _ => archive.add(&member).map_err(unpacked)?,
            }
            if archive.len() as u64 >= BATCH {
                inside::unpack(sandbox, std::mem::take(&mut archive).finish().map_err(unpacked)?)?;
            }
        }
        if archive.len() == 0 {
            return Ok(());
        }
        inside::unpack(sandbox, archive.finish().map_err(unpacked)?)
    }

    /// Copies back what changed inside; returns messages for the user.
    pub(super) fn pull(&self, sandbox: &dyn Sandbox) -> Result<Vec<String>, SandboxError> {
        if self.back.is_none() {
            return Ok(Vec::new());
        }
        let mut state = self.state();
        if !state.begun {
            return Ok(Vec::new());
        }
        let there = inside::list(sandbox, &state.pruned)?;
        let mut notices = Vec::new();
        let changed = self.changed(&mut state, &there, &mut notices);
        let gone: Vec<String> = state
            .inside
            .keys()
            .filter(|path| !there.contains_key(*path) && host::comes_back(path))
            .cloned()
            .collect();
        for path in gone {
            if self.untouched(&state, &path) {
                host::take_away(&self.host, &path)?;
                state.host.remove(&path);
            }
            state.inside.remove(&path);
        }
        for batch in batches(&changed) {
            for member in inside::pack(sandbox, &batch)? {
                self.take(&mut state, &there, &member, &mut notices);
            }
        }
        Ok(notices)
    }

    /// What is new or changed inside, and should be copied back.
    fn changed(
        &self,
        state: &mut SyncedState,
        there: &BTreeMap<String, String>,
        notices: &mut Vec<String>,
    ) -> Vec<(String, u64)> {
        let mut changed: Vec<(String, u64)> = there
            .iter()
            .filter(|(path, stamp)| state.inside.get(*path) != Some(stamp) && host::comes_back(path))
            .filter(|(path, _)| !state.ignored.contains(*path))
            .map(|(path, stamp)| (path.clone(), inside::size(stamp)))
            .collect();
        if changed.iter().any(|(path, _)| is_rule(path)) {
            state.ignored.clear();
            state.pruned.clear();
        }
        let unknown: Vec<String> = changed
            .iter()
            .filter(|(path, _)| !state.host.contains_key(path) && !path.starts_with(".ralph/"))
            .map(|(path, _)| path.clone())
            .collect();
        let ignored = self.ignored(&unknown);
        if !ignored.is_empty() {
            self.prune(state, &ignored);
            changed.retain(|(path, _)| !ignored.contains(path));
            state.ignored.extend(ignored);
        }
        changed.retain(|(path, size)| {
            let fits = *size <= FILE_MAX;
            if !fits {
                notices.push(format!("`{path}` is larger than 64 MiB and stays inside the sandbox"));
                state.inside.insert(path.clone(), there.get(path).cloned().unwrap_or_default());
            }
            fits
        });
        changed
    }

    /// Whether a file here hasn't changed since the last sync.
    fn untouched(&self, state: &SyncedState, path: &str) -> bool {
        state.host.get(path).copied() == host::stamp(&self.host, path)
    }

    fn take(
        &self,
        state: &mut SyncedState,
        there: &BTreeMap<String, String>,
        member: &Member,
        notices: &mut Vec<String>,
    ) {
        let path = &member.path;
        // An archive may name anything; only requested files are taken.
        let Some(stamp) = there.get(path).filter(|_| host::comes_back(path)) else { return };
        if !self.untouched(state, path) {
            notices.push(format!("`{path}` was changed on both sides; the runner's own stays"));
        } else if let Err(error) = host::put(&self.host, member) {
            notices.push(format!("`{path}` could not be taken out of the sandbox: {error}"));
        } else if let Some(now) = host::stamp(&self.host, path) {
            state.host.insert(path.clone(), now);
        }
        state.inside.insert(path.clone(), stamp.clone());
    }

    fn ignored(&self, paths: &[String]) -> BTreeSet<String> {
        match &self.back {
            Some(ignored) if !paths.is_empty() => ignored(paths),
            _ => BTreeSet::new(),
        }
    }

    /// Whole ignored folders needn't be listed every time.
    fn prune(&self, state: &mut SyncedState, ignored: &BTreeSet<String>) {
        let mut folders: BTreeSet<String> = BTreeSet::new();
        for path in ignored {
            folders.extend(path.match_indices('/').map(|(at, _)| path[..=at].to_owned()));
        }
        let folders: Vec<String> = folders.into_iter().collect();
        for folder in self.ignored(&folders) {
            let name = folder.trim_end_matches('/').to_owned();
            let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b));
            let below = |other: &String| folder.starts_with(&format!("{other}/"));
            // A file that was added despite the rule keeps its folder on the list.
            let holds =
                state.host.range(folder.clone()..).next().is_some_and(|(path, _)| path.starts_with(&folder));
            if plain && !holds && state.pruned.len() < PRUNED_MAX && !state.pruned.iter().any(below) {
                state.pruned.insert(name);
            }
        }
    }
}

fn is_rule(path: &str) -> bool {
    path.rsplit('/').next() == Some(".gitignore")
}

fn batches(files: &[(String, u64)]) -> Vec<Vec<String>> {
    let mut batches: Vec<Vec<String>> = Vec::new();
    let mut room = 0u64;
    for (path, size) in files {
        if *size > room || batches.is_empty() {
            batches.push(Vec::new());
            room = BATCH.max(*size);
        }
        room -= (*size).min(room);
        if let Some(last) = batches.last_mut() {
            last.push(path.clone());
        }
    }
    batches
}
