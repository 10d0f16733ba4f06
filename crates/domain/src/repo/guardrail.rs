//! The rules of `guardrails.md`. They belong to the repo: sessions and runs add to them, the user removes them.

use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::id::Digest;
use std::collections::BTreeSet;
use std::ops::Range;

const HEADING: &str = "### guardrail:";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub title: String,
    /// Its text, trimmed and without the engine's marks.
    pub text: String,
    range: Range<usize>,
}

impl Rule {
    pub fn digest(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }

    pub fn instruction(&self) -> &str {
        let line = self.text.lines().find_map(|line| line.strip_prefix("- instruction:"));
        line.map_or(self.title.as_str(), str::trim)
    }
}

/// All rules of a file in order. The text before the first one is the introduction; an agent's own lines between them
/// are rules as well.
pub fn rules(text: &str) -> Vec<Rule> {
    let mut found: Vec<Rule> = Vec::new();
    let mut begin: Option<usize> = None;
    let mut at = 0;
    let mut introduced = false;
    // The end of a paragraph closes a rule; a heading begins one, even without a blank line before it.
    for line in text.split_inclusive('\n').chain(std::iter::once("")) {
        let heading = line.starts_with(HEADING);
        introduced |= heading;
        if (line.trim().is_empty() || heading)
            && let Some(from) = begin.take()
        {
            found.extend(rule(text, from..at));
        }
        if introduced && begin.is_none() && !line.trim().is_empty() {
            begin = Some(at);
        }
        at += line.len();
    }
    found
}

fn rule(text: &str, range: Range<usize>) -> Option<Rule> {
    let lines = text[range.clone()].lines().filter(|line| !line.trim_start().starts_with("<!--"));
    let body = lines.collect::<Vec<_>>().join("\n").trim().to_owned();
    let first = body.lines().next()?;
    let title = first.strip_prefix(HEADING).unwrap_or(first).trim();
    Some(Rule { title: one_line(title.trim_start_matches(['#', '-', ' ']), 80), text: body, range })
}

/// The file without the rules that `gone` selects.
pub fn without(text: &str, gone: impl Fn(&Rule) -> bool) -> String {
    let mut out = text.to_owned();
    for rule in rules(text).iter().rev().filter(|rule| gone(rule)) {
        let mut end = rule.range.end;
        // Also removes the blank lines after it.
        end += text[end..].len() - text[end..].trim_start_matches('\n').len();
        out.replace_range(rule.range.start..end, "");
    }
    if out != text {
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

/// Formats a sentence as a rule. A text in the file's own form stays as it is.
pub fn written(text: &str, added_after: u32, by: &str) -> String {
    let text = text.trim();
    if text.starts_with(HEADING) {
        return text.to_owned();
    }
    let (trigger, instruction) = parts(text);
    format!(
        "### guardrail: {}\n- trigger: {trigger}\n- instruction: {instruction}\n- added_after: iteration {added_after}\n- evidence: added by {by}",
        one_line(instruction, 60)
    )
}

/// When a rule applies, and what it says: the doctor suggests `when a test hangs: end it`.
fn parts(text: &str) -> (&str, &str) {
    let named = text.strip_prefix("when ").and_then(|rest| rest.split_once(": "));
    named
        .filter(|(trigger, rule)| !trigger.contains('\n') && !rule.trim().is_empty())
        .unwrap_or(("always", text))
}

/// Merges the rules of a repo and of a run on it: what the repo has now, and what the run has added to the common
/// rules (`known`). Returns the text for both.
pub fn merged(repo: &str, run: &str, known: &BTreeSet<Digest>) -> String {
    let mut out = repo.to_owned();
    let here: BTreeSet<Digest> = rules(repo).iter().map(Rule::digest).collect();
    for rule in rules(run) {
        let digest = rule.digest();
        if !known.contains(&digest) && !here.contains(&digest) {
            let raw = run[rule.range.clone()].trim_end();
            out = format!("{}\n\n{raw}\n", out.trim_end());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# Guardrails\n\nRules that hold.\n\n    ### guardrail: an example\n\n### guardrail: one\n- instruction: first\n<!-- 1 ana -->\n\n### guardrail: two\n- instruction: second\n\nlesson: look twice\n";

    #[test]
    fn introduction_is_not_a_rule() {
        let found = rules(FILE);
        let titles: Vec<&str> = found.iter().map(|rule| rule.title.as_str()).collect();
        assert_eq!(titles, ["one", "two", "lesson: look twice"]);
        assert_eq!(found[0].instruction(), "first");
        assert!(!found[0].text.contains("<!--"));
        assert!(rules("# Guardrails\n\nnothing yet\n").is_empty());
    }

    #[test]
    fn rule_keeps_its_condition() {
        assert_eq!(parts("when a test hangs: end it first"), ("a test hangs", "end it first"));
        for plain in ["never touch the schema", "when in doubt ask", "when :", "when a: "] {
            assert_eq!(parts(plain), ("always", plain));
        }
    }

    #[test]
    fn text_in_the_files_own_form_stays_as_it_is() {
        let own = "### guardrail: no sudo\n- trigger: always\n- instruction: never use it\n\n### guardrail: b\n- instruction: c";
        assert_eq!(written(&format!("\n{own}\n"), 3, "ana"), own);
        let titles: Vec<String> = rules(own).into_iter().map(|rule| rule.title).collect();
        assert_eq!(titles, ["no sudo", "b"]);
        assert!(written("never ### guardrail: x", 3, "ana").starts_with("### guardrail: never"));
    }

    #[test]
    fn removing_a_rule_keeps_everything_else() {
        let left = without(FILE, |rule| rule.title == "one");
        assert_eq!(left, FILE.replace("### guardrail: one\n- instruction: first\n<!-- 1 ana -->\n\n", ""));
        assert_eq!(without(FILE, |_| false), FILE);
    }

    #[test]
    fn merged_rules_include_added_ones_and_not_removed_ones() {
        let known: BTreeSet<Digest> = rules(FILE).iter().map(Rule::digest).collect();
        let repo = without(FILE, |rule| rule.title == "two");
        let run = format!("{FILE}\n{}\n", written("never twice", 3, "ana"));
        let both = merged(&repo, &run, &known);
        let titles: Vec<String> = rules(&both).into_iter().map(|rule| rule.title).collect();
        assert_eq!(titles, ["one", "lesson: look twice", "never twice"]);
        assert_eq!(merged(&both, &both, &known), both);
    }
}
