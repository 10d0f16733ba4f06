//! Files that earlier, unproven runs left in the user's tree: they count as what `HEAD` has.

use crate::error::Result;
use crate::hand_back::merge::tree_changes;
use crate::objects::private_index::write_tree;
use crate::repo::Repo;
use crate::snapshot::entry::{TreeEntry, text};
use crate::snapshot::read_tree;
use ralph_loop_domain::ports::{Baseline, Leftover};
use ralph_loop_protocol::id::{RunId, TreeId};
use std::collections::{BTreeMap, BTreeSet, HashMap};

const COMMITS_MAX: &str = "--max-count=2000";

#[derive(Debug)]
pub(crate) struct LeftFile {
    pub(crate) run: RunId,
    pub(crate) head: Option<TreeEntry>,
}

/// The files that `runs` (newest first) left and that `is_there` still finds, by path. A file that was committed
/// without the run's trailer is the user's.
pub(crate) fn left_files(
    repo: &Repo,
    head: &str,
    runs: &[RunId],
    is_there: &dyn Fn(&[u8], Option<&TreeEntry>) -> bool,
) -> Result<BTreeMap<Vec<u8>, LeftFile>> {
    let git = repo.git();
    let mut found = BTreeMap::new();
    if runs.is_empty() {
        return Ok(found);
    }
    let committed = files(repo, head)?;
    let args = ["for-each-ref", "--format=%(refname) %(objectname)", "refs/ralph/"];
    let listed = git.call(args).run()?.text();
    let refs: HashMap<&str, &str> = listed.lines().filter_map(|line| line.split_once(' ')).collect();
    for run in runs {
        let at = |name: &str| refs.get(format!("refs/ralph/{run}/{name}").as_str()).copied();
        let Some(start) = at("start") else { continue };
        let began = format!("{start}^1");
        let (before, at_start) = (files(repo, &began)?, files(repo, start)?);
        let touched = touched_by_user(repo, &began, head, runs)?;
        for end in ["work", "handed"].into_iter().filter_map(at) {
            let changes = tree_changes(&git, &began, end)?;
            // With new attributes the same file is recorded as other bytes, so its content proves nothing.
            let is_recoded = changes.iter().any(|left| {
                left.path.ends_with(b".gitattributes") && is_there(&left.path, left.new.as_ref())
            });
            for left in changes {
                let (path, entry) = (left.path, left.new.as_ref());
                let at_head = committed.get(&path);
                let is_users = touched.contains(&path) && same_content(at_head, entry);
                if is_users || same_content(at_start.get(&path), entry) {
                    continue;
                }
                match found.get_mut(&path) {
                    // What a newer run began with is what this one left.
                    Some(LeftFile { head, .. }) if same_content(head.as_ref(), entry) => {
                        *head = before.get(&path).cloned();
                    }
                    Some(_) => {}
                    None if is_recoded || is_there(&path, entry) => {
                        // The run's own commits on a branch don't make a file the user's.
                        let head = if same_content(at_head, entry) { before.get(&path) } else { at_head };
                        found.insert(path, LeftFile { run: run.clone(), head: head.cloned() });
                    }
                    None => {}
                }
            }
        }
    }
    Ok(found)
}

fn same_content(a: Option<&TreeEntry>, b: Option<&TreeEntry>) -> bool {
    a.map(|entry| entry.oid) == b.map(|entry| entry.oid)
}

/// The paths that others' commits have changed since a run began; for a merge, what it brings in.
fn touched_by_user(repo: &Repo, from: &str, head: &str, runs: &[RunId]) -> Result<BTreeSet<Vec<u8>>> {
    let git = repo.git();
    let range = format!("{from}..{head}");
    // Commits of `ralph apply --squash` name the run but no iteration: they are the user's.
    let format = "--format=%H %(trailers:key=Ralph-Run,valueonly,separator=%x2C) \
                  %(trailers:key=Ralph-Iteration,valueonly,separator=%x2C)";
    let listed =
        git.call(["log", COMMITS_MAX, "--no-show-signature", "-z", format, &range, "--"]).run()?.text();
    let commits: Vec<String> = listed
        .split('\0')
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| !words.is_empty())
        .filter(|words| words.len() < 3 || !runs.iter().any(|run| run.as_str() == words[1]))
        .map(|words| format!("{}\n", words[0]))
        .collect();
    if commits.is_empty() {
        return Ok(BTreeSet::new());
    }
    let args =
        ["diff-tree", "--stdin", "--root", "--diff-merges=first-parent", "--no-commit-id", "--name-only"];
    let paths = git.call(args.into_iter().chain(["-r", "-z"])).stdin(commits.concat()).run()?.stdout;
    Ok(paths.split(|b| *b == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
}

/// The `asked` files of the user's checkout, or of its commit, that are as an unproven run left them.
pub fn leftovers_in_checkout(
    repo: &Repo,
    runs: &[RunId],
    in_commit: bool,
    asked: &dyn Fn(&str) -> bool,
) -> Result<Vec<Leftover>> {
    let committed = if in_commit { files(repo, &repo.head)? } else { HashMap::new() };
    let is_there = |path: &[u8], left: Option<&TreeEntry>| {
        if !asked(&text(path)) {
            return false;
        }
        if in_commit {
            return same_content(committed.get(path), left);
        }
        let file = crate::snapshot::entry::on_disk(&repo.top, path);
        match (left, ralph_loop_safe_fs::read_plain(&file, crate::objects::files::CONFIG_MAX)) {
            (Some(left), Ok(bytes)) => repo.object_format.id_of("blob", &bytes) == left.oid,
            (None, Err(_)) => !file.exists(),
            _ => false,
        }
    };
    let found = left_files(repo, &repo.head, runs, &is_there)?;
    Ok(found.into_iter().map(|(path, left)| leftover(&path, left)).collect())
}

fn leftover(path: &[u8], left: LeftFile) -> Leftover {
    Leftover { path: text(path), run: left.run, head_blob: left.head.map(|entry| entry.oid.to_string()) }
}

/// The files that a run began with, with leftovers as `HEAD` has them; `None` without leftovers. `users` knows the
/// earlier runs, `repo` gets the tree.
pub(crate) fn start_without(
    users: &Repo,
    repo: &Repo,
    run: &RunId,
    baseline: &Baseline,
    runs: &[RunId],
) -> Result<Option<(TreeId, Vec<Leftover>)>> {
    if runs.is_empty() {
        return Ok(None);
    }
    let start = files(repo, baseline.start.as_str())?;
    let is_there = |path: &[u8], left: Option<&TreeEntry>| same_content(start.get(path), left);
    let mut left = left_files(users, baseline.head.as_str(), runs, &is_there)?;
    left.retain(|path, file| !same_content(start.get(path), file.head.as_ref()));
    if left.is_empty() {
        return Ok(None);
    }
    let writes: Vec<_> = left.iter().map(|(path, file)| (path.clone(), file.head.clone())).collect();
    let tree = TreeId::new(write_tree(repo, run, baseline.start.as_str(), &writes)?);
    Ok(Some((tree, left.into_iter().map(|(path, file)| leftover(&path, file)).collect())))
}

fn files(repo: &Repo, commit: &str) -> Result<HashMap<Vec<u8>, TreeEntry>> {
    let entries = read_tree(&repo.git(), commit)?;
    Ok(entries.into_iter().map(|entry| (entry.path.clone(), entry)).collect())
}
