//! The commands of a prompt's Verification section. Prose stays prompt.
//!
//! A command is a line of a shell fence, or a list item that is wholly one code span.

use super::diagnostic::Lines;
use crate::criterion::Span;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// Languages of a fence whose lines are commands; a fence without a language also counts.
const SHELLS: [&str; 8] = ["", "sh", "bash", "shell", "zsh", "console", "shell-session", "terminal"];
/// Commands that change the shell for the next lines of their fence.
const SETUP: [&str; 4] = ["cd", "export", "source", "."];

/// Whether a heading announces how the result is checked. A sentence about tests is a task.
pub(crate) fn is_heading(heading: &str) -> bool {
    let heading = heading.to_lowercase();
    let words: Vec<&str> =
        heading.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).collect();
    let names = |word: &&str| word.starts_with("verif") || *word == "validation";
    matches!(words.as_slice(), ["checks" | "tests"]) || (words.len() <= 4 && words.iter().any(names))
}

/// The commands in file order, each once, with the place of its first line.
pub fn commands(text: &str) -> Vec<(String, Span)> {
    let text = text.trim_start_matches('\u{feff}');
    let lines = Lines::new(text);
    let mut reader = SectionReader::default();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TASKLISTS).into_offset_iter() {
        reader.event(event, range.start);
    }
    reader.found.sort_by_key(|(_, at)| *at);
    let mut out: Vec<(String, Span)> = Vec::new();
    for (command, at) in reader.found {
        if !out.iter().any(|(known, _)| *known == command) {
            out.push((command, lines.place(at)));
        }
    }
    out
}

#[derive(Default)]
struct SectionReader {
    found: Vec<(String, usize)>,
    /// Whether the first heading is over: at the top level it is the task's title.
    has_title: bool,
    section: Option<HeadingLevel>,
    heading: Option<String>,
    /// Lines of the open shell fence, with their offsets.
    fence: Option<Vec<(String, usize)>>,
    /// Open list items, innermost last.
    items: Vec<ListItem>,
}

/// An item's own text, without nested blocks.
#[derive(Default)]
struct ListItem {
    code: Option<(String, usize)>,
    has_prose: bool,
}

impl SectionReader {
    fn event(&mut self, event: Event<'_>, at: usize) {
        match event {
            Event::Start(Tag::Heading { .. }) => self.heading = Some(String::new()),
            Event::End(TagEnd::Heading(level)) => {
                let heading = self.heading.take().unwrap_or_default();
                if self.section.is_none_or(|section| level <= section) {
                    let is_title = !self.has_title && level == HeadingLevel::H1;
                    self.section = (!is_title && is_heading(&heading)).then_some(level);
                }
                self.has_title = true;
            }
            Event::Text(text) | Event::Code(text) if self.heading.is_some() => {
                self.heading.get_or_insert_default().push_str(&text);
            }
            _ if self.section.is_none() => {}
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                let language = info.split([' ', ',', '{']).next().unwrap_or_default().to_lowercase();
                self.fence = SHELLS.contains(&language.as_str()).then(Vec::new);
            }
            Event::End(TagEnd::CodeBlock) => {
                self.found.extend(commands_of(&self.fence.take().unwrap_or_default()));
            }
            Event::Text(text) if self.fence.is_some() => self.fence_text(&text, at),
            Event::Start(Tag::Item) => self.items.push(ListItem::default()),
            Event::End(TagEnd::Item) => {
                let item = self.items.pop().unwrap_or_default();
                self.found.extend(item.code.filter(|(code, _)| !item.has_prose && !code.is_empty()));
            }
            Event::Code(code) => {
                if let Some(item) = self.items.last_mut() {
                    item.has_prose |= item.code.is_some();
                    item.code = Some((code.trim().to_owned(), at));
                }
            }
            Event::Text(_) | Event::Start(Tag::Link { .. } | Tag::Image { .. }) => {
                if let Some(item) = self.items.last_mut() {
                    item.has_prose = true;
                }
            }
            _ => {}
        }
    }

    /// The parser cuts a fence's text anywhere, so lines are put together again.
    fn fence_text(&mut self, text: &str, at: usize) {
        let Some(lines) = &mut self.fence else { return };
        let mut from = at;
        for piece in text.split_inclusive('\n') {
            match lines.last_mut().filter(|(line, _)| !line.ends_with('\n')) {
                Some((line, _)) => line.push_str(piece),
                None => lines.push((piece.to_owned(), from)),
            }
            from += piece.len();
        }
    }
}

/// The commands of one fence. If a line has a prompt, lines without one are output.
fn commands_of(lines: &[(String, usize)]) -> Vec<(String, usize)> {
    let has_prompts = lines.iter().any(|(line, _)| line.trim_start().starts_with("$ "));
    let mut out = Vec::new();
    let mut setup = String::new();
    let mut open: Option<(String, usize)> = None;
    for (line, at) in lines {
        let line = line.trim();
        let (mut command, at) = match open.take() {
            Some((begun, at)) => (format!("{begun} {line}"), at),
            None => match line.strip_prefix("$ ") {
                Some(command) => (command.trim().to_owned(), *at),
                None if has_prompts || line.is_empty() || line.starts_with('#') => continue,
                None => (line.to_owned(), *at),
            },
        };
        if let Some(begun) = command.strip_suffix('\\') {
            open = Some((begun.trim_end().to_owned(), at));
            continue;
        }
        command.insert_str(0, &setup);
        if command[setup.len()..].split(' ').next().is_some_and(|word| SETUP.contains(&word))
            && !command[setup.len()..].contains([';', '&', '|'])
        {
            setup = format!("{command} && ");
        } else {
            out.push((command, at));
        }
    }
    out.extend(open);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, usize)> {
        commands(text).into_iter().map(|(command, place)| (command, place.line)).collect()
    }

    /// Name, section, and its commands with their lines.
    type Case = (&'static str, &'static str, &'static [(&'static str, usize)]);

    #[test]
    fn commands_are_fence_lines_and_items_that_are_one_code_span() {
        let table: &[Case] = &[
            ("fence", "```sh\nmake test\n\n# why\n  make lint  \n```", &[("make test", 4), ("make lint", 7)]),
            ("no language", "```\nmake\n```", &[("make", 4)]),
            ("tildes", "~~~bash\nmake\n~~~", &[("make", 4)]),
            ("another language", "```rust\nassert!(true)\n```\n```json\n{}\n```", &[]),
            (
                "prompts",
                "```console\n$ ./app\nhello\n$ ./app \\\n  -v\n```",
                &[("./app", 4), ("./app -v", 6)],
            ),
            (
                "continued",
                "```sh\ncargo test \\\n    --all \\\n    -q\nmake\n```",
                &[("cargo test --all -q", 4), ("make", 7)],
            ),
            ("open end", "```sh\nmake \\\n```", &[("make", 4)]),
            (
                "folder",
                "```sh\ncd web\nnpm test\ncd api && make\n```",
                &[("cd web && npm test", 5), ("cd web && cd api && make", 6)],
            ),
            (
                "items",
                "- `make test`\n* `make lint`\n1. `./app`\n- [ ] `make box`",
                &[("make test", 3), ("make lint", 4), ("./app", 5), ("make box", 6)],
            ),
            ("prose", "Run `make test`.\n\n- `make` passes\n- run `make`\n- `a` `b`\n- plain", &[]),
            (
                "nested",
                "- unit\n  - `make unit`\n- `make all`\n  - takes long\n- loose\n\n  ```sh\n  make loose\n  ```",
                &[("make unit", 4), ("make all", 5), ("make loose", 10)],
            ),
            (
                "below",
                "### Fast\n- `make fast`\n### Slow\n- `make slow`\n## Notes\n- `make no`",
                &[("make fast", 4), ("make slow", 6)],
            ),
            ("comment", "<!--\n- `make no`\n-->\n    make indented\n", &[]),
            ("twice", "- `make`\n\n```\nmake\n```", &[("make", 3)]),
            ("empty", "- ``\n- ` `\n```sh\n```", &[]),
        ];
        for (name, body, expected) in table {
            let expected: Vec<(String, usize)> =
                expected.iter().map(|(command, line)| ((*command).to_owned(), *line)).collect();
            let text = format!("# T\n## Verification\n{body}\n");
            assert_eq!(found(&text), expected, "{name}");
            assert_eq!(found(&text.replace('\n', "\r\n")), expected, "{name} with CRLF");
        }
    }

    #[test]
    fn only_a_section_of_that_name_counts() {
        for heading in [
            "## Verification",
            "Verify\n---",
            "### 4. Checks:",
            "## Tests",
            "## How it is verified",
            "# T\n# Validation",
        ] {
            assert_eq!(found(&format!("{heading}\n- `make`\n")).len(), 1, "{heading}");
        }
        for heading in [
            "# Fix the failing tests",
            "# Verify the parser",
            "## Acceptance",
            "## Add tests",
            "## Checkout flow",
            "text",
        ] {
            assert!(found(&format!("{heading}\n- `make`\n")).is_empty(), "{heading}");
        }
        assert!(found("```\n## Verification\n- `make`\n```\n").is_empty());
        assert_eq!(found("\u{feff}## Verify\n- `make`\n"), [("make".to_owned(), 2)]);
    }
}
