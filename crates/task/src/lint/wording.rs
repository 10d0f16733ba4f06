//! Warnings about wording: criteria that can't be checked, stories too large for one session, unchanged templates.

use super::Findings;
use crate::criterion::{Check, Span};
use crate::dialect::{Dialect, TaskFile};
use ralph_loop_protocol::display::text::one_line;
use regex_lite::Regex;
use std::sync::LazyLock;

/// Phrases that sound like a condition but aren't.
static VAGUE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let phrases = [
        "(works?|behaves?|functions?|handled) (correctly|properly|well|fine)",
        "((works?|behaves?) )?as (expected|intended)",
        "(handles errors )?gracefully",
        "looks? (good|nice|right)",
        "(is|are) clean|clean code|(high|good) quality|good performance",
        "is (fast|robust|readable|maintainable|intuitive)",
        "user[- ]friendly|easy to use|well[- ](tested|documented)",
        "no bugs|bug-free|production[- ]ready|best practices|and so on|etc",
    ];
    Regex::new(&format!(r"(?i)\b({})\b", phrases.join("|"))).ok()
});

/// Longest description for one session.
const MAX_CHARS: usize = 400;
const MAX_SENTENCES: usize = 3;

const PLACEHOLDERS: &[&str] = &["ORG/REPO", "your-org/", "ralph/feature-name"];

pub(super) fn check(task: &TaskFile, found: &mut Findings) {
    for criterion in &task.criteria {
        // A criterion is as exact as its check; a story is judged by its criteria.
        if criterion.check == Check::Claimed && task.dialect != Dialect::Plan {
            vague(&criterion.id, &criterion.text, criterion.place, found);
        }
        too_large(&criterion.id, &criterion.text, criterion.place, found);
    }
    for (story, criterion) in task.stories.iter().zip(&task.criteria) {
        for text in &story.acceptance_criteria {
            vague(&story.id, text, criterion.place, found);
        }
        too_large(&story.id, &story.description, criterion.place, found);
    }
    placeholders(task, found);
}

fn vague(id: &str, text: &str, place: Span, found: &mut Findings) {
    if let Some(phrase) = vague_phrase(text) {
        let message = format!("\"{phrase}\" in `{id}` can't be checked: {}", one_line(text, 100));
        let fix = "name what can be seen: an input and its answer, a command and its exit code, \
            a file and its content";
        found.warning("vague-criterion", place, message, fix);
    }
}

fn vague_phrase(text: &str) -> Option<String> {
    VAGUE.as_ref()?.find(text).map(|found| found.as_str().to_lowercase())
}

fn too_large(id: &str, text: &str, place: Span, found: &mut Findings) {
    let (sentences, chars) = (sentences(text), text.chars().count());
    if sentences > MAX_SENTENCES || chars > MAX_CHARS {
        found.warning(
            "too-large",
            place,
            format!("`{id}` takes {sentences} sentences and {chars} characters to describe"),
            "split it: what one session can finish fits in three sentences",
        );
    }
}

/// Sentences end with `.`, `!` or `?` before a blank or the end, so that `src/a.rs` and `1.5` don't end one.
fn sentences(text: &str) -> usize {
    let text = text.trim();
    let mut count = 0;
    let mut open = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        open |= c.is_alphanumeric();
        if open && ".!?".contains(c) && chars.peek().is_none_or(|next| next.is_whitespace()) {
            count += 1;
            open = false;
        }
    }
    count + usize::from(open)
}

fn placeholders(task: &TaskFile, found: &mut Findings) {
    let at = |key: &str| task.keys.get(key).copied().unwrap_or_default();
    let is_json = task.dialect == Dialect::RalphJson;
    let values = [
        (if is_json { "repository.url" } else { "repo_url" }, &task.git.repo_url),
        (if task.dialect == Dialect::Plan { "branchName" } else { "git.feature_branch" }, &task.git.branch),
        ("sandbox_image", &task.sandbox.image),
    ];
    for (key, value) in values {
        let Some(value) = value else { continue };
        if let Some(left) = PLACEHOLDERS.iter().find(|left| value.contains(**left)) {
            found.error(
                "placeholder",
                at(key),
                format!("`{key}` still has the template's `{left}`"),
                "fill in your own, or remove the key",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LintFacts, lint};
    use super::*;
    use crate::dialect::TaskTexts;

    fn rules(dialect: Dialect, text: &str) -> Vec<&'static str> {
        let report = lint(dialect, &TaskTexts::new(dialect.main_file(), text), &LintFacts::default());
        let own = ["vague-criterion", "too-large", "placeholder"];
        report.diagnostics.iter().map(|d| d.rule).filter(|rule| own.contains(rule)).collect()
    }

    fn boxes(lines: &str) -> String {
        format!("---\nverify_commands: [x]\n---\n# Success criteria\n{lines}")
    }

    #[test]
    fn uncheckable_criteria_are_reported() {
        for text in
            ["The form works correctly", "It looks good.", "The code is clean", "Edge cases, docs, etc."]
        {
            assert_eq!(
                rules(Dialect::RalphTaskMd, &boxes(&format!("- [ ] M1.1 {text}\n"))),
                ["vague-criterion"]
            );
        }
        let exact =
            boxes("- [ ] M1.1 `cargo test etching` passes\n- [ ] M1.2 Works correctly\n  - verify: `x`\n");
        assert!(rules(Dialect::RalphTaskMd, &exact).is_empty());
    }

    #[test]
    fn stories_too_large_for_one_session_are_named() {
        let long = boxes("- [ ] M1.1 One. Two! Three? Four\n- [ ] M1.2 Edit src/a.rs to 1.5. Then b.\n");
        assert_eq!(rules(Dialect::RalphTaskMd, &long), ["too-large"]);
        let plan = include_str!("../dialect/testdata/tasks.json");
        let wordy = plan.replace("The flag `--json` of the list command.", &"é".repeat(401));
        assert_eq!(rules(Dialect::Plan, &wordy), ["too-large"]);
        let vague = plan.replace("`shop list --json` prints valid JSON", "JSON works as expected");
        assert_eq!(rules(Dialect::Plan, &vague), ["vague-criterion"]);
    }

    #[test]
    fn unchanged_templates_are_reported() {
        let plan =
            include_str!("../dialect/testdata/tasks.json").replace("ralph/json-output", "ralph/feature-name");
        assert_eq!(rules(Dialect::Plan, &plan), ["placeholder"]);
        let json = "{\"task\": \"t\", \"repository\": {\"url\": \"https://github.com/ORG/REPO.git\"}}";
        assert_eq!(rules(Dialect::RalphJson, json), ["placeholder"]);
    }
}
