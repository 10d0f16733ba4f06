//! Builds first line and text of a commit or a pull request from the agent's own words.

use ralph_loop_protocol::display::text::one_line;

const SUBJECT_MAX: usize = 72;
const BODY_MAX: usize = 1000;
/// Characters of a path, and paths that are listed.
const PATH_MAX: usize = 48;
const FILES_MAX: usize = 20;
/// Fewer words ("done", "did it") don't describe a change.
const WORDS_MIN: usize = 3;

/// First line and text of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeText {
    /// The first line, without a full stop.
    pub subject: String,
    /// The rest of the text, in short lines; empty if the first line says it all.
    pub body: String,
}

impl ChangeText {
    /// From an agent's final message; `None` if that says too little.
    pub fn of_words(words: &str) -> Option<Self> {
        let words = plain(words);
        if words.split_whitespace().count() < WORDS_MIN {
            return None;
        }
        let from = meaningful(&words);
        let words = &words[from..];
        let sentence = first_sentence(words);
        let subject = one_line(sentence.trim_end_matches(['.', ':', ';', ',']), SUBJECT_MAX);
        // A truncated sentence is repeated in full below.
        let cut = subject.ends_with('…') && !sentence.ends_with('…');
        let rest = if cut { words } else { words[sentence.len()..].trim_start() };
        let body = wrapped(&one_line(rest, BODY_MAX), SUBJECT_MAX);
        Some(Self { subject, body })
    }

    /// From the files alone: status (`A`, `M`, `D`, …) and path of each.
    pub fn of_files(files: &[(char, &str)]) -> Self {
        let all = |status: char| !files.is_empty() && files.iter().all(|(s, _)| *s == status);
        let verb = match (all('A'), all('D')) {
            (true, _) => "Add",
            (_, true) => "Remove",
            _ => "Update",
        };
        let path = |at: usize| {
            files.get(at).map_or_else(String::new, |(_, path)| without_skip_marks(&one_line(path, PATH_MAX)))
        };
        let more = files.len().saturating_sub(1);
        let noun = if more == 1 { "file" } else { "files" };
        let subject = match files.len() {
            0 => format!("{verb} files"),
            1 => format!("{verb} {}", path(0)),
            2 if path(0).chars().count() + path(1).chars().count() + 12 <= SUBJECT_MAX => {
                format!("{verb} {} and {}", path(0), path(1))
            }
            _ => format!("{verb} {} and {more} more {noun}", path(0)),
        };
        let mut lines: Vec<String> =
            (0..files.len().min(FILES_MAX)).map(|at| format!("- {}", path(at))).collect();
        if files.len() > FILES_MAX {
            lines.push(format!("- and {} more", files.len() - FILES_MAX));
        }
        let told = files.len() <= 1 || (files.len() == 2 && !subject.ends_with(noun));
        Self { subject, body: if told { String::new() } else { lines.join("\n") } }
    }

    /// As a commit message: the first line, an empty one, the text.
    pub fn message(&self) -> String {
        match self.body.as_str() {
            "" => self.subject.clone(),
            body => format!("{}\n\n{body}", self.subject),
        }
    }
}

/// Words in brackets that tell a code host to skip the checks of a commit: `[skip ci]`, `[ci skip]`, `[no ci]`.
const NO_CHECKS: &[&str] = &["skip", "no ci", "no-ci", "no_ci"];

/// Removes marks that tell a code host to skip checks: an agent must not decide that.
pub fn without_skip_marks(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(close) = rest.find(']') {
        // The innermost bracket: `[[skip ci]]` also holds a mark.
        let open = rest[..close].rfind('[');
        let marks = |inside: &str| {
            let inside = inside.to_ascii_lowercase();
            inside.len() < 40 && NO_CHECKS.iter().any(|word| inside.contains(word))
        };
        match open.filter(|open| marks(&rest[open + 1..close])) {
            Some(open) => {
                out.push_str(&format!("{}({})", &rest[..open], &rest[open + 1..close]));
            }
            None => out.push_str(&rest[..=close]),
        }
        rest = &rest[close + 1..];
    }
    out.push_str(rest);
    let is_trailer = |line: &&str| !line.trim_start().to_ascii_lowercase().starts_with("skip-checks:");
    let lines: Vec<&str> = out.split('\n').filter(is_trailer).collect();
    lines.join("\n").replace("***NO_CI***", "NO_CI")
}

/// The words without the promise and formatting marks.
fn plain(words: &str) -> String {
    let mut text = without_skip_marks(words);
    while let Some(from) = text.find("<promise>") {
        let to = text[from..].find("</promise>").map_or(text.len(), |at| from + at + "</promise>".len());
        text.replace_range(from..to, " ");
    }
    let words = text.split_whitespace().filter(|word| !word.chars().all(|c| "#*-_=>`|".contains(c)));
    let words: Vec<&str> = words.map(|word| word.trim_start_matches('#')).collect();
    words.join(" ").replace("**", "").trim_matches('`').trim().to_owned()
}

/// Sentence starts that don't describe a change: that it is made, that its tests pass, that a list follows.
const EMPTY_WORDS: &str = "all done|done|perfect|great|here is|here's|summary|the task is|the work is|task complete|\
    i have completed the task|i've completed the task|i have finished|i've finished|everything is|\
    everything passes|tests:|checks:|all tests|all the tests|the tests pass|all checks|the following|\
    let me|let's|now i|i look|i am looking|i'm looking|i'll|i will|i am going to|i'm going to|\
    i need to|i start|i read|i check|i see|looking at|first, i|first i|next, i|okay|ok,";

/// The start of the first meaningful sentence, or of the text.
fn meaningful(text: &str) -> usize {
    let mut at = 0;
    while at < text.len() {
        let sentence = short_sentence(&text[at..]);
        let lower = sentence.to_lowercase();
        let empty = sentence.split_whitespace().count() < WORDS_MIN
            || EMPTY_WORDS.split('|').any(|words| lower.starts_with(words));
        if !empty {
            return at;
        }
        at += sentence.len();
        at += text[at..].len() - text[at..].trim_start().len();
    }
    0
}

/// Up to the first mark that ends a sentence.
fn short_sentence(text: &str) -> &str {
    let end =
        text.match_indices(' ').map(|(at, _)| at).find(|at| text[..*at].ends_with(['.', '!', '?', ':']));
    end.map_or(text, |at| &text[..at])
}

/// An agent's message as running text: without headings, fenced blocks and list marks; each list item ends like a
/// sentence.
pub fn prose(message: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    let (mut fenced, mut new_paragraph) = (false, true);
    for line in message.lines().map(str::trim) {
        if line.starts_with("```") || line.starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        if line.is_empty() {
            new_paragraph = true;
            continue;
        }
        if fenced || is_heading(line) {
            continue;
        }
        let item = item(line);
        if (new_paragraph || item.is_some())
            && let Some(last) = out.last_mut()
            && !last.ends_with(['.', '!', '?', ':', ';', ',', '…'])
        {
            last.push('.');
        }
        out.push(item.unwrap_or(line).to_owned());
        new_paragraph = false;
    }
    match out.is_empty() {
        // A heading alone is better than nothing.
        true => message
            .lines()
            .map(|line| line.trim().trim_start_matches('#').trim())
            .collect::<Vec<_>>()
            .join(" "),
        false => out.join(" "),
    }
    .trim()
    .to_owned()
}

/// The prose from its first meaningful sentence.
pub fn first_prose(message: &str) -> String {
    let text = prose(message);
    text[meaningful(&text)..].to_owned()
}

pub fn last_paragraph(message: &str) -> String {
    message.rsplit("\n\n").map(str::trim).find(|part| !part.is_empty()).unwrap_or("").to_owned()
}

/// `## Summary`, `**Changes**` or `Changes:` on a separate line.
fn is_heading(line: &str) -> bool {
    let bold = line.len() > 4 && line.starts_with("**") && line.trim_end_matches(':').ends_with("**");
    let short = line.split_whitespace().count() < WORDS_MIN;
    line.starts_with('#') || (short && (bold || line.ends_with(':')))
}

fn item(line: &str) -> Option<&str> {
    let bullet = ["- [x] ", "- [ ] ", "- ", "* ", "• "].iter().find_map(|mark| line.strip_prefix(mark));
    bullet.or_else(|| {
        let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let numbered = digits.len() < line.len() && line.len() - digits.len() < 3;
        digits.strip_prefix(['.', ')']).filter(|rest| numbered && rest.starts_with(' ')).map(str::trim_start)
    })
}

/// Up to the first full stop that ends a sentence, or the first colon before a list.
fn first_sentence(text: &str) -> &str {
    let end = text.match_indices([' ']).map(|(at, _)| at).find(|at| {
        let before = &text[..*at];
        let enough = before.split_whitespace().count() >= WORDS_MIN;
        enough && before.ends_with(['.', '!', '?', ':'])
    });
    end.map_or(text, |at| &text[..at])
}

fn wrapped(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_is_the_first_line() {
        let said = "**Fixed the router's drain path.** The lock was taken twice, so messages could overtake each other. <promise>COMPLETE</promise>";
        let text = ChangeText::of_words(said).unwrap();
        assert_eq!(text.subject, "Fixed the router's drain path");
        assert_eq!(
            text.message(),
            "Fixed the router's drain path\n\nThe lock was taken twice, so messages could overtake each other."
        );
        assert_eq!(ChangeText::of_words("## Added a test").unwrap().message(), "Added a test");
        let long = "word ".repeat(40);
        assert!(ChangeText::of_words(&long).unwrap().subject.chars().count() <= 72);
    }

    #[test]
    fn description_comes_before_test_results() {
        let said = "Done!\n\n## Summary\n\nI made `add` commutative.\n\n- Swapped the operands\n- Added a test\n\n```sh\nmake\n```\n\nTests: 2 pass";
        let text = ChangeText::of_words(&prose(said)).unwrap();
        assert_eq!(text.subject, "I made `add` commutative");
        assert_eq!(text.body, "Swapped the operands. Added a test. Tests: 2 pass");
        assert_eq!(last_paragraph(said), "Tests: 2 pass");
        assert!(first_prose(said).starts_with("I made `add` commutative."), "{}", first_prose(said));
        assert_eq!(first_prose("Done."), "Done.");
        let only = ChangeText::of_words("All tests pass now.").unwrap();
        assert_eq!(only.message(), "All tests pass now");
        assert_eq!(prose("## Added a test"), "Added a test");
        assert_eq!(prose("1. First thing\n2) Second thing"), "First thing. Second thing");
        let long = format!("Fixed {} by hand. More.", "the very long thing ".repeat(10));
        let text = ChangeText::of_words(&long).unwrap();
        assert!(text.subject.ends_with('…') && text.body.starts_with("Fixed the very"), "{text:?}");
    }

    #[test]
    fn description_comes_before_the_plan() {
        let said = "I look at the files. Let me run the check first. Wrote the greeting into out.txt.";
        assert_eq!(ChangeText::of_words(said).unwrap().subject, "Wrote the greeting into out.txt");
    }

    #[test]
    fn skip_ci_marks_are_removed() {
        for (said, kept) in [
            ("Fixed the total [skip ci]", "Fixed the total (skip ci)"),
            ("[CI Skip] Fixed the total", "(CI Skip) Fixed the total"),
            ("Fixed the total\n\nskip-checks: true", "Fixed the total\n"),
            ("Fixed [the total] of US-1 [x]", "Fixed [the total] of US-1 [x]"),
            ("a ***NO_CI*** b", "a NO_CI b"),
            ("[[skip ci]]", "[(skip ci)]"),
        ] {
            assert_eq!(without_skip_marks(said), kept, "{said}");
        }
        assert_eq!(
            ChangeText::of_words("Fixed the total [no ci] now").unwrap().subject,
            "Fixed the total (no ci) now"
        );
        assert_eq!(ChangeText::of_files(&[('A', "[skip ci].txt")]).subject, "Add (skip ci).txt");
    }

    #[test]
    fn empty_phrases_give_no_text() {
        for words in ["", "done", "did it", "<promise>COMPLETE</promise>", "Done. <promise>X", "--- ***"] {
            assert_eq!(ChangeText::of_words(words), None, "{words}");
        }
    }

    #[test]
    fn files_alone_make_a_message_too() {
        let message = |files: &[(char, &str)]| ChangeText::of_files(files).message();
        assert_eq!(message(&[('M', "src/a.py")]), "Update src/a.py");
        assert_eq!(message(&[('A', "a"), ('A', "b")]), "Add a and b");
        assert_eq!(
            message(&[('M', "src/a.py"), ('A', "src/b.py"), ('D', "c")]),
            "Update src/a.py and 2 more files\n\n- src/a.py\n- src/b.py\n- c"
        );
        let long = "x".repeat(300);
        let many: Vec<(char, &str)> = (0..40).map(|_| ('D', long.as_str())).collect();
        let text = ChangeText::of_files(&many);
        assert!(
            text.subject.starts_with("Remove xxx") && text.subject.chars().count() <= 72,
            "{}",
            text.subject
        );
        assert!(text.body.ends_with("- and 20 more") && text.body.len() < 2000);
    }
}
