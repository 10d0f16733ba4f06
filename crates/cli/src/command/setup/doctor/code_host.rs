//! Checks the code host: known, credentials valid, allowed to push.

use super::{Area, DoctorCheck, Status};
use ralph_loop_app::Environment;
use ralph_loop_app::start::handover;
use ralph_loop_git::Repo;
use ralph_loop_task::config::{ConfigFile, Publish};
use std::path::Path;

/// Whether only the task asks for pushing.
pub fn pushes(file: &ConfigFile, url: &str) -> Option<DoctorCheck> {
    let settings = file.clone().resolve();
    settings.handover.pushes().then(|| {
        let url = ralph_loop_domain::repo::address::without_login(url);
        let what = format!("a run pushes its work to {url} after each iteration");
        DoctorCheck::warn(Area::Repo, "publish", what)
            .why("the task names that repo, and the clone that the run works in is thrown away later")
            .fix("`--publish none` keeps the work here, as does \"publish\": \"none\" in the configuration")
    })
}

/// Where a run would hand over.
///
/// `wanted`: the configuration asks for it. If only the task format does, a run continues without.
pub fn checks(
    env: &Environment,
    folder: &Path,
    file: &ConfigFile,
    cloned: Option<&str>,
    wanted: bool,
) -> Vec<DoctorCheck> {
    let repo = Repo::discover(env.vars(), folder).ok();
    if repo.is_none() && cloned.is_none() {
        return Vec::new();
    }
    let settings = file.clone().resolve();
    // A requested handover is required to start.
    let publish = settings.handover.publish;
    let lacks = |check: DoctorCheck| match publish {
        Publish::Pr if wanted => DoctorCheck { status: Status::Missing, ..check },
        Publish::Pr | Publish::Push | Publish::None => check,
    };
    let remote = &settings.handover.remote;
    let own = repo.as_ref().and_then(|repo| handover::remote_url(repo, remote));
    let url = cloned.map(str::to_owned).or(own);
    let local = repo.as_ref().and_then(|repo| handover::local_folder(&settings, &repo.top));
    let forge = match handover::forge(env, url.as_deref(), local.as_deref()) {
        Ok(Some(forge)) => forge,
        Ok(None) => {
            let what = match &url {
                Some(_) => format!("none is known behind the remote `{remote}`"),
                None => format!("remote `{remote}` doesn't exist"),
            };
            let check = lacks(DoctorCheck::warn(Area::Repo, "code host", what));
            let check = match publish {
                Publish::Push if url.is_none() && wanted => DoctorCheck { status: Status::Missing, ..check },
                Publish::None | Publish::Push => check,
                Publish::Pr => check
                    .fix("set GITHUB_TOKEN and a remote on GitHub; `--publish none` or `push` does without"),
            };
            return vec![check.why("results stay on a branch here; `--publish push` pushes it to a remote")];
        }
        Err(error) => {
            let check = lacks(DoctorCheck::warn(Area::Repo, "code host", error.message.clone()));
            let check = check.why("no pull request can be opened");
            return vec![match error.hint {
                Some(hint) => check.fix(hint),
                None => check,
            }];
        }
    };
    let name = format!("{} {}", forge.kind(), forge.repo());
    vec![match forge.access() {
        Ok(access) if access.push => {
            DoctorCheck::ok(Area::Repo, "code host", format!("{name}, as {}", access.login))
        }
        Ok(access) => lacks(DoctorCheck::warn(
            Area::Repo,
            "code host",
            format!("{name}: `{}` may not push", access.login),
        ))
        .why("no pull request can be opened")
        .fix("use a token that may write contents and pull requests"),
        Err(error) => {
            let check = lacks(DoctorCheck::warn(Area::Repo, "code host", format!("{name}: {error}")));
            let check = check.why("no pull request can be opened");
            match error.hint() {
                Some(hint) => check.fix(hint.to_owned()),
                None => check,
            }
        }
    }]
}
