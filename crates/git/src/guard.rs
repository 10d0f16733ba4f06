//! Notices refs that somebody else moved. It never moves them back: that is a person's decision.

use crate::error::Result;
use crate::refs::{Fingerprint, RefMap, Refs, concerns_people};
use crate::store;
use ralph_domain::event::RefMove;
use ralph_domain::id::RunId;
use std::collections::BTreeSet;
use std::path::Path;

/// The refs as they were last accepted, `refs.json`.
#[derive(Debug)]
pub(crate) struct RefGuard {
    run: RunId,
    own_folder: String,
    accepted: RefMap,
    /// The last listing, and what the files looked like just before it.
    seen: Option<(Fingerprint, RefMap)>,
}

impl RefGuard {
    /// Takes the refs as they are for the baseline.
    pub(crate) fn accept_now(folder: &Path, run: &RunId, refs: &Refs) -> Result<Self> {
        let own_folder = format!("refs/ralph/{run}");
        let print = refs.fingerprint(&own_folder);
        let accepted = refs.all()?;
        store::save(&folder.join("refs.json"), &accepted)?;
        let seen = Some((print, accepted.clone()));
        Ok(Self { run: run.clone(), own_folder, accepted, seen })
    }

    /// The baseline that an earlier process wrote.
    pub(crate) fn load(folder: &Path, run: &RunId) -> Result<Option<Self>> {
        let accepted = store::load(&folder.join("refs.json"))?;
        let own_folder = format!("refs/ralph/{run}");
        Ok(accepted.map(|accepted| Self { run: run.clone(), own_folder, accepted, seen: None }))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.accepted.get(name).map(String::as_str)
    }

    /// A move that this run made itself. It reaches the file with the next accepted baseline; until then the run's
    /// record knows it.
    pub(crate) fn own_move(&mut self, refs: &Refs, name: &str, to: Option<&str>) {
        set(&mut self.accepted, name, to);
        if let Some((print, listed)) = &mut self.seen {
            set(listed, name, to);
            if !name.starts_with(&self.own_folder) {
                refs.note_own_move(print, name);
            }
        }
    }

    /// Refs that differ from the baseline.
    pub(crate) fn moves(&mut self, refs: &Refs, allow_commits: bool) -> Result<Vec<RefMove>> {
        let unchanged = self.seen.as_ref().is_some_and(|(print, _)| refs.unchanged(print, &self.own_folder));
        if !unchanged {
            // The files are looked at first: a move between the two shows in the next look.
            let print = refs.fingerprint(&self.own_folder);
            self.seen = Some((print, refs.all()?));
        }
        let Some((_, now)) = &mut self.seen else { return Ok(Vec::new()) };
        let own = ["start", "work"].map(|name| format!("{}/{name}", self.own_folder));
        if unchanged {
            for name in &own {
                let actual = refs.read(name)?;
                set(now, name, actual.as_deref());
            }
        }
        let names: BTreeSet<&String> = self.accepted.keys().chain(now.keys()).collect();
        let mut moves = Vec::new();
        for name in names {
            let (from, to) = (self.accepted.get(name), now.get(name));
            // Other refs of this run belong to the journal and to restores.
            let foreign = !name.starts_with(&format!("{}/", self.own_folder)) || own.contains(name);
            if from == to || !foreign {
                continue;
            }
            let mut needs_person = concerns_people(name, self.run.as_str());
            if let (true, true, Some(from), Some(to)) = (allow_commits, needs_person, from, to)
                && (self.accepted.get("HEAD") == Some(name) || name == "HEAD")
                && refs.is_ancestor(from, to)?
            {
                needs_person = name == "HEAD" && to.starts_with("refs/");
            }
            moves.push(RefMove { name: name.clone(), from: from.cloned(), to: to.cloned(), needs_person });
        }
        Ok(moves)
    }
}

fn set(map: &mut RefMap, name: &str, value: Option<&str>) {
    match value {
        Some(value) => map.insert(name.to_owned(), value.to_owned()),
        None => map.remove(name),
    };
}
