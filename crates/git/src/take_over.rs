//! Taking the result of a run over into the user's checkout: as plain changes, as commits, or as a branch of its own. What is
//! not known to fit is refused before anything is touched; nothing of the user's is written over.

use crate::command::Git;
use crate::diff;
use crate::error::{Error, Result};
use crate::history::message_with_trailers;
use crate::kept_files::{ChangedPaths, KeptFiles};
use crate::lay_over::{self, Change, Fit, Merged, RawChange, Target, exact};
use crate::place::free_branch_name;
use crate::private_index::PrivateIndex;
use crate::repo::Repo;
use ralph_loop_protocol::event::FileChange;
use ralph_loop_protocol::id::{CommitId, RunId};
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
    /// What was taken over: the files of the commits, or those that differ.
    pub files: Vec<String>,
    /// Those that the user had edited, too: both edits are in them now.
    pub merged: Vec<String>,
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

    /// The same from the commit `head` on, at which another run began with the files of `start`: a run that branched off from it
    /// has its work, too, up to where it branched off.
    pub fn since(self, repo: &Repo, run: &RunId, head: CommitId, start: Option<CommitId>) -> Result<Self> {
        let (base, work) = (head.as_str().to_owned(), self.work.as_str());
        // What that run began with may have been cleaned up since.
        let known = |commit: &CommitId| {
            let name = format!("{commit}^{{commit}}");
            repo.git()
                .call(["cat-file", "-e", &name])
                .accept(&[1, 128])
                .run()
                .is_ok_and(|done| done.code == 0)
        };
        let start = start.filter(known).unwrap_or(head);
        let result = changed_on_start(repo, run, start.as_str(), Some(&base), work)?;
        Ok(Self { start, base: Some(base), result, ..self })
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
        Ok(lay_over::check(&git, Target::Index, whole, &["-R"]).index(index.path()).run()?.code == 0)
    }

    /// Takes the result over. `handed` says that the run itself had put its files into this folder: what they differ in from
    /// it by now is the user's.
    pub fn take_over(&self, repo: &Repo, run: &RunId, how: TakeOver<'_>, handed: bool) -> Result<TakenOver> {
        let git = repo.git();
        if let TakeOver::Branch(name) = how {
            return self.as_branch(repo, run, name);
        }
        let whole = exact(&git, self.start.as_str(), &self.result)?;
        if self.is_in(repo, run, &whole)? {
            return Ok(TakenOver { files_had_it: true, branch_had_it: true, ..TakenOver::default() });
        }
        let changes = ChangedPaths::between(&git, self.start.as_str(), &self.result)?;
        let change =
            Change { start: self.start.as_str(), result: &self.result, paths: &changes, patch: &whole };
        let (files, merged) = match lay_over::fit(repo, run, Target::Files, change)? {
            Fit::HasIt => (None, Vec::new()),
            Fit::With(patch, merged) => (Some(patch), merged),
            // A commit of the result leaves them alone: they had it, and were edited since.
            Fit::Conflicts(_) if handed && how != TakeOver::Files => (None, Vec::new()),
            Fit::Conflicts(names) => return Err(self.conflict(repo, run, &names, Target::Files)),
        };
        let files_had_it = files.is_none();
        if !files_had_it {
            refuse_in_the_way(&changes.in_the_way(&repo.top), run)?;
        }
        let kept = KeptFiles::keep(repo, &changes)?;
        let lay = |target: Target, patch: &[u8]| -> Result<()> {
            let laid = lay_over::apply(&git, target, patch).run();
            laid.map(drop).map_err(|error| put_back(&kept, error.into(), run))
        };
        if how == TakeOver::Files {
            files.iter().try_for_each(|patch| lay(Target::Files, patch))?;
            return Ok(TakenOver { files_had_it, merged, files: changes.names(), ..TakenOver::default() });
        }
        let index = match lay_over::fit(repo, run, Target::Index, change)? {
            Fit::HasIt => None,
            Fit::With(patch, _) => Some(patch),
            Fit::Conflicts(names) => return Err(self.conflict(repo, run, &names, Target::Index)),
        };
        let head = git.call(["rev-parse", "--verify", "HEAD^{commit}"]).run()?.text();
        let commits = self.replay(repo, run, &head, how)?;
        files.iter().try_for_each(|patch| lay(Target::Files, patch))?;
        index.iter().try_for_each(|patch| lay(Target::Index, patch))?;
        let Some(last) = commits.last() else {
            return Ok(TakenOver { files_had_it, branch_had_it: true, merged, ..TakenOver::default() });
        };
        let why = format!("ralph apply {run}");
        git.call(["update-ref", "-m", &why, "HEAD", last, &head])
            .run()
            .map_err(|error| put_back(&kept, error.into(), run))?;
        let names = ChangedPaths::between(&git, &head, last)?.names();
        Ok(TakenOver { files: names, commits, files_had_it, merged, branch_had_it: false })
    }

    /// Both sides changed the same lines: a merge by hand is what leads on, and git can do it once the user's side is a commit.
    fn conflict(&self, repo: &Repo, run: &RunId, names: &[String], target: Target) -> Error {
        let name = free_branch_name(repo, "from-ralph").unwrap_or_else(|_| "from-ralph".to_owned());
        let steps = format!(
            "`ralph apply {run} --branch {name}`, then `git merge {name}`, where git shows both sides"
        );
        let args = ["diff", "--quiet", "--no-ext-diff", "HEAD", "--"].into_iter();
        let args = args.chain(names.iter().map(String::as_str));
        let changed = repo.git().call(args).accept(&[1, 128]).run();
        let hint = match changed.is_ok_and(|done| done.code == 0) {
            true => steps,
            false => format!("commit your own changes of it first; then {steps}"),
        };
        lay_over::refused(names, target.place(), hint)
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
        let mut changes = Vec::new();
        for step in steps {
            let files = changed_on_start(repo, run, self.start.as_str(), self.base.as_deref(), &step)?;
            changes.push((std::mem::replace(&mut before, files.clone()), files, step));
        }
        let index = PrivateIndex::new(repo, run)?;
        index.call(&git, ["read-tree", onto]).run()?;
        let mut commits = Vec::new();
        for (from, to, step) in changes {
            let tree = match lay_over::merge((repo, run), &index, (&from, &to))? {
                Merged::Tree(tree) => tree,
                Merged::Conflicts(names) => return Err(self.kept_commits(repo, &names, onto)),
            };
            let head = git.call(["rev-parse", "--verify", &format!("{parent}^{{tree}}")]).run()?.text();
            if tree == head {
                continue;
            }
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

    /// The change cannot be made anew on `onto`. The run's own commits have it, on what the run began at.
    fn kept_commits(&self, repo: &Repo, names: &[String], onto: &str) -> Error {
        let name = free_branch_name(repo, "from-ralph").unwrap_or_else(|_| "from-ralph".to_owned());
        let hint = format!(
            "`git branch {name} {}` makes a branch of the run's own commits, which hold what you had not committed of these \
             files, too; `git merge {name}` then shows both sides",
            self.work.short()
        );
        let onto = CommitId::new(onto);
        lay_over::refused(names, &format!("the commit {}", onto.short()), hint)
    }
}

/// The tree of the start, with the files that `commit` has otherwise than the commit that the run began at.
pub(crate) fn changed_on_start(
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
    let changed: Vec<u8> = RawChange::between(&git, base, commit)?.iter().flat_map(RawChange::line).collect();
    if changed.is_empty() {
        return Ok(start.to_owned());
    }
    let index = PrivateIndex::new(repo, run)?;
    index.call(&git, ["read-tree", start]).run()?;
    index.call(&git, ["update-index", "-z", "--index-info"]).stdin(changed).run()?;
    Ok(index.call(&git, ["write-tree"]).run()?.text())
}

/// Refuses what would take the place of something that only the user has.
fn refuse_in_the_way(paths: &[PathBuf], run: &RunId) -> Result<()> {
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
        format!(
            "move that away and try again; or `ralph apply {run} --branch NAME` makes a branch to merge by hand"
        ),
    ))
}

/// Laying the result over the user's files failed half-way: all is made as it was.
fn put_back(kept: &KeptFiles, error: Error, run: &RunId) -> Error {
    match kept.put_back() {
        Ok(()) => Error::refused(
            format!("the result could not be taken over: {error}; your files are as they were"),
            format!("`ralph apply {run} --branch NAME` makes a branch to merge by hand"),
        ),
        Err(left) => Error::refused(
            format!("the result could not be taken over: {error}; and {left}"),
            "compare your files with `git status` before you go on",
        ),
    }
}
