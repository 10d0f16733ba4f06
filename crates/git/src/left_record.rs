//! What a run that worked in the user's own folder has left there, recorded once nothing of it lives any more: its last
//! session may never have come to a checkpoint. Without it the next run would take those files for the user's own.

use crate::command::Git;
use crate::entry::{TreeEntry, differences};
use crate::error::{Error, Result};
use crate::object::{CommitIdentity, ObjectStore, commit_body};
use crate::oid::oid;
use crate::refs::Refs;
use crate::repo::Repo;
use crate::snapshot::{Snapshot, read_tree};
use crate::stage::NestedRepos;
use crate::watch::{clock_of, stat_of};
use crate::workspace::LARGE_FILE_LIMIT;
use ralph_loop_protocol::id::{CommitId, RunId};
use std::collections::BTreeMap;
use std::fs;

/// Commits that are looked at, the newest first.
const COMMITS_MAX: &str = "--max-count=2000";
/// The index of the snapshot.
const INDEX: &str = "left-index";

/// A run that worked in the user's own folder, and whose driver is gone.
#[derive(Debug, Clone, Copy)]
pub struct GoneDriver<'a> {
    /// The run.
    pub run: &'a RunId,
    /// Which of its drivers this was.
    pub epoch: u64,
    /// Whether it was killed, so that the files may have been changed by others since.
    pub cut: bool,
    /// The commit that the checkout was at when the run began.
    pub head: &'a CommitId,
    /// The snapshot of the files that it began with.
    pub start: &'a CommitId,
    /// From when to when something of it lived, in seconds since 1970.
    pub lived: (i64, i64),
}

/// What is recorded of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftRecord {
    /// A commit with its files.
    pub commit: CommitId,
    /// After which of its drivers.
    pub epoch: u64,
    /// Whether that one was killed.
    pub cut: bool,
}

/// `refs/ralph/<run>/left`.
fn ref_of(run: &RunId) -> String {
    format!("refs/ralph/{run}/left")
}

/// What was recorded last of a run.
pub fn recorded(repo: &Repo, run: &RunId) -> Result<Option<LeftRecord>> {
    let Some(commit) = Refs::new(repo, &repo.run_folder(run)).read(&ref_of(run))? else { return Ok(None) };
    let format = "--format=%(trailers:key=Ralph-Driver,valueonly,separator=%x2C)";
    let args = ["log", "-1", "--no-decorate", "--no-show-signature", format, &commit, "--"];
    let said = repo.git().call(args).run()?.text();
    let mut words = said.split_whitespace();
    let epoch = words.next().and_then(|word| word.parse().ok()).unwrap_or_default();
    Ok(Some(LeftRecord { commit: CommitId::new(commit), epoch, cut: words.next() == Some("killed") }))
}

/// Records the files of the user's folder as what a run has left. Without `keep` no ref names them.
pub fn record(repo: &Repo, gone: &GoneDriver<'_>, keep: bool) -> Result<LeftRecord> {
    let folder = repo.run_folder(gone.run);
    fs::create_dir_all(&folder).map_err(|e| Error::file("create", &folder, e))?;
    let git = repo.git();
    let mut objects = ObjectStore::new(repo.common_dir.join("objects"), repo.object_format);
    let (start, trees) = read_tree(&git, gone.start.as_str())?;
    objects.know(trees);
    let head = read_tree(&git, &repo.head)?.0;
    let start_tree = objects.write_tree(&start)?;
    // A fresh copy of the user's index: an older one may hold files that are ignored by now. The attributes are those of the
    // start, as in the run's own checkpoints.
    let _ = fs::remove_file(folder.join(INDEX));
    let mut snapshot = Snapshot::open(repo, &folder, INDEX, LARGE_FILE_LIMIT, true)?;
    snapshot.begun_with(start_tree, NestedRepos::Pinned);
    snapshot.secrets_stay = true;
    let now = snapshot.refresh(&mut objects, &head)?;
    let _ = fs::remove_file(&snapshot.index);
    let at = stat_of(&clock_of(repo, &folder)).map_or(gone.lived.1, |stat| i64::from(stat.mtime.0));

    // What stands there as somebody has committed it is theirs, whatever they have checked out since.
    let mut left = start;
    let refs = Refs::new(repo, &folder);
    let own = last_own_commit(&git, &refs, gone, &repo.head, at)?;
    if let Some(own) = &own {
        left = laid_over(left, &read_tree(&git, gone.head.as_str())?.0, &read_tree(&git, own)?.0);
    }
    let tree = objects.write_tree(&laid_over(left, &head, &now.entries))?;

    let parent = oid(own.as_deref().unwrap_or(gone.head.as_str()))?;
    let who = CommitIdentity::new("Ralph", "ralph@localhost");
    let killed = if gone.cut { " killed" } else { "" };
    let words = "ralph: the files that the run left";
    let message = format!("{words}\n\nRalph-Run: {}\nRalph-Driver: {}{killed}\n", gone.run, gone.epoch);
    let commit = objects.write("commit", &commit_body(&tree, &[parent], &who, at, &message))?.to_string();
    if keep {
        let name = ref_of(gone.run);
        let earlier = refs.read(&name)?;
        refs.update(&name, &commit, earlier.as_deref())?;
    }
    Ok(LeftRecord { commit: CommitId::new(commit), epoch: gone.epoch, cut: gone.cut })
}

/// `entries` with what differs between two other lists, as the second one has it.
fn laid_over(entries: Vec<TreeEntry>, old: &[TreeEntry], new: &[TreeEntry]) -> Vec<TreeEntry> {
    let mut by_path: BTreeMap<Vec<u8>, TreeEntry> =
        entries.into_iter().map(|e| (e.path.clone(), e)).collect();
    for change in differences(old, new) {
        match change.new {
            Some(entry) => drop(by_path.insert(change.path.to_vec(), entry.clone())),
            None => drop(by_path.remove(change.path)),
        }
    }
    by_path.into_values().collect()
}

/// The newest commit that was made on the user's branch while the run lived, or says that it will be made: an agent without a
/// fence can commit there itself.
fn last_own_commit(
    git: &Git,
    refs: &Refs,
    gone: &GoneDriver<'_>,
    head: &str,
    now: i64,
) -> Result<Option<String>> {
    let base = gone.head.as_str();
    if head == base || !refs.is_ancestor(base, head)? {
        return Ok(None);
    }
    let range = format!("{base}..{head}");
    let args = ["log", "--first-parent", "--no-show-signature", COMMITS_MAX, "--format=%H %ct", &range, "--"];
    let listed = git.call(args).run()?.text();
    let (from, until) = gone.lived;
    Ok(listed.lines().find_map(|line| {
        let (id, time) = line.split_once(' ')?;
        let time: i64 = time.parse().ok()?;
        ((from..=until).contains(&time) || time > now.max(until)).then(|| id.to_owned())
    }))
}
