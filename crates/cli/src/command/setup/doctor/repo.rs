//! Checks the repo: existence, commits, branch, identity.

use super::{Area, DoctorCheck};
use ralph_loop_app::Environment;
use ralph_loop_git::{GitFailure, Repo, RepoError};
use std::path::Path;

/// Checks the repo around a folder; `cloned` is the one the task names.
pub fn checks(env: &Environment, folder: &Path, cloned: Option<&str>) -> Vec<DoctorCheck> {
    let repo = match Repo::discover(env.vars(), folder) {
        Ok(repo) => repo,
        // A missing git is reported under the machine.
        Err(RepoError::Git(error)) if error.kind == GitFailure::NotInstalled => return Vec::new(),
        Err(_) if cloned.is_some() => {
            let message = "this folder is none; the task's own repo is cloned".to_owned();
            return vec![DoctorCheck::ok(Area::Repo, "repo", message)];
        }
        Err(error) => {
            let fix = error.hint().unwrap_or_default();
            let check = DoctorCheck::missing(Area::Repo, "repo", error.to_string());
            return vec![check.why("work is recorded, compared and brought back with git").fix(fix)];
        }
    };
    let head = repo.head.get(..10).unwrap_or(&repo.head);
    let mut checks = vec![DoctorCheck::ok(Area::Repo, "repo", format!("{} at {head}", repo.top.display()))];
    checks.push(match &repo.branch {
        Some(branch) => DoctorCheck::ok(Area::Repo, "branch", branch.as_str()),
        None => DoctorCheck::warn(Area::Repo, "branch", "HEAD is detached")
            .why("a run works here, but commits on a branch only with `--branch NAME`")
            .fix("git switch BRANCH, or `ralph run --branch NAME`"),
    });
    checks.push(identity(&repo));
    checks
}

fn identity(repo: &Repo) -> DoctorCheck {
    // Git must not derive an address from the host name.
    let call = repo.user_git().call(["var", "GIT_AUTHOR_IDENT"]).config("user.useConfigOnly=true");
    let ident = call.run().map(|output| output.text()).unwrap_or_default();
    match ident.split_once('>') {
        Some((who, _)) => DoctorCheck::ok(Area::Repo, "identity", format!("{who}>")),
        None => DoctorCheck::warn(Area::Repo, "identity", "git does not know your name and mail address")
            .why("commits of a run would be signed `Ralph <ralph@localhost>`")
            .fix(
                "git config --global user.name 'Your Name' && git config --global user.email you@example.org",
            ),
    }
}
