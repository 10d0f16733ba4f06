//! Mutates inputs: flips, removes and repeats bytes, and inserts words that readers look for.

/// Words and numbers that readers branch on.
const WORDS: &[&str] = &[
    "\n",
    "\r\n",
    "\n\n",
    "---\n",
    "```",
    "```json\n",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    ":",
    ",",
    "=",
    "#",
    "\\",
    "\\u0000",
    "\\ud800",
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1e999",
    "-0.0",
    "9223372036854775807",
    "18446744073709551616",
    "0.1e-400",
    "\u{0}",
    "\u{1b}[2J",
    "\u{1b}]0;x\u{7}",
    "\u{202e}",
    "\u{feff}",
    "ä",
    "\u{10ffff}",
    "e\u{301}",
    "..",
    "../",
    "/",
    "//",
    ".git",
    ".ralph/",
    "~",
    "- [ ] ",
    "- [x] ",
    "&a ",
    "*a",
    "<<: ",
    "!!binary ",
    "| \n",
    "? ",
    "%s",
    "$(x)",
    "${X}",
    "\"kind\":",
    "\"seq\":",
    "\"at\":",
    "\"id\":",
    "\"version\":",
    "\"type\":",
    "\"result\"",
    "data: ",
    "event: ",
    "[DONE]",
    "diff --git a/x b/x\n",
    "@@ -1,1 +1,1 @@\n",
    "+++ b/x\n",
    "--- a/x\n",
    "\t",
    "  ",
    "040000 tree ",
    "100644 blob ",
    "DIRC",
    "sk-ant-api03-",
    "CONNECT ",
    "HTTP/1.1\r\n",
    "export ",
    "test result: ok. ",
    "FAILED",
    "1 passed",
    "{{",
    "}}",
    "%2e",
    "\u{fffd}",
    "\u{2028}",
];

/// Generates inputs; the same ones for the same seed.
pub struct Mutator {
    state: u64,
}

impl Mutator {
    pub fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    fn number(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// A number below `end`; 0 if there is none.
    fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.number() % end as u64) as usize }
    }

    /// Mutates an input of the pool.
    pub fn next(&mut self, pool: &[Vec<u8>]) -> Vec<u8> {
        let mut input = pool.get(self.below(pool.len())).cloned().unwrap_or_default();
        for _ in 0..=self.below(6) {
            self.change(&mut input, pool);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, pool: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        match self.below(10) {
            0 if !input.is_empty() => {
                let at = at.min(input.len() - 1);
                input[at] ^= 1 << self.below(8);
            }
            1 if !input.is_empty() => {
                let at = at.min(input.len() - 1);
                input[at] = self.below(256) as u8;
            }
            2 => {
                let end = (at + self.below(64)).min(input.len());
                input.drain(at..end);
            }
            3 => {
                // Many times over: depth and length.
                let end = (at + 1 + self.below(24)).min(input.len());
                let piece = input[at..end].to_vec();
                let times = [1, 2, 8, 200, 2000][self.below(5)];
                let times = times.min(32 * 1024 / piece.len().max(1));
                input.splice(at..at, piece.iter().copied().cycle().take(piece.len() * times));
            }
            4 => input.truncate(at),
            5 => {
                let other = pool.get(self.below(pool.len())).cloned().unwrap_or_default();
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            6 if input.len() > 8 => {
                // Two places change their content.
                let size = 1 + self.below(8);
                let (a, b) = (self.below(input.len() - size + 1), self.below(input.len() - size + 1));
                for n in 0..size {
                    input.swap(a + n, b + n);
                }
            }
            7 => {
                // A number becomes another.
                if let Some(from) = input.iter().position(u8::is_ascii_digit).filter(|_| !input.is_empty()) {
                    let from =
                        input[at..].iter().position(u8::is_ascii_digit).map_or(from, |found| at + found);
                    let end = input[from..]
                        .iter()
                        .position(|b| !b.is_ascii_digit())
                        .map_or(input.len(), |n| from + n);
                    let number = self.number() >> self.below(64);
                    input.splice(from..end, number.to_string().into_bytes());
                }
            }
            _ => {
                let word = WORDS[self.below(WORDS.len())];
                input.splice(at..at, word.bytes());
            }
        }
    }
}
