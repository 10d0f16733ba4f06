//! Triggers: each occasion starts one run, and only for permitted users.

use crate::surface::fleet::cluster::{CHECK, PARTS, World};
use crate::surface::serve::client::{Reply, request};
use crate::surface::serve::machine::Served;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ralph_loop_domain::ports::{CiState, Forge as _};
use ralph_loop_fleet::delivery::signature;
use ralph_loop_protocol::id::RunId;
use ralph_loop_testkit::env::until;
use serde_json::{Value, json};
use std::process::Child;

const SECRET: &str = "a secret of the code host";

struct Host {
    served: Served,
    clone: String,
}

impl Host {
    /// A server that receives webhooks of the repo `o/r`.
    fn of(world: &World, schedules: Value) -> Self {
        let clone = world.forge.root().join("repo.git").display().to_string();
        let triggers = json!({
            "repos": [{ "repo": "o/r", "clone": clone, "label": "ralph", "people": ["ana"], "verify": [CHECK],
                "limits": { "at_once": 1, "max_iterations": 5 } }],
            "schedules": schedules,
        });
        let file = world.home.path("triggers.json");
        std::fs::write(&file, triggers.to_string()).unwrap();
        let file = file.display().to_string();
        Self { served: world.serve(&[("RALPH_TRIGGERS", &file), ("RALPH_WEBHOOK_SECRET", SECRET)]), clone }
    }

    fn sends(&self, id: &str, event: &str, body: &Value) -> Reply {
        let signed = signature(SECRET, body.to_string().as_bytes());
        self.signed_with(&signed, id, event, body)
    }

    fn signed_with(&self, signed: &str, id: &str, event: &str, body: &Value) -> Reply {
        let headers = [("X-GitHub-Delivery", id), ("X-GitHub-Event", event), ("X-Hub-Signature-256", signed)];
        request(self.served.port, "POST", "/api/v1/hooks/github", &headers, Some(body))
    }
}

fn labelled(issue: u64, person: &str, at: &str) -> Value {
    json!({ "action": "labeled", "repository": { "full_name": "o/r" }, "sender": { "login": person },
        "label": { "name": "ralph" },
        "issue": { "number": issue, "title": "Three parts", "body": "Write `part1.txt` to `part3.txt`.",
            "state": "open", "updated_at": at } })
}

fn comment(issue: u64, id: u64, person: &str, text: &str) -> Value {
    json!({ "action": "created", "repository": { "full_name": "o/r" }, "sender": { "login": person },
        "issue": { "number": issue }, "comment": { "id": id, "user": { "login": person }, "body": text } })
}

fn started(reply: Reply) -> Option<RunId> {
    reply.is(202).json()["run"].as_str().map(|run| RunId::parse(run).unwrap())
}

fn end(mut child: Child) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
    child.wait().unwrap();
}

#[test]
fn labeled_issue_becomes_one_run_and_one_pull_request() {
    let Some(world) = World::new(PARTS) else { return };
    let host = Host::of(&world, json!([]));
    let issue =
        world.forge.add_issue("Three parts", "Write `part1.txt` to `part3.txt`.", &["ralph"]).unwrap();
    let body = labelled(issue, "ana", "2026-11-17T12:00:00Z");
    host.signed_with("sha256=00", "d0", "issues", &body).is(403);
    host.signed_with(&signature("another", body.to_string().as_bytes()), "d0", "issues", &body).is(403);
    assert_eq!(
        started(host.sends("d1", "issues", &labelled(issue, "mallory", "2026-11-17T12:00:00Z"))),
        None
    );
    let run = started(host.sends("d2", "issues", &body)).expect("a run");
    assert_eq!(started(host.sends("d2", "issues", &body)), None, "the same delivery");
    assert_eq!(started(host.sends("d3", "issues", &body)), None, "the same body under another id");
    let before = labelled(issue, "ana", "2026-11-17T11:00:00Z");
    assert_eq!(started(host.sends("d4", "issues", &before)), None, "what is older is past");
    let worker = world.spawn(0, &["--name", "w0"], None);
    until("the end of the run", || (world.find(&run).status == "over").then_some(()));
    world.assert_done_once(&run, issue);
    assert_eq!(
        started(host.sends("d5", "issues", &before)),
        None,
        "what is older is past, also after the end"
    );
    end(worker);
}

#[test]
fn comments_steer_in_order_and_only_from_permitted_users() {
    let Some(world) = World::new("sleep 600") else { return };
    let host = Host::of(&world, json!([]));
    let issue = world.forge.add_issue("Three parts", "Write three parts.", &[]).unwrap();
    let run = started(host.sends("d1", "issues", &labelled(issue, "ana", "2026-11-17T12:00:00Z"))).unwrap();
    let worker = world.spawn(0, &["--name", "w0"], None);
    let controls = || -> Vec<String> {
        let events = world.events(&run);
        let letters = events.iter().filter(|event| event["kind"] == "control_received");
        letters.map(|event| event["control"].as_str().unwrap_or_default().to_owned()).collect()
    };
    until("work", || {
        world.events(&run).iter().any(|event| event["kind"] == "iteration_started").then_some(())
    });
    assert_eq!(
        started(host.sends("c1", "issue_comment", &comment(issue, 1, "mallory", "/ralph cancel"))),
        None
    );
    assert!(
        started(host.sends("c2", "issue_comment", &comment(issue, 20, "ana", "/ralph resume"))).is_some()
    );
    assert_eq!(
        started(host.sends("c3", "issue_comment", &comment(issue, 10, "ana", "/ralph pause"))),
        None,
        "overtaken"
    );
    let hint = comment(issue, 11, "ana", "/ralph nudge try the other parser");
    assert!(started(host.sends("c4", "issue_comment", &hint)).is_some(), "a hint is never too late");
    assert!(
        started(host.sends("c5", "issue_comment", &comment(issue, 30, "ana", "/ralph cancel"))).is_some()
    );
    assert_eq!(
        started(host.sends("c6", "issue_comment", &comment(issue, 30, "ana", "/ralph cancel"))),
        None,
        "a replay"
    );
    until("the end of the run", || (world.find(&run).status == "over").then_some(()));
    assert_eq!(controls(), ["resume", "nudge", "cancel"]);
    end(worker);
}

#[test]
fn invalid_webhooks_are_refused_with_a_reason() {
    let Some(world) = World::new(PARTS) else { return };
    let host = Host::of(&world, json!([]));
    let port = host.served.port;
    let raw = |body: &str, signed: &str, id: &str| -> Reply {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let head = format!(
            "POST /api/v1/hooks/github HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-GitHub-Event: issues\r\n\
             X-GitHub-Delivery: {id}\r\nX-Hub-Signature-256: {signed}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        // The peer may answer before it has read everything.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body).as_bytes().to_vec();
        Reply { status, headers: Vec::new(), body }
    };
    let sign = |body: &str| signature(SECRET, body.as_bytes());
    let issue = |filler: usize| {
        let mut body = labelled(7, "ana", "2026-11-17T12:00:00Z");
        body["repository"]["full_name"] = "o/unknown".into();
        body["issue"]["body"] = "x".repeat(filler).into();
        body.to_string()
    };
    // As large as real ones, from a repo that isn't listed.
    let large = issue(2 * 1024 * 1024);
    let said = raw(&large, &sign(&large), "d1").is(202).json();
    assert!(said["done"].as_str().unwrap().contains("not in the list"), "{said}");
    let huge = issue(6 * 1024 * 1024);
    assert!([413, 0].contains(&raw(&huge, &sign(&huge), "d2").status));
    raw("no JSON", &sign("no JSON"), "d3").is(400);
    let small = issue(1);
    raw(&small, &sign(&small), "").is(403);
    for signed in ["", "sha1=00", &sign("another body"), &sign(&small).to_uppercase(), "sha256="] {
        raw(&small, signed, "d4").is(403);
    }
    // Endlessly nested.
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    raw(&deep, &sign(&deep), "d5").is(400);
    assert!(world.fleet.wait(ralph_loop_fleet::runs::list(world.fleet.pool(), 10)).unwrap().is_empty());
}

#[test]
fn notes_of_an_earlier_run_do_not_reach_the_next() {
    let Some(world) = World::new(PARTS) else { return };
    let host = Host::of(&world, json!([]));
    let issue = world.forge.add_issue("Three parts", "Write three parts.", &[]).unwrap();
    let run = |delivery: &str, at: &str| started(host.sends(delivery, "issues", &labelled(issue, "ana", at)));
    let first = run("d1", "2026-11-17T12:00:00Z").unwrap();
    let note = comment(issue, 5, "ana", "/ralph note the port is 8080");
    assert_eq!(started(host.sends("c1", "issue_comment", &note)), Some(first.clone()));
    assert!(world.fleet.wait(ralph_loop_fleet::runs::take_out(world.fleet.pool(), first.as_str())).unwrap());
    let second = run("d2", "2026-11-17T13:00:00Z").unwrap();
    assert_ne!(first, second);
    assert_eq!(started(host.sends("c2", "issue_comment", &note)), None, "sent once more, under another id");
    let letters =
        world.fleet.wait(ralph_loop_fleet::letters::after(world.fleet.pool(), second.as_str(), 0)).unwrap();
    assert!(letters.is_empty(), "{letters:?}");
    // The comment of a deleted run still counts as used.
    assert!(world.fleet.wait(ralph_loop_fleet::runs::take_out(world.fleet.pool(), second.as_str())).unwrap());
    assert!(world.fleet.wait(ralph_loop_fleet::runs::forget(world.fleet.pool(), second.as_str())).unwrap());
    assert_eq!(run("d3", "2026-11-17T12:30:00Z"), None, "what is older is past");
}

#[test]
fn finished_checks_arrive_by_webhook_without_polling() {
    let Some(world) = World::new(PARTS) else { return };
    // No `poll_seconds`: with webhooks, the code host is polled every ten minutes.
    for machine in &world.machines {
        let config = machine.path("config/ralph/config.json");
        let mut value: Value = serde_json::from_str(&std::fs::read_to_string(&config).unwrap()).unwrap();
        value.as_object_mut().unwrap().remove("poll_seconds");
        value["wait_for_checks"] = true.into();
        machine.user_config(&value);
        machine.server_config(&value);
    }
    let host = Host::of(&world, json!([]));
    assert!(!host.clone.is_empty());
    let issue = world.forge.add_issue("Three parts", "Write three parts.", &[]).unwrap();
    let run = started(host.sends("d1", "issues", &labelled(issue, "ana", "2026-11-17T12:00:00Z"))).unwrap();
    until("the run has the notice", || {
        world
            .fleet
            .wait(ralph_loop_fleet::runs::pulse(world.fleet.pool(), run.as_str(), "w0"))
            .unwrap()
            .told
            .then_some(())
    });
    let worker = world.spawn(0, &["--name", "w0"], None);
    let pr = until("the pull request", || world.forge.open_prs().unwrap().into_iter().next());
    let published = until("the proof", || {
        world
            .events(&run)
            .iter()
            .find(|event| event["kind"] == "published")
            .map(|event| event["commit"].as_str().unwrap().to_owned())
    });
    world.forge.set_check(&published, "build", CiState::Pending, "runs", None).unwrap();
    let looks = || {
        world.events(&run).iter().filter(|event| event["kind"] == "checks_seen").cloned().collect::<Vec<_>>()
    };
    let suite = json!({ "action": "completed", "repository": { "full_name": "o/r" },
        "check_suite": { "head_branch": pr.head, "pull_requests": [] } });
    let mut delivery = 0;
    let mut tell = || {
        delivery += 1;
        host.sends(&format!("n{delivery}"), "check_suite", &suite).is(202);
    };
    until("a look that finds a pending check", || {
        tell();
        looks().last().filter(|look| look["state"] == "pending").map(|_| ())
    });
    world.forge.set_check(&published, "build", CiState::Passed, "done", None).unwrap();
    until("the end of the run", || {
        tell();
        (world.find(&run).status == "over").then_some(())
    });
    end(worker);
}

#[test]
fn schedule_starts_a_task_once_per_time() {
    let Some(world) = World::new(PARTS) else { return };
    let clone = world.forge.root().join("repo.git").display().to_string();
    let every = json!([{ "name": "always", "cron": "* * * * *", "time_zone": "Europe/Berlin", "clone": clone,
        "task": "# Three parts\n\nWrite them.", "verify": [CHECK], "limits": { "at_once": 1, "max_iterations": 5 } }]);
    // Two servers keep the same schedule.
    let first = Host::of(&world, every.clone());
    let store = world.store.display().to_string();
    let triggers = world.home.path("triggers.json").display().to_string();
    let vars = [
        ("RALPH_DB_URL", world.postgres.url.as_str()),
        ("RALPH_ARTIFACTS", &store),
        ("RALPH_TRIGGERS", &triggers),
    ];
    let second = Served::start_with(&world.machines[1], &world.machines[1].path("home"), &[], &vars);
    let pool = world.fleet.pool();
    let times =
        || world.fleet.wait(ralph_loop_fleet::runs::occasions(pool, "schedule:always:")).unwrap().len();
    let runs = || world.fleet.wait(ralph_loop_fleet::runs::list(pool, 100)).unwrap().len();
    // A new minute may start between two polls; an extra run would remain.
    until("one run for each time of the schedule", || (times() >= 1 && times() == runs()).then_some(()));
    drop((first, second));
}
