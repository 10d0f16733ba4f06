//! Filters of the user's settings: `clean` turns a file into what git records, `smudge` turns it back. Attributes of
//! the start say which files have one. They run in a sandbox, never on this machine; LFS is built in.

mod lfs;
mod sandbox_git;

pub use sandbox_git::{FilterRoom, set_filter_sandbox};

use crate::error::{Error, Result};
use crate::filters::lfs::LfsStore;
use crate::filters::sandbox_git::{Direction, Filtered, SandboxGit};
use crate::objects::oid::Oid;
use crate::objects::writer::Objects;
use crate::process::command::Git;
use crate::process::engine_dir::EngineDir;
use crate::process::settings::{Driver, Settings};
use crate::repo::Repo;
use crate::snapshot::entry::{TreeEntry, on_disk, parse_ls_tree};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

/// Settings that decide the bytes of a file with a filter.
const ATTRIBUTES: &[&str] = &["filter", "text", "eol", "ident", "working-tree-encoding"];
const LFS: &str = "lfs";

#[derive(Debug, Clone)]
pub(crate) struct Filters {
    repo: Repo,
    settings: Arc<Settings>,
    drivers: BTreeMap<String, Driver>,
    /// The tree whose attributes count; without one, the files'.
    attributes: Option<String>,
    lfs: LfsStore,
}

impl Filters {
    /// `None` if the user's settings name no filter.
    pub(crate) fn of(repo: &Repo, settings: &Arc<Settings>, attributes: Option<&str>) -> Option<Self> {
        let drivers = settings.drivers();
        (!drivers.is_empty()).then(|| Self {
            repo: repo.clone(),
            settings: Arc::clone(settings),
            drivers,
            attributes: attributes.map(str::to_owned),
            lfs: LfsStore::of(repo),
        })
    }

    /// Writes the files of a fresh checkout that have a filter as they look on the disk. `source` is the repo that it
    /// was made from.
    pub(crate) fn smudge_checkout(
        repo: &Repo,
        source: Option<&Repo>,
        settings: &Arc<Settings>,
        attributes: Option<&str>,
    ) -> Result<()> {
        let Some(mut filters) = Self::of(repo, settings, attributes) else { return Ok(()) };
        if let Some(source) = source {
            filters.lfs.add(&LfsStore::of(source));
        }
        let git = repo.git();
        let listed = git.call(["ls-tree", "-r", "-z", "--full-tree", "HEAD"]).run()?.stdout;
        let entries = parse_ls_tree(&listed).ok_or_else(|| {
            Error::unreadable("the files of a checkout", "git printed something unexpected")
        })?;
        let is_there = |entry: &&TreeEntry| {
            fs::symlink_metadata(on_disk(&repo.top, &entry.path)).is_ok_and(|meta| meta.is_file())
        };
        filters.smudge(&git, &repo.top, &entries.iter().filter(is_there).collect::<Vec<_>>())
    }

    /// Those of `paths` that have a filter.
    pub(crate) fn among<'p>(
        &self,
        top: &Path,
        paths: impl IntoIterator<Item = &'p [u8]>,
    ) -> Result<Vec<Filtered>> {
        let paths: Vec<u8> = paths.into_iter().flat_map(|path| [path, b"\0"].concat()).collect();
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let git = self.repo.git().with_work_tree(top);
        let call = git.call(["check-attr", "-z", "--stdin"].iter().chain(ATTRIBUTES)).stdin(paths);
        let call = match &self.attributes {
            Some(tree) => call.env("GIT_ATTR_SOURCE", tree),
            None => call,
        };
        let listed = call.run()?.stdout;
        let fields: Vec<&[u8]> = listed.split(|b| *b == 0).collect();
        let mut found = Vec::new();
        for file in fields.chunks_exact(3 * ATTRIBUTES.len()) {
            let values: Vec<String> =
                file.chunks_exact(3).map(|one| String::from_utf8_lossy(one[2]).into_owned()).collect();
            if self.drivers.contains_key(&values[0]) {
                let path = file[0].to_vec();
                let filter = values[0].clone();
                let attributes = ATTRIBUTES.iter().copied().zip(values).collect();
                found.push(Filtered { path, filter, attributes });
            }
        }
        Ok(found)
    }

    /// Records the files below `top`, and returns their ids. `git` writes the objects.
    pub(crate) fn clean(&self, git: &Git, top: &Path, files: Vec<Filtered>) -> Result<Vec<(Vec<u8>, Oid)>> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let (lfs, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.filter == LFS);
        let dir = EngineDir::new(&self.repo.vars)?;
        let mut done = Vec::new();
        for (number, file) in lfs.into_iter().enumerate() {
            let pointer = dir.path().join(format!("pointer-{number}"));
            if self.lfs.clean(&on_disk(top, &file.path), &pointer)? {
                done.push((file.path, pointer));
            }
        }
        done.extend(self.sandbox(&dir)?.convert(Direction::Clean, &others, |file| {
            ralph_loop_safe_fs::open_plain(on_disk(top, &file.path)).ok()
        })?);
        let objects = Objects::new(git.clone(), dir.path().to_owned());
        let ids = objects.blobs_of(done.iter().map(|(_, file)| file.as_path()))?;
        Ok(done.into_iter().map(|(path, _)| path).zip(ids).collect())
    }

    /// Writes recorded files below `top` as they look on the disk. `git` reads the objects.
    pub(crate) fn smudge(&self, git: &Git, top: &Path, entries: &[&TreeEntry]) -> Result<()> {
        let files = self.among(top, entries.iter().map(|entry| entry.path.as_slice()))?;
        if files.is_empty() {
            return Ok(());
        }
        let known: HashMap<&[u8], &TreeEntry> = entries
            .iter()
            .filter(|entry| entry.mode >> 12 == 0o10)
            .map(|e| (e.path.as_slice(), *e))
            .collect();
        let files: Vec<Filtered> =
            files.into_iter().filter(|file| known.contains_key(file.path.as_slice())).collect();
        let dir = EngineDir::new(&self.repo.vars)?;
        let ids: Vec<Oid> = files.iter().map(|file| known[file.path.as_slice()].oid).collect();
        let recorded = recorded(git, &ids, dir.path())?;
        let mut done = Vec::new();
        let (mut others, mut from) = (Vec::new(), HashMap::new());
        for (file, blob) in files.into_iter().zip(&recorded) {
            match file.filter == LFS {
                true => done.push((file.path.clone(), self.lfs.smudge(&file.path, blob)?)),
                false => {
                    from.insert(file.path.clone(), blob.clone());
                    others.push(file);
                }
            }
        }
        done.extend(self.sandbox(&dir)?.convert(Direction::Smudge, &others, |file| {
            ralph_loop_safe_fs::open_plain(from.get(&file.path)?).ok()
        })?);
        for (path, from) in done {
            let target = on_disk(top, &path);
            let placed = || -> std::io::Result<()> {
                if let Some(folder) = target.parent() {
                    fs::create_dir_all(folder)?;
                }
                match fs::remove_file(&target) {
                    Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
                    _ => {}
                }
                let (mut from, mut to) = (fs::File::open(&from)?, fs::File::create_new(&target)?);
                std::io::copy(&mut from, &mut to)?;
                if known.get(path.as_slice()).is_some_and(|entry| entry.mode & 0o111 != 0) {
                    let mode = to.metadata()?.permissions().mode();
                    to.set_permissions(fs::Permissions::from_mode(mode | ((mode & 0o444) >> 2)))?;
                }
                Ok(())
            };
            placed().map_err(|e| Error::file("write", &target, e))?;
        }
        Ok(())
    }

    /// Those of the recorded files that have a filter, and whether their object is another than its name says.
    pub(crate) fn overwritten(
        &self,
        git: &Git,
        top: &Path,
        entries: &[TreeEntry],
    ) -> Result<BTreeMap<Vec<u8>, bool>> {
        let files = self.among(top, entries.iter().map(|entry| entry.path.as_slice()))?;
        if files.is_empty() {
            return Ok(BTreeMap::new());
        }
        let dir = EngineDir::new(&self.repo.vars)?;
        let known: HashMap<&[u8], Oid> = entries.iter().map(|e| (e.path.as_slice(), e.oid)).collect();
        let ids: Vec<Oid> = files.iter().map(|file| known[file.path.as_slice()]).collect();
        let recorded = recorded(git, &ids, dir.path())?;
        let objects = Objects::new(git.clone(), dir.path().to_owned());
        let hashed = objects.hashes_of(recorded.iter().map(std::path::PathBuf::as_path))?;
        let differs = ids.iter().zip(hashed).map(|(id, hashed)| *id != hashed);
        Ok(files.into_iter().map(|file| file.path).zip(differs).collect())
    }

    fn sandbox<'d>(&'d self, dir: &'d EngineDir) -> Result<SandboxGit<'d>> {
        SandboxGit::new(&self.repo, &self.settings, &self.drivers, dir)
    }
}

/// Writes the blobs into files of `folder`, by one process.
fn recorded(git: &Git, ids: &[Oid], folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let wanted: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let unreadable = || Error::unreadable("what `git cat-file` said", "it isn't a list of files");
    let mut files = Vec::new();
    let (mut left, mut head, mut failed) = (0_u64, Vec::new(), None);
    let mut open: Option<fs::File> = None;
    git.call(["cat-file", "--batch"]).stdin(wanted).stream(&mut |mut bytes: &[u8]| {
        while !bytes.is_empty() && failed.is_none() {
            if let Some(file) = &mut open {
                let (now, rest) =
                    bytes.split_at(bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
                failed = std::io::Write::write_all(file, now).err().map(Some);
                (left, bytes) = (left - now.len() as u64, rest);
                if left == 0 {
                    open = None;
                }
                continue;
            }
            let end = bytes.iter().position(|b| *b == b'\n').map_or(bytes.len(), |end| end + 1);
            head.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end..];
            if !head.ends_with(b"\n") {
                continue;
            }
            // The line break after a file's content, or `<id> blob <size>`.
            let line = String::from_utf8_lossy(&std::mem::take(&mut head)).trim_end().to_owned();
            if line.is_empty() {
                continue;
            }
            let size = line.rsplit_once(" blob ").or_else(|| line.split_once("blob "));
            let Some(size) = size.and_then(|(_, size)| size.parse().ok()) else {
                failed = Some(None);
                continue;
            };
            let path = folder.join(format!("recorded-{}", files.len()));
            match fs::File::create_new(&path) {
                Ok(file) => (open, left) = (Some(file).filter(|_| size > 0), size),
                Err(error) => failed = Some(Some(error)),
            }
            files.push(path);
        }
    })?;
    match failed {
        Some(Some(error)) => Err(Error::file("write into", folder, error)),
        None if files.len() == ids.len() => Ok(files),
        _ => Err(unreadable()),
    }
}
