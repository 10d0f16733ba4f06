//! URLs of repos, issues and APIs.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoAddress {
    /// `github.com`, `ghe.example.com:8443`.
    pub host: String,
    /// `owner`.
    pub owner: String,
    /// `name`, without `.git`.
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueAddress {
    pub repo: RepoAddress,
    pub number: u64,
}

impl RepoAddress {
    /// Parses a git remote: `https://host/o/r.git`, `git@host:o/r.git`, `ssh://git@host:22/o/r`.
    pub fn parse(remote: &str) -> Option<Self> {
        let remote = remote.trim();
        let (host, path) = match remote.split_once("://") {
            Some((scheme, rest)) => {
                let (authority, path) = rest.split_once('/')?;
                let host = authority.rsplit('@').next()?;
                let host = match scheme.to_ascii_lowercase().as_str() {
                    "https" | "http" => host,
                    // The ssh port isn't the web port.
                    "ssh" | "git+ssh" => host.split(':').next()?,
                    "git" => host.split(':').next()?,
                    _ => return None,
                };
                (host, path)
            }
            // Before a `/`, a colon ends the host; after it, it is part of a local path.
            None => {
                let (authority, path) = remote.split_once(':')?;
                if authority.contains('/') {
                    return None;
                }
                (authority.rsplit('@').next()?, path)
            }
        };
        let path = path.split(['?', '#']).next()?.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let (owner, name) = path.split_once('/')?;
        let host = host.to_ascii_lowercase();
        // GitHub's ssh server on the web port.
        let host = if matches!(host.as_str(), "ssh.github.com" | "www.github.com") {
            "github.com".into()
        } else {
            host
        };
        (is_name(owner) && is_name(name) && is_host(&host)).then(|| Self {
            host,
            owner: owner.into(),
            name: name.into(),
        })
    }

    /// `owner/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    pub(crate) fn host_name(&self) -> &str {
        host_name(&self.host)
    }
}

/// Parses the URL of an issue or pull request: `https://host/o/r/issues/7`.
pub fn parse_issue_url(url: &str) -> Option<IssueAddress> {
    let (scheme, rest) = url.trim().split_once("://")?;
    if !matches!(scheme.to_ascii_lowercase().as_str(), "https" | "http") {
        return None;
    }
    let rest = rest.split(['?', '#']).next()?.trim_end_matches('/');
    let mut words = rest.split('/');
    let (host, owner, name) = (words.next()?, words.next()?, words.next()?);
    if !matches!(words.next()?, "issues" | "pull") {
        return None;
    }
    let number = words.next()?.parse().ok().filter(|n| *n > 0)?;
    let repo = RepoAddress::parse(&format!("https://{host}/{owner}/{name}"))?;
    words.next().is_none().then_some(IssueAddress { repo, number })
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !matches!(text, "." | "..")
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

fn is_host(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':' | b'[' | b']'))
}

fn host_name(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

pub(crate) fn is_at_home(host: &str) -> bool {
    ralph_loop_http::is_loopback(host_name(host))
}

pub(crate) fn host_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    rest.split(['/', '?', '#']).next()?.rsplit('@').next()
}

pub(crate) fn api_url(host: &str) -> String {
    if host == "github.com" {
        "https://api.github.com".into()
    } else if host.ends_with(".ghe.com") {
        format!("https://api.{host}")
    } else {
        format!("https://{host}/api/v3")
    }
}

pub(crate) fn graphql_url(api_url: &str) -> String {
    match api_url.strip_suffix("/api/v3") {
        Some(host) => format!("{host}/api/graphql"),
        None => format!("{api_url}/graphql"),
    }
}

/// Whether an API at `api_url` belongs to a host: the host itself, or `api.` before it.
pub(crate) fn serves(api_url: &str, host: &str) -> bool {
    let (Some(api), host) = (host_of(api_url).map(host_name), host_name(host)) else { return false };
    api.eq_ignore_ascii_case(host) || api.to_ascii_lowercase().strip_prefix("api.") == Some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(remote: &str) -> Option<String> {
        RepoAddress::parse(remote).map(|a| format!("{} {} {}", a.host, a.owner, a.name))
    }

    #[test]
    fn remotes_are_understood() {
        for remote in [
            "https://github.com/o/r.git",
            "https://github.com/o/r",
            "https://github.com/o/r/",
            "https://x-access-token:secret@github.com/o/r.git",
            "HTTPS://GitHub.com/o/r.git",
            "git@github.com:o/r.git",
            "github.com:o/r",
            "ssh://git@github.com/o/r.git",
            "ssh://git@ssh.github.com:443/o/r.git",
        ] {
            assert_eq!(parsed(remote).as_deref(), Some("github.com o r"), "{remote}");
        }
        assert_eq!(parsed("https://ghe.corp:8443/o/r.x").as_deref(), Some("ghe.corp:8443 o r.x"));
        assert_eq!(parsed("ssh://git@ghe.corp:2222/o/r").as_deref(), Some("ghe.corp o r"));
        for remote in [
            "/srv/git/o/r.git",
            "./a:b/c",
            "file:///srv/o/r",
            "https://github.com/o",
            "https://github.com/o/r/s",
            "https://github.com/o/..",
            "",
            "git@github.com:r.git",
            "https://github.com/o/r%2f",
        ] {
            assert_eq!(parsed(remote), None, "{remote}");
        }
    }

    #[test]
    fn issues_are_understood() {
        let found = parse_issue_url("https://github.com/o/r/issues/12#issuecomment-1").unwrap();
        assert_eq!((found.repo.full_name(), found.number), ("o/r".into(), 12));
        assert_eq!(parse_issue_url("https://ghe.corp/o/r/pull/3/").unwrap().repo.host, "ghe.corp");
        for url in [
            "https://github.com/o/r",
            "https://github.com/o/r/issues/0",
            "https://github.com/o/r/issues/1/x",
            "o/r#1",
            "https://github.com/o/r/wiki/1",
            "ssh://github.com/o/r/issues/1",
        ] {
            assert_eq!(parse_issue_url(url), None, "{url}");
        }
    }

    #[test]
    fn api_urls_follow_the_documentation() {
        assert_eq!(api_url("github.com"), "https://api.github.com");
        assert_eq!(api_url("octo.ghe.com"), "https://api.octo.ghe.com");
        assert_eq!(api_url("ghe.corp:8443"), "https://ghe.corp:8443/api/v3");
        assert_eq!(graphql_url("https://api.github.com"), "https://api.github.com/graphql");
        assert_eq!(graphql_url("https://ghe.corp/api/v3"), "https://ghe.corp/api/graphql");
        assert!(
            serves("https://api.github.com", "github.com") && serves("https://ghe.corp/api/v3", "ghe.corp")
        );
        assert!(serves("http://127.0.0.1:80/api/v3", "127.0.0.1:81"));
        assert!(
            !serves("https://api.github.com", "gitlab.com")
                && !serves("https://evilgithub.com", "github.com")
        );
    }
}
