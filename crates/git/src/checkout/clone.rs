//! Creates the place where a run works: a new branch in the user's folder, a linked worktree, or a clone. Each step
//! can be repeated: what exists is reused, and what is half-made is recreated.

use crate::checkout::clone_options::{self, CloneDepth};
use crate::error::{Error, Result};
use crate::filters::Filters;
use crate::process::command::{Git, GitCall, GitError};
use crate::process::running;
use crate::publish::push::with_login;
use crate::repo::Repo;
use ralph_loop_domain::ports::GitRemote;
use ralph_loop_domain::repo::address::Address;
use ralph_loop_domain::vars::Vars;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Setting in a clone that names where `ralph` cloned it from.
const MARK: &str = "ralph.clonedFrom";

/// The commit that a shallow clone was last updated to.
const FETCHED: &str = "refs/ralph/fetched";

/// What `ralph` keeps in such a clone by its own rules.
const KEPT: &[&str] = &["/.ralph/runs", "/.ralph/tasks"];

/// Clones a URL or a local repo to `into`, on the new branch `branch`. It shares nothing with a local source, so it
/// can't harm the source's objects.
pub fn clone(vars: &Vars, from: &str, into: &Path, branch: &str) -> Result<Repo> {
    clone_part(vars, from, into, branch, &CloneDepth::default())
}

/// Clones only a part of the repo: its last commits, or some folders.
pub fn clone_part(vars: &Vars, from: &str, into: &Path, branch: &str, extent: &CloneDepth) -> Result<Repo> {
    let mut source = Source::new(from);
    // For a path git copies everything; only a server can send less.
    if !extent.is_whole() && Path::new(&source.clean).exists() {
        let path = Path::new(&source.clean).canonicalize();
        let path = path.map_err(|e| Error::file("find", Path::new(&source.clean), e))?;
        source.clean = format!("file://{}", path.display());
    }
    if let Ok(found) = Repo::discover(vars, into)
        && same_folder(&found.top, into)
    {
        let mark = found.user_git().call(["config", "--local", MARK]).accept(&[1]).run()?.text();
        if mark == source.clean && found.branch.as_deref() == Some(branch) {
            return Ok(found);
        }
    }
    refuse_used(into)?;
    let partial = beside(into, ".ralph-partial");
    if partial.exists() {
        // Left by a killed clone, whose git may still be running; the name is ours.
        running::kill_git_in(&partial);
        fs::remove_dir_all(&partial).map_err(|e| Error::file("remove", &partial, e))?;
    }
    let folder = into.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|e| Error::file("create", folder, e))?;
    let absolute = std::path::absolute(&partial).map_err(|e| Error::file("find", &partial, e))?;
    let bring = |extent: &CloneDepth| {
        let head = ["clone", "-q", "--no-checkout", "--no-hardlinks", "--template="].map(str::to_owned);
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
        // Nothing is checked out yet, so this fetches nothing.
        clone_options::limit(&Git::in_repo(vars, &made.git_dir, &made.top), &extent.sparse).run()?;
    }
    made.user_git().call(["config", "--local", MARK, &source.clean]).run()?;
    begin_branch(&made, branch, extent.base.as_deref(), &source)?;
    let made = rediscover(vars, &partial)?;
    let from = Some(Path::new(&source.clean)).filter(|path| path.is_dir());
    let from = from.and_then(|path| Repo::discover(vars, path).ok());
    Filters::smudge_checkout(&made, from.as_ref(), &made.settings()?, None)?;
    fs::rename(&partial, into).map_err(|e| Error::file("move the clone to", into, e))?;
    rediscover(vars, into)
}

/// Whether the server only serves files, so that it can't shorten the history.
fn serves_files_only(error: &GitError) -> bool {
    error.stderr.contains("dumb http transport does not support")
}

/// Updates a shallow clone to its source. Removes everything else in it except what `ralph` keeps there.
pub fn refresh_clone(repo: &Repo, from: &str, base: Option<&str>) -> Result<()> {
    let source = Source::new(from);
    let wanted = base.map_or_else(|| "HEAD".to_owned(), |base| format!("refs/heads/{base}"));
    let wanted = format!("+{wanted}:{FETCHED}");
    let bring = |depth: &[&str]| {
        let args = ["fetch", "-q"].into_iter().chain(depth.iter().copied());
        let args = args.chain(["--no-tags", "origin", &wanted]);
        source.with_secret(repo.remote_git().call(args)).run()
    };
    match bring(&["--depth", "1"]) {
        Err(error) if serves_files_only(&error) => drop(bring(&[])?),
        done => drop(done?),
    }
    source.with_secret(repo.remote_git().call(["reset", "-q", "--hard", FETCHED])).run()?;
    Filters::smudge_checkout(repo, None, &repo.settings()?, None)?;
    // A result may have been applied here, so a `.env` or a task doesn't come from the repo.
    let mut clean = vec!["clean", "-q", "-ffdx"];
    clean.extend(KEPT.iter().flat_map(|name| ["-e", name]));
    repo.git().call(clean).run()?;
    Ok(())
}

/// Checks the clone out. What a part of a repo lacks is fetched now, while the login is available.
fn begin_branch(made: &Repo, branch: &str, base: Option<&str>, source: &Source) -> Result<()> {
    let start = match base {
        Some(base) => commit_of_branch(made, base)?.ok_or_else(|| no_base(base))?,
        None => made.head.clone(),
    };
    let args = match made.branch.as_deref() == Some(branch) && start == made.head {
        true => vec!["reset", "-q", "--hard"],
        false => vec!["checkout", "-q", "-f", "-B", branch, "--no-track", &start],
    };
    source.with_secret(made.remote_git().call(args)).run()?;
    Ok(())
}

/// The commit of a branch, local or on its remote.
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

/// A URL as a remote, without its password: neither arguments nor messages may hold it. A URL with only a user name
/// stays unchanged, for the user's credential helper.
pub fn remote(from: &str) -> GitRemote {
    let source = Source::new(from);
    match source.login {
        Some((user, password)) if !password.is_empty() => {
            GitRemote { url: source.clean, login: Some((user, password)) }
        }
        _ => GitRemote { url: from.to_owned(), login: None },
    }
}

/// A URL for display, without user name and password.
pub fn shown(from: &str) -> String {
    without_login(from)
}

/// Where a clone comes from, without a secret in the URL: neither arguments nor `.git/config` may hold it.
struct Source {
    clean: String,
    login: Option<(String, String)>,
}

impl Source {
    fn new(from: &str) -> Self {
        let address = Address::of(from);
        // Only web servers take a login from the URL.
        let is_web = ["http://", "https://", "ftp://", "ftps://"]
            .iter()
            .any(|scheme| address.clean.starts_with(scheme));
        let login = address.login.filter(|_| is_web);
        let login = login.map(|(user, password)| (decode(&user), decode(&password)));
        Self { clean: address.clean, login }
    }

    /// Passes the secret to git through the environment, which other users can't read, and only for the URL's host: a
    /// redirect to another host gets nothing.
    fn with_secret(&self, call: GitCall) -> GitCall {
        with_login(call, &GitRemote { url: self.clean.clone(), login: self.login.clone() })
    }
}

pub(crate) fn without_login(url: &str) -> String {
    ralph_loop_domain::repo::address::without_login(url)
}

/// Decodes percent escapes: `%41` → `A`.
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

pub(crate) fn rediscover(vars: &Vars, path: &Path) -> Result<Repo> {
    Repo::discover(vars, path).map_err(|e| Error::refused(e.to_string(), e.hint().unwrap_or_default()))
}

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

pub(crate) fn same_folder(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_is_removed_from_the_url() {
        let source = Source::new("https://me:p%40ss@example.com/a/b.git");
        assert_eq!(source.clean, "https://example.com/a/b.git");
        assert_eq!(source.login, Some(("me".to_owned(), "p@ss".to_owned())));
        for untouched in ["git@github.com:a/b.git", "/srv/x@y/z", "https://example.com/a@b"] {
            assert_eq!(Source::new(untouched).clean, untouched);
            assert_eq!(Source::new(untouched).login, None);
        }
    }
}
