//! Brings files of other machines' runs to a server: what each iteration printed and changed, and the result so far.

use crate::error::FleetError;
use crate::keeper::FILE_MAX;
use crate::pack;
use crate::result;
use crate::store::ArtifactStore;
use ralph_loop_domain::vars::Vars;
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_protocol::id::RunId;
use ralph_loop_safe_fs::SafeDir;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;

/// How often a run is looked at after its journal names new files: they may still be on their way.
const LOOKS: u32 = 8;

/// The files of mirrored runs.
#[derive(Debug)]
pub struct Files {
    vars: Vars,
    due: Mutex<BTreeMap<RunId, u32>>,
    brought: Mutex<BTreeSet<String>>,
}

impl Files {
    /// Those in the artifact store that the variables name.
    pub fn new(vars: &Vars) -> Self {
        Self { vars: vars.clone(), due: Mutex::default(), brought: Mutex::default() }
    }

    /// New files of the run are in the store, or soon will be.
    pub(crate) fn expect(&self, run: &RunId) {
        self.due.lock().unwrap_or_else(|e| e.into_inner()).insert(run.clone(), LOOKS);
    }

    /// Brings what has come; the runs with new files. Must not be called where a runtime waits for it.
    pub fn turn(&self, home: &StateHome) -> Vec<RunId> {
        let mut due = self.due.lock().unwrap_or_else(|e| e.into_inner());
        let runs: Vec<RunId> = due.keys().cloned().collect();
        due.values_mut().for_each(|left| *left -= 1);
        due.retain(|_, left| *left > 0);
        drop(due);
        if runs.is_empty() {
            return Vec::new();
        }
        let store = ArtifactStore::of(&self.vars);
        let bring = |run: &RunId| match &store {
            Ok(store) => self.bring(store, run, home.record(run).path()),
            Err(error) => Err(FleetError::Store(error.to_string())),
        };
        let is_new = |run: &RunId| match bring(run) {
            Ok(is_new) => is_new,
            Err(error) => {
                tracing::warn!(%error, %run, "files of a run can't be shown");
                self.expect(run);
                false
            }
        };
        runs.into_iter().filter(is_new).collect()
    }

    fn bring(&self, store: &ArtifactStore, run: &RunId, record: &Path) -> Result<bool, FleetError> {
        let root = format!("runs/{run}");
        let dir = SafeDir::open(record).map_err(|e| failed(record, &e))?;
        let mut is_new = false;
        for object in store.list(&root)? {
            let known = |brought: &BTreeSet<String>| brought.contains(&object.name);
            if !object.name.ends_with(pack::SUFFIX)
                || known(&self.brought.lock().unwrap_or_else(|e| e.into_inner()))
            {
                continue;
            }
            let Some(bytes) = store.get(&object.name)? else { continue };
            for (name, bytes) in pack::unpack(&bytes, FILE_MAX)? {
                let Some(place) = place(&name) else { continue };
                dir.write(&place, &bytes).map_err(|e| failed(&record.join(&place), &e))?;
            }
            self.brought.lock().unwrap_or_else(|e| e.into_inner()).insert(object.name.clone());
            is_new = true;
        }
        Ok(is_new)
    }
}

fn failed(path: &Path, error: &std::io::Error) -> FleetError {
    FleetError::Store(format!("`{}`: {error}", path.display()))
}

/// Where a stored file belongs in a copy. Journal, definition, letters and locks are the server's own.
fn place(name: &str) -> Option<String> {
    if let Some(shared) = name.strip_prefix("ralph/") {
        return Some(format!("{}/files/.ralph/{shared}", result::FOLDER));
    }
    let inside = name.strip_prefix("record/")?;
    let first = inside.split('/').next()?;
    ["iterations", "baseline", "proof", "proof.json", "errors.log", result::FOLDER]
        .contains(&first)
        .then(|| inside.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_shown_is_copied() {
        let place = |name: &str| place(name).unwrap_or_default();
        assert_eq!(place("record/iterations/0001/output.log"), "iterations/0001/output.log");
        assert_eq!(place("record/result/files/src/a.rs"), "result/files/src/a.rs");
        assert_eq!(place("ralph/notes.md"), "result/files/.ralph/notes.md");
        for own in [
            "record/events.jsonl",
            "record/spec.json",
            "record/lock",
            "record/fleet",
            "record/git/config",
            "x",
        ] {
            assert_eq!(place(own), "", "{own}");
        }
    }
}
