//! Writes trees and commits as loose objects, the way git does: compressed, to a temporary name, renamed.

use crate::entry::TreeEntry;
use crate::error::{Error, Result};
use crate::oid::{ObjectFormat, Oid};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;

/// More known ids than this are forgotten; forgetting costs a look at the disk, nothing else.
const KNOWN_MAX: usize = 200_000;

/// The object folder of a repo.
#[derive(Debug)]
pub(crate) struct ObjectStore {
    folder: PathBuf,
    format: ObjectFormat,
    known: HashSet<Oid>,
    serial: u64,
}

impl ObjectStore {
    pub(crate) fn new(folder: PathBuf, format: ObjectFormat) -> Self {
        Self { folder, format, known: HashSet::new(), serial: 0 }
    }

    /// Remembers objects that are in the repo for sure, so that they are not written again beside a pack.
    pub(crate) fn know(&mut self, ids: impl IntoIterator<Item = Oid>) {
        if self.known.len() > KNOWN_MAX {
            self.known.clear();
        }
        self.known.extend(ids);
    }

    /// Writes an object unless the repo has it.
    pub(crate) fn write(&mut self, kind: &str, body: &[u8]) -> Result<Oid> {
        let id = self.format.id_of(kind, body);
        if self.known.contains(&id) {
            return Ok(id);
        }
        let hex = id.to_string();
        let shelf = self.folder.join(&hex[..2]);
        let target = shelf.join(&hex[2..]);
        // Like git on Linux (`core.fsync`), loose objects are not flushed one by one: their blobs are not either. What a
        // power cut has left empty is written again.
        if !fs::metadata(&target).is_ok_and(|meta| meta.len() > 0) {
            self.store(kind, body, &shelf, &target)?;
        }
        self.know([id]);
        Ok(id)
    }

    fn store(
        &mut self,
        kind: &str,
        body: &[u8],
        shelf: &std::path::Path,
        target: &std::path::Path,
    ) -> Result<()> {
        if !shelf.is_dir() {
            fs::create_dir_all(shelf).map_err(|e| Error::file("create", shelf, e))?;
            // A repo shared by a group gives its object folders wider rights than our umask would.
            if let Ok(parent) = fs::metadata(&self.folder) {
                let _ = fs::set_permissions(shelf, parent.permissions());
            }
        }
        self.serial += 1;
        let temporary = shelf.join(format!("tmp_obj_ralph_{}_{}", std::process::id(), self.serial));
        let written = (|| {
            let file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&temporary)?;
            let mut encoder = ZlibEncoder::new(file, Compression::fast());
            write!(encoder, "{kind} {}\0", body.len())?;
            encoder.write_all(body)?;
            let file = encoder.finish()?;
            file.set_permissions(fs::Permissions::from_mode(0o444))?;
            fs::rename(&temporary, target)
        })();
        written.map_err(|error| {
            let _ = fs::remove_file(&temporary);
            Error::file("write", target, error)
        })
    }

    /// Writes the trees of a sorted list of files and returns the root's id.
    pub(crate) fn write_tree(&mut self, entries: &[TreeEntry]) -> Result<Oid> {
        self.write_level(entries, 0)
    }

    fn write_level(&mut self, entries: &[TreeEntry], depth: usize) -> Result<Oid> {
        let mut body = Vec::with_capacity(entries.len().min(256) * 40);
        let mut at = 0;
        while let Some(entry) = entries.get(at) {
            let rest = &entry.path[depth..];
            let Some(slash) = rest.iter().position(|b| *b == b'/') else {
                push_entry(&mut body, entry.mode, rest, &entry.oid);
                at += 1;
                continue;
            };
            let prefix = &entry.path[..depth + slash + 1];
            let end = at + entries[at..].iter().take_while(|e| e.path.starts_with(prefix)).count();
            let tree = self.write_level(&entries[at..end], prefix.len())?;
            push_entry(&mut body, 0o40_000, &rest[..slash], &tree);
            at = end;
        }
        self.write("tree", &body)
    }
}

fn push_entry(body: &mut Vec<u8>, mode: u32, name: &[u8], oid: &Oid) {
    body.extend_from_slice(format!("{mode:o} ").as_bytes());
    body.extend_from_slice(name);
    body.push(0);
    body.extend_from_slice(oid.as_bytes());
}

/// Who makes a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitIdentity {
    /// Name.
    pub name: String,
    /// Mail address.
    pub email: String,
}

impl CommitIdentity {
    /// An identity without the characters that would break a commit's header or steer a terminal.
    pub fn new(name: &str, email: &str) -> Self {
        let clean = |text: &str| {
            let text = ralph_domain::sanitize::line(text);
            let kept: String = text.chars().filter(|c| !matches!(c, '<' | '>')).collect();
            kept.trim().to_owned()
        };
        Self { name: clean(name), email: clean(email) }
    }
}

/// The body of a commit object; `at` is seconds since 1970, written as UTC.
pub(crate) fn commit_body(
    tree: &Oid,
    parents: &[Oid],
    who: &CommitIdentity,
    at: i64,
    message: &str,
) -> Vec<u8> {
    let mut body = format!("tree {tree}\n");
    for parent in parents {
        body.push_str(&format!("parent {parent}\n"));
    }
    let CommitIdentity { name, email } = who;
    let at = at.max(0);
    body.push_str(&format!("author {name} <{email}> {at} +0000\ncommitter {name} <{email}> {at} +0000\n\n"));
    body.push_str(&message.replace('\0', " "));
    if !body.ends_with('\n') {
        body.push('\n');
    }
    body.into_bytes()
}
