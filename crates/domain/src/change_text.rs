//! What a change is called: first line and text of a commit or a pull request, from the agent's own words.

use ralph_protocol::text::one_line;

/// Characters of a first line.
const SUBJECT_MAX: usize = 72;
/// Characters of the text below it.
const BODY_MAX: usize = 1000;
/// Characters of a path, and paths that are listed.
const PATH_MAX: usize = 48;
const FILES_MAX: usize = 20;
/// Fewer words than this say nothing about a change ("done", "did it").
const WORDS_MIN: usize = 3;

/// First line and text of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeText {
    /// The first line, without a full stop.
    pub subject: String,
    /// More of the same words, in short lines; empty where the first line says it all.
    pub body: String,
}

impl ChangeText {
    /// From what an agent said at the end of its session; nothing where that says too little.
    pub fn of_words(words: &str) -> Option<Self> {
        let words = plain(words);
        if words.split_whitespace().count() < WORDS_MIN {
            return None;
        }
        let sentence = first_sentence(&words);
        let subject = one_line(sentence.trim_end_matches(['.', ':', ';', ',']), SUBJECT_MAX);
        let body = if words.chars().count() > subject.chars().count() + 1 {
            wrapped(&one_line(&words, BODY_MAX), SUBJECT_MAX)
        } else {
            String::new()
        };
        Some(Self { subject, body })
    }

    /// From the files alone, where nobody said anything about them: status (`A`, `M`, `D`, …) and path of each.
    pub fn of_files(files: &[(char, &str)]) -> Self {
        let all = |status: char| !files.is_empty() && files.iter().all(|(s, _)| *s == status);
        let verb = match (all('A'), all('D')) {
            (true, _) => "Add",
            (_, true) => "Remove",
            _ => "Update",
        };
        let path = |at: usize| files.get(at).map_or_else(String::new, |(_, path)| one_line(path, PATH_MAX));
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

    /// As a commit has it: the first line, an empty one, the text.
    pub fn message(&self) -> String {
        match self.body.as_str() {
            "" => self.subject.clone(),
            body => format!("{}\n\n{body}", self.subject),
        }
    }
}

/// The words without the promise and without marks of formatting.
fn plain(words: &str) -> String {
    let mut text = words.to_owned();
    while let Some(from) = text.find("<promise>") {
        let to = text[from..].find("</promise>").map_or(text.len(), |at| from + at + "</promise>".len());
        text.replace_range(from..to, " ");
    }
    let words = text.split_whitespace().filter(|word| !word.chars().all(|c| "#*-_=>`|".contains(c)));
    let words: Vec<&str> = words.map(|word| word.trim_start_matches('#')).collect();
    words.join(" ").replace("**", "").trim_matches('`').trim().to_owned()
}

/// Up to the first full stop that ends a sentence, or the first colon that begins a list.
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
            "Fixed the router's drain path\n\nFixed the router's drain path. The lock was taken twice, so messages\ncould overtake each other."
        );
        assert_eq!(ChangeText::of_words("## Added a test").unwrap().message(), "Added a test");
        let long = "word ".repeat(40);
        assert!(ChangeText::of_words(&long).unwrap().subject.chars().count() <= 72);
    }

    #[test]
    fn what_says_nothing_is_no_text() {
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
