//! The index: it can always be rebuilt from the records with the same rows.

use super::client::request;
use super::machine::{Served, detached, machine, waiting_script};
use ralph_loop_testkit::postgres::Postgres;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};

/// The server's rows, without time-dependent fields.
fn rows(server: &Served) -> Vec<Value> {
    let page = server.get("/runs?limit=500&sort=created&order=asc").is(200).json();
    page["runs"].as_array().unwrap().clone()
}

fn some_runs(env: &TestEnv) -> TestRepo<'_> {
    let repo = TestRepo::with_task(env);
    repo.stub("echo work >> part.txt; echo '<promise>COMPLETE</promise>'", "grep -q work part.txt");
    repo.run(&["--new"]).exits(0);
    repo.stub("echo again >> part.txt", "false");
    repo.run(&["--new", "--max-iterations", "2"]).exits(1);
    repo
}

fn assert_rebuilt_index_matches(env: &TestEnv, vars: &[(&str, &str)]) {
    let repo = some_runs(env);
    let server = Served::start_with(env, &repo.dir, &[], vars);
    // A run that the server sees from start to end, and a paused one.
    repo.stub(&waiting_script(&repo), "grep -q work part.txt");
    let live = detached(&repo, &["--worktree"]);
    server.row_when(&live, "the run at work", |row| row["status"] == "working");
    repo.write(".git/go", "");
    server.row_when(&live, "its end", |row| row["status"] == "done" && row["driven"] == false);
    let before = (rows(&server), server.get("/costs?by=agent&since=30d").json());
    assert_eq!(before.0.len(), 3, "{:?}", before.0);
    server.stop();
    let mut command = env.ralph_command(&repo.dir, &["index", "rebuild", "--json"]);
    let done = TestEnv::finish(command.envs(vars.iter().copied())).exits(0).json();
    assert_eq!(done["runs"], 3);
    let server = Served::start_with(env, &repo.dir, &[], vars);
    let after = (rows(&server), server.get("/costs?by=agent&since=30d").json());
    assert_eq!(before.0, after.0);
    assert_eq!(before.1["rows"], after.1["rows"]);
}

#[test]
fn rebuilt_index_has_the_same_rows() {
    let env = machine();
    assert_rebuilt_index_matches(&env, &[]);
    // A damaged index is kept and rebuilt.
    let damaged = "no database at all, but long enough to be one";
    let path = env.path("state/ralph/server/index.sqlite");
    std::fs::write(&path, damaged).unwrap();
    let server = Served::start(&env, &env.path("tmp"), &[]);
    ralph_loop_testkit::env::until("all rows", || (rows(&server).len() == 3).then_some(()));
    assert_eq!(std::fs::read_to_string(path.with_extension("sqlite.broken-1")).unwrap(), damaged);
}

#[test]
fn dotenv_of_the_folder_selects_the_index() {
    let env = machine();
    let repo = TestRepo::new(&env, "named", &[("notes.txt", "mine")]);
    repo.write(".env", "RALPH_DB_URL=sqlite:///./ralph.db\n");
    let server = Served::start(&env, &repo.dir, &[]);
    server.stop();
    assert!(repo.dir.join("ralph.db").is_file());
    repo.write(".env", "RALPH_DB_URL=sqlite:///notes.txt\n");
    let refused = TestEnv::finish(&mut env.ralph_command(&repo.dir, &["index", "rebuild"])).exits(2);
    assert!(refused.stderr.contains("notes.txt` isn't an index of `ralph`"), "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(repo.dir.join("notes.txt")).unwrap(), "mine");
}

#[test]
fn lists_are_filtered_sorted_and_paged() {
    let env = machine();
    let repo = some_runs(&env);
    let server = Served::start(&env, &repo.dir, &[]);
    ralph_loop_testkit::env::until("all rows", || (rows(&server).len() == 2).then_some(()));
    let ids = |path: &str| -> Vec<String> {
        let page = server.get(path).is(200).json();
        page["runs"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    };
    let all = ids("/runs?sort=created&order=asc");
    assert_eq!(ids("/runs?status=done"), all[..1]);
    assert_eq!(ids("/runs?status=done,failed&sort=created&order=asc"), all);
    assert_eq!(ids("/runs?status=open"), Vec::<String>::new());
    assert_eq!(ids(&format!("/runs?repo={}&sort=created&order=asc", repo.dir.display())), all);
    assert_eq!(ids("/runs?q=%25"), Vec::<String>::new(), "a sign is a sign");
    assert_eq!(ids("/runs?sort=iteration"), [all[1].clone(), all[0].clone()]);
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = server.get(&format!("/runs?sort=score&limit=1&cursor={cursor}")).is(200).json();
        found.extend(
            page["runs"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()),
        );
        assert_eq!(page["total"], 2);
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = next.to_owned();
    }
    found.sort();
    assert_eq!(found, all);
    server.get("/runs?cursor=nonsense").is(400);
    server.get("/runs?color=red").is(400);
    let days = server.get("/costs?by=day").is(200).json();
    assert_eq!(days["rows"].as_array().unwrap().len(), 1, "{days}");
}

#[test]
fn index_works_the_same_in_postgres() {
    let Some(postgres) = Postgres::start() else { return };
    let url = postgres.url.clone();
    let env = machine();
    assert_rebuilt_index_matches(&env, &[("RALPH_DB_URL", &url)]);
    let repo = TestRepo::new(&env, "other", &[("a", "b")]);
    let wrong = url.replace("/ralph?", "/nowhere?");
    let mut command = env.ralph_command(&repo.dir, &["serve", "--port", "0", "--no-open"]);
    let refused = TestEnv::finish(command.env("RALPH_DB_URL", &wrong)).exits(4);
    assert!(
        refused.stderr.contains("RALPH_DB_URL") && !refused.stderr.contains(&wrong),
        "{}",
        refused.stderr
    );
    assert_eq!(json!(refused.stdout), json!(""));
}

#[test]
fn another_folder_on_the_same_database_removes_no_rows() {
    let (one, two) = (machine(), machine());
    let shared = format!("sqlite:///{}", one.path("shared.db").display());
    let vars = [("RALPH_DB_URL", shared.as_str())];
    let repo = some_runs(&one);
    let first = Served::start_with(&one, &repo.dir, &[], &vars);
    ralph_loop_testkit::env::until("all rows", || (rows(&first).len() == 2).then_some(()));
    let second = Served::start_with(&two, &two.path("tmp"), &[], &vars);
    let ready = || request(second.port, "GET", "/readyz", &[], None).json();
    ralph_loop_testkit::env::until("its records", || (ready()["all_records_read"] == true).then_some(()));
    assert_eq!((rows(&first).len(), rows(&second).len()), (2, 2));
}
