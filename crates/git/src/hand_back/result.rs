//! Applies the result of a run to the user's checkout: as plain changes, as commits, or as a new branch. Refuses
//! conflicts before anything is touched, and overwrites nothing of the user's.

use crate::checkout::branch::free_branch_name;
use crate::diff;
use crate::error::{Error, Result};
use crate::hand_back::apply::{Plan, Source, Target, Written};
use crate::hand_back::merge::{TreeChange, merge_into, tree_changes};
use crate::objects::private_index::{PrivateIndex, index_info, write_tree};
use crate::process::command::Git;
use crate::process::tree_git::TreeGit;
use crate::repo::Repo;
use crate::snapshot::entry::{Difference, TreeEntry, find, text};
use crate::snapshot::history::message_with_trailers;
use crate::snapshot::work_tree::in_the_way;
use ralph_loop_protocol::event::FileChange;
use ralph_loop_protocol::id::{CommitId, RunId};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

const FILES: &str = "your files";
const INDEX: &str = "what git has of your files, without your unfinished changes";

/// A run's result: its files at the start and now, and the commits in between.
#[derive(Debug, Clone)]
pub struct RunCommits {
    /// The snapshot at the start, with the user's unfinished changes.
    pub start: CommitId,
    /// The last recorded state.
    pub work: CommitId,
    base: Option<String>,
    /// The start with the run's changes. The recorded state lacks unfinished changes of the user's that the run
    /// didn't touch.
    result: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyMode<'a> {
    Files,
    /// As one commit with this message on the current branch.
    Squash(&'a str),
    /// As the run's commits on the current branch.
    Commits,
    /// As the run's commits on this new branch; the checkout stays unchanged.
    Branch(&'a str),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApplyReport {
    /// The commits that were made, oldest first.
    pub commits: Vec<String>,
    /// Whether the files already had the result.
    pub files_had_it: bool,
    /// Whether the branch already had the result, so nothing was done.
    pub branch_had_it: bool,
    /// The files of the commits, or those that differ.
    pub files: Vec<String>,
    /// Those that the user had edited as well; they now have both edits.
    pub merged: Vec<String>,
}

impl RunCommits {
    /// Reads what a run has recorded in a repo, if anything.
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
        let result = rebase_onto_start(repo, run, &start, base.as_deref(), &work)?;
        Ok(Some(Self { start: CommitId::new(start), work: CommitId::new(work), base, result }))
    }

    /// Starts from the commit `head` of another run with the files of `start`, so that a forked run includes the work
    /// up to its fork.
    pub fn since(self, repo: &Repo, run: &RunId, head: CommitId, start: Option<CommitId>) -> Result<Self> {
        let (base, work) = (head.as_str().to_owned(), self.work.as_str());
        // That run's start may have been removed since.
        let known = |commit: &CommitId| {
            let name = format!("{commit}^{{commit}}");
            repo.git()
                .call(["cat-file", "-e", &name])
                .accept(&[1, 128])
                .run()
                .is_ok_and(|done| done.code == 0)
        };
        let start = start.filter(known).unwrap_or(head);
        let result = rebase_onto_start(repo, run, start.as_str(), Some(&base), work)?;
        Ok(Self { start, base: Some(base), result, ..self })
    }

    /// Reads a run whose refs are gone from a branch: from its first commit to its last. `None` unless the branch has
    /// both.
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

    /// Copies the recorded work from the run's clone into the user's repo, if both share history.
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
        crate::publish::push::fetch(repo, &crate::publish::push::path_remote(&clone.top), &refs)?;
        Self::read(repo, run)
    }

    /// The files that differ, including new ones, with line counts.
    pub fn files(&self, repo: &Repo) -> Result<Vec<FileChange>> {
        diff::changes(&repo.git(), self.start.as_str(), &self.result)
    }

    /// The whole change as a patch for display, cut at `max` bytes; and whether it was cut.
    pub fn patch(&self, repo: &Repo, max: usize) -> Result<(Vec<u8>, bool)> {
        let bytes = diff::patch(&repo.git(), self.start.as_str(), &self.result, max)?;
        let cut = bytes.len() >= max;
        Ok((bytes, cut))
    }

    /// What changed between two recorded states: the files, and a patch for display, cut at `max` bytes.
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

    /// Whether the current branch already has the result: the run's commits, or the same files.
    fn is_in(&self, repo: &Repo, trees: &TreeGit, changes: &[TreeChange]) -> Result<bool> {
        let git = repo.git();
        let args = ["merge-base", "--is-ancestor", self.work.as_str(), "HEAD"];
        if git.call(args).accept(&[1]).run()?.code == 0 {
            return Ok(true);
        }
        let head = entries_in(&git, &self.result, "HEAD")?;
        Ok(merge_into(trees, changes, head)?.is_ok_and(|writes| writes.is_empty()))
    }

    /// Applies the result to the user's checkout. `handed` says that the run itself put its files here: later
    /// differences are the user's.
    pub fn apply(&self, repo: &Repo, run: &RunId, mode: ApplyMode<'_>, handed: bool) -> Result<ApplyReport> {
        if let ApplyMode::Branch(name) = mode {
            return self.as_branch(repo, run, name);
        }
        let git = repo.git();
        let changes = tree_changes(&git, self.start.as_str(), &self.result)?;
        let trees = trees_of(repo, run)?;
        if self.is_in(repo, &trees, &changes)? {
            return Ok(ApplyReport { files_had_it: true, branch_had_it: true, ..ApplyReport::default() });
        }
        let files: Vec<Difference<'_>> =
            changes.iter().filter(|change| !change.is_nested_repo()).map(TreeChange::as_difference).collect();
        let target = Target::of_user(repo, &repo.run_folder(run), self.start.as_str())?;
        let mut plan = target.plan(&files)?;
        if !plan.conflicts.is_empty() {
            if !handed || mode == ApplyMode::Files {
                let names: Vec<String> = plan.conflicts.iter().map(|path| text(path)).collect();
                return Err(self.conflict(repo, run, &names, FILES));
            }
            // A commit of the result leaves them alone: they had it, and the user edited them since.
            plan = Plan::default();
        }
        refuse_in_the_way(&target.in_the_way(&plan), run)?;
        let merged: Vec<String> = plan.merged.iter().map(|path| text(path)).collect();
        let files_had_it = plan.is_empty();
        let names: Vec<String> = changes.iter().map(|change| text(&change.path)).collect();
        let report = ApplyReport { files_had_it, merged, files: names, ..ApplyReport::default() };
        if mode == ApplyMode::Files {
            write(&target, &plan, run)?;
            return Ok(report);
        }
        let index = self.index_lines(repo, run, &trees, &changes)?;
        let head = git.call(["rev-parse", "--verify", "HEAD^{commit}"]).run()?.text();
        let commits = self.replay(repo, run, &trees, &head, mode)?;
        write(&target, &plan, run)?;
        if !index.is_empty() {
            git.call(["update-index", "-z", "--index-info"]).stdin(index).run()?;
        }
        let Some(last) = commits.last() else {
            return Ok(ApplyReport { branch_had_it: true, files: Vec::new(), ..report });
        };
        // Last: if killed before, a repeated apply does the rest.
        let why = format!("ralph apply {run}");
        git.call(["update-ref", "-m", &why, "HEAD", last, &head]).run()?;
        let files = tree_changes(&git, &head, last)?.iter().map(|change| text(&change.path)).collect();
        Ok(ApplyReport { files, commits, ..report })
    }

    /// The files of the user's checkout whose own changes conflict with the result. Nothing is written.
    pub fn conflicts(&self, repo: &Repo, run: &RunId) -> Result<Vec<String>> {
        let changes = tree_changes(&repo.git(), self.start.as_str(), &self.result)?;
        let files: Vec<Difference<'_>> =
            changes.iter().filter(|change| !change.is_nested_repo()).map(TreeChange::as_difference).collect();
        let target = Target::of_user(repo, &repo.run_folder(run), self.start.as_str())?;
        Ok(target.plan(&files)?.conflicts.iter().map(|path| text(path)).collect())
    }

    fn index_lines(
        &self,
        repo: &Repo,
        run: &RunId,
        trees: &TreeGit,
        changes: &[TreeChange],
    ) -> Result<Vec<u8>> {
        let listed = repo.git().call(["ls-files", "-s", "-z"]).run()?.stdout;
        let staged = crate::snapshot::entry::parse_ls_files(&listed);
        let merged = merge_into(trees, changes, |change| find(&staged, &change.path).cloned())?;
        let refused = |names: &[String]| self.conflict(repo, run, names, INDEX);
        let writes = merged.map_err(|names| refused(&names))?;
        let goes = |path: &[u8]| writes.iter().any(|(gone, entry)| gone == path && entry.is_none());
        let new = writes.iter().filter(|(_, entry)| entry.is_some());
        let blocked: Vec<String> = new
            .flat_map(|(path, _)| in_the_way(&staged, path))
            .filter(|path| !goes(path))
            .map(text)
            .collect();
        match blocked.is_empty() {
            true => Ok(index_info(&writes, repo)),
            false => Err(refused(&blocked)),
        }
    }

    /// Both sides changed the same lines: a manual merge resolves it, and git can do that once the user's side is a
    /// commit.
    fn conflict(&self, repo: &Repo, run: &RunId, names: &[String], place: &str) -> Error {
        let name = free_branch_name(repo, "from-ralph").unwrap_or_else(|_| "from-ralph".to_owned());
        let steps = format!(
            "`ralph apply {run} --branch {name}`, then `git merge {name}`, where git shows both sides"
        );
        let args = ["diff", "--quiet", "--no-ext-diff", "HEAD", "--"].into_iter();
        let args = args.chain(names.iter().map(String::as_str));
        let changed = repo.git().call(args).accept(&[1, 128]).run();
        let hint = match changed.is_ok_and(|done| done.code == 0) {
            true => steps,
            false => format!("commit your own changes first; then {steps}"),
        };
        refused(names, place, hint)
    }

    /// A branch with the run's commits. They are recreated only if the first would hold unfinished changes of the
    /// user's.
    fn as_branch(&self, repo: &Repo, run: &RunId, name: &str) -> Result<ApplyReport> {
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
                format!("the branch `{name}` already exists, or conflicts with another branch"),
                format!("choose another name, e.g. `--branch {free}`"),
            ));
        }
        let base = self.base.clone().unwrap_or_else(|| self.start.as_str().to_owned());
        let clean = tree_changes(&git, &base, self.start.as_str())?.is_empty();
        let (tip, commits) = if clean {
            (self.work.as_str().to_owned(), self.chain(&git, &base)?)
        } else {
            let commits = self.replay(repo, run, &trees_of(repo, run)?, &base, ApplyMode::Commits)?;
            (commits.last().cloned().unwrap_or(base), commits)
        };
        let none = "0".repeat(tip.len());
        git.call(["update-ref", "-m", "ralph apply", &format!("refs/heads/{name}"), &tip, &none]).run()?;
        Ok(ApplyReport { commits, ..ApplyReport::default() })
    }

    fn chain(&self, git: &Git, base: &str) -> Result<Vec<String>> {
        let not_base = format!("^{base}");
        let args = ["rev-list", "--reverse", "--first-parent", self.work.as_str(), &not_base, "--"];
        Ok(git.call(args).run()?.text().lines().map(str::to_owned).collect())
    }

    fn replay(
        &self,
        repo: &Repo,
        run: &RunId,
        trees: &TreeGit,
        onto: &str,
        mode: ApplyMode<'_>,
    ) -> Result<Vec<String>> {
        let git = repo.git();
        let base = self.base.clone().unwrap_or_else(|| self.start.as_str().to_owned());
        let steps = match mode {
            ApplyMode::Squash(_) => vec![self.work.as_str().to_owned()],
            _ => self.chain(&git, &base)?,
        };
        let index = PrivateIndex::new(repo, run)?;
        index.call(&git, ["read-tree", onto]).run()?;
        let who = repo.identity(None, None);
        let (mut before, mut parent) = (self.start.as_str().to_owned(), onto.to_owned());
        let mut commits = Vec::new();
        for step in steps {
            let files = rebase_onto_start(repo, run, self.start.as_str(), self.base.as_deref(), &step)?;
            let changes = tree_changes(&git, &before, &files)?;
            let there = entries_in(&git, &files, &parent)?;
            before = files;
            let kept = |names: &[String]| self.kept_commits(repo, names, onto);
            let writes = merge_into(trees, &changes, there)?.map_err(|names| kept(&names))?;
            if writes.is_empty() {
                continue;
            }
            let call = index.call(&git, ["update-index", "-z", "--index-info"]);
            if call.stdin(index_info(&writes, repo)).accept(&[128]).run()?.code != 0 {
                return Err(kept(&[]));
            }
            let tree = index.call(&git, ["write-tree"]).run()?.text();
            let message = match mode {
                ApplyMode::Squash(message) => message_with_trailers(message, run, None),
                _ => git.call(["log", "-1", "--format=%B", &step]).run()?.text(),
            };
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

    /// The change doesn't fit on `onto`; the run's commits still have it.
    fn kept_commits(&self, repo: &Repo, names: &[String], onto: &str) -> Error {
        let name = free_branch_name(repo, "from-ralph").unwrap_or_else(|_| "from-ralph".to_owned());
        let hint = format!(
            "`git branch {name} {}` makes a branch of the run's own commits, which hold what you had not committed of these \
             files, too; `git merge {name}` then shows both sides",
            self.work.short()
        );
        let onto = CommitId::new(onto);
        refused(names, &format!("the commit {}", onto.short()), hint)
    }
}

pub(crate) fn rebase_onto_start(
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
    let changed: Vec<_> =
        tree_changes(&git, base, commit)?.into_iter().map(|change| (change.path, change.new)).collect();
    if changed.is_empty() {
        return Ok(start.to_owned());
    }
    write_tree(repo, run, start, &changed)
}

fn trees_of(repo: &Repo, run: &RunId) -> Result<TreeGit> {
    let objects = repo.common_dir.join("objects");
    TreeGit::open(repo, &repo.run_folder(run).join("trees"), objects.clone(), &objects)
}

fn entries_in(
    git: &Git,
    known: &str,
    tree: &str,
) -> Result<impl Fn(&TreeChange) -> Option<TreeEntry> + use<>> {
    let other: HashMap<Vec<u8>, Option<TreeEntry>> =
        tree_changes(git, known, tree)?.into_iter().map(|change| (change.path, change.new)).collect();
    Ok(move |change: &TreeChange| match other.get(&change.path) {
        Some(entry) => entry.clone(),
        None => change.new.clone(),
    })
}

fn write(target: &Target<'_>, plan: &Plan<'_>, run: &RunId) -> Result<()> {
    let mut missing = Vec::new();
    target.write(plan, Source::Objects, |path, written| {
        if written == Written::InTheWay {
            missing.push(text(path));
        }
    })?;
    match missing.first() {
        None => Ok(()),
        Some(path) => Err(Error::refused(
            format!("`{path}` was changed just now and was left alone; the other files are there"),
            format!("`ralph apply {run}` again makes the rest"),
        )),
    }
}

fn refused(names: &[String], place: &str, hint: String) -> Error {
    let shown: Vec<String> = names.iter().take(5).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > shown.len() { ", …" } else { "" };
    let which = if shown.is_empty() { String::new() } else { format!(": {}{more}", shown.join(", ")) };
    Error::refused(format!("the result does not fit {place}{which}; nothing was changed"), hint)
}

fn refuse_in_the_way(paths: &BTreeSet<PathBuf>, run: &RunId) -> Result<()> {
    if paths.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = paths.iter().take(5).map(|path| format!("`{}`", path.display())).collect();
    let more = if paths.len() > shown.len() { ", …" } else { "" };
    Err(Error::refused(
        format!(
            "the result conflicts with {}{more}, which the run didn't know; nothing was changed",
            shown.join(", ")
        ),
        format!(
            "move that away and try again; or `ralph apply {run} --branch NAME` makes a branch to merge by hand"
        ),
    ))
}

/// The user's uncommitted changes when a run began: its sessions saw them, and no commit of the run holds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserChanges {
    pub tree: String,
    pub files: Vec<String>,
}

impl UserChanges {
    /// The changes on top of `commit` for a run that began at `head` with the files of `start`, if any.
    pub fn find(
        repo: &Repo,
        run: &RunId,
        (head, start): (&CommitId, &CommitId),
        commit: &CommitId,
    ) -> Result<Option<Self>> {
        let tree = rebase_onto_start(repo, run, start.as_str(), Some(head.as_str()), commit.as_str())?;
        let changes = tree_changes(&repo.git(), commit.as_str(), &tree)?;
        let files: Vec<String> =
            changes.iter().filter(|change| !change.is_nested_repo()).map(|c| text(&c.path)).collect();
        let tree = repo.git().call(["rev-parse", "--verify", &format!("{tree}^{{tree}}")]).run()?.text();
        Ok((!files.is_empty()).then_some(Self { tree, files }))
    }

    pub fn write_to(checkout: &Repo, run: &RunId, commit: &CommitId, tree: &str) -> Result<()> {
        let changes = tree_changes(&checkout.git(), commit.as_str(), tree)?;
        let files: Vec<Difference<'_>> =
            changes.iter().filter(|change| !change.is_nested_repo()).map(TreeChange::as_difference).collect();
        let target = Target::of_user(checkout, &checkout.run_folder(run), tree)?;
        let plan = target.plan(&files)?;
        let conflicts: Vec<String> = plan.conflicts.iter().map(|path| text(path)).collect();
        match conflicts.is_empty() {
            true => write(&target, &plan, run),
            false => Err(refused(&conflicts, FILES, "start a new run".to_owned())),
        }
    }
}
