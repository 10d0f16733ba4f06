//! What a run that a server was asked for may make this machine itself contact. The rest of the server's policy is
//! its configuration file, which such a run reads in place of the owner's ([`Environment::user_config`]).

use crate::agents::isolation;
use crate::config::settings;
use crate::environment::Environment;
use crate::error::AppError;
use ralph_loop_git::checkout::shown;

/// Refuses to clone from a host that isn't on the public internet, unless the server's policy names it. Paths are
/// checked where they are chosen.
pub(crate) fn check_clone(env: &Environment, url: &str) -> Result<(), AppError> {
    if !env.is_of_server() {
        return Ok(());
    }
    let refused = |why: &str| {
        Err(AppError::usage(format!("this server doesn't connect to `{}`", shown(url)))
            .cause(why.to_owned())
            .hint("name a public repo; an admin lists other code hosts as `allowed_hosts` in the server's configuration"))
    };
    match Host::of(url) {
        Host::None => Ok(()),
        Host::Unclear => refused("its host is ambiguous"),
        Host::At(host, port) => {
            let hosts = settings::user_file(env)?.allowed_hosts.unwrap_or_default();
            match isolation::named_hosts(&hosts).refuses_outside(&host, port) {
                None => Ok(()),
                Some(why) => refused(&why),
            }
        }
    }
}

/// Where git connects for a URL.
#[derive(Debug, PartialEq, Eq)]
enum Host {
    /// Nowhere: it is a path.
    None,
    At(String, u16),
    /// Programs could read it in several ways.
    Unclear,
}

impl Host {
    fn of(url: &str) -> Self {
        let url = url.trim();
        let unclear = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '\\' | '%');
        let (authority, usual) = match url.split_once("://") {
            Some((scheme, rest)) => {
                let usual = match scheme.to_ascii_lowercase().as_str() {
                    "file" => return Self::None,
                    "https" => 443,
                    "http" => 80,
                    "ssh" | "git+ssh" | "ssh+git" => 22,
                    "git" => 9418,
                    _ => return Self::Unclear,
                };
                (rest.split(['/', '?', '#']).next().unwrap_or_default(), usual)
            }
            // `user@host:path`; a path may have a colon after its first slash.
            None => match url.find("]:").map(|at| at + 1).or_else(|| url.find(':')) {
                Some(at) if !url[..at].contains('/') => match url[at..].starts_with("::") {
                    // The name of a helper program.
                    true => return Self::Unclear,
                    false => (&url[..at], 22),
                },
                _ => return Self::None,
            },
        };
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let (host, port) = match (host.strip_prefix('['), host.rsplit_once(':')) {
            (Some(inner), _) => match inner.split_once(']') {
                Some((host, rest)) => (host, rest.strip_prefix(':').unwrap_or_default()),
                None => return Self::Unclear,
            },
            (None, Some((host, port))) => (host, port),
            (None, None) => (host, ""),
        };
        let port = if port.is_empty() { Some(usual) } else { port.parse().ok() };
        match port {
            Some(port) if !host.is_empty() && !host.starts_with('-') && !authority.contains(unclear) => {
                Self::At(host.to_owned(), port)
            }
            _ => Self::Unclear,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_the_one_that_git_connects_to() {
        let at = |host: &str, port| Host::At(host.to_owned(), port);
        for (url, host) in [
            ("https://h.example/o/r", at("h.example", 443)),
            ("HTTPS://me:pw@h.example:8443/o/r", at("h.example", 8443)),
            ("https://good.example@127.0.0.1/x", at("127.0.0.1", 443)),
            ("http://[::1]:80/x", at("::1", 80)),
            ("ssh://git@127.0.0.1/x", at("127.0.0.1", 22)),
            ("git@h.example:o/r.git", at("h.example", 22)),
            ("git@[::1]:o/r", at("::1", 22)),
            ("h.example:o/r", at("h.example", 22)),
            ("/srv/git/r.git", Host::None),
            ("./a:b", Host::None),
            ("file:///srv/r", Host::None),
        ] {
            assert_eq!(Host::of(url), host, "{url}");
        }
        for url in [
            "https://good.example\\@127.0.0.1/x",
            "https://%31%32%37.0.0.1/",
            "https:///x",
            "https://a:b:c/",
            "ext::sh -c id",
            "ssh://-oProxyCommand=x/y",
            "-oProxyCommand=x:y",
            "weird://127.0.0.1/",
            "https://[::1/x",
        ] {
            assert_eq!(Host::of(url), Host::Unclear, "{url}");
        }
    }
}
