//! What can go wrong with a provider, in words for people.

use ralph_loop_domain::ports::SandboxError;
use ralph_loop_http::Backoff;
use std::time::Duration;

/// The longest wait of our own choice.
const BACKOFF_MAX: Duration = Duration::from_secs(15);

/// A provider could not do what was asked. No message ever holds a key.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// There is no key.
    #[error("{vendor}: {variable} is not set; make a key in the vendor's dashboard and set it")]
    NoKey {
        /// The provider.
        vendor: &'static str,
        /// The variable that was looked up.
        variable: &'static str,
    },
    /// The server does not answer.
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
        /// Why not.
        reason: String,
        /// How often it was tried.
        tries: u32,
    },
    /// It took too long.
    #[error("{vendor} could not {what}: no answer within {} s; try again later", limit.as_secs())]
    TimedOut {
        /// The provider.
        vendor: &'static str,
        /// What was tried.
        what: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// The server said no.
    #[error("{vendor} could not {what}: {status} {said} ({tries} tries); {hint}")]
    Refused {
        /// The provider.
        vendor: &'static str,
        /// What was tried.
        what: String,
        /// The status of HTTP.
        status: u16,
        /// The server's own words.
        said: String,
        /// How often it was tried.
        tries: u32,
        /// What mends it.
        hint: &'static str,
        /// The wait that the server named.
        after: Option<Duration>,
    },
    /// The answer makes no sense.
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
    /// The sandbox is in a state in which it cannot be used.
    #[error("{vendor}: sandbox {id} is {state}{reason}; destroy it and start again")]
    State {
        /// The provider.
        vendor: &'static str,
        /// The sandbox.
        id: String,
        /// Its state, in the vendor's word.
        state: String,
        /// The vendor's reason, with a leading separator; may be empty.
        reason: String,
    },
    /// The vendor has no such thing.
    #[error("{vendor} cannot {what}; {hint}")]
    Unsupported {
        /// The provider.
        vendor: &'static str,
        /// What was asked for.
        what: String,
        /// What to do instead.
        hint: &'static str,
    },
    /// The caller ended the wait.
    #[error("the call was ended")]
    Cut,
}

impl ProviderError {
    /// The status of HTTP, where one came.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The wait before the next try: what the server named, else one that doubles from `backoff`.
    pub(crate) fn wait(&self, backoff: Duration, tries: u32) -> Duration {
        match self {
            Self::Refused { after: Some(named), .. } => *named,
            _ => Backoff { first: backoff, max: BACKOFF_MAX }.wait(tries),
        }
    }

    /// Whether the same call may go well later.
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
