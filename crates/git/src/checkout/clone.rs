//! Where a run works: a new branch in the user's folder, a linked worktree, or a clone. Each can be repeated: what is
//! already there and ours is used again, and what was left half-made is made anew.

use crate::checkout::clone_options::{self, CloneDepth};
use crate::error::{Error, Result};
use crate::process::command::{Git, GitCall, GitError};
use crate::process::running;
use crate::publish::push::with_login;
use crate::repo::Repo;
use ralph_loop_domain::address::Address;
use ralph_loop_domain::ports::GitRemote;
use ralph_loop_domain::vars::Vars;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Setting in a clone that names where ralph cloned it from.
const MARK: &str = "ralph.clonedFrom";

/// What a short clone was last brought up to.
const FETCHED: &str = "refs/ralph/fetched";

/// What `ralph` keeps in such a clone, by rules of its own.
const KEPT: &[&str] = &["/.ralph/runs", "/.ralph/tasks"];

/// A full clone of a URL or a local repo at `into`, on the new branch `branch`. It shares nothing with a local source, so
/// that nothing done in it can harm the source's objects.
pub fn clone(vars: &Vars, from: &str, into: &Path, branch: &str) -> Result<Repo> {
    clone_part(vars, from, into, branch, &CloneDepth::default())
}

/// The same with only a part of the repo: its last commits, or some folders.
pub fn clone_part(vars: &Vars, from: &str, into: &Path, branch: &str, extent: &CloneDepth) -> Result<Repo> {
    let mut source = Source::new(from);
    // Git leaves nothing out of a copy of a path, only of what a server sends.
    if !extent.is_whole() && Path::new(&source.clean).exists() {
        let path = Path::new(&source.clean).canonicalize();
        let path = path.map_err(|e| Error::file("find", Path::new(&source.clean), e))?;
        source.clean = format!("file://{}", path.display());
    }
    if let Ok(found) = Repo::discover(vars, into)
        && same_folder(&found.top, into)
    {
        let mark = found.git().call(["config", "--local", MARK]).accept(&[1]).run()?.text();
        if mark == source.clean && found.branch.as_deref() == Some(branch) {
            return Ok(found);
        }
    }
    refuse_used(into)?;
    let partial = beside(into, ".ralph-partial");
    if partial.exists() {
        // Left by a clone that was killed; the name is ours. Its git may be at work still.
        running::kill_git_in(&partial);
        fs::remove_dir_all(&partial).map_err(|e| Error::file("remove", &partial, e))?;
    }
    let folder = into.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|e| Error::file("create", folder, e))?;
    let absolute = std::path::absolute(&partial).map_err(|e| Error::file("find", &partial, e))?;
    let bring = |extent: &CloneDepth| {
        let head = ["clone", "-q", "--no-hardlinks", "--template="].map(str::to_owned);
        let args = head.into_iter().chain(extent.arguments()).chain(["--".to_owned(), source.clean.clone()]);
        let args: Vec<OsString> = args.map(OsString::from).collect();
        let args = args.iter().map(OsString::as_os_str).chain([absolute.as_os_str()]);
        source.with_secret(Git::in_folder(vars, ".").call(args)).run()
    };
    match bring(extent) {
        Err(error) if extent.depth.is_some() && serves_files_only(&error) => {
            ralph_loop_safe_fs::remove_tree(&partial).map_err(|e| Error::file("remove", &partial, e))?;
            bring(&CloneDepth { depth: None, ..extent.clone() })?;
        }
        done => drop(done?),
    }
    let made = rediscover(vars, &partial)?;
    if !extent.sparse.is_empty() {
        // What these folders hold is fetched now, while the login is at hand.
        source.with_secret(clone_options::limit(&made.git(), &extent.sparse)).run()?;
    }
    made.git().call(["config", "--local", MARK, &source.clean]).run()?;
    begin_branch(&made, branch, extent.base.as_deref())?;
    fs::rename(&partial, into).map_err(|e| Error::file("move the clone to", into, e))?;
    rediscover(vars, into)
}

/// Whether the server only hands out files, so that it cannot leave out history.
fn serves_files_only(error: &GitError) -> bool {
    error.stderr.contains("dumb http transport does not support")
}

/// Brings a short clone up to what its source has now. Whatever else is in it goes, but for what `ralph` itself keeps there.
pub fn refresh_clone(repo: &Repo, from: &str, base: Option<&str>) -> Result<()> {
    let source = Source::new(from);
    let wanted = base.map_or_else(|| "HEAD".to_owned(), |base| format!("refs/heads/{base}"));
    let wanted = format!("+{wanted}:{FETCHED}");
    let bring = |depth: &[&str]| {
        let args = ["fetch", "-q"].into_iter().chain(depth.iter().copied());
        let args = args.chain(["--no-tags", "origin", &wanted]);
        source.with_secret(repo.git().call(args)).run()
    };
    match bring(&["--depth", "1"]) {
        Err(error) if serves_files_only(&error) => drop(bring(&[])?),
        done => drop(done?),
    }
    repo.git().call(["reset", "-q", "--hard", FETCHED]).run()?;
    // Somebody may have taken a result over into it: a `.env` or a task in there is not the repo's word.
    let mut clean = vec!["clean", "-q", "-ffdx"];
    clean.extend(KEPT.iter().flat_map(|name| ["-e", name]));
    repo.git().call(clean).run()?;
    Ok(())
}

/// The run's branch in a fresh clone that nobody else knows of yet.
fn begin_branch(made: &Repo, branch: &str, base: Option<&str>) -> Result<()> {
    let start = match base {
        Some(base) => commit_of_branch(made, base)?.ok_or_else(|| no_base(base))?,
        None => made.head.clone(),
    };
    if made.branch.as_deref() != Some(branch) || start != made.head {
        made.git().call(["checkout", "-q", "-B", branch, "--no-track", &start]).run()?;
    }
    Ok(())
}

/// The commit of a branch, here or on the remote that it was cloned from.
pub fn commit_of_branch(repo: &Repo, branch: &str) -> Result<Option<String>> {
    for name in [format!("refs/heads/{branch}"), format!("refs/remotes/origin/{branch}")] {
        let found = repo.git().call(["rev-parse", "--verify", "--quiet", &name]).accept(&[1]).run()?;
        if found.code == 0 {
            return Ok(Some(found.text()));
        }
    }
    Ok(None)
}

fn no_base(base: &str) -> Error {
    Error::refused(
        format!("the task starts from the branch `{base}`, which does not exist"),
        "correct `base_branch`, or make the branch",
    )
}

/// An address as a remote, with a password in it taken out: neither arguments nor messages may hold it. An address with a
/// name only stays as it is, for the user's own credential helper.
pub fn remote(from: &str) -> GitRemote {
    let source = Source::new(from);
    match source.login {
        Some((user, password)) if !password.is_empty() => {
            GitRemote { url: source.clean, login: Some((user, password)) }
        }
        _ => GitRemote { url: from.to_owned(), login: None },
    }
}

/// An address as people may read it: without any name or password.
pub fn shown(from: &str) -> String {
    without_login(from)
}

/// Where a clone comes from, with a secret in the URL taken out of it: neither arguments nor `.git/config` may hold it.
struct Source {
    clean: String,
    login: Option<(String, String)>,
}

impl Source {
    fn new(from: &str) -> Self {
        let address = Address::of(from);
        // Only servers of the web are logged in to with what an address says.
        let is_web = ["http://", "https://", "ftp://", "ftps://"]
            .iter()
            .any(|scheme| address.clean.starts_with(scheme));
        let login = address.login.filter(|_| is_web);
        let login = login.map(|(user, password)| (decode(&user), decode(&password)));
        Self { clean: address.clean, login }
    }

    /// Hands the secret to git through the environment, which other users cannot read, for the host of the address alone:
    /// another one that it leads to gets nothing.
    fn with_secret(&self, call: GitCall) -> GitCall {
        with_login(call, &GitRemote { url: self.clean.clone(), login: self.login.clone() })
    }
}

/// An address without the login that it may hold.
pub(crate) fn without_login(url: &str) -> String {
    ralph_loop_domain::address::without_login(url)
}

/// `%41` → `A`, as URLs write special characters.
fn decode(text: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = text.as_bytes();
    while let Some((first, rest)) = bytes.split_first() {
        let code = rest.get(..2).and_then(|d| std::str::from_utf8(d).ok());
        match (*first, code.and_then(|d| u8::from_str_radix(d, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                bytes = &rest[2..];
            }
            _ => {
                out.push(*first);
                bytes = rest;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The repo at `path`, which was made just now.
pub(crate) fn rediscover(vars: &Vars, path: &Path) -> Result<Repo> {
    Repo::discover(vars, path).map_err(|e| Error::refused(e.to_string(), e.hint().unwrap_or_default()))
}

/// Refuses a place where something is already.
pub(crate) fn refuse_used(path: &Path) -> Result<()> {
    let used = match fs::read_dir(path) {
        Ok(mut names) => names.next().is_some(),
        Err(_) => path.symlink_metadata().is_ok(),
    };
    if used {
        return Err(Error::refused(
            format!("`{}` exists and is not ours", path.display()),
            "choose another folder, or move it away",
        ));
    }
    Ok(())
}

/// Whether both names lead to one folder.
pub(crate) fn same_folder(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_a_url_is_taken_out_of_it() {
        let source = Source::new("https://me:p%40ss@example.com/a/b.git");
        assert_eq!(source.clean, "https://example.com/a/b.git");
        assert_eq!(source.login, Some(("me".to_owned(), "p@ss".to_owned())));
        for untouched in ["git@github.com:a/b.git", "/srv/x@y/z", "https://example.com/a@b"] {
            assert_eq!(Source::new(untouched).clean, untouched);
            assert_eq!(Source::new(untouched).login, None);
        }
    }
}
