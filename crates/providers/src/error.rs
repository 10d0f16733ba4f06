//! Provider errors.

use ralph_loop_domain::ports::SandboxError;
use ralph_loop_http::Backoff;
use std::time::Duration;

/// The longest backoff.
const BACKOFF_MAX: Duration = Duration::from_secs(15);

/// A provider couldn't do what was requested. Messages never hold a key.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    #[error("{vendor}: {variable} is not set; make a key in the vendor's dashboard and set it")]
    NoKey { vendor: &'static str, variable: &'static str },
    #[error(
        "{vendor} could not {what}: {server} cannot be reached ({reason}; {tries} tries); check the network and the address"
    )]
    Unreachable { vendor: &'static str, what: String, server: String, reason: String, tries: u32 },
    #[error("{vendor} could not {what}: no answer within {} s; try again later", limit.as_secs())]
    TimedOut { vendor: &'static str, what: String, limit: Duration },
    #[error("{vendor} could not {what}: {status} {said} ({tries} tries); {hint}")]
    Refused {
        vendor: &'static str,
        what: String,
        status: u16,
        said: String,
        tries: u32,
        hint: &'static str,
        after: Option<Duration>,
    },
    #[error(
        "{vendor} could not {what}: the answer is not understood ({reason}); check that the address is the vendor's"
    )]
    Garbled { vendor: &'static str, what: String, reason: String },
    #[error("{vendor}: sandbox {id} is {state}{reason}; destroy it and start again")]
    State {
        vendor: &'static str,
        id: String,
        state: String,
        /// The vendor's reason, with a leading separator; may be empty.
        reason: String,
    },
    #[error("{vendor} cannot {what}; {hint}")]
    Unsupported {
        vendor: &'static str,
        what: String,
        /// What to do instead.
        hint: &'static str,
    },
    #[error("the call was ended")]
    Cut,
}

impl ProviderError {
    /// The HTTP status, if there was a response.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The wait before the next try: the server's, else one that doubles from `backoff`.
    pub(crate) fn wait(&self, backoff: Duration, tries: u32) -> Duration {
        match self {
            Self::Refused { after: Some(named), .. } => *named,
            _ => Backoff { first: backoff, max: BACKOFF_MAX }.wait(tries),
        }
    }

    /// Whether the same call may succeed later.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } => true,
            Self::Refused { status, .. } => matches!(status, 408 | 409 | 425 | 429 | 500..),
            _ => false,
        }
    }
}

impl From<ProviderError> for SandboxError {
    fn from(error: ProviderError) -> Self {
        Self::Broken(error.to_string())
    }
}
