//! The task as given on the command line: a file, a sentence, or stdin.

use super::RunArgs;
use crate::error::CommandError;
use ralph_loop_app::TaskInput;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Larger than any task.
const MAX_TEXT: u64 = 1024 * 1024;

/// The task of a single run.
pub fn task(args: &RunArgs, folder: &Path) -> Result<TaskInput, CommandError> {
    if let Some(issue) = &args.issue {
        return Ok(TaskInput::Issue(issue.clone()));
    }
    if let Some(text) = &args.text {
        return match text.as_str() {
            "-" => standard_input(),
            text => sentence(text),
        };
    }
    if let Some(file) = &args.prompt {
        return Ok(TaskInput::File(file.clone()));
    }
    match args.tasks.as_slice() {
        [] => Ok(args.ralph_dir.as_deref().map_or(TaskInput::Found, in_ralph_dir)),
        [word] if word == "-" => standard_input(),
        [word] if word.trim().is_empty() || is_sentence(word, folder) => sentence(word),
        [word, ..] => Ok(TaskInput::File(PathBuf::from(word))),
    }
}

/// The files of parallel runs. Sentences are rejected: each run has its own clone, branch and cost, named
/// after its file.
pub fn files(args: &RunArgs, folder: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let exists = |word: &String| folder.join(word).symlink_metadata().is_ok();
    let is_named = |word: &String| word.contains('/') || word.ends_with(".md") || word.ends_with(".json");
    if !args.tasks.iter().any(|word| exists(word) || is_named(word) || is_sentence(word, folder)) {
        let whole = ralph_loop_protocol::display::text::one_line(&args.tasks.join(" "), 80);
        return Err(CommandError::usage("the task must be one quoted argument".to_owned())
            .hint(format!("put it into quotes: `ralph run \"{whole}\"`")));
    }
    let mut seen = std::collections::BTreeSet::new();
    if let Some(twice) = args.tasks.iter().find(|word| !seen.insert(same_file(folder, word))) {
        return Err(CommandError::usage(format!("`{twice}` is named twice: each task runs once"))
            .hint("name each file once; `ralph run --worktree` twice starts two runs of one task"));
    }
    match args.tasks.iter().find(|word| *word == "-" || is_sentence(word, folder)) {
        None => Ok(args.tasks.iter().map(PathBuf::from).collect()),
        Some(word) => Err(CommandError::usage(format!(
            "one sentence at a time: `{}` is not a task file",
            ralph_loop_protocol::display::text::one_line(word, 60)
        ))
        .hint(
            "put one sentence into quotes (`ralph run \"Fix the failing tests\"`), or name task files only",
        )),
    }
}

/// Resolves a file's different names.
fn same_file(folder: &Path, word: &str) -> PathBuf {
    let path = folder.join(word);
    path.canonicalize().unwrap_or(path)
}

/// A plan in another folder than `ralph/`.
fn in_ralph_dir(dir: &Path) -> TaskInput {
    TaskInput::File(dir.join("tasks.json"))
}

/// Whether an argument is a sentence rather than a file name. Existing files, single words and paths are
/// files, because a mistyped name must not start a run. Several words are a sentence, even if it ends with a
/// file name.
fn is_sentence(word: &str, folder: &Path) -> bool {
    let there = |path: &str| folder.join(path).symlink_metadata().is_ok();
    let mut words = word.split_whitespace();
    let (Some(first), Some(_)) = (words.next(), words.next()) else { return false };
    if there(word) {
        return false;
    }
    // `docs/my task`, but not `Fix the order in src/router.rs`.
    word.contains('\n') || !(first.contains('/') || first.starts_with('~'))
}

fn sentence(text: &str) -> Result<TaskInput, CommandError> {
    match text.trim() {
        "" => Err(CommandError::usage("the task is empty")
            .hint("describe the task: `ralph run \"Fix the failing tests\"`")),
        text => Ok(TaskInput::Text(format!("{text}\n"))),
    }
}

fn standard_input() -> Result<TaskInput, CommandError> {
    let failed =
        |what: String| CommandError::usage(format!("cannot read the task from standard input: {what}"));
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(MAX_TEXT + 1).read_to_end(&mut bytes).map_err(|e| failed(e.to_string()))?;
    if bytes.len() as u64 > MAX_TEXT {
        return Err(
            failed("it has more than 1 MiB".into()).hint("put long material into files, and name them")
        );
    }
    sentence(&String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8 text".into()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_not_sentences() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("docs")).unwrap();
        for name in ["my task", "README.md"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        for file in ["PROMPT.md", "fix", "my task", "docs/my task", "./a b", "docs/a b.json", "~/a b.md"] {
            assert!(!is_sentence(file, folder.path()), "{file}");
        }
        for words in [
            "Fix the failing tests",
            "Fix the order in src/router.rs",
            "Rewrite README.md",
            "Update the CHANGELOG.md",
            "Rename the key in settings.json",
            "one\ntwo.md",
            "use and/or of docs",
        ] {
            assert!(is_sentence(words, folder.path()), "{words}");
        }
    }
}
