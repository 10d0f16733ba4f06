//! Finds templates that weren't filled in: a run on one would waste money.

use super::{Diagnostic, Findings};
use crate::criterion::Span;
use crate::dialect::template::NAMES;
use crate::dialect::{Dialect, TaskTexts};

/// What the templates of `ralph init` ask their author to replace.
const ASKED: &[&str] = &[
    "Describe in two to four sentences what is wrong or missing, for whom, and where in the repository it belongs.",
    "Describe in a few sentences what is wrong or missing, for whom, and where in the repository it belongs.",
    "Describe what is wrong or missing, where in the repository it belongs, and what must not change.",
    "Describe in one sentence what the plan adds and for whom.",
    "Describe in two or three sentences what changes. Split a story that needs more.",
    "Describe in two to four sentences which number to improve, what to reach, and what you know about the causes.",
    "your test command",
    "Describe what works once this is done",
    "the command that checks it",
];

/// A part of a task that must still be filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// Its line, from 1.
    pub line: usize,
    /// Its column, from 1.
    pub column: usize,
    pub words: String,
    /// Whether it is a sentence from a template of `ralph init`.
    asked: bool,
}

impl Placeholder {
    pub fn message(&self) -> String {
        match self.asked {
            true => format!("the template's placeholder is still there: {}", self.words),
            false => format!("the task still contains a placeholder: {}", self.words),
        }
    }
}

/// Every part that a template asks to fill in: the sentences of `ralph init`, `{{thing}}`, `<describe …>`, `YOUR TASK
/// HERE`, `TODO: describe`. Code is skipped.
pub fn placeholders(text: &str) -> Vec<Placeholder> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        let mut add = |from: usize, words: &str, asked: bool| {
            found.push(Placeholder { line: at + 1, column: from + 1, words: words.to_owned(), asked });
        };
        for words in ASKED {
            line.match_indices(words).for_each(|(from, words)| add(from, words, true));
        }
        if !fenced {
            let plain = without_code(line);
            named(&plain).into_iter().for_each(|(from, words)| add(from, words, false));
            angled(&plain).into_iter().for_each(|(from, words)| add(from, words, false));
            shouted(&plain).into_iter().for_each(|(from, words)| add(from, words, false));
        }
    }
    found
}

/// The line with text between backticks replaced by spaces of the same length.
fn without_code(line: &str) -> String {
    if line.matches('`').count() < 2 {
        return line.to_owned();
    }
    let mut code = false;
    let blank = |c: char| " ".repeat(c.len_utf8());
    line.chars()
        .map(|c| match c {
            '`' => {
                code = !code;
                " ".to_owned()
            }
            c if code => blank(c),
            c => c.to_string(),
        })
        .collect()
}

/// `{{thing}}`, except for the names that are filled in.
fn named(line: &str) -> Vec<(usize, &str)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let inner = |from: usize| {
        let name = line[from + 2..].split("}}").next().filter(|name| from + 2 + name.len() < line.len())?;
        let known = NAMES.contains(&name.trim());
        let fits = !name.trim().is_empty() && name.trim().chars().all(is_name);
        (fits && !known).then(|| (from, &line[from..from + name.len() + 4]))
    };
    line.match_indices("{{").filter_map(|(from, _)| inner(from)).collect()
}

/// `<describe the change>`: several words that ask for something.
fn angled(line: &str) -> Vec<(usize, &str)> {
    const ASK: &[&str] = &["describe", "insert", "your", "fill", "enter", "replace", "explain", "what"];
    let one = |from: usize| {
        let end = from + line[from..].find('>')?;
        let inner = line.get(from + 1..end)?;
        let first = inner.split_whitespace().next()?.to_lowercase();
        let asks = ASK.contains(&first.as_str()) && inner.split_whitespace().count() > 1;
        (asks && !inner.contains(['<', '='])).then(|| (from, &line[from..=end]))
    };
    line.match_indices('<').filter_map(|(from, _)| one(from)).collect()
}

/// `YOUR TASK HERE`, and a line that begins with `TODO: describe`.
fn shouted(line: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let here = line.find(" HERE").map(|at| at + " HERE".len());
    for start in ["YOUR ", "INSERT ", "TASK GOES "] {
        if let (Some(from), Some(end)) = (line.find(start), here)
            && from < end
            && !line[from..end].contains(|c: char| c.is_lowercase())
        {
            found.push((from, &line[from..end]));
            break;
        }
    }
    let begin = line.len() - line.trim_start_matches([' ', '\t', '#', '-', '*', '>', '_']).len();
    let rest = &line[begin..];
    let asks = rest.strip_prefix("TODO").map(|rest| rest.trim_start_matches([':', ' ', '-']).to_lowercase());
    let asks = asks.is_some_and(|rest| {
        ["describe", "fill", "write the task", "say what", "explain", "your"]
            .iter()
            .any(|word| rest.starts_with(word))
    });
    if asks {
        found.push((begin, rest.trim_end()));
    }
    found
}

/// The first placeholder: its line and the problem.
pub fn template_words(text: &str) -> Option<(usize, String)> {
    placeholders(text).first().map(|found| (found.line, found.message()))
}

pub(super) fn check(dialect: Dialect, files: &TaskTexts, found: &mut Findings) {
    for place in placeholders(files.text()) {
        let span = Span { line: place.line, column: place.column };
        found.error("untouched-template", span, place.message(), fix(dialect));
    }
    if dialect == Dialect::Plan
        && let Some((name, text)) = files.beside("prd.md")
        && let Some(line) = untouched_plan(text)
    {
        found.all.push(Diagnostic::error(
            "untouched-template",
            name,
            Span { line, column: 1 },
            "it is still the template: only headings and questions",
            "fill in `Summary` and `Problem` and delete the other sections, or remove the file",
        ));
    }
}

/// The line of the first section, if a plan's text holds only headings, comments and empty tables.
fn untouched_plan(text: &str) -> Option<usize> {
    let mut comment = false;
    let mut first = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("## ") {
            first.get_or_insert(at + 1);
        }
        if line.starts_with("<!--") {
            comment = true;
        }
        let says = !comment
            && !line.is_empty()
            && !line.starts_with('#')
            && !line.starts_with('|')
            && !line.starts_with("Tier:");
        if says {
            return None;
        }
        if line.ends_with("-->") {
            comment = false;
        }
    }
    first
}

pub fn fix(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Plan => "replace it with the plan's own text and stories",
        _ => "replace it with the task, and set your own test command",
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LintFacts, lint};
    use super::*;

    #[test]
    fn unfilled_template_is_refused_at_its_placeholder() {
        let text = "# New task\n\n## Task\n\nDescribe in a few sentences what is wrong or missing, for whom, and where in the repository it belongs.\n";
        let report = lint(Dialect::PromptMd, &TaskTexts::new("PROMPT.md", text), &LintFacts::default());
        let found = report.diagnostics.iter().find(|d| d.rule == "untouched-template").unwrap();
        assert!(found.is_error());
        assert_eq!((found.line, found.column), (5, 1));
        assert_eq!(template_words("# Say what is wrong\n"), None);
    }

    fn words(text: &str) -> Vec<String> {
        placeholders(text).into_iter().map(|found| found.words).collect()
    }

    #[test]
    fn every_placeholder_is_named_at_once_and_code_is_none() {
        let text = "# {{title}}\n\n- TODO: describe the change\nFix <describe the bug> in YOUR FILE HERE\n";
        let all = ["{{title}}", "TODO: describe the change", "<describe the bug>", "YOUR FILE HERE"];
        assert_eq!(words(text), all);
        for text in [
            "Render `{{title}}` in the header",
            "```\n{{title}}\n```",
            "Branch feature/{{ticket_id}}",
            "Put <b>your</b> name here; a <your> tag; HERE is nothing",
            "Remove every TODO: describe is a good name",
            "Fix {{ nested {{",
            "a < b and what > c",
        ] {
            assert_eq!(words(text), [""; 0], "{text}");
        }
        let text = "{\"description\": \"Describe in one sentence what the plan adds and for whom.\",\n\"d\": \"Describe in two or three sentences what changes. Split a story that needs more.\"}";
        assert_eq!(words(text).len(), 2);
    }

    #[test]
    fn a_plan_that_holds_nothing_but_its_template_is_untouched() {
        let text = "# Plan\n\n<!--\nWhat is to be built.\n-->\n\nTier: S\n\n## 1. Summary\n\n<!-- S M L: required. -->\n\n| a | b |\n|---|---|\n";
        assert_eq!(untouched_plan(text), Some(9));
        assert_eq!(untouched_plan(&text.replace("| a | b |", "It adds a thing.")), None);
        assert_eq!(untouched_plan("# Plan\n"), None, "a file without sections is the user's own");
    }
}
