//! Who may do what: named tokens with roles, sessions of browsers, login codes, and the limit on wrong guesses.

mod codes;
mod limiter;
mod sessions;
mod store;

pub use codes::LoginCodes;
pub use limiter::LoginLimiter;
pub use sessions::{AGE, COOKIE, Sessions, Ticket};
pub use store::{People, Person, PersonInfo};

use serde::{Deserialize, Serialize};

/// What a person may do. Each may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Look.
    Viewer,
    /// Start and steer runs.
    Operator,
    /// Also people, secrets and the audit log.
    Admin,
}

impl Role {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

/// 256 bits that nobody can guess, as text.
pub(crate) fn random_token() -> Result<String, ralph_loop_app::AppError> {
    Ok(ralph_loop_protocol::id::hex(&random_bytes::<32>()?))
}

/// Bytes that nobody can guess.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], ralph_loop_app::AppError> {
    let mut bytes = [0u8; N];
    getrandom::fill(&mut bytes).map_err(|e| {
        ralph_loop_app::AppError::environment(format!("this machine gives no random bytes: {e}"))
    })?;
    Ok(bytes)
}

/// Whether two texts are the same, in a time that does not tell where they differ.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    let differs = a.iter().zip(b).fold(0u8, |found, (a, b)| found | (a ^ b));
    std::hint::black_box(differs) == 0 && a.len() == b.len()
}
