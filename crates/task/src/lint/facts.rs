//! Warnings about the caller's machine: missing programs, checks that pass before any work.

use super::{Diagnostic, Findings, LintFacts};
use crate::config::CommandLine;
use crate::criterion::{Criterion, Span};
use crate::dialect::TaskFile;
use ralph_loop_protocol::display::text::one_line;

pub(super) fn check(task: &TaskFile, facts: &LintFacts, found: &mut Findings) {
    for (command, place) in task.commands() {
        for program in programs_of(command) {
            if facts.missing_programs.contains(&program) {
                found.warning(
                    "missing-program",
                    place,
                    format!("`{program}` of `{}` does not exist here", one_line(&command.display(), 80)),
                    "install it, correct its name, or make it with a set-up command",
                );
            }
        }
    }
}

/// The criteria, by id, whose check passes before any work.
pub fn passing_already(task: &TaskFile, ids: &[String]) -> Vec<Diagnostic> {
    let criteria = task.criteria.iter().filter(|criterion| ids.contains(&criterion.id));
    let warning = |criterion: &Criterion| {
        Diagnostic::warning(
            "passes-already",
            &task.source,
            criterion.place,
            format!(
                "the check of `{}` passes before any work, so it proves nothing ({})",
                criterion.id,
                criterion.check.describe()
            ),
            "check something that doesn't exist yet, or remove the criterion",
        )
    };
    criteria.map(warning).collect()
}

/// The programs that the task's commands start, each once. Only certain names: words of the shell and names made by
/// expansion are left out.
pub fn programs(task: &TaskFile) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let commands: Vec<(&CommandLine, Span)> = task.commands();
    for program in commands.into_iter().flat_map(|(command, _)| programs_of(command)) {
        if !out.contains(&program) {
            out.push(program);
        }
    }
    out
}

const SHELL_WORDS: &[&str] = &[
    "!", ".", ":", "[", "[[", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done",
    "echo", "elif", "else", "esac", "eval", "exec", "exit", "export", "false", "fg", "fi", "for", "function",
    "if", "jobs", "kill", "let", "local", "printf", "pwd", "read", "readonly", "return", "set", "shift",
    "source", "test", "then", "time", "times", "trap", "true", "type", "ulimit", "umask", "unset", "until",
    "wait", "while", "{", "}",
];

/// The programs that a command certainly starts.
pub fn programs_of(command: &CommandLine) -> Vec<String> {
    match command {
        CommandLine::Argv(argv) => argv.first().cloned().into_iter().collect(),
        CommandLine::Shell(line) => {
            // Quotes, expansions and here-documents need a shell to parse; then only the first word is certain.
            let is_plain = !line.contains(['"', '\'', '`', '$', '<', '(', '\\', '\n', '#']);
            let parts: Vec<&str> = if is_plain {
                line.split(['|', '&', ';']).collect()
            } else {
                line.split(['|', '&', ';']).take(1).collect()
            };
            parts.into_iter().filter_map(first_program).collect()
        }
    }
}

fn first_program(part: &str) -> Option<String> {
    let is_assignment = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        })
    };
    // What an assignment takes from a command (`out=$(sh x.sh)`) may be parsed wrongly.
    if part.split_whitespace().any(|word| is_assignment(word) && word.contains(['$', '`'])) {
        return None;
    }
    let word = part.split_whitespace().find(|word| !is_assignment(word))?;
    let is_name = word.chars().all(|c| c.is_alphanumeric() || "-_./+@".contains(c));
    (is_name && !SHELL_WORDS.contains(&word)).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::lint;
    use super::*;
    use crate::dialect::{Dialect, TaskTexts};

    #[test]
    fn only_certain_programs_of_a_command_are_named() {
        let of = |line: &str| programs_of(&CommandLine::Shell(line.into()));
        assert_eq!(of("CI=1 npm test && npx tsc | tee log"), ["npm", "npx", "tee"]);
        assert_eq!(of("cd x && ./run.sh"), ["./run.sh"]);
        assert_eq!(of("grep 'a && b' f"), ["grep"]);
        assert!(of("out=$(sh test.sh x)").is_empty());
        assert_eq!(of("make a # build && test it"), ["make"]);
        assert!(of("$TOOL x").is_empty() && of("test -f a").is_empty() && of("").is_empty());
        assert_eq!(programs_of(&CommandLine::Argv(vec!["my tool".into()])), ["my tool"]);
    }

    #[test]
    fn machine_facts_become_warnings() {
        let files = TaskTexts::new("ralph_task.md", include_str!("../dialect/testdata/ralph_task.md"));
        let task = lint(Dialect::RalphTaskMd, &files, &LintFacts::default()).task.unwrap();
        assert_eq!(programs(&task), ["pytest", "ruff"]);
        let facts = LintFacts { missing_programs: vec!["ruff".into()], ..LintFacts::default() };
        let mut found = lint(Dialect::RalphTaskMd, &files, &facts).diagnostics;
        found.extend(passing_already(&task, &["M1.2".into(), "unknown".into()]));
        let seen: Vec<_> = found.iter().map(|d| (d.rule, d.line)).collect();
        assert_eq!(seen, [("missing-program", 17), ("passes-already", 43)]);
    }
}
