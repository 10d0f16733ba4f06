//! The objects that an agent's copy borrows: what its start reaches, in packs that the engine makes. Stash, other
//! branches and what was never committed stay with the user.
//!
//! A pack is made once per start commit and kept. A later start gets the packs of an earlier one that it contains, as
//! hard links, and one more with what is new. A run has its own links, so that removing a kept store hurts none.

use crate::agent_copy::contents::History;
use crate::checkout::submodules::borrowed_from;
use crate::error::{Error, Result};
use crate::objects::files::write_atomically;
use crate::process::command::Git;
use crate::repo::Repo;
use ralph_loop_protocol::id::RunId;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A run's store in its folder, and the folder of the kept ones.
pub(crate) const LENT: &str = "lent";
/// Where a run's copy borrows from, as in git's `info/alternates`.
const LENDER: &str = "lender";
/// Written at each use; its time says which stores are used least.
const USED: &str = "used";
const UNFINISHED: &str = "new-";
/// A store of several branches' starts each.
const STORES_MAX: usize = 4;
/// Git looks into every pack for an object.
const PACKS_MAX: usize = 20;
/// A large history takes minutes, once.
const PACKING_MAX: Duration = Duration::from_secs(3600);

/// The content of `info/alternates` of a repo that borrows from the user's own store.
pub(crate) fn users_store(user: &Repo) -> Result<Vec<u8>> {
    line_of(&user.common_dir.join("objects"))
}

/// The same for the run's copy, whose records are in `kept`. Runs of older versions, and those that the user's
/// configuration gives the whole history, borrow from the user's store.
pub(crate) fn lender(user: &Repo, kept: &Path) -> Result<Vec<u8>> {
    match fs::read(kept.join(LENDER)) {
        Ok(line) => Ok(line),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => users_store(user),
        Err(e) => Err(Error::file("read", &kept.join(LENDER), e)),
    }
}

/// The object folders that the run's copy reads besides its own.
pub(crate) fn folders(user: &Repo, kept: &Path) -> Vec<PathBuf> {
    let line = lender(user, kept).unwrap_or_default();
    borrowed_from(Path::new(OsStr::from_bytes(line.trim_ascii_end())))
}

fn line_of(objects: &Path) -> Result<Vec<u8>> {
    let mut line = objects.as_os_str().as_bytes().to_vec();
    if line.contains(&b'\n') {
        return Err(Error::refused("the repo's path holds a line break", "move the repo, or use `--clone`"));
    }
    line.push(b'\n');
    Ok(line)
}

/// Lends the copy of a run what `origin.head` and the objects `more` reach; returns its `info/alternates`.
pub(crate) fn lend(
    origin: &Repo,
    run: &RunId,
    kept: &Path,
    history: History,
    more: BTreeSet<String>,
) -> Result<Vec<u8>> {
    let line = match history {
        History::Full => users_store(origin)?,
        History::Start => {
            let own = origin.run_folder(run).join(LENT);
            remove(&own)?;
            make_folder(&own.join("pack"))?;
            fill(origin, &own, &existing(origin, more)?)?;
            line_of(&own)?
        }
    };
    write_atomically(&kept.join(LENDER), &line)?;
    Ok(line)
}

fn fill(origin: &Repo, own: &Path, more: &[String]) -> Result<()> {
    if is_partial(origin) {
        // Which objects are here changes whenever git fetches some.
        return pack(origin, own, &[std::slice::from_ref(&origin.head), more].concat(), true);
    }
    link_packs(&kept_store(origin)?, own)?;
    match more.is_empty() {
        true => Ok(()),
        false => pack(origin, own, &[more, &[format!("^{}", origin.head)]].concat(), false),
    }
}

/// The kept store of `origin.head`.
fn kept_store(origin: &Repo) -> Result<PathBuf> {
    let all = origin.common_dir.join("ralph").join(LENT);
    make_folder(&all)?;
    // The same commit of a shallow repo reaches more once it is deepened.
    let shallow = fs::read(origin.common_dir.join("shallow")).unwrap_or_default();
    let name = match shallow.is_empty() {
        true => origin.head.clone(),
        false => {
            let text = [origin.head.as_bytes(), &shallow].concat();
            origin.object_format.id_of("blob", &text).to_string()
        }
    };
    let store = all.join(name);
    if !store.is_dir() {
        let known = stores(&all);
        let earlier = || known.iter().find(|earlier| shallow.is_empty() && continues(origin, earlier));
        let new = all.join(format!("{UNFINISHED}{}", std::process::id()));
        remove(&new)?;
        make_folder(&new.join("pack"))?;
        let mut starts = vec![origin.head.clone()];
        if let Some(earlier) = earlier() {
            link_packs(earlier, &new)?;
            starts.extend(earlier.file_name().map(|commit| format!("^{}", commit.display())));
        }
        pack(origin, &new, &starts, false)?;
        match fs::rename(&new, &store) {
            // Another run has made it meanwhile.
            Err(_) if store.is_dir() => remove(&new)?,
            done => done.map_err(|e| Error::file("move", &new, e))?,
        }
        for old in known.iter().skip(STORES_MAX - 1) {
            let _ = ralph_loop_safe_fs::remove_tree(old);
        }
    }
    write_atomically(&store.join(USED), b"")?;
    Ok(store)
}

/// The kept stores, the last used first. What killed processes have left is removed.
fn stores(all: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let name = entry.file_name();
        match name.to_str().and_then(|name| name.strip_prefix(UNFINISHED)) {
            None => {
                let used = fs::metadata(entry.path().join(USED)).and_then(|used| used.modified());
                found.push((used.ok(), entry.path()));
            }
            Some(process)
                if Path::new("/proc/self").exists() && !Path::new("/proc").join(process).exists() =>
            {
                let _ = ralph_loop_safe_fs::remove_tree(entry.path());
            }
            Some(_) => {}
        }
    }
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, path)| path).collect()
}

/// Whether everything in the store `earlier` belongs to `origin.head` as well.
fn continues(origin: &Repo, earlier: &Path) -> bool {
    let few = fs::read_dir(earlier.join("pack")).is_ok_and(|packs| packs.count() < PACKS_MAX * 3);
    let commit = earlier.file_name().unwrap_or_default();
    let args = ["merge-base".as_ref(), "--is-ancestor".as_ref(), commit, origin.head.as_ref()];
    few && origin.git().call(args).accept(&[1, 128]).run().is_ok_and(|output| output.code == 0)
}

/// Whether the repo leaves objects with a server.
fn is_partial(origin: &Repo) -> bool {
    borrowed_from(&origin.common_dir.join("objects")).iter().any(|store| {
        let packs = fs::read_dir(store.join("pack")).into_iter().flatten().flatten();
        packs.into_iter().any(|file| file.path().extension().is_some_and(|end| end == "promisor"))
    })
}

/// Those of `ids` that are on this machine: the index may name others.
fn existing(origin: &Repo, ids: BTreeSet<String>) -> Result<Vec<String>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let asked: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let call = local(&origin.git(), ["cat-file", "--batch-check=%(objectname)"]);
    let told = call.stdin(asked).run()?.text();
    Ok(told.lines().filter(|line| !line.contains(' ')).map(str::to_owned).collect())
}

/// Writes one pack with all that `starts` reach. `partial` says that a server has the missing ones.
fn pack(origin: &Repo, store: &Path, starts: &[String], partial: bool) -> Result<()> {
    let base = store.join("pack/pack");
    let args = ["pack-objects", "-q", "--revs", "--missing=allow-any", "--non-empty", "--delta-base-offset"];
    let args = args.map(OsStr::new).into_iter().chain([base.as_os_str()]);
    let call = local(&origin.git().with_timeout(PACKING_MAX), args);
    let made = call.stdin(starts.join("\n") + "\n").run()?.text();
    for id in made.lines().filter(|_| partial) {
        write_atomically(&store.join(format!("pack/pack-{id}.promisor")), b"")?;
    }
    Ok(())
}

/// A command that never asks a server for missing objects.
fn local<A: AsRef<OsStr>>(git: &Git, args: impl IntoIterator<Item = A>) -> crate::process::command::GitCall {
    git.call(args).env("GIT_NO_LAZY_FETCH", "1")
}

fn link_packs(from: &Path, to: &Path) -> Result<()> {
    let packs = from.join("pack");
    for entry in fs::read_dir(&packs).map_err(|e| Error::file("read", &packs, e))?.flatten() {
        let place = to.join("pack").join(entry.file_name());
        // Not every file system has links.
        let linked = fs::hard_link(entry.path(), &place);
        linked
            .or_else(|_| fs::copy(entry.path(), &place).map(drop))
            .map_err(|e| Error::file("copy", &entry.path(), e))?;
    }
    Ok(())
}

fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|e| Error::file("create", path, e))
}

fn remove(path: &Path) -> Result<()> {
    ralph_loop_safe_fs::remove_tree(path).map_err(|e| Error::file("remove", path, e))
}
