//! Errors before there is an answer.

use crate::proxy::ProxySettings;
use crate::tls::TlsError;
use ralph_loop_protocol::display::text::deepest_cause;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The thread belongs to an async runtime, which this client would block.
    #[error("a call blocks: make it on a separate thread")]
    InAsyncRuntime,
    #[error("{0}")]
    System(#[from] std::io::Error),
}

/// A connection failed. Messages hold no URL, header or proxy password.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TransportError {
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The server didn't accept a connection in time.
    #[error("{reason}")]
    ConnectTimedOut { reason: String },
    /// There is no connection; the server has seen nothing.
    #[error("{reason}")]
    Connect { reason: String },
    /// The connection broke after it was established.
    #[error("{reason}")]
    Broken { reason: String },
    /// The body is longer than the caller's limit.
    #[error("the answer has no end")]
    TooLong,
}

impl TransportError {
    /// Whether the server can't have seen the request, so that it may always be sent again.
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
