//! Claims: what an agent says about its work. A claim never ends a run; it only starts the engine's checks.

/// What the agent's final message claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    Promised,
    /// Its last line has the tag inside a sentence, which may be about the promise.
    NotOnOwnLine,
    None,
}

/// Whether `message` (the agent's final message, joined over stream pieces) promises `word`: the tag
/// `<promise>word</promise>` alone on a line, or after the last sentence of the last line. A sentence that mentions
/// the tag, or a tag inside a code fence or a quote, doesn't count.
pub fn promises(message: &str, word: &str) -> bool {
    claim(message, word) == Claim::Promised
}

/// What `message` claims about `word`.
pub fn claim(message: &str, word: &str) -> Claim {
    let tag = format!("<promise>{word}</promise>");
    let mut fence: Option<&str> = None;
    // The last line that isn't empty, if it is neither code nor a quote.
    let mut last = "";
    for line in message.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(open) = fence {
            last = "";
            if line.starts_with(open) && line.trim_start_matches(open).trim().is_empty() {
                fence = None;
            }
        } else if let Some(open) = ["```", "~~~"].into_iter().find(|open| line.starts_with(open)) {
            (last, fence) = ("", Some(open));
        } else if line == tag {
            return Claim::Promised;
        } else {
            last = if line.starts_with('>') { "" } else { line };
        }
    }
    match last.strip_suffix(tag.as_str()) {
        Some(before) if ends_sentence(before) => Claim::Promised,
        _ if last.contains(&tag) => Claim::NotOnOwnLine,
        _ => Claim::None,
    }
}
/// Whether the text before the tag is a complete sentence, and not the start of a quotation.
fn ends_sentence(before: &str) -> bool {
    before.ends_with(char::is_whitespace) && before.trim_end().ends_with(['.', '!', '…', '✅'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tag_alone_on_a_line_promises() {
        assert!(promises("All done.\n\n<promise>COMPLETE</promise>\n", "COMPLETE"));
        assert!(promises("  <promise>COMPLETE</promise>\r\n", "COMPLETE"));
        for no in [
            "",
            "I will print <promise>COMPLETE</promise> when done.",
            "> <promise>COMPLETE</promise>",
            "`<promise>COMPLETE</promise>`",
            "<promise>complete</promise>",
            "<promise>DONE</promise>",
            "<promise> COMPLETE </promise>",
            "```\n<promise>COMPLETE</promise>\n```",
            "not yet time for\n~~~text\n<promise>COMPLETE</promise>\n~~~",
        ] {
            assert!(!promises(no, "COMPLETE"), "{no:?} was taken for a promise");
        }
    }

    #[test]
    fn tag_after_the_last_sentence_promises_and_inside_one_does_not() {
        for yes in ["All done. <promise>X</promise>", "Made it.\n\nTests pass!  <promise>X</promise>\n"] {
            assert_eq!(claim(yes, "X"), Claim::Promised, "{yes:?}");
        }
        for near in [
            "When done I will print <promise>X</promise>",
            "Done: `<promise>X</promise>`",
            "<promise>X</promise> is next.",
        ] {
            assert_eq!(claim(near, "X"), Claim::NotOnOwnLine, "{near:?}");
        }
        for no in [
            "First part. <promise>X</promise>\nBut the second is open.",
            "> Done. <promise>X</promise>",
            "Done.<promise>Y</promise>",
            "```\nDone. <promise>X</promise>",
        ] {
            assert_eq!(claim(no, "X"), Claim::None, "{no:?}");
        }
    }

    #[test]
    fn a_fence_that_was_closed_hides_nothing_after_it() {
        assert!(promises("```sh\nls\n```\n<promise>X</promise>", "X"));
    }
}
