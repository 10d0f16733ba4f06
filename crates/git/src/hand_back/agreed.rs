//! What the user's tree and the agent's copy last agreed on, saved between sessions.

use crate::error::Result;
use crate::objects::files;
use crate::objects::oid::Oid;
use crate::snapshot::entry::{TreeEntry, differences};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

pub(crate) const HANDED: &str = "handed.json";

/// What both sides last agreed on: `handed.json` in the user's git folder, where no agent can reach it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct AgreedState {
    /// Every file that differs from the start, with mode and id; `None` if deleted.
    pub(crate) files: Vec<(PathText, Option<(u32, String)>)>,
    #[serde(default)]
    pub(crate) branch: Option<String>,
    /// Files that the user changed during the run, and that were copied to the agent.
    #[serde(default)]
    pub(crate) taken: BTreeSet<PathText>,
}

pub(crate) struct HandedOver {
    pub(crate) agreed: Vec<TreeEntry>,
    pub(crate) by_user: HashSet<Vec<u8>>,
}

/// What the run has handed over; `None` if its agent didn't work on a copy. `folder` holds the run's records.
pub(crate) fn handed_over(folder: &Path, start: &[TreeEntry]) -> Result<Option<HandedOver>> {
    let state: Option<AgreedState> = files::load(&folder.join(HANDED))?;
    Ok(state.map(|state| HandedOver {
        agreed: state.agreed(start),
        by_user: state.taken.iter().map(|path| path.bytes().to_vec()).collect(),
    }))
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum PathText {
    Text(String),
    Bytes(Vec<u8>),
}

impl PathText {
    pub(crate) fn new(path: &[u8]) -> Self {
        std::str::from_utf8(path)
            .map_or_else(|_| Self::Bytes(path.to_vec()), |text| Self::Text(text.to_owned()))
    }
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl AgreedState {
    pub(crate) fn new(
        start: &[TreeEntry],
        agreed: &[TreeEntry],
        branch: Option<String>,
        taken: BTreeSet<PathText>,
    ) -> Self {
        let files = differences(start, agreed)
            .iter()
            .map(|d| (PathText::new(d.path), d.new.map(|entry| (entry.mode, entry.oid.to_string()))))
            .collect();
        Self { files, branch, taken }
    }

    pub(crate) fn agreed(&self, start: &[TreeEntry]) -> Vec<TreeEntry> {
        let changes = self.files.iter().map(|(path, file)| {
            let path = path.bytes().to_vec();
            let entry = file.as_ref().and_then(|(mode, oid)| {
                Some(TreeEntry { path: path.clone(), mode: *mode, oid: Oid::from_hex(oid.as_bytes())? })
            });
            (path, entry)
        });
        with(start, &changes.collect())
    }
}

pub(crate) fn with(entries: &[TreeEntry], changes: &BTreeMap<Vec<u8>, Option<TreeEntry>>) -> Vec<TreeEntry> {
    let kept = entries.iter().filter(|entry| !changes.contains_key(&entry.path)).cloned();
    let mut new: Vec<TreeEntry> = kept.chain(changes.values().flatten().cloned()).collect();
    new.sort_by(|a, b| a.path.cmp(&b.path));
    new
}
