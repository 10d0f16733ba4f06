//! What earlier runs left in a folder without a proof or a person's word for it. The next run finds it among the files that it
//! begins with; what decides its result is held against the files without it.

use crate::command::Git;
use crate::error::Result;
use crate::private_index::PrivateIndex;
use crate::repo::Repo;
use crate::workspace::GitWorkspace;
use ralph_loop_protocol::id::{CommitId, RunId, TreeId};
use ralph_loop_task::spec::LeftWork;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// Commits that are looked at, the newest first.
const COMMITS_MAX: &str = "--max-count=2000";
/// Moves of a branch that are looked at, the newest first.
const MOVES_MAX: &str = "--max-count=200";

/// Mode and id of a file, as a tree names them; nothing where there is no such file.
type Entry = Option<(String, String)>;
/// The files of a commit by their paths.
type Files = HashMap<Vec<u8>, (String, String)>;

/// What of the work of earlier runs is among some files.
#[derive(Debug, Default)]
pub(crate) struct LeftFiles {
    /// The files as they were before, by their paths.
    before: BTreeMap<Vec<u8>, Entry>,
    /// Which run left each.
    by: BTreeMap<Vec<u8>, RunId>,
}

impl LeftFiles {
    /// Their names, as they are shown.
    pub(crate) fn names(&self) -> Vec<String> {
        self.before.keys().map(|path| crate::entry::text(path)).collect()
    }
}

impl GitWorkspace {
    /// The files of `of` as they were before `left`, newest first, was done, and which those are; `None` where nothing of it is
    /// among them.
    pub(crate) fn tree_without(
        &self,
        of: &CommitId,
        head: &CommitId,
        left: &[LeftWork],
    ) -> Result<Option<(TreeId, Vec<String>)>> {
        let now = files(&self.git, of)?;
        let mut found = left_among(&self.git, head, left, Some(of), &mut |path| now.get(path).cloned())?;
        found.before.retain(|path, entry| now.get(path) != entry.as_ref());
        if found.before.is_empty() {
            return Ok(None);
        }
        let names = found.names();
        let index = PrivateIndex::new(&self.repo, &self.run)?;
        index.call(&self.git, ["read-tree", of.as_str()]).run()?;
        index
            .call(&self.git, ["update-index", "-z", "--index-info"])
            .stdin(index_info(found.before))
            .run()?;
        Ok(Some((TreeId::new(index.call(&self.git, ["write-tree"]).run()?.text()), names)))
    }
}

/// Files of the user's checkout, or of its commit, that are as an earlier run left them, of those that `asked` is true for. Each
/// with the run.
pub fn left_in_checkout(
    repo: &Repo,
    left: &[LeftWork],
    in_commit: bool,
    asked: &dyn Fn(&str) -> bool,
) -> Result<Vec<(String, RunId)>> {
    let git = repo.git();
    let head = CommitId::new(git.call(["rev-parse", "--verify", "HEAD"]).run()?.text());
    let committed = files(&git, &head)?;
    let mut now = |path: &[u8]| {
        let entry = committed.get(path).cloned();
        if in_commit || !asked(&crate::entry::text(path)) {
            return entry.filter(|_| in_commit);
        }
        let file = crate::entry::on_disk(&repo.top, path);
        std::fs::symlink_metadata(&file).ok().filter(std::fs::Metadata::is_file)?;
        let id = git
            .call(["hash-object".as_ref(), "--no-filters".as_ref(), "--".as_ref(), file.as_os_str()])
            .run();
        Some((entry.map_or_else(|| "100644".to_owned(), |(mode, _)| mode), id.ok()?.text()))
    };
    let found = left_among(&git, &head, left, None, &mut now)?;
    let named = found.by.into_iter().map(|(path, run)| (crate::entry::text(&path), run));
    Ok(named.filter(|(path, _)| asked(path)).collect())
}

/// Whether somebody has brought `commit` to the branch that is checked out, with `git merge` or `git pull`: that is their word for
/// it, also where no commit of their own tells so. The commits of a run come to its own branch without anybody.
pub fn is_merged(repo: &Repo, commit: &CommitId) -> Result<bool> {
    let Some(branch) = &repo.branch else { return Ok(false) };
    let git = repo.git();
    let has = |in_commit: &str| -> Result<bool> {
        let args = ["merge-base", "--is-ancestor", commit.as_str(), in_commit];
        Ok(git.call(args).accept(&[1]).run()?.code == 0)
    };
    if !has(&repo.head)? {
        return Ok(false);
    }
    let name = format!("refs/heads/{branch}");
    let args = ["reflog", "show", "--no-show-signature", "--format=%H %gs", MOVES_MAX, &name, "--"];
    let listed = git.call(args).accept(&[128]).run()?.text();
    let moves: Vec<(&str, &str)> = listed.lines().filter_map(|line| line.split_once(' ')).collect();
    for pair in moves.windows(2) {
        let [(to, why), (from, _)] = pair else { continue };
        if (why.starts_with("merge ") || why.starts_with("pull")) && has(to)? && !has(from)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What of `left` is among the files that `now` tells. What somebody has committed since is theirs; a commit of the run itself
/// makes it nobody's, however it was written again (`git commit --amend`, `git rebase`). `recorded_as` is the commit by whose
/// attributes those files were recorded, where they were.
fn left_among(
    git: &Git,
    head: &CommitId,
    left: &[LeftWork],
    recorded_as: Option<&CommitId>,
    now: &mut dyn FnMut(&[u8]) -> Entry,
) -> Result<LeftFiles> {
    let id = |entry: &Entry| entry.as_ref().map(|(_, id)| id.clone());
    let committed = files(git, head)?;
    let mut own = BTreeSet::new();
    for work in left {
        own.extend(commits(git, &work.head, &work.end)?);
    }
    let authors: BTreeSet<String> = facts(git, own.iter())?.into_iter().map(|fact| fact.author).collect();
    let mut found = LeftFiles::default();
    for work in left {
        let start = files(git, &work.start)?;
        let since = commits(git, &work.head, head)?;
        let others = facts(git, since.difference(&own))?;
        let others =
            others.into_iter().filter(|fact| !(fact.written_again && authors.contains(&fact.author)));
        let users = touched(git, others.map(|fact| fact.id).collect::<Vec<_>>().iter())?;
        let made = changed(git, &work.head, &work.end)?;
        // Attributes that came with the work make other bytes of the same file: `ident`, line ends, an encoding.
        let by_attributes = recorded_as.filter(|_| made.iter().any(|(path, _)| sets_attributes(path)));
        for (path, made) in made {
            let before = start.get(&path).cloned();
            let here = found.before.get(&path).cloned().unwrap_or_else(|| now(&path));
            let accepted = users.contains(&path) && id(&committed.get(&path).cloned()) == id(&made);
            let is_made = || {
                id(&here) == id(&made)
                    || by_attributes.is_some_and(|by| recorded_id(git, by, &path, &made) == id(&here))
            };
            if !accepted && id(&before) != id(&made) && is_made() {
                found.before.insert(path.clone(), before);
                found.by.entry(path).or_insert_with(|| work.run.clone());
            }
        }
    }
    Ok(found)
}

/// Whether a file says how others are recorded.
fn sets_attributes(path: &[u8]) -> bool {
    path.rsplit(|b| *b == b'/').next() == Some(b".gitattributes")
}

/// The id that a file gets where it is recorded by the attributes of `by`.
fn recorded_id(git: &Git, by: &CommitId, path: &[u8], made: &Entry) -> Option<String> {
    let (_, id) = made.as_ref()?;
    let bytes = git.call(["cat-file", "blob", id]).run().ok()?.stdout;
    let mut name = b"--path=".to_vec();
    name.extend_from_slice(path);
    let args = ["hash-object".as_ref(), "--stdin".as_ref(), OsStr::from_bytes(&name)];
    let call = git.call(args).env("GIT_ATTR_SOURCE", by.as_str()).stdin(bytes);
    Some(call.run().ok()?.text())
}

/// The commits of `to` that `from` has not, the newest of them.
fn commits(git: &Git, from: &CommitId, to: &CommitId) -> Result<BTreeSet<String>> {
    let range = format!("{}..{}", from.as_str(), to.as_str());
    let listed = git.call(["rev-list", COMMITS_MAX, &range, "--"]).run()?.text();
    Ok(listed.lines().map(str::to_owned).collect())
}

/// Who wrote a commit, as far as it tells whether it is another one written again.
struct CommitFacts {
    id: String,
    /// Name, address and time: an amended, rebased or picked commit keeps them.
    author: String,
    /// Whether it was committed at another time than it was written, or carries the words of a run.
    written_again: bool,
}

fn facts<'a>(git: &Git, commits: impl Iterator<Item = &'a String>) -> Result<Vec<CommitFacts>> {
    let input: String = commits.map(|commit| format!("{commit}\n")).collect();
    if input.is_empty() {
        return Ok(Vec::new());
    }
    let format =
        "--format=%H%x01%at%x01%ct%x01%(trailers:key=Ralph-Run,valueonly,separator=%x2C)%x01%an <%ae>";
    let args = ["log", "--no-walk=unsorted", "--no-decorate", "--no-show-signature", "-z", format, "--stdin"];
    let listed = git.call(args).stdin(input).run()?.stdout;
    let listed = String::from_utf8_lossy(&listed);
    let fact = |line: &str| {
        let mut parts = line.trim_matches('\n').splitn(5, '\u{1}');
        let (id, written, committed) = (parts.next()?, parts.next()?, parts.next()?);
        let (run, author) = (parts.next()?, parts.next()?);
        Some(CommitFacts {
            id: id.to_owned(),
            author: format!("{author} {written}"),
            written_again: written != committed || !run.is_empty(),
        })
    };
    Ok(listed.split('\0').filter_map(fact).collect())
}

/// The paths that commits change; for a merge what it brings to the branch that it was made on.
fn touched<'a>(git: &Git, commits: impl Iterator<Item = &'a String>) -> Result<BTreeSet<Vec<u8>>> {
    let input: String = commits.map(|commit| format!("{commit}\n")).collect();
    if input.is_empty() {
        return Ok(BTreeSet::new());
    }
    let args = [
        "diff-tree",
        "--stdin",
        "--root",
        "--diff-merges=first-parent",
        "--no-commit-id",
        "--name-only",
        "-r",
        "-z",
    ];
    let listed = git.call(args).stdin(input).run()?.stdout;
    Ok(listed.split(|b| *b == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
}

/// In the form that `update-index --index-info` reads. What goes comes first: a file may have been where a folder is now.
fn index_info(entries: BTreeMap<Vec<u8>, Entry>) -> Vec<u8> {
    const GONE: &str = "0 0000000000000000000000000000000000000000";
    let line = |head: &str, path: &[u8]| [head.as_bytes(), b"\t", path, b"\0"].concat();
    let (stay, go): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(_, entry)| entry.is_some());
    let go = go.into_iter().map(|(path, _)| line(GONE, &path));
    let stay = stay
        .into_iter()
        .filter_map(|(path, entry)| entry.map(|(mode, id)| line(&format!("{mode} {id}"), &path)));
    go.chain(stay).flatten().collect()
}

/// Every file of a commit.
fn files(git: &Git, commit: &CommitId) -> Result<Files> {
    let listed = git.call(["ls-tree", "-r", "-z", "--full-tree", commit.as_str()]).run()?.stdout;
    let lines = listed.split(|b| *b == 0).filter_map(|line| {
        // `100644 blob <id>\t<path>`.
        let tab = line.iter().position(|b| *b == b'\t')?;
        let head = String::from_utf8_lossy(&line[..tab]);
        let mut words = head.split(' ');
        let (mode, id) = (words.next()?.to_owned(), words.nth(1)?.to_owned());
        Some((line[tab + 1..].to_vec(), (mode, id)))
    });
    Ok(lines.collect())
}

/// What differs between two commits, as the second one has it.
fn changed(git: &Git, from: &CommitId, to: &CommitId) -> Result<Vec<(Vec<u8>, Entry)>> {
    let args = ["diff-tree", "-r", "-z", "--no-renames", "--full-index", from.as_str(), to.as_str()];
    let raw = git.call(args).run()?.stdout;
    let mut fields = raw.split(|b| *b == 0);
    let mut found = Vec::new();
    // `:100644 100755 <old id> <new id> M`, then the path; gone files have mode and id 0.
    while let (Some(head), Some(path)) = (fields.next().filter(|head| !head.is_empty()), fields.next()) {
        let head = String::from_utf8_lossy(head);
        let words: Vec<&str> = head.split(' ').collect();
        let [_, mode, _, id, ..] = words[..] else { continue };
        let there = mode.bytes().any(|b| b != b'0');
        found.push((path.to_vec(), there.then(|| (mode.to_owned(), id.to_owned()))));
    }
    Ok(found)
}
