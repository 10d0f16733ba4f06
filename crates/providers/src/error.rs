//! Provider errors.

use ralph_loop_domain::ports::SandboxError;
use ralph_loop_http::Backoff;
use std::time::Duration;

/// The longest backoff.
const BACKOFF_MAX: Duration = Duration::from_secs(15);

/// A provider couldn't do what was requested. Messages never hold a key.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// No key is set.
    #[error("{vendor}: {variable} is not set; make a key in the vendor's dashboard and set it")]
    NoKey {
        /// The provider.
        vendor: &'static str,
        /// The variable that was looked up.
        variable: &'static str,
    },
    /// The server doesn't answer.
    #[error(
        "{vendor} could not {what}: {server} cannot be reached ({reason}; {tries} tries); check the network and the address"
    )]
    Unreachable {
        /// The provider.
        vendor: &'static str,
        /// What was tried.
        what: String,
        /// The server.
        server: String,
        /// The cause.
        reason: String,
        /// The number of tries.
        tries: u32,
    },
    /// The call exceeded its time limit.
    #[error("{vendor} could not {what}: no answer within {} s; try again later", limit.as_secs())]
    TimedOut {
        /// The provider.
        vendor: &'static str,
        /// What was tried.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// The server refused.
    #[error("{vendor} could not {what}: {status} {said} ({tries} tries); {hint}")]
    Refused {
        /// The provider.
        vendor: &'static str,
        /// What was tried.
        what: String,
        /// The HTTP status.
        status: u16,
        /// The server's message.
        said: String,
        /// The number of tries.
        tries: u32,
        /// How to fix it.
        hint: &'static str,
        /// The wait that the server requires.
        after: Option<Duration>,
    },
    /// The answer can't be parsed.
    #[error(
        "{vendor} could not {what}: the answer is not understood ({reason}); check that the address is the vendor's"
    )]
    Garbled {
        /// The provider.
        vendor: &'static str,
        /// What was tried.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The sandbox is in an unusable state.
    #[error("{vendor}: sandbox {id} is {state}{reason}; destroy it and start again")]
    State {
        /// The provider.
        vendor: &'static str,
        /// The sandbox.
        id: String,
        /// Its state, in the vendor's words.
        state: String,
        /// The vendor's reason, with a leading separator; may be empty.
        reason: String,
    },
    /// The vendor doesn't support it.
    #[error("{vendor} cannot {what}; {hint}")]
    Unsupported {
        /// The provider.
        vendor: &'static str,
        /// What was requested.
        what: String,
        /// What to do instead.
        hint: &'static str,
    },
    /// The caller ended the wait.
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
