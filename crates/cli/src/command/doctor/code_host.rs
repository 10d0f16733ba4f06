//! The code host: is one known behind the remote, are the credentials good, may they push.

use super::{Area, DoctorCheck};
use ralph_app::{Environment, handover};
use ralph_domain::config::ConfigFile;
use ralph_git::Repo;
use std::path::Path;

/// Whom a run could hand over to; nothing where nobody asks for that.
pub fn checks(env: &Environment, folder: &Path, file: &ConfigFile) -> Vec<DoctorCheck> {
    let Ok(repo) = Repo::discover(env.vars(), folder) else { return Vec::new() };
    let settings = file.clone().resolve();
    let remote = &settings.handover.remote;
    let url = handover::remote_url(&repo, remote);
    let local = handover::local_folder(&settings, &repo.top);
    let forge = match handover::forge(env, url.as_deref(), local.as_deref()) {
        Ok(Some(forge)) => forge,
        Ok(None) => {
            let what = match &url {
                Some(_) => format!("none is known behind the remote `{remote}`"),
                None => format!("there is no remote `{remote}`"),
            };
            let check = DoctorCheck::warn(Area::Repo, "code host", what);
            return vec![check.why("results stay on a branch here; `--publish push` pushes it to a remote")];
        }
        Err(error) => {
            let check = DoctorCheck::warn(Area::Repo, "code host", error.message.clone());
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
        Ok(access) => {
            DoctorCheck::warn(Area::Repo, "code host", format!("{name}: `{}` may not push", access.login))
                .why("no pull request can be opened")
                .fix("use a token that may write contents and pull requests")
        }
        Err(error) => {
            let check = DoctorCheck::warn(Area::Repo, "code host", format!("{name}: {error}"));
            let check = check.why("no pull request can be opened");
            match error.hint() {
                Some(hint) => check.fix(hint.to_owned()),
                None => check,
            }
        }
    }]
}
