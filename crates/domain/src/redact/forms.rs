//! The forms in which a secret value may appear: encoded, escaped, quoted, in parts.

use std::collections::BTreeSet;

/// Shorter values aren't hidden: that would hide ordinary words.
pub(super) const VALUE_MIN: usize = 6;
/// Shortest separate part of a value: a line of a key.
const PART_MIN: usize = 12;
/// Shortest password inside a URL that is hidden separately.
const PASSWORD_MIN: usize = 8;

/// The forms in which a value may appear, including itself.
pub(super) fn forms(value: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let value = value.trim();
    if value.len() < VALUE_MIN {
        return all;
    }
    let mut parts = vec![value.to_owned()];
    // Each line of a multi-line value (a PEM key) also counts.
    if value.contains(char::is_whitespace) {
        parts.extend(value.split_whitespace().filter(|p| p.len() >= PART_MIN).map(str::to_owned));
    }
    parts.extend(url_password(value));
    for part in &parts {
        add_forms(&mut all, part);
    }
    all.retain(|form| form.len() >= VALUE_MIN);
    all
}

fn add_forms(all: &mut BTreeSet<String>, part: &str) {
    all.insert(part.to_owned());
    // RFC 3986, `encodeURIComponent`, a path that keeps its slashes, a form.
    for kept in ["-_.~", "-_.~!*'()", "-_.~/", "-_.*"] {
        all.insert(percent_encoded(part, kept, false));
        all.insert(percent_encoded(part, kept, true));
    }
    all.insert(percent_encoded(part, "-_.* ", false).replace(' ', "+"));
    let json = json_escaped(part);
    all.insert(json.replace('/', "\\/"));
    for upper in [false, true] {
        let ascii = ascii_escaped(&json, upper);
        all.insert(ascii.replace('/', "\\/"));
        all.insert(ascii);
    }
    all.insert(json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"));
    all.insert(json);
    all.extend(shell_quoted(part));
    all.insert(part.bytes().map(|b| format!("{b:02x}")).collect());
    all.insert(part.bytes().map(|b| format!("{b:02X}")).collect());
    for lead in 0..3 {
        if let Some(core) = base64_core(part.as_bytes(), lead) {
            all.insert(core.replace('+', "-").replace('/', "_"));
            all.insert(core);
        }
    }
}

/// The password of a URL (`postgres://user:password@host`), unless it is an ordinary word.
fn url_password(value: &str) -> Vec<String> {
    let Some((_, rest)) = value.split_once("://") else { return Vec::new() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let Some((login, _)) = authority.rsplit_once('@') else { return Vec::new() };
    let Some((user, password)) = login.split_once(':') else { return Vec::new() };
    let ordinary = password.bytes().all(|b| b.is_ascii_lowercase());
    if password.len() < PASSWORD_MIN || password == user || ordinary {
        return Vec::new();
    }
    vec![password.to_owned(), percent_decoded(password)]
}

fn percent_encoded(text: &str, kept: &str, lower: bool) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) {
            out.push(byte as char);
        } else if lower {
            out.push_str(&format!("%{byte:02x}"));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn percent_decoded(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                out.push(byte);
                rest = &after[2..];
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn json_escaped(text: &str) -> String {
    let written = serde_json::to_string(text).unwrap_or_default();
    written.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or_default().to_owned()
}

/// With `\\u` escapes for non-ASCII characters.
fn ascii_escaped(json: &str, upper: bool) -> String {
    let mut out = String::new();
    for c in json.chars() {
        if c.is_ascii() {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") });
        }
    }
    out
}

/// Shell quoting: single quotes, double quotes, backslashes.
fn shell_quoted(text: &str) -> [String; 4] {
    let double = text.chars().flat_map(|c| {
        let escape = matches!(c, '"' | '$' | '`' | '\\').then_some('\\');
        escape.into_iter().chain([c])
    });
    let bare = text.chars().flat_map(|c| {
        let plain =
            c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | '@' | '%' | '+' | '=' | ',');
        (!plain).then_some('\\').into_iter().chain([c])
    });
    [text.replace('\'', "'\\''"), text.replace('\'', "'\"'\"'"), double.collect(), bare.collect()]
}

/// The base64 characters that depend only on `bytes` if `lead` unknown bytes precede them.
fn base64_core(bytes: &[u8], lead: usize) -> Option<String> {
    let mut padded = vec![0u8; lead];
    padded.extend_from_slice(bytes);
    let encoded = base64(&padded);
    // The first characters mix with what precedes, the last with what follows.
    let skip = match lead {
        0 => 0,
        1 => 2,
        _ => 3,
    };
    let keep = padded.len() * 8 / 6;
    let core = encoded.get(skip..keep)?;
    (core.len() >= 8).then(|| core.to_owned())
}

pub(super) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len() * 4 / 3 + 4);
    for chunk in bytes.chunks(3) {
        let word = u32::from(chunk[0]) << 16
            | u32::from(*chunk.get(1).unwrap_or(&0)) << 8
            | u32::from(*chunk.get(2).unwrap_or(&0));
        for i in 0..=chunk.len() {
            out.push(ALPHABET[(word >> (18 - 6 * i) & 63) as usize] as char);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_password_is_a_separate_secret_unless_it_is_a_word() {
        assert!(forms("postgres://me:S3cret%2Fpw9@db/x").contains("S3cret/pw9"));
        for ordinary in
            ["postgres://postgres:postgres@db/x", "postgres://me:development@db/x", "http://a:b@c"]
        {
            assert_eq!(url_password(ordinary), [""; 0], "{ordinary}");
        }
    }

    #[test]
    fn a_short_value_has_no_forms() {
        assert!(forms("abcde").is_empty() && forms("  ab  ").is_empty());
    }
}
