//! Begins a run, and resumes one after its process ended.

use crate::checkout::clean::Settings;
use crate::error::{Error, Result};
use crate::hand_back::branch::HANDED;
use crate::locks::lock_file::lock_of;
use crate::objects::oid::oid;
use crate::snapshot::entry::{TreeEntry, differences};
use crate::snapshot::history::{self, WorkCommit};
use crate::snapshot::protected::Protected;
use crate::snapshot::record::{EXCLUDE_AT_START, RefPosition, RefRecord};
use crate::snapshot::ref_monitor::RefMonitor;
use crate::snapshot::stage::NestedRepos;
use crate::snapshot::watch::{clock_of, stat_of};
use crate::snapshot::work_tree::full_of;
use crate::snapshot::{FileStates, read_tree};
use crate::workspace::{GitWorkspace, RunSession};
use ralph_loop_domain::ports::Baseline;
use ralph_loop_protocol::id::{CommitId, TreeId};
use std::sync::{Arc, Mutex, PoisonError};

type Entries = Arc<Vec<TreeEntry>>;

const DIRTY_MAX: usize = 200;

impl GitWorkspace {
    pub(crate) fn begin_run(&mut self, protected: &[String]) -> Result<Baseline> {
        self.release_locks();
        let (baseline, start, head) = match self.refs.read(&self.own_ref("start"))? {
            Some(start) => self.baseline_of(&start)?,
            None => self.take_start()?,
        };
        Protected::begin(&self.folder, &self.repo.top, protected, &start.entries)?;
        let guard = match self.load_guard()? {
            Some(guard) => guard,
            None => self.accept_guard()?,
        };
        self.settings = Settings::load(&self.repo, &self.folder)?;
        self.resume(&baseline, start, head, Some(guard))?;
        Ok(baseline)
    }

    pub(crate) fn reopen_run(&mut self, baseline: &Baseline) -> Result<()> {
        self.release_locks();
        let start = self.read_state(baseline.start.as_str())?;
        let head = self.read_state(baseline.head.as_str())?.entries;
        self.settings = Settings::load(&self.repo, &self.folder)?;
        self.resume(baseline, start, head, None)
    }

    fn release_locks(&self) {
        let own = ["start", "work", "state", HANDED].map(|name| self.own_ref(name));
        let branch = self.options.branch.as_ref().map(|name| format!("refs/heads/{name}"));
        let names = own.iter().map(String::as_str).chain(branch.as_deref()).chain(["HEAD"]);
        self.refs.release_locks(names);
        self.user_index_locks().release(&self.repo.git_dir.join("index"));
        self.sweep_left_locks();
    }

    pub(crate) fn sweep_left_locks(&self) {
        let own = ["HEAD", "index"].map(|name| lock_of(&self.repo.git_dir.join(name)));
        let on = self.refs.head().ok().filter(|head| head.starts_with("refs/"));
        let branch = self.options.branch.as_ref().map(|name| format!("refs/heads/{name}"));
        let refs = on.into_iter().chain(branch).map(|name| lock_of(&self.repo.common_dir.join(name)));
        self.left_locks.sweep(&own.into_iter().chain(refs).collect::<Vec<_>>());
    }

    fn load_guard(&self) -> Result<Option<RefMonitor>> {
        RefMonitor::load(&self.folder, &self.run, self.options.tree(), self.options.branch.as_deref())
    }

    pub(crate) fn accept_guard(&self) -> Result<RefMonitor> {
        let (tree, branch) = (self.options.tree(), self.options.branch.as_deref());
        RefMonitor::accept_now(&self.folder, &self.run, &self.refs, tree, branch)
    }

    /// Records the user's files before anything has touched them.
    fn take_start(&mut self) -> Result<(Baseline, FileStates, Entries)> {
        let (head, branch) = self.current_head()?;
        let head_entries = self.read_state(&head)?.entries;
        let state = self.snapshot.refresh(&head_entries)?;
        let message = history::message_with_trailers("ralph: state before the run", &self.run, None);
        // The time comes from a file that was just written: this crate has no clock.
        let at = stat_of(&clock_of(&self.repo, &self.folder)).map_or(0, |stat| i64::from(stat.mtime.0));
        let (tree, who) = (state.tree.to_string(), &self.options.identity);
        let start = self.objects.commit(&tree, Some(&head), who, at, &message)?;
        let baseline = self.describe(&head, branch, &start, &state, &head_entries);
        let branch_at = match &self.options.branch {
            Some(name) => Some(RefPosition::at(self.refs.read(&format!("refs/heads/{name}"))?)),
            None => None,
        };
        let work = self.refs.read(&self.own_ref("work"))?;
        // A restore must know the original ignore rules, whatever an agent writes later.
        let exclude = std::fs::read(self.repo.common_dir.join("info/exclude")).unwrap_or_default();
        crate::objects::files::write_atomically(&self.folder.join(EXCLUDE_AT_START), &exclude)?;
        Settings::begin(&self.repo, &self.folder)?;
        // The record comes before the ref: a start ref always has its record.
        RefRecord::new(baseline.clone(), work, branch_at).save(&self.folder)?;
        self.refs.update(&self.own_ref("start"), &start, None)?;
        Ok((baseline, state, head_entries))
    }

    fn describe(
        &self,
        head: &str,
        branch: Option<String>,
        start: &str,
        state: &FileStates,
        head_entries: &[TreeEntry],
    ) -> Baseline {
        let dirt = differences(head_entries, &state.entries);
        Baseline {
            head: CommitId::new(head),
            branch,
            start: CommitId::new(start),
            tree: TreeId::new(state.tree.to_string()),
            dirty: dirt.iter().take(DIRTY_MAX).map(|d| crate::snapshot::entry::text(d.path)).collect(),
            dirty_total: dirt.len(),
            left_out: self.snapshot.left_out.iter().map(|p| crate::snapshot::entry::text(p)).collect(),
        }
    }

    /// The baseline of an existing start ref: the recorded one, else read from the commit.
    fn baseline_of(&mut self, start: &str) -> Result<(Baseline, FileStates, Entries)> {
        let state = self.read_state(start)?;
        if let Some(record) = RefRecord::load(&self.folder)?
            && record.baseline.start.as_str() == start
        {
            let head = self.read_state(record.baseline.head.as_str())?.entries;
            self.snapshot.left_out =
                record.baseline.left_out.iter().map(|p| p.clone().into_bytes()).collect();
            return Ok((record.baseline, state, head));
        }
        let head = self.git.call(["rev-parse", "--verify", &format!("{start}^1")]).run()?.text();
        let head_entries = self.read_state(&head)?.entries;
        let branch = self.refs.head()?.strip_prefix("refs/heads/").map(str::to_owned);
        let baseline = self.describe(&head, branch, start, &state, &head_entries);
        let work = self.refs.read(&self.own_ref("work"))?;
        let branch_at = match &self.options.branch {
            Some(name) => Some(RefPosition::at(self.refs.read(&format!("refs/heads/{name}"))?)),
            None => None,
        };
        RefRecord::new(baseline.clone(), work, branch_at).save(&self.folder)?;
        Ok((baseline, state, head_entries))
    }

    fn resume(
        &mut self,
        baseline: &Baseline,
        start: FileStates,
        head: Entries,
        guard: Option<RefMonitor>,
    ) -> Result<()> {
        let gone = || {
            Error::refused(
                format!("the run's records in `{}` are gone", self.folder.display()),
                "another process removed them; start a new run",
            )
        };
        let mut record =
            RefRecord::load(&self.folder)?.filter(|r| r.baseline.start == baseline.start).ok_or_else(gone)?;
        let mut guard = match guard {
            Some(guard) => guard,
            None => self.load_guard()?.ok_or_else(gone)?,
        };
        let protected = Protected::load(&self.folder)?.ok_or_else(gone)?;
        let nested = match self.options.agent_works_here {
            true => NestedRepos::AsFiles,
            false => NestedRepos::Pinned,
        };
        self.snapshot.begun_with(start.tree, nested, &self.settings);
        let work_ref = self.own_ref("work");
        record.work.settle(self.refs.read(&work_ref)?.as_deref());
        guard.own_move(&work_ref, record.work.to.as_deref());
        if let (Some(name), Some(place)) = (&self.options.branch, &mut record.branch) {
            let name = format!("refs/heads/{name}");
            place.settle(self.refs.read(&name)?.as_deref());
            guard.own_move(&name, place.to.as_deref());
        }
        let chain = match &record.work.to {
            Some(tip) => history::load_chain(&self.git, baseline.head.as_str(), tip, &self.run)?,
            None => Vec::new(),
        };
        let mut session =
            RunSession { record, head, last: start.clone(), start, chain, guard, protected, patch: None };
        session.last = self.state_at(&session, session.chain.last())?;
        self.session = Some(session);
        Ok(())
    }

    /// The full state of the workspace at a work commit; the start without one.
    pub(crate) fn state_at(
        &mut self,
        session: &RunSession,
        commit: Option<&WorkCommit>,
    ) -> Result<FileStates> {
        let Some(commit) = commit else { return Ok(session.start.clone()) };
        if let Some(tree) = session.record.full_tree(&commit.id) {
            // No ref holds it, so `git gc --prune=now` may have removed it.
            if let Ok(state) = self.read_state(tree) {
                return Ok(state);
            }
        }
        let work = self.read_state(&commit.tree)?;
        if session.head == session.start.entries {
            return Ok(work);
        }
        let entries = full_of(&session.head, &session.start.entries, &work.entries);
        let tree = self.objects.tree(&entries)?;
        Ok(FileStates { entries: Arc::new(entries), tree })
    }

    pub(crate) fn read_state(&mut self, tree: &str) -> Result<FileStates> {
        /// The start and its parent, for both sides of a run.
        const KNOWN_MAX: usize = 4;
        // What an id names never changes, so both sides of a run read it once.
        static KNOWN: Mutex<Vec<(String, FileStates)>> = Mutex::new(Vec::new());
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, state)) = known().iter().find(|(name, _)| name == tree) {
            return Ok(state.clone());
        }
        let entries = read_tree(&self.git, tree)?;
        let root = self.git.call(["rev-parse", "--verify", &format!("{tree}^{{tree}}")]).run()?.text();
        let state = FileStates { entries: Arc::new(entries), tree: oid(&root)? };
        if oid(tree).is_ok() {
            let mut known = known();
            known.truncate(KNOWN_MAX - 1);
            known.insert(0, (tree.to_owned(), state.clone()));
        }
        Ok(state)
    }

    fn current_head(&self) -> Result<(String, Option<String>)> {
        let head = self.refs.head()?;
        let Some(branch) = head.strip_prefix("refs/heads/") else { return Ok((head, None)) };
        let commit = self.refs.read(&head)?.ok_or_else(|| {
            Error::refused(
                format!("the branch `{branch}` has no commit yet"),
                "make one: git add -A && git commit --allow-empty -m start",
            )
        })?;
        Ok((commit, Some(branch.to_owned())))
    }

    /// Takes all refs as the new baseline, including the run's.
    pub(crate) fn accept_moves(&mut self) -> Result<()> {
        let guard = self.accept_guard()?;
        let work = guard.get(&self.own_ref("work")).map(str::to_owned);
        let branch = self.options.branch.as_ref().map(|name| format!("refs/heads/{name}"));
        let base = self.session()?.record.baseline.head.clone();
        let chain = match &work {
            Some(tip) if self.session()?.record.work.to != work => {
                Some(history::load_chain(&self.git, base.as_str(), tip, &self.run)?)
            }
            None => Some(Vec::new()),
            Some(_) => None,
        };
        let folder = self.folder.clone();
        let session = self.session_mut()?;
        session.record.work = RefPosition::at(work);
        session.record.branch = branch.map(|name| RefPosition::at(guard.get(&name).map(str::to_owned)));
        session.record.save(&folder)?;
        session.guard = guard;
        if let Some(chain) = chain {
            session.chain = chain;
        }
        Ok(())
    }
}
