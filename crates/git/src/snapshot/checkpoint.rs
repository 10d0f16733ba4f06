//! One checkpoint: tree, commit on the work ref, and on the run's branch if it has one.
//!
//! A checkpoint with changes starts four processes (`git update-index`, `write-tree`, `commit-tree`, `diff-tree`),
//! five on a branch, for any number of files.

use crate::diff::{self, DiffInProgress, DiffReady, LastPatch};
use crate::error::{Error, Result};
use crate::objects::oid::Oid;
use crate::snapshot::FileStates;
use crate::snapshot::entry::{TreeEntry, differences};
use crate::snapshot::history::{WorkCommit, message_with_trailers};
use crate::snapshot::record::{PlannedMove, RefPosition};
use crate::snapshot::work_tree::{WorkChanges, in_the_way, work_of};
use crate::workspace::GitWorkspace;
use ralph_loop_domain::ports::{Checkpoint, CheckpointRequest};
use ralph_loop_domain::text::change_text::ChangeText;
use ralph_loop_protocol::display::sanitize;
use ralph_loop_protocol::event::FileChange;
use ralph_loop_protocol::id::{CommitId, TreeId};
use std::collections::BTreeSet;

fn change_words(before: &[TreeEntry], now: &[TreeEntry]) -> String {
    let changed: Vec<(char, String)> = differences(before, now)
        .into_iter()
        .filter(|change| !change.path.starts_with(b".ralph/"))
        .map(|change| {
            let status = match (change.old.is_some(), change.new.is_some()) {
                (false, _) => 'A',
                (_, false) => 'D',
                _ => 'M',
            };
            (status, String::from_utf8_lossy(change.path).into_owned())
        })
        .collect();
    let files: Vec<(char, &str)> = changed.iter().map(|(status, path)| (*status, path.as_str())).collect();
    sanitize::block(&ChangeText::of_files(&files).message()).into_owned()
}

/// What the iteration's commit changes: everything, or what the agent's own commits left.
fn words_of(
    before: &FileStates,
    now: &FileStates,
    work: &WorkChanges,
    in_parts: Option<&[TreeEntry]>,
) -> String {
    match in_parts {
        Some(entries) => change_words(entries, &work.entries),
        None => change_words(&before.entries, &now.entries),
    }
}

/// The files of `old`, with those at or below `paths` as in `new`.
fn with_paths_of(old: &[TreeEntry], new: &[TreeEntry], paths: &[String]) -> Vec<TreeEntry> {
    let is_named = |entry: &&TreeEntry| {
        paths.iter().map(|path| path.trim_start_matches("./").trim_end_matches('/').as_bytes()).any(|path| {
            let below = entry.path.strip_prefix(path);
            path == b"." || below.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        })
    };
    let named: Vec<TreeEntry> = new.iter().filter(is_named).cloned().collect();
    // A file that became a folder, or the other way round, can't stay in the same tree.
    let blocked: BTreeSet<&[u8]> = named.iter().flat_map(|entry| in_the_way(old, &entry.path)).collect();
    let stays = |entry: &&TreeEntry| !is_named(entry) && !blocked.contains(&entry.path[..]);
    let mut entries: Vec<TreeEntry> =
        old.iter().filter(stays).cloned().chain(named.iter().cloned()).collect();
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    entries
}

impl GitWorkspace {
    pub(crate) fn record_checkpoint(&mut self, request: &CheckpointRequest<'_>) -> Result<Checkpoint> {
        let head = std::sync::Arc::clone(&self.session()?.head);
        let mut ready = None;
        let now = self.snapshot.refresh_then(&head, || {
            // A diff that can't be started now is started, or fails, when needed.
            ready = diff::prepare(&self.git).ok();
        })?;
        let iteration = request.iteration;
        let session = self.session()?;
        let is_next = session.chain.last().is_none_or(|tip| tip.iteration.is_some_and(|i| i < iteration));
        let work = work_of(&session.head, &session.start.entries, &now.entries);
        let protected = session.protected.changes(self.snapshot.top(), &session.start.entries, &now.entries);
        if is_next && now.tree == session.last.tree && !self.has_agents_commits(request) {
            return Ok(Checkpoint { protected, ..checkpoint(&now, None, Vec::new(), &work, false) });
        }
        let made = self.record_change(request, &now, &work, ready)?;
        Ok(Checkpoint { protected, ..made })
    }

    /// Whether the agent may commit and has committed on the run's branch. Its commit must not stay the newest: its
    /// message could keep a code host from running checks.
    fn has_agents_commits(&self, request: &CheckpointRequest<'_>) -> bool {
        self.options.allow_agent_commits && matches!(self.check_branch(request.on_branch), Ok(Some(_)))
    }

    fn record_change(
        &mut self,
        request: &CheckpointRequest<'_>,
        now: &FileStates,
        work: &WorkChanges,
        ready: Option<DiffReady>,
    ) -> Result<Checkpoint> {
        let iteration = request.iteration;
        let with_state = match self.options.commit_state {
            true => {
                let record = self.options.folder.as_deref().and_then(std::path::Path::parent);
                Some(crate::snapshot::state_dir::with_state(work, &self.state_top(), record, &self.objects)?)
            }
            false => None,
        };
        let work = with_state.as_ref().unwrap_or(work);
        let session = self.session()?;
        let expected = session.record.work.to.clone();
        let actual = self.refs.read(&self.own_ref("work"))?;
        if actual != expected {
            let word = |id: Option<String>| id.unwrap_or_else(|| "nothing".to_owned());
            let name = self.own_ref("work");
            return Err(Error::RefMoved { name, expected: word(expected), actual: word(actual) });
        }
        let branch_moved = self.check_branch(request.on_branch)?;
        let work_tree = match work.entries == *now.entries {
            true => now.tree,
            false => self.objects.tree(&work.entries)?,
        };
        if branch_moved.is_none() && self.is_already_made(iteration, &work_tree, now)? {
            return self.reuse(request, now, work, ready);
        }
        self.forget_future(iteration)?;
        if let Some(commit) = branch_moved {
            // The agent has committed on the branch, and may: its commits become part of the chain.
            let tree = String::new();
            self.session_mut()?.chain.push(WorkCommit { id: commit, tree, iteration: None });
        }
        self.make(request, now, work, &work_tree, ready)
    }

    fn is_already_made(&self, iteration: u32, work_tree: &Oid, now: &FileStates) -> Result<bool> {
        let session = self.session()?;
        Ok(session.chain.last().is_some_and(|tip| {
            let full = session.record.full_tree(&tip.id);
            tip.iteration == Some(iteration)
                && tip.tree == work_tree.to_string()
                && full.is_none_or(|full| full == now.tree.to_string())
        }))
    }

    /// Returns the existing commit and finishes what was left undone.
    fn reuse(
        &mut self,
        request: &CheckpointRequest<'_>,
        now: &FileStates,
        work: &WorkChanges,
        ready: Option<DiffReady>,
    ) -> Result<Checkpoint> {
        let session = self.session()?;
        let Some((tip, before)) = session.chain.split_last() else {
            return Err(Error::unreadable("the run's history", "it is empty"));
        };
        let (tip, parent) = (tip.clone(), before.last().cloned());
        let Some(session) = self.session.take() else {
            return Err(Error::unreadable("the run's history", "it is empty"));
        };
        let before = self.state_at(&session, parent.as_ref());
        self.session = Some(session);
        let before = before?;
        if request.on_branch {
            let parent = self.parent_id()?;
            self.move_branch(request, &tip.id, &parent, &before, now, work)?;
        }
        let running = self.start_diff(&before, now, ready)?;
        let (files, patch) = collect(&before, now, running);
        let session = self.session_mut()?;
        session.last = now.clone();
        session.patch = patch;
        Ok(checkpoint(now, Some(tip.id), files, work, true))
    }

    /// Drops commits of this iteration or later ones, which a truncated journal doesn't know.
    fn forget_future(&mut self, iteration: u32) -> Result<()> {
        let Some(mut session) = self.session.take() else { return Ok(()) };
        let lost = |tip: &WorkCommit| tip.iteration.is_none_or(|i| i >= iteration);
        let before = session.chain.len();
        while session.chain.last().is_some_and(lost) {
            session.chain.pop();
        }
        let last = match session.chain.len() == before {
            true => Ok(session.last.clone()),
            false => self.state_at(&session, session.chain.last()),
        };
        let result = last.map(|last| session.last = last);
        self.session = Some(session);
        result
    }

    fn make(
        &mut self,
        request: &CheckpointRequest<'_>,
        now: &FileStates,
        work: &WorkChanges,
        work_tree: &Oid,
        ready: Option<DiffReady>,
    ) -> Result<Checkpoint> {
        let before = self.session()?.last.clone();
        let parent = self.parent_id()?;
        let above_agents = self.session()?.chain.last().is_some_and(|tip| tip.iteration.is_none());
        if before.tree == now.tree && !above_agents {
            // Nothing changed since the last valid commit; only the later ones are dropped.
            self.move_work(&parent, None)?;
            if request.on_branch {
                self.move_branch(request, &parent, &parent, &before, now, work)?;
            }
            return Ok(checkpoint(now, None, Vec::new(), work, false));
        }
        let running = self.start_diff(&before, now, ready)?;
        let (parts, in_parts) = self.commit_parts(request, &before, work, &parent)?;
        let words = match request.message.trim() {
            "" => match (words_of(&before, now, work, in_parts.as_deref()), request.redactor) {
                (words, Some(redactor)) => redactor.text(&words).into_owned(),
                (words, None) => words,
            },
            words => words.to_owned(),
        };
        let message = message_with_trailers(&words, &self.run, Some(request.iteration));
        let at = request.at.as_second();
        let above = parts.last().map_or(&parent, |part| &part.id);
        let (tree, who) = (work_tree.to_string(), &self.options.identity);
        let commit = match parts.last() {
            // The parts have everything.
            Some(part) if part.tree == tree => part.id.clone(),
            _ => self.objects.commit(&tree, Some(above), who, at, &message)?,
        };
        let full = (work_tree != &now.tree).then(|| now.tree.to_string());
        self.move_work(&commit, full.as_deref())?;
        if request.on_branch {
            self.move_branch(request, &commit, &parent, &before, now, work)?;
        }
        let (files, patch) = collect(&before, now, running);
        let session = self.session_mut()?;
        session.chain.extend(parts.into_iter().filter(|part| part.id != commit));
        let tree = work_tree.to_string();
        session.chain.push(WorkCommit { id: commit.clone(), tree, iteration: Some(request.iteration) });
        session.last = now.clone();
        session.patch = patch;
        Ok(checkpoint(now, Some(commit), files, work, false))
    }

    /// The agent's own commits of some of its files, each on top of the one before, and the files of the last.
    fn commit_parts(
        &self,
        request: &CheckpointRequest<'_>,
        before: &FileStates,
        work: &WorkChanges,
        parent: &str,
    ) -> Result<(Vec<WorkCommit>, Option<Vec<TreeEntry>>)> {
        let mut made: Vec<WorkCommit> = Vec::new();
        if request.parts.is_empty() {
            return Ok((made, None));
        }
        let session = self.session()?;
        let mut entries = work_of(&session.head, &session.start.entries, &before.entries).entries;
        let mut last = self.objects.tree(&entries)?.to_string();
        for part in request.parts {
            entries = with_paths_of(&entries, &work.entries, &part.paths);
            let tree = self.objects.tree(&entries)?.to_string();
            if tree == last {
                continue;
            }
            let message = message_with_trailers(&part.message, &self.run, Some(request.iteration));
            let above = made.last().map_or(parent, |part| part.id.as_str());
            let who = &self.options.identity;
            let id = self.objects.commit(&tree, Some(above), who, request.at.as_second(), &message)?;
            made.push(WorkCommit { id, tree: tree.clone(), iteration: Some(request.iteration) });
            last = tree;
        }
        Ok((made, Some(entries)))
    }

    fn parent_id(&self) -> Result<String> {
        let session = self.session()?;
        let base = session.record.baseline.head.as_str();
        Ok(session.chain.last().map_or(base, |tip| tip.id.as_str()).to_owned())
    }

    fn move_work(&mut self, to: &str, full: Option<&str>) -> Result<()> {
        let name = self.own_ref("work");
        let folder = self.folder.clone();
        let session = self.session.as_mut().ok_or_else(|| Error::unreadable("the run", "not begun"))?;
        let from = session.record.work.to.clone();
        if from.as_deref() == Some(to) {
            return Ok(());
        }
        let place = RefPosition { from: from.clone(), to: Some(to.to_owned()) };
        session.record.note(&folder, PlannedMove::Work { place, full: full.map(str::to_owned) })?;
        if let Err(error) = self.refs.update(&name, to, from.as_deref()) {
            session.record.work = RefPosition::at(from);
            return Err(error);
        }
        session.record.work = RefPosition::at(Some(to.to_owned()));
        session.guard.own_move(&name, Some(to));
        Ok(())
    }

    /// Checks that the branch can move. Returns the commit that the agent moved it to; the commits up to there become
    /// part of the chain.
    pub(crate) fn check_branch(&self, on_branch: bool) -> Result<Option<String>> {
        let (true, Some(branch)) = (on_branch, &self.options.branch) else { return Ok(None) };
        let name = format!("refs/heads/{branch}");
        let head = self.refs.head()?;
        if head != name && !self.options.own_tree {
            return Err(Error::RefMoved { name: "HEAD".to_owned(), expected: name, actual: head });
        }
        let left = self.session()?.record.branch.as_ref().and_then(|place| place.to.clone());
        let actual = self.refs.read(&name)?;
        if actual == left {
            return Ok(None);
        }
        if let (Some(left), Some(actual)) = (&left, &actual)
            && self.refs.is_ancestor(left, actual)?
        {
            return Ok(Some(actual.clone()));
        }
        if self.options.own_tree {
            // An agent has rewritten its branch. Its files count; the run's commits stay.
            return Ok(None);
        }
        let word = |id: Option<String>| id.unwrap_or_else(|| "nothing".to_owned());
        Err(Error::RefMoved { name, expected: word(left), actual: word(actual) })
    }

    fn is_rewritten(&self, actual: Option<&str>) -> Result<bool> {
        let session = self.session()?;
        let base = session.record.baseline.head.as_str();
        Ok(actual.is_none_or(|at| at != base && !session.chain.iter().any(|commit| commit.id == at)))
    }

    /// Moves the run's branch together with the user's index entries of exactly the changed paths, so that `git
    /// status` doesn't show the commit's changes backwards.
    fn move_branch(
        &mut self,
        request: &CheckpointRequest<'_>,
        to: &str,
        parent: &str,
        before: &FileStates,
        now: &FileStates,
        work: &WorkChanges,
    ) -> Result<()> {
        let Some(branch) = self.options.branch.clone() else { return Ok(()) };
        let name = format!("refs/heads/{branch}");
        let actual = self.refs.read(&name)?;
        let folder = self.folder.clone();
        let left_behind =
            self.options.own_tree && (self.refs.head()? != name || self.is_rewritten(actual.as_deref())?);
        let session = self.session.as_mut().ok_or_else(|| Error::unreadable("the run", "not begun"))?;
        if actual.as_deref() != Some(to) {
            let place = RefPosition { from: actual.clone(), to: Some(to.to_owned()) };
            session.record.note(&folder, PlannedMove::Branch { place })?;
            self.refs.update(&name, to, actual.as_deref())?;
            session.record.branch = Some(RefPosition::at(Some(to.to_owned())));
            session.guard.own_move(&name, Some(to));
            let why = format!("ralph: iteration {} of {}", request.iteration, self.run);
            let old = actual.clone().unwrap_or_else(|| "0".repeat(to.len()));
            self.refs.log_move(&name, &old, to, &self.options.identity, request.at.as_second(), &why);
        }
        if left_behind {
            self.refs.point_head_at(&branch)?;
            let session = self.session.as_mut().ok_or_else(|| Error::unreadable("the run", "not begun"))?;
            session.guard.own_move("HEAD", Some(&name));
            return self.reset_own_index(to);
        }
        let mut paths: BTreeSet<&[u8]> =
            differences(&before.entries, &now.entries).iter().map(|d| d.path).collect();
        // A branch that lagged behind the work ref also catches up on earlier iterations.
        if actual.as_deref() != Some(parent) {
            paths.extend(work.changed.iter().map(Vec::as_slice));
        } else {
            paths.extend(
                work.changed
                    .iter()
                    .map(Vec::as_slice)
                    .filter(|p| p.starts_with(crate::snapshot::state_dir::PREFIX)),
            );
        }
        self.update_user_index(&paths, work)
    }

    fn start_diff(
        &self,
        before: &FileStates,
        now: &FileStates,
        ready: Option<DiffReady>,
    ) -> Result<DiffInProgress> {
        let ready = match ready {
            Some(ready) => ready,
            None => diff::prepare(&self.git)?,
        };
        Ok(ready.start(&before.tree.to_string(), &now.tree.to_string()))
    }
}

fn collect(
    before: &FileStates,
    now: &FileStates,
    running: DiffInProgress,
) -> (Vec<FileChange>, Option<LastPatch>) {
    let mut files: Vec<(Vec<u8>, FileChange)> =
        differences(&before.entries, &now.entries).iter().map(|d| (d.path.to_vec(), d.to_change())).collect();
    // The commit is done. Line counts are optional; a diff that fails must not undo it.
    let patch = running.finish().ok().map(|diff| {
        diff.fill(&mut files);
        let (from, to) = (before.tree.to_string(), now.tree.to_string());
        LastPatch { from, to, bytes: diff.patch, truncated: diff.truncated }
    });
    (files.into_iter().map(|(_, change)| change).collect(), patch)
}

fn checkpoint(
    now: &FileStates,
    commit: Option<String>,
    files: Vec<FileChange>,
    work: &WorkChanges,
    reused: bool,
) -> Checkpoint {
    Checkpoint {
        tree: TreeId::new(now.tree.to_string()),
        commit: commit.map(CommitId::new),
        files,
        dirty_touched: work.dirty_touched.iter().map(|path| crate::snapshot::entry::text(path)).collect(),
        protected: Vec::new(),
        reused,
    }
}
