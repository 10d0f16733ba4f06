//! What a proof keeps in the state folder while it runs.

use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_protocol::id::RunId;
use std::path::{Path, PathBuf};

/// Removed when dropped.
pub struct Folders {
    /// The repo that is checked out, below a folder of this proof.
    source: PathBuf,
    all: Vec<PathBuf>,
    files: [PathBuf; 2],
}

impl Folders {
    pub fn new(home: &StateHome, run: &RunId, top: &Path) -> Self {
        let own = home.workspace(run);
        // Some tools name the project after its folder.
        let source = own.join(top.file_name().unwrap_or_else(|| "repo".as_ref()));
        let below = |name: &str| home.path().join(name).join(run.as_str());
        let all = vec![own, below("proofs"), below("fences"), home.record(run).path().to_owned()];
        let files = [home.folder_lock(&source), crate::task::hidden::kept_at(home, run)];
        Self { source, all, files }
    }

    pub fn source(&self) -> &Path {
        &self.source
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        for folder in &self.all {
            let _ = ralph_loop_safe_fs::remove_tree(folder);
        }
        for file in &self.files {
            let _ = std::fs::remove_file(file);
        }
    }
}
