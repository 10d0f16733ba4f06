//! Programs whose output or exit a check compares: `[ "$(./app.sh)" = 42 ]`, `./app.sh | grep -q 42`. Such a program is what is
//! checked. One that the check only hands its verdict on for (`./run.sh`, `[ "$(./run.sh)" = ok ]`) is the check.

use super::beside::is_helper;
use super::shell::{Simple, behind, program_name};

/// Programs that say whether what they read is what was wanted.
const COMPARE: &[&str] = &["grep", "egrep", "fgrep", "rg", "diff", "cmp"];
/// Programs that hand on what they read.
const FILTERS: &[&str] = &["sort", "tr", "head", "tail", "cut", "sed", "uniq", "wc", "cat", "awk", "jq"];
/// What a verdict of somebody else's looks like.
const VERDICTS: &[&str] = &[
    "",
    "0",
    "1",
    "ok",
    "okay",
    "pass",
    "passed",
    "passes",
    "passing",
    "success",
    "successful",
    "succeeded",
    "true",
    "yes",
    "y",
    "done",
    "good",
    "green",
    "fine",
    "valid",
    "correct",
    "all",
    "tests",
];

/// Whether somebody compares what the command `at` of the line `text`, which reads as `all`, prints or ends with.
pub(super) fn is_compared(text: &str, all: &[Simple], at: usize) -> bool {
    let simple = &all[at];
    let (words, _) = behind(&simple.words, &simple.folder);
    if words.is_empty() || words.iter().take(2).any(|word| is_helper(word)) {
        return false;
    }
    let pipe = piped_into(all, at);
    let filtered = pipe.is_some_and(|last| last > at);
    if simple.piped && pipe.is_some_and(|last| compares(&all[last].words)) {
        return true;
    }
    let in_substitution = || {
        let mut spans = substitutions(text).into_iter();
        spans.any(|(before, inner, after)| {
            inner.contains(words[0].as_str()) && is_compared_text(&before, &after, text)
        })
    };
    if simple.captured && (!simple.piped || filtered) && in_substitution() {
        return true;
    }
    let later = || all[at + 1..].iter().filter(|later| !later.swallowed);
    let kept = simple.outputs.iter().any(|file| {
        later().any(|later| compares(&later.words) && later.words.iter().any(|word| word == file))
    });
    kept || later().next().is_some_and(|next| wants_exit(&next.words))
}

/// The last command of the pipe that begins at `at`, where only filters stand between.
fn piped_into(all: &[Simple], at: usize) -> Option<usize> {
    let mut last = at;
    while all[last].piped {
        last += 1;
        let name = program_name(all.get(last)?.words.first()?);
        if all[last].piped && !FILTERS.contains(&name) {
            return None;
        }
    }
    Some(last)
}

/// Whether a command compares with something that is no mere verdict.
fn compares(words: &[String]) -> bool {
    let Some((program, rest)) = words.split_first() else { return false };
    let name = program_name(program);
    let pattern = rest.iter().find(|word| !word.starts_with('-'));
    match name {
        "diff" | "cmp" => true,
        name if COMPARE.contains(&name) => pattern.is_some_and(|pattern| !is_verdict(pattern)),
        _ => false,
    }
}

/// `[ $? -eq 3 ]`: a failure that is wanted.
fn wants_exit(words: &[String]) -> bool {
    match words {
        [test, code, how, wanted, ..] if matches!(test.as_str(), "[" | "[[" | "test") => {
            code == "$?"
                && matches!(how.as_str(), "-eq" | "=" | "==")
                && wanted.parse::<u32>().is_ok_and(|wanted| wanted > 0)
        }
        _ => false,
    }
}

fn is_verdict(word: &str) -> bool {
    let plain = |c: char| !c.is_alphanumeric();
    let mut parts = word.split(plain).filter(|part| !part.is_empty());
    parts.all(|part| VERDICTS.contains(&part.to_ascii_lowercase().as_str()))
}

/// Whether what stands around `$(…)` compares it, or keeps it under a name that is compared.
fn is_compared_text(before: &str, after: &str, text: &str) -> bool {
    let before = before.trim_start().trim_start_matches("! ").trim_end_matches('"');
    if let Some(test) = ["[[ ", "[ ", "test "].iter().find_map(|test| before.strip_prefix(test)) {
        return is_test(test, after.trim_start_matches('"'));
    }
    let Some(name) = before.strip_suffix('=').filter(|name| is_name(name)) else { return false };
    let mentions = [format!("${name}"), format!("${{{name}}}")];
    parts(text).any(|part| {
        let part = part.trim().trim_start_matches("! ");
        let Some(test) = ["[[ ", "[ ", "test "].iter().find_map(|test| part.strip_prefix(test)) else {
            return false;
        };
        let test = test.replace('"', "");
        let found = mentions.iter().find_map(|mention| {
            let at = test.find(mention.as_str())?;
            Some((test[..at].to_owned(), test[at + mention.len()..].to_owned()))
        });
        found.is_some_and(|(before, after)| is_test(&before, &after))
    })
}

/// Whether a test compares what stands between these two with something that is no verdict.
fn is_test(before: &str, after: &str) -> bool {
    let clean = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    let after = after.trim().trim_end_matches(']').trim();
    let operators = ["==", "!=", "=~", "=", "-eq", "-ne", "-gt", "-ge", "-lt", "-le"];
    let behind = operators.iter().find_map(|op| Some(clean(after.strip_prefix(*op)?)));
    let in_front = operators.iter().find_map(|op| Some(clean(before.trim_end().strip_suffix(*op)?)));
    behind.or(in_front).is_some_and(|value| value.contains('$') || !is_verdict(&value))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The simple commands of a line as text, roughly: quotes do not join.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split([';', '&', '|', '\n'])
}

/// Each `$(…)` and `` `…` `` of a line: what stands before it in its command, what is in it, and what stands behind.
fn substitutions(text: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(['$', '`']).map(|at| from + at) {
        let (open, close) = match &text[at..] {
            rest if rest.starts_with("$(") => (at + 2, closing(text, at + 2)),
            rest if rest.starts_with('`') => (at + 1, text[at + 1..].find('`').map(|end| at + 1 + end)),
            _ => {
                from = at + 1;
                continue;
            }
        };
        let Some(close) = close else { break };
        let before = parts(&text[..at]).last().unwrap_or_default().to_owned();
        let after = parts(&text[close + 1..]).next().unwrap_or_default().to_owned();
        found.push((before, text[open..close].to_owned(), after));
        from = close + 1;
    }
    found
}

/// Where the bracket that was opened before `from` is closed.
fn closing(text: &str, from: usize) -> Option<usize> {
    let mut depth = 1;
    for (at, c) in text[from..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(from + at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::shell::commands;

    /// Whether the program `./app.sh` of a line is compared.
    fn compared(line: &str) -> bool {
        let all = commands(line, "");
        let at =
            all.iter().position(|one| one.words.iter().any(|word| word.contains(".sh") || word == "app"));
        is_compared(line, &all, at.unwrap_or_else(|| panic!("{line}: {all:?}")))
    }

    #[test]
    fn a_program_whose_output_is_compared_is_what_is_checked() {
        for line in [
            "[ \"$(./app.sh)\" = right ]",
            "[ $(./app.sh 2) -eq 4 ]",
            "test \"$(sh app.sh --x)\" = 'a b'",
            "[[ `./app.sh` == \"right\" ]]",
            "[ right = \"$(./app.sh)\" ] && [ -f x ]",
            "out=$(./app.sh) && [ \"$out\" = right ]",
            "./app.sh | grep -q right",
            "./app.sh 2>&1 | sort | diff - want.txt",
            "./app.sh > out.txt && diff out.txt want.txt",
            "./app.sh bad; [ $? -eq 3 ]",
            "[ \"$(./app.sh | head -1)\" = right ]",
        ] {
            assert!(compared(line), "{line}");
        }
    }

    #[test]
    fn a_program_whose_verdict_is_handed_on_is_the_check() {
        for line in [
            "./run.sh",
            "sh run.sh && true",
            "./run.sh | tee log",
            "./run.sh | tail -5",
            "out=$(./run.sh) || exit 1",
            "echo \"$(./run.sh)\"",
            "[ \"$(./run.sh)\" = ok ]",
            "[ \"$(./run.sh)\" = \"PASS\" ]",
            "[ $(./run.sh) -eq 0 ]",
            "[ -n \"$(./run.sh)\" ]",
            "[ \"$(./check.sh)\" = right ]",
            "./run.sh | grep -q 'All tests passed'",
            "./run.sh; [ $? -eq 0 ]",
            "out=$(./run.sh); [ -n \"$out\" ]",
        ] {
            assert!(!compared(line), "{line}");
        }
    }
}
