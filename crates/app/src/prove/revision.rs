//! Which commit is proven, and which one it is compared with.

use crate::config::settings;
use crate::environment::Environment;
use crate::error::AppError;
use crate::start::handover;
use ralph_loop_domain::ports::GitRemote;
use ralph_loop_git::{Error, Repo};
use ralph_loop_protocol::id::TreeId;

/// More digits are an abbreviated commit.
const PR_DIGITS: usize = 6;
/// Names in the separate repo.
const HEAD: &str = "refs/ralph/prove/head";
const BASE: &str = "refs/ralph/prove/base";

/// A commit and the original that it is compared with.
pub struct Pair {
    pub base: String,
    pub commit: String,
}

/// What to prove, as far as the user's repo knows it.
pub struct Wanted {
    commit: Source,
    /// The commit of `--base`, or of the default branch.
    base: Option<String>,
    /// As the user named it.
    name: String,
    /// `--base` as the user named it.
    given: Option<String>,
}

enum Source {
    Here(String),
    /// A pull request: its remote, and the refs of its work and its target.
    Pr {
        remote: GitRemote,
        head: String,
        base: String,
    },
}

/// Finds `what`, to be compared with `base`; asks the code host only about a pull request.
pub fn find(
    env: &Environment,
    what: Option<&str>,
    base: Option<&str>,
    users: &Repo,
) -> Result<Wanted, AppError> {
    let settings = settings::load(env, &users.top)?.file.resolve();
    let name = what.unwrap_or("HEAD").to_owned();
    let named = base.map(str::to_owned);
    let given = match base {
        None => None,
        Some(base) => Some(commit_of(users, base)?.ok_or_else(|| unknown(base, "--base "))?),
    };
    let commit = match pr_of(&name) {
        Some(number) => {
            let address = ralph_loop_forge::parse_issue_url(&name).map(|found| found.repo);
            let url = match address {
                Some(repo) => Some(format!("https://{}/{}/{}", repo.host, repo.owner, repo.name)),
                None => handover::remote_url(users, &settings.handover.remote),
            };
            let local = handover::local_folder(&settings, &users.top);
            let Some(forge) = handover::forge(env, url.as_deref(), local.as_deref())? else {
                return Err(AppError::usage(format!(
                    "`{name}` names a pull request, but no code host is known"
                ))
                .hint("name a commit, or set GITHUB_TOKEN for a remote on GitHub"));
            };
            let pr = forge.pr(number)?;
            let head = match forge.kind() {
                "github" => format!("refs/pull/{number}/head"),
                _ => format!("refs/heads/{}", pr.head),
            };
            Source::Pr { remote: forge.remote()?, head, base: format!("refs/heads/{}", pr.base) }
        }
        None => Source::Here(commit_of(users, &name)?.ok_or_else(|| unknown(&name, ""))?),
    };
    let base = match given {
        None => default_branch(users, &settings.handover.remote)?,
        given => given,
    };
    Ok(Wanted { commit, base, name, given: named })
}

impl Wanted {
    /// Finds both commits in the separate repo, fetching a pull request into it.
    pub fn bring(&self, scratch: &Repo) -> Result<Pair, AppError> {
        let (commit, base) = match &self.commit {
            Source::Here(commit) => (commit.clone(), self.base.clone()),
            Source::Pr { remote, head, base } => {
                let specs = [format!("+{head}:{HEAD}"), format!("+{base}:{BASE}")];
                ralph_loop_git::fetch(scratch, remote, &specs)?;
                let found = |name: &str| Ok::<_, AppError>(commit_of(scratch, name)?.unwrap_or_default());
                (found(HEAD)?, Some(found(BASE)?))
            }
        };
        let merge_base = match &base {
            None => None,
            Some(base) => Some(self.merge_base(scratch, base, &commit)?),
        };
        if let (Some(base), Some(found)) = (&self.given, &merge_base)
            && *found == commit
        {
            return Err(AppError::usage(format!("`--base {base}` already contains `{}`", self.name))
                .cause("nothing is left to compare it with")
                .hint(format!("name an earlier commit: `ralph prove {0} --base {0}~1`", self.name)));
        }
        // A commit of the default branch itself is compared with the one before it.
        let base = match merge_base.filter(|base| *base != commit) {
            Some(base) => base,
            None => commit_of(scratch, &format!("{commit}^"))?.ok_or_else(|| {
                AppError::usage(format!("`{}` has no commit before it to compare with", self.name))
                    .hint("name another one with `--base REV`; in a shallow clone, fetch the history first (`git fetch --unshallow`)")
            })?,
        };
        Ok(Pair { base, commit })
    }

    fn merge_base(&self, scratch: &Repo, base: &str, commit: &str) -> Result<String, AppError> {
        let output = scratch.git().call(["merge-base", base, commit]).accept(&[1]).run();
        let found = output.map_err(Error::from)?.text();
        match found.is_empty() {
            false => Ok(found),
            true => Err(AppError::usage(format!("`{}` and its base have no common history here", self.name))
                .cause("the clone may be shallow")
                .hint("fetch the history (`git fetch --unshallow`; `fetch-depth: 0` in GitHub Actions), or name `--base REV`")),
        }
    }
}

/// The number of a pull request: `7`, `#7` or its URL.
fn pr_of(name: &str) -> Option<u64> {
    if let Some(found) = ralph_loop_forge::parse_issue_url(name) {
        return Some(found.number);
    }
    let digits = name.trim_start_matches('#');
    let is_short = !digits.is_empty() && digits.len() <= PR_DIGITS;
    digits.parse().ok().filter(|_| is_short && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn unknown(name: &str, flag: &str) -> AppError {
    AppError::usage(format!("`{flag}{name}` names no commit of this repo"))
        .hint("`git log --oneline` lists commits; fetch it first (`git fetch`), or name a pull request by its number")
}

/// A revision's commit, if there is one.
fn commit_of(repo: &Repo, name: &str) -> Result<Option<String>, AppError> {
    if name.starts_with('-') {
        return Ok(None);
    }
    let name = format!("{name}^{{commit}}");
    let call = repo.git().call(["rev-parse", "--verify", "--quiet", "--end-of-options", &name]);
    let output = call.accept(&[1, 128]).run().map_err(Error::from)?;
    Ok(Some(output.text()).filter(|commit| output.code == 0 && !commit.is_empty()))
}

/// The tree of a commit.
pub fn tree_of(repo: &Repo, commit: &str) -> Result<TreeId, AppError> {
    let output = repo.git().call(["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).run();
    Ok(TreeId::new(output.map_err(Error::from)?.text()))
}

/// The commit of the default branch: what the remote calls so, else `main` or `master`.
fn default_branch(users: &Repo, remote: &str) -> Result<Option<String>, AppError> {
    let there = |name: &str| format!("refs/remotes/{remote}/{name}");
    let here = |name: &str| format!("refs/heads/{name}");
    for name in [there("HEAD"), there("main"), there("master"), here("main"), here("master")] {
        if let Some(commit) = commit_of(users, &name)? {
            return Ok(Some(commit));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pull_requests_are_distinguished_from_commits() {
        assert_eq!(pr_of("7"), Some(7));
        assert_eq!(pr_of("#7"), Some(7));
        assert_eq!(pr_of("https://github.com/o/r/pull/12"), Some(12));
        for commit in ["HEAD", "1234567", "abc1", "", "#", "v1.0"] {
            assert_eq!(pr_of(commit), None, "{commit}");
        }
    }
}
