//! What earlier runs left in a folder without a proof or a person's word for it. The next run finds it among the files that it
//! begins with; what decides its result is held against the files without it.

use crate::command::Git;
use crate::error::Result;
use crate::private_index::PrivateIndex;
use crate::workspace::GitWorkspace;
use ralph_domain::id::{CommitId, TreeId};
use ralph_domain::spec::LeftWork;
use std::collections::{BTreeMap, HashMap};

/// Mode and id of a file, as a tree names them; nothing where there is no such file.
type Entry = Option<(String, String)>;
/// The files of a commit by their paths.
type Files = HashMap<Vec<u8>, (String, String)>;

impl GitWorkspace {
    /// The files of `of` as they were before `left`, newest first, was done; `None` where nothing of it is among them. What `head`
    /// holds, too, somebody has committed, unless it is itself a commit of such a run.
    pub(crate) fn tree_without(
        &self,
        of: &CommitId,
        head: &CommitId,
        left: &[LeftWork],
    ) -> Result<Option<TreeId>> {
        let now = files(&self.git, of)?;
        let unproven = left.iter().any(|work| work.end == *head);
        let committed = if unproven { Files::new() } else { files(&self.git, head)? };
        let mut before: BTreeMap<Vec<u8>, Entry> = BTreeMap::new();
        for work in left {
            let start = files(&self.git, &work.start)?;
            for (path, made) in changed(&self.git, &work.head, &work.end)? {
                let found = before.get(&path).cloned().unwrap_or_else(|| now.get(&path).cloned());
                let own = !unproven && committed.get(&path).cloned() == made;
                if found == made && !own {
                    before.insert(path.clone(), start.get(&path).cloned());
                }
            }
        }
        before.retain(|path, entry| now.get(path) != entry.as_ref());
        if before.is_empty() {
            return Ok(None);
        }
        let index = PrivateIndex::new(&self.repo, &self.run)?;
        index.call(&self.git, ["read-tree", of.as_str()]).run()?;
        index.call(&self.git, ["update-index", "-z", "--index-info"]).stdin(index_info(before)).run()?;
        Ok(Some(TreeId::new(index.call(&self.git, ["write-tree"]).run()?.text())))
    }
}

/// In the form that `update-index --index-info` reads. What goes comes first: a file may have been where a folder is now.
fn index_info(entries: BTreeMap<Vec<u8>, Entry>) -> Vec<u8> {
    const GONE: &str = "0 0000000000000000000000000000000000000000";
    let line = |head: &str, path: &[u8]| [head.as_bytes(), b"\t", path, b"\0"].concat();
    let (stay, go): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(_, entry)| entry.is_some());
    let go = go.into_iter().map(|(path, _)| line(GONE, &path));
    let stay = stay
        .into_iter()
        .filter_map(|(path, entry)| entry.map(|(mode, id)| line(&format!("{mode} {id}"), &path)));
    go.chain(stay).flatten().collect()
}

/// Every file of a commit.
fn files(git: &Git, commit: &CommitId) -> Result<Files> {
    let listed = git.call(["ls-tree", "-r", "-z", "--full-tree", commit.as_str()]).run()?.stdout;
    let lines = listed.split(|b| *b == 0).filter_map(|line| {
        // `100644 blob <id>\t<path>`.
        let tab = line.iter().position(|b| *b == b'\t')?;
        let head = String::from_utf8_lossy(&line[..tab]);
        let mut words = head.split(' ');
        let (mode, id) = (words.next()?.to_owned(), words.nth(1)?.to_owned());
        Some((line[tab + 1..].to_vec(), (mode, id)))
    });
    Ok(lines.collect())
}

/// What differs between two commits, as the second one has it.
fn changed(git: &Git, from: &CommitId, to: &CommitId) -> Result<Vec<(Vec<u8>, Entry)>> {
    let args = ["diff-tree", "-r", "-z", "--no-renames", "--full-index", from.as_str(), to.as_str()];
    let raw = git.call(args).run()?.stdout;
    let mut fields = raw.split(|b| *b == 0);
    let mut found = Vec::new();
    // `:100644 100755 <old id> <new id> M`, then the path; gone files have mode and id 0.
    while let (Some(head), Some(path)) = (fields.next().filter(|head| !head.is_empty()), fields.next()) {
        let head = String::from_utf8_lossy(head);
        let words: Vec<&str> = head.split(' ').collect();
        let [_, mode, _, id, ..] = words[..] else { continue };
        let there = mode.bytes().any(|b| b != b'0');
        found.push((path.to_vec(), there.then(|| (mode.to_owned(), id.to_owned()))));
    }
    Ok(found)
}
