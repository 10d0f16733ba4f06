//! Starting runs: from a sentence, once per idempotency key, in turn.

use super::machine::{Served, machine, waiting_script};
use ralph_loop_testkit::TestRepo;
use ralph_loop_testkit::env::until;
use serde_json::{Value, json};

fn sentence(repo: &TestRepo<'_>, text: &str) -> Value {
    json!({ "repo": repo.dir, "text": text, "isolation": "none" })
}

/// The current branch.
fn repos_branch(repo: &TestRepo<'_>) -> Value {
    json!(repo.git(&["symbolic-ref", "--short", "HEAD"]).trim())
}

#[test]
fn sentence_starts_a_run_and_idempotency_key_prevents_a_second() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub("echo work > part.txt; echo '<promise>COMPLETE</promise>'", "grep -q work part.txt");
    let server = Served::start(&env, &repo.dir, &[]);
    let send = |key: &str, text: &str| {
        server.send(&server.token, "POST", "/runs", &[("Idempotency-Key", key)], Some(&sentence(&repo, text)))
    };
    let first = send("k1", "Write the part").is(201).json();
    let again = send("k1", "Write the part").is(200).json();
    assert_eq!(first["id"], again["id"]);
    send("k1", "Something else").is(422);
    let run = first["id"].as_str().unwrap();
    let row = server.row_when(run, "the end", |row| row["status"] == "done");
    assert_eq!(
        (row["task"].as_str(), row["person"].as_str()),
        (Some("Write the part"), Some("tester")),
        "{row}"
    );
    assert_eq!(server.get("/runs").json()["total"], 1);
}

#[test]
fn race_on_a_server_reports_winner_and_costs() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    let quick = repo.agent("quick", "echo work > part.txt; echo '<promise>COMPLETE</promise>'");
    let slow = repo.agent("slow", "sleep 600");
    repo.configure(&[quick, slow], "grep -q work part.txt", &json!({}));
    let server = Served::start(&env, &repo.dir, &["--jobs", "2"]);
    let race = |who: Value| {
        let mut body = sentence(&repo, "Write the part");
        body["race"] = who;
        body
    };
    let refused = server.post("/runs", &race(json!(["3"]))).is(400).json();
    assert!(refused["detail"].as_str().unwrap().contains("has 2 of them"), "{refused}");
    let refused = server.post("/runs", &race(json!(["quick", "quick"]))).is(422).json();
    assert!(refused["detail"].as_str().unwrap().contains("named twice"), "{refused}");
    let mut body = sentence(&repo, "Write the part");
    body["best"] = json!("cost");
    server.post("/runs", &body).is(400);
    assert_eq!(server.get("/races").is(200).json(), json!([]));
    let first = server.post("/runs", &race(json!(["slow", "quick"]))).is(201).json();
    let run = first["id"].as_str().unwrap();
    let over = until("the race is over", || {
        let seen = server.get(&format!("/races/{run}")).is(200).json();
        (seen["over"] == true).then_some(seen)
    });
    let quick = over["runs"][1]["run_id"].as_str().unwrap();
    assert_eq!((&over["winner"], &over["runs"][0]["status"]), (&json!(quick), &json!("stopped")), "{over}");
    assert_eq!(server.get(&format!("/races/{quick}")).is(200).json()["id"], json!(run), "by any of its runs");
    assert_eq!(server.get("/races").is(200).json()[0]["id"], json!(run));
    let answer = server.get(&format!("/runs/{quick}")).is(200).json();
    assert_eq!(answer["race"]["winner"], json!(quick), "{answer}");
    assert_eq!(server.row_when(quick, "the row", |row| row["status"] == "done")["person"], "tester");
    server.row_when(run, "the loser", |row| row["status"] == "stopped");
    server.get("/races/20200101-000000-aaaa").is(404);
    server.get("/races/..%2Fx").is(404);
}

#[test]
fn invalid_start_is_refused_with_a_hint_and_leaves_nothing() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub("true", "true");
    let server = Served::start(&env, &repo.dir, &[]);
    let mut body = sentence(&repo, "Do it");
    body["agents"] = json!(["unknown-agent"]);
    let refused = server.post("/runs", &body).is(422).json();
    assert!(
        refused["detail"].as_str().unwrap().contains("unknown-agent") && refused["hint"].is_string(),
        "{refused}"
    );
    let mut body = sentence(&repo, "Do it");
    body["base_branch"] = json!("nowhere");
    server.post("/runs", &body).is(422);
    until("nothing is left of it", || (server.get("/runs").json()["runs"] == json!([])).then_some(()));
    let elsewhere = json!({ "repo": "/etc", "text": "Do it" });
    let refused = server.post("/runs", &elsewhere).is(403).json();
    assert!(refused["hint"].as_str().unwrap().contains("--repo"), "{refused}");
    server.post("/runs", &json!({ "repo": repo.dir, "text": "x", "wings": 2 })).is(422);
    server.post("/runs", &json!({ "repo": repo.dir, "task_file": "../x" })).is(400);
    server.post("/runs", &json!({ "text": "x" })).is(400);
}

#[test]
fn queued_runs_survive_a_restart() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub(&waiting_script(&repo), "grep -q work part.txt");
    let server = Served::start(&env, &repo.dir, &["--jobs", "1"]);
    let id = |reply: Value| reply["id"].as_str().unwrap().to_owned();
    let first = id(server.post("/runs", &sentence(&repo, "One")).is(201).json());
    let second = server.post("/runs", &sentence(&repo, "Two")).is(201).json();
    assert_eq!((&second["status"], &second["max_iterations"]), (&json!("queued"), &json!(5)), "{second}");
    let second = id(second);
    let third = id(server.post("/runs", &sentence(&repo, "Three")).is(201).json());
    let waiting = server.row_when(&second, "the queue", |row| row["status"] == "queued");
    assert_eq!(waiting["queued"], 1, "{waiting}");
    server.control(&third, json!({ "kind": "cancel" })).is(202);
    let state = server.get("/scheduler").json();
    assert_eq!((state["running"].as_u64(), state["waiting"].as_u64()), (Some(1), Some(1)), "{state}");
    assert_eq!(server.stop(), 0, "SIGTERM ends a server, and its runs continue");
    let again = Served::start(&env, &repo.dir, &["--jobs", "1"]);
    again.row_when(&first, "the first still at work", |row| row["driven"] == true);
    again.row_when(&second, "the second still waiting", |row| row["status"] == "queued");
    repo.write(".git/go", "");
    again.row_when(&first, "the first done", |row| row["status"] == "done");
    again.row_when(&second, "the second done", |row| row["status"] == "done");
    until("no place is taken", || (again.get("/scheduler").json()["running"] == 0).then_some(()));
}

#[test]
fn task_is_linted_and_previewed_before_anything_runs() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub("true", "true");
    let server = Served::start(&env, &repo.dir, &[]);
    let bad = "---\ntask_id: x\n---\n# Task\n\n- [ ] nothing\n";
    let found = server.post("/lint", &json!({ "repo": repo.dir, "text": bad })).is(200).json();
    assert_eq!(found["ok"], false, "{found}");
    let first = &found["findings"][0];
    assert!(first["line"].as_u64().is_some() && first["fix"].is_string(), "{found}");
    let preview = server.post("/preview", &sentence(&repo, "Write the part")).is(200).json();
    assert!(preview["prompt"].as_str().unwrap().contains("Write the part"), "{preview}");
    assert_eq!(preview["agents"], json!(["stub"]));
    let repos = server.get("/repos").is(200).json();
    assert_eq!(repos[0]["path"], json!(repo.dir));
    repo.git(&["branch", "next"]);
    let offered = server.get(&format!("/suggestions?repo={}", repo.dir.display())).is(200).json();
    assert_eq!((&offered["agents"], &offered["branch"]), (&json!(["stub"]), &repos_branch(&repo)));
    let branches: Vec<&str> =
        offered["branches"].as_array().unwrap().iter().filter_map(|b| b.as_str()).collect();
    assert!(branches.contains(&"next") && branches.len() == 2, "{offered}");
    assert_eq!(offered["task_files"], json!(["PROMPT.md"]), "{offered}");
    server.get("/suggestions?repo=/etc").is(403);
    let templates = server.get("/templates").is(200).json();
    for template in templates.as_array().unwrap() {
        let linted =
            server.post("/lint", &json!({ "repo": repo.dir, "text": template["text"] })).is(200).json();
        assert!(linted["task"].is_object(), "{template}: {linted}");
        // The command line has the same list, and the same words for a project with these tests.
        let name = template["name"].as_str().unwrap();
        let other = TestRepo::new(&env, name, &[("Makefile", "test:\n\ttrue\n")]);
        let made = other.ralph(&["init", "--template", name, "--json"]).exits(0).json();
        let file = made["dialect"].as_str().unwrap();
        assert_eq!(template["text"], other.read(file), "{made}");
    }
    assert!(templates.as_array().unwrap().iter().any(|one| one["name"] == "metric"), "{templates}");
    assert_eq!(server.get("/runs").json()["runs"], json!([]), "nothing was started");
}
