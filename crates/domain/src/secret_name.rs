//! Names of variables and files that indicate a secret. The only place with such lists.

use std::path::Path;

/// Whether a variable of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    /// Anywhere in a name.
    const PARTS: &[&str] = &["SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY"];
    /// At its end, as separate words.
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
    // `GITHUB_TOKEN_2` is another token.
    let stem = upper.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_');
    let is_last = |name: &str| LAST.iter().any(|words| name.ends_with(words));
    PARTS.iter().any(|part| upper.contains(part)) || is_last(&upper) || is_last(stem)
}

/// `SSH_KEY_FILE`, `TOKEN_PATH`: where a secret is, not what it is.
fn names_a_place(upper: &str) -> bool {
    ["_FILE", "_PATH", "_DIR", "_SOCK"].iter().any(|end| upper.ends_with(end))
}

/// Whether a variable is a secret of the engine, which no agent and no check needs.
pub fn is_engine_secret(name: &str, value: &str) -> bool {
    name.starts_with("RALPH_") && (is_secret_name(name) || holds_login(value))
}

fn holds_login(value: &str) -> bool {
    value.split_once("://").is_some_and(|(_, rest)| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        authority.rsplit_once('@').is_some_and(|(login, _)| login.contains(':'))
    })
}

/// Whether a folder of this name holds secrets.
pub fn is_secret_folder(path: &Path) -> bool {
    const FOLDERS: &[&str] =
        &[".ssh", ".aws", ".gnupg", ".kube", ".azure", ".oci", ".gcloud", ".secrets", ".password-store"];
    // Packages use these folder names elsewhere.
    let at = path.ends_with(".config/gcloud") || path == Path::new("secrets");
    at || path.file_name().is_some_and(|name| FOLDERS.iter().any(|folder| name == *folder))
}

/// How secret a file is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSecrecy {
    /// Not secret.
    Open,
    /// A key, or a public certificate: only its content shows which.
    MayHoldKey,
    /// Something that its owner keeps from others.
    Secret,
}

/// How secret a file is, by its name.
pub fn file_secrecy(path: &Path) -> FileSecrecy {
    let name = path.file_name().map(|n| n.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let folder = path.parent().and_then(Path::file_name).map(|n| n.to_string_lossy().to_ascii_lowercase());
    let is_settings = || is_secret_file(&name, folder.as_deref().unwrap_or_default()) && !is_sample(&name);
    if is_key_store(&name) || is_settings() {
        return FileSecrecy::Secret;
    }
    // Bundles of public certificates have the same extension, and tools need them.
    match [".pem", ".key", "key.json"].iter().any(|end| name.ends_with(end)) {
        true => FileSecrecy::MayHoldKey,
        false => FileSecrecy::Open,
    }
}

/// Whether a file is a sample to copy, or encrypted.
fn is_sample(name: &str) -> bool {
    const SAMPLES: &[&str] = &["example", "sample", "template", "tmpl", "dist", "enc", "gpg", "age"];
    name.split('.').any(|part| SAMPLES.contains(&part))
}

/// Whether a file is a private key or a key store, whatever else its name says: `www.example.com.p12`.
fn is_key_store(name: &str) -> bool {
    const ENDS: &[&str] = &[".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk"];
    const KEYS: &[&str] = &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
    ENDS.iter().any(|end| name.ends_with(end))
        || KEYS.iter().any(|key| name.starts_with(key) && !name.ends_with(".pub"))
}

/// Whether a file of this name in this folder holds a secret. Both are in lower case.
fn is_secret_file(name: &str, folder: &str) -> bool {
    const NAMES: &str = ".env .envrc .dev.vars .netrc _netrc .npmrc .pypirc .git-credentials .pgpass pgpass.conf \
        .my.cnf .mylogin.cnf .htpasswd .boto .s3cfg .dockercfg .terraformrc terraform.rc .vault-token .vault_pass \
        .vault-pass vault_pass.txt deploy_key token.json tokens.json kubeconfig master.key local.settings.json \
        local_settings.py localsettings.php settings.local.php wp-config.php auth.json \
        application_default_credentials.json";
    /// In singular or plural, hidden or not, with any extension of a settings file.
    const STEMS: &[&str] = &["secret", "credential", "password", "token", "vault", "apikey"];
    const SETTINGS: &[&str] = &["", "yml", "yaml", "toml", "json", "ini", "env", "properties", "conf", "txt"];
    const ENDS: &[&str] = &[".tfvars", ".tfvars.json", ".tfstate", ".tfstate.backup", ".ovpn", ".kubeconfig"];
    /// Part of the name of a JSON file: a service account.
    const ACCOUNTS: &[&str] =
        &["service-account", "service_account", "serviceaccount", "client_secret", "gcp-key", "gcp_key"];
    let ending = name.trim_start_matches('.').split_once('.').map_or("", |(_, ending)| ending);
    let stem = name.strip_suffix(ending).unwrap_or(name).trim_end_matches('.');
    let state = |name: &str| name.starts_with("terraform.tfstate") || name.contains(".tfstate.");
    let word = stem.trim_start_matches('.').trim_end_matches('s').replace(['-', '_'], "");
    NAMES.split(' ').any(|known| known == name)
        || name.starts_with(".env.")
        || name.starts_with(".dev.vars.")
        || (name.starts_with("appsettings.") && name.ends_with(".json") && name != "appsettings.json")
        || (STEMS.contains(&word.as_str()) && SETTINGS.contains(&ending))
        || ENDS.iter().any(|end| name.ends_with(end))
        || state(name)
        || (name.ends_with(".json") && ACCOUNTS.iter().any(|word| name.contains(word)))
        || (name.ends_with(".key") && (name.starts_with("credentials") || folder == "credentials"))
        || (name == "config.json" && folder == ".docker")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_variable_names_are_recognized() {
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
    fn engine_secrets_are_recognized_by_name_or_value() {
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
    fn secret_file_names_are_recognized() {
        let of = |name: &str| file_secrecy(Path::new(name));
        for name in [
            ".env",
            "a/.env.local",
            "id_ed25519",
            "x.p12",
            "Credentials.json",
            "config/secrets.yml",
            "config/master.key",
            "config/credentials.production.key",
            "config/credentials/production.key",
            ".streamlit/secrets.toml",
            "service-account.json",
            "my-service-account-2.json",
            "terraform.tfstate",
            "terraform.tfstate.backup",
            "terraform.tfstate.1700000000.backup",
            "prod.tfstate",
            ".docker/config.json",
            ".vault-token",
            ".htpasswd",
            ".dev.vars",
            ".pgpass",
            ".my.cnf",
            "kubeconfig",
            "office.ovpn",
            ".boto",
            ".secrets.toml",
            ".secrets",
            "_netrc",
            "appsettings.Development.json",
            "src/Web/appsettings.Production.json",
            "wp-config.php",
            "group_vars/all/vault.yml",
            "token",
            ".token",
            "api_key.txt",
            "settings/local_settings.py",
        ] {
            assert_eq!(of(name), FileSecrecy::Secret, "{name}");
        }
        for name in [
            ".env.example",
            ".env.example.local",
            "config/secrets.yml.example",
            "secrets.sample.json",
            "example.tfvars",
            "config/credentials.yml.enc",
            "terraform.tfvars.example",
            "id_rsa.pub",
            "token.rs",
            "environment",
            "config/config.json",
            "secrets.rs",
            "credentials.py",
            "kubeconfig.go",
            "tfstate.md",
            "docker/config.json",
            "appsettings.json",
            "wp-config-sample.php",
            "vault.go",
            "token.md",
            "tokens.css",
        ] {
            assert_eq!(of(name), FileSecrecy::Open, "{name}");
        }
        assert_eq!(of("server.pem"), FileSecrecy::MayHoldKey);
        let folder = |name: &str| is_secret_folder(Path::new(name));
        assert!(folder(".config/gcloud") && folder(".ssh") && folder("secrets"));
        assert!(!folder("venv/lib/gcloud") && !folder("node_modules/x/secrets"));
    }
}
