//! Hands back commits: the run's refs, and the branch that the run commits on.

use crate::error::Result;
use crate::publish::push;
use crate::snapshot::entry::differences;
use crate::snapshot::work_tree::WorkChanges;
use crate::workspace::GitWorkspace;
use jiff::Timestamp;
use std::collections::BTreeSet;

/// The ref of a commit with the files handed back, if the work lacks some of them.
pub(crate) const HANDED: &str = "handed";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Branch {
    Unmoved,
    At(String),
    /// The user has moved it, so it stays there.
    Kept(String),
}

pub(crate) struct TwoRepos<'a> {
    pub(crate) agent: &'a GitWorkspace,
    pub(crate) user: &'a mut GitWorkspace,
    pub(crate) left: Option<String>,
}

pub(crate) struct BranchMove {
    name: String,
    from: String,
    tip: String,
}

impl TwoRepos<'_> {
    /// Copies the run's commits and refs, so that the user's repo knows the run's work. `extra` is a commit with the
    /// present files, if the work lacks some of them. Returns the branch to move.
    pub(crate) fn push_refs_to_user_repo(&mut self, extra: Option<String>) -> Result<Option<BranchMove>> {
        let mut moves: Vec<(String, String)> = Vec::new();
        let record = &self.agent.session()?.record;
        let work = self.agent.own_ref("work");
        // Only what the engine recorded: an agent may have moved the refs of its copy.
        if let Some(tip) = record.work.to.clone().filter(|tip| *tip != record.baseline.head.as_str()) {
            moves.push((work, tip));
        }
        let state = self.agent.own_ref("state");
        if let Some(tip) = self.agent.refs.read(&state)? {
            moves.push((state, tip));
        }
        let mut stale = Vec::new();
        if let Some(tip) = extra {
            let name = self.user.own_ref(HANDED);
            let here = self.user.refs.read(&name)?;
            stale.push((name, tip, here));
        }
        for (name, tip) in moves {
            let here = self.user.refs.read(&name)?;
            if here.as_deref() != Some(tip.as_str()) && self.agent.refs.read(&name)?.as_ref() == Some(&tip) {
                stale.push((name, tip, here));
            }
        }
        let branch = self.branch_tip()?;
        let mut commits: Vec<(String, String)> =
            stale.iter().map(|(name, tip, _)| (name.clone(), tip.clone())).collect();
        commits.extend(branch.iter().map(|branch| (branch.name.clone(), branch.tip.clone())));
        if !commits.is_empty() {
            push::fetch_commits(&self.user.repo, &self.agent.repo, &commits)?;
        }
        for (name, tip, here) in stale {
            self.user.refs.update(&name, &tip, here.as_deref())?;
        }
        Ok(branch)
    }

    pub(crate) fn hand_branch(&mut self, branch: Option<BranchMove>, at: Timestamp) -> Result<Branch> {
        match branch {
            Some(BranchMove { name, from, tip }) => self.move_users_branch(&name, &from, tip, at),
            None => Ok(Branch::Unmoved),
        }
    }

    fn branch_tip(&self) -> Result<Option<BranchMove>> {
        let session = self.agent.session()?;
        let baseline = &session.record.baseline;
        let from = self.left.clone().unwrap_or_else(|| baseline.head.as_str().to_owned());
        let (name, tip) = match (&self.agent.options.branch, &baseline.branch) {
            (Some(branch), _) => {
                (format!("refs/heads/{branch}"), session.record.branch.as_ref().and_then(|p| p.to.clone()))
            }
            (None, Some(branch)) if self.agent.options.allow_agent_commits => {
                let name = format!("refs/heads/{branch}");
                let tip = self.agent.refs.read(&name)?;
                (name, tip)
            }
            _ => return Ok(None),
        };
        let Some(tip) = tip.filter(|tip| *tip != from) else { return Ok(None) };
        // The engine rewrites an iteration's commit when it ticks the task's boxes. It moves the branch from its own
        // commit to its own commit without asking.
        let own = self.agent.options.branch.is_some() && self.left.is_some();
        let sound = self.agent.refs.read(&name)?.as_ref() == Some(&tip)
            && (own || self.agent.refs.is_ancestor(&from, &tip)?);
        Ok(sound.then_some(BranchMove { name, from, tip }))
    }

    fn move_users_branch(&mut self, name: &str, from: &str, tip: String, at: Timestamp) -> Result<Branch> {
        let here = self.user.refs.read(name)?;
        // A run that was moved here brought its branch: nothing was handed back yet, and the branch is at one of its
        // commits.
        let chain = &self.agent.session()?.chain;
        let brought = here.clone().filter(|at| self.left.is_none() && chain.iter().any(|own| own.id == *at));
        let from = brought.as_deref().unwrap_or(from);
        if here.as_deref() != Some(tip.as_str()) {
            if here.as_deref() != Some(from) {
                return Ok(Branch::Kept(name.trim_start_matches("refs/heads/").to_owned()));
            }
            self.user.refs.update(name, &tip, Some(from))?;
            let why = format!("ralph: run {}", self.user.run);
            self.user.refs.log_move(name, from, &tip, &self.user.options.identity, at.as_second(), &why);
        }
        if self.user.refs.head()? == name {
            let old = self.user.read_state(from)?.entries;
            let new = self.user.read_state(&tip)?.entries;
            let paths: BTreeSet<&[u8]> = differences(&old, &new).iter().map(|d| d.path).collect();
            let work = WorkChanges { entries: new.to_vec(), changed: Vec::new(), dirty_touched: Vec::new() };
            self.user.update_user_index(&paths, &work)?;
        }
        Ok(Branch::At(tip))
    }
}
