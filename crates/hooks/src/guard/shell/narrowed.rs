//! `env | grep NAME`: the environment, of which only variables are shown that hold no secret.

use ralph_loop_domain::secret_name::is_secret_name;

/// What prints the environment.
const ALL: &[&str] = &["env", "printenv", "set", "export", "export -p", "declare -x"];
/// Letters of options of `grep` that show no more than what matches.
const OPTIONS: &str = "iEFwxoqcsnPa";
/// Parts of names of variables, and of what stands in them, that go with secrets.
const TELLING: &[&str] = &[
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PASS",
    "CREDENTIAL",
    "CREDS",
    "API_KEY",
    "APIKEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "SIGNING_KEY",
    "AUTH",
    "BEARER",
    "BASIC",
    "SESSION",
    "COOKIE",
    "ANTHROPIC",
    "OPENAI",
    "CLAUDE",
    "CODEX",
    "GEMINI",
    "GOOGLE",
    "GITHUB",
    "GH_",
    "GITLAB",
    "AWS",
    "AZURE",
    "SLACK",
    "STRIPE",
    "NPM_",
    "HF_",
    "DATABASE",
    "DB_",
    "POSTGRES",
    "MYSQL",
    "REDIS",
    "MONGO",
    "HTTP",
    "URL",
    "PROXY",
    "DSN",
    "WEBHOOK",
    "JWT",
    "EYJ",
    "GHP_",
    "XOX",
    "RSA",
    "SSH",
    "BEGIN",
    "CERT",
    "SENTRY",
    "DOCKER",
    "REGISTRY",
    "AGE_",
    "GPG",
];

/// Whether a pipe shows only variables that hold no secret.
pub(super) fn is_harmless(first: &str, filter: &str) -> bool {
    if !ALL.contains(&first.split_whitespace().collect::<Vec<_>>().join(" ").as_str()) {
        return false;
    }
    // What is quoted with spaces or put together is not looked at any closer.
    let words: Vec<&str> = filter.split_whitespace().collect();
    let Some((program, rest)) = words.split_first() else { return false };
    if !["grep", "egrep", "fgrep", "rg"].contains(program) {
        return false;
    }
    let (mut patterns, mut is_pattern) = (Vec::new(), false);
    for word in rest {
        match word.strip_prefix('-') {
            _ if is_pattern => {
                patterns.push(*word);
                is_pattern = false;
            }
            Some("e") => is_pattern = true,
            Some("-color" | "-color=auto" | "-color=never" | "-ignore-case") => {}
            Some(letters) if !letters.is_empty() && letters.chars().all(|one| OPTIONS.contains(one)) => {}
            Some(_) => return false,
            None if patterns.is_empty() => patterns.push(*word),
            None => return false,
        }
    }
    !patterns.is_empty() && patterns.iter().all(|pattern| names_nothing_secret(pattern))
}

/// Whether every alternative of a pattern is a plain name of a variable that holds no secret.
fn names_nothing_secret(pattern: &str) -> bool {
    let bare = pattern.trim_matches(['\'', '"']).replace("\\|", "|");
    let bare = bare.trim_start_matches('(').trim_end_matches(')');
    bare.split('|').all(|one| {
        let whole = one.starts_with('^') && one.ends_with('=');
        let name = one.trim_start_matches('^').trim_end_matches(['$', '=', '*', '.']);
        let plain = name.len() >= if whole { 1 } else { 3 }
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let upper = name.to_uppercase();
        let telling = |part: &&str| match whole {
            true => upper.contains(*part),
            false => upper.contains(*part) || part.contains(upper.as_str()),
        };
        plain && !is_secret_name(name) && !TELLING.iter().any(telling)
    })
}

#[cfg(test)]
mod tests {
    use super::is_harmless;

    #[test]
    fn only_plain_names_of_variables_without_secrets_are_harmless() {
        for filter in [
            "grep PATH",
            "grep -i node",
            "grep '^CI='",
            "grep -E 'NODE|RUST'",
            "grep -e CARGO -e RUST",
            "rg RALPH_ITERATION",
            "egrep \"LANG|LC_ALL\"",
        ] {
            assert!(is_harmless("env", filter), "{filter}");
        }
        for filter in [
            "grep -i token",
            "grep -v PATH",
            "grep KEY",
            "grep API",
            "grep .",
            "grep ''",
            "grep =",
            "grep -A9 PATH",
            "grep A",
            "grep -f names",
            "grep $X",
            "grep 'PATH|TOKEN'",
            "sort",
            "grep PATH other",
            "grep '^GITHUB_TOKEN='",
            "grep SHA\\|KEY",
            "grep -E 'P|x'",
            "grep http",
            "cat",
        ] {
            assert!(!is_harmless("env", filter), "{filter}");
        }
        assert!(!is_harmless("env -u X", "grep PATH") && !is_harmless("cat .env", "grep PATH"));
    }
}
