//! Operating a server: health, metrics, traces, the demo.

use super::client::request;
use super::machine::{Served, machine};
use ralph_loop_testkit::TestRepo;
use ralph_loop_testkit::env::until;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

#[test]
fn health_and_metrics_have_standard_formats() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub("echo work > part.txt; echo '<promise>COMPLETE</promise>'", "grep -q work part.txt");
    repo.run(&[]).exits(0);
    let server = Served::start(&env, &repo.dir, &[]);
    let get = |path: &str| request(server.port, "GET", path, &[], None);
    assert_eq!(get("/healthz").is(200).json()["status"], "ok");
    until("every record was read", || {
        (get("/readyz").is(200).json()["all_records_read"] == true).then_some(())
    });
    let text = until("the run is counted", || {
        let text = get("/metrics").is(200).text();
        text.contains("ralph_runs{status=\"done\"} 1").then_some(text)
    });
    for name in [
        "ralph_http_requests_total",
        "ralph_http_request_duration_seconds_bucket",
        "ralph_scheduler_limit",
        "ralph_cost_usd",
    ] {
        assert!(text.contains(name), "{name} in {text}");
    }
    // Debian's own checker, where it is installed.
    match Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
    {
        Ok(mut child) => {
            child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            let done = child.wait_with_output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
        Err(_) => ralph_loop_testkit::skip("promtool is not installed"),
    }
}

/// Collects every body sent to this port.
fn collector() -> (u16, mpsc::Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut bytes = Vec::new();
            let mut piece = [0; 64 * 1024];
            let body = loop {
                let Ok(read) = stream.read(&mut piece) else { break None };
                bytes.extend_from_slice(&piece[..read]);
                let text = String::from_utf8_lossy(&bytes);
                if let Some((_, body)) = text.split_once("\r\n\r\n")
                    && let Ok(body) = serde_json::from_str::<Value>(body)
                {
                    break Some(body);
                }
                if read == 0 {
                    break None;
                }
            };
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
            if let Some(body) = body {
                let _ = send.send(body);
            }
        }
    });
    (port, receive)
}

#[test]
fn run_trace_follows_the_genai_conventions() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub("echo work > part.txt; echo '<promise>COMPLETE</promise>'", "grep -q work part.txt");
    let (port, received) = collector();
    let endpoint = format!("http://127.0.0.1:{port}");
    let vars = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str())];
    let server = Served::start_with(&env, &repo.dir, &[], &vars);
    until("the records are read", || {
        let ready = request(server.port, "GET", "/readyz", &[], None).is(200).json();
        (ready["all_records_read"] == true).then_some(())
    });
    let run = repo.run(&[]).exits(0).json()["run_id"].as_str().unwrap().to_owned();
    let mut spans: Vec<Value> = Vec::new();
    while !spans.iter().any(|span| span["name"] == "invoke_agent ralph") {
        let body = received.recv_timeout(Duration::from_secs(150)).expect("traces come");
        spans.extend(body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone());
    }
    let named = |name: &str| {
        spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("{name}: {spans:#?}"))
    };
    let attribute = |span: &Value, key: &str| {
        let all = span["attributes"].as_array().unwrap();
        all.iter().find(|one| one["key"] == key).map(|one| one["value"].clone()).unwrap_or_default()
    };
    let (root, session, check) =
        (named("invoke_agent ralph"), named("invoke_agent stub"), named("execute_tool tests"));
    assert_eq!(session["parentSpanId"], root["spanId"]);
    assert_eq!(check["parentSpanId"], session["spanId"]);
    assert_eq!(root["traceId"].as_str().unwrap().len(), 32);
    assert_eq!(attribute(root, "ralph.run.id")["stringValue"], run.as_str());
    assert_eq!(attribute(session, "gen_ai.operation.name")["stringValue"], "invoke_agent");
    assert_eq!(attribute(session, "gen_ai.agent.name")["stringValue"], "stub");
    assert_eq!(attribute(check, "gen_ai.operation.name")["stringValue"], "execute_tool");
    let nanos = |span: &Value, key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
    assert!(nanos(session, "startTimeUnixNano") <= nanos(session, "endTimeUnixNano"));
}

#[test]
fn demo_fills_a_server_with_runs() {
    let env = machine();
    let server = Served::start(&env, &env.path("tmp"), &["--demo"]);
    assert_eq!(server.get("/me").is(200).json()["demo"], true);
    let has = |status: &str| {
        let rows = server.get("/runs").is(200).json();
        let rows = rows["runs"].as_array().unwrap().clone();
        (rows.len() == 5 && rows.iter().any(|row| row["status"] == status)).then_some(rows)
    };
    for status in ["done", "needs you", "waiting"] {
        until(&format!("a demo that is {status}"), || has(status));
    }
    let rows = has("done").unwrap();
    assert!(rows.iter().any(|row| row["cost_usd"].as_f64() > Some(0.0)), "{rows:#?}");
    for row in server.get("/runs?status=open").json()["runs"].as_array().unwrap() {
        server.control(row["id"].as_str().unwrap(), serde_json::json!({ "kind": "cancel" }));
    }
}

#[test]
fn the_compose_file_starts_a_server_with_postgres() {
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/compose-test");
    let done = Command::new(script).arg(super::RALPH).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    match done.status.code() {
        Some(0) => {}
        Some(77) => ralph_loop_testkit::skip(&said),
        _ => panic!("{said}"),
    }
}
