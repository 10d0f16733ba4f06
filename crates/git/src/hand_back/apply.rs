//! The only way that files of a run get into a folder. A change on one side is taken, changes on both are merged, and
//! a file that changed in the same place on both sides stays and is reported.
//!
//! Files are written whole or not at all, never through a link, and never over a file that changed after it was
//! compared. A file that already has the result is skipped, so a repeat after a crash finishes the work.

use crate::error::{Error, Result};
use crate::filters::Filters;
use crate::hand_back::merge::{Merged, ThreeWay, merge};
use crate::objects::index::Stat;
use crate::process::command::Git;
use crate::process::settings::Settings;
use crate::process::tree_git::TreeGit;
use crate::repo::Repo;
use crate::snapshot::entry::index_line;
use crate::snapshot::entry::{Difference, MODE_GITLINK, TreeEntry, file_mode, on_disk};
use crate::snapshot::survey::parent;
use crate::snapshot::watch::stat_of;
use nix::unistd::AccessFlags;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MODE_LINK: u32 = 0o120_000;
/// Git hashes larger files.
const READ_MAX: u64 = 8 * 1024 * 1024;
/// Deeper than any tree that git can make.
const DEPTH_MAX: usize = 512;

#[derive(Debug)]
pub(crate) struct Target<'a> {
    repo: &'a Repo,
    git: Git,
    trees: TreeGit,
    room: PathBuf,
    attributes: Option<String>,
    filters: Option<Filters>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    Folder(&'a Path),
    Objects,
}

#[derive(Debug)]
struct Step<'a> {
    path: &'a [u8],
    to: Option<TreeEntry>,
    seen: Option<Stat>,
    merged: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Plan<'a> {
    steps: Vec<Step<'a>>,
    pub(crate) had: Vec<&'a [u8]>,
    pub(crate) merged: Vec<&'a [u8]>,
    pub(crate) conflicts: Vec<&'a [u8]>,
}

impl Plan<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Done,
    /// Something occupies the path or changed just now, or the path is too long: nothing was touched.
    InTheWay,
}

impl<'a> Target<'a> {
    /// `git` belongs to `repo`. `room` is a folder on the same disk for incomplete files, `objects` one for the
    /// user's edits, which no agent reads. `borrowed` holds objects that the repo may lack. The settings and attributes
    /// say what files look like.
    pub(crate) fn new(
        repo: &'a Repo,
        room: PathBuf,
        objects: &Path,
        borrowed: &Path,
        (settings, attributes): (&Arc<Settings>, Option<String>),
    ) -> Result<Self> {
        let trees = TreeGit::open(repo, &room.join("git"), objects.to_owned(), borrowed)?;
        let filters = Filters::of(repo, settings, attributes.as_deref());
        Ok(Self { repo, git: repo.git().with_objects(objects.to_owned()), trees, room, attributes, filters })
    }

    /// The user's files of `repo` while a result is applied. `folder` is the engine's; `start` names the attributes.
    pub(crate) fn of_user(repo: &'a Repo, folder: &Path, start: &str) -> Result<Self> {
        let room = folder.join("apply");
        let objects = room.join("objects");
        crate::agent_copy::borrow_objects(repo, &objects)?;
        let rules = (&repo.settings()?, Some(start.to_owned()));
        Self::new(repo, room, &objects, &repo.common_dir.join("objects"), rules)
    }

    /// Merges `changes` (base and theirs) with the folder. Touches nothing.
    pub(crate) fn plan<'c>(&self, changes: &'c [Difference<'c>]) -> Result<Plan<'c>> {
        let top = &self.repo.top;
        // Stats are taken first, so that a change after reading is noticed.
        let seen: Vec<Option<Stat>> = changes.iter().map(|change| stat_of_file(top, change.path)).collect();
        let ours = self.entries(changes)?;
        let files: Vec<ThreeWay<'_>> = changes
            .iter()
            .zip(&ours)
            .map(|(change, ours)| ThreeWay { base: change.old, ours: ours.as_ref(), theirs: change.new })
            .collect();
        let mut plan = Plan::default();
        for ((change, seen), merged) in changes.iter().zip(seen).zip(merge(&self.trees, &files)?) {
            let path = change.path;
            match merged {
                Merged::Had => plan.had.push(path),
                Merged::Conflict => plan.conflicts.push(path),
                Merged::Theirs => {
                    plan.steps.push(Step { path, to: change.new.cloned(), seen, merged: false })
                }
                Merged::Both(entry) => {
                    plan.merged.push(path);
                    let to = Some(TreeEntry { path: path.to_vec(), ..entry });
                    plan.steps.push(Step { path, to, seen, merged: true });
                }
            }
        }
        Ok(plan)
    }

    /// What occupies the paths of the plan and isn't removed by it.
    pub(crate) fn in_the_way(&self, plan: &Plan<'_>) -> BTreeSet<PathBuf> {
        let gone: HashSet<&[u8]> =
            plan.steps.iter().filter(|step| step.to.is_none()).map(|step| step.path).collect();
        let mut found = BTreeSet::new();
        for step in plan.steps.iter().filter(|step| step.to.is_some()) {
            if kind_of(&self.repo.top, step.path) == Some(true) {
                self.unknown_below(step.path, &gone, DEPTH_MAX, &mut found);
            }
            let mut folder = parent(step.path);
            while !folder.is_empty() {
                if kind_of(&self.repo.top, folder) == Some(false) && !gone.contains(folder) {
                    found.insert(PathBuf::from(OsStr::from_bytes(folder)));
                }
                folder = parent(folder);
            }
        }
        found
    }

    /// Adds everything below a folder that isn't removed. An empty folder counts: no file can replace it.
    fn unknown_below(
        &self,
        folder: &[u8],
        gone: &HashSet<&[u8]>,
        depth: usize,
        found: &mut BTreeSet<PathBuf>,
    ) {
        let names =
            crate::snapshot::watch::list(&self.repo.top, folder).filter(|_| depth > 0).unwrap_or_default();
        if names.is_empty() {
            found.insert(PathBuf::from(OsStr::from_bytes(folder)));
        }
        for (name, kind) in names {
            let path = crate::snapshot::survey::join(folder, &name);
            match kind {
                crate::snapshot::watch::NameKind::Folder => self.unknown_below(&path, gone, depth - 1, found),
                _ if gone.contains(path.as_slice()) => {}
                _ => drop(found.insert(PathBuf::from(OsStr::from_bytes(&path)))),
            }
        }
    }

    /// Writes the plan, removals first, so that a file can replace a folder and vice versa.
    pub(crate) fn write(
        &self,
        plan: &Plan<'_>,
        source: Source<'_>,
        mut each: impl FnMut(&[u8], Written),
    ) -> Result<()> {
        if plan.is_empty() {
            return Ok(());
        }
        let staged = self.stage(&plan.steps, source)?;
        for step in plan.steps.iter().filter(|step| step.to.is_none()) {
            each(step.path, self.remove(step)?);
        }
        for step in &plan.steps {
            let Some(entry) = &step.to else { continue };
            let done = match staged.contains(step.path) {
                true => self.place(step, entry)?,
                false => Written::InTheWay,
            };
            each(step.path, done);
        }
        Ok(())
    }

    fn files_in_room(&self) -> PathBuf {
        self.room.join("files")
    }

    /// The entries of the files in the folder now. Git hashes only those that equal neither base nor theirs byte by
    /// byte: the user's edits, and files with a filter or other line ends.
    fn entries(&self, changes: &[Difference<'_>]) -> Result<Vec<Option<TreeEntry>>> {
        let top = &self.repo.top;
        let mut found = Vec::with_capacity(changes.len());
        let (mut unsure, mut absent) = (Vec::new(), Vec::new());
        for (at, change) in changes.iter().enumerate() {
            let sides = [change.new, change.old];
            let entry = self.same_as(top, change.path, sides).cloned();
            if entry.is_none() && stat_of_file(top, change.path).is_some() {
                unsure.push((at, change.old.or(change.new)));
            } else if entry.is_none() && change.old.is_some() {
                absent.push(at);
            }
            found.push(entry);
        }
        let known: Vec<(&[u8], Option<&TreeEntry>)> =
            unsure.iter().map(|(at, entry)| (changes[*at].path, *entry)).collect();
        let mut hashed = self.hashed(top, &known)?;
        for (at, _) in unsure {
            let path = changes[at].path;
            // An unreadable folder or a pipe: neither side's file.
            let odd = || TreeEntry {
                path: path.to_vec(),
                mode: 0,
                oid: self.repo.object_format.id_of("odd", path),
            };
            found[at] = Some(hashed.remove(path).unwrap_or_else(odd));
        }
        if !absent.is_empty() {
            let unwatched = self.skipped()?;
            for at in absent.into_iter().filter(|at| unwatched.contains(changes[*at].path)) {
                found[at] = changes[at].old.cloned();
            }
        }
        Ok(found)
    }

    /// The files that a sparse checkout leaves out: they don't count as deleted.
    fn skipped(&self) -> Result<HashSet<Vec<u8>>> {
        let listed = self.repo.git().call(["ls-files", "-t", "-z"]).run()?.stdout;
        let skipped = listed.split(|b| *b == 0).filter_map(|line| line.strip_prefix(b"S "));
        Ok(skipped.map(<[u8]>::to_vec).collect())
    }

    fn same_as<'e>(
        &self,
        top: &Path,
        path: &[u8],
        sides: [Option<&'e TreeEntry>; 2],
    ) -> Option<&'e TreeEntry> {
        if !stands_on_real_folders(top, path) {
            return None;
        }
        let file = on_disk(top, path);
        let meta = fs::symlink_metadata(&file).ok()?;
        let (mode, bytes) = if meta.is_symlink() {
            (MODE_LINK, fs::read_link(&file).ok()?.into_os_string().into_encoded_bytes())
        } else if meta.is_file() && meta.len() <= READ_MAX {
            (file_mode(&meta), ralph_loop_safe_fs::read_plain(&file, READ_MAX).ok()?)
        } else {
            return None;
        };
        let oid = self.repo.object_format.id_of("blob", &bytes);
        sides.into_iter().flatten().find(|side| (side.mode, side.oid) == (mode, oid))
    }

    /// The entries of files below `top` with git's hashes, from three processes. An index keeps their modes if the
    /// disk has none.
    fn hashed(
        &self,
        top: &Path,
        files: &[(&[u8], Option<&TreeEntry>)],
    ) -> Result<HashMap<Vec<u8>, TreeEntry>> {
        let readable = |path: &[u8]| {
            let file = on_disk(top, path);
            stands_on_real_folders(top, path)
                && fs::symlink_metadata(&file).is_ok_and(|meta| {
                    meta.is_symlink()
                        || meta.is_file() && nix::unistd::access(&file, AccessFlags::R_OK).is_ok()
                })
        };
        let files: Vec<_> = files.iter().filter(|(path, _)| readable(path)).collect();
        if files.is_empty() {
            return Ok(HashMap::new());
        }
        let git = self.git.clone().with_work_tree(top);
        let index = self.new_index()?;
        let known = files.iter().filter_map(|(path, entry)| Some((*path, (*entry)?)));
        let known: Vec<u8> =
            known.filter(|(_, entry)| entry.mode != MODE_GITLINK).flat_map(index_line).collect();
        git.call(["update-index", "-z", "--index-info"]).index(&index).stdin(known).run()?;
        let is_file = |path: &[u8]| fs::symlink_metadata(on_disk(top, path)).is_ok_and(|meta| meta.is_file());
        let filtered = match &self.filters {
            Some(filters) => {
                let found =
                    filters.among(top, files.iter().map(|(path, _)| *path).filter(|path| is_file(path)))?;
                filters.clean(&git, top, found)?
            }
            None => Vec::new(),
        };
        let mut entries = HashMap::new();
        for (path, oid) in filtered {
            let meta = fs::symlink_metadata(on_disk(top, &path)).map_err(|e| Error::file("read", top, e))?;
            entries.insert(path.clone(), TreeEntry { mode: file_mode(&meta), path, oid });
        }
        let plain = files.iter().filter(|(path, _)| !entries.contains_key(*path));
        let paths: Vec<u8> = plain.flat_map(|(path, _)| [path, &b"\0"[..]].concat()).collect();
        let args = ["update-index", "--add", "--replace", "-z", "--stdin"];
        self.with_attributes(git.call(args)).index(&index).stdin(paths).run()?;
        let listed = git.call(["ls-files", "-s", "-z"]).index(&index).run()?.stdout;
        for entry in crate::snapshot::entry::parse_ls_files(&listed) {
            entries.entry(entry.path.clone()).or_insert(entry);
        }
        Ok(entries)
    }

    fn with_attributes(&self, call: crate::process::command::GitCall) -> crate::process::command::GitCall {
        match &self.attributes {
            Some(tree) => call.env("GIT_ATTR_SOURCE", tree),
            None => call,
        }
    }

    fn new_index(&self) -> Result<PathBuf> {
        let index = self.room.join("index");
        match fs::remove_file(&index) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::file("remove", &index, e)),
            _ => Ok(index),
        }
    }

    /// Puts complete files into the room: copies, or what git checks out. Leaves out a copy that no longer matches
    /// its record.
    fn stage<'s>(&self, steps: &'s [Step<'_>], source: Source<'_>) -> Result<HashSet<&'s [u8]>> {
        let room = self.files_in_room();
        let _ = ralph_loop_safe_fs::remove_tree(&room);
        fs::create_dir_all(&room).map_err(|e| Error::file("create", &room, e))?;
        let (mut ready, mut unsure, mut lines) = (HashSet::new(), Vec::new(), Vec::new());
        let mut recorded = Vec::new();
        for step in steps {
            let Some(entry) = step.to.as_ref().filter(|entry| entry.mode != MODE_GITLINK) else { continue };
            match source {
                Source::Folder(from) if !step.merged => {
                    if !copy(from, &room, step.path, entry)? {
                        continue;
                    }
                    match self.same_as(&room, step.path, [Some(entry), None]).is_some() {
                        true => drop(ready.insert(step.path)),
                        false => unsure.push((step.path, Some(entry))),
                    }
                }
                _ => {
                    lines.extend(index_line((step.path, entry)));
                    recorded.push(entry);
                    ready.insert(step.path);
                }
            }
        }
        let hashed = self.hashed(&room, &unsure)?;
        let sound = |(path, entry): &(&[u8], Option<&TreeEntry>)| {
            hashed.get(*path).is_some_and(|found| entry.is_some_and(|entry| entry.same_file(found)))
        };
        ready.extend(unsure.iter().filter(|file| sound(file)).map(|(path, _)| *path));
        if !lines.is_empty() {
            let index = self.new_index()?;
            self.git.call(["update-index", "-z", "--index-info"]).index(&index).stdin(lines).run()?;
            let mut prefix = OsString::from("--prefix=");
            prefix.push(&room);
            prefix.push("/");
            let args = [OsStr::new("checkout-index"), OsStr::new("-qfa"), &prefix];
            self.with_attributes(self.git.call(args)).index(&index).run()?;
            if let Some(filters) = &self.filters {
                filters.smudge(&self.git, &room, &recorded)?;
            }
        }
        Ok(ready)
    }

    /// Whether nothing on the path to the file changed since it was compared.
    fn is_as_seen(&self, step: &Step<'_>) -> bool {
        stands_on_real_folders(&self.repo.top, step.path)
            && stat_of_file(&self.repo.top, step.path) == step.seen
    }

    fn place(&self, step: &Step<'_>, entry: &TreeEntry) -> Result<Written> {
        let target = on_disk(&self.repo.top, step.path);
        if kind_of(&self.repo.top, step.path) == Some(true) || !self.is_as_seen(step) {
            return Ok(Written::InTheWay);
        }
        if let Some(folder) = target.parent() {
            match fs::create_dir_all(folder) {
                Err(e) if e.kind() == ErrorKind::InvalidFilename => return Ok(Written::InTheWay),
                made => made.map_err(|e| Error::file("create", folder, e))?,
            }
        }
        let staged = on_disk(&self.files_in_room(), step.path);
        match move_to(&staged, entry, &target) {
            Ok(()) => Ok(Written::Done),
            // A path that fits in one folder can be too long in the other.
            Err(e) if e.kind() == ErrorKind::InvalidFilename => Ok(Written::InTheWay),
            Err(e) => Err(Error::file("write", &target, e)),
        }
    }

    fn remove(&self, step: &Step<'_>) -> Result<Written> {
        if !self.is_as_seen(step) {
            return Ok(Written::InTheWay);
        }
        let target = on_disk(&self.repo.top, step.path);
        match fs::remove_file(&target) {
            Ok(()) => {}
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(e) if e.kind() == ErrorKind::IsADirectory => return Ok(Written::InTheWay),
            Err(e) => return Err(Error::file("remove", &target, e)),
        }
        // Removes folders that this leaves empty.
        let mut dir = parent(step.path);
        while !dir.is_empty() && fs::remove_dir(on_disk(&self.repo.top, dir)).is_ok() {
            dir = parent(dir);
        }
        Ok(Written::Done)
    }
}

impl Drop for Target<'_> {
    fn drop(&mut self) {
        let _ = ralph_loop_safe_fs::remove_tree(&self.room);
    }
}

pub(crate) fn stat_of_file(top: &Path, path: &[u8]) -> Option<Stat> {
    (kind_of(top, path) == Some(false)).then(|| stat_of(&on_disk(top, path))).flatten()
}

fn kind_of(top: &Path, path: &[u8]) -> Option<bool> {
    fs::symlink_metadata(on_disk(top, path)).ok().map(|meta| meta.is_dir())
}

/// Copies a file or link below `from` to the same path below `room`. `false` if it isn't what it should be.
fn copy(from: &Path, room: &Path, path: &[u8], entry: &TreeEntry) -> Result<bool> {
    let (source, target) = (on_disk(from, path), on_disk(room, path));
    let Ok(meta) = fs::symlink_metadata(&source) else { return Ok(false) };
    let is_kind = if entry.mode == MODE_LINK { meta.is_symlink() } else { meta.is_file() };
    if !is_kind || !stands_on_real_folders(from, path) {
        return Ok(false);
    }
    let copied = || {
        fs::create_dir_all(target.parent().unwrap_or(room))?;
        if entry.mode == MODE_LINK {
            return std::os::unix::fs::symlink(fs::read_link(&source)?, &target);
        }
        // Follows no link, and doesn't block on a pipe.
        let flags = nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK;
        let mut from = OpenOptions::new().read(true).custom_flags(flags.bits()).open(&source)?;
        if !from.metadata()?.is_file() {
            return Err(ErrorKind::InvalidInput.into());
        }
        let mut to = File::create_new(&target)?;
        std::io::copy(&mut from, &mut to)?;
        let mode = from.metadata()?.permissions().mode() & 0o664;
        let mode = if entry.mode & 0o111 != 0 { mode | ((mode & 0o444) >> 2) } else { mode };
        to.set_permissions(Permissions::from_mode(mode | 0o600))
    };
    match copied() {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::StorageFull => Err(Error::file("copy", &source, e)),
        Err(_) => Ok(false),
    }
}

/// Moves a complete file into place. Its permissions stay the user's choice; git only records the executable bit.
fn move_to(staged: &Path, entry: &TreeEntry, target: &Path) -> std::io::Result<()> {
    let old = fs::symlink_metadata(target).ok().filter(fs::Metadata::is_file);
    if let Some(old) = old.filter(|_| entry.mode != MODE_LINK) {
        let mode = old.permissions().mode() & 0o7777;
        let mode = if entry.mode & 0o111 != 0 { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 };
        fs::set_permissions(staged, Permissions::from_mode(mode))?;
    }
    match fs::rename(staged, target) {
        Err(e) if e.kind() == ErrorKind::CrossesDevices => {
            let mut name = OsStr::new(".ralph-incoming-").to_owned();
            name.push(target.file_name().unwrap_or_default());
            let next_to = target.with_file_name(name);
            let moved = match entry.mode {
                MODE_LINK => std::os::unix::fs::symlink(fs::read_link(staged)?, &next_to),
                _ => fs::copy(staged, &next_to).map(drop),
            };
            moved.and_then(|()| fs::rename(&next_to, target)).inspect_err(|_| {
                let _ = fs::remove_file(&next_to);
            })
        }
        done => done,
    }
}

/// Whether all folders above `path` are folders or missing, not links or files.
pub(crate) fn stands_on_real_folders(top: &Path, path: &[u8]) -> bool {
    let mut folder = parent(path);
    while !folder.is_empty() {
        if kind_of(top, folder) == Some(false) {
            return false;
        }
        folder = parent(folder);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::entry::differences;
    use ralph_loop_domain::vars::Vars;

    struct Sides {
        dir: tempfile::TempDir,
        repo: Repo,
    }

    #[allow(clippy::disallowed_methods, reason = "tests are a border, too")]
    fn vars() -> Vars {
        std::env::vars_os().collect()
    }

    impl Sides {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let top = dir.path().join("user");
            fs::create_dir(&top).unwrap();
            fs::create_dir(dir.path().join("agent")).unwrap();
            let git = Git::in_folder(&vars(), &top);
            git.call(["init", "-q"]).run().unwrap();
            let who = ["-c", "user.name=u", "-c", "user.email=u@example.com"];
            let commit = ["commit", "-q", "--allow-empty", "-m", "start"];
            git.call(who.into_iter().chain(commit)).run().unwrap();
            Self { repo: Repo::discover(&vars(), &top).unwrap(), dir }
        }
        fn agent(&self) -> PathBuf {
            self.dir.path().join("agent")
        }
        fn user(&self) -> &Path {
            &self.repo.top
        }
        fn recorded(&self, top: &Path, paths: &[&str]) -> Vec<TreeEntry> {
            let git = self.repo.git().with_work_tree(top);
            let index = self.dir.path().join("index");
            let _ = fs::remove_file(&index);
            let paths = paths.iter().copied();
            git.call(["update-index", "--add"].into_iter().chain(paths)).index(&index).run().unwrap();
            let listed = git.call(["ls-files", "-s", "-z"]).index(&index).run().unwrap().stdout;
            crate::snapshot::entry::parse_ls_files(&listed)
        }
        fn apply(&self, base: &[TreeEntry], theirs: &[TreeEntry]) -> (Vec<String>, Vec<String>) {
            self.apply_after(base, theirs, || {})
        }
        fn apply_after(
            &self,
            base: &[TreeEntry],
            theirs: &[TreeEntry],
            meanwhile: impl FnOnce(),
        ) -> (Vec<String>, Vec<String>) {
            let objects = self.repo.common_dir.join("objects");
            let room = self.dir.path().join("room");
            let target = Target::new(&self.repo, room, &objects, &objects, (&Arc::default(), None)).unwrap();
            let changes = differences(base, theirs);
            let plan = target.plan(&changes).unwrap();
            let mut left: Vec<String> =
                plan.conflicts.iter().map(|path| crate::snapshot::entry::text(path)).collect();
            let mut written = Vec::new();
            meanwhile();
            target
                .write(&plan, Source::Folder(&self.agent()), |path, done| {
                    let list = if done == Written::Done { &mut written } else { &mut left };
                    list.push(crate::snapshot::entry::text(path));
                })
                .unwrap();
            (written, left)
        }
    }

    fn none() -> Vec<String> {
        Vec::new()
    }

    #[test]
    fn files_links_and_modes_are_written_and_removed() {
        let sides = Sides::new();
        let agent = sides.agent();
        fs::create_dir(agent.join("a")).unwrap();
        fs::write(agent.join("a/run"), "x").unwrap();
        fs::set_permissions(agent.join("a/run"), Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("../elsewhere", agent.join("a/link")).unwrap();
        let first = sides.recorded(&agent, &["a/run", "a/link"]);
        assert_eq!(sides.apply(&[], &first).0.len(), 2);
        let run = sides.user().join("a/run");
        assert_eq!(fs::metadata(&run).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_link(sides.user().join("a/link")).unwrap(), Path::new("../elsewhere"));
        // The file's permissions stay the user's choice.
        fs::set_permissions(&run, Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(agent.join("a/run"), Permissions::from_mode(0o644)).unwrap();
        let second = sides.recorded(&agent, &["a/run", "a/link"]);
        assert_eq!(sides.apply(&first, &second).0, ["a/run"]);
        assert_eq!(fs::metadata(&run).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(sides.apply(&second, &second), (none(), none()));
        assert_eq!(sides.apply(&second, &[]).0.len(), 2);
        assert!(!sides.user().join("a").exists());
    }

    #[test]
    fn edits_in_different_places_are_merged_once_and_in_the_same_place_conflict() {
        let sides = Sides::new();
        let agent = sides.agent();
        let write = |top: &Path, name: &str, text: &str| fs::write(top.join(name), text).unwrap();
        for name in ["both", "same", "gone"] {
            write(&agent, name, "1\n2\n3\n4\n5\n");
        }
        let base = sides.recorded(&agent, &["both", "same", "gone"]);
        sides.apply(&[], &base);
        write(&agent, "both", "one\n2\n3\n4\n5\n");
        write(&agent, "same", "one\n2\n3\n4\n5\n");
        write(&agent, "gone", "one\n2\n3\n4\n5\n");
        let theirs = sides.recorded(&agent, &["both", "same", "gone"]);
        write(sides.user(), "both", "1\n2\n3\n4\nfive\n");
        write(sides.user(), "same", "uno\n2\n3\n4\n5\n");
        fs::remove_file(sides.user().join("gone")).unwrap();
        let conflicts = vec!["gone".to_owned(), "same".to_owned()];
        assert_eq!(sides.apply(&base, &theirs), (vec!["both".to_owned()], conflicts.clone()));
        assert_eq!(fs::read_to_string(sides.user().join("both")).unwrap(), "one\n2\n3\n4\nfive\n");
        assert_eq!(sides.apply(&base, &theirs), (none(), conflicts), "the merge is recognized as done");
    }

    #[test]
    fn apply_never_writes_through_links_or_over_folders_or_new_changes() {
        let sides = Sides::new();
        let agent = sides.agent();
        let outside = sides.dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::create_dir(agent.join("d")).unwrap();
        for name in ["d/x", "f", "g"] {
            fs::write(agent.join(name), "agent").unwrap();
        }
        let theirs = sides.recorded(&agent, &["d/x", "f", "g"]);
        std::os::unix::fs::symlink(&outside, sides.user().join("d")).unwrap();
        fs::create_dir(sides.user().join("f")).unwrap();
        let fresh = || fs::write(sides.user().join("g"), "just now").unwrap();
        assert_eq!(sides.apply_after(&[], &theirs, fresh).0, none());
        assert!(!outside.join("x").exists());
        assert_eq!(fs::read(sides.user().join("g")).unwrap(), b"just now");
        fs::remove_file(sides.user().join("g")).unwrap();
        // A copy that no longer matches its record isn't handed back.
        let later = || fs::write(agent.join("g"), "later").unwrap();
        assert!(!sides.apply_after(&[], &theirs, later).0.contains(&"g".to_owned()));
        fs::write(agent.join("g"), "agent").unwrap();
        assert_eq!(sides.apply(&[], &theirs).0, ["g"]);
    }

    #[test]
    fn a_path_that_is_too_long_in_the_folder_is_left_out() {
        let mut sides = Sides::new();
        let long = sides.dir.path().join("t".repeat(250));
        fs::create_dir(&long).unwrap();
        sides.repo.top = long;
        let agent = sides.agent();
        let deep = format!("{}/", "l".repeat(200)).repeat((4080 - agent.as_os_str().len()) / 201);
        fs::create_dir_all(agent.join(&deep)).unwrap();
        fs::write(agent.join(&deep).join("f"), "x").unwrap();
        let path = format!("{deep}f").into_bytes();
        let oid = sides.repo.object_format.id_of("blob", b"x");
        let theirs = [TreeEntry { path, mode: 0o100_644, oid }];
        assert_eq!(sides.apply(&[], &theirs).1.len(), 1);
    }
}
