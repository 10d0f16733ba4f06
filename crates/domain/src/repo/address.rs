//! URLs of repos and servers, with and without their login.

/// Schemes whose user is a name, not a secret.
const NAMED_USERS: [&str; 3] = ["ssh", "git+ssh", "ssh+git"];
const HIDDEN: &str = "?…";
/// A shorter password isn't searched for: its letters occur everywhere.
const SECRET_MIN: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Without its login; the scheme in lower case, trimmed.
    pub clean: String,
    pub login: Option<(String, String)>,
}

impl Address {
    pub fn of(text: &str) -> Self {
        let text = text.trim();
        let Some((scheme, rest)) = text.split_once("://") else {
            return match password_of_scp(text) {
                Some((user, password, rest)) => {
                    Self { clean: rest.to_owned(), login: Some((user.to_owned(), password.to_owned())) }
                }
                None => Self { clean: text.to_owned(), login: None },
            };
        };
        let lower = scheme.to_ascii_lowercase();
        let Some((login, after)) = login_of(rest).filter(|_| lower != "file") else {
            return Self { clean: format!("{lower}://{rest}"), login: None };
        };
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        if NAMED_USERS.contains(&lower.as_str()) {
            // Such a URL never carries a password.
            let login = (!password.is_empty()).then(|| (user.to_owned(), password.to_owned()));
            return Self { clean: format!("{lower}://{user}@{after}"), login };
        }
        Self { clean: format!("{lower}://{after}"), login: Some((user.to_owned(), password.to_owned())) }
    }

    /// For display: without its query, which may hold a token.
    pub fn shown(&self) -> String {
        match self.query() {
            Some((before, _)) => format!("{before}{HIDDEN}"),
            None => self.clean.clone(),
        }
    }

    fn query(&self) -> Option<(&str, &str)> {
        let is_server = self.clean.contains("://") && !self.clean.starts_with("file://");
        self.clean.split_once('?').filter(|_| is_server)
    }
}

/// A URL for display: without login and query.
pub fn without_login(address: &str) -> String {
    Address::of(address).shown()
}

/// Removes what is secret in `address` from `text`.
pub fn scrubbed(text: &str, address: &str) -> String {
    let parts = Address::of(address);
    let shown = parts.shown();
    let mut text = if shown == address { text.to_owned() } else { text.replace(address, &shown) };
    let query = parts.query().map(|(_, query)| query.to_owned());
    let values = query.iter().flat_map(|query| query.split('&')).map(|pair| match pair.split_once('=') {
        Some((_, value)) => value,
        None => pair,
    });
    let login = parts.login.iter().flat_map(|(user, password)| {
        let user = if password.is_empty() { user.as_str() } else { "" };
        // Other readers of such a URL take a part of the password for the host.
        [user, password.as_str()].into_iter().chain(password.split(['@', '/', ':']))
    });
    for secret in values.chain(login).filter(|secret| secret.len() >= SECRET_MIN) {
        text = text.replace(secret, "…");
    }
    text
}

/// The login of `login@host/path`, and the rest. A password may hold an unencoded slash.
fn login_of(rest: &str) -> Option<(&str, &str)> {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if let Some((login, _)) = authority.rsplit_once('@') {
        return Some((login, rest.get(login.len() + 1..)?));
    }
    let is_port = |port: &str| port.is_empty() || port.bytes().all(|byte| byte.is_ascii_digit());
    let bracketed = authority.starts_with('[');
    let (_, port) = authority.split_once(':').filter(|_| !bracketed)?;
    let at = path.rfind('@').filter(|_| !is_port(port))?;
    Some((rest.get(..end + at)?, rest.get(end + at + 1..)?))
}

/// `user:password@host:path`, which git would misread.
fn password_of_scp(text: &str) -> Option<(&str, &str, &str)> {
    let before_path = text.split('/').next().unwrap_or(text);
    let (login, _) = before_path.rsplit_once('@')?;
    let (user, password) = login.split_once(':')?;
    Some((user, password, text.get(login.len() + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_are_hidden_in_every_notation() {
        for (address, shown) in [
            ("https://me:hush-hush@h.org/x.git", "https://h.org/x.git"),
            ("HTTPS://me:hush-hush@h.org:8443/x", "https://h.org:8443/x"),
            ("https://hush-hush@h.org/x", "https://h.org/x"),
            (" https://me:hush-hush@h.org/x ", "https://h.org/x"),
            ("https://me:a@hush-hush@h.org/x", "https://h.org/x"),
            ("https://me:a/hush-hush@h.org/x", "https://h.org/x"),
            ("https://me:hush-hush@h.org:1\\x.git", "https://h.org:1\\x.git"),
            ("ssh://me:hush-hush@h.org/x", "ssh://me@h.org/x"),
            ("git+https://me:hush-hush@h.org/x", "git+https://h.org/x"),
            ("ftp://me:hush-hush@h.org/x", "ftp://h.org/x"),
            ("https://h.org/x.git?private_token=hush-hush", "https://h.org/x.git?…"),
            ("me:hush-hush@h.org:x.git", "h.org:x.git"),
        ] {
            assert_eq!(without_login(address), shown, "{address}");
            let said = format!("cannot reach '{address}': hush-hush");
            assert!(!scrubbed(&said, address).contains("hush-hush"), "{address}");
        }
        for same in [
            "git@github.com:a/b.git",
            "/srv/x@y/z",
            "https://example.com/a@b",
            "http://[::1]:80/a@b",
            "ssh://git@github.com/o/r",
            "file:///srv/a?b",
            "../x",
        ] {
            assert_eq!(without_login(same), same);
            assert_eq!(Address::of(same).login, None, "{same}");
            assert_eq!(scrubbed(&format!("about {same}"), same), format!("about {same}"));
        }
    }
}
