//! One POST, tried again where that can help, within a bounded time.
#![allow(clippy::disallowed_methods, reason = "a home of waits between tries")]

use ralph_domain::text::deepest_cause;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;

const TRIES: u32 = 3;
/// All tries together; shorter than the patience of whoever waits, so that the reason is told.
const LIMIT: Duration = Duration::from_millis(4500);
const CONNECT: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(250);

/// A message over HTTP. The address may itself be a secret: it stands in no error.
pub(crate) struct Post<'a> {
    pub url: &'a str,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

enum Failure {
    Passing(String),
    Final(String),
}

impl Post<'_> {
    pub fn send(&self) -> Result<(), String> {
        // A second install is refused, which is fine: any provider will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = reqwest::Url::parse(self.url).map_err(|_| "its address is no web address".to_owned())?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
        let client = client(&url)?;
        let result = runtime.block_on(async {
            tokio::time::timeout(LIMIT, self.tries(&client, &url))
                .await
                .unwrap_or_else(|_| Err("it does not answer".into()))
        });
        // A look-up of a name that goes on is not waited for.
        runtime.shutdown_background();
        result
    }

    async fn tries(&self, client: &reqwest::Client, url: &reqwest::Url) -> Result<(), String> {
        let begun = Instant::now();
        let mut number = 0;
        loop {
            number += 1;
            let why = match self.attempt(client, url).await {
                Ok(()) => return Ok(()),
                Err(Failure::Final(why)) => return Err(why),
                Err(Failure::Passing(why)) => why,
            };
            let pause = PAUSE * number;
            if number >= TRIES || begun.elapsed() + pause >= LIMIT {
                return Err(format!("{why} (tried {number} times)"));
            }
            tokio::time::sleep(pause).await;
        }
    }

    async fn attempt(&self, client: &reqwest::Client, url: &reqwest::Url) -> Result<(), Failure> {
        let mut request =
            client.post(url.clone()).header("content-type", "application/json").body(self.body.clone());
        for (name, value) in &self.headers {
            let value = HeaderValue::from_str(value)
                .map_err(|_| Failure::Final(format!("`{name}` is no usable header")))?;
            request = request.header(HeaderName::from_static(name), value);
        }
        let answer = request.send().await.map_err(|e| Failure::Passing(deepest_cause(&e)))?;
        let status = answer.status();
        let why = || format!("it answered {status}");
        match status.as_u16() {
            200..=299 => Ok(()),
            408 | 429 | 500.. => Err(Failure::Passing(why())),
            300..=399 => Err(Failure::Final(format!("{}: redirects are not followed", why()))),
            _ => Err(Failure::Final(why())),
        }
    }
}

fn client(url: &reqwest::Url) -> Result<reqwest::Client, String> {
    let at_home =
        url.host_str().is_some_and(|host| matches!(host, "localhost" | "[::1]") || host.starts_with("127."));
    let builder = || {
        let builder = reqwest::Client::builder()
            .redirect(Policy::none())
            .connect_timeout(CONNECT)
            .user_agent(concat!("ralph/", env!("CARGO_PKG_VERSION")));
        // What stays on this machine never goes through a proxy.
        if at_home { builder.no_proxy() } else { builder }
    };
    // Without certificates on the machine, servers without TLS can still be asked.
    let built = builder().build().or_else(|_| builder().tls_certs_only([]).build());
    built.map_err(|e| format!("TLS cannot be set up: {e}"))
}
