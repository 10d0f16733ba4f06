//! Redaction: secrets never reach a file, a screen, an event or a commit.
//!
//! One [`Redactor`] per process knows the values of secret variables (plain, encoded, escaped and quoted as in
//! [`forms`], broken over lines) and the shapes of well-known tokens. Text in pieces goes through a [`RedactStream`],
//! which holds back an unfinished word so that a secret split over two reads is checked in one piece. A
//! [`SecretScan`] searches contents of any length for known values before they leave this machine.

mod forms;
mod stream;
mod values;

pub use self::stream::RedactStream;
pub use self::values::SecretScan;
pub use crate::secret_name::is_secret_name;

use self::forms::forms;
use self::values::Values;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use memchr::memmem::find;
use std::borrow::Cow;

/// Token shapes: prefix and the least number of token characters after it.
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

pub struct Redactor {
    automaton: Option<AhoCorasick>,
    patterns: Vec<Pattern>,
    values: Values,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} forms of values)", self.values.forms())
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
        let secrets: Vec<(String, V)> =
            secrets.into_iter().map(|(name, value)| (name.into(), value)).collect();
        for (name, value) in &secrets {
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
        let values = Values::new(secrets.iter().map(|(name, value)| (name.as_str(), value.as_ref())));
        Self { automaton, patterns, values }
    }

    /// Takes variables with secret names from an environment.
    pub fn from_vars(vars: impl IntoIterator<Item = (String, String)>) -> Self {
        Self::new(vars.into_iter().filter(|(name, _)| is_secret_name(name)))
    }

    /// `text` with secrets redacted.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.scan(text.as_bytes()) {
            None => Cow::Borrowed(text),
            Some(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// `bytes` with secrets redacted.
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        self.scan(bytes).map_or(Cow::Borrowed(bytes), Cow::Owned)
    }

    /// Whether any secret value is known, so that there is something to search for.
    pub fn knows_values(&self) -> bool {
        !self.values.is_empty()
    }

    /// Searches for known secret values. Token shapes don't count: a test may contain one.
    pub fn scanner(&self) -> SecretScan<'_> {
        SecretScan::new(&self.values)
    }

    /// The names of secrets whose values are in `bytes`.
    pub fn known_in(&self, bytes: &[u8]) -> std::collections::BTreeSet<&str> {
        let mut scan = self.scanner();
        scan.push(bytes);
        scan.found()
    }

    /// Where a value begins that the end of `bytes` cuts off.
    fn begun_at(&self, bytes: &[u8]) -> Option<usize> {
        self.values.begun_at(bytes)
    }

    /// Where long values are in `bytes`, with or without white space between their parts.
    fn broken_in(&self, bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
        self.values.broken_in(bytes).into_iter().map(|(place, _)| place).collect()
    }

    /// Redacts every string of a JSON value, including keys.
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
        let broken = self.values.broken_in(input);
        if broken.is_empty() {
            return self.scan_whole(input);
        }
        let mut out = Vec::with_capacity(input.len());
        let mut kept = 0;
        for (place, name) in broken {
            out.extend_from_slice(&input[kept..place.start]);
            out.extend_from_slice(format!("[redacted:{name}]").as_bytes());
            kept = place.end;
        }
        out.extend_from_slice(&input[kept..]);
        Some(self.scan_whole(&out).unwrap_or(out))
    }

    fn scan_whole(&self, input: &[u8]) -> Option<Vec<u8>> {
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
    // A prefix inside a longer word (`task-force-…` holds `sk-`) isn't a token.
    if start > 0
        && start != body
        && (input[start - 1].is_ascii_alphanumeric() || matches!(input[start - 1], b'_' | b'-'))
    {
        return None;
    }
    let length = input[body..].iter().take_while(|b| is_token_byte(**b)).count();
    let tail = &input[body..body + length];
    // Real tokens mix digits and letters; `sk-this-is-a-long-slug-of-words` doesn't.
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

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
