//! Updates a private index from the files of a tree.
//!
//! Git gets every path, and never looks into a folder on its own: it would enter a nested repo, trust its
//! configuration, and run the programs that it names.

use crate::error::{Error, Result};
use crate::filters::Filters;
use crate::objects::index;
use crate::objects::oid::{ObjectFormat, Oid};
use crate::process::command::{Git, GitCall, GitError};
use crate::snapshot::entry::{MODE_GITLINK, TreeEntry, file_mode, on_disk};
use crate::snapshot::survey::{join, parent};
use crate::snapshot::watch::{NameKind, list, stat_of};
use nix::unistd::AccessFlags;
use ralph_loop_safe_fs::{Kind, Links, SafeDir};
use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// With more changed folders than this, the whole tree is listed.
const FOLDERS_MAX: usize = 64;
/// More than any ref, `HEAD` or `.git` file holds.
const REF_MAX: u64 = 64 * 1024;
/// More entries than this are passed as git's input.
const ARGUMENTS_MAX: usize = 100;
const PACKED_REFS_MAX: u64 = 64 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NestedRepos {
    /// Recorded as a link to its commit: it is the user's.
    Pinned,
    /// Its files are recorded like any others, without its `.git`: the agent may have made it.
    AsFiles,
}

#[derive(Debug)]
pub(crate) struct Staging<'a> {
    pub(crate) git: &'a Git,
    pub(crate) index: &'a Path,
    pub(crate) top: &'a Path,
    pub(crate) attributes: Option<&'a str>,
    pub(crate) filters: Option<&'a Filters>,
    pub(crate) nested: NestedRepos,
    pub(crate) format: ObjectFormat,
}

/// What the index doesn't hold and git doesn't ignore.
#[derive(Debug, Default)]
pub(crate) struct Untracked {
    pub(crate) files: Vec<Vec<u8>>,
    pub(crate) links: Vec<TreeEntry>,
}

impl Staging<'_> {
    fn call<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> GitCall {
        let call = self.git.call(args).index(self.index);
        match self.attributes {
            Some(tree) => call.env("GIT_ATTR_SOURCE", tree),
            None => call,
        }
    }

    pub(crate) fn untracked(&self, folders: Option<&[Vec<u8>]>) -> Result<Untracked> {
        let mut args: Vec<OsString> = ["ls-files", "-o", "-z", "--exclude-standard"].map(Into::into).into();
        let all = |folders: &&[Vec<u8>]| folders.len() > FOLDERS_MAX || folders.iter().any(Vec::is_empty);
        if let Some(folders) = folders.filter(|folders| !all(folders)) {
            args.push("--".into());
            args.extend(
                folders.iter().map(|path| OsString::from_vec([b":(top,literal)", path.as_slice()].concat())),
            );
        }
        let output = self.call(args).run()?;
        let mut found = Untracked::default();
        let mut inside = Vec::new();
        for path in output.stdout.split(|b| *b == 0).filter(|path| !path.is_empty()) {
            match (path.strip_suffix(b"/"), self.nested) {
                (None, _) => found.files.push(path.to_owned()),
                (Some(repo), NestedRepos::Pinned) => {
                    // Without a commit it is pinned all the same, at an id that doesn't exist.
                    let head =
                        head_of_nested(self.top, repo).unwrap_or_else(|| self.format.id_of("blob", b""));
                    found.links.push(TreeEntry { path: repo.to_owned(), mode: MODE_GITLINK, oid: head });
                }
                (Some(repo), NestedRepos::AsFiles) => walk(self.top, repo, &mut inside),
            }
        }
        found.files.extend(self.not_ignored(inside)?);
        Ok(found)
    }

    fn not_ignored(&self, paths: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        if paths.is_empty() {
            return Ok(paths);
        }
        let call = self.call(["check-ignore", "-z", "--stdin"]).stdin(lines(paths.iter()));
        let output = call.accept(&[1]).run()?;
        let ignored: BTreeSet<&[u8]> = output.stdout.split(|b| *b == 0).collect();
        Ok(paths.iter().filter(|path| !ignored.contains(path.as_slice())).cloned().collect())
    }

    /// Adds `entries` to the index without any stats of their files, then updates these paths from the disk. Deleted
    /// files leave the index.
    pub(crate) fn update(
        &self,
        paths: &BTreeSet<Vec<u8>>,
        entries: &[TreeEntry],
        settings: &[&str],
    ) -> Result<()> {
        let mut real = RealFolders::new(self.top);
        let (paths, hidden): (Vec<&Vec<u8>>, Vec<&Vec<u8>>) =
            paths.iter().partition(|path| real.lead_to(path));
        if !hidden.is_empty() {
            // A folder has become a link: what git knew below it is gone.
            self.forget(hidden.into_iter())?;
        }
        let (paths, cleaned) = self.cleaned(paths)?;
        let is_cleaned = |entry: &&TreeEntry| cleaned.iter().any(|other| other.path == entry.path);
        let others = entries.iter().filter(|entry| !is_cleaned(entry)).cloned();
        let all: Vec<TreeEntry> = others.chain(cleaned.iter().cloned()).collect();
        let mut entries = all.as_slice();
        if entries.len() > ARGUMENTS_MAX {
            let call = self.call(["update-index", "--add", "--replace", "-z", "--index-info"]);
            let line = |entry: &TreeEntry| {
                [format!("{:o} {}\t", entry.mode, entry.oid).as_bytes(), &entry.path, b"\0"].concat()
            };
            call.stdin(entries.iter().flat_map(line).collect::<Vec<u8>>()).run()?;
            entries = &[];
        }
        if paths.is_empty() && entries.is_empty() {
            return Ok(());
        }
        let update = |paths: Vec<u8>| {
            let mut args: Vec<OsString> =
                ["update-index", "--add", "--remove", "--replace"].map(Into::into).into();
            for TreeEntry { mode, oid, path } in entries {
                let entry = [format!("{mode:o},{oid},").as_bytes(), path.as_slice()].concat();
                args.extend(["--cacheinfo".into(), OsString::from_vec(entry)]);
            }
            args.extend(["-z", "--stdin"].map(OsString::from));
            // A file outside a sparse checkout is recorded if it exists; without this, git would remove its entry.
            let call = self.call(args).config("core.sparseCheckout=true").in_tree();
            let call = settings.iter().fold(call, |call, setting| call.config(*setting));
            call.stdin(paths).run().map(drop)
        };
        match update(lines(paths.iter().copied())) {
            // An unreadable file keeps its entry, one that became a pipe or a socket is gone; all others are added.
            Err(error) if error.code() == Some(128) => {
                let (special, rest): (Vec<&Vec<u8>>, Vec<&Vec<u8>>) =
                    paths.iter().copied().partition(|path| self.is_special(path));
                let readable: Vec<&Vec<u8>> =
                    rest.iter().copied().filter(|path| self.is_readable(path)).collect();
                if readable.len() == paths.len() {
                    return Err(error.into());
                }
                if !special.is_empty() {
                    self.forget(special.into_iter())?;
                }
                Ok(update(lines(readable.into_iter()))?)
            }
            done => Ok(done?),
        }
    }

    /// The entries of changed files with a filter, and the other paths.
    fn cleaned<'p>(&self, paths: Vec<&'p Vec<u8>>) -> Result<(Vec<&'p Vec<u8>>, Vec<TreeEntry>)> {
        let Some(filters) = self.filters else { return Ok((paths, Vec::new())) };
        let is_file = |path: &&&Vec<u8>| {
            let meta = std::fs::symlink_metadata(on_disk(self.top, path));
            meta.is_ok_and(|meta| meta.is_file()) && self.is_readable(path)
        };
        let mut filtered =
            filters.among(self.top, paths.iter().filter(is_file).map(|path| path.as_slice()))?;
        if filtered.is_empty() {
            return Ok((paths, Vec::new()));
        }
        let apart: BTreeSet<Vec<u8>> = filtered.iter().map(|file| file.path.clone()).collect();
        let unchanged = self.unchanged()?;
        filtered.retain(|file| !unchanged.contains(&file.path));
        let cleaned = filters.clean(self.git, self.top, filtered)?;
        let entry = |(path, oid): (Vec<u8>, Oid)| {
            let meta = std::fs::symlink_metadata(on_disk(self.top, &path)).ok()?;
            Some(TreeEntry { mode: file_mode(&meta), path, oid })
        };
        let others = paths.into_iter().filter(|path| !apart.contains(*path)).collect();
        Ok((others, cleaned.into_iter().filter_map(entry).collect()))
    }

    /// The files that are as the index knows them. One that was written in the same second may have changed since.
    fn unchanged(&self) -> Result<BTreeSet<Vec<u8>>> {
        let Ok(meta) = std::fs::metadata(self.index) else { return Ok(BTreeSet::new()) };
        let bytes = std::fs::read(self.index).map_err(|e| Error::file("read", self.index, e))?;
        let Ok(known) = index::parse(&bytes, self.format, self.index) else { return Ok(BTreeSet::new()) };
        let written = index::Stat::from(&meta).mtime.0;
        let same = known.entries.into_iter().filter(|item| {
            item.stat.mtime.0 < written && stat_of(&on_disk(self.top, &item.entry.path)) == Some(item.stat)
        });
        Ok(same.map(|item| item.entry.path).collect())
    }

    fn forget<'a>(&self, paths: impl Iterator<Item = &'a Vec<u8>>) -> Result<(), GitError> {
        let call = self.call(["update-index", "--force-remove", "-z", "--stdin"]);
        call.stdin(lines(paths)).run().map(drop)
    }

    fn is_special(&self, path: &[u8]) -> bool {
        let found = std::fs::symlink_metadata(on_disk(self.top, path));
        found.is_ok_and(|meta| !meta.is_file() && !meta.is_dir() && !meta.is_symlink())
    }

    fn is_readable(&self, path: &[u8]) -> bool {
        let path = on_disk(self.top, path);
        match std::fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_file() => nix::unistd::access(&path, AccessFlags::R_OK).is_ok(),
            _ => true,
        }
    }
}

/// Knows which paths have no link among their folders; checks each folder once.
struct RealFolders<'a> {
    top: &'a Path,
    known: HashMap<&'a [u8], bool>,
}

impl<'a> RealFolders<'a> {
    fn new(top: &'a Path) -> Self {
        Self { top, known: HashMap::from([(&b""[..], true)]) }
    }

    fn lead_to(&mut self, path: &'a [u8]) -> bool {
        let folder = parent(path);
        if let Some(real) = self.known.get(folder) {
            return *real;
        }
        let is_link =
            || std::fs::symlink_metadata(on_disk(self.top, folder)).is_ok_and(|meta| meta.is_symlink());
        let real = !is_link() && self.lead_to(folder);
        self.known.insert(folder, real);
        real
    }
}

fn lines<'a>(paths: impl Iterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    let mut input = Vec::new();
    for path in paths {
        input.extend_from_slice(path);
        input.push(0);
    }
    input
}

/// All files and links below a folder, except git's.
fn walk(top: &Path, folder: &[u8], out: &mut Vec<Vec<u8>>) {
    for (name, kind) in list(top, folder).unwrap_or_default() {
        let path = join(folder, &name);
        if name.eq_ignore_ascii_case(b".git") {
            continue;
        }
        match kind {
            NameKind::Folder => walk(top, &path, out),
            NameKind::File | NameKind::Link => out.push(path),
            NameKind::Special => {}
        }
    }
}

/// The commit of a nested repo, read from its files: git would trust its configuration.
fn head_of_nested(top: &Path, path: &[u8]) -> Option<Oid> {
    let folder = SafeDir::open(on_disk(top, path)).ok()?;
    let git_dir = match folder.facts(".git").ok()?.kind {
        Kind::Folder => folder.path().join(".git"),
        Kind::File => {
            let text = folder.read_text(".git", Links::Refused, REF_MAX).ok()?;
            folder.path().join(text.trim_end().strip_prefix("gitdir: ")?)
        }
        Kind::Link | Kind::Special => return None,
    };
    let git = SafeDir::open(&git_dir).ok()?;
    let head = git.read_text("HEAD", Links::Refused, REF_MAX).ok()?;
    let Some(name) = head.trim_end().strip_prefix("ref: ") else {
        return Oid::from_hex(head.trim_end().as_bytes());
    };
    let common = match git.read_text("commondir", Links::Refused, REF_MAX) {
        Ok(text) => SafeDir::open(git_dir.join(PathBuf::from(text.trim_end()))).ok()?,
        Err(_) => git,
    };
    if let Ok(text) = common.read_text(name, Links::Refused, REF_MAX) {
        return Oid::from_hex(text.trim_end().as_bytes());
    }
    let packed = common.read_text("packed-refs", Links::Refused, PACKED_REFS_MAX).ok()?;
    let id = packed.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' '))?;
    Oid::from_hex(id.as_bytes())
}
