//! `refs/ralph/<run>/state`: the engine's files as commits, so that a run can resume on another machine.

use crate::error::Result;
use crate::snapshot::entry::TreeEntry;
use crate::workspace::GitWorkspace;
use ralph_loop_domain::ports::StateFile;
use ralph_loop_protocol::id::CommitId;

impl GitWorkspace {
    pub(crate) fn record_state(&mut self, files: &[StateFile], message: &str, at: i64) -> Result<CommitId> {
        let blobs = self.objects.blobs(files.iter().map(|file| file.bytes.as_slice()))?;
        let entry = |(file, oid): (&StateFile, _)| TreeEntry {
            path: file.path.clone().into_bytes(),
            mode: 0o100_644,
            oid,
        };
        let mut entries: Vec<TreeEntry> = files.iter().zip(blobs).map(entry).collect();
        // Git sorts a folder as if its name ended in `/`, which is the order of full paths.
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        entries.dedup_by(|a, b| a.path == b.path);
        let tree = self.objects.tree(&entries)?;
        let name = self.own_ref("state");
        let last = self.refs.read(&name)?;
        if let Some(last) = &last {
            let known = self
                .git
                .call(["rev-parse", "--verify", "--quiet", &format!("{last}^{{tree}}")])
                .accept(&[1])
                .run()?;
            if known.text() == tree.to_string() {
                return Ok(CommitId::new(last.clone()));
            }
        }
        let trailer = format!("{message}\n\nRalph-Run: {}\n", self.run);
        let (tree, who) = (tree.to_string(), &self.options.identity);
        let commit = self.objects.commit(&tree, last.as_deref(), who, at, &trailer)?;
        self.refs.update(&name, &commit, last.as_deref())?;
        Ok(CommitId::new(commit))
    }
}
