//! A folder as a map.

use ralph_loop_domain::ports::SandboxError;
use ralph_loop_protocol::id::Digest;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The files of a folder by `/`-separated path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryFiles(BTreeMap<String, Vec<u8>>);

impl MemoryFiles {
    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.0.get(path).map(Vec::as_slice)
    }

    pub fn set(&mut self, path: impl Into<String>, bytes: impl AsRef<[u8]>) {
        self.0.insert(path.into(), bytes.as_ref().to_vec());
    }

    pub fn append(&mut self, path: impl Into<String>, bytes: impl AsRef<[u8]>) {
        self.0.entry(path.into()).or_default().extend_from_slice(bytes.as_ref());
    }

    /// Removes a file; true if it existed.
    pub fn remove(&mut self, path: &str) -> bool {
        self.0.remove(path).is_some()
    }

    /// All files in path order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names in a folder, sorted; "" is the root.
    pub fn list(&self, folder: &str) -> Vec<String> {
        let names: BTreeSet<&str> = self
            .0
            .keys()
            .filter_map(|path| below(folder, path))
            .map(|rest| rest.split('/').next().unwrap_or(rest))
            .collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Whether there are files below `path`.
    pub fn is_folder(&self, path: &str) -> bool {
        self.0.keys().any(|other| below(path, other).is_some())
    }

    pub(super) fn has_file_above(&self, path: &str) -> bool {
        path.match_indices('/').any(|(at, _)| path.get(..at).is_some_and(|above| self.0.contains_key(above)))
    }

    pub(super) fn digest(&self) -> String {
        let mut text = String::new();
        for (path, bytes) in self.iter() {
            text.push_str(Digest::of(bytes).as_str());
            text.push(' ');
            text.push_str(path);
            text.push('\0');
        }
        Digest::of(text.as_bytes()).as_str().to_owned()
    }
}

fn below<'a>(folder: &str, path: &'a str) -> Option<&'a str> {
    if folder.is_empty() { Some(path) } else { path.strip_prefix(folder)?.strip_prefix('/') }
}

pub(super) fn key(path: &Path) -> Result<String, SandboxError> {
    let names = crate::paths::names(path)?;
    let names: Vec<_> = names.iter().map(|name| name.to_string_lossy()).collect();
    Ok(names.join("/"))
}
