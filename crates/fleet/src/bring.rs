//! Resumes a run on this machine that another machine drove. The journal comes from the seal, the files and commits from the
//! artifact store, and the repo from its clone URL.

use crate::error::FleetError;
use crate::keeper::FILE_MAX;
use crate::pack;
use crate::store::ArtifactStore;
use ralph_loop_app::adopt::Kept;
use ralph_loop_app::{App, AppError, Reporter};
use ralph_loop_protocol::id::RunId;
use std::collections::BTreeMap;

/// Everything that the store has of a run, the newest of each; those of later holds count.
fn kept(store: &ArtifactStore, run: &RunId) -> Result<Kept, FleetError> {
    let root = format!("runs/{run}");
    let mut newest: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut bundle = None;
    // Names begin with the epoch in eight digits, and packs of a hold are counted, so the last one of a name is the newest.
    for object in store.list(&root)? {
        let Some(rest) = object.name.strip_prefix(&format!("{root}/")) else { continue };
        let Some((_, name)) = rest.split_once('/') else { continue };
        if name == "work.bundle" {
            bundle = Some(object.name.clone());
        } else if let Some(bytes) = store.get(&object.name)? {
            match name.ends_with(pack::SUFFIX) && !name.contains('/') {
                true => newest.extend(pack::unpack(&bytes, FILE_MAX)?),
                // Earlier versions stored each file as a separate object.
                false => drop(newest.insert(name.to_owned(), bytes)),
            }
        }
    }
    let mut kept = Kept::default();
    if let Some(name) = bundle {
        kept.bundle = store.get(&name)?;
    }
    for (name, bytes) in newest {
        match (name.strip_prefix("record/"), name.strip_prefix("ralph/")) {
            (Some(inside), _) => kept.record.push((inside.to_owned(), bytes)),
            (_, Some(inside)) => kept.ralph.push((inside.to_owned(), bytes)),
            _ => {}
        }
    }
    Ok(kept)
}

/// Makes the run one of this machine. The app holds it.
pub fn bring(app: &App, store: &ArtifactStore, run: &RunId, report: &dyn Reporter) -> Result<(), AppError> {
    let kept = kept(store, run)?;
    app.adopt(run, &kept, report)
}
