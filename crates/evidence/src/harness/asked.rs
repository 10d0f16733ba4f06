//! Whether a task asks for a file to be changed. A file that decides the result is changed only by who was told to.

use crate::weakened::is_test_path;

/// Words by which people ask for a change.
const VERBS: &[&str] = &[
    "add",
    "adapt",
    "adjust",
    "change",
    "clean",
    "convert",
    "correct",
    "create",
    "edit",
    "extend",
    "fix",
    "implement",
    "improve",
    "migrate",
    "modify",
    "move",
    "port",
    "reformat",
    "refactor",
    "rename",
    "replace",
    "rewrite",
    "simplify",
    "split",
    "tidy",
    "update",
    "write",
];

/// Words after which the rest of a sentence says when it is done, not what is to be done.
const PURPOSE: &[&str] =
    &["so", "until", "that", "pass", "passes", "pass.", "because", "via", "using", "with", "by"];

/// Words that turn a request into its contrary, before the verb or between it and the file.
const NOT: &[&str] = &[
    "not",
    "never",
    "no",
    "nor",
    "neither",
    "without",
    "avoid",
    "don't",
    "dont",
    "cannot",
    "can't",
    "mustn't",
    "shouldn't",
    "won't",
    "instead",
    "rather",
    "except",
];
/// Words that do so between the verb and the file alone: "update the parser and leave the Makefile as it is".
const LEAVE: &[&str] = &["leave", "keep", "keeping", "leaving"];
/// Words before the verb that are looked at.
const BEFORE: usize = 4;

/// Beginnings of words by which a test that is to be fixed is one that the product must pass.
const FAILING: &[&str] = &["fail", "pass", "broken", "breaks", "red", "green", "error"];

/// Words of a sentence that may stand between the verb and the file.
const BETWEEN: usize = 8;

/// Whether `task` asks for `path` to be changed: a verb of change, then the file's name, in one sentence.
pub fn asks_to_change(task: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let path = path.to_ascii_lowercase();
    let task = task.replace('’', "'").to_ascii_lowercase();
    for sentence in task.split(['\n', '!', '?', ';']).flat_map(|line| line.split(". ")) {
        let words: Vec<&str> = sentence
            .split_whitespace()
            .map(|w| w.trim_start_matches(|c: char| !(c.is_alphanumeric() || "._-/".contains(c))))
            .map(|w| w.trim_end_matches(|c: char| !(c.is_alphanumeric() || "_-/".contains(c))))
            .collect();
        for (at, word) in words.iter().enumerate() {
            let named = *word == name || word.trim_start_matches("./") == path;
            if !named {
                continue;
            }
            let from = at.saturating_sub(BETWEEN);
            let purpose = words[from..at].iter().rposition(|w| PURPOSE.contains(w));
            let from = purpose.map_or(from, |purpose| from + purpose + 1);
            if (from..at).any(|verb| is_request(&words, verb, at, &path)) {
                return true;
            }
        }
    }
    false
}

/// Whether the word at `verb` asks for a change of the file `path` at `file`.
fn is_request(words: &[&str], verb: usize, file: usize, path: &str) -> bool {
    let negated = words[verb.saturating_sub(BEFORE)..file].iter().any(|w| NOT.contains(w))
        || words[verb..file].iter().any(|w| LEAVE.contains(w));
    // "Fix the failing test in test_part.py" asks for product that passes it.
    let only_failing = words[verb] == "fix"
        && is_test_path(path)
        && words.iter().any(|w| FAILING.iter().any(|failing| w.starts_with(failing)));
    VERBS.contains(&words[verb]) && !negated && !only_failing
}

/// Whether `task` speaks of the file `path` by its name.
pub fn names(task: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let path = path.to_ascii_lowercase();
    let task = task.to_ascii_lowercase();
    let mut words = task.split(|c: char| !(c.is_alphanumeric() || "._-/".contains(c)));
    words.any(|word| {
        let word = word.trim_end_matches(['.', '/', '-']).trim_start_matches("./");
        word.len() > 2 && (word == name || word == path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_names_files_in_any_sentence() {
        let task = "`text.sh` has three functions (see ./lib/more.sh). Nothing else.";
        assert!(names(task, "text.sh") && names(task, "lib/more.sh") && !names(task, "other/more.sh"));
        assert!(!names(task, "ext.sh") && !names(task, "want.cfg"));
    }

    #[test]
    fn a_failing_test_is_no_request_to_change_it() {
        for (task, asked) in [
            ("Fix the failing test in test_part.py", false),
            ("Fix test_part.py, which fails", false),
            ("Fix the typo in test_part.py", true),
            ("Rewrite the failing test_part.py", true),
        ] {
            assert_eq!(asks_to_change(task, "test_part.py"), asked, "{task}");
        }
    }

    #[test]
    fn only_a_request_to_change_a_file_is_one() {
        for (task, asked) in [
            ("Add a `lint` target to the Makefile.", true),
            ("# Task\n\nUpdate tools/run.sh to print more", true),
            ("Please extend `./tools/run.sh`.", true),
            ("Fix the code so that tools/run.sh passes", false),
            ("Make tools/run.sh pass", false),
            ("Run tools/run.sh to see whether it works", false),
            ("Write part.txt. The Makefile checks it", false),
            ("Change the parser", false),
            ("Do not change the Makefile.", false),
            ("Please don’t edit tools/run.sh", false),
            ("You must never modify the Makefile", false),
            ("Change the parser, not the Makefile", false),
            ("Update the docs and leave the Makefile as it is", false),
            ("Fix part.py without changing it. Then update the Makefile", true),
        ] {
            assert_eq!(
                asks_to_change(task, "tools/run.sh") || asks_to_change(task, "Makefile"),
                asked,
                "{task}"
            );
        }
    }
}
