//! The checkboxes of a markdown task: which count, what each says, and ticking one by changing a single byte.
//!
//! Only task-list items under a heading "Success criteria" count, up to the next heading of the same or a higher
//! level: not those in code, quotes or other sections, nor dates in brackets.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ralph_loop_protocol::display::text::one_line;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A checkbox under the success criteria. Offsets are bytes of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkbox {
    /// Its id: the written one, or the one it would get.
    pub id: String,
    pub id_written: bool,
    pub id_at: usize,
    /// Its text without the id, on one line.
    pub text: String,
    pub milestone: Option<String>,
    pub ticked: bool,
    pub mark: usize,
    /// Commands of its `verify:` items, with positions.
    pub verify: Vec<(String, usize)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checkboxes {
    /// Those that count, in order.
    pub boxes: Vec<Checkbox>,
    pub has_section: bool,
    pub outside: Vec<usize>,
    /// Items of the section that look like a checkbox but aren't, as the bytes of their brackets.
    pub broken: Vec<Range<usize>>,
    /// `verify:` items with more than one command.
    pub ambiguous: Vec<usize>,
    /// Boxes with `verify:` in their text, where it isn't read as a command.
    pub inline_verify: Vec<usize>,
    /// The first heading's text.
    pub title: Option<String>,
    /// Items of the lists under "Constraints", on one line each.
    pub constraints: Vec<String>,
}

/// Parses `text` from byte `from` on.
pub fn read(text: &str, from: usize) -> Checkboxes {
    let body = text.get(from..).unwrap_or_default();
    let mut reader = CheckboxReader::new(text);
    for (event, range) in Parser::new_ext(body, Options::ENABLE_TASKLISTS).into_offset_iter() {
        reader.event(&event, range.start + from..range.end + from);
    }
    reader.finish()
}

/// Ticks or unticks the boxes in `wanted`, in one pass over the text. Skips ids without a box or with two.
pub fn set_all(text: &str, wanted: &BTreeMap<&str, bool>) -> String {
    let from = super::frontmatter::split(text).map_or(0, |split| split.body.start);
    let read = read(text, from);
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for found in &read.boxes {
        *count.entry(found.id.as_str()).or_default() += 1;
    }
    let mut out = text.to_owned();
    for found in read.boxes.iter().filter(|found| count.get(found.id.as_str()) == Some(&1)) {
        if let Some(ticked) = wanted.get(found.id.as_str()).filter(|ticked| **ticked != found.ticked) {
            // One byte for another: later offsets stay valid.
            out.replace_range(found.mark..found.mark + 1, if *ticked { "x" } else { " " });
        }
    }
    out
}

struct ListItem {
    /// Its index among the boxes, if it is one.
    is_box: Option<usize>,
    start: usize,
    text: String,
    text_at: Option<usize>,
    /// Its text has ended: a nested block began.
    closed: bool,
    codes: Vec<String>,
}

struct CheckboxReader<'a> {
    source: &'a str,
    out: Checkboxes,
    heading: Option<(HeadingLevel, String)>,
    section: Option<HeadingLevel>,
    constraints: Option<HeadingLevel>,
    milestone: Option<String>,
    /// Quotes and similar blocks around the current position.
    quotes: usize,
    items: Vec<ListItem>,
}

impl<'a> CheckboxReader<'a> {
    fn new(source: &'a str) -> Self {
        Self {
            source,
            out: Checkboxes::default(),
            heading: None,
            section: None,
            constraints: None,
            milestone: None,
            quotes: 0,
            items: Vec::new(),
        }
    }

    fn event(&mut self, event: &Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(Tag::Heading { level, .. }) if self.quotes == 0 && self.items.is_empty() => {
                self.heading = Some((*level, String::new()));
            }
            Event::End(TagEnd::Heading(_)) => self.heading_ends(),
            Event::Start(Tag::BlockQuote(_) | Tag::CodeBlock(_) | Tag::HtmlBlock) => {
                self.close_own_text();
                self.quotes += 1;
            }
            Event::End(TagEnd::BlockQuote(_) | TagEnd::CodeBlock | TagEnd::HtmlBlock) => {
                self.quotes = self.quotes.saturating_sub(1);
            }
            Event::Start(Tag::List(_)) | Event::End(TagEnd::Paragraph) => self.close_own_text(),
            Event::Start(Tag::Item) => self.items.push(ListItem {
                is_box: None,
                start: range.start,
                text: String::new(),
                text_at: None,
                closed: false,
                codes: Vec::new(),
            }),
            Event::End(TagEnd::Item) => self.item_ends(),
            Event::TaskListMarker(ticked) => self.marker(*ticked, &range),
            Event::Code(code) => {
                self.push(&format!("`{code}`"), range.start);
                if let Some(item) = self.items.last_mut().filter(|item| !item.closed) {
                    item.codes.push(code.to_string());
                }
            }
            Event::Text(text) | Event::InlineHtml(text) => self.push(text, range.start),
            Event::SoftBreak | Event::HardBreak => self.push(" ", range.start),
            _ => {}
        }
    }

    fn push(&mut self, text: &str, at: usize) {
        if let Some((_, heading)) = &mut self.heading {
            heading.push_str(text);
        } else if self.quotes == 0
            && let Some(item) = self.items.last_mut().filter(|item| !item.closed)
        {
            item.text_at.get_or_insert(at);
            item.text.push_str(text);
        }
    }

    /// A nested list or block ends the item's text.
    fn close_own_text(&mut self) {
        if let Some(item) = self.items.last_mut() {
            item.closed |= !item.text.trim().is_empty();
        }
    }

    fn heading_ends(&mut self) {
        let Some((level, text)) = self.heading.take() else { return };
        let text = text.trim();
        if self.out.title.is_none() && !text.is_empty() {
            self.out.title = Some(text.to_owned());
        }
        // `HeadingLevel` orders H1 before H2: a smaller one is higher.
        if self.section.is_some_and(|section| level <= section) {
            self.section = None;
        }
        if self.constraints.is_some_and(|section| level <= section) {
            self.constraints = None;
        }
        if is_heading(text, "success criteria") {
            self.section = Some(level);
            self.out.has_section = true;
            self.milestone = None;
        } else if self.section.is_some() {
            self.milestone = milestone(text);
        } else if is_heading(text, "constraints") {
            self.constraints = Some(level);
        }
    }

    fn marker(&mut self, ticked: bool, range: &Range<usize>) {
        // `[ ]` ends at the end of the range; spaces may precede it.
        let Some(open) = range.end.checked_sub(3) else { return };
        let mark = open + 1;
        let brackets = self.source.as_bytes().get(open..range.end);
        if self.quotes > 0 || !brackets.is_some_and(|b| b.starts_with(b"[") && b.ends_with(b"]")) {
            return;
        }
        if self.section.is_none() {
            self.out.outside.push(open);
            return;
        }
        if let Some(item) = self.items.last_mut() {
            item.is_box = Some(self.out.boxes.len());
            let after = &self.source.as_bytes()[range.end..];
            let blanks = after.iter().take_while(|b| **b == b' ' || **b == b'\t').count();
            self.out.boxes.push(Checkbox {
                id: String::new(),
                id_written: false,
                id_at: range.end + blanks,
                text: String::new(),
                milestone: self.milestone.clone(),
                ticked,
                mark,
                verify: Vec::new(),
            });
        }
    }

    fn item_ends(&mut self) {
        let Some(item) = self.items.pop() else { return };
        let text = item.text.trim();
        if let Some(found) = item.is_box.and_then(|at| self.out.boxes.get_mut(at)) {
            let (id, rest) = split_id(text);
            found.id_written = id.is_some();
            found.id = id.unwrap_or_default().to_owned();
            found.text = one_line(rest, 4_000);
            if text.to_ascii_lowercase().contains("verify:") {
                self.out.inline_verify.push(found.mark - 1);
            }
            return;
        }
        if self.constraints.is_some() && self.section.is_none() && self.quotes == 0 && !text.is_empty() {
            self.out.constraints.push(one_line(text, 1_000));
        }
        if self.section.is_none() || self.quotes > 0 {
            return;
        }
        if let Some(length) = almost_box(text) {
            let at = item.text_at.unwrap_or(item.start);
            // If the text was escaped, its bytes differ from the file's: then it was meant as text.
            if self.source.get(at..at + length) == text.get(..length) {
                self.out.broken.push(at..at + length);
            }
            return;
        }
        let Some(rest) = strip_verify(text) else { return };
        let owner = self.items.last().and_then(|item| item.is_box);
        let Some(owner) = owner.and_then(|at| self.out.boxes.get_mut(at)) else { return };
        let at = item.text_at.unwrap_or(item.start);
        match item.codes.as_slice() {
            [] => owner.verify.push((rest.trim().to_owned(), at)),
            [code] => owner.verify.push((code.trim().to_owned(), at)),
            [first, ..] => {
                owner.verify.push((first.trim().to_owned(), at));
                self.out.ambiguous.push(at);
            }
        }
    }

    fn finish(mut self) -> Checkboxes {
        let mut labels: BTreeMap<String, usize> = BTreeMap::new();
        for label in self.out.boxes.iter().filter_map(|found| found.milestone.as_ref()) {
            let next = labels.len() + 1;
            labels.entry(label.clone()).or_insert(next);
        }
        let taken: BTreeSet<String> = self.out.boxes.iter().map(|found| found.id.clone()).collect();
        let mut counters: BTreeMap<String, usize> = BTreeMap::new();
        for found in self.out.boxes.iter_mut().filter(|found| !found.id_written) {
            let prefix = match &found.milestone {
                Some(label) if is_milestone_id(label) => label.clone(),
                Some(label) => format!("M{}", labels.get(label).copied().unwrap_or(1)),
                None => format!("M{}", usize::from(labels.is_empty())),
            };
            let counter = counters.entry(prefix.clone()).or_insert(0);
            loop {
                *counter += 1;
                found.id = format!("{prefix}.{counter}");
                if !taken.contains(&found.id) {
                    break;
                }
            }
        }
        self.out
    }
}

/// Whether a heading has this name, ignoring numbers before and words after it.
fn is_heading(text: &str, name: &str) -> bool {
    let text = text.trim_start_matches(|c: char| !c.is_alphabetic()).to_lowercase();
    text.strip_prefix(name).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// `M1` of `Milestone M1 — Behavior`, or of `M1: Behavior`.
fn milestone(heading: &str) -> Option<String> {
    let mut words = heading.split(|c: char| c.is_whitespace() || ":—–".contains(c)).filter(|w| !w.is_empty());
    let first = words.next()?;
    if first.eq_ignore_ascii_case("milestone") {
        return words.next().map(|word| word.trim_matches(['.', ',', ')']).to_owned());
    }
    is_milestone_id(first).then(|| first.to_owned())
}

fn is_milestone_id(word: &str) -> bool {
    word.strip_prefix('M')
        .is_some_and(|digits| (1..=4).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// The id at the start of an item, and the rest. Ids are `M1.1`, `AC2.3.1`, `M4`: narrow on purpose, because "UTF-8
/// names" and "HTTP2 works" start with words.
fn split_id(text: &str) -> (Option<&str>, &str) {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(text.len());
    let word = text[..end].trim_end_matches('.');
    if !is_id(word) {
        return (None, text);
    }
    let rest = text[word.len()..].trim_start_matches(|c: char| c.is_whitespace() || ".:)—–-".contains(c));
    (Some(word), rest)
}

pub fn is_id(word: &str) -> bool {
    if is_milestone_id(word) {
        return true;
    }
    let letters = word.bytes().take_while(u8::is_ascii_uppercase).count();
    let mut parts = word.get(letters..).unwrap_or_default().split('.');
    let is_number = |part: &str| (1..=4).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    (1..=2).contains(&letters) && parts.clone().count() > 1 && parts.all(is_number)
}

fn strip_verify(text: &str) -> Option<&str> {
    let head = text.get(.."verify:".len())?;
    head.eq_ignore_ascii_case("verify:").then(|| &text["verify:".len()..])
}

/// The length of the brackets of an item that looks like a checkbox but isn't.
fn almost_box(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('[')?;
    let close = inner.find(']')?;
    let known = matches!(inner[..close].trim(), "" | "x" | "X" | "-" | "v" | "V" | "✓" | "✔" | "*");
    known.then_some(close + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: &str = include_str!("testdata/checkboxes.md");

    #[test]
    fn only_task_list_items_under_the_success_criteria_count() {
        let read = read(TASK, 0);
        let ids: Vec<&str> = read.boxes.iter().map(|b| b.id.as_str()).collect();
        assert_eq!(ids, ["M1.1", "M1.2", "M2.1", "M2.2", "M2.3"]);
        assert_eq!(read.outside.len(), 2, "Context and Definition of done");
        assert_eq!(read.title.as_deref(), Some("Task: Boxes"));
        assert_eq!(read.constraints, ["Keep diffs small.", "No `unsafe`."]);
    }

    #[test]
    fn item_has_its_text_check_and_milestone() {
        let read = read(TASK, 0);
        let first = &read.boxes[0];
        assert_eq!(first.text, "Foo returns 200 for `valid` input");
        assert_eq!(first.milestone.as_deref(), Some("M1"));
        assert_eq!(first.verify[0].0, "node scripts/verify.js --a | grep x");
        assert_eq!(read.boxes[1].verify[0].0, "npm test", "plain text is a command too");
        assert!(read.boxes[2].ticked && read.boxes[2].verify.is_empty());
        assert_eq!(read.boxes[3].text, "a loose item over two lines");
        assert_eq!(read.boxes[3].verify[0].0, "make check");
    }

    fn tick(text: &str, id: &str) -> String {
        set_all(text, &BTreeMap::from([(id, true)]))
    }

    #[test]
    fn a_tick_changes_one_byte_and_an_untick_brings_it_back() {
        let ticked = tick(TASK, "M1.2");
        let changed: Vec<usize> =
            (0..TASK.len()).filter(|i| TASK.as_bytes()[*i] != ticked.as_bytes()[*i]).collect();
        assert_eq!((ticked.len(), changed.len()), (TASK.len(), 1));
        assert!(read(&ticked, 0).boxes[1].ticked);
        assert_eq!(set_all(&ticked, &BTreeMap::from([("M1.2", false)])), TASK);
        assert_eq!(tick(TASK, "M2.1"), TASK, "ticked already");
        assert_eq!(tick(TASK, "M9.9"), TASK, "no such box");
    }

    #[test]
    fn crlf_tabs_and_unicode_stay_as_they_are() {
        let text = "# T\r\n## Success criteria\r\n-\t[ ] M1.1 ünï\r\n\t- verify: `é`\r\n* [\t] M1.2 b\r\n";
        let boxes = read(text, 0).boxes;
        assert_eq!((boxes.len(), boxes[0].verify[0].0.as_str()), (2, "é"));
        assert_eq!(tick(text, "M1.1"), text.replace("-\t[ ]", "-\t[x]"));
        assert_eq!(tick(text, "M1.2"), text.replace("[\t]", "[x]"));
    }

    #[test]
    fn missing_ids_are_the_next_free_ones_of_their_milestone() {
        let text = "# Success criteria\n### Milestone M3 — x\n- [ ] one\n- [ ] M3.1 two\n- [ ] three\n";
        let ids: Vec<String> = read(text, 0).boxes.into_iter().map(|b| b.id).collect();
        assert_eq!(ids, ["M3.2", "M3.1", "M3.3"]);
        let plain = read("# Success criteria\n- [ ] a\n- [ ] b\n", 0).boxes;
        assert_eq!(plain[1].id, "M1.2");
    }

    #[test]
    fn words_that_resemble_ids_are_not_ids() {
        for (text, id) in [
            ("M1.1 x", Some("M1.1")),
            ("M1.1: x", Some("M1.1")),
            ("AC2.3.1. x", Some("AC2.3.1")),
            ("M4 x", Some("M4")),
            ("TLS1.3 is used", None),
            ("UTF-8 names", None),
            ("HTTP2 works", None),
            ("1.2 release", None),
            ("M1.1x y", None),
        ] {
            assert_eq!(split_id(text).0, id, "{text}");
        }
        assert_eq!(split_id("M1.1 — é").1, "é");
    }

    #[test]
    fn broken_checkboxes_are_found() {
        let text = "# Success criteria\n- [] a\n- [ ]b\n- [x](http://x) link\n- [2026-01-01] date\n- [✓] c\n";
        let read = read(text, 0);
        let broken: Vec<&str> = read.broken.iter().map(|range| &text[range.clone()]).collect();
        assert_eq!(broken, ["[]", "[ ]", "[✓]"]);
        assert!(read.boxes.is_empty());
    }

    #[test]
    fn two_commands_in_one_check_are_ambiguous() {
        let read =
            read("# Success criteria\n- [ ] M1.1 a\n  - verify: `x` and `y`\n- [ ] M1.2 b; verify: `z`\n", 0);
        assert_eq!((read.ambiguous.len(), read.inline_verify.len()), (1, 1));
    }

    #[test]
    fn the_section_ends_at_the_next_heading_of_its_level() {
        let text = "### Success criteria (checkboxes)\n#### Milestone M1\n- [ ] M1.1 a\n## Other\n- [ ] b\n";
        let read = read(text, 0);
        assert_eq!((read.boxes.len(), read.outside.len()), (1, 1));
    }
}
