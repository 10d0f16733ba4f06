//! Checks that this program understands every command line in the documentation.

use super::{Cli, parser};
use clap::{CommandFactory as _, Parser as _};
use std::path::{Path, PathBuf};

/// User-facing Markdown files.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap().flatten().map(|entry| entry.path());
    let mut pages: Vec<PathBuf> = docs.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    pages.extend(["README.md", "SECURITY.md", "examples/README.md"].map(|name| root.join(name)));
    pages.sort();
    pages
}

/// Lines of `sh` blocks, with continuations joined.
fn shell_lines(text: &str) -> Vec<String> {
    let (mut lines, mut inside, mut open) = (Vec::new(), false, String::new());
    for line in text.lines() {
        if let Some(tag) = line.trim_start().strip_prefix("```") {
            inside = !inside && matches!(tag.trim(), "sh" | "bash" | "console");
        } else if inside {
            open.push_str(line.trim_end_matches('\\'));
            if !line.ends_with('\\') {
                lines.push(std::mem::take(&mut open));
            }
        }
    }
    lines
}

/// Simple commands in a shell line, as far as the docs use the shell: quotes, comments, `|`, `&&`, `;`,
/// redirections and `$(…)`.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let (mut word, mut quote, mut has_word) = (String::new(), None, false);
    let mut chars = line.chars().peekable();
    let end_word = |all: &mut Vec<Vec<String>>, word: &mut String, has_word: &mut bool| {
        if std::mem::take(has_word)
            && let Some(last) = all.last_mut()
        {
            last.push(std::mem::take(word));
        }
    };
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => (quote, has_word) = (Some(c), true),
            (Some('"') | None, '$') if chars.peek() == Some(&'(') => {
                chars.next();
                (quote, has_word) = (None, false);
                word.clear();
                all.push(Vec::new());
            }
            (Some(_), c) => word.push(c),
            (None, '#') if !has_word => break,
            (None, c) if c.is_whitespace() => end_word(&mut all, &mut word, &mut has_word),
            (None, '|' | '&' | ';' | ')' | '<' | '>') => {
                end_word(&mut all, &mut word, &mut has_word);
                all.push(Vec::new());
            }
            (None, c) => {
                has_word = true;
                word.push(c);
            }
        }
    }
    end_word(&mut all, &mut word, &mut has_word);
    all.retain(|words| !words.is_empty());
    all
}

/// Arguments of `ralph` calls, without leading variables.
fn calls(line: &str) -> Vec<Vec<String>> {
    let is_setting = |word: &String| {
        word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    };
    commands(line)
        .into_iter()
        .map(|words| {
            words
                .into_iter()
                .skip_while(|word| is_setting(word) || *word == "$" || *word == "sudo")
                .collect::<Vec<_>>()
        })
        .filter(|words| words.first().is_some_and(|word| word == "ralph"))
        .collect()
}

#[test]
fn words_are_found_as_a_shell_finds_them() {
    let words = |line: &str| calls(line).into_iter().map(|call| call.join("·")).collect::<Vec<_>>();
    assert_eq!(words("ralph run \"Fix it\"   # agents are found"), ["ralph·run·Fix it"]);
    assert_eq!(words("A_B=1 ralph status && ralph diff | less"), ["ralph·status", "ralph·diff"]);
    assert_eq!(words("cd \"$(ralph open --files)\""), ["ralph·open·--files"]);
    assert_eq!(words("ralph man > x; echo ralph"), ["ralph·man"]);
    assert_eq!(shell_lines("```sh\nralph a \\\n  b\n```\n```json\nralph c\n```"), ["ralph a   b"]);
}

/// Example lines in the help of a command and its subcommands; text after two spaces is an explanation.
fn examples(command: &clap::Command) -> Vec<String> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let own =
        help.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| line.starts_with("ralph"));
    let mut all: Vec<String> =
        own.map(|line| line.split("  ").next().unwrap_or_default().to_owned()).collect();
    all.extend(command.get_subcommands().flat_map(examples));
    all
}

/// Number of `ralph` calls in a shell line, and what is wrong with them.
fn misunderstood(line: &str) -> (usize, Vec<String>) {
    let calls = calls(line);
    let seen = calls.len();
    let wrong = calls.into_iter().filter_map(|call| {
        // Fill placeholders.
        let call: Vec<String> = call.iter().map(|word| word.replace('…', "x")).collect();
        let error = Cli::try_parse_from(&call).err().filter(clap::Error::use_stderr)?.to_string();
        Some(format!("`{}`: {}", call.join(" "), error.lines().next().unwrap_or_default()))
    });
    (seen, wrong.collect())
}

#[test]
fn every_documented_command_is_understood() {
    let (mut seen, mut wrong) = (0, Vec::new());
    let pages = pages().into_iter().map(|page| {
        let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (name, shell_lines(&std::fs::read_to_string(&page).unwrap()))
    });
    for (name, lines) in pages.chain([("help".to_owned(), examples(&Cli::command()))]) {
        for line in lines {
            let (count, errors) = misunderstood(&line);
            seen += count;
            wrong.extend(errors.into_iter().map(|error| format!("{name}: {error}")));
        }
    }
    assert!(seen > 80, "only {seen} commands were found");
    assert!(wrong.is_empty(), "commands that ralph does not understand:\n  {}", wrong.join("\n  "));
}

/// Every visible command with its full name.
fn visible(command: &clap::Command, name: &str, all: &mut Vec<(String, clap::Command)>) {
    all.push((name.to_owned(), command.clone()));
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set()) {
        visible(sub, &format!("{name} {}", sub.get_name()), all);
    }
}

#[test]
fn every_help_fits_on_a_screen_and_has_an_example() {
    let mut all = Vec::new();
    visible(&parser(), "ralph", &mut all);
    let mut wrong = Vec::new();
    for (name, command) in all {
        let help = command.clone().term_width(100).render_help().to_string();
        let lines = help.trim_end().lines().count();
        if lines > 40 {
            wrong.push(format!("`{name} --help` has {lines} lines"));
        }
        if !help.contains("Examples:\n") && !help.contains("Example:\n") {
            wrong.push(format!("`{name} --help` has no example"));
        }
        let args = command.get_arguments().filter_map(|arg| arg.get_help());
        let about = command.get_about().filter(|_| name != "ralph");
        for text in args.chain(about).map(ToString::to_string) {
            if text.chars().count() > 60 || text.ends_with('.') {
                wrong.push(format!("`{name}`: `{text}` is longer than 60 characters or ends with a period"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_help_of_ralph_names_every_command() {
    let help = parser().render_help().to_string();
    let words: Vec<&str> = help.split(|c: char| !(c.is_ascii_lowercase() || c == '-')).collect();
    let missing: Vec<String> = parser()
        .get_subcommands()
        .filter(|sub| sub.get_name() != "help" && !sub.is_hide_set())
        .map(|sub| sub.get_name().to_owned())
        .filter(|name| !words.contains(&name.as_str()))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
