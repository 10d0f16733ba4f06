//! What a change is called: first line and text of a commit or a pull request, from the agent's own words.

use ralph_protocol::text::one_line;

/// Characters of a first line.
const SUBJECT_MAX: usize = 72;
/// Characters of the text below it.
const BODY_MAX: usize = 1000;
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
}
