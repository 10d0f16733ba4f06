//! Parses git's index file (versions 2 and 3), the private one that `git add -A` has just written. Saves a process
//! per checkpoint.

use crate::error::{Error, Result};
use crate::objects::oid::{ObjectFormat, Oid};
use crate::snapshot::entry::TreeEntry;
use ralph_loop_safe_fs::CopiedFile;
use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// A file's stat in the index, cut to 32 bits as git does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stat {
    pub(crate) mtime: (u32, u32),
    pub(crate) ctime: (u32, u32),
    pub(crate) ino: u32,
    pub(crate) size: u32,
}

impl From<&Metadata> for Stat {
    fn from(meta: &Metadata) -> Self {
        Self {
            mtime: (meta.mtime() as u32, meta.mtime_nsec() as u32),
            ctime: (meta.ctime() as u32, meta.ctime_nsec() as u32),
            ino: meta.ino() as u32,
            size: meta.size() as u32,
        }
    }
}

impl Stat {
    /// Whether the files differ although git would take them for the same.
    pub(crate) fn hides_from_git(&self, other: &Self) -> bool {
        self != other && self.same_to_the_second(other)
    }

    /// Whether git would take both for the same: it compares whole seconds only, unless built otherwise.
    pub(crate) fn same_to_the_second(&self, other: &Self) -> bool {
        (self.mtime.0, self.ctime.0, self.ino, self.size)
            == (other.mtime.0, other.ctime.0, other.ino, other.size)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyStat {
    pub(crate) source: Stat,
    pub(crate) copy: Stat,
    pub(crate) device: u32,
    pub(crate) owner: [u32; 2],
}

impl From<&CopiedFile> for CopyStat {
    fn from(file: &CopiedFile) -> Self {
        Self {
            source: Stat::from(&file.source),
            copy: Stat::from(&file.copy),
            device: file.copy.dev() as u32,
            owner: [file.copy.uid(), file.copy.gid()],
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct IndexEntry {
    pub(crate) entry: TreeEntry,
    pub(crate) stat: Stat,
    /// Git doesn't check the file (sparse checkout, assume-unchanged).
    pub(crate) unwatched: bool,
    pub(crate) skipped: bool,
    at: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) entries: Vec<IndexEntry>,
    /// Paths without an entry so far: unmerged ones, and those of `git add -N`.
    pub(crate) open: Vec<Vec<u8>>,
}

const ASSUME_VALID: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;
const SKIP_WORKTREE: u16 = 0x4000;
const INTENT_TO_ADD: u16 = 0x2000;

/// Whether [`parse`] can read the index: version 2 or 3, neither split nor sparse.
pub(crate) fn is_plain(bytes: &[u8], format: ObjectFormat) -> bool {
    let Some(end) = parse_entries(bytes, format).map(|(_, end)| end) else { return false };
    let mut rest = bytes.get(end..bytes.len().saturating_sub(format.len())).unwrap_or_default();
    while let (Some(name), Some(size)) = (rest.get(..4), read_u32(rest, 4)) {
        if name == b"link" || name == b"sdir" {
            return false;
        }
        rest = rest.get(8 + size as usize..).unwrap_or_default();
    }
    true
}

pub(crate) fn parse(bytes: &[u8], format: ObjectFormat, path: &Path) -> Result<Index> {
    let (index, _) = parse_entries(bytes, format).ok_or_else(|| {
        Error::unreadable(
            format!("the index `{}`", path.display()),
            "it is cut short or of an unknown version",
        )
    })?;
    Ok(index)
}

/// Turns a tree's index into that of its copy, so that git doesn't read unchanged files again. `written` is the
/// second it was written in: a file changed in that second may have changed again, so git must read it.
pub(crate) fn move_to_copy(
    bytes: &mut [u8],
    format: ObjectFormat,
    written: u32,
    copied: &HashMap<Vec<u8>, CopyStat>,
) {
    let Some((index, _)) = parse_entries(bytes, format) else { return };
    for known in index.entries {
        let Some(file) = copied.get(&known.entry.path) else { continue };
        if file.source != known.stat || known.stat.mtime.0 >= written {
            continue;
        }
        let Stat { mtime, ctime, ino, .. } = file.copy;
        let mode_at = known.at + 24;
        let before_mode = [ctime.0, ctime.1, mtime.0, mtime.1, file.device, ino];
        for (at, fields) in [(known.at, &before_mode[..]), (mode_at + 4, &file.owner)] {
            let fields: Vec<u8> = fields.iter().flat_map(|field| field.to_be_bytes()).collect();
            if let Some(place) = bytes.get_mut(at..at + fields.len()) {
                place.copy_from_slice(&fields);
            }
        }
    }
    let (body, sum) = bytes.split_at_mut(bytes.len().saturating_sub(format.len()));
    // Zeros if git doesn't write a checksum (`index.skipHash`).
    if sum.iter().any(|byte| *byte != 0) {
        sum.copy_from_slice(format.sum(body).as_bytes());
    }
}

fn parse_entries(bytes: &[u8], format: ObjectFormat) -> Option<(Index, usize)> {
    if bytes.get(..4)? != b"DIRC" || !matches!(read_u32(bytes, 4)?, 2 | 3) {
        return None;
    }
    let count = read_u32(bytes, 8)? as usize;
    let mut index = Index { entries: Vec::with_capacity(count.min(bytes.len() / 64)), open: Vec::new() };
    let mut at = 12;
    for _ in 0..count {
        let hash_at = at + 40;
        let flags_at = hash_at + format.len();
        let flags = read_u16(bytes, flags_at)?;
        let mut name_at = flags_at + 2;
        let mut more = 0;
        if flags & EXTENDED != 0 {
            more = read_u16(bytes, name_at)?;
            name_at += 2;
        }
        let length = match usize::from(flags & 0xfff) {
            0xfff => bytes.get(name_at..)?.iter().position(|b| *b == 0)?,
            length => length,
        };
        let path = bytes.get(name_at..name_at + length)?;
        let mode = read_u32(bytes, at + 24)?;
        if flags & STAGE == 0 && more & INTENT_TO_ADD == 0 {
            // A folder here means a sparse index, whose files aren't listed.
            if mode >> 12 == 0o4 {
                return None;
            }
            index.entries.push(IndexEntry {
                entry: TreeEntry {
                    path: path.to_owned(),
                    mode,
                    oid: Oid::from_bytes(bytes.get(hash_at..flags_at)?),
                },
                stat: Stat {
                    ctime: (read_u32(bytes, at)?, read_u32(bytes, at + 4)?),
                    mtime: (read_u32(bytes, at + 8)?, read_u32(bytes, at + 12)?),
                    ino: read_u32(bytes, at + 20)?,
                    size: read_u32(bytes, at + 36)?,
                },
                unwatched: flags & ASSUME_VALID != 0 || more & SKIP_WORKTREE != 0,
                skipped: more & SKIP_WORKTREE != 0,
                at,
            });
        } else if index.open.last().is_none_or(|last| last != path) {
            index.open.push(path.to_owned());
        }
        // Entries are padded with 1 to 8 zero bytes to a multiple of 8.
        at += (name_at - at + length + 8) & !7;
    }
    Some((index, at))
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_index_is_an_error_and_never_a_panic() {
        let path = Path::new("index");
        let mut whole = b"DIRC\0\0\0\x02\0\0\0\x01".to_vec();
        whole.extend([7; 40 + 20]);
        whole.extend([0, 1, b'a', 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(parse(&whole, ObjectFormat::Sha1, path).unwrap().entries.len(), 1);
        let refused = |bytes: &[u8]| match parse(bytes, ObjectFormat::Sha1, path) {
            Err(error) => error.to_string().contains("it is cut short or of an unknown version"),
            Ok(_) => false,
        };
        for cut in 0..whole.len() - 8 {
            assert!(refused(&whole[..cut]), "cut at {cut}");
        }
        assert!(refused(b"DIRC\0\0\0\x04\0\0\0\0"));
    }
}
