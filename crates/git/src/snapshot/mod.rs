//! The workspace's files as a tree, through a private index that starts as a copy of the user's. The user's index is
//! only read.

pub(crate) mod baseline;
pub(crate) mod checkpoint;
pub(crate) mod entry;
pub(crate) mod history;
pub(crate) mod protected;
pub(crate) mod record;
pub(crate) mod ref_monitor;
pub(crate) mod stage;
pub(crate) mod state_dir;
pub(crate) mod survey;
pub(crate) mod watch;
pub(crate) mod work_tree;

use crate::agent_copy::copy_files;
use crate::agent_copy::installed::KnownFolders;
use crate::error::{Error, Result};
use crate::filters::Filters;
use crate::locks::lock_file::lock_of;
use crate::objects::index::{self, Index};
use crate::objects::oid::{ObjectFormat, Oid, oid};
use crate::process::command::{Git, GitError};
use crate::process::settings::Settings;
use crate::repo::Repo;
use crate::snapshot::entry::{MODE_GITLINK, TreeEntry, find};
use crate::snapshot::stage::{NestedRepos, Staging, Untracked};
use crate::snapshot::survey::SurveyRules;
use crate::snapshot::watch::{Changes, WatchedFiles, clock_of};
use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File, FileTimes};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const THREADS_FROM: usize = 20_000;

#[derive(Debug, Clone)]
pub(crate) struct FileStates {
    pub(crate) entries: Arc<Vec<TreeEntry>>,
    pub(crate) tree: Oid,
}

#[derive(Debug)]
pub(crate) struct Snapshot {
    git: Git,
    format: ObjectFormat,
    user_index: PathBuf,
    pub(crate) index: PathBuf,
    limit: u64,
    watch: WatchedFiles,
    rules: SurveyRules,
    state: Option<FileStates>,
    start: Option<Oid>,
    nested: NestedRepos,
    filters: Option<Filters>,
    repo: Repo,
    /// Files that are too large, and the user's files that look like secrets, sorted.
    pub(crate) left_out: Vec<Vec<u8>>,
    /// Whether new files that look like secrets always stay out: true if no agent works in the tree. Otherwise only files
    /// from before the run do, since files that an agent creates are its work.
    pub(crate) secrets_stay: bool,
}

impl Snapshot {
    pub(crate) fn open(repo: &Repo, folder: &Path, name: &str, limit: u64, skip_ralph: bool) -> Result<Self> {
        fs::create_dir_all(folder).map_err(|e| Error::file("create", folder, e))?;
        let index = adopt_index(folder, name)?;
        let git = repo.git();
        let mut snapshot = Self {
            watch: WatchedFiles::open(&repo.top, &clock_of(repo, folder))?,
            rules: SurveyRules {
                git: git.clone(),
                index: index.clone(),
                exclude: repo.common_dir.join("info/exclude"),
                skip_ralph,
                ignored: HashSet::new(),
            },
            git,
            format: repo.object_format,
            user_index: repo.git_dir.join("index"),
            index,
            limit,
            state: None,
            start: None,
            nested: NestedRepos::Pinned,
            filters: Filters::of(repo, &repo.settings()?, None),
            repo: repo.clone(),
            left_out: Vec::new(),
            secrets_stay: false,
        };
        if !snapshot.index.exists() {
            snapshot.seed()?;
        }
        Ok(snapshot)
    }

    pub(crate) fn keep_objects_in(&mut self, folder: &Path) {
        self.git = self.git.clone().with_objects(folder.to_owned());
        self.rules.git = self.git.clone();
    }

    /// Sets the run's start tree, whose attributes now decide which filters apply.
    pub(crate) fn begun_with(&mut self, start: Oid, nested: NestedRepos, settings: &Arc<Settings>) {
        self.start = Some(start);
        self.nested = nested;
        self.filters = Filters::of(&self.repo, settings, self.attributes().as_deref());
    }

    pub(crate) fn nested(&self) -> NestedRepos {
        self.nested
    }

    /// The tree whose attributes decide which filters apply; `None` before the start.
    pub(crate) fn attributes(&self) -> Option<String> {
        self.start.as_ref().map(Oid::to_string)
    }

    /// Copies the user's index with its time: git uses that to decide which entries it must compare by content. Once
    /// the run has begun, an agent may have written that index: then from the start.
    fn seed(&mut self) -> Result<()> {
        if let Some(start) = &self.start {
            let tree = start.to_string();
            self.git.call(["read-tree", &tree]).index(&self.index).run()?;
            return Ok(());
        }
        let mut user = match File::open(&self.user_index) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(Error::file("open", &self.user_index, e)),
        };
        let mut bytes = Vec::new();
        let temporary = self.index.with_extension("seed");
        let copied = (|| {
            let time = user.metadata()?.modified()?;
            user.read_to_end(&mut bytes)?;
            let mut copy = File::create(&temporary)?;
            copy.write_all(&bytes)?;
            copy.set_times(FileTimes::new().set_modified(time))?;
            fs::rename(&temporary, &self.index)
        })();
        copied.map_err(|e| Error::file("copy the index to", &self.index, e))?;
        if !index::is_plain(&bytes, self.format) {
            self.make_plain()?;
        }
        Ok(())
    }

    fn make_plain(&self) -> Result<(), GitError> {
        let args = ["update-index", "--no-split-index", "--index-version", "2", "--force-write-index"];
        self.git.call(args).index(&self.index).run().map(drop)
    }

    /// Updates the snapshot. Starts no process if nothing changed since the last call.
    ///
    /// `tracked` are the files of `HEAD` at the start: those are included whatever their size.
    pub(crate) fn refresh(&mut self, tracked: &[TreeEntry]) -> Result<FileStates> {
        self.refresh_then(tracked, || ())
    }

    /// Calls `meanwhile` once it is clear that git will have to read the tree, before it does.
    pub(crate) fn refresh_then(
        &mut self,
        tracked: &[TreeEntry],
        meanwhile: impl FnOnce(),
    ) -> Result<FileStates> {
        let changes = self.watch.scan()?;
        if let (true, Some(state)) = (changes.is_empty(), &self.state) {
            return Ok(state.clone());
        }
        let began = self.watch.now()?;
        meanwhile();
        self.stage_all(&changes, tracked)?;
        let tree = self.git.call(["write-tree", "--missing-ok"]).index(&self.index).run()?.text();
        let index = self.read_index()?;
        self.rules.survey(&mut self.watch, &index, &changes, &self.left_out, began)?;
        let entries: Vec<TreeEntry> = index.entries.into_iter().map(|e| e.entry).collect();
        if let Some(state) = self.state.as_ref().filter(|state| *state.entries == entries) {
            return Ok(state.clone());
        }
        let state = FileStates { entries: Arc::new(entries), tree: oid(&tree)? };
        self.state = Some(state.clone());
        Ok(state)
    }

    fn stage_all(&mut self, changes: &Changes, tracked: &[TreeEntry]) -> Result<()> {
        match self.stage(changes, tracked) {
            Ok(()) => Ok(()),
            // Git can't read the private index: start over with a new one.
            Err(Error::Git(error)) if error.code() == Some(128) => {
                let _ = fs::remove_file(&self.index);
                let _ = fs::remove_file(lock_of(&self.index));
                self.state = None;
                self.seed()?;
                self.stage(changes, tracked).map_err(|_| error.into())
            }
            Err(error) => Err(error),
        }
    }

    /// Stages what may have changed: everything the first time, then what the watch found.
    fn stage(&mut self, changes: &Changes, tracked: &[TreeEntry]) -> Result<()> {
        let seen_before = self.state.is_some();
        let (mut paths, mut forgotten) = match &self.state {
            Some(state) => {
                let paths: BTreeSet<Vec<u8>> = changes.files.keys().cloned().collect();
                (
                    paths,
                    self.watch
                        .hidden_changes(changes)
                        .filter_map(|path| find(&state.entries, path))
                        .cloned()
                        .collect(),
                )
            }
            None => self.known_files()?,
        };
        let start = self.attributes();
        let staging = Staging {
            git: &self.git,
            index: &self.index,
            top: &self.watch.top,
            attributes: start.as_deref(),
            filters: self.filters.as_ref(),
            nested: self.nested,
            format: self.format,
        };
        let mut new = match (seen_before && !changes.touches_rules(), changes.dirs.is_empty()) {
            (true, true) => Untracked::default(),
            (true, false) => {
                let there = changes.dirs.iter().filter(|(_, stat)| stat.is_some());
                let folders: Vec<Vec<u8>> = there.map(|(path, _)| path.clone()).collect();
                match folders.is_empty() {
                    true => Untracked::default(),
                    false => staging.untracked(Some(&folders))?,
                }
            }
            (false, _) => staging.untracked(None)?,
        };
        if self.rules.skip_ralph {
            // Its files may have been taken out of the ignore rules, but aren't part of the tree.
            new.files.retain(|path| !path.starts_with(b".ralph/"));
        }
        // Files that only tools create aren't work; tracked ones are in the index and stay.
        let mut installed = KnownFolders::of_installed(&self.watch.top);
        new.files.retain(|path| !is_tool_cache(path) && !installed.has(path));
        let too_large = |path: &[u8]| self.watch.size(path).is_some_and(|size| size > self.limit);
        let stays = |path: &Vec<u8>| {
            (self.secrets_stay || self.start.is_none() || self.left_out.contains(path))
                && copy_files::is_secret(&self.watch.top, path)
        };
        let is_left = |path: &&Vec<u8>| too_large(path) || stays(path);
        let mut left_out: BTreeSet<Vec<u8>> =
            self.left_out.iter().chain(&new.files).filter(is_left).cloned().collect();
        if seen_before {
            let grown = changes.files.iter().filter(|(path, now)| {
                now.is_some_and(|(_, size)| size > self.limit) && find(tracked, path).is_none()
            });
            left_out.extend(grown.map(|(path, _)| path.clone()));
        }
        paths.extend(new.files);
        paths.retain(|path| !left_out.contains(path));
        // Below some ten thousand files git's threads cost more than they save.
        let few = self.state.as_ref().is_some_and(|state| state.entries.len() < THREADS_FROM);
        let settings: &[&str] = if few { &["core.preloadIndex=false", "index.threads=1"] } else { &[] };
        forgotten.retain(|entry| paths.contains(&entry.path));
        forgotten.extend(new.links);
        staging.update(&paths, &forgotten, settings)?;
        self.left_out = left_out.into_iter().collect();
        Ok(())
    }

    /// The files of the index that git checks, and existing ones that it doesn't have to check; plus the entries
    /// whose changes git would miss.
    fn known_files(&self) -> Result<(BTreeSet<Vec<u8>>, Vec<TreeEntry>)> {
        let Index { entries, open } = self.read_index()?;
        let (mut paths, mut hidden) = (BTreeSet::from_iter(open), Vec::new());
        for item in entries.into_iter().filter(|item| item.entry.mode != MODE_GITLINK) {
            let now = self.watch.stat(&item.entry.path);
            if item.unwatched && now.is_none() {
                continue;
            }
            if now.is_some_and(|now| now.hides_from_git(&item.stat)) {
                hidden.push(item.entry.clone());
            }
            paths.insert(item.entry.path);
        }
        Ok((paths, hidden))
    }

    fn read_index(&self) -> Result<Index> {
        let read = || match fs::read(&self.index) {
            Ok(bytes) => Ok(bytes),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(b"DIRC\0\0\0\x02\0\0\0\0".to_vec()),
            Err(e) => Err(Error::file("read", &self.index, e)),
        };
        let bytes = read()?;
        if let Ok(index) = index::parse(&bytes, self.format, &self.index) {
            return Ok(index);
        }
        self.make_plain()?;
        index::parse(&read()?, self.format, &self.index)
    }

    pub(crate) fn top(&self) -> &Path {
        &self.watch.top
    }
}

/// Folders that checks and tools create next to the sources. A repo without ignore rules for them would otherwise get
/// them with the work.
const TOOL_CACHES: [&[u8]; 4] = [b"__pycache__", b".pytest_cache", b".mypy_cache", b".ruff_cache"];

pub(crate) fn is_tool_cache(path: &[u8]) -> bool {
    let mut parts: Vec<&[u8]> = path.split(|b| *b == b'/').collect();
    parts.pop();
    parts.iter().any(|part| TOOL_CACHES.contains(part))
}

/// The private index for this process: the newest one, renamed. A git whose driver was killed may still work on the
/// old name; its output there is ignored.
fn adopt_index(folder: &Path, name: &str) -> Result<PathBuf> {
    let own = folder.join(format!("{name}-{}", std::process::id()));
    let _ = fs::remove_file(lock_of(&own));
    let named = format!("{name}-");
    let mut others: Vec<(std::time::SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(file) = entry.file_name().into_string() else { continue };
        let is_index = file == name
            || file.strip_prefix(&named).is_some_and(|pid| pid.bytes().all(|b| b.is_ascii_digit()));
        if is_index
            && entry.path() != own
            && let Ok(time) = entry.metadata().and_then(|meta| meta.modified())
        {
            others.push((time, entry.path()));
        }
    }
    others.sort();
    let newest = others.pop().map(|(_, path)| path);
    if let Some(newest) = newest {
        match own.exists() {
            true => drop(fs::remove_file(&newest)),
            false => fs::rename(&newest, &own).map_err(|e| Error::file("move", &newest, e))?,
        }
    }
    for (_, old) in others {
        let _ = fs::remove_file(lock_of(&old));
        let _ = fs::remove_file(old);
    }
    Ok(own)
}

pub(crate) fn read_tree(git: &Git, tree: &str) -> Result<Vec<TreeEntry>> {
    let output = git.call(["ls-tree", "-r", "-z", "--full-tree", tree]).run()?;
    crate::snapshot::entry::parse_ls_tree(&output.stdout)
        .ok_or_else(|| Error::unreadable(format!("the tree {tree}"), "git printed something unexpected"))
}
