//! Object ids and the hash that makes them.

use crate::error::{Error, Result};
use ralph_loop_protocol::id::hex;
use sha1::{Digest as _, Sha1};
use sha2::Sha256;
use std::fmt;

/// The hash that names a repo's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectFormat {
    /// 20 bytes.
    Sha1,
    /// 32 bytes.
    Sha256,
}

impl ObjectFormat {
    /// Length of an id in bytes.
    pub fn len(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
    /// Always false. (Clippy requires it next to `len`.)
    pub fn is_empty(self) -> bool {
        false
    }
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }
    /// The settings of a bare git folder.
    pub(crate) fn bare_config(self) -> &'static str {
        match self {
            Self::Sha1 => "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
            Self::Sha256 => {
                "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = sha256\n"
            }
        }
    }

    pub(crate) fn sum(self, bytes: &[u8]) -> Oid {
        match self {
            Self::Sha1 => Oid::from_bytes(&Sha1::digest(bytes)),
            Self::Sha256 => Oid::from_bytes(&Sha256::digest(bytes)),
        }
    }

    pub(crate) fn id_of(self, kind: &str, body: &[u8]) -> Oid {
        let header = format!("{kind} {}\0", body.len());
        match self {
            Self::Sha1 => Oid::from_bytes(&Sha1::new().chain_update(header).chain_update(body).finalize()),
            Self::Sha256 => {
                Oid::from_bytes(&Sha256::new().chain_update(header).chain_update(body).finalize())
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Oid {
    len: u8,
    bytes: [u8; 32],
}

impl Oid {
    pub(crate) fn from_bytes(source: &[u8]) -> Self {
        let mut bytes = [0; 32];
        let len = source.len().min(32);
        bytes[..len].copy_from_slice(&source[..len]);
        Self { len: len as u8, bytes }
    }

    pub(crate) fn from_hex(text: &[u8]) -> Option<Self> {
        if text.len() != 40 && text.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (slot, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
            *slot = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self { len: (text.len() / 2) as u8, bytes })
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(self.as_bytes()))
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

pub(crate) fn oid(text: &str) -> Result<Oid> {
    Oid::from_hex(text.as_bytes())
        .ok_or_else(|| Error::unreadable("an object id", format!("`{text}` is none")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_ones_git_computes() {
        let id = ObjectFormat::Sha1.id_of("blob", b"a\n");
        assert_eq!(id.to_string(), "78981922613b2afb6025042ff6bd878ac1994e85");
        assert_eq!(Oid::from_hex(id.to_string().as_bytes()), Some(id));
        assert_eq!(Oid::from_hex(b"abc"), None);
        assert_eq!(Oid::from_hex(&[b'x'; 40]), None);
    }
}
