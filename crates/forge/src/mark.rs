//! The mark that identifies a comment: an HTML comment at its end, which code hosts don't show.

/// Hosts refuse longer texts.
const TEXT_MAX: usize = 65_000;

fn line(mark: &str) -> String {
    // A mark must not end the comment that hides it.
    let mut safe = String::new();
    for byte in mark.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b':' | b'/' => {
                safe.push(char::from(byte))
            }
            other => safe.push_str(&format!("%{other:02x}")),
        }
    }
    format!("<!-- ralph-mark: {safe} -->")
}

pub(crate) fn marked(body: &str, mark: &str) -> String {
    let mark = line(mark);
    format!("{}\n\n{mark}", fitting(body, TEXT_MAX - mark.len()))
}

/// Whether a text has this mark as its last line, where only [`marked`] puts it: quoting a comment doesn't copy it
/// there.
pub(crate) fn carries(body: &str, mark: &str) -> bool {
    body.trim_end().lines().last().is_some_and(|last| last.trim() == line(mark))
}

pub(crate) fn without(body: &str) -> &str {
    match body.trim_end().rsplit_once('\n') {
        Some((text, last)) if last.trim().starts_with("<!-- ralph-mark: ") => text.trim_end(),
        _ => body,
    }
}

/// Cuts a text to the host's limit, and says so.
pub(crate) fn fit(body: &str) -> String {
    fitting(body, TEXT_MAX)
}

fn fitting(body: &str, max: usize) -> String {
    const CUT: &str = "\n\n… (cut: the rest is too long for the code host)";
    if body.len() <= max {
        return body.to_owned();
    }
    format!("{}{CUT}", ralph_loop_protocol::display::text::head(body, max - CUT.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_text_is_recognized_only_by_its_mark() {
        let text = marked("hello", "run-1:progress");
        assert!(carries(&text, "run-1:progress"));
        assert!(carries(&text.replace('\n', "\r\n"), "run-1:progress"));
        assert!(!carries(&text, "run-1") && !carries("hello", "run-1:progress"));
        assert!(!carries(&format!("> {text}\n\nwhat is this?"), "run-1:progress"));
        assert_eq!(without(&text), "hello");
        assert_eq!(without("plain\ntext"), "plain\ntext");
    }

    #[test]
    fn a_mark_cannot_break_out_and_a_long_text_fits() {
        assert!(!marked("x", "--> <script>").contains("<script>"));
        let long = marked(&"ä".repeat(60_000), "m");
        assert!(long.len() <= TEXT_MAX + 2 && carries(&long, "m") && long.contains("cut"), "{}", long.len());
    }
}
