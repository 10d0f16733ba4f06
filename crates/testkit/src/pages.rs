//! Pages for browser tests: a host server that must be unreachable from a sandbox, and shared helpers.

use crate::model_server::ModelServer;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The page text of [`HostServer`].
pub const HOSTS_PAGE: &str = "the host's own page";

/// A host server that must be unreachable from a sandbox; counts requests.
#[derive(Debug)]
pub struct HostServer {
    pub port: u16,
    calls: Arc<AtomicUsize>,
}

impl HostServer {
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                let page = format!("<title>Secret</title>{HOSTS_PAGE}");
                let head =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", page.len());
                let _ = stream.write_all(format!("{head}{page}").as_bytes());
            }
        });
        Ok(Self { port, calls })
    }

    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

/// The response of `address` to a request for `/`.
pub fn get(address: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /index.html HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The URL in an event for the user, without its scheme.
pub fn preview(result: &str) -> Option<String> {
    let shown = result.split("people see it at http://").nth(1)?;
    Some(shown.chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect())
}

/// A `models.yaml` whose profile `scripted` is the script `work` of a server.
pub fn scripted_profile(server: &ModelServer) -> String {
    let base = server.base_url("work", "anthropic");
    format!(
        "profiles:\n  scripted:\n    litellm_model: anthropic/claude-sonnet-5\n    wire: anthropic\n    \
         base_url: {base}\n    api_key_env: \"\"\n    max_retries: 1\n"
    )
}

pub fn asked(server: &ModelServer) -> String {
    server.requests("work", "anthropic").into_iter().map(|request| request.body.to_string()).collect()
}
