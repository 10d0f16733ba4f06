//! Protected files: compared with the start snapshot if git knows them, by content otherwise.

use crate::error::Result;
use crate::objects::files;
use crate::snapshot::entry::on_disk;
use crate::snapshot::entry::{TreeEntry, differences, find};
use ralph_loop_domain::repo::protect::{ProtectedChange, ProtectedKind, covers};
use ralph_loop_protocol::id::Digest;
use ralph_loop_safe_fs::{Kind, Links, SafeDir};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const FILE_MAX: u64 = 256 * 1024 * 1024;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Protected {
    patterns: Vec<String>,
    /// Paths whose baseline is no longer the start snapshot: mode and id, or `None` if the file didn't exist.
    accepted: BTreeMap<String, Option<String>>,
    /// Plain paths unknown to git (ignored files, `.ralph/`): digest, or `None` if there was no file.
    outside: BTreeMap<String, Option<String>>,
    #[serde(skip)]
    path: PathBuf,
}

impl Protected {
    /// Takes the baseline at the start of a run, or keeps that of an interrupted start with the same patterns.
    pub(crate) fn begin(folder: &Path, top: &Path, patterns: &[String], start: &[TreeEntry]) -> Result<Self> {
        if let Some(old) = Self::load(folder)?.filter(|old| old.patterns == patterns) {
            return Ok(old);
        }
        let mut fresh = Self { patterns: patterns.to_vec(), path: file(folder), ..Self::default() };
        for pattern in patterns {
            let path = pattern.trim_start_matches("./").trim_end_matches('/');
            let is_plain = !path.is_empty() && !path.contains(['*', '?', '[', '{']);
            let inside = find(start, path.as_bytes()).is_some() || has_below(start, path);
            if is_plain && !inside && !on_disk(top, path.as_bytes()).is_dir() {
                fresh.outside.insert(path.to_owned(), digest(top, path));
            }
        }
        fresh.save()?;
        Ok(fresh)
    }

    pub(crate) fn load(folder: &Path) -> Result<Option<Self>> {
        let path = file(folder);
        Ok(files::load::<Self>(&path)?.map(|loaded| Self { path, ..loaded }))
    }

    pub(crate) fn guards(&self, path: &str) -> bool {
        covers(&self.patterns, path)
    }

    pub(crate) fn changes(&self, top: &Path, start: &[TreeEntry], now: &[TreeEntry]) -> Vec<ProtectedChange> {
        let mut found = BTreeMap::new();
        for change in differences(start, now) {
            let path = crate::snapshot::entry::text(change.path);
            if !self.accepted.contains_key(&path) && covers(&self.patterns, &path) {
                found.insert(path, kind(change.old.is_some(), change.new.is_some()));
            }
        }
        for (path, baseline) in &self.accepted {
            let value = value_of(find(now, path.as_bytes()));
            if value != *baseline {
                found.insert(path.clone(), kind(baseline.is_some(), value.is_some()));
            }
        }
        for (path, baseline) in &self.outside {
            if find(now, path.as_bytes()).is_some() || has_below(now, path) {
                continue;
            }
            let value = digest(top, path);
            if value != *baseline {
                found.insert(path.clone(), kind(baseline.is_some(), value.is_some()));
            }
        }
        found.into_iter().map(|(path, change)| ProtectedChange { path, change }).collect()
    }

    pub(crate) fn accept(
        &mut self,
        top: &Path,
        path: &str,
        start: &[TreeEntry],
        now: &[TreeEntry],
    ) -> Result<()> {
        let path = path.trim_start_matches("./");
        if let Some(baseline) = self.outside.get_mut(path) {
            *baseline = digest(top, path);
        }
        if find(start, path.as_bytes()).is_some() || find(now, path.as_bytes()).is_some() {
            self.accepted.insert(path.to_owned(), value_of(find(now, path.as_bytes())));
        }
        self.save()
    }

    fn save(&self) -> Result<()> {
        files::save(&self.path, self)
    }
}

fn file(folder: &Path) -> PathBuf {
    folder.join("protected.json")
}

fn kind(before: bool, after: bool) -> ProtectedKind {
    match (before, after) {
        (false, _) => ProtectedKind::Added,
        (true, false) => ProtectedKind::Removed,
        (true, true) => ProtectedKind::Changed,
    }
}

fn value_of(entry: Option<&TreeEntry>) -> Option<String> {
    entry.map(|e| format!("{:o} {}", e.mode, e.oid))
}

fn has_below(entries: &[TreeEntry], folder: &str) -> bool {
    let prefix = format!("{folder}/").into_bytes();
    let at = entries.partition_point(|e| e.path < prefix);
    entries.get(at).is_some_and(|e| e.path.starts_with(&prefix))
}

fn digest(top: &Path, path: &str) -> Option<String> {
    let dir = SafeDir::open(top).ok()?;
    match dir.facts(path) {
        Ok(facts) if facts.kind == Kind::Link => {
            let target = dir.read_link(path).ok()?;
            Some(Digest::of(&[b"link:", target.as_os_str().as_bytes()].concat()).as_str().to_owned())
        }
        Ok(facts) if facts.kind == Kind::File => {
            let bytes = dir.read(path, Links::Refused, FILE_MAX).ok()?;
            Some(Digest::of(&bytes).as_str().to_owned())
        }
        // Reading a pipe or a device could block forever.
        Ok(facts) if facts.kind == Kind::Special => Some("special".to_owned()),
        Ok(_) => None,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        // A link leads out of the tree.
        Err(_) => Some("elsewhere".to_owned()),
    }
}
