//! The task draft: text in `PROMPT.md` format, seen as sections. The user may edit it at any time.

use ralph_loop_task::lint::{PromptSections, prompt_sections};

/// The sections of a task, in order.
pub const SECTIONS: [&str; 5] = ["Task", "Acceptance", "Constraints", "Verification", "Open questions"];
/// Tells the agent how to claim completion.
const ENDING: &str = "When you are done";
/// Larger than any task.
const BYTES_MAX: usize = 256 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Draft {
    text: String,
}

impl Draft {
    pub fn new(text: &str) -> Self {
        let mut text = ralph_loop_protocol::display::sanitize::block(
            ralph_loop_protocol::display::text::head(text, BYTES_MAX),
        )
        .into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        Self { text }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    pub fn title(&self) -> Option<&str> {
        let title = self.text.lines().find_map(|line| line.strip_prefix("# "))?.trim();
        (!title.is_empty()).then_some(title)
    }

    pub fn sections(&self) -> Vec<(&str, &str)> {
        let mut starts: Vec<(usize, usize)> = Vec::new();
        let mut at = 0;
        let mut fenced = false;
        for line in self.text.split_inclusive('\n') {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            } else if !fenced && line.starts_with("## ") {
                starts.push((at, at + line.len()));
            }
            at += line.len();
        }
        let ends = starts.iter().skip(1).map(|(start, _)| *start).chain([self.text.len()]);
        let named = starts
            .iter()
            .zip(ends)
            .map(|((start, body), end)| (self.text[start + 3..*body].trim(), self.text[*body..end].trim()));
        named.collect()
    }

    pub fn section(&self, name: &str) -> &str {
        let found = self.sections().into_iter().find(|(of, _)| of.eq_ignore_ascii_case(name));
        found.map_or("", |(_, body)| body)
    }

    #[must_use]
    pub fn with_title(&self, title: &str) -> Self {
        let title = ralph_loop_protocol::display::text::one_line(title, 80);
        match self.title() {
            Some(old) => Self::new(&self.text.replacen(&format!("# {old}"), &format!("# {title}"), 1)),
            None => Self::new(&format!("# {title}\n\n{}", self.text)),
        }
    }

    #[must_use]
    pub fn with_section(&self, name: &str, body: &str) -> Self {
        let mut sections: Vec<(String, String)> =
            self.sections().iter().map(|(of, body)| ((*of).to_owned(), (*body).to_owned())).collect();
        match sections.iter_mut().find(|(of, _)| of.eq_ignore_ascii_case(name)) {
            Some((_, old)) => body.trim().clone_into(old),
            None => {
                // In its usual place: before the first section that comes later.
                let rank = |of: &str| {
                    SECTIONS.iter().chain([&ENDING]).position(|known| known.eq_ignore_ascii_case(of))
                };
                let wanted = rank(name).unwrap_or(SECTIONS.len() - 1);
                let at = sections.iter().position(|(of, _)| rank(of).is_some_and(|r| r > wanted));
                sections.insert(at.unwrap_or(sections.len()), (name.to_owned(), body.trim().to_owned()));
            }
        }
        let head = self.sections().first().map_or(self.text.as_str(), |(first, _)| {
            let start = self.text.find(&format!("## {first}")).unwrap_or(0);
            &self.text[..start]
        });
        let mut text = format!("{}\n", head.trim_end());
        for (name, body) in &sections {
            text.push_str(&format!("\n## {name}\n\n{body}\n"));
        }
        Self::new(text.trim_start())
    }

    /// Adds a line to a section; to Verification, a command.
    #[must_use]
    pub fn with_line(&self, section: &str, line: &str) -> Self {
        let line = ralph_loop_protocol::display::text::one_line(line, 400);
        if section.eq_ignore_ascii_case("Verification") {
            return self.with_command(&line);
        }
        let line = if line.starts_with("- ") { line } else { format!("- {line}") };
        let body = self.section(section);
        if body.lines().any(|old| old.trim() == line) {
            return self.clone();
        }
        self.with_section(section, &format!("{body}\n{line}"))
    }

    /// Adds a command to the Verification section, in its block.
    fn with_command(&self, line: &str) -> Self {
        let quoted =
            line.split_once('`').and_then(|(_, rest)| rest.split_once('`')).map(|(command, _)| command);
        let command = quoted.unwrap_or(line.trim_start_matches("- ").trim_start_matches("$ ")).trim();
        let body = self.section("Verification");
        if body.lines().any(|old| old.trim().trim_start_matches("- ").trim_matches('`') == command) {
            return self.clone();
        }
        let block = body.strip_suffix("```").filter(|open| open.contains("```"));
        let body = match block {
            Some(open) => format!("{open}{command}\n```"),
            None => format!("{body}\n\n```sh\n{command}\n```"),
        };
        self.with_section("Verification", &body)
    }

    /// Adds the agent's completion promise.
    #[must_use]
    pub fn with_promise(&self, promise: &str) -> Self {
        if self.promise().is_some() {
            return self.clone();
        }
        self.with_section(ENDING, &format!("End your last message with `<promise>{promise}</promise>`."))
    }

    /// The promise the task asks for.
    pub fn promise(&self) -> Option<&str> {
        let (_, rest) = self.text.split_once("<promise>")?;
        rest.split_once("</promise>").map(|(promise, _)| promise)
    }

    /// Whether a section with this part of a prompt has text.
    pub fn has(&self, part: fn(PromptSections) -> bool) -> bool {
        let named = |name: &str| part(prompt_sections(&format!("## {name}\n")));
        let others = ["Open questions", ENDING];
        let mut sections = self.sections().into_iter().filter(|(name, _)| !others.contains(name));
        sections.any(|(name, body)| !body.is_empty() && named(name))
    }

    /// Whether the work is described, in a section or below the title.
    pub fn has_task(&self) -> bool {
        let intro = self.text.lines().take_while(|line| !line.starts_with("## "));
        self.has(|parts| parts.task)
            || intro.filter(|line| !line.starts_with("# ")).any(|line| !line.trim().is_empty())
    }
}

/// Splits an answer into the text for the user and the draft, which may be incomplete.
pub fn split_answer(answer: &str) -> (String, Option<Draft>) {
    let Some((before, rest)) = answer.split_once("```draft") else { return (answer.to_owned(), None) };
    // A task may contain code blocks: the draft ends with the last fence on its own.
    let body = rest.split_once('\n').map_or("", |(_, body)| body);
    let fences: Vec<usize> = body
        .match_indices("\n```")
        .filter(|(at, _)| body[at + 4..].lines().next().is_none_or(|line| line.trim().is_empty()))
        .map(|(at, _)| at)
        .collect();
    let opened = body.lines().filter(|line| line.starts_with("```") && line.trim() != "```").count();
    let (text, after) = match fences.get(opened).or(fences.last().filter(|_| fences.len() > opened)) {
        Some(end) => (&body[..*end], body[end + 4..].trim_start_matches('`')),
        None => (body, ""),
    };
    let draft = (!text.trim().is_empty()).then(|| Draft::new(text.trim_start()));
    (format!("{}\n{}", before.trim_end(), after.trim()).trim().to_owned(), draft)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_keep_their_order_when_changed() {
        let draft = Draft::default().with_title("Keep the order");
        let draft = draft.with_line("Acceptance", "`make test` passes").with_section("Task", "Do it.");
        let draft = draft.with_promise("COMPLETE").with_line("Open questions", "Which order?");
        assert_eq!(draft.title(), Some("Keep the order"));
        let names: Vec<&str> = draft.sections().iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["Task", "Acceptance", "Open questions", "When you are done"]);
        assert_eq!(draft.promise(), Some("COMPLETE"));
        assert_eq!(draft.section("acceptance"), "- `make test` passes");
        assert_eq!(draft.with_line("Acceptance", "`make test` passes"), draft, "a line stands once");
        assert_eq!(draft.with_title("Other").title(), Some("Other"));
        assert_eq!(draft.with_section("Task", "More.").section("Task"), "More.");
    }

    #[test]
    fn a_line_of_verification_becomes_a_command() {
        let draft = Draft::new("# T\n").with_line("Verification", "`make test` passes");
        assert_eq!(draft.section("Verification"), "```sh\nmake test\n```");
        let draft = draft.with_line("Verification", "make lint").with_line("Verification", "make lint");
        assert_eq!(draft.section("Verification"), "```sh\nmake test\nmake lint\n```");
    }

    #[test]
    fn hand_written_text_is_kept() {
        let text = "# T\n\nIntro.\n\n## Task\n\n```sh\n## no heading\n```\n\n## Notes\n\nkept\n";
        let draft = Draft::new(text);
        assert_eq!(draft.sections().len(), 2);
        let changed = draft.with_line("Acceptance", "x");
        assert!(changed.text().contains("Intro.") && changed.text().contains("kept"), "{}", changed.text());
        assert!(changed.text().contains("## no heading"));
    }

    #[test]
    fn sections_are_found_by_heading_and_need_text() {
        let draft = Draft::new("# T\n\nDo it.\n\n## Acceptance criteria\n\nx\n\n## Constraints\n");
        assert!(draft.has_task() && draft.has(|parts| parts.acceptance));
        assert!(!draft.has(|parts| parts.constraints), "an empty section is missing");
        let empty = Draft::new("# T\n").with_promise("COMPLETE");
        assert!(!empty.has_task() && !empty.has(|parts| parts.acceptance));
    }

    #[test]
    fn draft_is_shown_while_the_answer_streams() {
        let (said, draft) = split_answer("I see.\n```draft\n# A\n\n## Task\n\nDo");
        assert_eq!((said.as_str(), draft.unwrap().section("Task")), ("I see.", "Do"));
        let whole =
            "Ok.\n```draft\n# A\n\n## Verification\n\n```sh\nmake\n```\n\n## Task\n\nx\n```\nAnything else?";
        let (said, draft) = split_answer(whole);
        assert_eq!(said, "Ok.\nAnything else?");
        let draft = draft.unwrap();
        assert_eq!((draft.section("Verification"), draft.section("Task")), ("```sh\nmake\n```", "x"));
        assert_eq!(split_answer("only words"), ("only words".to_owned(), None));
    }

    #[test]
    fn control_characters_are_removed_from_tasks() {
        assert_eq!(Draft::new("# \u{1b}[31mA\u{1b}[0m").title(), Some("A"));
    }
}
