//! Differences between two maps of files, by counting lines.

use super::MemoryFiles;
use ralph_loop_protocol::event::FileChange;
use ralph_loop_protocol::id::Digest;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn changes(from: &MemoryFiles, to: &MemoryFiles) -> Vec<FileChange> {
    let paths: BTreeSet<&str> = from.iter().chain(to.iter()).map(|(path, _)| path).collect();
    let mut found = Vec::new();
    for path in paths {
        let (old, new) = (from.get(path), to.get(path));
        let status = match (old, new) {
            (None, Some(_)) => 'A',
            (Some(_), None) => 'D',
            (old, new) if old != new => 'M',
            _ => continue,
        };
        let text = [old, new].into_iter().flatten().all(|bytes| !bytes.contains(&0));
        let (removed, added) = line_difference(old.unwrap_or_default(), new.unwrap_or_default());
        found.push(FileChange {
            path: path.to_owned(),
            status,
            added: text.then_some(added.len() as u64),
            removed: text.then_some(removed.len() as u64),
            blob: new.map(|bytes| Digest::of(bytes).as_str().to_owned()),
        });
    }
    found
}

/// A readable patch of at most `max` bytes: per file the removed and the added lines.
pub(super) fn patch(from: &MemoryFiles, to: &MemoryFiles, max: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for change in changes(from, to) {
        let path = &change.path;
        out.extend_from_slice(format!("diff --git a/{path} b/{path}\n").as_bytes());
        let (old, new) = (from.get(path).unwrap_or_default(), to.get(path).unwrap_or_default());
        let (removed, added) = line_difference(old, new);
        for (sign, lines) in [(b'-', removed), (b'+', added)] {
            for line in lines {
                out.push(sign);
                out.extend_from_slice(line);
                out.push(b'\n');
            }
        }
        if out.len() >= max {
            break;
        }
    }
    out.truncate(max);
    out
}

/// The lines of `old` that `new` has fewer of, and the other way round.
fn line_difference<'a>(old: &'a [u8], new: &'a [u8]) -> (Vec<&'a [u8]>, Vec<&'a [u8]>) {
    (missing(old, new), missing(new, old))
}

fn missing<'a>(these: &'a [u8], in_those: &[u8]) -> Vec<&'a [u8]> {
    let mut there: BTreeMap<&[u8], u32> = BTreeMap::new();
    for line in lines(in_those) {
        *there.entry(line).or_default() += 1;
    }
    lines(these)
        .filter(|line| match there.get_mut(line) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        })
        .collect()
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let none = bytes.is_empty();
    bytes.split(|byte| *byte == b'\n').filter(move |_| !none)
}
