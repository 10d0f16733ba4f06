//! What the sandbox costs: the start of a command, and bytes through the proxy. Prints numbers, judges nothing.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement, not a part of the program")]

use ralph_loop_domain::ports::{ExecRequest, ExecSink, Sandbox as _, StopCause, Stream};
use ralph_loop_sandbox::egress::{Egress, EgressPolicy, Endpoint};
use ralph_loop_sandbox::isolation::detect;
use ralph_loop_sandbox::{IsolationSpec, LocalIsolation, LocalOptions, LocalSandbox};
use ralph_loop_task::config::Isolation;
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const STARTS: usize = 60;
const BYTES: u64 = 1 << 30;

struct Quiet;

impl ExecSink for Quiet {
    fn output(&mut self, _: Stream, _: &[u8]) {}
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let open = start(dir.path(), LocalIsolation::None);
    println!("start of `true`, median of {STARTS}: without a sandbox {open:.2?}");
    for (name, isolation) in [("bwrap", Isolation::Bwrap), ("landlock", Isolation::Landlock)] {
        for proxied in [false, true] {
            let mut spec = IsolationSpec::new(dir.path().join("run"));
            spec.egress = proxied.then(|| EgressPolicy::new(Vec::new(), Vec::new()));
            match detect(&ralph_loop_testkit::vars()).choose(isolation, spec) {
                Ok(isolation) => {
                    let time = start(dir.path(), isolation);
                    let more = time.saturating_sub(open);
                    println!(
                        "  {name}, {}: {time:.2?}, {more:.2?} more",
                        if proxied { "with proxy" } else { "no network" }
                    );
                }
                Err(why) => println!("  {name}: {why}"),
            }
        }
    }
    throughput(dir.path());
}

fn start(dir: &Path, isolation: LocalIsolation) -> Duration {
    let work = dir.join("work");
    std::fs::create_dir_all(&work).unwrap();
    let exe = PathBuf::from(env!("CARGO_BIN_EXE_guard-probe"));
    let options = LocalOptions {
        guard_exe: Some(exe),
        isolation,
        ..LocalOptions::new("bench", &ralph_loop_testkit::vars())
    };
    let sandbox = LocalSandbox::start(&work, options).unwrap();
    let request = ExecRequest::new(vec!["true".into()]);
    let mut times: Vec<Duration> = (0..STARTS)
        .map(|_| {
            let began = Instant::now();
            assert!(sandbox.exec(&request, &mut Quiet).unwrap().end.success());
            began.elapsed()
        })
        .collect();
    times.sort();
    times[STARTS / 2]
}

/// A server that sends zeros to everybody.
fn zeros() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            std::thread::spawn(move || {
                let (mut client, zeros) = (client.unwrap(), vec![0; 128 * 1024]);
                while client.write_all(&zeros).is_ok() {}
            });
        }
    });
    address
}

fn rate(mut from: impl Read) -> f64 {
    let mut buffer = vec![0; 128 * 1024];
    let (began, mut read) = (Instant::now(), 0u64);
    while read < BYTES {
        read += from.read(&mut buffer).unwrap() as u64;
    }
    read as f64 / began.elapsed().as_secs_f64() / 1e6
}

fn throughput(dir: &Path) {
    let server = zeros();
    let direct = rate(TcpStream::connect(server).unwrap());
    let endpoint = Endpoint { host: "127.0.0.1".into(), port: server.port() };
    let egress = Egress::start(EgressPolicy::new(Vec::new(), vec![endpoint]), dir, false).unwrap();
    let mut tunnel = UnixStream::connect(egress.socket()).unwrap();
    write!(tunnel, "CONNECT {server} HTTP/1.1\r\n\r\n").unwrap();
    let mut head = [0; 39];
    tunnel.read_exact(&mut head).unwrap();
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
    let proxied = rate(tunnel);
    println!(
        "loopback: direct {direct:.0} MB/s, through the proxy {proxied:.0} MB/s ({:.0} %)",
        proxied / direct * 100.0
    );
}
