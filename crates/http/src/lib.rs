//! The one HTTP client of the workspace, for callers that block: model servers, code hosts, cloud sandboxes, webhooks.
//!
//! - [`Client`] sends a [`Request`] and gives back a [`Response`], whose body is read in bounded pieces. Every wait has a limit
//!   and asks a [`Watch`] whether to go on.
//! - [`tls`] is the only place that sets TLS up: ring, and the certificates that the machine trusts.
//! - [`ProxySettings`] come from the variables of the run, never from the process.
//! - [`Backoff`] says how long to wait before the next try; [`redact`] takes secrets out of texts.
//!
//! Redirects are never followed: a header may hold a key, which belongs to one server. Whether a call may be tried again is
//! known only to whoever makes it, so nothing is repeated here.

mod client;
mod error;
mod proxy;
mod redact;
mod retry;
mod server;
pub mod tls;
mod wait;

pub use bytes::Bytes;
pub use client::{Client, ClientOptions, Request, Response};
pub use error::{StartError, TransportError};
pub use proxy::ProxySettings;
pub use redact::redact;
pub use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
pub use reqwest::{Method, StatusCode, Url};
pub use retry::{Backoff, random_word};
pub use server::is_loopback;
pub use wait::{Failure, Watch, in_async_runtime, never_stop};
