//! `refs/ralph/<run>/state`: the engine's own files as commits, so that a run can go on on another machine.

use crate::error::{Error, Result};
use crate::objects::oid::Oid;
use crate::objects::writer::commit_body;
use crate::snapshot::entry::TreeEntry;
use crate::workspace::GitWorkspace;
use ralph_loop_domain::ports::StateFile;
use ralph_loop_protocol::id::CommitId;

impl GitWorkspace {
    pub(crate) fn record_state(&mut self, files: &[StateFile], message: &str, at: i64) -> Result<CommitId> {
        let mut entries = Vec::with_capacity(files.len());
        for file in files {
            let oid = self.objects.write("blob", &file.bytes)?;
            entries.push(TreeEntry { path: file.path.clone().into_bytes(), mode: 0o100_644, oid });
        }
        // Git sorts a folder as if its name ended in `/`; whole paths compare just so.
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        entries.dedup_by(|a, b| a.path == b.path);
        let tree = self.objects.write_tree(&entries)?;
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
        let parent = match &last {
            Some(last) => vec![
                Oid::from_hex(last.as_bytes())
                    .ok_or_else(|| Error::unreadable(&name, "it names no commit"))?,
            ],
            None => Vec::new(),
        };
        let trailer = format!("{message}\n\nRalph-Run: {}\n", self.run);
        let body = commit_body(&tree, &parent, &self.options.identity, at, &trailer);
        let commit = self.objects.write("commit", &body)?.to_string();
        self.refs.update(&name, &commit, last.as_deref())?;
        Ok(CommitId::new(commit))
    }
}
