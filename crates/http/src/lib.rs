//! The only HTTP client of the workspace, for blocking callers: model servers, code hosts, cloud sandboxes, webhooks.
//!
//! - [`Client`] sends a [`Request`] and returns a [`Response`], whose body is read in bounded pieces. Every wait has
//!   a limit and asks a [`Watch`] whether to continue.
//! - [`tls`] is the only place that sets up TLS: ring, and the machine's trusted certificates.
//! - [`ProxySettings`] come from the variables of the run, never from the process.
//! - [`Backoff`] gives the wait before the next try; [`redact`] removes secrets from texts.
//!
//! Redirects are never followed: a header may hold a key, which belongs to one server. Only the caller knows whether
//! a call may be retried, so nothing is retried here.

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
