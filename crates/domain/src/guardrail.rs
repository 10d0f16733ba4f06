//! The rules of `guardrails.md`, one by one. They are the repo's: sessions and runs add to them, a person takes them out.

use ralph_loop_protocol::id::Digest;
use ralph_loop_protocol::text::one_line;
use std::collections::BTreeSet;
use std::ops::Range;

/// How a rule begins.
const HEADING: &str = "### guardrail:";

/// One rule of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its short name.
    pub title: String,
    /// Its text, without the blank lines around it and without marks of the engine.
    pub text: String,
    /// Its bytes in the file.
    range: Range<usize>,
}

impl Rule {
    /// What a rule is known by, wherever it stands.
    pub fn digest(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }

    /// What it asks for, in one line.
    pub fn instruction(&self) -> &str {
        let line = self.text.lines().find_map(|line| line.strip_prefix("- instruction:"));
        line.map_or(self.title.as_str(), str::trim)
    }
}

/// All rules of a file in their order. What stands before the first one is its introduction; lines of an agent's own between
/// them are rules, too.
pub fn rules(text: &str) -> Vec<Rule> {
    let mut found: Vec<Rule> = Vec::new();
    let mut begin: Option<usize> = None;
    let mut at = 0;
    let mut introduced = false;
    // The end of a paragraph closes a rule; a heading begins one, also without a blank line before it.
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

/// The file without the rules that `gone` says.
pub fn without(text: &str, gone: impl Fn(&Rule) -> bool) -> String {
    let mut out = text.to_owned();
    for rule in rules(text).iter().rev().filter(|rule| gone(rule)) {
        let mut end = rule.range.end;
        // The blank lines behind it belong to nobody then.
        end += text[end..].len() - text[end..].trim_start_matches('\n').len();
        out.replace_range(rule.range.start..end, "");
    }
    if out != text {
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

/// A rule as it is written, from a sentence.
pub fn written(text: &str, added_after: u32, by: &str) -> String {
    let (trigger, instruction) = parts(text);
    format!(
        "### guardrail: {}\n- trigger: {trigger}\n- instruction: {instruction}\n- added_after: iteration {added_after}\n- evidence: added by {by}",
        one_line(instruction, 60)
    )
}

/// When a rule counts, and what it says: `when a test hangs: end it` is how the doctor suggests one.
fn parts(text: &str) -> (&str, &str) {
    let named = text.strip_prefix("when ").and_then(|rest| rest.split_once(": "));
    named
        .filter(|(trigger, rule)| !trigger.contains('\n') && !rule.trim().is_empty())
        .unwrap_or(("always", text))
}

/// The rules of a repo and of a run on it brought together: what the repo has now, and what the run has added to what both had
/// (`known`). Returns the text for both.
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
    fn rules_are_found_and_the_introduction_is_none() {
        let found = rules(FILE);
        let titles: Vec<&str> = found.iter().map(|rule| rule.title.as_str()).collect();
        assert_eq!(titles, ["one", "two", "lesson: look twice"]);
        assert_eq!(found[0].instruction(), "first");
        assert!(!found[0].text.contains("<!--"));
        assert!(rules("# Guardrails\n\nnothing yet\n").is_empty());
    }

    #[test]
    fn a_rule_keeps_when_it_counts() {
        assert_eq!(parts("when a test hangs: end it first"), ("a test hangs", "end it first"));
        for plain in ["never touch the schema", "when in doubt ask", "when :", "when a: "] {
            assert_eq!(parts(plain), ("always", plain));
        }
    }

    #[test]
    fn one_rule_goes_and_everything_else_stays() {
        let left = without(FILE, |rule| rule.title == "one");
        assert_eq!(left, FILE.replace("### guardrail: one\n- instruction: first\n<!-- 1 ana -->\n\n", ""));
        assert_eq!(without(FILE, |_| false), FILE);
    }

    #[test]
    fn what_a_run_adds_comes_to_the_repo_and_what_a_person_removed_stays_away() {
        let known: BTreeSet<Digest> = rules(FILE).iter().map(Rule::digest).collect();
        let repo = without(FILE, |rule| rule.title == "two");
        let run = format!("{FILE}\n{}\n", written("never twice", 3, "ana"));
        let both = merged(&repo, &run, &known);
        let titles: Vec<String> = rules(&both).into_iter().map(|rule| rule.title).collect();
        assert_eq!(titles, ["one", "lesson: look twice", "never twice"]);
        assert_eq!(merged(&both, &both, &known), both);
    }
}
