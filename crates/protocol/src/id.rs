//! Newtypes for ids, so that a tree is never mistaken for a commit.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(transparent)]
        #[cfg_attr(feature = "schema", schemars(inline))]
        pub struct $name(String);

        impl $name {
            /// Wraps a value that the caller has checked or received from its issuer.
            pub fn new(value: impl Into<String>) -> Self {
                Self(value.into())
            }
            /// The value as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl From<&str> for $name {
            fn from(value: &str) -> Self {
                Self(value.to_owned())
            }
        }
    };
}

text_id!(
    /// One execution of a task, for example `20261115-143307-k3f9`; sorts by start time and is safe in paths and
    /// refs.
    RunId
);
text_id!(
    /// The name of an agent in the configuration (`claude`, `codex`, `my-script`).
    AgentName
);
text_id!(
    /// A git tree: a state of the workspace's files. Every check result names one.
    TreeId
);
text_id!(
    /// A git commit.
    CommitId
);

text_id!(
    /// A machine that drives runs: random digits that say nothing about it.
    MachineId
);

impl TreeId {
    /// A short form for display.
    pub fn short(&self) -> &str {
        short(self.as_str())
    }
}

impl CommitId {
    /// A short form for display.
    pub fn short(&self) -> &str {
        short(self.as_str())
    }
}

fn short(full: &str) -> &str {
    full.get(..10).unwrap_or(full)
}

impl RunId {
    /// Validates a run id from outside: it becomes part of paths and ref names.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fine = !text.is_empty()
            && text.len() <= 64
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !text.starts_with('-');
        if fine { Ok(Self(text.to_owned())) } else { Err(format!("`{text}` is not a run id")) }
    }
}

/// Position of an event in its journal; strictly increasing from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct Seq(pub u64);

impl Seq {
    /// The position after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// SHA-256 of some bytes, as 64 hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Digest(#[cfg_attr(feature = "schema", schemars(regex(pattern = "^[0-9a-f]{64}$")))] String);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(hex(&Sha256::digest(bytes)))
    }
    /// Wraps a digest that was computed elsewhere (streamed).
    pub fn from_hex(hex: impl Into<String>) -> Self {
        Self(hex.into())
    }
    /// All 64 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// The first 12 digits, for display.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Lower-case hex of `bytes`.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)] as char);
        out.push(DIGITS[usize::from(byte & 15)] as char);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_that_could_leave_their_folder_are_refused() {
        for bad in ["", "../x", "a/b", "-rf", "a b", "é"] {
            assert_eq!(RunId::parse(bad).unwrap_err(), format!("`{bad}` is not a run id"));
        }
        assert!(RunId::parse("20261115-143307-k3f9").is_ok());
    }

    #[test]
    fn digest_is_sha256_in_hex() {
        assert_eq!(
            Digest::of(b"").as_str(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
