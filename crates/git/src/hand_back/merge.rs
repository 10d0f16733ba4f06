//! Merges the files that both sides changed, in one `git merge-tree`.

use crate::error::{Error, Result};
use crate::objects::oid::Oid;
use crate::process::command::Git;
use crate::process::tree_git::TreeGit;
use crate::snapshot::entry::{Difference, MODE_GITLINK, TreeEntry};

#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreeWay<'a> {
    pub(crate) base: Option<&'a TreeEntry>,
    pub(crate) ours: Option<&'a TreeEntry>,
    pub(crate) theirs: Option<&'a TreeEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Merged {
    Had,
    Theirs,
    Both(TreeEntry),
    Conflict,
}

pub(crate) fn same(a: Option<&TreeEntry>, b: Option<&TreeEntry>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.same_file(b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

pub(crate) fn merge(git: &TreeGit, files: &[ThreeWay<'_>]) -> Result<Vec<Merged>> {
    let mut merged: Vec<Merged> = files
        .iter()
        .map(|file| match file {
            _ if same(file.ours, file.theirs) => Merged::Had,
            _ if same(file.ours, file.base) => Merged::Theirs,
            _ => Merged::Conflict,
        })
        .collect();
    let contents: Vec<(usize, [&TreeEntry; 3])> = files
        .iter()
        .enumerate()
        .filter(|(at, _)| merged[*at] == Merged::Conflict)
        .filter_map(|(at, file)| Some((at, [file.base?, file.ours?, file.theirs?])))
        .filter(|(_, sides)| sides.iter().all(|side| side.mode >> 12 == 0o10))
        .collect();
    // Missing objects (a partial clone) leave a conflict.
    if !contents.is_empty()
        && let Ok(found) = merge_contents(git, &contents)
    {
        for (at, entry) in found {
            let had = files[at].ours.is_some_and(|ours| ours.same_file(&entry));
            merged[at] = if had { Merged::Had } else { Merged::Both(entry) };
        }
    }
    Ok(merged)
}

/// Puts the files into three flat trees, named by number, so that git can't detect renames or mix up folders.
fn merge_contents(git: &TreeGit, contents: &[(usize, [&TreeEntry; 3])]) -> Result<Vec<(usize, TreeEntry)>> {
    let mut input = String::new();
    for side in 0..3 {
        for (at, sides) in contents {
            input.push_str(&format!("{:o} blob {}\t{at}\n", sides[side].mode, sides[side].oid));
        }
        input.push('\n');
    }
    let trees = git.call(["mktree", "--batch", "--missing"]).stdin(input).run()?.text();
    let trees: Vec<&str> = trees.lines().collect();
    let [base, ours, theirs] = trees[..] else {
        return Err(Error::unreadable("what `git mktree` said", "it is not three trees"));
    };
    // `merge-tree --merge-base` needs git 2.40; with commits it finds the base itself.
    let commit = |tree: &str, parent: Option<&str>| -> Result<String> {
        let args = ["commit-tree", tree, "-m", "side"].into_iter();
        Ok(git.call(args.chain(parent.into_iter().flat_map(|parent| ["-p", parent]))).run()?.text())
    };
    let base = commit(base, None)?;
    let [ours, theirs] = [commit(ours, Some(&base))?, commit(theirs, Some(&base))?];
    let args = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", &ours, &theirs];
    let call = git.call(args).config("merge.renames=false").config("merge.directoryRenames=false");
    let said = call.accept(&[1]).run()?.text();
    let mut words = said.split('\0').filter(|word| !word.is_empty());
    let tree = words.next().unwrap_or_default();
    let conflicts: Vec<&str> = words.collect();
    let listed = git.call(["ls-tree", "-z", tree]).run()?.stdout;
    let entries = crate::snapshot::entry::parse_ls_tree(&listed)
        .ok_or_else(|| Error::unreadable("the merged files", "git printed something unexpected"))?;
    let found = entries.into_iter().filter_map(|entry| {
        let name = std::str::from_utf8(&entry.path).ok()?;
        let at: usize = name.parse().ok()?;
        (!conflicts.contains(&name)).then_some((at, entry))
    });
    Ok(found.collect())
}

#[derive(Debug, Clone)]
pub(crate) struct TreeChange {
    pub(crate) path: Vec<u8>,
    pub(crate) old: Option<TreeEntry>,
    pub(crate) new: Option<TreeEntry>,
}

impl TreeChange {
    pub(crate) fn is_nested_repo(&self) -> bool {
        [&self.old, &self.new].into_iter().flatten().any(|entry| entry.mode == MODE_GITLINK)
    }

    pub(crate) fn as_difference(&self) -> Difference<'_> {
        Difference { path: &self.path, old: self.old.as_ref(), new: self.new.as_ref() }
    }
}

pub(crate) fn tree_changes(git: &Git, from: &str, to: &str) -> Result<Vec<TreeChange>> {
    let raw = git.call(["diff-tree", "-r", "-z", "--no-renames", "--full-index", from, to]).run()?.stdout;
    let mut fields = raw.split(|b| *b == 0);
    let mut found = Vec::new();
    // `:100644 100755 <old id> <new id> M`, then the path; a side without the file has mode 0.
    while let (Some(head), Some(path)) = (fields.next().filter(|head| !head.is_empty()), fields.next()) {
        let head = String::from_utf8_lossy(head);
        let words: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
        let [old_mode, new_mode, old, new, ..] = words[..] else { continue };
        let entry = |mode: &str, id: &str| {
            let mode = u32::from_str_radix(mode, 8).ok().filter(|mode| *mode != 0)?;
            Some(TreeEntry { path: path.to_vec(), mode, oid: Oid::from_hex(id.as_bytes())? })
        };
        found.push(TreeChange { path: path.to_vec(), old: entry(old_mode, old), new: entry(new_mode, new) });
    }
    Ok(found)
}

/// Merged paths; `None` is a deleted file.
pub(crate) type MergedPaths = Vec<(Vec<u8>, Option<TreeEntry>)>;

/// Applies the change between two trees to a third one, path by path; an error names the conflicts.
pub(crate) fn merge_into(
    git: &TreeGit,
    changes: &[TreeChange],
    ours: impl Fn(&TreeChange) -> Option<TreeEntry>,
) -> Result<std::result::Result<MergedPaths, Vec<String>>> {
    let there: Vec<Option<TreeEntry>> = changes.iter().map(ours).collect();
    let files: Vec<ThreeWay<'_>> = changes
        .iter()
        .zip(&there)
        .map(|(change, ours)| ThreeWay {
            base: change.old.as_ref(),
            ours: ours.as_ref(),
            theirs: change.new.as_ref(),
        })
        .collect();
    let (mut writes, mut conflicts) = (Vec::new(), Vec::new());
    for (change, merged) in changes.iter().zip(merge(git, &files)?) {
        match merged {
            Merged::Had => {}
            Merged::Theirs => writes.push((change.path.clone(), change.new.clone())),
            Merged::Both(entry) => writes.push((change.path.clone(), Some(entry))),
            Merged::Conflict => conflicts.push(crate::snapshot::entry::text(&change.path)),
        }
    }
    Ok(if conflicts.is_empty() { Ok(writes) } else { Err(conflicts) })
}
