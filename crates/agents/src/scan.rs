//! Small text scanning helpers, instead of a regex engine, which would use more memory than the rest of this crate.

/// ASCII lower case, with straight apostrophes: providers write both `You've` and `You’ve`.
pub(crate) fn fold(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\u{2019}' | '\u{2018}' | '\u{02bc}' => '\'',
            c => c.to_ascii_lowercase(),
        })
        .collect()
}

/// Whether `folded` contains one of `needles` (already folded).
pub(crate) fn contains_any(folded: &str, needles: &[&str]) -> bool {
    needles.iter().any(|needle| folded.contains(needle))
}

/// The byte positions right after each occurrence of `needle`.
pub(crate) fn match_ends<'a>(text: &'a str, needle: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(needle).map(|(at, found)| at + found.len())
}

/// Reads forward through ASCII-oriented text. Every step is on a character boundary.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(rest: &'a str) -> Self {
        Self { rest }
    }
    pub(crate) fn rest(&self) -> &'a str {
        self.rest
    }
    pub(crate) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }
    pub(crate) fn skip(&mut self, set: &[char]) {
        self.rest = self.rest.trim_start_matches(set);
    }
    pub(crate) fn eat(&mut self, word: &str) -> bool {
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
    /// The longest run of at most `max` characters that `keep` accepts.
    pub(crate) fn take(&mut self, max: usize, keep: impl Fn(char) -> bool) -> &'a str {
        let end = self
            .rest
            .char_indices()
            .take(max)
            .find(|(_, c)| !keep(*c))
            .map(|(at, _)| at)
            .or_else(|| self.rest.char_indices().nth(max).map(|(at, _)| at))
            .unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
    pub(crate) fn word(&mut self) -> &'a str {
        self.take(32, |c| c.is_ascii_alphabetic())
    }
    /// A whole number of at most nine digits.
    pub(crate) fn whole(&mut self) -> Option<u32> {
        let before = *self;
        let digits = self.take(10, |c| c.is_ascii_digit());
        let number = (digits.len() <= 9).then(|| digits.parse().ok()).flatten();
        if number.is_none() {
            *self = before;
        }
        number
    }
    /// A number with an optional fraction.
    pub(crate) fn decimal(&mut self) -> Option<f64> {
        let before = *self;
        let whole = self.take(12, |c| c.is_ascii_digit());
        if whole.is_empty() {
            *self = before;
            return None;
        }
        let mut text = whole.to_owned();
        let mut ahead = *self;
        if ahead.eat(".") {
            let fraction = ahead.take(12, |c| c.is_ascii_digit());
            if !fraction.is_empty() {
                text.push('.');
                text.push_str(fraction);
                *self = ahead;
            }
        }
        text.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_apostrophes_fold_to_one() {
        assert_eq!(fold("You’ve HIT"), "you've hit");
    }

    #[test]
    fn a_cursor_reads_numbers_and_words() {
        let mut cursor = Cursor::new("12.5s then é");
        assert_eq!(cursor.decimal(), Some(12.5));
        assert_eq!(cursor.word(), "s");
        cursor.skip(&[' ']);
        assert!(cursor.eat("then "));
        assert_eq!(cursor.whole(), None);
        assert_eq!(cursor.peek(), Some('é'));
        assert_eq!(Cursor::new("5. Next").decimal(), Some(5.0));
        assert_eq!(Cursor::new("12345678901").whole(), None);
        assert_eq!(Cursor::new("ééé").take(2, |_| true), "éé");
    }
}
