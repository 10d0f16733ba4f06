//! Git LFS without its program: a pointer is the digest and the size of a file, which is in a store of the repo's git
//! folder. Nothing is fetched, so `.lfsconfig` doesn't matter.

use crate::checkout::submodules::borrowed_from;
use crate::error::{Error, Result};
use crate::repo::Repo;
use crate::snapshot::entry::text;
use ralph_loop_protocol::id::hex;
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

const VERSION: &str = "version https://git-lfs.github.com/spec/v1";
/// More than any pointer has.
const POINTER_MAX: u64 = 1024;

/// Where the files are. New ones go to the user's repo, whose `git push` uploads them.
#[derive(Debug, Clone)]
pub(super) struct LfsStore {
    folders: Vec<PathBuf>,
    own: PathBuf,
}

impl LfsStore {
    pub(super) fn of(repo: &Repo) -> Self {
        let git_dir = repo.engine_git_dir.as_ref().unwrap_or(&repo.common_dir);
        let objects = borrowed_from(&git_dir.join("objects"));
        let mut folders: Vec<PathBuf> =
            objects.iter().filter_map(|folder| Some(folder.parent()?.join("lfs/objects"))).collect();
        // An engine's folder borrows from the user's.
        let at = usize::from(repo.engine_git_dir.is_some() && folders.len() > 1);
        let own = folders.get(at).cloned().unwrap_or_else(|| git_dir.join("lfs/objects"));
        // What an agent's own `git lfs` has recorded; digests tell whether it is true.
        folders.push(repo.common_dir.join("lfs/objects"));
        Self { folders, own }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.folders.extend(other.folders.iter().cloned());
    }

    /// Writes the pointer of a file to `pointer`, and the file into the store. `false` if it isn't readable.
    pub(super) fn clean(&self, file: &Path, pointer: &Path) -> Result<bool> {
        let Ok(mut source) = ralph_loop_safe_fs::open_plain(file) else { return Ok(false) };
        let failed = |error| Error::file("read", file, error);
        let mut start = Vec::new();
        Read::by_ref(&mut source).take(POINTER_MAX).read_to_end(&mut start).map_err(failed)?;
        if start.is_empty() || digest_in(&start).is_some() {
            fs::write(pointer, &start).map_err(|e| Error::file("write", pointer, e))?;
            return Ok(true);
        }
        fs::create_dir_all(&self.own).map_err(|e| Error::file("create", &self.own, e))?;
        let mut name = pointer.file_name().unwrap_or_default().to_owned();
        name.push(format!("-{}", std::process::id()));
        let partial = self.own.join(name);
        let copied = || -> std::io::Result<(String, u64)> {
            let _ = fs::remove_file(&partial);
            let mut to = File::create_new(&partial)?;
            let done = copy_with_digest(&mut start.as_slice().chain(source), Some(&mut to))?;
            let target = self.own.join(place(&done.0));
            if target.is_file() {
                fs::remove_file(&partial)?;
            } else {
                fs::create_dir_all(target.parent().unwrap_or(&self.own))?;
                fs::rename(&partial, &target)?;
            }
            Ok(done)
        };
        let (digest, size) = copied().map_err(|e| Error::file("record", file, e))?;
        let lines = format!("{VERSION}\noid sha256:{digest}\nsize {size}\n");
        fs::write(pointer, lines).map_err(|e| Error::file("write", pointer, e))?;
        Ok(true)
    }

    pub(super) fn smudge(&self, path: &[u8], pointer: &Path) -> Result<PathBuf> {
        let bytes = ralph_loop_safe_fs::read_plain(pointer, u64::MAX);
        let bytes = bytes.map_err(|e| Error::file("read", pointer, e))?;
        // A file that was committed without the filter is its own content.
        let Some(digest) = digest_in(&bytes) else { return Ok(pointer.to_owned()) };
        let is_true = |file: &PathBuf| {
            let opened = ralph_loop_safe_fs::open_plain(file);
            opened.is_ok_and(|mut file| copy_with_digest(&mut file, None).is_ok_and(|(is, _)| is == digest))
        };
        let found = self.folders.iter().map(|folder| folder.join(place(&digest))).find(is_true);
        found.ok_or_else(|| {
            Error::refused(
                format!("the content of `{}` is in Git LFS and not on this machine", text(path)),
                "bring it with `git lfs pull` in your folder; ralph fetches no LFS files itself",
            )
        })
    }
}

fn place(digest: &str) -> String {
    format!("{}/{}/{digest}", &digest[..2], &digest[2..4])
}

/// The digest that a pointer names; `None` if it isn't one.
fn digest_in(bytes: &[u8]) -> Option<String> {
    if bytes.len() as u64 >= POINTER_MAX {
        return None;
    }
    let mut lines = std::str::from_utf8(bytes).ok()?.lines();
    let is_pointer = lines.next()? == VERSION;
    let digest = lines.find_map(|line| line.strip_prefix("oid sha256:"))?;
    let is_digest = digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit());
    (is_pointer && is_digest).then(|| digest.to_owned())
}

fn copy_with_digest(from: &mut dyn Read, mut to: Option<&mut File>) -> std::io::Result<(String, u64)> {
    let (mut digest, mut size, mut piece) = (Sha256::new(), 0, vec![0; 1 << 16]);
    loop {
        let read = from.read(&mut piece)?;
        if read == 0 {
            return Ok((hex(&digest.finalize()), size));
        }
        digest.update(&piece[..read]);
        if let Some(to) = &mut to {
            std::io::Write::write_all(to, &piece[..read])?;
        }
        size += read as u64;
    }
}
