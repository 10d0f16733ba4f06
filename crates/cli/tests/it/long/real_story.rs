//! One long run with a real agent CLI: a repo of a thousand files with uncommitted user files, a kill during a session, a wait
//! for a plan limit, and a proven end that leaves the user's files unchanged.

use crate::long::real_agents::machine::{Machine, programs};
use ralph_loop_testkit::TestRepo;
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::model_server::{Action, Fault, FaultKind, ModelServer, Script, Turn};
use std::process::{Command, Stdio};

/// A thousand committed files and the user's uncommitted ones.
fn fill(repo: &TestRepo<'_>) {
    for folder in 0..50 {
        for file in 0..20 {
            let text = format!("module {folder} file {file}\n").repeat(1 + (folder + file) % 40);
            repo.write(&format!("src/mod_{folder:02}/file {file:02}.txt"), &text);
        }
    }
    repo.write(".gitignore", "/build/\n*.log\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "a thousand files"]);
    repo.write("src/mod_03/file 04.txt", "edited by me, not committed\n");
    repo.write("staged.txt", "staged by me\n");
    repo.git(&["add", "staged.txt"]);
    repo.write("staged.txt", "staged by me, then edited again\n");
    repo.write("übung/notes of mine.txt", "never added\n");
    repo.write("build/output.bin", "ignored\n");
    std::fs::remove_file(repo.dir.join("src/mod_10/file 10.txt")).unwrap();
    std::os::unix::fs::symlink("../nowhere", repo.dir.join("dangling")).unwrap();
}

/// All user files that must stay unchanged.
fn mess(repo: &TestRepo<'_>) -> String {
    let status = repo.git(&["status", "--porcelain=v1", "-z", "--", ".", ":!result.txt"]);
    let staged = repo.git(&["diff", "--cached"]);
    let texts: Vec<String> =
        ["src/mod_03/file 04.txt", "staged.txt", "übung/notes of mine.txt", "build/output.bin"]
            .map(|path| repo.read(path))
            .to_vec();
    format!("{status:?}\n{staged}\n{texts:?}\n{}", repo.git(&["log", "--oneline", "--branches", "--", "src"]))
}

/// A background run of a user with a subscription: with a token, not a key.
fn on_a_plan(mut command: Command) -> Command {
    command.env_remove("ANTHROPIC_API_KEY").env("CLAUDE_CODE_OAUTH_TOKEN", "scripted");
    command
}

#[test]
fn claude_run_survives_a_kill_and_a_rate_limit() {
    let Some(programs) = programs() else { return };
    let server = ModelServer::start().unwrap();
    server.script(
        "first",
        Script::sessions([
            vec![
                Turn::new([Action::shell("printf 'half\\n' > result.txt")]),
                Turn::new([Action::text("Half of it is there.")]),
            ],
            // The second session starts to work and then hangs.
            vec![
                Turn::new([Action::shell("printf 'half\\nmore\\n' > result.txt")]),
                Turn { wait_ms: 600_000, ..Turn::new([Action::text("never said")]) },
            ],
        ]),
    );
    server.script(
        "second",
        Script::sessions([vec![
            Turn::new([Action::shell("printf 'shell-ran\\n' >> result.txt")]),
            Turn::new([Action::text("All is done.\n\n<promise>COMPLETE</promise>")]),
        ]])
        .with_fault(Fault::times(FaultKind::UsageLimit { resets_in_s: 15 }, 1)),
    );
    let machine = Machine::new("claude", &programs);
    let repo = machine.repo("repo");
    fill(&repo);
    let config = repo.read(".ralph/config.json").replace("hello.txt", "result.txt");
    repo.write(".ralph/config.json", &config);
    let before = mess(&repo);

    // First process: one iteration, and a kill while the agent waits for its model.
    let first = server.base_url("first", "story");
    let mut ralph = on_a_plan(machine.command(&repo, &first, &["run", "--isolation", "none", "--json"]))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the second session's work", || repo.read("result.txt").contains("more").then_some(()));
    ralph.kill().unwrap();
    ralph.wait().unwrap();
    assert_eq!(repo.events_named("iteration_ended").len(), 1);

    // Second process: it waits until the plan's limit ends, then finishes the work.
    let second = server.base_url("second", "story");
    let done = on_a_plan(machine.command(&repo, &second, &["resume", "--json"])).output().unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{stderr}");

    let ends: Vec<String> = repo
        .events_named("session_ended")
        .iter()
        .map(|e| e["end"]["how"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ends, ["completed", "interrupted", "rate_limited", "completed"]);
    let rest = &repo.events_named("cooldown_set")[0];
    let waited = repo.events_named("wait_ended")[0]["waited_ms"].as_u64().unwrap();
    assert!((1..60_000).contains(&waited), "until the reset, not for a fixed hour: {rest}, {waited}");
    assert_eq!(
        repo.events_named("iteration_ended").len(),
        2,
        "neither the kill nor the limit is an iteration"
    );
    assert_eq!(repo.events_named("proof_finished")[0]["passed"], true);
    assert_eq!(repo.read("result.txt"), "half\nmore\nshell-ran\n", "work of the killed session is kept");
    assert_eq!(mess(&repo), before, "the user's own changes are as they were");
    let run: serde_json::Value =
        serde_json::from_str(String::from_utf8_lossy(&done.stdout).lines().last().unwrap()).unwrap();
    assert_eq!(
        (&run["files_changed"], &run["iterations"]),
        (&serde_json::json!(["result.txt"]), &serde_json::json!(2))
    );
    assert_eq!(
        repo.git(&["log", "--oneline", "-1", "--format=%s"]),
        "a thousand files",
        "no commit on the user's branch"
    );
}
