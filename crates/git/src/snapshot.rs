//! The workspace's files as a tree, through a private index that starts as a copy of the user's. The user's own index is
//! only ever read.

use crate::command::{Git, GitError};
use crate::entry::{TreeEntry, find};
use crate::error::{Error, Result};
use crate::index::{self, Index};
use crate::lock_file::lock_of;
use crate::object::ObjectStore;
use crate::oid::{ObjectFormat, Oid};
use crate::repo::Repo;
use crate::survey::{SurveyRules, join};
use crate::watch::{Changes, WatchedFiles, clock_of, list};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// New folders with more names than this are first asked about: they are most likely ignored.
const WALK_MAX: usize = 2_000;
const THREADS_FROM: usize = 20_000;

/// The state of all files at one snapshot.
#[derive(Debug, Clone)]
pub(crate) struct FileStates {
    pub(crate) entries: Arc<Vec<TreeEntry>>,
    pub(crate) tree: Oid,
}

/// Takes snapshots of one workspace.
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
    /// Files too large to be taken, sorted.
    pub(crate) left_out: Vec<Vec<u8>>,
}

impl Snapshot {
    /// Opens the private index `name` in `folder`, seeding it where there is none.
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
            left_out: Vec::new(),
        };
        if !snapshot.index.exists() {
            snapshot.seed()?;
        }
        Ok(snapshot)
    }

    /// Lets what it reads go into other objects than the repo's.
    pub(crate) fn keep_objects_in(&mut self, folder: &Path) {
        self.git = self.git.clone().with_objects(folder.to_owned());
        self.rules.git = self.git.clone();
    }

    /// Copies the user's index with its time: git tells by it which entries it must compare by content.
    fn seed(&mut self) -> Result<()> {
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

    /// Turns a split, sparse or compressed index into a plain one.
    fn make_plain(&self) -> Result<(), GitError> {
        let args = ["update-index", "--no-split-index", "--index-version", "2", "--force-write-index"];
        self.git.call(args).index(&self.index).run().map(drop)
    }

    /// Brings the snapshot up to date. Without a change since the last call this starts no process.
    ///
    /// `tracked` are the files of `HEAD` at the start: those are taken whatever their size.
    pub(crate) fn refresh(&mut self, objects: &mut ObjectStore, tracked: &[TreeEntry]) -> Result<FileStates> {
        self.refresh_then(objects, tracked, || ())
    }

    /// The same; `meanwhile` is called once it is clear that git will have to read the tree, before it does.
    pub(crate) fn refresh_then(
        &mut self,
        objects: &mut ObjectStore,
        tracked: &[TreeEntry],
        meanwhile: impl FnOnce(),
    ) -> Result<FileStates> {
        let changes = self.watch.scan()?;
        if let (true, Some(state)) = (changes.is_empty(), &self.state) {
            return Ok(state.clone());
        }
        let began = self.watch.now()?;
        let seen_before = self.state.is_some();
        self.left_out = self.oversized(&changes, tracked, seen_before)?;
        meanwhile();
        self.add_all()?;
        let index = self.read_index()?;
        self.rules.survey(&mut self.watch, &index, &changes, &self.left_out, began)?;
        let entries: Vec<TreeEntry> = index.entries.into_iter().map(|e| e.entry).collect();
        if let Some(state) = self.state.as_ref().filter(|state| *state.entries == entries) {
            return Ok(state.clone());
        }
        let tree = objects.write_tree(&entries)?;
        let state = FileStates { entries: Arc::new(entries), tree };
        self.state = Some(state.clone());
        Ok(state)
    }

    fn add_all(&mut self) -> Result<()> {
        match self.add_call().run() {
            Ok(_) => Ok(()),
            // A private index that git cannot read is worth nothing: start it again from the user's.
            Err(error) if error.code() == Some(128) => {
                let _ = fs::remove_file(&self.index);
                let _ = fs::remove_file(lock_of(&self.index));
                self.seed()?;
                self.add_call().run().map(drop).map_err(|_| error.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn add_call(&self) -> crate::command::GitCall {
        let mut args = vec!["add", "-A", "--ignore-errors", "--sparse"];
        let mut input = Vec::new();
        if !self.left_out.is_empty() {
            args.extend(["--pathspec-from-file=-", "--pathspec-file-nul"]);
            input.extend_from_slice(b".\0");
            for path in &self.left_out {
                input.extend_from_slice(b":(top,exclude,literal)");
                input.extend_from_slice(path);
                input.push(0);
            }
        }
        // Below some ten thousand files git's threads cost more than they save.
        let call = self.git.call(args);
        let call = match self.state.as_ref().is_some_and(|state| state.entries.len() < THREADS_FROM) {
            true => call.config("core.preloadIndex=false").config("index.threads=1"),
            false => call,
        };
        // 1: some files could not be read, or a nested repo has no commit yet; the others are in.
        call.index(&self.index).stdin(input).accept(&[1])
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

    /// Files above the limit that git would now take in for the first time, or grown ones that `HEAD` does not have.
    fn oversized(&self, changes: &Changes, tracked: &[TreeEntry], seen_before: bool) -> Result<Vec<Vec<u8>>> {
        let mut out: Vec<Vec<u8>> = Vec::new();
        let too_large = |path: &[u8]| self.watch.size(path).is_some_and(|size| size > self.limit);
        out.extend(self.left_out.iter().filter(|path| too_large(path)).cloned());
        if seen_before {
            let grown = changes.files.iter().filter(|(path, now)| {
                now.is_some_and(|(_, size)| size > self.limit) && find(tracked, path).is_none()
            });
            out.extend(grown.map(|(path, _)| path.clone()));
            let mut left = WALK_MAX;
            for dir in changes.dirs.keys() {
                if !self.walk(dir, &mut out, &mut left) {
                    out.extend(self.untracked()?.into_iter().filter(|path| too_large(path)));
                    break;
                }
            }
        } else {
            out.extend(self.untracked()?.into_iter().filter(|path| too_large(path)));
        }
        out.sort();
        out.dedup();
        Ok(out)
    }

    /// Looks for large new files below a changed folder. False where that is too much for a plain walk.
    fn walk(&self, dir: &[u8], out: &mut Vec<Vec<u8>>, left: &mut usize) -> bool {
        for (name, is_dir) in list(&self.watch.top, dir).unwrap_or_default() {
            let path = join(dir, &name);
            if name == b".git" || (path == b".ralph" && self.rules.skip_ralph) {
                continue;
            }
            let Some(rest) = left.checked_sub(1) else { return false };
            *left = rest;
            if is_dir {
                let known = self.watch.dirs.contains_key(&path) || self.rules.ignored.contains(&path);
                if !known && !self.walk(&path, out, left) {
                    return false;
                }
            } else if self.watch.files.binary_search_by(|f| f.path.as_bytes().cmp(&path)).is_err()
                && self.watch.size(&path).is_some_and(|size| size > self.limit)
            {
                out.push(path);
            }
        }
        true
    }

    fn untracked(&self) -> Result<Vec<Vec<u8>>> {
        let args = ["ls-files", "-o", "-z", "--exclude-standard"];
        let output = self.git.call(args).index(&self.index).run()?;
        Ok(output.stdout.split(|b| *b == 0).filter(|p| !p.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// Whether the tree has this path now, as a file that git takes in.
    pub(crate) fn top(&self) -> &Path {
        &self.watch.top
    }
}

/// The private index for this process: the newest that is there, under a name of its own. A git whose driver was killed may
/// still be at work on the old name; what it leaves there is nobody's.
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

/// The path of a tree's file on the disk.
pub(crate) fn on_disk(top: &Path, path: &[u8]) -> PathBuf {
    top.join(OsStr::from_bytes(path))
}

/// All files of a commit or tree, and the ids of its trees.
pub(crate) fn read_tree(git: &Git, tree: &str) -> Result<(Vec<TreeEntry>, Vec<Oid>)> {
    let output = git.call(["ls-tree", "-r", "-t", "-z", "--full-tree", tree]).run()?;
    crate::entry::parse_ls_tree(&output.stdout)
        .ok_or_else(|| Error::unreadable(format!("the tree {tree}"), "git printed something unexpected"))
}
