//! Redaction of text that comes in pieces.

use super::{BEARER, PEM_BEGIN, Redactor};
use memchr::memmem::{find, rfind};

/// An unfinished word longer than this is let go in parts.
const HOLD_MAX: usize = 32 * 1024;
/// When a long word is let go, this much of it is still held back.
const OVERLAP: usize = 8 * 1024;

/// Redacts text that comes in pieces.
#[derive(Debug, Default)]
pub struct RedactStream {
    held: Vec<u8>,
    in_key: bool,
    /// With fewer bytes than this nothing can be shown: what is held was looked through at less.
    look_again_at: usize,
}

impl RedactStream {
    /// The next piece; returns what may be shown now.
    pub fn push(&mut self, redactor: &Redactor, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        if self.held.len() < self.look_again_at {
            return Vec::new();
        }
        let cut = match self.held.iter().rposition(|b| b.is_ascii_whitespace()) {
            // `Bearer ` and its token belong together, so the word before the last space is held, too.
            Some(at) if self.held.len() - at <= HOLD_MAX => word_start(&self.held, at),
            _ if self.held.len() > HOLD_MAX => self.held.len() - OVERLAP,
            _ => return Vec::new(),
        };
        // A secret that white space parts has begun: it waits for its rest.
        let cut = match begun_before(redactor, &self.held[..cut]) {
            Some(begun) if self.held.len() - begun <= HOLD_MAX => begun,
            _ => cut,
        };
        // What waits for its rest is not looked through again for every byte that follows.
        self.look_again_at = if cut == 0 { self.held.len() + self.held.len() / 8 } else { 0 };
        let rest = self.held.split_off(cut);
        let ready = std::mem::replace(&mut self.held, rest);
        self.clean(redactor, &ready)
    }

    /// The end of the text; returns the rest.
    pub fn finish(&mut self, redactor: &Redactor) -> Vec<u8> {
        let ready = std::mem::take(&mut self.held);
        self.look_again_at = 0;
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

/// Where to cut before a value that has begun, so that neither a word nor another value is cut in two: the end of one may well
/// look like the beginning of the next.
fn begun_before(redactor: &Redactor, ready: &[u8]) -> Option<usize> {
    let mut begun = redactor.begun_at(ready)?;
    let values = redactor.broken_in(ready);
    loop {
        let space = ready[..begun].iter().rposition(|b| b.is_ascii_whitespace());
        let word = space.map_or(0, |at| word_start(ready, at));
        let inside = values.iter().find(|place| place.start < word && word < place.end);
        let next = inside.map_or(word, |place| place.start).min(begun);
        if next == begun {
            return Some(begun);
        }
        begun = next;
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
