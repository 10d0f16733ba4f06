//! Removes what crashed runs left behind.

use ralph_loop_domain::ports::{SandboxError, SandboxProvider};
use ralph_loop_protocol::id::RunId;
use std::collections::BTreeSet;

/// Destroys every sandbox of ours whose run isn't in `keep`; returns their ids.
pub fn sweep(provider: &dyn SandboxProvider, keep: &BTreeSet<RunId>) -> Result<Vec<String>, SandboxError> {
    let mut gone = Vec::new();
    for found in provider.list()? {
        if found.run.as_ref().is_none_or(|run| !keep.contains(run)) {
            provider.destroy(&found.id)?;
            gone.push(found.id);
        }
    }
    Ok(gone)
}
