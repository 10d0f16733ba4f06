//! Redaction: secrets never reach a file, a screen, an event or a commit.
//!
//! One [`Redactor`] per process knows the values of secret variables (plain, base64 at any alignment, url-encoded,
//! JSON-escaped) and the shapes of well-known tokens. Text that enters in pieces goes through a [`RedactStream`], which
//! holds back an unfinished word so that a secret split over two reads is still whole when it is looked at.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use memchr::memmem::{find, rfind};
use std::borrow::Cow;

/// Values shorter than this are no secrets worth hiding: hiding them would hide ordinary words.
const VALUE_MIN: usize = 6;
/// An unfinished word longer than this is let go in parts.
const HOLD_MAX: usize = 32 * 1024;
/// When a long word is let go, this much of it is still held back.
const OVERLAP: usize = 8 * 1024;

/// Shapes of tokens: prefix and the least number of token characters that must follow.
const SHAPES: &[(&str, usize)] = &[
    ("sk-", 20),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xoxa-", 16),
    ("xapp-", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("dtn_", 20),
    ("e2b_", 20),
    ("npm_", 30),
    ("hf_", 30),
    ("pypi-", 40),
    ("eyJ", 40),
    ("vercel_", 20),
];
const PEM_BEGIN: &str = "-----BEGIN ";
const URL_CREDENTIALS: &str = "://";
const BEARER: [&str; 2] = ["Bearer ", "bearer "];

enum Pattern {
    Value(String),
    Shape(usize),
    Pem,
    Url,
    Bearer,
}

/// Knows the secrets.
pub struct Redactor {
    automaton: Option<AhoCorasick>,
    patterns: Vec<Pattern>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} patterns)", self.patterns.len())
    }
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new(std::iter::empty::<(String, String)>())
    }
}

impl Redactor {
    /// A redactor for these secret values, each with the name shown in its place.
    pub fn new<N: Into<String>, V: AsRef<str>>(secrets: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut needles: Vec<String> = Vec::new();
        let mut patterns: Vec<Pattern> = Vec::new();
        for (name, value) in secrets {
            let name: String = name.into();
            for form in forms(value.as_ref()) {
                needles.push(form);
                patterns.push(Pattern::Value(name.clone()));
            }
        }
        for (prefix, min) in SHAPES {
            needles.push((*prefix).to_owned());
            patterns.push(Pattern::Shape(*min));
        }
        needles.push(PEM_BEGIN.into());
        patterns.push(Pattern::Pem);
        needles.push(URL_CREDENTIALS.into());
        patterns.push(Pattern::Url);
        for word in BEARER {
            needles.push(word.into());
            patterns.push(Pattern::Bearer);
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&needles)
            .ok();
        Self { automaton, patterns }
    }

    /// Takes from an environment what is secret by its name.
    pub fn from_vars(vars: impl IntoIterator<Item = (String, String)>) -> Self {
        Self::new(vars.into_iter().filter(|(name, _)| is_secret_name(name)))
    }

    /// `text` without secrets.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.scan(text.as_bytes()) {
            None => Cow::Borrowed(text),
            Some(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// `bytes` without secrets.
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        self.scan(bytes).map_or(Cow::Borrowed(bytes), Cow::Owned)
    }

    /// The names of secrets whose very values stand in `bytes`. What only looks like a token is not among them: a test may well
    /// hold such a thing.
    pub fn known_in(&self, bytes: &[u8]) -> std::collections::BTreeSet<&str> {
        let matches = self.automaton.iter().flat_map(|automaton| automaton.find_iter(bytes));
        matches
            .filter_map(|found| match self.patterns.get(found.pattern().as_usize())? {
                Pattern::Value(name) => Some(name.as_str()),
                _ => None,
            })
            .collect()
    }

    /// Every string inside a JSON value, keys included, without secrets.
    pub fn json(&self, value: &mut serde_json::Value) {
        use serde_json::Value;
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.text(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.json(item)),
            Value::Object(map) => {
                let dirty: Vec<String> =
                    map.keys().filter(|k| matches!(self.text(k), Cow::Owned(_))).cloned().collect();
                for key in dirty {
                    if let Some(inner) = map.remove(&key) {
                        map.insert(self.text(&key).into_owned(), inner);
                    }
                }
                map.values_mut().for_each(|inner| self.json(inner));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn scan(&self, input: &[u8]) -> Option<Vec<u8>> {
        let automaton = self.automaton.as_ref()?;
        let mut out: Option<Vec<u8>> = None;
        let mut kept = 0;
        let mut from = 0;
        while let Some(found) = automaton.find(aho_corasick::Input::new(input).span(from..input.len())) {
            let hidden = match &self.patterns[found.pattern().as_usize()] {
                Pattern::Value(name) => Some((found.start()..found.end(), format!("[redacted:{name}]"))),
                Pattern::Shape(min) => token(input, found.start(), found.end(), *min),
                Pattern::Pem => private_key(input, found.start(), found.end()),
                Pattern::Url => url_password(input, found.end()),
                Pattern::Bearer => token(input, found.end(), found.end(), 16),
            };
            match hidden {
                Some((range, label)) => {
                    let out = out.get_or_insert_with(|| Vec::with_capacity(input.len()));
                    out.extend_from_slice(&input[kept..range.start]);
                    out.extend_from_slice(label.as_bytes());
                    kept = range.end;
                    from = range.end.max(found.start() + 1);
                }
                None => from = found.start() + 1,
            }
            if from >= input.len() {
                break;
            }
        }
        let mut out = out?;
        out.extend_from_slice(&input[kept.min(input.len())..]);
        Some(out)
    }
}

type Hidden = Option<(std::ops::Range<usize>, String)>;

fn is_token_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'+' | b'/' | b'=')
}

fn token(input: &[u8], start: usize, body: usize, min: usize) -> Hidden {
    // A prefix inside a longer word (`task-force-…` holds `sk-`) is no token.
    if start > 0
        && start != body
        && (input[start - 1].is_ascii_alphanumeric() || matches!(input[start - 1], b'_' | b'-'))
    {
        return None;
    }
    let length = input[body..].iter().take_while(|b| is_token_byte(**b)).count();
    let tail = &input[body..body + length];
    // Real tokens mix digits and letters; `sk-this-is-a-long-slug-of-words` does not.
    let mixed = tail.iter().any(u8::is_ascii_digit) && tail.iter().any(u8::is_ascii_alphabetic);
    (length >= min && mixed).then(|| (start..body + length, "[redacted:token]".to_owned()))
}

fn private_key(input: &[u8], start: usize, after: usize) -> Hidden {
    let rest = &input[after..];
    let line_end = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
    let kind = std::str::from_utf8(&rest[..line_end]).ok()?;
    if !kind.contains("PRIVATE KEY") {
        return None;
    }
    let end = find(rest, b"-----END ")
        .map(|at| rest[at..].iter().position(|b| *b == b'\n').map_or(rest.len(), |nl| at + nl))
        .unwrap_or(rest.len());
    Some((start..after + end, "[redacted:private key]".to_owned()))
}

fn url_password(input: &[u8], after: usize) -> Hidden {
    let rest = &input[after..];
    let end = rest
        .iter()
        .take(512)
        .position(|b| matches!(b, b'/' | b' ' | b'\n' | b'"' | b'\'' | b'?' | b'#' | b'<' | b'>'));
    let authority = &rest[..end.unwrap_or_else(|| rest.len().min(512))];
    let at = authority.iter().rposition(|b| *b == b'@')?;
    let userinfo = &authority[..at];
    match userinfo.iter().position(|b| *b == b':') {
        Some(colon) if colon + 1 < userinfo.len() => {
            Some((after + colon + 1..after + at, "[redacted:password]".to_owned()))
        }
        // `https://TOKEN@host`: a long user name without a password is a token.
        None if userinfo.len() >= 20 => Some((after..after + at, "[redacted:token]".to_owned())),
        _ => None,
    }
}

/// Whether a variable of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    const ENDINGS: &[&str] = &[
        "_KEY",
        "_TOKEN",
        "_SECRET",
        "_PASSWORD",
        "_PASSWD",
        "_PASS",
        "_PAT",
        "_PEM",
        "_CREDENTIALS",
        "_APIKEY",
        "_ACCESS_KEY_ID",
        "_WEBHOOK_URL",
        "_DB_URL",
        "_DSN",
        "_AUTH",
    ];
    const WHOLE: &[&str] =
        &["TOKEN", "PASSWORD", "SECRET", "API_KEY", "APIKEY", "DATABASE_URL", "PGPASSWORD", "MYSQL_PWD"];
    let upper = name.to_ascii_uppercase();
    WHOLE.contains(&upper.as_str())
        || ENDINGS.iter().any(|ending| upper.ends_with(ending))
        || upper.contains("SECRET")
}

/// The forms in which a value may appear.
fn forms(value: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut add = |form: String| {
        if form.len() >= VALUE_MIN && !all.contains(&form) {
            all.push(form);
        }
    };
    let value = value.trim();
    // A value over several lines (a PEM key) is looked for line by line: a stream shows it so.
    let pieces: Vec<&str> = if value.contains(char::is_whitespace) {
        value.split_whitespace().filter(|p| p.len() >= 12).collect()
    } else {
        vec![value]
    };
    for piece in pieces.iter().chain(std::iter::once(&value)) {
        if piece.len() < VALUE_MIN {
            continue;
        }
        add((*piece).to_owned());
        add(percent_encoded(piece));
        let escaped = serde_json::to_string(piece).unwrap_or_default();
        add(escaped.trim_matches('"').to_owned());
        for lead in 0..3 {
            if let Some(core) = base64_core(piece.as_bytes(), lead) {
                add(core.replace('+', "-").replace('/', "_"));
                add(core);
            }
        }
    }
    all
}

fn percent_encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// The characters of base64 that depend on `bytes` alone when `lead` unknown bytes stand before it.
fn base64_core(bytes: &[u8], lead: usize) -> Option<String> {
    let mut padded = vec![0u8; lead];
    padded.extend_from_slice(bytes);
    let encoded = base64(&padded);
    // The first characters mix with what stands before, the last with what follows.
    let skip = match lead {
        0 => 0,
        1 => 2,
        _ => 3,
    };
    let keep = padded.len() * 8 / 6;
    let core = encoded.get(skip..keep)?;
    (core.len() >= 8).then(|| core.to_owned())
}

fn base64(bytes: &[u8]) -> String {
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

/// Redacts text that comes in pieces.
#[derive(Debug, Default)]
pub struct RedactStream {
    held: Vec<u8>,
    in_key: bool,
}

impl RedactStream {
    /// The next piece; returns what may be shown now.
    pub fn push(&mut self, redactor: &Redactor, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        let cut = match self.held.iter().rposition(|b| b.is_ascii_whitespace()) {
            // `Bearer ` and its token belong together, so the word before the last space is held, too.
            Some(at) if self.held.len() - at <= HOLD_MAX => word_start(&self.held, at),
            _ if self.held.len() > HOLD_MAX => self.held.len() - OVERLAP,
            _ => return Vec::new(),
        };
        let rest = self.held.split_off(cut);
        let ready = std::mem::replace(&mut self.held, rest);
        self.clean(redactor, &ready)
    }

    /// The end of the text; returns the rest.
    pub fn finish(&mut self, redactor: &Redactor) -> Vec<u8> {
        let ready = std::mem::take(&mut self.held);
        self.clean(redactor, &ready)
    }

    fn clean(&mut self, redactor: &Redactor, ready: &[u8]) -> Vec<u8> {
        let mut ready = ready;
        let mut out = Vec::new();
        if self.in_key {
            match find(ready, b"-----END ") {
                Some(at) => {
                    let end = ready[at..].iter().position(|b| *b == b'\n').map_or(ready.len(), |nl| at + nl);
                    ready = &ready[end..];
                    self.in_key = false;
                }
                None => return out,
            }
        }
        // A private key that begins here and ends in a later piece.
        if let Some(at) = rfind(ready, PEM_BEGIN.as_bytes())
            && find(&ready[at..], b"-----END ").is_none()
            && find(&ready[at..], b"PRIVATE KEY").is_some()
        {
            self.in_key = true;
        }
        out.extend_from_slice(&redactor.bytes(ready));
        out
    }
}

/// The start of the word that ends at the whitespace `at`, or `at + 1` where that word is not one that announces a token.
fn word_start(held: &[u8], at: usize) -> usize {
    let line = &held[..=at];
    for word in BEARER.iter().copied().chain(["-----BEGIN "]) {
        if line.ends_with(word.as_bytes()) {
            return line.len() - word.len();
        }
    }
    // The header of a private key has spaces of its own: hold the whole line until it is complete.
    let line_start = held.iter().rposition(|b| *b == b'\n').map_or(0, |nl| nl + 1);
    if find(&held[line_start..], PEM_BEGIN.as_bytes()).is_some() { line_start } else { at + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECRET: &str = "s3cr3t/Value+42xyz";

    fn redactor() -> Redactor {
        Redactor::new([("MY_TOKEN", SECRET)])
    }

    fn shown(text: &str) -> String {
        redactor().text(text).into_owned()
    }

    #[test]
    fn a_known_value_is_hidden_in_every_form() {
        assert_eq!(shown(&format!("token={SECRET};")), "token=[redacted:MY_TOKEN];");
        assert_eq!(shown("a%20s3cr3t%2FValue%2B42xyz"), "a%20[redacted:MY_TOKEN]");
        for lead in ["", "u", "us", "use", "user:"] {
            let encoded = base64(format!("{lead}{SECRET}").as_bytes());
            let out = shown(&encoded);
            assert!(out.contains("[redacted:MY_TOKEN]"), "{lead}: {encoded} -> {out}");
        }
    }

    #[test]
    fn tokens_are_known_by_their_shape() {
        // Put together here so that no scanner takes this file for a leak.
        let key = format!("key {}{} end", "sk-ant-", "api03-abcdefghij0123456789");
        for (text, want) in [
            (key.as_str(), "key [redacted:token] end"),
            ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "[redacted:token]"),
            ("Authorization: Bearer abcdef0123456789abcdef", "Authorization: Bearer [redacted:token]"),
            (
                "git clone https://me:hunter2pass@example.com/x",
                "git clone https://me:[redacted:password]@example.com/x",
            ),
            ("https://ghx0123456789abcdefghij@example.com", "https://[redacted:token]@example.com"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nok",
                "[redacted:private key]\nok",
            ),
        ] {
            assert_eq!(Redactor::default().text(text), want);
        }
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in [
            "task-force-alpha-and-the-whole-long-story-1",
            "sk-this-is-a-long-slug-of-words-only",
            "see https://example.com/a:b@c and http://localhost:3000/",
            "the bearer of this letter",
            "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
        ] {
            assert_eq!(Redactor::default().text(text), text);
        }
    }

    #[test]
    fn a_private_key_split_over_reads_is_hidden() {
        let text = "x\n-----BEGIN PRIVATE KEY-----\nMIIabc123\nMIIdef456\n-----END PRIVATE KEY-----\ny\n";
        for size in 1..text.len() {
            let (redactor, mut stream) = (Redactor::default(), RedactStream::default());
            let mut out = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                out.extend(stream.push(&redactor, piece));
            }
            out.extend(stream.finish(&redactor));
            let out = String::from_utf8(out).unwrap();
            assert!(
                !out.contains("MII") && out.starts_with("x\n") && out.ends_with("y\n"),
                "{size}: {out:?}"
            );
        }
    }

    #[test]
    fn names_of_secrets() {
        for yes in ["GITHUB_PAT", "ANTHROPIC_API_KEY", "RALPH_DB_URL", "my_password", "AWS_SECRET_ACCESS_KEY"]
        {
            assert!(is_secret_name(yes), "{yes}");
        }
        for no in ["HOME", "PATH", "KEYBOARD", "SSH_AUTH_SOCK"] {
            assert!(!is_secret_name(no), "{no}");
        }
    }

    #[test]
    fn json_is_cleaned_in_values_and_keys() {
        let mut value = serde_json::json!({"a": [SECRET], SECRET: 1});
        redactor().json(&mut value);
        assert!(!value.to_string().contains("s3cr3t"));
    }

    proptest! {
        #[test]
        fn a_secret_split_anywhere_never_shows(
            before in "[ -~]{0,40}", after in "[ -~]{0,40}", cuts in prop::collection::vec(1usize..12, 1..30),
        ) {
            let text = format!("{before} {SECRET} {after}");
            let (redactor, mut stream) = (redactor(), RedactStream::default());
            let mut out = Vec::new();
            let mut rest = text.as_bytes();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (piece, tail) = rest.split_at((*cut).min(rest.len()));
                out.extend(stream.push(&redactor, piece));
                rest = tail;
            }
            out.extend(stream.finish(&redactor));
            let out = String::from_utf8_lossy(&out).into_owned();
            prop_assert!(!out.contains(SECRET), "{}", out);
            prop_assert!(out.contains("[redacted:MY_TOKEN]"), "{}", out);
        }
    }
}
