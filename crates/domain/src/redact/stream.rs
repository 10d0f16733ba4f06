//! Redaction of text that comes in pieces.

use super::{BEARER, PEM_BEGIN, Redactor};
use memchr::memmem::{find, rfind};

/// A longer unfinished word is passed on in parts.
const HOLD_MAX: usize = 32 * 1024;
/// How much of such a word is still held back.
const OVERLAP: usize = 8 * 1024;

#[derive(Debug, Default)]
pub struct RedactStream {
    held: Vec<u8>,
    in_key: bool,
    /// With fewer bytes nothing can be shown: the held text was already checked.
    look_again_at: usize,
}

impl RedactStream {
    /// Adds a piece; returns what may be shown now.
    pub fn push(&mut self, redactor: &Redactor, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        if self.held.len() < self.look_again_at {
            return Vec::new();
        }
        let cut = match self.held.iter().rposition(|b| b.is_ascii_whitespace()) {
            // `Bearer ` and its token belong together, so the word before the last space is held as well.
            Some(at) if self.held.len() - at <= HOLD_MAX => word_start(&self.held, at),
            _ if self.held.len() > HOLD_MAX => self.held.len() - OVERLAP,
            _ => return Vec::new(),
        };
        // A secret that spans white space has begun: wait for its rest.
        let cut = match begun_before(redactor, &self.held[..cut]) {
            Some(begun) if self.held.len() - begun <= HOLD_MAX => begun,
            _ => cut,
        };
        // Held text isn't checked again for every byte that follows.
        self.look_again_at = if cut == 0 { self.held.len() + self.held.len() / 8 } else { 0 };
        let rest = self.held.split_off(cut);
        let ready = std::mem::replace(&mut self.held, rest);
        self.clean(redactor, &ready)
    }

    /// Ends the text; returns the rest.
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

/// Where to cut before an unfinished value without splitting a word or another value: the end of one may look like
/// the beginning of the next.
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

/// The start of the word that ends at the whitespace `at`, or `at + 1` if that word doesn't announce a token.
fn word_start(held: &[u8], at: usize) -> usize {
    let line = &held[..=at];
    for word in BEARER.iter().copied().chain(["-----BEGIN "]) {
        if line.ends_with(word.as_bytes()) {
            return line.len() - word.len();
        }
    }
    // The header of a private key contains spaces: hold the whole line until it is complete.
    let line_start = held.iter().rposition(|b| *b == b'\n').map_or(0, |nl| nl + 1);
    if find(&held[line_start..], PEM_BEGIN.as_bytes()).is_some() { line_start } else { at + 1 }
}
