//! Templates that nobody has filled in: a run on one would spend money on nobody's words.

use super::Diagnostic;
use crate::criterion::Span;
use crate::dialect::{Dialect, TaskTexts};

/// What the templates of `ralph init` ask their author to replace.
const ASKED: &[&str] = &[
    "Say in two to four sentences what is wrong or missing, for whom, and where in the repository it belongs.",
    "Say in a few sentences what is wrong or missing, for whom, and where in the repository it belongs.",
    "Say what is wrong or missing, where in the repository it belongs, and what must stay as it is.",
    "Say in one sentence what the plan adds and for whom.",
    "Say in two or three sentences what changes. A story that needs more is two stories.",
    "put the command that runs your tests here",
    "Say here what works once this is done",
    "put the command that shows it here",
];

/// The first place in a task file that its template asks to be filled in: its line and the words.
pub fn template_words(text: &str) -> Option<(usize, &'static str)> {
    text.lines().enumerate().find_map(|(at, line)| {
        ASKED.iter().find(|words| line.contains(**words)).map(|words| (at + 1, *words))
    })
}

pub(super) fn check(dialect: Dialect, files: &TaskTexts, found: &mut Vec<Diagnostic>) {
    let Some((line, words)) = template_words(files.text()) else { return };
    let column = files.text().lines().nth(line - 1).and_then(|text| text.find(words)).unwrap_or(0) + 1;
    found.push(Diagnostic::error(
        "untouched-template",
        files.name(),
        Span { line, column },
        format!("the template still asks: {words}"),
        fix(dialect),
    ));
}

/// What to do about it.
pub fn fix(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Plan => "write the plan's own words and stories in its place",
        _ => "write what is to be done in its place, and your own test command where one is asked for",
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LintFacts, lint};
    use super::*;

    #[test]
    fn a_template_that_nobody_filled_in_is_refused_where_it_asks() {
        let text = "# New task\n\n## Task\n\nSay in a few sentences what is wrong or missing, for whom, and where in the repository it belongs.\n";
        let report = lint(Dialect::PromptMd, &TaskTexts::new("PROMPT.md", text), &LintFacts::default());
        let found = report.diagnostics.iter().find(|d| d.rule == "untouched-template").unwrap();
        assert!(found.is_error());
        assert_eq!((found.line, found.column), (5, 1));
        assert_eq!(template_words("# Say what is wrong\n"), None);
    }
}
