//! Finds settings of the user's git that start programs from the repo's tree. They are harmless while the tree is the
//! user's, but an agent can replace the programs, and git would run them outside any sandbox.

use crate::error::Result;
use crate::repo::Repo;
use std::path::{Component, Path, PathBuf};

/// Settings that name programs which git starts for the engine, and included config files.
const KEYS: &str = r"^(filter\..*\.(clean|smudge|process)|core\.(sshcommand|gitproxy|askpass)|credential\.(.*\.)?helper|remote\..*\.(uploadpack|receivepack)|include\.path|includeif\..*\.path)$";
/// Programs that run what files of the tree say, whatever their arguments.
const RUNNERS: &[&str] = &[
    "bundle", "bun", "cargo", "deno", "go", "just", "make", "npm", "npx", "pnpm", "poetry", "rake", "task",
    "tox", "uv", "yarn",
];
/// Words that refer to the tree.
const TREE_WORDS: &[&str] =
    &["show-toplevel", "$PWD", "${PWD", "$(pwd", "`pwd", "GIT_WORK_TREE", "GIT_PREFIX"];

/// A setting that starts a program of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeProgram {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// The settings of `repo` that an agent could take over by writing a file of the tree.
pub fn tree_programs(repo: &Repo) -> Result<Vec<TreeProgram>> {
    let output = repo.git().call(["config", "--includes", "-z", "--get-regexp", KEYS]).accept(&[1]).run()?;
    let records = output.stdout.split(|b| *b == 0).filter(|record| !record.is_empty());
    let all = records.filter_map(|record| {
        let record = String::from_utf8_lossy(record);
        let (key, value) = record.split_once('\n')?;
        Some(TreeProgram { key: key.to_owned(), value: value.to_owned() })
    });
    Ok(all.filter(|one| is_of_tree(repo, one)).collect())
}

fn is_of_tree(repo: &Repo, one: &TreeProgram) -> bool {
    let top = &repo.top;
    if one.key.starts_with("include") {
        // Relative to the config file; the repo's own is in its git folder.
        let path = Path::new(&one.value);
        return !one.value.starts_with("~/")
            && is_below(top, &repo.common_dir.join(path))
            && !is_below(&repo.common_dir, &repo.common_dir.join(path));
    }
    names_tree(top, &one.value)
}

fn names_tree(top: &Path, value: &str) -> bool {
    if TREE_WORDS.iter().any(|word| value.contains(word)) {
        return true;
    }
    let mut words = value
        .split(|c: char| c.is_whitespace() || "\"'`;|&()<>=".contains(c))
        .map(|word| word.trim_start_matches('!'))
        .filter(|word| !word.is_empty());
    if words.clone().next().is_some_and(|first| RUNNERS.contains(&first.rsplit('/').next().unwrap_or(first)))
    {
        return true;
    }
    words.any(|word| {
        let path = top.join(word);
        let is_named = word.starts_with("./") || path.symlink_metadata().is_ok_and(|meta| !meta.is_dir());
        is_named && is_below(top, &path)
    })
}

/// Whether `path`, existing or not, is below `top`.
fn is_below(top: &Path, path: &Path) -> bool {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain.starts_with(top)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tree_program_is_recognized_in_any_argument() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir(top.path().join("tools")).unwrap();
        std::fs::write(top.path().join("tools/clean.py"), "").unwrap();
        let absolute = top.path().join("tools/clean.py").display().to_string();
        for bad in [
            "./tools/clean.sh",
            "python3 tools/clean.py",
            "sh -c 'python3 tools/clean.py %f'",
            "$(git rev-parse --show-toplevel)/x",
            "npm run --silent strip",
            "!./helper",
            absolute.as_str(),
        ] {
            assert!(names_tree(top.path(), bad), "{bad}");
        }
        for good in [
            "git-lfs clean -- %f",
            "nbstripout",
            "sed -e s/tools/other/",
            "/usr/local/bin/strip %f",
            "cat",
            "!gh auth git-credential",
            "store --file ~/.creds",
            "tools",
        ] {
            assert!(!names_tree(top.path(), good), "{good}");
        }
    }
}
