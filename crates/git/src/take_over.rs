//! Taking the result of a run over into the user's checkout: as plain changes, as commits, or as a branch of its own. What is
//! not known to fit is refused before anything is touched; nothing of the user's is written over.

use crate::command::{Git, GitCall};
use crate::diff;
use crate::error::{Error, Result};
use crate::history::message_with_trailers;
use crate::kept_files::{ChangedPaths, KeptFiles};
use crate::place::free_branch_name;
use crate::private_index::PrivateIndex;
use crate::repo::Repo;
use ralph_domain::event::FileChange;
use ralph_domain::id::{CommitId, RunId};
use std::path::PathBuf;

/// What a run has made: its files at the start and now, and the commits in between.
#[derive(Debug, Clone)]
pub struct RunWork {
    /// The snapshot of the files at the start, unfinished changes of the user's included.
    pub start: CommitId,
    /// The last recorded state.
    pub work: CommitId,
    /// The commit that the user's checkout was at.
    base: Option<String>,
    /// The files of the start with what the run has changed. The recorded state itself lacks unfinished changes of the user's
    /// that the run did not touch.
    result: String,
}

/// How a result is to be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeOver<'a> {
    /// Into the files, not committed.
    Files,
    /// As one commit with this message on the branch that is checked out.
    Squash(&'a str),
    /// As the run's own commits on the branch that is checked out.
    Commits,
    /// As the run's own commits on this new branch; the checkout stays as it is.
    Branch(&'a str),
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakenOver {
    /// The commits that were made, oldest first.
    pub commits: Vec<String>,
    /// The files held it already.
    pub files_had_it: bool,
    /// The branch held it already: nothing was done.
    pub branch_had_it: bool,
}

impl RunWork {
    /// Reads what a run has recorded in a repo; `None` where it has recorded nothing there.
    pub fn read(repo: &Repo, run: &RunId) -> Result<Option<Self>> {
        let git = repo.git();
        let commit = |name: String| -> Result<Option<String>> {
            let found = git.call(["rev-parse", "--verify", "--quiet", &name]).accept(&[1, 128]).run()?;
            Ok((found.code == 0).then(|| found.text()))
        };
        let (Some(start), Some(work)) = (
            commit(format!("refs/ralph/{run}/start^{{commit}}"))?,
            commit(format!("refs/ralph/{run}/work^{{commit}}"))?,
        ) else {
            return Ok(None);
        };
        let base = commit(format!("{start}^1"))?;
        let result = changed_on_start(repo, run, &start, base.as_deref(), &work)?;
        Ok(Some(Self { start: CommitId::new(start), work: CommitId::new(work), base, result }))
    }

    /// The same from `start` on: a run that branched off from another has the work of that one, too, up to where it branched off.
    #[must_use]
    pub fn since(self, start: CommitId) -> Self {
        let (base, result) = (Some(start.as_str().to_owned()), self.work.as_str().to_owned());
        Self { start, base, result, ..self }
    }

    /// What a branch holds of a run whose own refs are gone: from the commit that the run began at to its last one. `None`
    /// where the branch does not hold both.
    pub fn on_branch(repo: &Repo, branch: &str, head: &CommitId, work: &CommitId) -> Result<Option<Self>> {
        let tip = format!("refs/heads/{branch}");
        for (old, new) in [(head.as_str(), work.as_str()), (work.as_str(), tip.as_str())] {
            let args = ["merge-base", "--is-ancestor", old, new];
            if repo.git().call(args).accept(&[1, 128]).run()?.code != 0 {
                return Ok(None);
            }
        }
        let base = Some(head.as_str().to_owned());
        Ok(Some(Self { start: head.clone(), work: work.clone(), base, result: work.as_str().to_owned() }))
    }

    /// Brings what a run has recorded in its clone into the user's repo, where both have the same history.
    pub fn fetch(repo: &Repo, clone: &Repo, run: &RunId) -> Result<Option<Self>> {
        let Some(there) = Self::read(clone, run)? else { return Ok(None) };
        let known = |commit: &str| -> Result<bool> {
            let name = format!("{commit}^{{commit}}");
            Ok(repo.git().call(["cat-file", "-e", &name]).accept(&[1, 128]).run()?.code == 0)
        };
        if !there.base.as_deref().map_or(Ok(false), known)? {
            return Err(Error::refused(
                format!(
                    "`{}` does not have the commit that the run's clone started from",
                    repo.top.display()
                ),
                format!(
                    "`git fetch` first; or take the result from the clone: `git -C {} log`",
                    clone.top.display()
                ),
            ));
        }
        let refs = ["start", "work"].map(|name| format!("+refs/ralph/{run}/{name}:refs/ralph/{run}/{name}"));
        let from = clone.top.display().to_string();
        let head = ["fetch", "-q", "--no-tags", "--no-write-fetch-head", "--", &from];
        repo.git().call(head.into_iter().chain(refs.iter().map(String::as_str))).run()?;
        Self::read(repo, run)
    }

    /// The files that differ, with line counts. New ones are among them.
    pub fn files(&self, repo: &Repo) -> Result<Vec<FileChange>> {
        diff::changes(&repo.git(), self.start.as_str(), &self.result)
    }

    /// The whole change as a patch for people, cut at `max` bytes; and whether it was cut.
    pub fn patch(&self, repo: &Repo, max: usize) -> Result<(Vec<u8>, bool)> {
        let bytes = diff::patch(&repo.git(), self.start.as_str(), &self.result, max)?;
        let cut = bytes.len() >= max;
        Ok((bytes, cut))
    }

    /// What lies between two states that the run has recorded: the files, and the patch for people, cut at `max` bytes.
    pub fn between(
        repo: &Repo,
        from: &CommitId,
        to: &CommitId,
        max: usize,
    ) -> Result<(Vec<FileChange>, Vec<u8>)> {
        let git = repo.git();
        let files = diff::changes(&git, from.as_str(), to.as_str())?;
        Ok((files, diff::patch(&git, from.as_str(), to.as_str(), max)?))
    }

    /// Whether the branch that is checked out holds the result already: as the run's commits, or by its files.
    fn is_in(&self, repo: &Repo, run: &RunId, whole: &[u8]) -> Result<bool> {
        let git = repo.git();
        let args = ["merge-base", "--is-ancestor", self.work.as_str(), "HEAD"];
        if git.call(args).accept(&[1]).run()?.code == 0 {
            return Ok(true);
        }
        let index = PrivateIndex::new(repo, run)?;
        index.call(&git, ["read-tree", "HEAD"]).run()?;
        Ok(check(&git, Target::Index, whole, &["-R"]).index(index.path()).run()?.code == 0)
    }

    /// Takes the result over.
    pub fn take_over(&self, repo: &Repo, run: &RunId, how: TakeOver<'_>) -> Result<TakenOver> {
        let git = repo.git();
        if let TakeOver::Branch(name) = how {
            return self.as_branch(repo, run, name);
        }
        let whole = exact(&git, self.start.as_str(), &self.result)?;
        if self.is_in(repo, run, &whole)? {
            return Ok(TakenOver { files_had_it: true, branch_had_it: true, ..TakenOver::default() });
        }
        let files = fits(&git, Target::Files, &whole)?;
        if files == Fit::No {
            return Err(self.refused(&git, &whole, Target::Files)?);
        }
        let files_had_it = files == Fit::HasIt;
        let changes = ChangedPaths::between(&git, self.start.as_str(), &self.result)?;
        if !files_had_it {
            refuse_in_the_way(&changes.in_the_way(&repo.top))?;
        }
        let kept = KeptFiles::keep(repo, &changes)?;
        let lay = |target: Target| -> Result<()> {
            apply(&git, target, &whole).run().map(drop).map_err(|error| put_back(&kept, error.into()))
        };
        if how == TakeOver::Files {
            if !files_had_it {
                lay(Target::Files)?;
            }
            return Ok(TakenOver { files_had_it, ..TakenOver::default() });
        }
        let index = fits(&git, Target::Index, &whole)?;
        if index == Fit::No {
            return Err(self.refused(&git, &whole, Target::Index)?);
        }
        let head = git.call(["rev-parse", "--verify", "HEAD^{commit}"]).run()?.text();
        let commits = self.replay(repo, run, &head, how)?;
        if !files_had_it {
            lay(Target::Files)?;
        }
        if index == Fit::Yes {
            lay(Target::Index)?;
        }
        if let Some(last) = commits.last() {
            let why = format!("ralph apply {run}");
            git.call(["update-ref", "-m", &why, "HEAD", last, &head])
                .run()
                .map_err(|error| put_back(&kept, error.into()))?;
        }
        Ok(TakenOver { commits, files_had_it, branch_had_it: false })
    }

    /// A branch with the run's own commits. They stand on the commit that the run began at, so they are made again only where
    /// the first of them would hold unfinished changes of the user's.
    fn as_branch(&self, repo: &Repo, run: &RunId, name: &str) -> Result<TakenOver> {
        let git = repo.git();
        if git.call(["check-ref-format", "--branch", name]).accept(&[1, 128]).run()?.code != 0 {
            return Err(Error::refused(
                format!("`{name}` is not a valid branch name"),
                "use letters, digits, `-`, `_`, `.` and `/`, for example `--branch fix-router`",
            ));
        }
        let free = free_branch_name(repo, name)?;
        if free != name {
            return Err(Error::refused(
                format!("the branch `{name}` exists already, or another branch is in its way"),
                format!("choose another name, e.g. `--branch {free}`"),
            ));
        }
        let base = self.base.clone().unwrap_or_else(|| self.start.as_str().to_owned());
        let clean = exact(&git, &base, self.start.as_str())?.is_empty();
        let (tip, commits) = if clean {
            (self.work.as_str().to_owned(), self.chain(&git, &base)?)
        } else {
            let commits = self.replay(repo, run, &base, TakeOver::Commits)?;
            (commits.last().cloned().unwrap_or(base), commits)
        };
        let none = "0".repeat(tip.len());
        git.call(["update-ref", "-m", "ralph apply", &format!("refs/heads/{name}"), &tip, &none]).run()?;
        Ok(TakenOver { commits, ..TakenOver::default() })
    }

    /// The run's own commits, oldest first.
    fn chain(&self, git: &Git, base: &str) -> Result<Vec<String>> {
        let not_base = format!("^{base}");
        let args = ["rev-list", "--reverse", "--first-parent", self.work.as_str(), &not_base, "--"];
        Ok(git.call(args).run()?.text().lines().map(str::to_owned).collect())
    }

    /// Makes the run's change anew on top of `onto`, through an index of its own; no ref and no file is touched.
    fn replay(&self, repo: &Repo, run: &RunId, onto: &str, how: TakeOver<'_>) -> Result<Vec<String>> {
        let git = repo.git();
        let base = self.base.clone().unwrap_or_else(|| self.start.as_str().to_owned());
        let steps = match how {
            TakeOver::Squash(_) => vec![self.work.as_str().to_owned()],
            _ => self.chain(&git, &base)?,
        };
        let (mut before, mut parent) = (self.start.as_str().to_owned(), onto.to_owned());
        let mut patches = Vec::new();
        for step in steps {
            let files = changed_on_start(repo, run, self.start.as_str(), self.base.as_deref(), &step)?;
            patches.push((exact(&git, &before, &files)?, step));
            before = files;
        }
        let index = PrivateIndex::new(repo, run)?;
        index.call(&git, ["read-tree", onto]).run()?;
        let mut commits = Vec::new();
        for (patch, step) in patches {
            if patch.is_empty() {
                continue;
            }
            let applied = index
                .call(&git, APPLY.iter().copied().chain(["--cached", "-"]))
                .stdin(patch)
                .accept(&[1, 128])
                .run()?;
            if applied.code != 0 {
                return Err(does_not_fit(&applied.stderr, "the commit that is checked out"));
            }
            let tree = index.call(&git, ["write-tree"]).run()?.text();
            let message = match how {
                TakeOver::Squash(message) => message_with_trailers(message, run, None),
                _ => git.call(["log", "-1", "--format=%B", &step]).run()?.text(),
            };
            let who = repo.identity(None, None);
            parent = git
                .call(["commit-tree", &tree, "-p", &parent, "-F", "-"])
                .env("GIT_AUTHOR_NAME", &who.name)
                .env("GIT_AUTHOR_EMAIL", &who.email)
                .env("GIT_COMMITTER_NAME", &who.name)
                .env("GIT_COMMITTER_EMAIL", &who.email)
                .stdin(message)
                .run()?
                .text();
            commits.push(parent.clone());
        }
        Ok(commits)
    }

    fn refused(&self, git: &Git, whole: &[u8], target: Target) -> Result<Error> {
        let place = match target {
            Target::Files => "your files",
            Target::Index => "what git has of your files, without your unfinished changes",
        };
        Ok(does_not_fit(&check(git, target, whole, &[]).run()?.stderr, place))
    }
}

/// The tree of the start, with the files that `commit` has otherwise than the commit that the run began at.
fn changed_on_start(
    repo: &Repo,
    run: &RunId,
    start: &str,
    base: Option<&str>,
    commit: &str,
) -> Result<String> {
    let git = repo.git();
    let tree = |name: &str| git.call(["rev-parse", "--verify", &format!("{name}^{{tree}}")]).run();
    let Some(base) = base else { return Ok(commit.to_owned()) };
    if tree(base)?.text() == tree(start)?.text() {
        return Ok(commit.to_owned());
    }
    let raw = git.call(["diff-tree", "-r", "-z", "--no-renames", "--full-index", base, commit]).run()?.stdout;
    let mut fields = raw.split(|b| *b == 0);
    let mut changed = Vec::new();
    // `:100644 100755 <old id> <new id> M`, then the path; gone files have mode and id 0.
    while let (Some(head), Some(path)) = (fields.next().filter(|head| !head.is_empty()), fields.next()) {
        let mut words = head.split(|b| *b == b' ').skip(1);
        let (Some(mode), Some(id)) = (words.next(), words.nth(1)) else { continue };
        changed.extend([mode, b" ", id, b"\t", path, b"\0"].concat());
    }
    if changed.is_empty() {
        return Ok(start.to_owned());
    }
    let index = PrivateIndex::new(repo, run)?;
    index.call(&git, ["read-tree", start]).run()?;
    index.call(&git, ["update-index", "-z", "--index-info"]).stdin(changed).run()?;
    Ok(index.call(&git, ["write-tree"]).run()?.text())
}

/// The exact change between two commits, in the form that `git apply` reads back byte by byte.
fn exact(git: &Git, from: &str, to: &str) -> Result<Vec<u8>> {
    let args = ["diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff"];
    let more = ["--no-textconv", "--no-color", from, to];
    Ok(git.call(args.into_iter().chain(more)).run()?.stdout)
}

const APPLY: &[&str] = &["apply", "--whitespace=nowarn"];

/// What a patch is laid on: the files of the checkout, or the user's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Files,
    Index,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Yes,
    HasIt,
    No,
}

fn apply(git: &Git, target: Target, patch: &[u8]) -> GitCall {
    let cached = (target == Target::Index).then_some("--cached");
    git.call(APPLY.iter().copied().chain(cached).chain(["-"])).stdin(patch.to_vec())
}

fn check(git: &Git, target: Target, patch: &[u8], more: &[&str]) -> GitCall {
    let cached = (target == Target::Index).then_some("--cached");
    let args = APPLY.iter().copied().chain(["--check"]).chain(cached).chain(more.iter().copied());
    git.call(args.chain(["-"])).stdin(patch.to_vec()).accept(&[1, 128])
}

/// Whether a patch fits, or is there already.
fn fits(git: &Git, target: Target, patch: &[u8]) -> Result<Fit> {
    Ok(if check(git, target, patch, &["-R"]).run()?.code == 0 {
        Fit::HasIt
    } else if check(git, target, patch, &[]).run()?.code == 0 {
        Fit::Yes
    } else {
        Fit::No
    })
}

/// Refuses what would take the place of something that only the user has.
fn refuse_in_the_way(paths: &[PathBuf]) -> Result<()> {
    if paths.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = paths.iter().take(5).map(|path| format!("`{}`", path.display())).collect();
    let more = if paths.len() > shown.len() { ", …" } else { "" };
    Err(Error::refused(
        format!(
            "the result has something else where you have {}{more}, which the run did not know; nothing was changed",
            shown.join(", ")
        ),
        "move that away and try again; or `ralph apply --branch NAME` makes a branch to merge by hand",
    ))
}

/// Laying the result over the user's files failed half-way: all is made as it was.
fn put_back(kept: &KeptFiles, error: Error) -> Error {
    match kept.put_back() {
        Ok(()) => Error::refused(
            format!("the result could not be taken over: {error}; your files are as they were"),
            "`ralph apply --branch NAME` makes a branch to merge by hand",
        ),
        Err(left) => Error::refused(
            format!("the result could not be taken over: {error}; and {left}"),
            "compare your files with `git status` before you go on",
        ),
    }
}

/// Git's words about a patch that does not fit, as the list of files in the way.
fn does_not_fit(stderr: &str, place: &str) -> Error {
    let mut names: Vec<&str> = stderr.lines().filter_map(file_of).collect();
    names.dedup();
    let shown: Vec<String> = names.iter().take(5).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > shown.len() { ", …" } else { "" };
    let which = if shown.is_empty() { String::new() } else { format!(": {}{more}", shown.join(", ")) };
    Error::refused(
        format!("the result does not fit {place}{which}; nothing was changed"),
        "commit or put away your own changes there and try again; or `ralph apply --branch NAME` makes a branch to merge by hand",
    )
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
        let error = does_not_fit(said, "your files");
        assert_eq!(
            error.to_string(),
            "the result does not fit your files: `src/a.rs`, `b.txt`; nothing was changed"
        );
    }
}
