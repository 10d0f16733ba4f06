//! What belongs to a script of a check: the files beside it that it names.

use crate::weakened::is_test_source;
use std::collections::BTreeSet;

/// Words in the names of files that serve a check, and are not what it checks.
const HELPERS: &[&str] = &[
    "check",
    "test",
    "spec",
    "expect",
    "want",
    "verif",
    "lint",
    "assert",
    "golden",
    "fixture",
    "harness",
    "helper",
    "common",
    "util",
    "setting",
    "config",
    "option",
    "baseline",
    "reference",
];

/// Ends of names of settings.
const SETTINGS: &[&str] = &[
    "cfg",
    "ini",
    "conf",
    "env",
    "rc",
    "toml",
    "yaml",
    "yml",
    "json",
    "mk",
    "properties",
    "bashrc",
    "profile",
];

/// Files that are looked through for names, at most.
const FILES: usize = 200;

/// Whether a file serves a check by its name: settings, expectations, helpers.
pub fn is_helper(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    name.starts_with('.') || SETTINGS.contains(&end) || HELPERS.iter().any(|word| name.contains(word))
}

/// Those of `changed` that stand beside one of `scripts` and that it, or one of those, names: helpers, and modules of its own
/// language. In the folder `top`, where the product stands, too, only helpers count; what a script of a shell runs is found
/// by its lines.
pub fn beside_scripts(
    scripts: &[String],
    top: &str,
    changed: &[&str],
    read: &dyn Fn(&str) -> Option<String>,
) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = BTreeSet::new();
    let mut open: Vec<String> = scripts.to_vec();
    let mut seen = BTreeSet::new();
    while let Some(script) = open.pop() {
        if seen.len() >= FILES || !seen.insert(script.clone()) {
            continue;
        }
        let Some(text) = read(&script) else { continue };
        let folder = script.rsplit_once('/').map_or("", |(folder, _)| folder);
        for path in changed.iter().filter(|path| !seen.contains(**path)) {
            let below = match folder {
                "" => (!path.contains('/')).then_some(*path),
                folder => path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')),
            };
            let Some(below) = below else { continue };
            // What stands beside a test is what it tests.
            let module = folder != top
                && !is_shell_script(&script)
                && !is_test_source(&script)
                && end_of(path) == end_of(&script);
            if !module && !is_helper(path) {
                continue;
            }
            let stem = below.split(['/', '.']).find(|part| !part.is_empty()).unwrap_or(below);
            let name = below.rsplit('/').next().unwrap_or(below);
            let last = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
            if has_word(&text, stem) || has_word(&text, last) {
                found.insert((*path).to_owned());
                open.push((*path).to_owned());
            }
        }
    }
    found
}

fn end_of(path: &str) -> &str {
    path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map_or("", |(_, end)| end)
}

fn is_shell_script(path: &str) -> bool {
    matches!(end_of(path), "sh" | "bash" | "zsh" | "")
}

fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(part) && !after.is_some_and(part)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_of_a_check_names_beside_itself_belongs_to_it() {
        let files = [
            ("tools/check.py", "from checklib import verify\nverify()\n"),
            ("tools/checklib.py", "import deep\n"),
            ("tools/deep.py", ""),
            ("tools/unrelated.py", ""),
            ("tools/run.sh", "grep -q x tools/part.txt\n"),
            ("check.sh", ". ./helpers.sh\n./app.sh\n"),
        ];
        let read = |path: &str| files.iter().find(|(p, _)| *p == path).map(|(_, text)| (*text).to_owned());
        let changed = [
            "tools/checklib.py",
            "tools/deep.py",
            "tools/unrelated.py",
            "helpers.sh",
            "app.sh",
            "src/a.py",
            "tools/part.txt",
        ];
        let scripts = ["tools/check.py", "tools/run.sh", "check.sh"].map(str::to_owned);
        let found: Vec<String> = beside_scripts(&scripts, "", &changed, &read).into_iter().collect();
        assert_eq!(found, ["helpers.sh", "tools/checklib.py", "tools/deep.py"]);
    }
}
