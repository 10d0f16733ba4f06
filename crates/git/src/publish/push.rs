//! Pushes from a scratch repo, so that nothing an agent wrote into `.git/config` (another URL for a host, a
//! credential helper, a proxy) can redirect the work or the token.

use crate::error::{Error, Result};
use crate::objects::oid::ObjectFormat;
use crate::objects::refs::Refs;
use crate::process::command::{Git, GitCall, GitError, GitFailure, UserGit};
use crate::process::engine_dir::EngineDir;
use crate::publish::pushed_content;
use crate::repo::Repo;
use ralph_loop_domain::ports::{GitRemote, Lease, Outgoing, OutgoingPart, Push, PushEnd};
use ralph_loop_domain::vars::Vars;
use ralph_loop_protocol::id::{CommitId, RunId};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Git for remotes: an empty bare repo of the engine, with the user's settings and credentials. It borrows another's
/// objects and sees no tree.
struct RemoteGit {
    dir: EngineDir,
    vars: Vars,
}

impl RemoteGit {
    fn empty(vars: &Vars, format: ObjectFormat) -> Result<Self> {
        let dir = EngineDir::new(vars)?;
        let path = dir.path();
        let made = || -> std::io::Result<()> {
            for name in ["objects", "refs"] {
                fs::create_dir(path.join(name))?;
            }
            fs::write(path.join("config"), format.bare_config())?;
            fs::write(path.join("HEAD"), "ref: refs/heads/none\n")
        };
        made().map_err(|e| Error::file("fill", path, e))?;
        Ok(Self { dir, vars: vars.clone() })
    }

    fn over(repo: &Repo) -> Result<Self> {
        let room = Self::empty(&repo.vars, repo.object_format)?;
        let alternates = room.path().join("objects/info/alternates");
        let objects = repo.common_dir.join("objects");
        if let Some(folder) = alternates.parent() {
            fs::create_dir_all(folder).map_err(|e| Error::file("create", folder, e))?;
        }
        fs::write(&alternates, format!("{}\n", objects.display()))
            .map_err(|e| Error::file("write", &alternates, e))?;
        // A shallow clone must say where its history ends.
        let shallow = repo.common_dir.join("shallow");
        if shallow.exists() {
            fs::copy(&shallow, room.path().join("shallow")).map_err(|e| Error::file("copy", &shallow, e))?;
        }
        Ok(room)
    }

    fn git(&self) -> UserGit {
        UserGit::in_repo(&self.vars, self.path())
    }

    /// Git on the objects, without the user's settings.
    fn objects(&self) -> Git {
        Git::in_repo(&self.vars, self.path(), self.path())
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Passes a login to git through the environment, only for the remote's host.
pub(crate) fn with_login(call: GitCall, remote: &GitRemote) -> GitCall {
    // Without a login, git uses the user's settings to reach a remote.
    let Some((user, secret)) = &remote.login else { return call };
    let call = call.config("credential.helper=");
    let Some((scheme, rest)) = remote.url.split_once("://") else { return call };
    let host = rest.split('/').next().unwrap_or(rest);
    call.config(format!(
        "credential.{scheme}://{host}.helper=!f() {{ test \"$1\" = get && printf 'username=%s\\npassword=%s\\n' \"$RALPH_GIT_USER\" \"$RALPH_GIT_PASSWORD\"; }}; f"
    ))
    .env("RALPH_GIT_USER", user)
    .env("RALPH_GIT_PASSWORD", secret)
}

pub(crate) fn push(repo: &Repo, remote: &GitRemote, pushes: &[Push]) -> Result<PushEnd> {
    let room = RemoteGit::over(repo)?;
    let mut args: Vec<String> =
        ["push", "--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no"]
            .map(String::from)
            .into();
    if pushes.len() > 1 {
        args.push("--atomic".into());
    }
    for push in pushes {
        match &push.lease {
            Lease::Absent => args.push(format!("--force-with-lease={}:", push.name)),
            Lease::At(commit) => args.push(format!("--force-with-lease={}:{commit}", push.name)),
            Lease::FastForward => {}
        }
    }
    args.push("--".into());
    args.push(remote.url.clone());
    args.extend(pushes.iter().map(|push| format!("{}:{}", push.commit, push.name)));
    match with_login(room.git().call(&args), remote).accept(&[1]).run() {
        Ok(output) if output.code == 0 => Ok(PushEnd::Pushed),
        Ok(output) => {
            let lines = output.text();
            let refused: Vec<&str> = lines.lines().filter_map(|line| line.strip_prefix("!\t")).collect();
            Ok(match refused.is_empty() {
                // If an answer gets lost, git's web transport asks again and finds the work done.
                false if is_there(&room, remote, pushes) => PushEnd::Pushed,
                false => PushEnd::Rejected { reason: refused.join("; ").replace('\t', " ") },
                true => end_of(&output.stderr),
            })
        }
        Err(error @ GitError { kind: GitFailure::NotInstalled, .. }) => Err(error.into()),
        Err(error) if error.stderr.is_empty() => Ok(PushEnd::Unavailable { reason: error.kind.to_string() }),
        Err(error) => Ok(end_of(&error.stderr)),
    }
}

/// What a push would show, read from the scratch repo it is pushed from.
pub(crate) fn outgoing(
    repo: &Repo,
    asked: &Outgoing<'_>,
    each: &mut dyn FnMut(OutgoingPart<'_>),
) -> Result<()> {
    let room = RemoteGit::over(repo)?;
    pushed_content::read(&room.objects(), repo.object_format, room.path(), asked, each)
}

pub(crate) fn remote_commits(
    repo: &Repo,
    remote: &GitRemote,
) -> Result<std::result::Result<Vec<CommitId>, PushEnd>> {
    let room = RemoteGit::empty(&repo.vars, repo.object_format)?;
    let names = ["refs/heads/*", "refs/tags/*", "refs/ralph/*"];
    match remote_refs(&room, remote, &names) {
        Ok(refs) => Ok(Ok(refs.into_values().collect())),
        Err(Error::Git(error @ GitError { kind: GitFailure::NotInstalled, .. })) => Err(error.into()),
        Err(Error::Git(error)) if error.stderr.is_empty() => {
            Ok(Err(PushEnd::Unavailable { reason: error.kind.to_string() }))
        }
        Err(Error::Git(error)) => Ok(Err(end_of(&error.stderr))),
        Err(error) => Err(error),
    }
}

fn end_of(words: &str) -> PushEnd {
    let reason = ralph_loop_protocol::display::text::tail_lines(words.trim(), 3).replace('\n', "; ");
    let lower = words.to_ascii_lowercase();
    let any = |needles: &[&str]| needles.iter().any(|needle| lower.contains(needle));
    if any(&[
        "authentication failed",
        "could not read username",
        "could not read password",
        "unable to get password",
        // The answer of hosts for a repo that the credentials may not see.
        "repository not found",
        "permission denied",
        "error: 401",
        "error: 403",
        "access denied",
        "invalid credentials",
    ]) {
        PushEnd::Denied { reason }
    } else {
        PushEnd::Unavailable { reason }
    }
}

pub(crate) fn owns(repo: &Repo, run: &RunId, commit: &CommitId) -> Result<bool> {
    let known = repo.git().call(["cat-file", "commit", commit.as_str()]).accept(&[128]).run()?;
    let trailer = format!("Ralph-Run: {run}");
    Ok(known.code == 0 && known.text().lines().any(|line| line == trailer))
}

pub(crate) fn remote_ref(vars: &Vars, remote: &GitRemote, name: &str) -> Result<Option<CommitId>> {
    // Outside any repo: git would trust a `.git` above the folder for temporary files.
    let room = RemoteGit::empty(vars, ObjectFormat::Sha1)?;
    Ok(remote_refs(&room, remote, &[name])?.remove(name))
}

fn remote_refs(room: &RemoteGit, remote: &GitRemote, names: &[&str]) -> Result<BTreeMap<String, CommitId>> {
    let args = ["ls-remote", "--", &remote.url].into_iter().chain(names.iter().copied());
    let output = with_login(room.git().call(args), remote).run()?.text();
    // `ls-remote` also matches the end of longer names.
    let found = output.lines().filter_map(|line| line.split_once('\t'));
    Ok(found.map(|(commit, name)| (name.to_owned(), CommitId::new(commit))).collect())
}

fn is_there(room: &RemoteGit, remote: &GitRemote, pushes: &[Push]) -> bool {
    let names: Vec<&str> = pushes.iter().map(|push| push.name.as_str()).collect();
    remote_refs(room, remote, &names)
        .is_ok_and(|found| pushes.iter().all(|push| found.get(&push.name) == Some(&push.commit)))
}

/// Fetches refs of a remote into a local repo; `specs` are `+from:to`.
pub fn fetch(repo: &Repo, remote: &GitRemote, specs: &[String]) -> Result<()> {
    let room = RemoteGit::over(repo)?;
    let objects = repo.common_dir.join("objects");
    let refs = |git: Git| -> Result<String> {
        let call = git.call(["for-each-ref", "--format=%(objectname) %(refname)"]);
        Ok(call.env("GIT_OBJECT_DIRECTORY", &objects).run()?.text())
    };
    // With the repo's refs, git fetches only what is missing.
    let before = refs(repo.git())?;
    let packed = room.path().join("packed-refs");
    fs::write(&packed, format!("{before}\n").trim_start()).map_err(|e| Error::file("write", &packed, e))?;
    let head = ["fetch", "-q", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--"]
        .map(String::from);
    let args = head.into_iter().chain([remote.url.clone()]).chain(specs.iter().cloned());
    with_login(room.git().call(args).env("GIT_OBJECT_DIRECTORY", &objects), remote).run()?;
    let (before, after): (BTreeSet<&str>, String) = (before.lines().collect(), refs(room.objects())?);
    let moved: Vec<(&str, &str)> =
        after.lines().filter(|line| !before.contains(line)).filter_map(|line| line.split_once(' ')).collect();
    // No checked-out branch may move without its work tree.
    let checked_out = repo.current_branch()?.map(|branch| format!("refs/heads/{branch}"));
    if let Some(name) = checked_out.filter(|branch| moved.iter().any(|(_, name)| name == branch)) {
        let reason = format!("refusing to fetch into `{name}`, which is checked out");
        return Err(Error::refused(reason, "fetch into another ref, then merge"));
    }
    // Git fetches objects; refs are moved here, so that a kill in between leaves no lock of an unknown owner.
    let refs = Refs::new(repo, &repo.git_dir.join("ralph"));
    for (commit, name) in moved {
        refs.update(name, commit, refs.read(name)?.as_deref())?;
    }
    Ok(())
}

/// Copies commits of another local repo, each under a name here. They are served from a scratch repo that borrows the
/// other's objects, so its settings and refs, which an agent may have written, don't matter.
pub(crate) fn fetch_commits(repo: &Repo, from: &Repo, commits: &[(String, String)]) -> Result<()> {
    let room = RemoteGit::over(from)?;
    let mut refs: Vec<String> = commits.iter().map(|(name, commit)| format!("{commit} {name}\n")).collect();
    refs.sort_by(|a, b| a.split(' ').nth(1).cmp(&b.split(' ').nth(1)));
    let packed = room.path().join("packed-refs");
    fs::write(&packed, refs.concat()).map_err(|e| Error::file("write", &packed, e))?;
    let names: Vec<String> = commits.iter().map(|(name, _)| name.clone()).collect();
    fetch(repo, &path_remote(room.path()), &names)
}

pub fn path_remote(path: &Path) -> GitRemote {
    GitRemote { url: path.display().to_string(), login: None }
}

pub fn remote_branches(vars: &Vars, remote: &GitRemote) -> Result<Vec<String>> {
    let room = RemoteGit::empty(vars, ObjectFormat::Sha1)?;
    let call = room.git().call(["ls-remote", "--heads", "--", &remote.url]);
    let output = with_login(call, remote).run()?.text();
    Ok(output.lines().filter_map(|line| Some(line.split_once("\trefs/heads/")?.1.to_owned())).collect())
}
