//! Whether a task asks for a file to be changed. A file that decides the result is changed only by who was told to.

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

/// Words of a sentence that may stand between the verb and the file.
const BETWEEN: usize = 8;

/// Whether `task` asks for `path` to be changed: a verb of change, then the file's name, in one sentence.
pub fn asks_to_change(task: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let path = path.to_ascii_lowercase();
    for sentence in task.to_ascii_lowercase().split(['\n', '!', '?', ';']).flat_map(|line| line.split(". ")) {
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
            let before = &words[at.saturating_sub(BETWEEN)..at];
            let from = before.iter().rposition(|w| PURPOSE.contains(w)).map_or(0, |at| at + 1);
            if before[from..].iter().any(|w| VERBS.contains(w)) {
                return true;
            }
        }
    }
    false
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
        ] {
            assert_eq!(
                asks_to_change(task, "tools/run.sh") || asks_to_change(task, "Makefile"),
                asked,
                "{task}"
            );
        }
    }
}
