//! The files of a tree as a sorted list, and how two lists differ.

use crate::objects::oid::Oid;
use ralph_loop_protocol::event::FileChange;
use std::cmp::Ordering;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A nested repo: git records only its commit.
pub(crate) const MODE_GITLINK: u32 = 0o160_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeEntry {
    pub(crate) path: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) oid: Oid,
}

impl TreeEntry {
    pub(crate) fn same_file(&self, other: &Self) -> bool {
        self.mode == other.mode && self.oid == other.oid
    }
}

pub(crate) fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

pub(crate) fn find<'a>(entries: &'a [TreeEntry], path: &[u8]) -> Option<&'a TreeEntry> {
    entries.binary_search_by(|e| e.path.as_slice().cmp(path)).ok().and_then(|i| entries.get(i))
}

/// Walks two sorted lists and calls `visit` for every path with its entry in each list.
pub(crate) fn walk_both<'a>(
    old: &'a [TreeEntry],
    new: &'a [TreeEntry],
    mut visit: impl FnMut(Option<&'a TreeEntry>, Option<&'a TreeEntry>),
) {
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    loop {
        match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some(_), None) => visit(old.next(), None),
            (None, Some(_)) => visit(None, new.next()),
            (Some(a), Some(b)) => match a.path.cmp(&b.path) {
                Ordering::Less => visit(old.next(), None),
                Ordering::Greater => visit(None, new.next()),
                Ordering::Equal => visit(old.next(), new.next()),
            },
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Difference<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) old: Option<&'a TreeEntry>,
    pub(crate) new: Option<&'a TreeEntry>,
}

impl Difference<'_> {
    pub(crate) fn to_change(&self) -> FileChange {
        let status = match (self.old, self.new) {
            (None, _) => 'A',
            (_, None) => 'D',
            (Some(a), Some(b)) if a.mode >> 12 != b.mode >> 12 => 'T',
            _ => 'M',
        };
        FileChange {
            path: text(self.path),
            status,
            added: None,
            removed: None,
            blob: self.new.map(|e| e.oid.to_string()),
        }
    }
}

pub(crate) fn differences<'a>(old: &'a [TreeEntry], new: &'a [TreeEntry]) -> Vec<Difference<'a>> {
    let mut out = Vec::new();
    walk_both(old, new, |old, new| {
        let same = matches!((old, new), (Some(a), Some(b)) if a.same_file(b));
        if let (false, Some(path)) = (same, old.or(new).map(|e| e.path.as_slice())) {
            out.push(Difference { path, old, new });
        }
    });
    out
}

pub(crate) fn parse_ls_tree(output: &[u8]) -> Option<Vec<TreeEntry>> {
    let mut entries = Vec::new();
    for record in output.split(|b| *b == 0).filter(|r| !r.is_empty()) {
        let tab = record.iter().position(|b| *b == b'\t')?;
        let (head, path) = (std::str::from_utf8(&record[..tab]).ok()?, &record[tab + 1..]);
        let mut words = head.split(' ');
        let (mode, _, oid) = (words.next()?, words.next()?, words.next()?);
        let (mode, oid) = (u32::from_str_radix(mode, 8).ok()?, Oid::from_hex(oid.as_bytes())?);
        entries.push(TreeEntry { path: path.to_owned(), mode, oid });
    }
    // `ls-tree` writes tree order. Without the folders that is byte order of full paths, but git doesn't guarantee
    // it.
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Some(entries)
}

/// Reads `git ls-files -s -z`: the files of an index, without conflicts.
pub(crate) fn parse_ls_files(output: &[u8]) -> Vec<TreeEntry> {
    let entry = |record: &[u8]| {
        let tab = record.iter().position(|b| *b == b'\t')?;
        let mut words = std::str::from_utf8(&record[..tab]).ok()?.split(' ');
        let (mode, oid, stage) = (words.next()?, words.next()?, words.next()?);
        let mode = u32::from_str_radix(mode, 8).ok()?;
        let oid = Oid::from_hex(oid.as_bytes())?;
        (stage == "0").then(|| TreeEntry { path: record[tab + 1..].to_vec(), mode, oid })
    };
    output.split(|b| *b == 0).filter_map(entry).collect()
}

pub(crate) fn file_mode(meta: &std::fs::Metadata) -> u32 {
    let is_program = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o100 != 0;
    if is_program { 0o100_755 } else { 0o100_644 }
}

pub(crate) fn on_disk(top: &Path, path: &[u8]) -> PathBuf {
    top.join(OsStr::from_bytes(path))
}
/// A file as `git update-index --index-info` reads it.
pub(crate) fn index_line((path, entry): (&[u8], &TreeEntry)) -> Vec<u8> {
    [format!("{:o} {}\t", entry.mode, entry.oid).as_bytes(), path, b"\0"].concat()
}
