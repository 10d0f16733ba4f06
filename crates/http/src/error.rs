//! What can go wrong before there is an answer.

use crate::proxy::ProxySettings;
use crate::tls::TlsError;
use ralph_loop_protocol::text::deepest_cause;

/// A client cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The thread belongs to an async runtime, which this client would stop.
    #[error("a call blocks: make it on a thread of its own")]
    InAsyncRuntime,
    /// The system refuses what a connection needs.
    #[error("{0}")]
    System(#[from] std::io::Error),
}

/// A connection failed. No message holds an address, a header or a proxy's password.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TransportError {
    /// See there.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The server did not accept a connection in time.
    #[error("{reason}")]
    ConnectTimedOut {
        /// In the system's words.
        reason: String,
    },
    /// There is no connection; the server has seen nothing.
    #[error("{reason}")]
    Connect {
        /// In the system's words.
        reason: String,
    },
    /// The connection broke after it was made.
    #[error("{reason}")]
    Broken {
        /// In the system's words.
        reason: String,
    },
    /// The body is longer than the caller reads.
    #[error("the answer has no end")]
    TooLong,
}

impl TransportError {
    /// Whether the server cannot have seen the request, so that it may be sent again whatever it does.
    pub fn is_unsent(&self) -> bool {
        matches!(self, Self::Tls(_) | Self::ConnectTimedOut { .. } | Self::Connect { .. })
    }

    pub(crate) fn of(error: reqwest::Error, proxy: &ProxySettings) -> Self {
        let (connect, late) = (error.is_connect(), error.is_timeout());
        let reason = proxy.redact(&deepest_cause(&error.without_url()));
        match (connect, late) {
            (true, true) => Self::ConnectTimedOut { reason },
            (true, false) => Self::Connect { reason },
            (false, _) => Self::Broken { reason },
        }
    }
}
