//! Edge cases of the API: refusals with hints, repeated requests, revoked watchers, concurrent commands.

use super::client::{Socket, request};
use super::machine::{Served, detached, machine, waiting_script};
use ralph_loop_testkit::TestRepo;
use ralph_loop_testkit::env::until;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

#[test]
fn every_refusal_is_a_problem_with_a_hint() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub("echo work > part.txt; echo '<promise>COMPLETE</promise>'", "grep -q work part.txt");
    let run = repo.run(&[]).exits(0).json()["run_id"].as_str().unwrap().to_owned();
    let server = Served::start(&env, &repo.dir, &[]);
    let run = format!("/runs/{run}");
    for (method, path, status) in [
        ("GET", format!("{run}/iterations/one"), 400),
        ("GET", format!("{run}/output/-1"), 400),
        ("GET", format!("{run}/ws"), 400),
        ("GET", "/ws".to_owned(), 400),
        ("PATCH", "/runs".to_owned(), 405),
        ("POST", format!("{run}/events"), 405),
        ("DELETE", "/login".to_owned(), 405),
        ("GET", "/nothing".to_owned(), 404),
        ("GET", "/runs/%ff".to_owned(), 400),
    ] {
        let reply = server.send(&server.token, method, &path, &[], None);
        assert_eq!(reply.status, status, "{method} {path}: {}", reply.text());
        assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{method} {path}");
        let said = reply.json();
        assert!(said["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{method} {path}: {said}");
        assert!(said["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{method} {path}: {said}");
        assert_eq!(reply.header("allow").is_some(), status == 405, "{method} {path}");
    }
    // A page that points its own domain at this server can't read its metrics.
    let metrics = |host: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(metrics("evil.example"), "401");
    assert_eq!(metrics(&format!("localhost:{}", server.port)), "200");
    // All unknown method names count as one.
    for n in 0..20 {
        server.send(&server.token, &format!("ODD{n}"), "/runs", &[], None).is(405);
    }
    let counted = request(server.port, "GET", "/metrics", &[], None).is(200).text();
    assert!(counted.contains("method=\"other\"") && !counted.contains("ODD"), "{counted}");
    for wrong in [
        json!({ "limits": { "max_minutes": 0 } }),
        json!({ "limits": { "max_minutes": -3 } }),
        json!({ "resources": { "cpus": 0 } }),
        json!({ "resources": { "memory_mb": -1 } }),
    ] {
        let mut body = json!({ "repo": repo.dir, "text": "Do it" });
        body.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
        server.post("/runs", &body).is(400);
    }
}

#[test]
fn no_path_spelling_reveals_hidden_record_files() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub(&waiting_script(&repo), "grep -q work part.txt");
    let run = detached(&repo, &[]);
    let server = Served::start(&env, &repo.dir, &[]);
    server.control(&run, json!({ "kind": "note", "text": "one word" })).is(202);
    let inbox = std::fs::read_to_string(repo.record(&run).join("inbox.jsonl")).unwrap();
    assert!(inbox.contains("one word"), "{inbox}");
    for name in [
        "inbox.jsonl",
        "./inbox.jsonl",
        "%2e/inbox.jsonl",
        ".%2finbox.jsonl",
        "././inbox.jsonl",
        "//inbox.jsonl",
    ] {
        let reply = server.get(&format!("/runs/{run}/artifacts/{name}"));
        assert!(reply.status >= 400 && !reply.text().contains("one word"), "{name}: {}", reply.text());
    }
    // The honest twin.
    server.get(&format!("/runs/{run}/artifacts/./events.jsonl")).is(200);
    repo.ralph(&["cancel", &run]).exits(0);
}

#[test]
fn retried_start_is_the_same_run() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub("echo work > part.txt; echo '<promise>COMPLETE</promise>'", "grep -q work part.txt");
    let server = Served::start(&env, &repo.dir, &[]);
    let send = |agents: &[&str]| {
        let body =
            json!({ "repo": repo.dir, "text": "Write the part", "isolation": "none", "agents": agents });
        server.send(&server.token, "POST", "/runs", &[("Idempotency-Key", "k")], Some(&body))
    };
    // As on a full disk: a request that can't be audited is refused.
    let log = env.path("state/ralph/server/audit.jsonl");
    let _ = std::fs::remove_file(&log);
    std::fs::create_dir(&log).unwrap();
    send(&[]).is(500);
    send(&[]).is(500);
    std::fs::remove_dir(&log).unwrap();
    let first = send(&[]).is(201).json();
    let run = first["id"].as_str().unwrap().to_owned();
    assert_eq!(send(&[]).is(200).json()["id"], run.as_str());
    send(&["stub"]).is(422);
    server.row_when(&run, "the end", |row| row["status"] == "done");
    assert_eq!(server.get("/runs").json()["total"], 1);
    // A deleted run is gone and isn't recreated.
    server.send(&server.token, "DELETE", &format!("/runs/{run}"), &[], None).is(204);
    send(&[]).is(404);
    assert_eq!(server.get("/runs").json()["runs"], json!([]));
}

#[test]
fn deleted_run_disappears_for_active_watchers() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub(&waiting_script(&repo), "grep -q work part.txt");
    let server = Served::start(&env, &repo.dir, &[]);
    let send = || {
        let body = json!({ "repo": repo.dir, "text": "Write the part", "isolation": "none" });
        server.send(&server.token, "POST", "/runs", &[("Idempotency-Key", "k")], Some(&body))
    };
    let run = send().is(201).json()["id"].as_str().unwrap().to_owned();
    let mut looks = events(&server, &server.token, &format!("/runs/{run}/sse?from=1"), None);
    looks.find(|line| line.starts_with("data: ")).unwrap();
    std::fs::write(repo.dir.join(".git/go"), "").unwrap();
    server.row_when(&run, "the end", |row| row["status"] == "done");
    server.send(&server.token, "DELETE", &format!("/runs/{run}"), &[], None).is(204);
    send().is(404);
    server.get(&format!("/runs/{run}")).is(404);
    assert_eq!(server.get("/runs").json()["runs"], json!([]));
    drop(looks);
}

#[test]
fn ended_run_is_deleted_after_its_process_exits() {
    let env = machine();
    let told = env.path("told").display().to_string();
    // The last step of the process is a notification to a slow receiver.
    let slow = format!("cat > /dev/null; touch {told}; until [ -e {told}.go ]; do sleep 0.05; done");
    env.user_config(&json!({
        "notify": [{ "kind": "command", "command_argv": ["sh", "-c", slow] }],
    }));
    let repo = TestRepo::with_task(&env);
    repo.stub("echo work > part.txt; echo '<promise>COMPLETE</promise>'", "grep -q work part.txt");
    let server = Served::start(&env, &repo.dir, &[]);
    let run = detached(&repo, &[]);
    until("the message", || std::path::Path::new(&told).exists().then_some(()));
    server.row_when(&run, "the end", |row| row["status"] == "done");
    std::thread::scope(|scope| {
        let deleted = scope.spawn(|| {
            server.send(&server.token, "DELETE", &format!("/runs/{run}"), &[], None).is(204).status
        });
        std::thread::sleep(Duration::from_millis(300));
        assert!(repo.record(&run).exists(), "nothing is taken away below a process that still writes");
        std::fs::write(format!("{told}.go"), "").unwrap();
        deleted.join().unwrap();
    });
    assert!(!repo.record(&run).exists());
}

#[test]
fn concurrent_requests_with_one_key_start_one_run() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub("echo work > part.txt; echo '<promise>COMPLETE</promise>'", "grep -q work part.txt");
    let server = Served::start(&env, &repo.dir, &[]);
    let body = json!({ "repo": repo.dir, "text": "Write the part", "isolation": "none" });
    let ids: Vec<String> = std::thread::scope(|scope| {
        let send = || {
            let key = [("Idempotency-Key", "one")];
            let reply = server.send(&server.token, "POST", "/runs", &key, Some(&body));
            assert!([200, 201].contains(&reply.status), "{}", reply.text());
            reply.json()["id"].as_str().unwrap().to_owned()
        };
        let all: Vec<_> = (0..8).map(|_| scope.spawn(send)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    server.row_when(&ids[0], "the end", |row| row["status"] == "done");
    assert_eq!(server.get("/runs").json()["total"], 1);
}

#[test]
fn task_can_be_edited_after_an_agent_ticked_a_box() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub(
        &format!("echo '- [x] ticked' >> PROMPT.md; touch .git/ticked; {}", waiting_script(&repo)),
        "grep -q work part.txt",
    );
    let run = detached(&repo, &[]);
    until("the tick", || repo.dir.join(".git/ticked").exists().then_some(()));
    let server = Served::start(&env, &repo.dir, &[]);
    let path = format!("/runs/{run}/files/PROMPT.md");
    let file = server.get(&path).is(200);
    assert!(file.json()["text"].as_str().unwrap().contains("ticked"), "{}", file.text());
    let put = |mark: &str, text: &str| {
        let body = json!({ "text": text });
        server.send(&server.token, "PUT", &path, &[("If-Match", mark)], Some(&body))
    };
    let mark = file.header("etag").unwrap().to_owned();
    put(&mark, "# Do the work\n\nWrite `part.txt`, and be quick.\n").is(200);
    put(&mark, "# Do the work\n\nWrite something else.\n").is(412);
    repo.ralph(&["cancel", &run]).exits(0);
}

/// Lines of a stream of server-sent events.
fn events(
    server: &Served,
    token: &str,
    path: &str,
    last: Option<u64>,
) -> impl Iterator<Item = String> + use<> {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    let last = last.map(|last| format!("Last-Event-ID: {last}\r\n")).unwrap_or_default();
    write!(stream, "GET /api/v1{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n").unwrap();
    write!(stream, "Authorization: Bearer {token}\r\n{last}\r\n").unwrap();
    BufReader::new(stream).lines().map(|line| line.expect("the stream says something or ends"))
}

#[test]
fn event_stream_resumes_where_it_stopped() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub("echo work > part.txt; echo '<promise>COMPLETE</promise>'", "grep -q work part.txt");
    let run = repo.run(&[]).exits(0).json()["run_id"].as_str().unwrap().to_owned();
    let server = Served::start(&env, &repo.dir, &[]);
    let wanted: Vec<u64> = repo.events_of(&run).iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    let path = format!("/runs/{run}/sse?from=1");
    let ids = |last: Option<u64>, most: usize| -> Vec<u64> {
        let lines = events(&server, &server.token, &path, last);
        lines.filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).take(most).collect()
    };
    assert_eq!(ids(None, wanted.len()), wanted);
    assert_eq!(ids(Some(5), wanted.len() - 5), wanted[5..], "a browser says what it saw last");
    let data = events(&server, &server.token, &path, None)
        .find_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok())
        .unwrap();
    assert_eq!((data["type"].as_str(), data["seq"].as_u64()), (Some("event"), Some(1)), "{data}");
}

#[test]
fn revoked_watcher_sees_nothing_more() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub("while [ ! -e .git/go ]; do echo again; sleep 0.1; done", "false");
    let run = detached(&repo, &["--max-iterations", "1"]);
    let server = Served::start(&env, &repo.dir, &[]);
    let viewer = server.person("vera", "viewer");
    let bearer = format!("Bearer {viewer}");
    let socket = |path: &str| {
        Socket::open(server.port, &format!("/api/v1{path}"), &[("authorization", &bearer)]).unwrap()
    };
    let (mut list, mut one) = (socket("/ws"), socket(&format!("/runs/{run}/ws?from=1")));
    list.next_of("hello");
    one.next_of("output");
    let mut lines = events(&server, &viewer, &format!("/runs/{run}/sse?from=1"), None);
    assert!(lines.any(|line| line.starts_with("data: ")));
    server.send(&server.token, "DELETE", "/people/vera", &[], None).is(204);
    // A new user with that name is another user.
    server.person("vera", "viewer");
    assert!(std::iter::from_fn(|| one.next()).count() < 100_000, "the run's socket ends");
    assert!(lines.count() < 1_000_000, "so does the stream of a script");
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        // The list always has updates.
        let steers = scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                server.control(&run, json!({ "kind": "note", "text": "again" }));
                std::thread::sleep(Duration::from_millis(300));
            }
        });
        assert!(std::iter::from_fn(|| list.next()).count() < 100_000, "and that of the list");
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        steers.join().unwrap();
    });
    repo.write(".git/go", "");
    repo.ralph(&["cancel", &run]).exits(0);
}

#[test]
fn debug_mode_runs_one_command_at_a_time() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    let gate = repo.dir.join(".git/checked").display().to_string();
    repo.stub(
        &waiting_script(&repo),
        &format!("touch '{gate}.begun'; until [ -e '{gate}' ]; do sleep 0.05; done; grep -q work part.txt"),
    );
    let run = detached(&repo, &["--mode", "debug", "--no-baseline"]);
    let server = Served::start(&env, &repo.dir, &[]);
    server.row_when(&run, "the run at work", |row| row["status"] == "working");
    let path = format!("/runs/{run}/debug");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| server.post(&path, &json!({ "command": "rerun_tests" })));
        until("the first command", || std::path::Path::new(&format!("{gate}.begun")).exists().then_some(()));
        let refused = server.post(&path, &json!({ "command": "rerun_tests" })).is(409).json();
        assert!(refused["hint"].as_str().unwrap().contains("ended"), "{refused}");
        std::fs::write(&gate, "").unwrap();
        first.join().unwrap().is(200);
    });
    server.post(&path, &json!({ "command": "rerun_tests" })).is(200);
    repo.ralph(&["cancel", &run]).exits(0);
}
