//! Claims: what an agent says about its own work. A claim never ends a run; it only starts the engine's checks.

/// Whether `message` (the agent's final message, joined over stream pieces) promises `word`: the tag
/// `<promise>word</promise>` alone on a line. A sentence that mentions the tag, or a tag inside a code fence or a
/// quote, is no promise.
pub fn promises(message: &str, word: &str) -> bool {
    let tag = format!("<promise>{word}</promise>");
    let mut fence: Option<&str> = None;
    let mut found = false;
    for line in message.lines() {
        let line = line.trim();
        if let Some(open) = fence {
            if line.starts_with(open) && line.trim_start_matches(open).trim().is_empty() {
                fence = None;
            }
            continue;
        }
        if line.starts_with("```") {
            fence = Some("```");
        } else if line.starts_with("~~~") {
            fence = Some("~~~");
        } else if line == tag {
            found = true;
        }
    }
    found
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
    fn a_fence_that_was_closed_hides_nothing_after_it() {
        assert!(promises("```sh\nls\n```\n<promise>X</promise>", "X"));
    }
}
