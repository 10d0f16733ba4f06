//! Model calls over HTTP: [`HttpModelClient`] supports four APIs with one result type.
//!
//! - [`provider`] knows a model's server, key variable and API.
//! - `anthropic`, `openai_chat`, `openai_responses`, `gemini` translate a request and its answer, whole or streamed.
//! - [`sse`] parses event streams, bounded.
//! - `failure` classifies refusals, `retry` computes waits, `client` makes the call.
//!
//! A key goes only to its profile's server: redirects aren't followed, and messages contain only host and port. No
//! process, thread or runtime exists before the first call.

mod anthropic;
mod client;
mod failure;
mod gemini;
mod openai_chat;
mod openai_responses;
pub mod provider;
mod retry;
pub mod sse;
mod streamed_text;
mod timeouts;
mod wire;

pub use client::HttpModelClient;
pub use provider::Route;

use ralph_loop_task::config::Wire;

/// The source of keys and URLs: the environment, or a test's list.
pub trait KeySource: Send + Sync {
    /// The value of a variable.
    fn get(&self, name: &str) -> Option<String>;
}

impl<F: Fn(&str) -> Option<String> + Send + Sync> KeySource for F {
    fn get(&self, name: &str) -> Option<String> {
        self(name)
    }
}

/// The entry point of fuzzing: parses any bytes as an API's answer, in the given pieces. Returns how many bytes of
/// text there were.
#[doc(hidden)]
pub fn read_anything(wire: Wire, pieces: &[&[u8]], stream: bool) -> usize {
    let mut told = 0;
    if stream {
        let mut parser = sse::SseParser::new();
        let mut reader = wire::reader(wire, 1);
        let mut bad = false;
        for piece in pieces {
            let pushed = parser.push(piece, |event| {
                bad = bad || reader.event(&event, &mut |text| told += text.len()).is_err();
            });
            if pushed.is_err() || bad {
                return told;
            }
        }
        let _ = reader.finish();
    } else {
        let body = pieces.concat();
        if let Ok(value) = serde_json::from_slice(&body) {
            let _ = wire::whole(wire, &value, 1);
        }
        let text = String::from_utf8_lossy(&body);
        for status in [200, 400, 429, 500] {
            told += failure::Failure::of_status(status, &|_| None, &text).said.len();
        }
    }
    told
}
