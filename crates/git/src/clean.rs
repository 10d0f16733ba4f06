//! A clean checkout of one commit elsewhere: a repo of its own that borrows the objects of the first. It works for linked
//! worktrees and shallow clones alike, and nothing that happens there reaches the user's repo.

use crate::command::Git;
use crate::error::{Error, Result};
use crate::repo::Repo;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Local settings that decide how files look on the disk.
const COPIED: &str =
    r"^(filter\..*|core\.(autocrlf|eol|symlinks|filemode|ignorecase|longpaths|attributesfile)|lfs\..*)$";

/// `sparse` are the only folders to bring, from whoever made the clone: what its own files say may be an agent's word.
pub(crate) fn checkout(repo: &Repo, commit: &str, into: &Path, sparse: &[String]) -> Result<()> {
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
    let git = Git::in_folder(into);
    let format = format!("--object-format={}", repo.object_format.as_str());
    // An empty template: no hooks, no excludes of the user's own.
    let init = ["init", "-q", "--template=", &format, "--initial-branch=clean", "."];
    git.call(init).run()?;
    let git_dir = into.join(".git");
    let mut alternates = repo.common_dir.join("objects").into_os_string().as_bytes().to_vec();
    alternates.push(b'\n');
    write(&git_dir.join("objects/info/alternates"), &alternates)?;
    if let Ok(shallow) = fs::read(repo.common_dir.join("shallow")) {
        write(&git_dir.join("shallow"), &shallow)?;
    }
    copy_settings(repo, &git)?;
    if !sparse.is_empty() {
        crate::extent::limit(&git, sparse).run()?;
    }
    git.call(["checkout", "-q", "--detach", "--no-recurse-submodules", commit, "--"]).run()?;
    refuse_missing_filters(&git, !sparse.is_empty())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    crate::store::write_atomically(path, bytes)
}

fn copy_settings(repo: &Repo, git: &Git) -> Result<()> {
    let args = ["config", "--local", "--includes", "-z", "--get-regexp", COPIED];
    let output = repo.git().call(args).accept(&[1]).run()?;
    for record in output.stdout.split(|b| *b == 0).filter(|r| !r.is_empty()) {
        let record = String::from_utf8_lossy(record);
        let (key, value) = record.split_once('\n').unwrap_or((&record, "true"));
        git.call(["config", "--add", key, value]).run()?;
    }
    Ok(())
}

/// Without its filter git checks out pointers instead of files, and says nothing.
fn refuse_missing_filters(git: &Git, sparse: bool) -> Result<()> {
    let mut grep = vec!["grep", "-h", "-I", "--no-color", "-e", "filter="];
    // Of a sparse clone only what is checked out counts; the rest may not be there at all.
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
