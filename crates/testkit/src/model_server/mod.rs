//! A model server that plays a script on the wires of Anthropic, OpenAI and Gemini, so that real agent CLIs and our own model
//! client can be tested without a model, a key or a network.
//!
//! ```
//! use ralph_loop_testkit::model_server::{Action, Fault, FaultKind, ModelServer, Script};
//!
//! let server = ModelServer::start()?;
//! let script = Script::turns([Action::write("a.txt", "hello\n"), Action::text("<promise>COMPLETE</promise>")])
//!     .with_fault(Fault::times(FaultKind::Overloaded, 1));
//! server.script("mine", script);
//! let url = server.base_url("mine", "run-1"); // ANTHROPIC_BASE_URL=$url, OPENAI_BASE_URL=$url/v1, …
//! assert!(server.requests("mine", "run-1").is_empty());
//! # let _ = url;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! By hand: `ralph-model-server --port 18080 [--script FILE]`, then `ANTHROPIC_BASE_URL=http://127.0.0.1:18080/s/ok/run-1
//! claude -p …`. `--list` names the scenarios. `/__state` shows what was asked, `/__reset` forgets it, `/__health` is there.
//!
//! # Paths
//!
//! A base URL is `http://127.0.0.1:PORT/s/<scenario>/<run-id>`. Below it: `/v1/messages` and `/v1/messages/count_tokens`
//! (Anthropic), `/v1/responses` and `/v1/chat/completions` (OpenAI), `/v1beta/models/M:generateContent`,
//! `:streamGenerateContent` and `:countTokens` (Gemini), `/v1/models`.
//!
//! # What an answer depends on
//!
//! - The **turn** is the number of answers that the request already holds. Retries, side calls and resumed sessions
//!   therefore never eat the script.
//! - The **session** is the number of requests without any answer in them that this run id was answered. Every call id
//!   carries session and turn (`call_s0t1n2`), so sessions may also overlap.
//! - An **action** is put onto the tool that the request offers: `write` onto `Write`, `write_file`, `apply_patch`, …, or
//!   the shell; `shell` onto `Bash`, `exec_command`, …; several in one turn are parallel calls. Where a tool wants an
//!   absolute path, the working directory is read out of the prompt.
//! - **Faults** are counted per scenario and run id.
//! - A request without tools from a known agent CLI (a title, a router) gets a short text, or what fits the schema it asks
//!   for, and takes part in nothing of this. See [`Toolless`].
//!
//! Token numbers are those of [`Usage`]: 1200 input, 800 cached, 300 written to the cache, 40 output, 8 of thought for each
//! turn that names no others; [`Usage::SIDE`] for a side call. Counting endpoints say a quarter of the body's bytes.

mod answer;
mod ask;
mod errors;
mod fault;
pub(crate) mod http;
mod line;
mod route;
mod scenarios;
mod script;
mod state;
mod tools;
mod wire;

pub use ask::Wire;
pub use fault::{Fault, FaultKind};
pub use scenarios::SCENARIOS;
pub use script::{Action, Script, Stop, Toolless, Turn, Usage};
pub use state::{Counts, SeenRequest};

use answer::{Brain, ServerResponse};
use http::{ReadEnd, Reader};
use line::{After, Line};
use state::State;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// Maximum number of connections; any more are closed at once.
const CONNECTIONS_MAX: usize = 512;

/// A running server. Dropping it ends it, with every connection.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    brain: Brain,
    stop: AtomicBool,
    connections: Mutex<BTreeMap<u64, TcpStream>>,
}

impl ModelServer {
    /// Starts on a free port of this machine.
    pub fn start() -> io::Result<Self> {
        Self::start_on(0)
    }

    /// Starts on this port; 0 takes a free one.
    pub fn start_on(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            brain: Brain { state: Mutex::new(State::default()), started: Instant::now() },
            stop: AtomicBool::new(false),
            connections: Mutex::new(BTreeMap::new()),
        });
        let for_thread = Arc::clone(&shared);
        let accepting = std::thread::Builder::new()
            .name("model-server".into())
            .spawn(move || accept(&listener, &for_thread))?;
        Ok(Self { address, shared, accepting: Some(accepting) })
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The base URL of a scenario and a run id, without the vendor's own path (`/v1`).
    pub fn base_url(&self, scenario: &str, run: &str) -> String {
        format!("http://{}/s/{scenario}/{run}", self.address)
    }

    pub fn script(&self, name: &str, script: Script) {
        self.shared.brain.lock().script(name, script);
    }

    /// The last requests of a run, oldest first; at most 64 are kept.
    pub fn requests(&self, scenario: &str, run: &str) -> Vec<SeenRequest> {
        self.shared.brain.lock().requests(scenario, run)
    }

    pub fn counts(&self, scenario: &str, run: &str) -> Counts {
        self.shared.brain.lock().counts(scenario, run)
    }

    /// Forgets all runs: their requests, sessions and faults. Scripts stay.
    pub fn reset(&self) {
        self.shared.brain.lock().reset();
    }

    /// Waits until the server is ended from outside.
    pub fn wait(mut self) {
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts connections. Once it has ended, no connection can be left open.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        for stream in self.shared.connections().values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn connections(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, TcpStream>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for (number, stream) in (0_u64..).zip(listener.incoming()) {
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let Ok(kept) = stream.try_clone() else { continue };
        let mut connections = shared.connections();
        if connections.len() >= CONNECTIONS_MAX {
            continue;
        }
        connections.insert(number, kept);
        drop(connections);
        let shared = Arc::clone(shared);
        let _ = std::thread::Builder::new().name(format!("model-{number}")).spawn(move || {
            let _ = serve(&stream, &shared);
            shared.connections().remove(&number);
            let _ = stream.shutdown(Shutdown::Both);
        });
    }
}

fn serve(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = Reader::new(stream.try_clone()?);
    let mut line = Line { stream, stop: &shared.stop };
    loop {
        match reader.next() {
            Ok(request) => {
                let answer = shared.brain.answer(&request);
                if line.send(Some(&request), &answer)? == After::Close {
                    return Ok(());
                }
            }
            Err(ReadEnd::Closed) => return Ok(()),
            Err(ReadEnd::Bad { status, why }) => {
                line.send(None, &ServerResponse::unreadable(status, why))?;
                return Ok(());
            }
        }
        if shared.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
}
