//! Where a run works: a new branch in the user's folder, a linked worktree, or a clone. Each can be repeated: what is
//! already there and ours is used again.

use crate::command::{Call, Git};
use crate::error::{Error, Result};
use crate::extent::{self, Extent};
use crate::repo::Repo;
use ralph_domain::ports::GitRemote;
use ralph_domain::vars::Vars;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Setting in a clone that names where ralph cloned it from.
const MARK: &str = "ralph.clonedFrom";

fn branches(repo: &Repo) -> Result<BTreeSet<String>> {
    let output = repo.git().call(["for-each-ref", "--format=%(refname)", "refs/heads/"]).run()?;
    Ok(output.text().lines().filter_map(|l| l.strip_prefix("refs/heads/")).map(str::to_owned).collect())
}

/// A free branch name like `base`: a rerun gets `-v2`, `-v3`, …; where a branch blocks the path, `-` replaces the last `/`.
pub fn free_branch_name(repo: &Repo, base: &str) -> Result<String> {
    let taken = branches(repo)?;
    let mut base = base.to_owned();
    let blocked = |name: &str| name.match_indices('/').any(|(at, _)| taken.contains(&name[..at]));
    while blocked(&base) {
        match base.rfind('/') {
            Some(at) => base.replace_range(at..=at, "-"),
            None => break,
        }
    }
    // A branch below the name blocks it as well: `a/b` leaves no room for `a`.
    let is_taken =
        |name: &str| taken.contains(name) || taken.iter().any(|t| t.starts_with(&format!("{name}/")));
    if !is_taken(&base) {
        return Ok(base);
    }
    let mut version = 2_u32;
    loop {
        let name = format!("{base}-v{version}");
        if !is_taken(&name) {
            return Ok(name);
        }
        version += 1;
    }
}

fn branch_exists(repo: &Repo, name: &str) -> Error {
    let free = free_branch_name(repo, name).unwrap_or_else(|_| format!("{name}-v2"));
    Error::refused(
        format!("the branch `{name}` exists already"),
        format!("choose another name, e.g. `{free}`"),
    )
}

/// Switches the user's folder to a new branch at `HEAD`. Files, index and all other branches stay as they are.
pub fn create_branch_in_place(repo: &Repo, name: &str) -> Result<Repo> {
    if branches(repo)?.contains(name) {
        return Err(branch_exists(repo, name));
    }
    repo.git().call(["switch", "-q", "--no-track", "-c", name]).run()?;
    rediscover(&repo.vars, &repo.top)
}

/// A linked worktree at `path` on the new branch `branch`.
pub fn add_worktree(repo: &Repo, path: &Path, branch: &str) -> Result<Repo> {
    if let Ok(found) = Repo::discover(&repo.vars, path)
        && same_folder(&found.top, path)
        && found.is_linked_worktree()
        && found.common_dir == repo.common_dir
    {
        if found.branch.as_deref() == Some(branch) {
            return Ok(found);
        }
        return Err(Error::refused(
            format!("`{}` is a worktree on another branch", path.display()),
            "choose another folder",
        ));
    }
    refuse_used(path)?;
    let git = repo.git();
    let target = path.as_os_str();
    if branches(repo)?.contains(branch) {
        // Killed between branch and worktree, the branch stands where it was made. Any other branch is somebody's work.
        let name = format!("refs/heads/{branch}");
        let at = git.call(["rev-parse", "--verify", &name]).run()?.text();
        if at != repo.head {
            return Err(branch_exists(repo, branch));
        }
        git.call(
            ["worktree", "add", "-q", "--"].map(AsRef::as_ref).into_iter().chain([target, branch.as_ref()]),
        )
        .run()?;
    } else {
        let head = ["worktree", "add", "-q", "--no-track", "-b", branch, "--"].map(AsRef::as_ref);
        git.call(head.into_iter().chain([target, repo.head.as_ref()])).run()?;
    }
    rediscover(&repo.vars, path)
}

/// A full clone of a URL or a local repo at `into`, on the new branch `branch`. It shares nothing with a local source, so
/// that nothing done in it can harm the source's objects.
pub fn clone(vars: &Vars, from: &str, into: &Path, branch: &str) -> Result<Repo> {
    clone_part(vars, from, into, branch, &Extent::default())
}

/// The same with only a part of the repo: its last commits, or some folders.
pub fn clone_part(vars: &Vars, from: &str, into: &Path, branch: &str, extent: &Extent) -> Result<Repo> {
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
        // Left by a clone that was killed; the name is ours.
        fs::remove_dir_all(&partial).map_err(|e| Error::file("remove", &partial, e))?;
    }
    let folder = into.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|e| Error::file("create", folder, e))?;
    let head = ["clone", "-q", "--no-hardlinks", "--template="].map(str::to_owned);
    let args = head.into_iter().chain(extent.arguments()).chain(["--".to_owned(), source.clean.clone()]);
    let args: Vec<OsString> = args.map(OsString::from).collect();
    let absolute = std::path::absolute(&partial).map_err(|e| Error::file("find", &partial, e))?;
    let args = args.iter().map(OsString::as_os_str).chain([absolute.as_os_str()]);
    source.with_secret(Git::in_folder(vars, ".").call(args)).run()?;
    let made = rediscover(vars, &partial)?;
    if !extent.sparse.is_empty() {
        // What these folders hold is fetched now, while the login is at hand.
        source.with_secret(extent::limit(&made.git(), &extent.sparse)).run()?;
    }
    made.git().call(["config", "--local", MARK, &source.clean]).run()?;
    if made.branch.as_deref() != Some(branch) {
        create_branch_in_place(&made, branch)?;
    }
    fs::rename(&partial, into).map_err(|e| Error::file("move the clone to", into, e))?;
    rediscover(vars, into)
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
    Source::new(from).clean
}

/// Where a clone comes from, with a secret in the URL taken out of it: neither arguments nor `.git/config` may hold it.
struct Source {
    clean: String,
    login: Option<(String, String)>,
}

impl Source {
    fn new(from: &str) -> Self {
        let parts = from.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"));
        if let Some((scheme, rest)) = parts {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            if let Some((login, host)) = host.rsplit_once('@') {
                let (user, password) = login.split_once(':').unwrap_or((login, ""));
                return Self {
                    clean: format!("{scheme}://{host}{path}"),
                    login: Some((decode(user), decode(password))),
                };
            }
        }
        Self { clean: from.to_owned(), login: None }
    }

    /// Hands the secret to git through the environment, which other users cannot read.
    fn with_secret(&self, call: Call) -> Call {
        let Some((user, password)) = &self.login else { return call };
        call.config(
            "credential.helper=!f() { test \"$1\" = get && printf 'username=%s\\npassword=%s\\n' \"$RALPH_GIT_USER\" \"$RALPH_GIT_PASSWORD\"; }; f",
        )
        .env("RALPH_GIT_USER", user)
        .env("RALPH_GIT_PASSWORD", password)
    }
}

/// An address without the login that it may hold.
pub(crate) fn without_login(url: &str) -> String {
    Source::new(url).clean
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

fn rediscover(vars: &Vars, path: &Path) -> Result<Repo> {
    Repo::discover(vars, path).map_err(|e| Error::refused(e.to_string(), e.hint().unwrap_or_default()))
}

fn refuse_used(path: &Path) -> Result<()> {
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

fn same_folder(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
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
