//! Helpers to create a `ForgeError`.

use ralph_loop_domain::ports::ForgeError;

pub(crate) type Result<T, E = ForgeError> = std::result::Result<T, E>;

pub(crate) fn unavailable(what: impl Into<String>, reason: impl ToString) -> ForgeError {
    ForgeError::Unavailable { what: what.into(), reason: reason.to_string() }
}

pub(crate) fn refused(what: impl Into<String>, reason: impl ToString, hint: impl Into<String>) -> ForgeError {
    ForgeError::Refused { what: what.into(), reason: reason.to_string(), hint: hint.into() }
}

pub(crate) fn not_found(
    what: impl Into<String>,
    reason: impl ToString,
    hint: impl Into<String>,
) -> ForgeError {
    ForgeError::NotFound { what: what.into(), reason: reason.to_string(), hint: hint.into() }
}

#[cfg(feature = "github")]
pub(crate) fn auth(what: impl Into<String>, reason: impl ToString, hint: impl Into<String>) -> ForgeError {
    ForgeError::Auth { what: what.into(), reason: reason.to_string(), hint: hint.into() }
}
