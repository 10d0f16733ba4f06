//! Notices when others move refs that the run relies on: its `refs/ralph/<run>/…`, its branch, and the `HEAD` of its
//! tree. The user may move all other refs.

use crate::error::Result;
use crate::objects::files;
use crate::objects::refs::Refs;
use crate::repo::Tree;
use ralph_loop_protocol::event::RefMove;
use ralph_loop_protocol::id::RunId;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const FILE: &str = "refs.json";
const HEAD: &str = "HEAD";

/// Refs with their values: an object id, or for `HEAD` the name of its branch.
type RefMap = BTreeMap<String, String>;

/// The run's refs as last accepted, `refs.json`.
#[derive(Debug)]
pub(crate) struct RefMonitor {
    run: RunId,
    path: PathBuf,
    tree: Tree,
    branch: Option<String>,
    accepted: RefMap,
}

impl RefMonitor {
    pub(crate) fn accept_now(
        folder: &Path,
        run: &RunId,
        refs: &Refs,
        tree: Tree,
        branch: Option<&str>,
    ) -> Result<Self> {
        let mut guard = Self::new(folder, run, tree, branch, RefMap::new());
        guard.accepted = guard.current_refs(refs)?;
        files::save(&guard.path, &guard.accepted)?;
        Ok(guard)
    }

    pub(crate) fn load(folder: &Path, run: &RunId, tree: Tree, branch: Option<&str>) -> Result<Option<Self>> {
        let accepted = files::load(&folder.join(FILE))?;
        Ok(accepted.map(|accepted| Self::new(folder, run, tree, branch, accepted)))
    }

    fn new(folder: &Path, run: &RunId, tree: Tree, branch: Option<&str>, accepted: RefMap) -> Self {
        let branch = branch.map(|name| format!("refs/heads/{name}"));
        Self { run: run.clone(), path: folder.join(FILE), tree, branch, accepted }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.accepted.get(name).map(String::as_str)
    }

    /// Records a move that this run made. It is written to the file with the next accepted baseline; until then the
    /// run's record knows it.
    pub(crate) fn own_move(&mut self, name: &str, to: Option<&str>) {
        set(&mut self.accepted, name, to);
    }

    fn own(&self) -> [String; 2] {
        ["start", "work"].map(|name| format!("refs/ralph/{}/{name}", self.run))
    }

    fn current_refs(&self, refs: &Refs) -> Result<RefMap> {
        let mut now = RefMap::new();
        let head = refs.head()?;
        let on_branch = head.starts_with("refs/").then(|| head.clone());
        let names = self.own().into_iter().chain(self.branch.clone()).chain(on_branch);
        for name in names {
            let value = refs.read(&name)?;
            set(&mut now, &name, value.as_deref());
        }
        now.insert(HEAD.to_owned(), head);
        Ok(now)
    }

    /// What differs from the baseline. A move that needs no approval becomes the new baseline, so it is reported
    /// once.
    pub(crate) fn moves(&mut self, refs: &Refs) -> Result<Vec<RefMove>> {
        let now = self.current_refs(refs)?;
        let own = self.own();
        let mut moves = Vec::new();
        for name in own.iter().filter(|name| self.accepted.get(*name) != now.get(*name)) {
            moves.push(self.change(name, &now, true));
        }
        moves.extend(self.tree_moves(refs, &now)?);
        let told: Vec<&RefMove> = moves.iter().filter(|m| !m.needs_person).collect();
        if !told.is_empty() {
            for m in told {
                set(&mut self.accepted, &m.name, m.to.as_deref());
            }
            // From here on, compares the branch that `HEAD` is on now.
            if let Some(name) = now.get(HEAD)
                && self.accepted.get(HEAD) == Some(name)
            {
                set(&mut self.accepted, name, now.get(name).map(String::as_str));
            }
            files::save(&self.path, &self.accepted)?;
        }
        Ok(moves)
    }

    fn tree_moves(&self, refs: &Refs, now: &RefMap) -> Result<Vec<RefMove>> {
        let (old_head, new_head) = (self.accepted.get(HEAD), now.get(HEAD));
        let mut names: Vec<&str> = Vec::new();
        if old_head != new_head {
            names.push(HEAD);
        } else if let Some(name) = new_head.filter(|name| name.starts_with("refs/")) {
            names.push(name);
        }
        let branch = self.branch.as_deref().filter(|name| !names.contains(name));
        names.extend(branch);
        let mut moves = Vec::new();
        for name in names.into_iter().filter(|name| self.accepted.get(*name) != now.get(*name)) {
            let needs_person = self.tree == Tree::User && !self.is_forward(refs, now, name)?;
            moves.push(self.change(name, now, needs_person));
        }
        Ok(moves)
    }

    /// Whether the user's tree moved forward: a commit, or a new branch at the same commit.
    fn is_forward(&self, refs: &Refs, now: &RefMap, name: &str) -> Result<bool> {
        if name == HEAD && self.branch.is_some() {
            // The run commits on its branch, but the folder has left it.
            return Ok(false);
        }
        let commit = |map: &RefMap| match map.get(name) {
            Some(target) if target.starts_with("refs/") => map.get(target).cloned(),
            value => value.cloned(),
        };
        match (commit(&self.accepted), commit(now)) {
            (Some(old), Some(new)) => Ok(old == new || refs.is_ancestor(&old, &new)?),
            _ => Ok(false),
        }
    }

    fn change(&self, name: &str, now: &RefMap, needs_person: bool) -> RefMove {
        let (from, to) = (self.accepted.get(name).cloned(), now.get(name).cloned());
        RefMove { name: name.to_owned(), from, to, needs_person }
    }
}

fn set(map: &mut RefMap, name: &str, value: Option<&str>) {
    match value {
        Some(value) => map.insert(name.to_owned(), value.to_owned()),
        None => map.remove(name),
    };
}
