//! A change laid over files or an index that may have moved on: as it is where it fits, else merged by what both began with,
//! as `git merge` would. A real conflict is named, and nothing is touched.

use crate::command::{Git, GitCall};
use crate::error::{Error, Result};
use crate::kept_files::ChangedPaths;
use crate::private_index::PrivateIndex;
use crate::repo::Repo;
use ralph_loop_protocol::id::RunId;
use std::collections::BTreeSet;

const APPLY: &[&str] = &["apply", "--whitespace=nowarn"];

/// What a patch is laid on: the files of the checkout, or the user's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Files,
    Index,
}

impl Target {
    fn flag(self) -> Option<&'static str> {
        (self == Self::Index).then_some("--cached")
    }

    /// In words.
    pub(crate) fn place(self) -> &'static str {
        match self {
            Self::Files => "your files",
            Self::Index => "what git has of your files, without your unfinished changes",
        }
    }
}

/// How a change comes to what it is laid on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It is there already.
    HasIt,
    /// By this patch; with the files of both sides that were merged for it.
    With(Vec<u8>, Vec<String>),
    /// These files were changed in the same lines, on both sides.
    Conflicts(Vec<String>),
}

/// A change: what a run began with, what it made of it, and the patch between the two.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change<'a> {
    pub(crate) start: &'a str,
    pub(crate) result: &'a str,
    pub(crate) paths: &'a ChangedPaths,
    pub(crate) patch: &'a [u8],
}

/// The exact change between two trees, in the form that `git apply` reads back byte by byte.
pub(crate) fn exact(git: &Git, from: &str, to: &str) -> Result<Vec<u8>> {
    let args = ["diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff"];
    let more = ["--no-textconv", "--no-color", from, to];
    Ok(git.call(args.into_iter().chain(more)).run()?.stdout)
}

/// Lays a patch on.
pub(crate) fn apply(git: &Git, target: Target, patch: &[u8]) -> GitCall {
    git.call(APPLY.iter().copied().chain(target.flag()).chain(["-"])).stdin(patch.to_vec())
}

/// Whether a patch could be laid on, or with `-R` be taken away again.
pub(crate) fn check(git: &Git, target: Target, patch: &[u8], more: &[&str]) -> GitCall {
    let args = APPLY.iter().copied().chain(["--check"]).chain(target.flag()).chain(more.iter().copied());
    git.call(args.chain(["-"])).stdin(patch.to_vec()).accept(&[1, 128])
}

/// How a change comes to the user's files or index.
pub(crate) fn fit(repo: &Repo, run: &RunId, target: Target, change: Change<'_>) -> Result<Fit> {
    let git = repo.git();
    if check(&git, target, change.patch, &["-R"]).run()?.code == 0 {
        return Ok(Fit::HasIt);
    }
    let plain = check(&git, target, change.patch, &[]).run()?;
    if plain.code == 0 {
        return Ok(Fit::With(change.patch.to_vec(), Vec::new()));
    }
    let in_the_way = named(&plain.stderr);
    let index = PrivateIndex::new(repo, run)?;
    let ready = match target {
        Target::Files => as_in_folder(&index, &git, change)?,
        Target::Index => index.copy_of(&repo.git_dir.join("index"))?,
    };
    let Some(ours) = ready.then(|| index.tree(&git)).transpose()?.flatten() else {
        return Ok(Fit::Conflicts(in_the_way));
    };
    match merge((repo, run), &index, (change.start, change.result))? {
        Merged::Conflicts(names) => Ok(Fit::Conflicts(if names.is_empty() { in_the_way } else { names })),
        Merged::Tree(merged) if merged == ours => Ok(Fit::HasIt),
        Merged::Tree(merged) => {
            let patch = exact(&git, &ours, &merged)?;
            match check(&git, target, &patch, &[]).run()?.code {
                0 => Ok(Fit::With(patch, in_the_way)),
                _ => Ok(Fit::Conflicts(in_the_way)),
            }
        }
    }
}

/// What became of a patch on an index.
#[derive(Debug)]
pub(crate) enum Merged {
    /// It is in there; the tree.
    Tree(String),
    /// These files conflict.
    Conflicts(Vec<String>),
}

/// Lays the change between two trees on a private index, merged where it does not fit as it is. After a conflict the index is
/// of no use.
pub(crate) fn merge(
    (repo, run): (&Repo, &RunId),
    index: &PrivateIndex,
    (from, to): (&str, &str),
) -> Result<Merged> {
    let git = &repo.git();
    let Some(ours) = index.tree(git)? else { return Ok(Merged::Conflicts(Vec::new())) };
    let from = without_had((repo, run), (from, to), &ours)?;
    let patch = exact(git, &from, to)?;
    if patch.is_empty() {
        return Ok(Merged::Tree(ours));
    }
    let lay = |more: &[&str]| {
        let args = APPLY.iter().copied().chain(more.iter().copied()).chain(["--cached", "-"]);
        index.call(git, args).stdin(patch.clone()).accept(&[1, 128]).run()
    };
    let plain = lay(&[])?;
    if plain.code != 0 && lay(&["--3way"])?.code != 0 {
        let listed = index.call(git, ["ls-files", "-u", "-z"]).accept(&[1, 128]).run()?.stdout;
        let paths = listed.split(|b| *b == 0).filter_map(|line| line.splitn(2, |b| *b == b'\t').nth(1));
        let mut names: Vec<String> = paths.map(crate::entry::text).collect();
        names.dedup();
        return Ok(Merged::Conflicts(if names.is_empty() { named(&plain.stderr) } else { names }));
    }
    Ok(match index.tree(git)? {
        Some(tree) => Merged::Tree(tree),
        None => Merged::Conflicts(named(&plain.stderr)),
    })
}

/// One path that differs between two trees, as the second has it; mode and id are 0 where it is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawChange {
    mode: Vec<u8>,
    id: Vec<u8>,
    path: Vec<u8>,
}

impl RawChange {
    /// The differences between two trees.
    pub(crate) fn between(git: &Git, from: &str, to: &str) -> Result<Vec<Self>> {
        let raw = git.call(["diff-tree", "-r", "-z", "--no-renames", "--full-index", from, to]).run()?.stdout;
        let mut fields = raw.split(|b| *b == 0);
        let mut changed = Vec::new();
        // `:100644 100755 <old id> <new id> M`, then the path; gone files have mode and id 0.
        while let (Some(head), Some(path)) = (fields.next().filter(|head| !head.is_empty()), fields.next()) {
            let mut words = head.split(|b| *b == b' ').skip(1);
            let (Some(mode), Some(id)) = (words.next(), words.nth(1)) else { continue };
            changed.push(Self { mode: mode.to_vec(), id: id.to_vec(), path: path.to_vec() });
        }
        Ok(changed)
    }

    /// As `git update-index --index-info` reads it.
    pub(crate) fn line(&self) -> Vec<u8> {
        [&self.mode[..], b" ", &self.id[..], b"\t", &self.path[..], b"\0"].concat()
    }
}

/// `from`, with the files that `ours` has as `to` has them taken over: what is there already is no part of the change.
fn without_had((repo, run): (&Repo, &RunId), (from, to): (&str, &str), ours: &str) -> Result<String> {
    let git = repo.git();
    let lacking: BTreeSet<Vec<u8>> =
        RawChange::between(&git, ours, to)?.into_iter().map(|change| change.path).collect();
    let had: Vec<u8> = RawChange::between(&git, from, to)?
        .iter()
        .filter(|change| !lacking.contains(&change.path))
        .flat_map(RawChange::line)
        .collect();
    if had.is_empty() {
        return Ok(from.to_owned());
    }
    let index = PrivateIndex::new(repo, run)?;
    index.call(&git, ["read-tree", from]).run()?;
    index.call(&git, ["update-index", "-z", "--index-info"]).stdin(had).run()?;
    Ok(index.call(&git, ["write-tree"]).run()?.text())
}

/// Fills an index with the tree of the start and, of the changed paths, what stands in the user's folder; says whether it could.
fn as_in_folder(index: &PrivateIndex, git: &Git, change: Change<'_>) -> Result<bool> {
    index.call(git, ["read-tree", change.start]).run()?;
    let args = ["update-index", "-z", "--add", "--remove", "--replace", "--stdin"];
    let done = index.call(git, args).stdin(change.paths.listed()).accept(&[1, 128]).run()?;
    Ok(done.code == 0)
}

/// The refusal of a change that conflicts with what is there.
pub(crate) fn refused(names: &[String], place: &str, hint: String) -> Error {
    let shown: Vec<String> = names.iter().take(5).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > shown.len() { ", …" } else { "" };
    let which = if shown.is_empty() { String::new() } else { format!(": {}{more}", shown.join(", ")) };
    Error::refused(format!("the result does not fit {place}{which}; nothing was changed"), hint)
}

/// Git's words about a patch that does not fit, as the list of files in the way.
fn named(stderr: &str) -> Vec<String> {
    let mut names: Vec<String> = stderr.lines().filter_map(file_of).map(str::to_owned).collect();
    names.dedup();
    names
}

/// `error: patch failed: src/a.rs:3`, `error: b.txt: already exists in working directory`.
fn file_of(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("error: ")?;
    match rest.strip_prefix("patch failed: ") {
        Some(place) => place.rsplit_once(':').map(|(file, _)| file),
        None => rest.split_once(": ").map(|(file, _)| file).filter(|file| *file != "patch failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_in_the_way_are_named() {
        let said = "error: patch failed: src/a.rs:3\nerror: src/a.rs: patch does not apply\nerror: b.txt: already exists in working directory";
        let error = refused(&named(said), Target::Files.place(), "x".to_owned());
        assert_eq!(
            error.to_string(),
            "the result does not fit your files: `src/a.rs`, `b.txt`; nothing was changed"
        );
    }
}
