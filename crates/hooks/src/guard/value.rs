//! What is known of a text that a shell makes: its characters, with a placeholder for what cannot be known, and where it
//! comes from.

/// Stands for a part of a text that is not known.
pub const UNKNOWN: char = '\u{fffc}';
/// Bytes of a text that are followed.
pub const TEXT_MAX: usize = 64 * 1024;

/// Where a text comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taint {
    /// The network.
    pub fetched: bool,
    /// Something that hides what it is: decoded, decrypted, unpacked.
    pub decoded: bool,
    /// A variable or a file that holds a secret.
    pub secret: bool,
    /// A variable that this command has not set: it may be empty.
    pub unset: bool,
    /// Many files in one: what `tar` prints.
    pub archive: bool,
}

impl Taint {
    /// Both.
    pub fn and(self, other: Self) -> Self {
        Self {
            fetched: self.fetched || other.fetched,
            decoded: self.decoded || other.decoded,
            secret: self.secret || other.secret,
            unset: self.unset || other.unset,
            archive: self.archive || other.archive,
        }
    }
}

/// A text, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Value {
    /// Its characters.
    pub text: String,
    /// Where it comes from.
    pub taint: Taint,
}

impl Value {
    /// A text that is known.
    pub fn known(text: impl Into<String>) -> Self {
        Self { text: text.into(), taint: Taint::default() }
    }

    /// Any text.
    pub fn unknown(taint: Taint) -> Self {
        Self { text: UNKNOWN.to_string(), taint }
    }

    /// Whether every character is known.
    pub fn is_known(&self) -> bool {
        !self.text.contains(UNKNOWN)
    }

    /// Adds another text to its end.
    pub fn push(&mut self, other: &Self) {
        if self.text.len() + other.text.len() <= TEXT_MAX {
            self.text.push_str(&other.text);
        } else if !self.text.ends_with(UNKNOWN) {
            self.text.push(UNKNOWN);
        }
        self.taint = self.taint.and(other.taint);
    }
}

/// One word of a command, as the program gets it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Field {
    /// Its characters.
    pub text: String,
    /// Whether `*`, `?` or `[` in it are wildcards.
    pub glob: bool,
    /// Where it comes from.
    pub taint: Taint,
}

impl Field {
    /// A plain word.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// The word as a text.
    pub fn value(&self) -> Value {
        Value { text: self.text.clone(), taint: self.taint }
    }
}

impl From<Value> for Field {
    fn from(value: Value) -> Self {
        Self { text: value.text, glob: false, taint: value.taint }
    }
}

/// Words side by side, as somebody would type them.
pub fn joined(fields: &[Field]) -> String {
    fields.iter().map(|field| field.text.as_str()).collect::<Vec<_>>().join(" ")
}
