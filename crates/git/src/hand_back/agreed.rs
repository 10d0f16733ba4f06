//! What the user's tree and the agent's copy last agreed on, as it is kept between sessions.

use crate::error::Result;
use crate::objects::files;
use crate::objects::oid::Oid;
use crate::snapshot::entry::{TreeEntry, differences};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

/// The file of [`AgreedState`].
pub(crate) const HANDED: &str = "handed.json";

/// What both sides last agreed on, `handed.json` in the user's own git folder.
/// Nothing of it is kept where an agent can reach it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct AgreedState {
    /// Every file that is no longer what it was at the start, with its mode and id; without them where it is gone.
    pub(crate) files: Vec<(PathText, Option<(u32, String)>)>,
    /// Where the run's branch was left in the user's repo.
    #[serde(default)]
    pub(crate) branch: Option<String>,
    /// Files that the user has changed while the run worked, and that were brought to the agent.
    #[serde(default)]
    pub(crate) taken: BTreeSet<PathText>,
}

/// What a run has handed over, as a restore needs it.
pub(crate) struct HandedOver {
    /// The files as both sides had them last.
    pub(crate) agreed: Vec<TreeEntry>,
    /// Paths that the user has changed meanwhile.
    pub(crate) by_user: HashSet<Vec<u8>>,
}

/// What the run that keeps its things in `folder` has handed over; `None` where its agent worked on no copy.
pub(crate) fn handed_over(folder: &Path, start: &[TreeEntry]) -> Result<Option<HandedOver>> {
    let state: Option<AgreedState> = files::load(&folder.join(HANDED))?;
    Ok(state.map(|state| HandedOver {
        agreed: state.agreed(start),
        by_user: state.taken.iter().map(|path| path.bytes().to_vec()).collect(),
    }))
}

/// A path as JSON can hold it.
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

/// A list of files with some of them replaced or gone.
pub(crate) fn with(entries: &[TreeEntry], changes: &BTreeMap<Vec<u8>, Option<TreeEntry>>) -> Vec<TreeEntry> {
    let kept = entries.iter().filter(|entry| !changes.contains_key(&entry.path)).cloned();
    let mut new: Vec<TreeEntry> = kept.chain(changes.values().flatten().cloned()).collect();
    new.sort_by(|a, b| a.path.cmp(&b.path));
    new
}
