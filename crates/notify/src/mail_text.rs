//! Formats an email for SMTP: headers, body, dot stuffing.
#![allow(clippy::disallowed_methods, reason = "a mail says when it was sent")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use ralph_loop_domain::ports::Notification;
use ralph_loop_domain::text::notify::{body, heading};

/// Octets of a text that fit into one encoded word of a header line.
const WORD: usize = 42;
/// Base64 digits on a line.
const LINE: usize = 76;

/// The complete email, with CRLF line ends and without the final dot.
pub(crate) fn mail(message: &Notification, from: &str, to: &[String]) -> String {
    let date = jiff::fmt::rfc2822::to_string(&Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC))
        .unwrap_or_default();
    let host = from.rsplit('@').next().unwrap_or("localhost");
    let encoded = STANDARD.encode(format!("{}\n", body(message)).replace('\n', "\r\n"));
    let mut lines = vec![
        format!("Date: {date}"),
        format!("From: ralph <{from}>"),
        format!("To: {}", to.join(",\r\n ")),
        format!("Subject: {}", header_text(&heading(message))),
        // Stable for a message: mail programs show it once, even if it was sent twice.
        format!("Message-ID: <{}@{host}>", message.id),
        "Auto-Submitted: auto-generated".to_owned(),
        "MIME-Version: 1.0".to_owned(),
        "Content-Type: text/plain; charset=utf-8".to_owned(),
        "Content-Transfer-Encoding: base64".to_owned(),
        String::new(),
    ];
    // Base64 has no dots, so no line of the body can end the mail.
    lines.extend(pieces(&encoded, LINE).map(str::to_owned));
    lines.push(String::new());
    lines.join("\r\n")
}

/// A header value: unchanged if safe, else in encoded words (RFC 2047).
fn header_text(text: &str) -> String {
    let plain = text.len() <= 60 && text.bytes().all(|b| (b' '..=b'~').contains(&b)) && !text.contains("=?");
    if plain {
        return text.to_owned();
    }
    let words: Vec<String> =
        pieces(text, WORD).map(|piece| format!("=?utf-8?B?{}?=", STANDARD.encode(piece))).collect();
    words.join("\r\n ")
}

/// Cuts a text into pieces of at most `max` bytes, never inside a character.
fn pieces(text: &str, max: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = (0..=max.min(rest.len())).rev().find(|at| *at > 0 && rest.is_char_boundary(*at));
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_add_a_header_line() {
        let text = header_text("x\r\nBcc: y@z.org");
        assert!(!text.contains("Bcc") && text.starts_with("=?utf-8?B?"), "{text}");
        assert_eq!(header_text("ralph: proven: a"), "ralph: proven: a");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = "ü".repeat(60);
        assert_eq!(pieces(&text, 41).collect::<String>(), text);
        assert!(pieces(&text, 41).all(|piece| piece.len() <= 41));
        assert!(header_text(&text).lines().all(|line| line.trim_end().len() <= 76));
    }
}
