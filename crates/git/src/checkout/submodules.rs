//! Brings the files of pinned submodules into checkouts, from objects in the user's repo (`.git/modules`): without
//! network, and without hooks, filters or settings of the submodule.

use crate::error::Result;
use crate::process::command::Git;
use crate::repo::Repo;
use crate::snapshot::entry::{MODE_GITLINK, text};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Levels of nested submodules, and of folders in a submodule's name.
const DEPTH_MAX: usize = 8;
const STORES_MAX: usize = 500;
const INDEX: &str = "index.submodule";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pinned {
    pub(crate) path: Vec<u8>,
    pub(crate) commit: String,
}

/// Submodules of the repo's commit whose files aren't on this machine, by path: no checkout can have them.
pub fn missing(repo: &Repo) -> Vec<String> {
    let Ok(all) = pinned(&repo.git(), &repo.head, None) else { return Vec::new() };
    if all.is_empty() {
        return Vec::new();
    }
    let stores = stores(repo);
    let git = repo.git();
    let lacks = |one: &&Pinned| store_of(&git, &stores, &one.commit).is_none();
    all.iter().filter(lacks).map(|one| text(&one.path)).collect()
}

/// Writes the files of the submodules that `commit` pins into its checkout `into`, whose git is `git`. Those without
/// local objects stay empty folders, as git leaves them.
pub(crate) fn bring(source: &Repo, git: &Git, commit: &str, (git_dir, into): (&Path, &Path)) -> Result<()> {
    // Git can't use submodules without this file either.
    if !fs::symlink_metadata(into.join(".gitmodules")).is_ok_and(|meta| meta.is_file()) {
        return Ok(());
    }
    let mut left: Vec<(Vec<u8>, Pinned, usize)> =
        pinned(git, commit, None)?.into_iter().map(|one| (Vec::new(), one, 0)).collect();
    if left.is_empty() {
        return Ok(());
    }
    let stores = stores(source);
    let index = git_dir.join(INDEX);
    while let Some((above, one, depth)) = left.pop() {
        let Some(store) = store_of(git, &stores, &one.commit) else { continue };
        let path = [above.as_slice(), one.path.as_slice()].concat();
        let place = into.join(OsStr::from_bytes(&path));
        // Git has created an empty folder here; never fill anything else.
        if !is_empty_folder(&place) {
            continue;
        }
        let _ = fs::remove_file(&index);
        let from = |args: &[&OsStr]| {
            git.call(args.iter().copied())
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &store)
                .env("GIT_ATTR_SOURCE", source.object_format.id_of("tree", b"").to_string())
                .index(&index)
        };
        from(&["read-tree".as_ref(), one.commit.as_ref()]).run()?;
        let mut prefix = OsStr::new("--prefix=").to_owned();
        prefix.push(OsStr::from_bytes(&path));
        prefix.push("/");
        from(&["checkout-index".as_ref(), "-a".as_ref(), "-q".as_ref(), "-f".as_ref(), &prefix]).run()?;
        let _ = fs::remove_file(&index);
        if depth < DEPTH_MAX {
            let above = [path.as_slice(), b"/"].concat();
            let inner = pinned(git, &one.commit, Some(&store))?;
            left.extend(inner.into_iter().map(|one| (above.clone(), one, depth + 1)));
        }
    }
    Ok(())
}

fn is_empty_folder(place: &Path) -> bool {
    fs::symlink_metadata(place).is_ok_and(|meta| meta.is_dir())
        && fs::read_dir(place).is_ok_and(|mut names| names.next().is_none())
}

/// The submodules that a commit pins; its objects may be in another folder.
pub(crate) fn pinned(git: &Git, commit: &str, store: Option<&Path>) -> Result<Vec<Pinned>> {
    let call = git.call(["ls-tree", "-r", "-z", "--full-tree", commit]);
    let call = match store {
        Some(store) => call.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", store),
        None => call,
    };
    let list = call.run()?.stdout;
    let mode = format!("{MODE_GITLINK:o} ");
    let lines = list.split(|b| *b == 0).filter(|line| line.starts_with(mode.as_bytes()));
    let found = lines.filter_map(|line| {
        let tab = line.iter().position(|b| *b == b'\t')?;
        let commit = String::from_utf8_lossy(line.get(..tab)?).split(' ').nth(2)?.to_owned();
        Some(Pinned { path: line.get(tab + 1..)?.to_vec(), commit })
    });
    Ok(found.collect())
}

pub(crate) fn store_of(git: &Git, stores: &[PathBuf], commit: &str) -> Option<PathBuf> {
    let is_id = commit.len() >= 40 && commit.bytes().all(|b| b.is_ascii_hexdigit());
    let has = |store: &&PathBuf| {
        let call = git.call(["cat-file", "-e", &format!("{commit}^{{tree}}")]);
        call.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", store).run().is_ok()
    };
    stores.iter().filter(|_| is_id).find(has).cloned()
}

/// The object folders of all submodules of the user's repo, and of the repo whose objects it borrows.
pub(crate) fn stores(repo: &Repo) -> Vec<PathBuf> {
    // In a tree that an agent can write, only the engine's files may say where objects are.
    let own = repo.engine_git_dir.as_ref().unwrap_or(&repo.common_dir);
    let mut found = Vec::new();
    for objects in borrowed_from(&own.join("objects")) {
        if let Some(git_dir) = objects.parent() {
            collect(&git_dir.join("modules"), 0, &mut found);
        }
    }
    found
}

/// A git folder below `modules` may contain more modules, and a name with slashes is deeper. No link is followed.
fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if depth > DEPTH_MAX || found.len() >= STORES_MAX {
        return;
    }
    let is_folder = |path: &Path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    if !is_folder(folder) {
        return;
    }
    if is_folder(&folder.join("objects")) && folder.join("HEAD").is_file() {
        found.push(folder.join("objects"));
        return collect(&folder.join("modules"), depth + 1, found);
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        collect(&entry.path(), depth + 1, found);
    }
}

pub(crate) fn borrowed_from(objects: &Path) -> Vec<PathBuf> {
    let mut found = vec![objects.to_owned()];
    let mut at = 0;
    // Git follows five steps.
    while at < found.len() && found.len() < 16 {
        let folder = found[at].clone();
        at += 1;
        let list = fs::read(folder.join("info/alternates")).unwrap_or_default();
        for line in list.split(|b| *b == b'\n').filter(|l| !l.is_empty() && !l.starts_with(b"#")) {
            let path = folder.join(OsStr::from_bytes(line));
            if !found.contains(&path) {
                found.push(path);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_domain::vars::Vars;

    struct Place {
        dir: tempfile::TempDir,
        vars: Vars,
    }

    impl Place {
        fn at(&self, path: &str) -> PathBuf {
            self.dir.path().join(path)
        }
        fn git(&self, folder: &str, args: &[&str]) -> String {
            let more = ["-c", "protocol.file.allow=always", "-c", "user.name=n", "-c", "user.email=e@x"];
            let done = Git::in_folder(&self.vars, self.at(folder)).call(more.iter().chain(args)).run();
            done.unwrap().text().trim().to_owned()
        }
    }

    fn with_submodules() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_str().unwrap().to_owned();
        let path = ralph_loop_testkit::vars().get("PATH").unwrap();
        let pairs = [("HOME", home.as_str()), ("PATH", path.as_str()), ("GIT_CONFIG_NOSYSTEM", "1")];
        let place = Place { vars: pairs.into_iter().collect(), dir };
        for (name, file) in [("inner", "i.txt"), ("outer", "o.txt"), ("user", "u.txt")] {
            fs::create_dir(place.at(name)).unwrap();
            place.git(name, &["init", "-q", "-b", "main"]);
            fs::write(place.at(name).join(file), format!("{name}\n")).unwrap();
            fs::write(place.at(name).join(".gitattributes"), "*.txt filter=evil\n").unwrap();
            place.git(name, &["add", "-A"]);
            place.git(name, &["commit", "-q", "-m", "start"]);
        }
        for (above, name, at) in [("outer", "inner", "deep/in"), ("user", "outer", "lib/out")] {
            let from = place.at(name).display().to_string();
            place.git(above, &["submodule", "--quiet", "add", &from, at]);
            place.git(above, &["submodule", "--quiet", "update", "--init", "--recursive"]);
            place.git(above, &["commit", "-q", "-m", "with another"]);
        }
        // The repo's own attributes don't apply here.
        fs::remove_file(place.at("user/.gitattributes")).unwrap();
        place.git("user", &["commit", "-q", "-am", "plain"]);
        let bad = format!("touch {}; cat", place.at("pwned").display());
        let modules = place.at("user/.git/modules/lib/out/config");
        let config = fs::read_to_string(&modules).unwrap();
        fs::write(&modules, format!("{config}[filter \"evil\"]\n\tsmudge = \"{bad}\"\n")).unwrap();
        place
    }

    #[test]
    fn a_clean_checkout_and_a_worktree_have_the_files_that_submodules_are_pinned_at() {
        let place = with_submodules();
        let repo = Repo::discover(&place.vars, &place.at("user")).unwrap();
        assert_eq!(missing(&repo), [""; 0]);
        // The user's uncommitted edits there aren't part of what is pinned.
        fs::write(place.at("user/lib/out/o.txt"), "edited\n").unwrap();
        let into = place.at("clean");
        let settings = std::sync::Arc::default();
        let rules =
            crate::checkout::clean::CheckoutRules { settings: &settings, sparse: &[], attributes: None };
        crate::checkout::clean::checkout(&repo, &repo.head, &into, rules).unwrap();
        let run = ralph_loop_protocol::id::RunId::new("20261115-143307-k3f9".to_owned());
        let tree = place.at("20261115-143307-k3f9");
        crate::checkout::worktree::add_worktree(&repo, &run, &tree, "work").unwrap();
        for made in [&into, &tree] {
            let read = |path: &str| fs::read_to_string(made.join(path)).unwrap_or_default();
            assert_eq!(
                (read("lib/out/o.txt").as_str(), read("lib/out/deep/in/i.txt").as_str()),
                ("outer\n", "inner\n")
            );
            assert!(!made.join("lib/out/.git").exists() && !made.join(".git/index.submodule").exists());
            let status =
                Git::in_folder(&place.vars, made).call(["status", "--porcelain"]).run().unwrap().text();
            assert_eq!(status.trim(), "", "nothing is changed there");
        }
        assert!(!place.at("pwned").exists(), "no filter of the submodule runs");
    }

    #[test]
    fn submodule_without_objects_is_reported_and_left_empty() {
        let place = with_submodules();
        fs::remove_dir_all(place.at("user/.git/modules")).unwrap();
        std::os::unix::fs::symlink(place.at("outer/.git"), place.at("user/.git/modules")).unwrap();
        let repo = Repo::discover(&place.vars, &place.at("user")).unwrap();
        assert_eq!(missing(&repo), ["lib/out"], "no link is followed");
        let settings = std::sync::Arc::default();
        let rules =
            crate::checkout::clean::CheckoutRules { settings: &settings, sparse: &[], attributes: None };
        crate::checkout::clean::checkout(&repo, &repo.head, &place.at("clean"), rules).unwrap();
        assert!(is_empty_folder(&place.at("clean/lib/out")));
    }
}
