//! After git has read the tree: decides which files and folders [`WatchedFiles`] checks from now on.
//!
//! Ignored folders must not be watched (a build would make every check slow), and empty folders must (a file may
//! appear there). Only git knows its ignore rules, so folders without known files are checked once, in bulk.

use crate::error::Result;
use crate::objects::index::{Index, Stat};
use crate::process::command::Git;
use crate::snapshot::entry::MODE_GITLINK;
use crate::snapshot::watch::{
    Changes, FileTime, NameKind, WatchedDir, WatchedFile, WatchedFiles, content_hash, hash_names, list,
    stat_of,
};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

#[derive(Debug)]
pub(crate) struct SurveyRules {
    pub(crate) git: Git,
    pub(crate) index: PathBuf,
    pub(crate) exclude: PathBuf,
    pub(crate) skip_ralph: bool,
    pub(crate) ignored: HashSet<Vec<u8>>,
}

impl SurveyRules {
    /// Rebuilds the watch. `began` is the file system's time before git read the tree.
    pub(crate) fn survey(
        &mut self,
        watch: &mut WatchedFiles,
        index: &Index,
        changes: &Changes,
        left_out: &[Vec<u8>],
        began: FileTime,
    ) -> Result<()> {
        if changes.touches_rules() {
            self.ignored.clear();
        }
        watch.files = files(watch, index, changes, left_out, began);
        let links: Vec<&[u8]> = index
            .entries
            .iter()
            .filter(|e| e.entry.mode == MODE_GITLINK)
            .map(|e| &e.entry.path[..])
            .collect();
        // If none of them changed, those in folders that aren't listed again below must stay.
        if changes.touches_rules() {
            watch.others.clear();
        }
        watch.others.entry(self.exclude.clone()).or_insert_with(|| stat_of(&self.exclude));
        self.folders(watch, index, changes, &links, began)
    }

    fn folders(
        &mut self,
        watch: &mut WatchedFiles,
        index: &Index,
        changes: &Changes,
        links: &[&[u8]],
        began: FileTime,
    ) -> Result<()> {
        let known = known_folders(index);
        let mut old = std::mem::take(&mut watch.dirs);
        let relist = changes.touches_rules();
        let mut queue: Vec<Vec<u8>> = known.iter().map(|d| d.to_vec()).collect();
        // Watched folders without known files stay watched; they weren't ignored when we asked.
        if !relist {
            queue.extend(old.keys().filter(|d| !known.contains(d.as_slice())).cloned());
        }
        let mut dirs = BTreeMap::new();
        while !queue.is_empty() {
            let mut unsure = BTreeSet::new();
            for path in std::mem::take(&mut queue) {
                let before = old.remove(&path);
                let changed = changes.dirs.get(&path).copied();
                if let (Some(dir), None, false) = (before, changed, relist) {
                    dirs.insert(path, dir);
                    continue;
                }
                // The stat from before git's reading, if any: later changes must show.
                let Some(stat) = changed.unwrap_or_else(|| watch.stat(&path)) else { continue };
                let Some(names) = list(&watch.top, &path) else { continue };
                let hash = hash_names(&names);
                let trust = watch.trust(&stat, began, || Some(hash));
                self.look_at_names(watch, index, &path, &names, |sub| {
                    let known = known.contains(sub) || links.contains(&sub);
                    if !known {
                        unsure.insert(sub.to_owned());
                    }
                });
                dirs.insert(path, WatchedDir { stat, trust, names: hash });
            }
            unsure.retain(|d| !self.ignored.contains(d) && !dirs.contains_key(d) && !old.contains_key(d));
            queue = self.not_ignored(unsure)?;
        }
        watch.dirs = dirs;
        Ok(())
    }

    fn look_at_names(
        &self,
        watch: &mut WatchedFiles,
        index: &Index,
        dir: &[u8],
        names: &[(Vec<u8>, NameKind)],
        mut subfolder: impl FnMut(&[u8]),
    ) {
        let in_index =
            |path: &[u8]| index.entries.binary_search_by(|e| e.entry.path.as_slice().cmp(path)).is_ok();
        for (name, kind) in names {
            let path = join(dir, name);
            if name == b".git" || (self.skip_ralph && path == b".ralph") {
                continue;
            }
            if *kind == NameKind::Folder {
                // A nested repo that the index links to is pinned; its content isn't watched.
                if !in_index(&path) {
                    subfolder(&path);
                }
            } else if name == b".gitignore" && !in_index(&path) {
                let full = watch.top.join(OsStr::from_bytes(&path));
                let stat = stat_of(&full);
                watch.others.insert(full, stat);
            }
        }
    }

    /// Asks git which of these folders it ignores; remembers those and returns the others.
    fn not_ignored(&mut self, folders: BTreeSet<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        if folders.is_empty() {
            return Ok(Vec::new());
        }
        let mut input = Vec::new();
        for folder in &folders {
            input.extend_from_slice(folder);
            input.push(0);
        }
        let call = self.git.call(["check-ignore", "-z", "--stdin"]).index(&self.index);
        let output = call.stdin(input).accept(&[1]).run()?;
        let ignored: HashSet<&[u8]> = output.stdout.split(|b| *b == 0).collect();
        let (gone, kept): (Vec<_>, Vec<_>) = folders.into_iter().partition(|f| ignored.contains(&f[..]));
        self.ignored.extend(gone);
        Ok(kept)
    }
}

fn files(
    watch: &WatchedFiles,
    index: &Index,
    changes: &Changes,
    left_out: &[Vec<u8>],
    began: FileTime,
) -> Vec<WatchedFile> {
    let mut out = Vec::with_capacity(index.entries.len());
    let mut old = watch.files.iter().peekable();
    for item in &index.entries {
        let path = item.entry.path.as_slice();
        while old.next_if(|f| f.path.as_bytes() < path).is_some() {}
        let before = old.next_if(|f| f.path.as_bytes() == path);
        if item.unwatched || item.entry.mode == MODE_GITLINK {
            continue;
        }
        let seen = changes.files.get(path).copied();
        if let (Some(before), None) = (before, seen) {
            out.push(before.clone());
            continue;
        }
        let Ok(name) = CString::new(path) else { continue };
        // Our stat was taken before git read the file. It is used if git took the file for unchanged: git leaves old
        // nanoseconds in its index, and a file that never matches would make every check slow.
        let stat = match seen.flatten() {
            Some((stat, _))
                if stat.same_to_the_second(&item.stat)
                    || contains(left_out, path)
                    // A filter has read it, not git.
                    || item.stat == Stat::default() =>
            {
                stat
            }
            _ => item.stat,
        };
        let trust = watch.trust(&stat, began, || content_hash(&watch.top, path));
        out.push(WatchedFile { path: name, stat, trust });
    }
    out
}

fn contains(sorted: &[Vec<u8>], path: &[u8]) -> bool {
    sorted.iter().any(|p| p == path)
}

fn known_folders(index: &Index) -> HashSet<&[u8]> {
    let mut known: HashSet<&[u8]> = HashSet::from([&b""[..]]);
    let mut last: &[u8] = b"";
    for item in &index.entries {
        if item.unwatched {
            continue;
        }
        let mut dir = parent(&item.entry.path);
        if dir == last {
            continue;
        }
        last = dir;
        while known.insert(dir) {
            dir = parent(dir);
        }
    }
    known
}

pub(crate) fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|b| *b == b'/').map_or(&b""[..], |at| &path[..at])
}

pub(crate) fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    if dir.is_empty() { name.to_owned() } else { [dir, b"/", name].concat() }
}
