//! What the user can allow in the local sandbox, and a repo can't.

use crate::RALPH;
use crate::long::providers::fixture::Fixture;
use crate::long::providers::stories;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;
use std::io::{Read as _, Write as _};

/// Requests a page from a server on this machine, and writes down the response and a variable.
const ASK: &str = "cat >/dev/null; { curl -s --max-time 5 http://127.0.0.1:$PORT/ || echo refused; echo; echo \"[$MINE]\"; } > part.txt; \
    echo '<promise>COMPLETE</promise>'";

fn serve() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0u8; 2048]);
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\nserved");
        }
    });
    port
}

/// Returns what the agent wrote with these flags and these settings of user and repo.
fn part(
    flags: &[&str],
    user: serde_json::Value,
    repo_says: serde_json::Value,
    port: u16,
) -> (String, String) {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let script = ASK.replace("$PORT", &port.to_string());
    let agent = json!({"name": "stub", "command_argv": ["sh", "-c", script]});
    repo.configure(&[agent], "test -s part.txt", &repo_says);
    std::fs::create_dir_all(env.path("config/ralph")).unwrap();
    std::fs::write(env.path("config/ralph/config.json"), user.to_string()).unwrap();
    let args = [&["run", "--worktree", "--json"], flags].concat();
    let mut command = env.ralph_command(&repo.dir, &args);
    let done = TestEnv::finish(command.env("MINE", "seen"));
    if done.code == Some(3) {
        return (String::new(), done.stderr);
    }
    let done = done.exits(0);
    let branch = done.json()["ref"].as_str().unwrap().to_owned();
    (repo.git(&["show", &format!("{branch}:part.txt")]), done.stderr)
}

/// Whether this machine has a local sandbox.
fn sandboxed() -> bool {
    let machine = ralph_loop_sandbox::isolation::detect(&ralph_loop_testkit::vars());
    let spec = ralph_loop_sandbox::IsolationSpec::new("/");
    let works = machine.choose(ralph_loop_task::config::Isolation::Auto, spec).is_ok();
    if !works {
        ralph_loop_testkit::skip("no sandbox works on this machine");
    }
    works
}

#[test]
fn git_in_the_sandbox_of_this_machine_commits_as_the_user() {
    if sandboxed() {
        stories::commits_as_the_user(&Fixture::new("local", &[], json!({})));
    }
}

#[test]
fn only_the_user_allows_hosts_and_variables() {
    if !sandboxed() {
        return;
    }
    let port = serve();
    let opened = json!({"allowed_hosts": [format!("127.0.0.1:{port}")], "pass_env": ["MINE"]});
    let (closed, _) = part(&[], json!({}), json!({}), port);
    assert_eq!(closed, "refused\n\n[]");
    let (by_repo, told) = part(&[], json!({}), opened.clone(), port);
    assert_eq!(by_repo, "", "a repo cannot open it");
    assert!(told.contains("your environment variable `MINE` inside the sandbox"), "{told}");
    let (allowed, _) = part(&["--yes"], json!({}), opened.clone(), port);
    assert_eq!(allowed, "served\n[seen]", "unless its user allows it");
    let (by_user, _) = part(&[], opened, json!({}), port);
    assert_eq!(by_user, "served\n[seen]");
    let host = format!("localhost:{port}");
    let (by_flag, _) = part(&["--allow-host", &host, "--pass-env", "MINE"], json!({}), json!({}), port);
    assert_eq!(by_flag, "served\n[seen]");
}

#[test]
fn invalid_host_is_refused() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("true", "true");
    let refused = repo.ralph(&["run", "--worktree", "--allow-host", "*"]).exits(2);
    assert!(refused.stderr.contains("localhost:11434"), "{}", refused.stderr);
    let refused = repo.ralph(&["run", "--worktree", "--pass-env", "A=b"]).exits(2);
    assert!(refused.stderr.contains("A=b"), "{}", refused.stderr);
}
