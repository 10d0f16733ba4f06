//! Network access from inside the sandbox, and connections into it.

use crate::common::{Output, PROBE, Sink, run, sh};
use ralph_loop_domain::ports::{Sandbox as _, StopCause};
use ralph_loop_sandbox::egress::{EgressPolicy, EgressRefusal, Endpoint, HostRule};
use ralph_loop_sandbox::isolation::detect;
use ralph_loop_sandbox::{IsolationSpec, LocalOptions, LocalSandbox};
use ralph_loop_task::config::Isolation;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A server that echoes each request, and its address.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).unwrap_or(0) == 1 {
                head.push(byte[0]);
            }
            let line = String::from_utf8_lossy(&head).replace("\r\n", "|");
            let _ = write!(
                client,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{line}",
                line.len()
            );
        }
    });
    address
}

struct Net {
    _dir: tempfile::TempDir,
    sandbox: LocalSandbox,
    refusals: Arc<Mutex<Vec<EgressRefusal>>>,
    dialled: Arc<Mutex<Vec<SocketAddr>>>,
}

/// A sandbox whose listed names resolve to `to`, and whose every connection goes to `really`.
fn net(
    isolation: Isolation,
    allow: &[&str],
    endpoints: Vec<Endpoint>,
    to: &'static str,
    really: SocketAddr,
) -> Option<Net> {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let refusals: Arc<Mutex<Vec<EgressRefusal>>> = Arc::default();
    let dialled: Arc<Mutex<Vec<SocketAddr>>> = Arc::default();
    let mut policy =
        EgressPolicy::new(allow.iter().map(|rule| HostRule::parse(rule).unwrap()).collect(), endpoints);
    policy.resolver = Arc::new(move |_, _| Ok(vec![to.parse().unwrap()]));
    let noted = Arc::clone(&dialled);
    policy.dialer = Arc::new(move |address| {
        noted.lock().unwrap().push(address);
        TcpStream::connect(really)
    });
    let told = Arc::clone(&refusals);
    policy.on_refusal = Some(Arc::new(move |refusal| told.lock().unwrap().push(refusal.clone())));
    let mut spec = IsolationSpec::new(dir.path().join("run"));
    spec.egress = Some(policy);
    let isolation = match detect(&ralph_loop_testkit::vars()).choose(isolation, spec) {
        Ok(isolation) => isolation,
        Err(why) => {
            println!("skipped: {why}");
            return None;
        }
    };
    let options = LocalOptions {
        guard_exe: Some(PathBuf::from(PROBE)),
        isolation,
        ..LocalOptions::new("egress", &ralph_loop_testkit::vars())
    };
    let sandbox = LocalSandbox::start(&work, options).unwrap();
    Some(Net { _dir: dir, sandbox, refusals, dialled })
}

impl Net {
    fn sh(&self, script: &str) -> Output {
        run(&self.sandbox, &sh(script))
    }
}

#[test]
fn listed_name_is_dialed_at_the_checked_address() {
    for isolation in [Isolation::Bwrap, Isolation::Landlock] {
        let really = server();
        let Some(net) = net(isolation, &["example.org"], Vec::new(), "93.184.216.34", really) else { return };
        let plain = net.sh("curl -sS http://example.org/a?b");
        assert!(
            plain.stdout.starts_with("GET /a?b HTTP/1.1|Host: example.org|Connection: close|"),
            "{plain:?}",
            plain = plain.stdout + &plain.stderr
        );
        // A tunnel carries any bytes; this server speaks plain HTTP.
        let tunnel = net.sh("curl -sS -p -x \"$http_proxy\" http://example.org:80/t");
        assert!(tunnel.stdout.starts_with("GET /t HTTP/1.1|"), "{}{}", tunnel.stdout, tunnel.stderr);
        assert_eq!(*net.dialled.lock().unwrap(), vec!["93.184.216.34:80".parse().unwrap(); 2]);
        assert!(net.refusals.lock().unwrap().is_empty());
    }
}

#[test]
fn unlisted_host_is_refused_and_reported_once() {
    let Some(net) = net(Isolation::Bwrap, &["example.org"], Vec::new(), "192.168.0.7", server()) else {
        return;
    };
    for _ in 0..2 {
        let done =
            net.sh("curl -sS -o /dev/null -w '%{http_code}' http://other.org/; curl -sS http://example.org/");
        assert!(done.stdout.starts_with("403"), "{}{}", done.stdout, done.stderr);
        assert!(done.stdout.contains("leads to 192.168.0.7: it is a private address"), "{}", done.stdout);
    }
    let refusals = net.refusals.lock().unwrap();
    let told: Vec<(&str, u16)> = refusals.iter().map(|r| (r.host.as_str(), r.port)).collect();
    assert_eq!(told, [("other.org", 80), ("example.org", 80)]);
    assert!(net.dialled.lock().unwrap().is_empty());
}

#[test]
fn local_model_server_is_reachable_from_inside() {
    let really = server();
    let endpoint = Endpoint { host: "localhost".into(), port: really.port() };
    let Some(net) = net(Isolation::Bwrap, &[], vec![endpoint], "127.0.0.1", really) else { return };
    let done = net.sh(&format!("curl -sS --noproxy '*' http://127.0.0.1:{}/v1", really.port()));
    assert!(done.stdout.starts_with("GET /v1 HTTP/1.1|"), "{}{}", done.stdout, done.stderr);
    assert_eq!(*net.dialled.lock().unwrap(), [SocketAddr::from(([127, 0, 0, 1], really.port()))]);
}

#[test]
fn a_port_inside_is_published_outside_while_its_server_runs() {
    let Some(net) = net(Isolation::Bwrap, &[], Vec::new(), "127.0.0.1", server()) else { return };
    let python = net.sh("command -v python3").outcome.end.success();
    if !python {
        println!("skipped: no python3 for a server");
        return;
    }
    let published = net.sandbox.egress().unwrap().publish(8123).unwrap();
    let connection = net.sandbox.new_connection().unwrap();
    let mut answer = String::new();
    let mut sink = Sink::asking(|| {
        // Retried while the server ends.
        if answer.contains("served") {
            return ControlFlow::Break(StopCause::Cancelled);
        }
        let mut client = TcpStream::connect(published.address).unwrap();
        client.write_all(b"GET /page.txt HTTP/1.0\r\n\r\n").unwrap();
        answer.clear();
        let _ = client.read_to_string(&mut answer);
        if answer.contains("served") {
            ControlFlow::Break(StopCause::Cancelled)
        } else {
            ControlFlow::Continue(())
        }
    });
    let mut request = sh("echo served > page.txt; exec python3 -m http.server --bind 127.0.0.1 8123");
    request.timeout = Some(std::time::Duration::from_secs(200));
    connection.exec(&request, &mut sink).unwrap();
    drop(sink);
    assert!(answer.contains("200 OK") && answer.ends_with("served\n"), "{answer}");
    assert!(net.sandbox.egress().unwrap().reach(8123).is_err(), "the server is gone");
}

#[test]
fn other_commands_servers_are_reachable_and_host_servers_are_not() {
    let host = server();
    let Some(net) = net(Isolation::Bwrap, &[], Vec::new(), "127.0.0.1", host) else { return };
    if !net.sh("command -v python3").outcome.end.success() {
        println!("skipped: no python3 for a server");
        return;
    }
    let connection = net.sandbox.new_connection().unwrap();
    let ask = |port: u16| {
        let done =
            net.sh(&format!("curl -sS -m 10 --noproxy '' -x $http_proxy http://localhost:{port}/page.txt"));
        format!("{}{}", done.stdout, done.stderr)
    };
    let mut answer = String::new();
    let mut of_host = String::new();
    let mut sink = Sink::asking(|| {
        if !answer.ends_with("served\n") {
            answer = ask(8124);
            of_host = ask(host.port());
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(StopCause::Cancelled)
    });
    let mut request = sh("echo served > page.txt; exec python3 -m http.server --bind 127.0.0.1 8124");
    request.timeout = Some(std::time::Duration::from_secs(200));
    connection.exec(&request, &mut sink).unwrap();
    drop(sink);
    assert_eq!(answer, "served\n");
    assert!(of_host.contains("not on the list"), "{of_host}");
    assert_eq!(*net.dialled.lock().unwrap(), Vec::<SocketAddr>::new(), "nothing of the host was dialled");
    assert!(
        net.refusals.lock().unwrap().iter().any(|r| r.port == host.port()),
        "and the refusal is reported"
    );
}
