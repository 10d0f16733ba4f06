//! Finds secret values in any of their forms, whole or broken over spaces and lines.

use super::forms::forms;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// Shortest value that may be broken by white space: short ones would be found across ordinary words.
const BROKEN_MIN: usize = 12;
/// This much of a value at the end of a text is a reason to wait for more.
const BEGUN_MIN: usize = 3;

pub(super) struct Values {
    names: Vec<String>,
    whole: Finder,
    /// Without white space, to search texts without white space.
    broken: Finder,
    /// The forms that `broken` searches for, by their first bytes.
    beginnings: HashMap<[u8; BEGUN_MIN], Vec<Vec<u8>>>,
}

struct Finder {
    automaton: Option<AhoCorasick>,
    /// A needle's owner, as an index into `names`.
    owners: Vec<usize>,
    longest: usize,
}

impl Finder {
    fn new(needles: Vec<(Vec<u8>, usize)>) -> Self {
        let longest = needles.iter().map(|(needle, _)| needle.len()).max().unwrap_or(0);
        let (needles, owners): (Vec<_>, Vec<_>) = needles.into_iter().unzip();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&needles);
        Self { automaton: automaton.ok().filter(|_| !needles.is_empty()), owners, longest }
    }

    fn find<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = (Range<usize>, usize)> + 'a {
        let matches = self.automaton.iter().flat_map(move |automaton| automaton.find_overlapping_iter(bytes));
        matches.filter_map(|found| Some((found.range(), *self.owners.get(found.pattern().as_usize())?)))
    }
}

impl Values {
    pub(super) fn new<N: Into<String>, V: AsRef<str>>(secrets: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut names = Vec::new();
        let (mut whole, mut broken) = (Vec::new(), Vec::new());
        let mut beginnings: HashMap<_, Vec<Vec<u8>>> = HashMap::new();
        for (name, value) in secrets {
            let owner = names.len();
            names.push(name.into());
            for form in forms(value.as_ref()) {
                let dense = without_spaces(form.as_bytes());
                if dense.len() >= BROKEN_MIN {
                    if let Some(begin) = dense.first_chunk::<BEGUN_MIN>() {
                        beginnings.entry(*begin).or_default().push(dense.clone());
                    }
                    // Text shown before it looked like a value doesn't save the rest.
                    for shown in 0..BEGUN_MIN {
                        if dense.len() - shown >= BROKEN_MIN {
                            broken.push((dense[shown..].to_vec(), owner));
                        }
                    }
                }
                whole.push((form.into_bytes(), owner));
            }
        }
        Self { names, whole: Finder::new(whole), broken: Finder::new(broken), beginnings }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.whole.automaton.is_none()
    }

    pub(super) fn forms(&self) -> usize {
        self.whole.owners.len()
    }

    /// Where long values are in a text, with or without white space between their parts, in order and not
    /// overlapping, with their names.
    pub(super) fn broken_in(&self, input: &[u8]) -> Vec<(Range<usize>, &str)> {
        if self.broken.automaton.is_none() || !input.iter().any(|b| is_space(*b) || *b == b'\\') {
            return Vec::new();
        }
        let dense = Dense::of(input);
        let mut found: Vec<(Range<usize>, &str)> = self
            .broken
            .find(&dense.bytes)
            .map(|(range, owner)| (dense.place(range.start)..dense.place(range.end - 1) + 1, owner))
            .map(|(place, owner)| (place, self.names[owner].as_str()))
            .collect();
        found.sort_by_key(|(place, _)| (place.start, std::cmp::Reverse(place.end)));
        let mut apart: Vec<(Range<usize>, &str)> = Vec::new();
        for (place, name) in found {
            match apart.last_mut() {
                Some((last, _)) if place.start < last.end => last.end = last.end.max(place.end),
                _ => apart.push((place, name)),
            }
        }
        apart
    }

    /// Where a value begins that the end of `input` cuts off.
    pub(super) fn begun_at(&self, input: &[u8]) -> Option<usize> {
        if self.beginnings.is_empty() {
            return None;
        }
        // White space between the parts takes space as well.
        let from = input.len().saturating_sub(self.broken.longest * 2 + 256);
        let dense = Dense::of(&input[from..]);
        let bytes = &dense.bytes;
        let first = bytes.len().saturating_sub(self.broken.longest);
        (first..bytes.len().saturating_sub(BEGUN_MIN - 1)).find_map(|at| {
            let rest = &bytes[at..];
            let forms = self.beginnings.get(rest.first_chunk::<BEGUN_MIN>()?)?;
            forms
                .iter()
                .any(|form| form.len() > rest.len() && form.starts_with(rest))
                .then(|| from + dense.place(at))
        })
    }
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r')
}

/// Bytes without white space, raw or escaped as in JSON.
struct Dense {
    bytes: Vec<u8>,
    /// Where contiguous bytes begin: here, and in the input.
    runs: Vec<(usize, usize)>,
}

impl Dense {
    fn of(input: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(input.len());
        let mut runs = Vec::new();
        let mut expected = usize::MAX;
        let mut at = 0;
        while at < input.len() {
            let skipped = skip(&input[at..]);
            if skipped > 0 {
                at += skipped;
                continue;
            }
            if at != expected {
                runs.push((bytes.len(), at));
            }
            bytes.push(input[at]);
            at += 1;
            expected = at;
        }
        Self { bytes, runs }
    }

    /// The input position of a kept byte.
    fn place(&self, at: usize) -> usize {
        let run = self.runs.partition_point(|(here, _)| *here <= at);
        let (here, there) = run.checked_sub(1).and_then(|run| self.runs.get(run)).copied().unwrap_or((0, 0));
        there + (at - here)
    }
}

/// The length of one white space character at the start of `rest`, or 0.
fn skip(rest: &[u8]) -> usize {
    match rest {
        [b, ..] if is_space(*b) => 1,
        [b'\\', b'n' | b'r' | b't' | b'\n', ..] => 2,
        _ => 0,
    }
}

fn without_spaces(bytes: &[u8]) -> Vec<u8> {
    Dense::of(bytes).bytes
}

/// Searches contents of any length for secret values, piece by piece. Keeps only as much as a value is long, to find
/// one across two pieces.
pub struct SecretScan<'a> {
    values: &'a Values,
    tail: Vec<u8>,
    /// The same without white space.
    dense_tail: Vec<u8>,
    /// A backslash that the next piece may turn into white space.
    backslash: bool,
    found: BTreeSet<usize>,
}

impl<'a> SecretScan<'a> {
    pub(super) fn new(values: &'a Values) -> Self {
        Self { values, tail: Vec::new(), dense_tail: Vec::new(), backslash: false, found: BTreeSet::new() }
    }

    pub fn push(&mut self, piece: &[u8]) {
        self.tail.extend_from_slice(piece);
        self.found.extend(self.values.whole.find(&self.tail).map(|(_, owner)| owner));
        keep_end(&mut self.tail, self.values.whole.longest);
        let mut bytes = piece;
        let joined;
        if std::mem::take(&mut self.backslash) {
            joined = [b"\\", piece].concat();
            bytes = &joined;
        }
        if let Some((b'\\', before)) = bytes.split_last() {
            self.backslash = true;
            bytes = before;
        }
        self.dense_tail.extend_from_slice(&without_spaces(bytes));
        self.found.extend(self.values.broken.find(&self.dense_tail).map(|(_, owner)| owner));
        keep_end(&mut self.dense_tail, self.values.broken.longest);
    }

    /// Starts new content: no value spans both.
    pub fn begin(&mut self) {
        self.tail.clear();
        self.dense_tail.clear();
        self.backslash = false;
    }

    /// The names of secrets found so far.
    pub fn found(&self) -> BTreeSet<&'a str> {
        self.found.iter().map(|owner| self.values.names[*owner].as_str()).collect()
    }

    /// Bytes that are kept between two pieces.
    pub fn held(&self) -> usize {
        self.tail.len() + self.dense_tail.len()
    }
}

/// Keeps what a needle that ends in the next piece may begin with.
fn keep_end(bytes: &mut Vec<u8>, longest: usize) {
    let excess = bytes.len().saturating_sub(longest.saturating_sub(1));
    bytes.drain(..excess);
}
