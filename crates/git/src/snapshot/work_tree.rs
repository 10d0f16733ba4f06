//! Keeps the user's unfinished changes out of the run's commits.
//!
//! A commit's work tree is `HEAD` at the start, with exactly the paths replaced that differ between the start
//! snapshot and now. What only the user had changed stays as `HEAD` has it.

use crate::snapshot::entry::{TreeEntry, differences, find, walk_both};
use std::collections::BTreeSet;

#[derive(Debug)]
pub(crate) struct WorkChanges {
    pub(crate) entries: Vec<TreeEntry>,
    pub(crate) changed: Vec<Vec<u8>>,
    /// Those that the user had already changed before the start.
    pub(crate) dirty_touched: Vec<Vec<u8>>,
}

pub(crate) fn work_of(head: &[TreeEntry], start: &[TreeEntry], now: &[TreeEntry]) -> WorkChanges {
    let changes = differences(start, now);
    let same = |a: Option<&TreeEntry>, b: Option<&TreeEntry>| match (a, b) {
        (Some(a), Some(b)) => a.same_file(b),
        (a, b) => a.is_none() && b.is_none(),
    };
    let dirty_touched = changes
        .iter()
        .filter(|change| !same(find(head, change.path), change.old))
        .map(|change| change.path.to_vec())
        .collect();
    let mut blocked = BTreeSet::new();
    for change in changes.iter().filter(|change| change.new.is_some()) {
        blocked.extend(in_the_way(head, change.path));
    }
    let put: Vec<TreeEntry> = changes.iter().filter_map(|change| change.new.cloned()).collect();
    let gone: BTreeSet<&[u8]> = changes.iter().filter(|c| c.new.is_none()).map(|c| c.path).collect();
    let mut entries = Vec::with_capacity(head.len() + put.len());
    walk_both(head, &put, |old, new| match (old, new) {
        (_, Some(new)) => entries.push(new.clone()),
        (Some(old), None) if !gone.contains(&old.path[..]) && !blocked.contains(&old.path[..]) => {
            entries.push(old.clone());
        }
        _ => {}
    });
    WorkChanges { entries, changed: changes.iter().map(|c| c.path.to_vec()).collect(), dirty_touched }
}

/// Files of `HEAD` that conflict with `path`: a file where it needs a folder, or files below it. They exist only if
/// the user had removed them before the start.
pub(crate) fn in_the_way<'a>(head: &'a [TreeEntry], path: &[u8]) -> Vec<&'a [u8]> {
    let mut found = Vec::new();
    for (at, _) in path.iter().enumerate().filter(|(_, b)| **b == b'/') {
        found.extend(find(head, &path[..at]).map(|e| e.path.as_slice()));
    }
    let below = [path, b"/"].concat();
    let first = head.partition_point(|e| e.path < below);
    found.extend(head[first..].iter().map(|e| e.path.as_slice()).take_while(|p| p.starts_with(&below)));
    found
}

/// The full state behind a work commit without a record: the start snapshot with the commit's changes.
pub(crate) fn full_of(head: &[TreeEntry], start: &[TreeEntry], work: &[TreeEntry]) -> Vec<TreeEntry> {
    work_of(start, head, work).entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::oid::ObjectFormat;

    fn files(list: &[(&str, &str)]) -> Vec<TreeEntry> {
        let mut entries: Vec<TreeEntry> = list
            .iter()
            .map(|(path, text)| TreeEntry {
                path: path.as_bytes().to_vec(),
                mode: 0o100_644,
                oid: ObjectFormat::Sha1.id_of("blob", text.as_bytes()),
            })
            .collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        entries
    }

    #[test]
    fn only_touched_user_changes_are_committed() {
        let head = files(&[("a", "1"), ("b", "1"), ("gone", "1")]);
        let start = files(&[("a", "dirty"), ("b", "dirty"), ("mine", "1")]);
        let now = files(&[("a", "dirty"), ("b", "agent"), ("mine", "1"), ("new", "1")]);
        let work = work_of(&head, &start, &now);
        assert_eq!(work.entries, files(&[("a", "1"), ("b", "agent"), ("gone", "1"), ("new", "1")]));
        assert_eq!(work.dirty_touched, vec![b"b".to_vec()]);
        assert_eq!(full_of(&head, &start, &work.entries), now);
    }

    #[test]
    fn a_path_that_returns_to_its_start_state_returns_to_head() {
        let head = files(&[("a", "1")]);
        let start = files(&[("a", "dirty")]);
        assert_eq!(work_of(&head, &start, &start).entries, head);
    }

    #[test]
    fn agents_folder_replaces_a_file_the_user_removed() {
        let head = files(&[("a", "file"), ("b/x", "1"), ("b-", "1")]);
        let start = files(&[("a/mine", "1"), ("b-", "1")]);
        let now = files(&[("a/mine", "1"), ("a/new", "1"), ("b", "file"), ("b-", "1")]);
        let work = work_of(&head, &start, &now);
        assert_eq!(work.entries, files(&[("a/new", "1"), ("b", "file"), ("b-", "1")]));
    }
}
