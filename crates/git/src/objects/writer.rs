//! Writes trees and commits as loose objects, the way git does: compressed, to a temporary name, renamed.

use crate::error::{Error, Result};
use crate::objects::oid::{ObjectFormat, Oid};
use crate::snapshot::entry::TreeEntry;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use ralph_loop_safe_fs::SafeDir;
use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

/// More known ids than this are forgotten; forgetting costs a look at the disk, nothing else.
const KNOWN_MAX: usize = 200_000;

/// The object folder of a repo.
#[derive(Debug)]
pub(crate) struct ObjectStore {
    folder: PathBuf,
    format: ObjectFormat,
    known: HashSet<Oid>,
}

impl ObjectStore {
    pub(crate) fn new(folder: PathBuf, format: ObjectFormat) -> Self {
        Self { folder, format, known: HashSet::new() }
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
        if !fs::symlink_metadata(&target).is_ok_and(|meta| meta.is_file() && meta.len() > 0) {
            self.store(kind, body, &shelf, &target)?;
        }
        self.know([id]);
        Ok(id)
    }

    fn store(
        &self,
        kind: &str,
        body: &[u8],
        shelf: &std::path::Path,
        target: &std::path::Path,
    ) -> Result<()> {
        let new = !shelf.is_dir();
        let stored = (|| {
            let mut encoder = ZlibEncoder::new(Vec::with_capacity(body.len() / 2), Compression::fast());
            write!(encoder, "{kind} {}\0", body.len())?;
            encoder.write_all(body)?;
            let packed = encoder.finish()?;
            let folder = SafeDir::open(&self.folder)?;
            // Through no link: an agent may write this folder.
            let place = target.strip_prefix(&self.folder).unwrap_or(target);
            folder.write_with(place, &packed, 0o444)
        })();
        stored.map_err(|error| Error::file("write", target, error))?;
        // A repo shared by a group gives its object folders wider rights than our umask would.
        if new && let Ok(parent) = fs::metadata(&self.folder) {
            let _ = fs::set_permissions(shelf, parent.permissions());
        }
        Ok(())
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
            let text = ralph_loop_protocol::sanitize::line(text);
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
