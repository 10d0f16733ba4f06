//! Live streams: every event arrives once, whatever happens to the connection or the server.

use super::client::Socket;
use super::machine::{Served, detached, machine, waiting_script};
use ralph_loop_testkit::TestRepo;
use ralph_loop_testkit::env::{is_alive, until};
use serde_json::Value;

/// An agent with a few sessions, each with output and a change.
const BUSY: &str = "echo \"working on $RALPH_ITERATION\"; echo $RALPH_ITERATION >> part.txt; [ \"$RALPH_ITERATION\" -ge 3 ] && echo '<promise>COMPLETE</promise>'; true";

fn seqs(journal: &[Value]) -> Vec<u64> {
    journal.iter().map(|event| event["seq"].as_u64().unwrap()).collect()
}

#[test]
fn thousand_reconnects_see_every_event_once() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub(BUSY, "test $(wc -l < part.txt) -ge 3");
    let server = Served::start(&env, &repo.dir, &[]);
    let run = detached(&repo, &[]);
    let (mut seen, mut output) = (Vec::<u64>::new(), Vec::<u64>::new());
    // A small random generator with a fixed seed.
    let mut random = 7_u64;
    let mut next_random = move |most: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % most
    };
    let mut connections = 0;
    while connections < 1000 {
        connections += 1;
        let from = seen.last().map_or(1, |seq| seq + 1);
        let live = output.last().map(|n| format!("&live={n}")).unwrap_or_default();
        let mut socket = server.socket(&format!("/runs/{run}/ws?from={from}{live}"));
        let hello = socket.next_of("hello");
        assert_eq!(hello["from"], from);
        let over = hello["view"]["finished"].is_object() && hello["head"].as_u64() == seen.last().copied();
        if over {
            // No more events: each further connection must get nothing.
            continue;
        }
        for _ in 0..next_random(12) {
            let Some(frame) = socket.next() else { break };
            match frame["type"].as_str().unwrap() {
                "event" => {
                    seen.push(frame["seq"].as_u64().unwrap());
                    assert_eq!(frame["seq"], frame["event"]["seq"]);
                }
                "output" => output.push(frame["n"].as_u64().unwrap()),
                "view" | "missed" => {}
                other => panic!("unexpected frame `{other}`"),
            }
            if frame["event"]["kind"] == "finished" {
                break;
            }
        }
    }
    let journal = repo.events_of(&run);
    assert!(journal.len() > 20, "{}", journal.len());
    assert_eq!(seen, seqs(&journal), "every event once, in order");
    let numbers: Vec<u64> = (1..=output.len() as u64).collect();
    assert_eq!(output, numbers, "and every piece of output once");
}

#[test]
fn killed_server_loses_nothing_and_the_run_continues() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub(&waiting_script(&repo), "grep -q work part.txt");
    let server = Served::start(&env, &repo.dir, &[]);
    let created = server
        .post("/runs", &serde_json::json!({ "repo": repo.dir, "task_file": "PROMPT.md", "isolation": "none", "place": "in_place" }))
        .is(201)
        .json();
    let run = created["id"].as_str().unwrap().to_owned();
    let mut socket = server.socket(&format!("/runs/{run}/ws?from=1"));
    let mut seen = Vec::new();
    loop {
        let event = socket.next_of("event");
        seen.push(event["seq"].as_u64().unwrap());
        if event["event"]["kind"] == "iteration_started" {
            break;
        }
    }
    let status = repo.ralph(&["status", &run, "--json"]).exits(0).json();
    let driver = u32::try_from(status["pid"].as_u64().unwrap()).unwrap();
    server.kill();
    // Events in transit may still arrive.
    assert!((0..1000).any(|_| socket.next().is_none()), "the connection is gone");
    assert!(is_alive(driver), "the run is not");
    let again = Served::start(&env, &repo.dir, &[]);
    let row = again.row_when(&run, "the run at work", |row| row["driven"] == true);
    assert_eq!(row["person"], "tester");
    repo.write(".git/go", "");
    let mut socket = again.socket(&format!("/runs/{run}/ws?from={}", seen.last().unwrap() + 1));
    loop {
        let event = socket.next_of("event");
        seen.push(event["seq"].as_u64().unwrap());
        if event["event"]["kind"] == "finished" {
            break;
        }
    }
    assert_eq!(seen, seqs(&repo.events_of(&run)));
    again.row_when(&run, "the end", |row| row["status"] == "done" && row["driven"] == false);
}

#[test]
fn terminal_run_is_shown_live_and_its_death_is_detected() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub(&waiting_script(&repo), "grep -q work part.txt");
    let server = Served::start(&env, &repo.dir, &[]);
    let mut list = server.socket("/ws");
    list.next_of("hello");
    let run = detached(&repo, &[]);
    let row = loop {
        let frame = list.next_of("row");
        if frame["row"]["id"] == run.as_str() && frame["row"]["status"] == "working" {
            break frame["row"].clone();
        }
    };
    assert_eq!((row["task"].as_str(), row["person"].is_null()), (Some("Do the work"), true), "{row}");
    let mut socket = server.socket(&format!("/runs/{run}/ws?from=1"));
    let said = loop {
        let frame = socket.next_of("output");
        if frame["kind"] == "text" {
            break frame["text"].as_str().unwrap().to_owned();
        }
    };
    assert!(said.contains("here 1"), "{said}");
    let status = repo.ralph(&["status", &run, "--json"]).exits(0).json();
    let pid = nix::unistd::Pid::from_raw(i32::try_from(status["pid"].as_i64().unwrap()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    server.row_when(&run, "a run without a driver", |row| {
        row["status"] == "interrupted" && row["driven"] == false
    });
    let sse = server.get(&format!("/runs/{run}/events?from=1&limit=3")).is(200).json();
    assert_eq!(sse["events"].as_array().unwrap().len(), 3);
    assert_eq!(sse["next"], 4);
    repo.ralph(&["cancel", &run]).exits(0);
}

#[test]
fn stalled_watcher_does_not_block_others() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub(BUSY, "test $(wc -l < part.txt) -ge 3");
    let server = Served::start(&env, &repo.dir, &[]);
    let run = detached(&repo, &[]);
    let bearer = format!("Bearer {}", server.token);
    let idle: Vec<Socket> = (0..20)
        .map(|_| {
            Socket::open(server.port, &format!("/api/v1/runs/{run}/ws?from=1"), &[("authorization", &bearer)])
                .unwrap()
        })
        .collect();
    server.row_when(&run, "the end", |row| row["status"] == "done");
    drop(idle);
    until("their places are given back", || {
        let text = super::client::request(server.port, "GET", "/metrics", &[], None).is(200).text();
        text.lines().any(|line| line == "ralph_sockets 0").then_some(())
    });
}

#[test]
fn slow_watcher_resyncs_and_misses_nothing() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub("echo work > part.txt; echo '<promise>COMPLETE</promise>'", "grep -q work part.txt");
    let run = repo.run(&[]).exits(0).json()["run_id"].as_str().unwrap().to_owned();
    // More than a connection's buffers hold.
    let last = repo.events_of(&run).last().unwrap()["seq"].as_u64().unwrap();
    let head = last + 30_000;
    let words = "x".repeat(1000);
    let lines: String = (last + 1..=head)
        .map(|seq| {
            format!(
                "{{\"seq\":{seq},\"at\":\"2026-11-17T00:00:00Z\",\"kind\":\"notice\",\"message\":\"{words}\"}}\n"
            )
        })
        .collect();
    let journal = env.path(&format!("state/ralph/runs/{run}/events.jsonl"));
    let mut file = std::fs::OpenOptions::new().append(true).open(journal).unwrap();
    std::io::Write::write_all(&mut file, lines.as_bytes()).unwrap();
    let server = Served::start(&env, &repo.dir, &[]);
    let mut socket = server.socket(&format!("/runs/{run}/ws?from=1"));
    assert_eq!(socket.next_of("hello")["head"].as_u64(), Some(head));
    // A reader that doesn't read.
    std::thread::sleep(std::time::Duration::from_secs(4));
    let mut seen = Vec::new();
    let from = loop {
        let frame = socket.next().expect("the connection stays");
        match frame["type"].as_str().unwrap() {
            "event" => seen.push(frame["seq"].as_u64().unwrap()),
            "reread" => break frame["from"].as_u64().unwrap(),
            _ => {}
        }
    };
    assert_eq!(seen, (1..from).collect::<Vec<u64>>(), "all before it came");
    let mut next = from;
    while next <= head {
        let page = server.get(&format!("/runs/{run}/events?from={next}&limit=5000")).is(200).json();
        let events = page["events"].as_array().unwrap();
        assert!(!events.is_empty(), "{next} of {head}");
        seen.extend(events.iter().map(|event| event["seq"].as_u64().unwrap()));
        next = page["next"].as_u64().unwrap();
    }
    assert_eq!(seen, (1..=head).collect::<Vec<u64>>(), "and the rest is there to read");
}
