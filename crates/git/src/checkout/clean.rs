//! A clean checkout of one commit: a separate repo without hooks, remotes and the workspace's settings. It works for
//! linked worktrees and shallow clones, and never changes the user's repo.

use crate::error::{Error, Result};
use crate::filters::Filters;
use crate::objects::oid::ObjectFormat;
use crate::process::command::{Git, GitCall};
pub(crate) use crate::process::settings::Settings;
use crate::repo::Repo;
use crate::snapshot::entry::{parse_ls_files, text};
use ralph_loop_domain::vars::Vars;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

const SETTINGS_AT_START: &str = "settings-at-start.json";
const SECOND_INDEX: &str = "index.verify";

impl Settings {
    /// Keeps the settings in `folder` before any agent could change them: a filter decides what files hold.
    pub(crate) fn begin(repo: &Repo, folder: &Path) -> Result<()> {
        crate::objects::files::save(&folder.join(SETTINGS_AT_START), &repo.settings()?.kept())
    }

    pub(crate) fn load(repo: &Repo, folder: &Path) -> Result<Arc<Self>> {
        match crate::objects::files::load(&folder.join(SETTINGS_AT_START))? {
            Some(settings) => Ok(Arc::new(settings)),
            None => Ok(repo.settings()?),
        }
    }
}

/// What else decides about a checkout, besides its commit. An agent controls none of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckoutRules<'a> {
    pub(crate) settings: &'a Arc<Settings>,
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
    let git_dir = into.join(".git");
    let git = Git::in_repo(&repo.vars, &git_dir, into);
    if repo.common_dir.join("shallow").exists() || clone(repo, into).is_err() {
        borrow(repo, into)?;
    }
    add_settings(&git_dir, &settings.of_files())?;
    if !sparse.is_empty() {
        crate::checkout::clone_options::limit(&git, sparse).run()?;
    }
    let call = git.call(["checkout", "-q", "--detach", "--no-recurse-submodules", commit, "--"]);
    with_attributes(call, attributes).run()?;
    if sparse.is_empty() {
        crate::checkout::submodules::bring(repo, &git, commit, (&git_dir, into))?;
    }
    refuse_missing_filters(&git, settings, !sparse.is_empty(), attributes)?;
    if settings.drivers().is_empty() {
        return Ok(());
    }
    let made = crate::checkout::clone::rediscover(&repo.vars, into)?;
    Filters::smudge_checkout(&made, Some(repo), settings, attributes)?;
    // For commands in the sandbox. From here on the engine's git doesn't read these settings.
    add_settings(&git_dir, &settings.of_filters())
}

/// Makes git in a checkout agree with these files of it, so that checks which ask git see them as committed: git reads
/// even a removed `.gitattributes` from its index.
pub(crate) fn commit_files(vars: &Vars, into: &Path, paths: &[&str]) -> Result<()> {
    let git = crate::checkout::clone::rediscover(vars, into)?.git();
    let list: String = paths.iter().map(|path| format!("{path}\0")).collect();
    git.call(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]).stdin(list).run()?;
    let tree = git.call(["write-tree", "--missing-ok"]).run()?.text();
    let mut commit = git.call(["commit-tree", "-p", "HEAD", "-m", "The files that are checked", tree.trim()]);
    for who in ["AUTHOR", "COMMITTER"] {
        commit =
            commit.env(format!("GIT_{who}_NAME"), "Ralph").env(format!("GIT_{who}_EMAIL"), "ralph@localhost");
    }
    let commit = commit.run()?.text();
    git.call(["update-ref", "--no-deref", "HEAD", commit.trim()]).run()?;
    Ok(())
}

fn add_settings(git_dir: &Path, settings: &str) -> Result<()> {
    let path = git_dir.join("config");
    let mut config = fs::read(&path).map_err(|e| Error::file("read", &path, e))?;
    config.extend_from_slice(settings.as_bytes());
    crate::objects::files::write_atomically(&path, &config)
}

/// Makes a separate repo in the empty folder `into`, with every object of `repo` and a checkout of `commit`. The
/// user's repo doesn't change.
pub fn separate(repo: &Repo, commit: &str, into: &Path) -> Result<Repo> {
    let settings = repo.settings()?;
    checkout(repo, commit, into, CheckoutRules { settings: &settings, sparse: &[], attributes: None })?;
    crate::checkout::clone::rediscover(&repo.vars, into)
}

/// Switches such a repo to another commit.
pub fn switch(repo: &Repo, commit: &str) -> Result<Repo> {
    repo.git().call(["checkout", "-q", "-f", "--detach", "--no-recurse-submodules", commit, "--"]).run()?;
    let switched = crate::checkout::clone::rediscover(&repo.vars, &repo.top)?;
    Filters::smudge_checkout(&switched, None, &switched.settings()?, None)?;
    Ok(switched)
}

fn with_attributes(call: GitCall, tree: Option<&str>) -> GitCall {
    match tree {
        Some(tree) => call.env("GIT_ATTR_SOURCE", tree),
        None => call,
    }
}

/// Makes a full repo: objects are linked or copied, so that it needs no other repo, and tags are included for `git
/// describe`. Runs no program that the source chooses.
fn clone(repo: &Repo, into: &Path) -> Result<()> {
    let args = ["clone", "-q", "--local", "--no-checkout", "--template=", "--origin=source", "--"];
    let args = args.map(std::ffi::OsStr::new).into_iter().chain([repo.common_dir.as_os_str(), ".".as_ref()]);
    let git = Git::in_folder(&repo.vars, into);
    git.call(args).run()?;
    git.call(["remote", "remove", "source"]).run()?;
    Ok(())
}

/// Makes a repo that borrows the objects, for a shallow source or one whose refs can't be read.
fn borrow(repo: &Repo, into: &Path) -> Result<()> {
    let git_dir = into.join(".git");
    if git_dir.exists() {
        fs::remove_dir_all(&git_dir).map_err(|e| Error::file("remove", &git_dir, e))?;
    }
    let format = format!("--object-format={}", repo.object_format.as_str());
    // An empty template: no hooks, no excludes.
    let git = Git::in_folder(&repo.vars, into);
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
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckoutFacts<'a> {
    pub(crate) sparse: bool,
    pub(crate) attributes: Option<&'a str>,
    pub(crate) settings: &'a Arc<Settings>,
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
    // Without filters, the engine wrote all settings of the checkout.
    let (checkout, git) = match facts.settings.drivers().is_empty() {
        true => (None, Git::in_repo(vars, into.join(".git"), into)),
        false => {
            let checkout = crate::checkout::clone::rediscover(vars, into)?;
            (Some(checkout.clone()), checkout.git())
        }
    };
    let body = git.call(["cat-file", "commit", commit]).run()?.stdout;
    let tree = String::from_utf8_lossy(&body).lines().next().unwrap_or_default().to_owned();
    let tree = tree.strip_prefix("tree ").unwrap_or_default().to_owned();
    let format = if commit.len() == 64 { ObjectFormat::Sha256 } else { ObjectFormat::Sha1 };
    if format.id_of("commit", &body).to_string() != commit {
        return Ok(vec![format!("commit {commit} is not what its name says: its object was overwritten")]);
    }
    // A fresh index without cached trees and stats, so that git computes everything again.
    let index = into.join(".git").join(SECOND_INDEX);
    let mut list = git.call(["ls-files", "-z", "--stage"]).run()?.stdout;
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
        list = [doubtful.join(&0), vec![0]].concat();
        fill_index(&git, &index, list.clone())?;
    }
    // What a filter made of them isn't in their objects, so those are read instead.
    let filters = checkout.and_then(|checkout| Filters::of(&checkout, facts.settings, attributes));
    let filtered = match filters {
        Some(filters) => filters.overwritten(&git, into, &parse_ls_files(&list))?,
        None => BTreeMap::new(),
    };
    let overwritten = |path: &str| {
        format!("`{path}` in the clean checkout is not what its commit says: its object was overwritten")
    };
    found.extend(filtered.iter().filter(|(_, is)| **is).map(|(path, _)| overwritten(&text(path))));
    let refresh = git.call(["update-index", "--really-refresh"]).index(&index).accept(&[1]);
    let refreshed = with_attributes(refresh, attributes).run()?;
    for line in refreshed.text().lines().filter(|line| line.ends_with(": needs update")).take(if sparse {
        usize::MAX
    } else {
        20
    }) {
        let path = line.trim_end_matches(": needs update");
        // Sparse checkouts lack these files on purpose.
        if sparse && into.join(path).symlink_metadata().is_err() || filtered.contains_key(path.as_bytes()) {
            continue;
        }
        found.push(overwritten(path));
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

/// Without its filter git silently checks out pointers instead of files. Only filters that `attributes`, if any, name
/// as well matter: an agent may name others.
fn refuse_missing_filters(
    git: &Git,
    settings: &Settings,
    sparse: bool,
    attributes: Option<&str>,
) -> Result<()> {
    let drivers = settings.drivers();
    // In a sparse clone only the checked-out files matter; the rest may be missing.
    let mut missing = filters_in(git, (!sparse).then_some("HEAD"))?;
    missing.retain(|name| !drivers.contains_key(name));
    if let (false, Some(tree)) = (missing.is_empty(), attributes) {
        let at_start = filters_in(git, Some(tree))?;
        missing.retain(|name| at_start.contains(name));
    }
    let Some(name) = missing.first() else { return Ok(()) };
    let hint = match name.as_str() {
        "lfs" => "install git-lfs, then run `git lfs install`".to_owned(),
        _ => format!("set `filter.{name}.smudge` and `filter.{name}.clean` in your git config"),
    };
    Err(Error::refused(
        format!(
            "`.gitattributes` asks for the filter `{name}`, which is not set up: files would be pointers"
        ),
        hint,
    ))
}

/// The filters that the attributes of a tree name; without one, those of the files.
fn filters_in(git: &Git, tree: Option<&str>) -> Result<BTreeSet<String>> {
    let mut grep = vec!["grep", "-h", "-I", "--no-color", "-e", "filter="];
    grep.extend(tree);
    grep.extend(["--", ":(glob)**/.gitattributes"]);
    let text = git.call(grep).accept(&[1]).run()?.text();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let names = lines.flat_map(str::split_whitespace).filter_map(|word| word.strip_prefix("filter="));
    Ok(names.map(str::to_owned).collect())
}
