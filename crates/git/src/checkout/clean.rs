//! A clean checkout of one commit: a separate repo without hooks, remotes and the workspace's settings. It works for
//! linked worktrees and shallow clones, and never changes the user's repo.

use crate::error::{Error, Result};
use crate::process::command::{Git, GitCall};
use crate::repo::Repo;
use ralph_loop_domain::vars::Vars;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Local settings that decide what files look like on the disk.
const COPIED: &str =
    r"^(filter\..*|core\.(autocrlf|eol|symlinks|filemode|ignorecase|longpaths|attributesfile)|lfs\..*)$";
const SETTINGS_AT_START: &str = "settings-at-start.json";
const SECOND_INDEX: &str = "index.verify";

/// Settings of the user's repo that a checkout needs, from before any agent could change them: a filter decides what
/// files hold, and runs a program.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Settings(Vec<(String, String)>);

impl Settings {
    pub(crate) fn begin(repo: &Repo, folder: &Path) -> Result<()> {
        crate::objects::files::save(&folder.join(SETTINGS_AT_START), &Self::now(repo)?)
    }

    pub(crate) fn load(repo: &Repo, folder: &Path) -> Result<Self> {
        match crate::objects::files::load(&folder.join(SETTINGS_AT_START))? {
            Some(settings) => Ok(settings),
            None => Self::now(repo),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    fn now(repo: &Repo) -> Result<Self> {
        let args = ["config", "--local", "--includes", "-z", "--get-regexp", COPIED];
        let output = repo.git().call(args).accept(&[1]).run()?;
        let records = output.stdout.split(|b| *b == 0).filter(|r| !r.is_empty());
        Ok(Self(
            records
                .map(|record| {
                    let record = String::from_utf8_lossy(record);
                    let (key, value) = record.split_once('\n').unwrap_or((&record, "true"));
                    (key.to_owned(), value.to_owned())
                })
                .collect(),
        ))
    }
}

/// What else decides about a checkout, besides its commit. An agent controls none of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckoutRules<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) sparse: &'a [String],
    /// The tree whose attributes decide what files look like on the disk: the start. The commit's own could turn its
    /// files into others.
    pub(crate) attributes: Option<&'a str>,
}

pub(crate) fn checkout(repo: &Repo, commit: &str, into: &Path, rules: CheckoutRules<'_>) -> Result<()> {
    let CheckoutRules { settings, sparse, attributes } = rules;
    if commit.starts_with('-') {
        return Err(Error::refused(format!("`{commit}` names no commit"), ""));
    }
    fs::create_dir_all(into).map_err(|e| Error::file("create", into, e))?;
    let mut names = fs::read_dir(into).map_err(|e| Error::file("read", into, e))?;
    if names.next().is_some() {
        return Err(Error::refused(
            format!("`{}` is not empty", into.display()),
            "choose an empty folder for the clean checkout",
        ));
    }
    let git = Git::in_folder(&repo.vars, into);
    if repo.common_dir.join("shallow").exists() || clone(repo, &git).is_err() {
        borrow(repo, &git, into)?;
    }
    for (key, value) in &settings.0 {
        git.call(["config", "--add", key, value]).run()?;
    }
    if !sparse.is_empty() {
        crate::checkout::clone_options::limit(&git, sparse).run()?;
    }
    let call = git.call(["checkout", "-q", "--detach", "--no-recurse-submodules", commit, "--"]);
    with_attributes(call, attributes).run()?;
    if sparse.is_empty() {
        crate::checkout::submodules::bring(repo, &git, commit, (&into.join(".git"), into))?;
    }
    refuse_missing_filters(&git, !sparse.is_empty())
}

/// Makes a separate repo in the empty folder `into`, with every object of `repo` and a checkout of `commit`. The
/// user's repo doesn't change.
pub fn separate(repo: &Repo, commit: &str, into: &Path) -> Result<Repo> {
    let settings = Settings::now(repo)?;
    checkout(repo, commit, into, CheckoutRules { settings: &settings, sparse: &[], attributes: None })?;
    crate::checkout::clone::rediscover(&repo.vars, into)
}

/// Switches such a repo to another commit.
pub fn switch(repo: &Repo, commit: &str) -> Result<Repo> {
    repo.git().call(["checkout", "-q", "--detach", "--no-recurse-submodules", commit, "--"]).run()?;
    crate::checkout::clone::rediscover(&repo.vars, &repo.top)
}

fn with_attributes(call: GitCall, tree: Option<&str>) -> GitCall {
    match tree {
        Some(tree) => call.env("GIT_ATTR_SOURCE", tree),
        None => call,
    }
}

/// Makes a full repo: objects are linked or copied, so that it needs no other repo, and tags are included for `git
/// describe`. Runs no program that the source chooses.
fn clone(repo: &Repo, git: &Git) -> Result<()> {
    let args = ["clone", "-q", "--local", "--no-checkout", "--template=", "--origin=source", "--"];
    let args = args.map(std::ffi::OsStr::new).into_iter().chain([repo.common_dir.as_os_str(), ".".as_ref()]);
    git.call(args).run()?;
    git.call(["remote", "remove", "source"]).run()?;
    Ok(())
}

/// Makes a repo that borrows the objects, for a shallow source or one whose refs can't be read.
fn borrow(repo: &Repo, git: &Git, into: &Path) -> Result<()> {
    let git_dir = into.join(".git");
    if git_dir.exists() {
        fs::remove_dir_all(&git_dir).map_err(|e| Error::file("remove", &git_dir, e))?;
    }
    let format = format!("--object-format={}", repo.object_format.as_str());
    // An empty template: no hooks, no excludes.
    git.call(["init", "-q", "--template=", &format, "--initial-branch=clean", "."]).run()?;
    let mut alternates = repo.common_dir.join("objects").into_os_string().as_bytes().to_vec();
    alternates.push(b'\n');
    crate::objects::files::write_atomically(&git_dir.join("objects/info/alternates"), &alternates)?;
    if let Ok(shallow) = fs::read(repo.common_dir.join("shallow")) {
        crate::objects::files::write_atomically(&git_dir.join("shallow"), &shallow)?;
    }
    Ok(())
}

/// How a checkout was made, for [`verify`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CheckoutFacts<'a> {
    pub(crate) sparse: bool,
    pub(crate) attributes: Option<&'a str>,
    /// The list of object folders (`info/alternates`) that no agent can write, if any.
    pub(crate) safe_objects: Option<&'a [u8]>,
}

/// Finds files of a checkout that differ from its commit by reading them again: git trusts the names of objects, so
/// it would miss one that was overwritten in the repo's folder. Reads only files whose objects an agent could have
/// written.
pub(crate) fn verify(
    vars: &Vars,
    commit: &str,
    into: &Path,
    facts: CheckoutFacts<'_>,
) -> Result<Vec<String>> {
    let CheckoutFacts { sparse, attributes, .. } = facts;
    let git = Git::in_folder(vars, into);
    let body = git.call(["cat-file", "commit", commit]).run()?.stdout;
    let tree = String::from_utf8_lossy(&body).lines().next().unwrap_or_default().to_owned();
    let tree = tree.strip_prefix("tree ").unwrap_or_default().to_owned();
    let named = git.call(["hash-object", "-t", "commit", "--stdin"]).stdin(body).run()?.text();
    if named.trim() != commit {
        return Ok(vec![format!("commit {commit} is not what its name says: its object was overwritten")]);
    }
    // A fresh index without cached trees and stats, so that git computes everything again.
    let index = into.join(".git").join(SECOND_INDEX);
    let list = git.call(["ls-files", "-z", "--stage"]).run()?.stdout;
    fill_index(&git, &index, list.clone())?;
    // A sparse clone may lack the objects of other folders.
    let mut write = vec!["write-tree"];
    write.extend(sparse.then_some("--missing-ok"));
    let written = git.call(write).index(&index).run()?.text();
    let mut found = Vec::new();
    if written.trim() != tree {
        found.push(format!(
            "the files of commit {commit} are not what its tree says: an object was overwritten"
        ));
    }
    if let Some(writable) = writable_objects(into, facts.safe_objects) {
        let _ = fs::remove_file(&index);
        let doubtful = |line: &&[u8]| {
            // Mode, id, stage and path.
            line.split(|b| *b == b' ').nth(1).is_none_or(|id| writable.contains(id))
        };
        let lines = list.split(|b| *b == 0).filter(|line| !line.is_empty());
        let doubtful: Vec<&[u8]> = lines.filter(doubtful).collect();
        if doubtful.is_empty() {
            return Ok(found);
        }
        fill_index(&git, &index, [doubtful.join(&0), vec![0]].concat())?;
    }
    let refresh = git.call(["update-index", "--really-refresh"]).index(&index).accept(&[1]);
    let refreshed = with_attributes(refresh, attributes).run()?;
    for line in refreshed.text().lines().filter(|line| line.ends_with(": needs update")).take(if sparse {
        usize::MAX
    } else {
        20
    }) {
        let path = line.trim_end_matches(": needs update");
        // Sparse checkouts lack these files on purpose.
        if sparse && into.join(path).symlink_metadata().is_err() {
            continue;
        }
        found.push(format!(
            "`{path}` in the clean checkout is not what its commit says: its object was overwritten"
        ));
    }
    let _ = fs::remove_file(&index);
    Ok(found)
}

fn fill_index(git: &Git, index: &Path, list: Vec<u8>) -> Result<()> {
    let fill = git.call(["update-index", "-z", "--index-info"]).index(index);
    let fill = if list.is_empty() { fill } else { fill.stdin(list) };
    fill.run().map(drop).map_err(Error::from)
}

/// The ids of the objects that come from a folder an agent could write; `None` means any.
fn writable_objects(into: &Path, safe: Option<&[u8]>) -> Option<HashSet<Vec<u8>>> {
    let objects = into.join(".git/objects");
    if fs::read(objects.join("info/alternates")).ok()? != safe? {
        return None;
    }
    let mut ids = HashSet::new();
    for folder in fs::read_dir(&objects).ok()? {
        let folder = folder.ok()?;
        let (name, path) = (folder.file_name(), folder.path());
        let names = || -> Option<Vec<OsString>> {
            fs::read_dir(&path).ok()?.map(|entry| Some(entry.ok()?.file_name())).collect()
        };
        match name.as_bytes() {
            b"info" => {}
            b"pack" if names()?.is_empty() => {}
            [_, _] => ids.extend(names()?.iter().map(|rest| [name.as_bytes(), rest.as_bytes()].concat())),
            // A pack holds many.
            _ => return None,
        }
    }
    Some(ids)
}

/// Without its filter git silently checks out pointers instead of files.
fn refuse_missing_filters(git: &Git, sparse: bool) -> Result<()> {
    let mut grep = vec!["grep", "-h", "-I", "--no-color", "-e", "filter="];
    // In a sparse clone only the checked-out files matter; the rest may be missing.
    grep.extend((!sparse).then_some("HEAD"));
    grep.extend(["--", ":(glob)**/.gitattributes"]);
    let output = git.call(grep).accept(&[1]).run()?;
    let text = output.text();
    let filters: BTreeSet<&str> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(str::split_whitespace)
        .filter_map(|word| word.strip_prefix("filter="))
        .collect();
    for name in filters {
        let pattern = format!(r"^filter\.{name}\.(smudge|process)$");
        let found = git.call(["config", "--get-regexp", &pattern]).accept(&[1, 6]).run()?;
        if found.stdout.is_empty() {
            let hint = match name {
                "lfs" => "install git-lfs, then run `git lfs install`".to_owned(),
                _ => format!("set `filter.{name}.smudge` and `filter.{name}.clean` in your git config"),
            };
            return Err(Error::refused(
                format!(
                    "`.gitattributes` asks for the filter `{name}`, which is not set up: files would be pointers"
                ),
                hint,
            ));
        }
    }
    Ok(())
}
