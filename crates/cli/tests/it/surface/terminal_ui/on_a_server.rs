//! `ralph attach --server`: the Run screen on a run of a server.

use super::tmux::Tmux;
use super::{RALPH, config};
use crate::surface::serve::machine::{Served, detached};
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;

/// An agent that waits for the gate file, then does the work.
fn gated(env: &TestEnv) -> String {
    format!(
        "printf 'hello \\033]0;owned\\007there\\n'; while [ ! -e {} ]; do sleep 0.05; done; echo done > part.txt; echo '<promise>COMPLETE</promise>'",
        env.path("gate").display()
    )
}

#[test]
fn server_run_is_watched_steered_and_detached() {
    let env = TestEnv::new(RALPH);
    env.user_config(&json!({ "isolation": "none" }));
    let repo = TestRepo::with_task(&env);
    repo.config(&config(&[repo.agent("one", &gated(&env))]));
    repo.ralph(&["trust", "--yes"]).exits(0);
    let run = detached(&repo, &[]);
    let served = Served::start(&env, &repo.dir, &[]);
    let url = format!("http://127.0.0.1:{}", served.port);
    // From another folder without any file of the run.
    let elsewhere = TestRepo::new(&env, "elsewhere", &[]);
    let program = format!("{RALPH} attach --server {url}");
    let Some(tmux) = Tmux::start(&env, &elsewhere.dir, &program, "", (140, 40)) else { return };
    tmux.shows(&format!("ralph on 127.0.0.1:{}", served.port));
    tmux.shows("iteration 1/5");
    tmux.shows("iteration 1: one works");
    tmux.key("2");
    tmux.shows("hello there");
    assert_ne!(tmux.title(), "owned", "what an agent prints never reaches the terminal");
    tmux.key("n");
    tmux.types("the staging database is read-only");
    tmux.key("Enter");
    tmux.shows("note: ");
    let heard = || repo.events_named("control_received");
    ralph_loop_testkit::env::until("the note is in the journal", || (!heard().is_empty()).then_some(()));
    assert!(heard()[0].to_string().contains("the staging database is read-only"), "{:?}", heard());
    tmux.key("R");
    tmux.shows(&format!("All runs of {url}"));
    tmux.key("Escape");
    // Sent together, the two would be read as one key.
    tmux.until("the list is closed", |screen| !screen.contains("All runs of"));
    tmux.key("C-c");
    tmux.shows(&format!("`ralph attach {run} --server"));
    tmux.shows("left with 130");
    std::fs::write(env.path("gate"), "").unwrap();
    tmux.types(&format!("clear; {RALPH} attach {run} --server {url}; echo attach left $?"));
    tmux.key("Enter");
    tmux.shows("proven, independent");
    tmux.key("t");
    tmux.key("4");
    tmux.shows("part.txt");
    tmux.key("6");
    tmux.shows("passed tests");
    tmux.key("v");
    tmux.shows("in your pager");
    tmux.key("a");
    tmux.shows("the folder of this run is on the server");
    tmux.key("q");
    tmux.shows("attach left 0");
}

#[test]
fn headless_attach_prints_the_run_lines_and_exit_code() {
    let env = TestEnv::new(RALPH);
    env.user_config(&json!({ "isolation": "none" }));
    let repo = TestRepo::with_task(&env);
    repo.config(&config(&[repo.agent("one", &gated(&env))]));
    repo.ralph(&["trust", "--yes"]).exits(0);
    std::fs::write(env.path("gate"), "").unwrap();
    let run = detached(&repo, &[]);
    let served = Served::start(&env, &repo.dir, &[]);
    let url = format!("http://127.0.0.1:{}", served.port);
    let lines = repo.ralph(&["attach", &run, "--server", &url]).exits(0);
    assert!(lines.stdout.contains("iteration 1: one works"), "{lines:?}");
    let raw = repo.ralph(&["attach", &run, "--server", &url, "--json"]).exits(0);
    let first: serde_json::Value = serde_json::from_str(raw.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(first["seq"], 1, "{first}");
    let unknown = repo.ralph(&["attach", "nothing", "--server", &url]).exits(2);
    assert!(unknown.stderr.contains("nothing"), "{unknown:?}");
    let token = env.path("token");
    std::fs::write(&token, "wrong").unwrap();
    let refused =
        repo.ralph(&["attach", &run, "--server", &url, "--token-file", token.to_str().unwrap()]).exits(2);
    assert!(refused.stderr.contains("does not know the token"), "{refused:?}");
    let far = repo.ralph(&["attach", "--server", "http://ralph.example.com"]).exits(2);
    assert!(far.stderr.contains("no token"), "the owner's token goes to no other machine: {far:?}");
    drop(served);
    let gone = repo.ralph(&["attach", &run, "--server", &url]);
    assert!(gone.code != Some(0) && gone.stderr.contains("does not answer"), "{gone:?}");
}
