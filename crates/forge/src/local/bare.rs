//! The bare repo of a local forge.

use crate::error::{Result, refused, unavailable};
use ralph_loop_domain::ports::ForgeError;
use ralph_loop_domain::vars::Vars;
use ralph_loop_git::{Git, GitError};
use std::path::{Path, PathBuf};

/// Most listed paths of one pull request.
const PATHS_MAX: usize = 3000;

#[derive(Debug, Clone)]
pub(crate) struct Bare {
    pub path: PathBuf,
    vars: Vars,
}

fn trouble(error: GitError) -> ForgeError {
    let what = "the local forge's repo".to_owned();
    match error.hint.clone() {
        Some(hint) => ForgeError::Refused { what, reason: error.to_string(), hint },
        None => unavailable(what, error),
    }
}

impl Bare {
    /// Opens the repo at `path`, creating it if missing.
    pub fn open(path: &Path, vars: &Vars) -> Result<Self> {
        let bare = Self { path: path.to_owned(), vars: vars.clone() };
        if !path.join("HEAD").exists() {
            super::store::folder(path)?;
            let init = ["init", "-q", "--bare", "--template=", "-b", "main", "."];
            Git::in_folder(vars, path).call(init).run().map_err(trouble)?;
        }
        Ok(bare)
    }

    fn git(&self) -> Git {
        Git::in_repo(&self.vars, &self.path, &self.path)
    }

    pub fn branch(&self, name: &str) -> Result<Option<String>> {
        let name = format!("refs/heads/{name}^{{commit}}");
        let output = self.git().call(["rev-parse", "--verify", "--quiet", &name]).accept(&[1, 128]).run();
        let output = output.map_err(trouble)?;
        Ok((output.code == 0).then(|| output.text()))
    }

    pub fn default_branch(&self) -> Result<String> {
        let call = self.git().call(["symbolic-ref", "--quiet", "--short", "HEAD"]).accept(&[1]);
        let head = call.run().map_err(trouble)?.text();
        Ok(if head.is_empty() { "main".into() } else { head })
    }

    /// Copies a branch of another repo unless it exists. The first one becomes the default branch.
    pub fn seed(&self, from: &Path, branch: &str) -> Result<()> {
        if self.branch(branch)?.is_some() {
            return Ok(());
        }
        let first = self.branch(&self.default_branch()?)?.is_none();
        let (from, spec) = (from.display().to_string(), format!("refs/heads/{branch}:refs/heads/{branch}"));
        let args = ["fetch", "-q", "--no-tags", "--no-write-fetch-head", "--", &from, &spec];
        self.git().call(args).env("GIT_ALLOW_PROTOCOL", "file").run().map_err(trouble)?;
        if first {
            let target = format!("refs/heads/{branch}");
            self.git().call(["symbolic-ref", "HEAD", &target]).run().map_err(trouble)?;
        }
        Ok(())
    }

    pub fn merge_base(&self, a: &str, b: &str) -> Result<Option<String>> {
        let output = self.git().call(["merge-base", a, b]).accept(&[1]).run().map_err(trouble)?;
        Ok((output.code == 0).then(|| output.text()))
    }

    pub fn is_ancestor(&self, old: &str, new: &str) -> Result<bool> {
        let call = self.git().call(["merge-base", "--is-ancestor", old, new]).accept(&[1, 128]);
        Ok(call.run().map_err(trouble)?.code == 0)
    }

    /// Paths that differ, including old names of renamed files.
    pub fn paths(&self, from: &str, to: &str) -> Result<Vec<String>> {
        let call = self.git().call(["diff", "--name-status", "-z", "-M", "--no-ext-diff", from, to, "--"]);
        let output = call.run().map_err(trouble)?;
        let mut words = output.stdout.split(|b| *b == 0).map(|w| String::from_utf8_lossy(w).into_owned());
        let mut found = Vec::new();
        while let Some(status) = words.next().filter(|s| !s.is_empty()) {
            let names = if status.starts_with(['R', 'C']) { 2 } else { 1 };
            found.extend(words.by_ref().take(names));
            if found.len() >= PATHS_MAX {
                break;
            }
        }
        found.sort();
        found.dedup();
        Ok(found)
    }

    pub fn merge(&self, base: &str, head: &str, message: &str) -> Result<()> {
        let what = || format!("cannot merge into `{base}`");
        let old = self.branch(base)?;
        let old = old.ok_or_else(|| refused(what(), "there is no such branch", "push it first"))?;
        let new = if self.is_ancestor(&old, head)? {
            head.to_owned()
        } else {
            let call = self.git().call(["merge-tree", "--write-tree", &old, head]).accept(&[1]);
            let output = call.run().map_err(trouble)?;
            if output.code != 0 {
                return Err(refused(
                    what(),
                    "the branches conflict",
                    "solve the conflict on the branch, push, merge again",
                ));
            }
            let tree = output.text().lines().next().unwrap_or_default().to_owned();
            let who = [
                ("GIT_AUTHOR_NAME", "Local forge"),
                ("GIT_AUTHOR_EMAIL", "forge@localhost"),
                ("GIT_COMMITTER_NAME", "Local forge"),
                ("GIT_COMMITTER_EMAIL", "forge@localhost"),
            ];
            let call = self.git().call(["commit-tree", &tree, "-p", &old, "-p", head, "-m", message]);
            who.into_iter()
                .fold(call, |call, (key, value)| call.env(key, value))
                .run()
                .map_err(trouble)?
                .text()
        };
        self.git().call(["update-ref", &format!("refs/heads/{base}"), &new, &old]).run().map_err(trouble)?;
        Ok(())
    }
}
