//! One POST, with retries in bounded time.
#![allow(clippy::disallowed_methods, reason = "reads the clock: all tries together have one limit")]

use ralph_loop_http::{
    Backoff, Client, ClientOptions, Failure, HeaderName, HeaderValue, Method, ProxySettings, Request, Url,
    never_stop,
};
use std::time::{Duration, Instant};

const TRIES: u32 = 3;
/// All tries together; shorter than the caller's limit, so that the reason is reported.
const LIMIT: Duration = Duration::from_millis(4500);
const CONNECT: Duration = Duration::from_secs(3);
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(250), max: Duration::from_millis(500) };

/// A message over HTTP. The URL may itself be a secret: no error contains it.
pub(crate) struct Post<'a> {
    pub url: &'a str,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
    pub proxy: &'a ProxySettings,
}

enum PostError {
    Transient(String),
    Final(String),
}

impl Post<'_> {
    pub fn send(&self) -> Result<(), String> {
        let request = self.request()?;
        let client = Client::new(ClientOptions {
            connect_timeout: CONNECT,
            proxy: self.proxy.clone(),
            ..ClientOptions::default()
        })
        .map_err(|e| e.to_string())?;
        let result = send_with_retries(&client, &request);
        client.close();
        result
    }

    fn request(&self) -> Result<Request, String> {
        let url = Url::parse(self.url).map_err(|_| "its address isn't a URL".to_owned())?;
        let mut request = Request::new(Method::POST, url)
            .body(HeaderValue::from_static("application/json"), self.body.clone());
        for (name, value) in &self.headers {
            let value =
                HeaderValue::from_str(value).map_err(|_| format!("`{name}` isn't a valid header value"))?;
            request = request.header(HeaderName::from_static(name), value);
        }
        Ok(request)
    }
}

fn send_with_retries(client: &Client, request: &Request) -> Result<(), String> {
    let begun = Instant::now();
    let mut number = 0;
    loop {
        number += 1;
        let why = match attempt(client, request, LIMIT.saturating_sub(begun.elapsed())) {
            Ok(()) => return Ok(()),
            Err(PostError::Final(why)) => return Err(why),
            Err(PostError::Transient(why)) => why,
        };
        let pause = BACKOFF.wait(number);
        if number >= TRIES || begun.elapsed() + pause >= LIMIT {
            return Err(format!("{why} (tried {number} times)"));
        }
        tracing::debug!(tries = number, wait = ?pause, why, "message is sent again");
        client.pause(pause);
    }
}

fn attempt(client: &Client, request: &Request, limit: Duration) -> Result<(), PostError> {
    let status = match client.send(request, limit, &mut never_stop) {
        Ok(response) => response.status_code(),
        Err(Failure::TimedOut) => return Err(PostError::Final("it does not answer".into())),
        Err(Failure::Transport(error)) => return Err(PostError::Transient(error.to_string())),
    };
    let why = || format!("it answered {status}");
    match status.as_u16() {
        200..=299 => Ok(()),
        408 | 429 | 500.. => Err(PostError::Transient(why())),
        300..=399 => Err(PostError::Final(format!("{}: redirects are not followed", why()))),
        _ => Err(PostError::Final(why())),
    }
}
