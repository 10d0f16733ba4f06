//! Names that say "secret": of variables, and of files. The one place that knows them.

use std::path::Path;

/// Whether a variable of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    /// Anywhere in a name.
    const PARTS: &[&str] = &["SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY"];
    /// At its end, as words of their own.
    const LAST: &[&str] = &[
        "_KEY",
        "_TOKEN",
        "_PASS",
        "_PWD",
        "_PAT",
        "_PEM",
        "_DSN",
        "_AUTH",
        "_KEY_ID",
        "_KEY_BASE64",
        "_TOKEN_BASE64",
        "_DB_URL",
        "_DATABASE_URL",
        "_WEBHOOK_URL",
        "_CONNECTION_STRING",
    ];
    let upper = format!("_{}", name.to_ascii_uppercase().replace(['-', '.'], "_"));
    // `PWD` alone is a folder.
    if upper == "_PWD" || names_a_place(&upper) {
        return false;
    }
    // `GITHUB_TOKEN_2` is one more token.
    let stem = upper.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_');
    let is_last = |name: &str| LAST.iter().any(|words| name.ends_with(words));
    PARTS.iter().any(|part| upper.contains(part)) || is_last(&upper) || is_last(stem)
}

/// `SSH_KEY_FILE`, `TOKEN_PATH`: where a secret is, not what it is.
fn names_a_place(upper: &str) -> bool {
    ["_FILE", "_PATH", "_DIR", "_SOCK"].iter().any(|end| upper.ends_with(end))
}

/// Whether a variable is a secret of the engine's own, which no agent and no check has any use for.
pub fn is_engine_secret(name: &str, value: &str) -> bool {
    name.starts_with("RALPH_") && (is_secret_name(name) || holds_login(value))
}

/// Whether an address has a password in it.
fn holds_login(value: &str) -> bool {
    value.split_once("://").is_some_and(|(_, rest)| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        authority.rsplit_once('@').is_some_and(|(login, _)| login.contains(':'))
    })
}

/// Whether a folder of this name is kept for secrets.
pub fn is_secret_folder(path: &Path) -> bool {
    path.file_name().is_some_and(|name| [".ssh", ".aws", ".gnupg", ".kube"].iter().any(|n| name == *n))
}

/// What the name of a file says of what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSecrecy {
    /// Nothing.
    Open,
    /// A key, or a public certificate: only its content tells.
    MayHoldKey,
    /// Something that its owner keeps from others.
    Secret,
}

/// What the name of a file says of it.
pub fn file_secrecy(path: &Path) -> FileSecrecy {
    const NAMES: &[&str] = &[
        ".env",
        ".envrc",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".git-credentials",
        "credentials.json",
        "secrets.json",
    ];
    const ENDS: &[&str] = &[".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".tfvars"];
    const KEYS: &[&str] = &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
    let name = path.file_name().map(|n| n.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let sample = [".example", ".sample", ".template", ".dist"].iter().any(|end| name.ends_with(end));
    if NAMES.contains(&name.as_str())
        || (name.starts_with(".env.") && !sample)
        || ENDS.iter().any(|end| name.ends_with(end))
        || KEYS.iter().any(|key| name.starts_with(key) && !name.ends_with(".pub"))
    {
        return FileSecrecy::Secret;
    }
    // Bundles of public certificates have the same ending, and tools need them.
    match [".pem", ".key"].iter().any(|end| name.ends_with(end)) {
        true => FileSecrecy::MayHoldKey,
        false => FileSecrecy::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        for yes in [
            "GITHUB_PAT",
            "ANTHROPIC_API_KEY",
            "RALPH_DB_URL",
            "RALPH_HOOK_TOKEN",
            "my_password",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID",
            "GITHUB_APP_PRIVATE_KEY_PEM",
            "DATABASE_URL",
            "MYSQL_PWD",
            "PGPASSWORD",
            "SENTRY_DSN",
            "NPM_AUTH",
            "SLACK_WEBHOOK_URL",
            "TOKEN",
            "GITHUB_TOKEN_2",
            "SSH_PASSPHRASE",
            "npm-token",
        ] {
            assert!(is_secret_name(yes), "{yes}");
        }
        for no in [
            "HOME",
            "PATH",
            "PWD",
            "OLDPWD",
            "KEYBOARD",
            "MONKEY",
            "SSH_AUTH_SOCK",
            "MAX_TOKENS",
            "TOKENIZERS_PARALLELISM",
            "AUTHOR",
            "GIT_AUTHOR_NAME",
            "SSH_KEY_FILE",
            "RALPH_RUN",
            "COMPASS",
        ] {
            assert!(!is_secret_name(no), "{no}");
        }
    }

    #[test]
    fn the_engines_own_secrets_are_known_by_name_or_by_what_they_hold() {
        assert!(is_engine_secret("RALPH_DB_URL", "postgres://db/x"));
        assert!(is_engine_secret("RALPH_STORE", "postgres://me:pw@db/x"));
        assert!(!is_engine_secret("RALPH_SITE", "https://example.org/a:b@c"));
        assert!(!is_engine_secret("RALPH_ITERATION", "3"));
        assert!(
            !is_engine_secret("DATABASE_URL", "postgres://me:pw@db/x"),
            "the user's own, for their tests"
        );
    }

    #[test]
    fn names_of_files() {
        let of = |name: &str| file_secrecy(Path::new(name));
        for name in [".env", "a/.env.local", "id_ed25519", "x.p12", "Credentials.json"] {
            assert_eq!(of(name), FileSecrecy::Secret, "{name}");
        }
        for name in [".env.example", "id_rsa.pub", "token.rs", "environment"] {
            assert_eq!(of(name), FileSecrecy::Open, "{name}");
        }
        assert_eq!(of("server.pem"), FileSecrecy::MayHoldKey);
    }
}
