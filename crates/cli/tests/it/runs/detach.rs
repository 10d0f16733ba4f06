//! Detached runs and their viewers.

use crate::RALPH;
use ralph_loop_testkit::env::{is_alive, until};
use ralph_loop_testkit::{TestEnv, TestRepo};

const DETACHED: &[&str] = &["run", "--detach", "--isolation", "none", "--json"];

/// Works once a file allows it.
fn waiting_script(repo: &TestRepo<'_>) -> String {
    let go = repo.dir.join(".git/go").display().to_string();
    format!(
        "until [ -e '{go}' ]; do sleep 0.05; done; echo work > part.txt; echo '<promise>COMPLETE</promise>'"
    )
}

fn detached(repo: &TestRepo<'_>, more: &[&str]) -> String {
    let done = repo.ralph(&[DETACHED, more].concat()).exits(0).json();
    done["run_id"].as_str().unwrap().to_owned()
}

fn driver(repo: &TestRepo<'_>, run: &str) -> u32 {
    let status = repo.ralph(&["status", run, "--json"]).exits(0).json();
    u32::try_from(status["pid"].as_u64().unwrap()).unwrap()
}

#[test]
fn detached_run_outlives_its_starter_and_its_viewer() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub(&waiting_script(&repo), "grep -q work part.txt");
    let run = detached(&repo, &[]);
    let pid = driver(&repo, &run);
    let session = nix::unistd::getsid(Some(nix::unistd::Pid::from_raw(pid as i32))).unwrap();
    assert_eq!(session.as_raw(), pid as i32, "it has its own session");
    let mut viewer = env.spawn(&repo.dir, &["attach", &run]);
    viewer.kill().unwrap();
    viewer.wait().unwrap();
    assert!(is_alive(pid), "the viewer's end is not the run's");
    let viewer = env.spawn(&repo.dir, &["attach", &run]);
    repo.write(".git/go", "");
    let seen = TestEnv::wait(viewer).exits(0);
    assert!(seen.stdout.contains("iteration 1"), "{}", seen.stdout);
    until("the end of its process", || (!is_alive(pid)).then_some(()));
    assert!(repo.run_file("driver.log").contains("\"success\":true"), "{}", repo.run_file("driver.log"));
    repo.ralph(&["attach", &run]).exits(0);
}

#[test]
fn attach_ends_with_the_code_of_the_run() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("echo again >> part.txt; echo '<promise>COMPLETE</promise>'", "false");
    let run = detached(&repo, &["--max-iterations", "1"]);
    repo.ralph(&["attach", &run]).exits(1);
}

#[test]
fn detached_run_reports_refusals_like_a_foreground_run() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("true", "true");
    let args = ["run", "--isolation", "none", "--agents", "unknown"];
    let here = repo.ralph(&args).exits(2).stderr;
    let there = repo.ralph(&[&args[..], &["--detach"]].concat()).exits(2).stderr;
    assert_eq!(here, there);
    let several = repo.ralph(&["run", "--detach", "a.json", "b.json"]).exits(2);
    assert!(several.stderr.contains("starts one run"), "{}", several.stderr);
}
