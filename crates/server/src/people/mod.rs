//! Access control: named tokens with roles, browser sessions, login codes, and the limit on wrong tokens.

mod codes;
mod limiter;
mod sessions;
mod store;

pub use codes::LoginCodes;
pub use limiter::LoginLimiter;
pub use sessions::{AGE, COOKIE, Sessions, Ticket};
pub use store::{People, Person, PersonInfo};

use serde::{Deserialize, Serialize};

/// A user's role. Each role includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Can view.
    Viewer,
    /// Can start and steer runs.
    Operator,
    /// Can also manage users, secrets and the audit log.
    Admin,
}

impl Role {
    /// The role's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

/// 256 random bits as text.
pub(crate) fn random_token() -> Result<String, ralph_loop_app::AppError> {
    Ok(ralph_loop_protocol::id::hex(&random_bytes::<32>()?))
}

/// Random bytes.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], ralph_loop_app::AppError> {
    let mut bytes = [0u8; N];
    getrandom::fill(&mut bytes).map_err(|e| {
        ralph_loop_app::AppError::environment(format!("this machine gives no random bytes: {e}"))
    })?;
    Ok(bytes)
}

/// Constant-time comparison.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    let differs = a.iter().zip(b).fold(0u8, |found, (a, b)| found | (a ^ b));
    std::hint::black_box(differs) == 0 && a.len() == b.len()
}
