//! What a `PROMPT.md` should contain.

use super::Findings;
use crate::criterion::Span;
use crate::dialect::{TaskTexts, verification};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Which parts of a good prompt exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PromptSections {
    pub task: bool,
    pub acceptance: bool,
    /// What must not happen.
    pub constraints: bool,
    pub verification: bool,
    /// The word that ends the run. The engine's prompt also names it, so a missing one isn't a finding.
    pub promise: bool,
}

impl PromptSections {
    pub fn missing(self) -> Vec<&'static str> {
        [
            ("Task", self.task),
            ("Acceptance", self.acceptance),
            ("Constraints", self.constraints),
            ("Verification", self.verification),
        ]
        .into_iter()
        .filter(|(_, there)| !there)
        .map(|(name, _)| name)
        .collect()
    }
}

/// Finds the parts of a prompt by its headings.
pub fn prompt_sections(text: &str) -> PromptSections {
    let mut out = PromptSections { promise: text.contains("<promise>"), ..PromptSections::default() };
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text.trim_start_matches('\u{feff}'), Options::empty()) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let heading = heading.take().unwrap_or_default().to_lowercase();
                let is_one_of = |words: &[&str]| words.iter().any(|word| heading.contains(word));
                let done = is_one_of(&["accept", "criteria", "done"]);
                out.acceptance |= done;
                let limits = is_one_of(&["constraint", "rules", "limits", "non-goal", "out of scope"]);
                out.constraints |= limits;
                let verify = verification::is_heading(&heading);
                out.verification |= verify;
                // Any other heading with words names the task.
                out.task |= !(heading.trim().is_empty() || done || limits || verify);
            }
            _ => {}
        }
    }
    out
}

pub(super) fn check(files: &TaskTexts, found: &mut Findings) {
    let missing = prompt_sections(files.text()).missing();
    if !missing.is_empty() {
        found.warning(
            "missing-section",
            Span::START,
            format!("the prompt has no heading for: {}", missing.join(", ")),
            "describe the work, when it is done, what must not change, and how it is verified",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_sections_are_found_by_heading() {
        let whole = "# Fix the router\n## Acceptance criteria\n## Constraints\n## Verification\n<promise>COMPLETE</promise>";
        assert!(prompt_sections(whole).missing().is_empty());
        assert!(prompt_sections(whole).promise);
        assert_eq!(
            prompt_sections("Fix it.\n```\n# Task\n```\n").missing().len(),
            4,
            "code doesn't count as a heading"
        );
        assert_eq!(prompt_sections("# Fix\n## Done when\n").missing(), ["Constraints", "Verification"]);
    }
}
