//! Finds the code host of a repo.

use crate::error::Result;
use crate::github::{host_of, serves};
use crate::{GitHub, LocalForge, RepoAddress};
use ralph_loop_domain::ports::{Forge, ForgeError};
use ralph_loop_domain::vars::Vars;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedBy {
    /// The user: a remote of their repo, or a flag.
    User,
    Repo,
}

/// The code host of a remote; `None` if it isn't supported.
///
/// A named folder wins. A GitHub host without a token is an error that says what to set. A token is only sent to
/// github.com, to a host in `GITHUB_API_URL`, `GITHUB_SERVER_URL` or `GH_HOST`, and to the user's own `*.ghe.com`,
/// never to a host that only resembles GitHub.
pub fn find(
    remote_url: Option<&str>,
    named_by: NamedBy,
    local: Option<&Path>,
    vars: &Vars,
) -> Result<Option<Box<dyn Forge>>, ForgeError> {
    if let Some(folder) = local {
        return Ok(Some(Box::new(LocalForge::open(folder, vars)?)));
    }
    let Some(remote) = remote_url else { return Ok(None) };
    let Some(address) = RepoAddress::parse(remote) else { return Ok(None) };
    let named = |name: &str| vars.get(name).filter(|value| !value.trim().is_empty());
    let host = address.host_name();
    let is_github = host == "github.com"
        // Anyone can register a name below that one.
        || (host.ends_with(".ghe.com") && named_by == NamedBy::User)
        || named("GITHUB_API_URL").is_some_and(|url| serves(&url, host))
        || named("GITHUB_SERVER_URL")
            .is_some_and(|url| host_of(&url).is_some_and(|h| h.eq_ignore_ascii_case(&address.host)))
        || named("GH_HOST").is_some_and(|name| name.trim().eq_ignore_ascii_case(&address.host));
    if !is_github {
        return Ok(None);
    }
    Ok(Some(Box::new(GitHub::from_remote(remote, &|name: &str| vars.filled(name))?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(remote: &str, vars: &[(&str, &str)]) -> Result<Option<(String, String)>> {
        Ok(find(Some(remote), NamedBy::User, None, &vars.iter().copied().collect())?
            .map(|forge| (forge.kind().to_owned(), forge.repo().to_owned())))
    }

    #[test]
    fn remote_selects_its_host() {
        let github = Some(("github".to_owned(), "o/r".to_owned()));
        let token = ("GITHUB_TOKEN", "t");
        assert_eq!(found("git@github.com:o/r.git", &[token]).unwrap(), github);
        assert_eq!(found("https://octo.ghe.com/o/r", &[token]).unwrap(), github);
        assert_eq!(
            found("https://ghe.corp/o/r", &[token, ("GITHUB_API_URL", "https://ghe.corp/api/v3")]).unwrap(),
            github
        );
        assert_eq!(found("https://ghe.corp/o/r", &[token, ("GH_HOST", "ghe.corp")]).unwrap(), github);
        for remote in [
            "https://gitlab.com/o/r",
            "https://github.evil.example/o/r",
            "/srv/o/r.git",
            "https://ghe.corp/o/r",
        ] {
            let vars = [token, ("GITHUB_API_URL", "https://api.github.com")];
            assert_eq!(found(remote, &vars).unwrap(), None, "{remote}");
        }
        let error = found("https://github.com/o/r", &[("GITHUB_TOKEN", " ")]).unwrap_err();
        assert!(matches!(error, ForgeError::Auth { .. }), "{error:?}");
        assert!(
            error.hint().unwrap().contains("GITHUB_TOKEN") && error.to_string().contains("o/r"),
            "{error}"
        );
    }

    #[test]
    fn token_is_not_sent_to_an_enterprise_host_from_a_task() {
        let is_found = |vars: &[(&str, &str)]| {
            let vars: Vars = vars.iter().copied().collect();
            find(Some("https://evil.ghe.com/o/r"), NamedBy::Repo, None, &vars).unwrap().is_some()
        };
        let token = ("GITHUB_TOKEN", "t");
        assert!(!is_found(&[token]));
        assert!(is_found(&[token, ("GH_HOST", "evil.ghe.com")]));
        assert!(is_found(&[token, ("GITHUB_SERVER_URL", "https://evil.ghe.com")]));
    }

    #[test]
    fn named_folder_wins() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("forge");
        let found = find(
            Some("https://github.com/o/r"),
            NamedBy::User,
            Some(&path),
            &[("PATH", "/usr/bin:/bin")].into_iter().collect(),
        )
        .unwrap()
        .unwrap();
        assert_eq!(found.kind(), "local");
        assert!(find(None, NamedBy::User, None, &Vars::default()).unwrap().is_none());
    }
}
