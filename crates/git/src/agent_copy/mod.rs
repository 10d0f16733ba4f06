//! The agent's copy of the user's tree: a separate repo at the same commit, with the same unfinished changes, that a
//! sandboxed agent may change freely. [`crate::HandBack`] hands the result back.
//!
//! It borrows the objects that its start reaches (read-only in the sandbox), so that a large history costs little.
//! Refs, index and configuration are copies. Hooks, and settings that name programs, are left out.

pub(crate) mod contents;
pub(crate) mod copy_files;
pub(crate) mod git_dir;
pub(crate) mod installed;
pub(crate) mod lent;
pub(crate) mod ralph_dir;
pub(crate) mod sparse;

pub use crate::agent_copy::contents::{CopyContents, History};
use crate::agent_copy::copy_files::{CopiedFiles, CopyStats, LeftOut};
use crate::agent_copy::git_dir::CONFIG_COPY;
use crate::agent_copy::installed::installed_folders;
use crate::agent_copy::lent::LENT;
use crate::checkout::clone::without_login;
use crate::error::{Error, Result};
use crate::objects::index;
use crate::objects::oid::Oid;
use crate::objects::writer::CommitIdentity;
use crate::process::command::Git;
use crate::process::running;
use crate::repo::Repo;
use crate::snapshot::FileStates;
use crate::snapshot::entry::{MODE_GITLINK, TreeEntry};
use crate::snapshot::record::EXCLUDE_AT_START;
use crate::workspace::{GitWorkspace, WorkspaceOptions};
use ralph_loop_domain::ports::{Baseline, WorkspaceError};
use ralph_loop_domain::vars::Vars;
use ralph_loop_protocol::id::RunId;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Parts of `.ralph/` that only the engine may write.
const OWN_STATE: &[&str] = &[
    "runs",
    "hidden",
    "lock",
    "state.json",
    "active.json",
    "iterations",
    "archive",
    "cooldowns.json",
    "activity.log",
    "changelog",
    "guardrails.md",
    "progress.md",
    "notes.md",
    "diagnostics.md",
    "errors.log",
];
/// Settings of the user's repo that say how files are read and written, who commits and where to. None names a
/// program.
const SETTINGS: &[&str] = &[
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.precomposeunicode",
    "user.name",
    "user.email",
];

/// Objects of the user's files as they change during the run, in the user's git folder.
pub(crate) const OBJECTS: &str = "objects";

/// Where a run keeps its records of the two repos; `None` means the repo's git folder.
#[derive(Debug, Clone, Default)]
pub struct CopyDirs {
    pub user: Option<PathBuf>,
    pub agent: Option<PathBuf>,
}

/// The agent's copy of the user's repo, just made.
#[derive(Debug)]
pub struct AgentCopy {
    pub top: PathBuf,
    /// Files of the user's tree that it lacks.
    pub left_out: LeftOut,
}

/// Copies `origin` for a run into the empty folder `into`. The user's tree is recorded first; nothing else of theirs
/// changes.
pub fn make(
    origin: &Repo,
    run: &RunId,
    branch: Option<String>,
    into: &Path,
    (contents, folders): (&CopyContents, &CopyDirs),
) -> Result<AgentCopy, WorkspaceError> {
    let what = "make the agent's folder";
    let identity = CommitIdentity::new("Ralph", "ralph@localhost");
    let options =
        WorkspaceOptions { branch, folder: folders.user.clone(), ..WorkspaceOptions::new(identity) };
    let mut user = GitWorkspace::new(origin.clone(), run.clone(), options)?;
    user.begin_run(&[]).map_err(|e| e.during("take the start snapshot"))?;
    let start = user.session().map(|session| session.start.clone()).map_err(|e| e.during(what))?;
    build(origin, &user, &Source { files: &start, kept: &[], contents }, run, into, folders)
        .map_err(|e| e.during(what))
}

/// Copies a clone that a run was moved to: its files now, with the run's records of them.
pub fn make_of_relocated(
    mut user: GitWorkspace,
    baseline: &Baseline,
    into: &Path,
    (contents, folders): (&CopyContents, &CopyDirs),
) -> Result<AgentCopy, WorkspaceError> {
    let mut made = || -> Result<AgentCopy> {
        user.reopen_run(baseline)?;
        let (now, origin, run) = (user.now()?, user.repo.clone(), user.run.clone());
        // The clone was made for the run and holds nothing else of the user's; the run's commits may be on no ref.
        let contents = CopyContents { history: History::Full, ..contents.clone() };
        let source = Source { files: &now, kept: &["protected.json", "refs.json"], contents: &contents };
        build(&origin, &user, &source, &run, into, folders)
    };
    made().map_err(|e| e.during("make the agent's folder"))
}

struct Source<'a> {
    files: &'a FileStates,
    kept: &'a [&'a str],
    contents: &'a CopyContents,
}

fn build(
    origin: &Repo,
    user: &GitWorkspace,
    source: &Source<'_>,
    run: &RunId,
    into: &Path,
    folders: &CopyDirs,
) -> Result<AgentCopy> {
    if into.exists() {
        return Err(Error::refused(format!("`{}` exists already", into.display()), "start a new run"));
    }
    let mut partial = into.as_os_str().to_owned();
    partial.push(".ralph-partial");
    let partial = PathBuf::from(partial);
    // Left by a killed process; the name is ours.
    running::kill_git_in(&partial);
    let _ = ralph_loop_safe_fs::remove_tree(&partial);
    let left_out = fill(origin, user, source, run, &partial, folders).inspect_err(|_| {
        let _ = ralph_loop_safe_fs::remove_tree(&partial);
    })?;
    fs::rename(&partial, into).map_err(|e| Error::file("move the agent's folder to", into, e))?;
    Ok(AgentCopy { top: into.to_owned(), left_out })
}

/// Opens the copy at `top` of the user's repo. Nothing in its git folder is trusted.
pub fn open(top: &Path, user: &Repo, run: &RunId, folders: &CopyDirs) -> Result<Repo, WorkspaceError> {
    let folder = folders.agent.clone().unwrap_or_else(|| top.join(".git/ralph").join(run.as_str()));
    let kept = folders.user.clone().unwrap_or_else(|| user.run_folder(run));
    git_dir::open(top, user, &folder, &kept).map_err(|e| e.during("open the agent's folder"))
}

fn fill(
    origin: &Repo,
    user: &GitWorkspace,
    source: &Source<'_>,
    run: &RunId,
    top: &Path,
    folders: &CopyDirs,
) -> Result<LeftOut> {
    fs::create_dir_all(top).map_err(|e| Error::file("create", top, e))?;
    let format = format!("--object-format={}", origin.object_format.as_str());
    Git::in_folder(&origin.vars, top)
        .call(["init", "-q", "--template=", &format, "."])
        .config("init.defaultRefFormat=files")
        .run()?;
    let git_dir = top.join(".git");
    copy_if_there(&origin.common_dir.join("shallow"), &git_dir.join("shallow"))?;
    let history = source.contents.history;
    let mut reached = copy_refs(origin, run, &git_dir, history)?;
    if history == History::Start {
        reached.extend(unfinished(origin, user, source.files)?);
    }
    let lender = lent::lend(origin, run, &user.folder, history, reached)?;
    crate::objects::files::write_atomically(&git_dir.join("objects/info/alternates"), &lender)?;
    copy_settings(origin, &git_dir)?;
    for name in ["info/exclude", "info/attributes"] {
        copy_if_there(&origin.common_dir.join(name), &git_dir.join(name))?;
    }
    copy_if_there(&origin.git_dir.join(sparse::PATTERNS), &git_dir.join(sparse::PATTERNS))?;
    let own = || git_dir.join("ralph").join(run.as_str());
    let folder = folders.agent.clone().unwrap_or_else(own);
    fs::create_dir_all(&folder).map_err(|e| Error::file("create", &folder, e))?;
    for name in ["record.json", EXCLUDE_AT_START].iter().chain(source.kept) {
        copy_if_there(&user.folder.join(name), &folder.join(name))?;
    }
    let private = folder.join("index");
    copy_if_there(&user.snapshot.index, &private)?;
    let (left_out, copied) = lay_out(origin, user, source, top, &private)?;
    copy_private_index(&user.snapshot.index, &private, origin, &copied)?;
    copy_index(origin, &git_dir, top, &copied)?;
    copy_if_there(&git_dir.join("config"), &user.folder.join(CONFIG_COPY))?;
    copy_ralph(&origin.top.join(".ralph"), &top.join(".ralph"))?;
    Ok(left_out)
}

/// The object folders that the copy of the run `run` reads besides its own.
pub fn object_folders(user: &Repo, run: &RunId, folders: &CopyDirs) -> Vec<PathBuf> {
    lent::folders(user, &folders.user.clone().unwrap_or_else(|| user.run_folder(run)))
}

/// Lets an object folder of the engine borrow from the user's store. No agent reads it.
pub(crate) fn borrow_objects(origin: &Repo, folder: &Path) -> Result<()> {
    crate::objects::files::write_atomically(&folder.join("info/alternates"), &lent::users_store(origin)?)
}

/// The objects of the user's unfinished work: staged content, and files that `HEAD` lacks.
fn unfinished(origin: &Repo, user: &GitWorkspace, files: &FileStates) -> Result<BTreeSet<String>> {
    let committed: HashSet<Oid> = user.session()?.head.iter().map(|entry| entry.oid).collect();
    let is_new = |entry: &&TreeEntry| entry.mode != MODE_GITLINK && !committed.contains(&entry.oid);
    let mut found: BTreeSet<String> =
        files.entries.iter().filter(is_new).map(|entry| entry.oid.to_string()).collect();
    found.insert(files.tree.to_string());
    // Also the sides of a conflict.
    let staged = origin.git().call(["ls-files", "--stage", "-z"]).run()?.stdout;
    for line in staged.split(|b| *b == 0).filter(|line| !line.starts_with(b"160000 ")) {
        let id = line.split(|b| *b == b' ').nth(1).and_then(Oid::from_hex);
        found.extend(id.filter(|id| !committed.contains(id)).map(|id| id.to_string()));
    }
    Ok(found)
}

pub fn remove(vars: &Vars, origin: &Path, run: &RunId, agent_copy: &Path, folders: &CopyDirs) {
    // A leftover only costs disk space.
    let _ = ralph_loop_safe_fs::remove_tree(agent_copy);
    let own = Repo::discover(vars, origin).ok().map(|origin| origin.run_folder(run));
    for folder in own.into_iter().chain(folders.user.clone()) {
        for name in [OBJECTS, LENT, "room"] {
            let _ = ralph_loop_safe_fs::remove_tree(folder.join(name));
        }
    }
    if let Some(folder) = &folders.agent {
        let _ = ralph_loop_safe_fs::remove_tree(folder);
    }
}

/// Copies the refs that the agent can read; returns the objects among them that no commit reaches: annotated tags,
/// and what the run has made.
fn copy_refs(origin: &Repo, run: &RunId, git_dir: &Path, history: History) -> Result<BTreeSet<String>> {
    let list = |scope: &[&str]| -> Result<Vec<u8>> {
        let args = ["for-each-ref", "--format=%(refname) %(objectname) %(objecttype) %(symref)"];
        Ok(origin.git().call(args.iter().chain(scope)).run()?.stdout)
    };
    let (own, all) = (format!("refs/ralph/{run}/"), "refs/ralph/");
    let lines = match history {
        History::Full => list(&[])?,
        History::Start => [list(&[&format!("--merged={}", origin.head)])?, list(&[&own])?].concat(),
    };
    let mut refs: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
    let mut reached = BTreeSet::new();
    for line in lines.split(|b| *b == b'\n') {
        let mut words = line.splitn(4, |b| *b == b' ');
        let (Some(name), Some(id), Some(kind)) = (words.next(), words.next(), words.next()) else { continue };
        let is_link = words.next().is_some_and(|target| !target.is_empty());
        let is_own = name.starts_with(own.as_bytes());
        if is_link || name.starts_with(all.as_bytes()) && !is_own || name == b"refs/stash" {
            continue;
        }
        if is_own || kind != b"commit" {
            reached.insert(String::from_utf8_lossy(id).into_owned());
        }
        refs.insert(name, id);
    }
    let mut packed = b"# pack-refs with: sorted \n".to_vec();
    for (name, id) in refs {
        packed.extend([id, b" ", name, b"\n"].concat());
    }
    crate::objects::files::write_atomically(&git_dir.join("packed-refs"), &packed)?;
    let head = match &origin.branch {
        Some(branch) => format!("ref: refs/heads/{branch}\n"),
        None => format!("{}\n", origin.head),
    };
    crate::objects::files::write_atomically(&git_dir.join("HEAD"), head.as_bytes())?;
    Ok(reached)
}

fn copy_settings(origin: &Repo, git_dir: &Path) -> Result<()> {
    let listed = origin.git().call(["config", "--local", "--list", "-z"]).accept(&[1]).run()?.stdout;
    let mut text = String::new();
    for record in listed.split(|b| *b == 0) {
        let record = String::from_utf8_lossy(record);
        let Some((key, value)) = record.split_once('\n') else { continue };
        let Some((section, name)) = key.rsplit_once('.') else { continue };
        let value = match (section.split_once('.'), name) {
            _ if SETTINGS.contains(&key) => value.to_owned(),
            // A login in a URL stays with the user.
            (Some(("remote", _)), "url") => without_login(value),
            // Marks objects that a partial clone lacks as available from its server.
            (Some(("remote", _)), "promisor" | "partialclonefilter") => value.to_owned(),
            (Some(("remote", _)), "fetch") | (Some(("branch", _)), "remote" | "merge") => value.to_owned(),
            _ => continue,
        };
        text.push_str(&git_dir::setting(section, name, &value));
    }
    text.push_str(&sparse::settings(origin)?);
    let path = git_dir.join("config");
    let mut config = fs::read(&path).map_err(|e| Error::file("read", &path, e))?;
    config.extend_from_slice(text.as_bytes());
    crate::objects::files::write_atomically(&path, &config)
}

fn lay_out(
    origin: &Repo,
    user: &GitWorkspace,
    source: &Source<'_>,
    top: &Path,
    private_index: &Path,
) -> Result<(LeftOut, CopyStats)> {
    let (mut there, mut missing, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let left_away = sparse::left_away(origin, private_index)?;
    for entry in source.files.entries.iter() {
        if entry.mode == MODE_GITLINK {
            others.extend(contents::of_nested(origin, &entry.path));
        } else if copy_files::exists(&origin.top, &entry.path) {
            there.push(PathBuf::from(OsStr::from_bytes(&entry.path)));
        } else if !left_away.contains(&entry.path) {
            missing.push(entry.path.as_slice());
        }
    }
    let CopiedFiles { stats, lost } = copy_files::copy_files(&there, &origin.top, top)?;
    missing.extend(lost.iter().map(|path| path.as_os_str().as_bytes()));
    if !missing.is_empty() {
        // Deleted since git looked: the start has them, the folder doesn't.
        let input = [missing.join(&0), vec![0]].concat();
        let git = Git::in_repo(&origin.vars, top.join(".git"), top);
        git.call(["checkout-index", "-q", "-f", "-z", "--stdin"])
            .index(private_index)
            .stdin(input)
            .accept(&[1])
            .run()?;
    }
    let mut left = LeftOut::default();
    let (index, include) = (&user.snapshot.index, &source.contents.include);
    others.extend(contents::unrecorded(origin, index, include, &user.snapshot.left_out, &mut left)?);
    // Installed files aren't work, whether git ignores them or not.
    others.extend(installed_folders(origin)?.into_iter().map(|folder| folder.at.into_bytes()));
    left.too_much = copy_files::copy(&others, &origin.top, top)?.too_much;
    Ok((left, stats))
}

fn copy_private_index(from: &Path, to: &Path, origin: &Repo, copied: &CopyStats) -> Result<()> {
    let Some((mut bytes, written)) = read_index(from)? else { return Ok(()) };
    index::move_to_copy(&mut bytes, origin.object_format, written, copied);
    crate::objects::files::write_atomically(to, &bytes)
}

fn read_index(path: &Path) -> Result<Option<(Vec<u8>, u32)>> {
    let read = || -> std::io::Result<(Vec<u8>, u32)> {
        let mut file = fs::File::open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok((bytes, file.metadata()?.mtime() as u32))
    };
    match read() {
        Ok(read) => Ok(Some(read)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::file("read", path, e)),
    }
}

/// The agent sees what the user has staged. A split index is recreated from `HEAD`.
fn copy_index(origin: &Repo, git_dir: &Path, top: &Path, copied: &CopyStats) -> Result<()> {
    match read_index(&origin.git_dir.join("index"))? {
        Some((mut bytes, written)) if index::is_plain(&bytes, origin.object_format) => {
            index::move_to_copy(&mut bytes, origin.object_format, written, copied);
            crate::objects::files::write_atomically(&git_dir.join("index"), &bytes)
        }
        _ => Git::in_repo(&origin.vars, git_dir, top)
            .call(["read-tree", "HEAD"])
            .run()
            .map(drop)
            .map_err(Error::from),
    }
}

/// Configuration, scripts and other files in `.ralph/`. The files that change with every session follow with the
/// first session.
fn copy_ralph(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).map_err(|e| Error::file("create", to, e))?;
    let names: Vec<Vec<u8>> = fs::read_dir(from)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| !OWN_STATE.iter().any(|own| name == *own))
        .map(|name| name.as_bytes().to_vec())
        .collect();
    copy_files::copy(&names, from, to)?;
    // Prompts name the run's folder by its usual path, read-only: the driver makes a link.
    let runs = to.join("runs");
    fs::create_dir_all(&runs).map_err(|e| Error::file("create", &runs, e))
}

fn copy_if_there(from: &Path, to: &Path) -> Result<()> {
    match fs::read(from) {
        Ok(bytes) => crate::objects::files::write_atomically(to, &bytes),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Error::file("read", from, e)),
    }
}
