//! Keys and logins go to programs by their path.

use super::{Place, WORK, program};
use serde_json::json;

/// A sandboxed run; `None` if this machine has no sandbox.
fn sandboxed(place: &Place, args: &[&str]) -> Option<ralph_loop_testkit::Finished> {
    let done = place.ralph(&[&["run", "--new", "--json"], args].concat());
    if done.code == Some(4) && done.stderr.contains("sandbox") {
        ralph_loop_testkit::skip(&done.stderr);
        return None;
    }
    Some(done)
}

/// The work script with its notes in a file that leaves the sandbox.
fn visible_work() -> String {
    WORK.replace(".ralph/seen.txt", "seen.txt")
}

#[test]
fn session_gets_a_placeholder_and_a_check_named_like_its_agent_no_key() {
    let place = Place::new();
    program(&place.env.path("bin/claude"), &visible_work());
    program(&place.env.path("repo/claude"), "test -z \"$ANTHROPIC_API_KEY\" && test -f part.txt");
    place.track("claude");
    for verifier in [json!(["./claude"]), json!(["sh", "-c", "./claude"])] {
        place.config(&json!({"verifiers": [{"name": "tests", "command_argv": verifier}]}));
        let _ = std::fs::remove_file(place.env.path("repo/part.txt"));
        let Some(done) = sandboxed(&place, &["--isolation", "bwrap"]) else { return };
        done.exits(0);
        let seen = place.read("seen.txt");
        assert!(!seen.contains("key-of-the-user") && seen.contains("ANTHROPIC_API_KEY=ralph-"), "{seen}");
        assert!(seen.contains("ANTHROPIC_BASE_URL=http://127.0.0.1:"), "{seen}");
        assert!(!seen.contains("OPENAI_API_KEY="), "only its own: {seen}");
        let program = format!("program={}", place.env.path("bin/claude").display());
        assert!(seen.starts_with(&program), "{seen}");
    }
}

#[test]
fn other_commands_get_no_key() {
    let place = Place::new();
    place.agent("claude", &["sh", "-c", &visible_work()], &json!({}));
    let Some(done) = sandboxed(&place, &[]) else { return };
    done.exits(0);
    assert!(!place.read("seen.txt").contains("API_KEY="), "{}", place.read("seen.txt"));
}

#[test]
fn allowed_dotenv_url_reaches_its_agent_for_the_whole_run() {
    let place = Place::new();
    place.write(".env", "ANTHROPIC_BASE_URL=https://gateway.example\n");
    place.ralph(&["trust", "--yes"]).exits(0);
    place.run(&[]).exits(0);
    assert!(place.read(".ralph/seen.txt").contains("ANTHROPIC_BASE_URL=https://gateway.example"));
    place.ralph(&["trust", "--revoke"]).exits(0);
    // Allowed for one run: after a kill and a resume it is still allowed for that run, and for no other.
    let args = ["run", "--new", "--isolation", "none", "--yes"];
    let mut command = place.command(&place.env.path("repo"), &args);
    let killed = ralph_loop_testkit::TestEnv::finish(command.env("RALPH_FAULT", "place.after"));
    assert_eq!(killed.code, None, "{}", killed.stderr);
    for file in [".ralph/seen.txt", "part.txt"] {
        let _ = std::fs::remove_file(place.env.path("repo").join(file));
    }
    place.ralph(&["resume"]).exits(0);
    assert!(place.read(".ralph/seen.txt").contains("ANTHROPIC_BASE_URL=https://gateway.example"));
    place.run(&[]).exits(3);
}

#[test]
fn repo_program_is_checked_again_at_each_start() {
    let place = Place::new();
    let evil = format!("touch {}", place.env.path("evil.txt").display());
    let script = format!(
        "cat > /dev/null; echo $RALPH_ITERATION >> log.txt; printf '#!/bin/sh\\n{evil}\\n' > bin/claude"
    );
    program(&place.env.path("repo/bin/claude"), &script);
    place.agent("mine", &["bin/claude"], &json!({}));
    place.ralph(&["trust", "--yes"]).exits(0);
    let done = place.run(&["--max-iterations", "2"]);
    assert_ne!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(place.read("log.txt"), "1\n");
    assert!(!place.env.path("evil.txt").exists(), "what was not allowed was started");
    let refused = place.run(&[]).exits(3);
    assert!(
        refused.stderr.contains("+ `bin/claude`") && refused.stderr.contains("no longer"),
        "{}",
        refused.stderr
    );
}

#[test]
fn agent_child_programs_are_not_resolved_in_the_repo() {
    let mut place = Place::new();
    program(&place.env.path("repo/bin/helper"), "echo evil");
    program(&place.env.path("bin/helper"), "echo own");
    program(&place.env.path("bin/claude"), &format!("helper > helped.txt\n{WORK}"));
    place.path = format!("{}:bin::{}", place.env.path("repo/bin").display(), place.path);
    place.run(&[]).exits(0);
    assert_eq!(place.read("helped.txt"), "own\n");
}

/// Probing a repo's agent is also sandboxed.
#[test]
fn probed_commands_are_sandboxed_and_get_no_key() {
    let place = Place::new();
    let mark = place.env.path("evil.txt");
    let script =
        format!("touch {}; test -z \"$ANTHROPIC_API_KEY\" || touch {0}-key; echo ok", mark.display());
    place.agent("any", &["sh", "-c", &script], &json!({}));
    let tried = place.ralph(&["probe", "--json"]);
    if tried.stderr.contains("cannot sandbox") {
        ralph_loop_testkit::skip(&tried.stderr);
        return;
    }
    let task = format!(
        "---\ntask_id: x\ntest_command: 'true'\nmax_iterations: 3\nmax_wall_time_minutes: 5\nmax_cost_usd_estimate: 1\n---\n\
         # Task: The part\n\nWrite it.\n\n## Success criteria\n- [ ] M1.1 one\n  - verify: `{script}`\n\
         - [ ] M1.2 two\n  - verify: `test -f never`\n"
    );
    place.write("ralph_task.md", &task.replace("$ANTHROPIC_API_KEY", "${ANTHROPIC_API_KEY}"));
    let linted = place.ralph(&["lint", "--probe-checks", "ralph_task.md"]);
    assert!(linted.stderr.contains("trying M1.1"), "{linted:?}");
    let made: Vec<_> =
        std::fs::read_dir(place.env.path("")).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(!made.iter().any(|name| name.to_string_lossy().starts_with("evil")), "{made:?}");
    // The twin: with the user's permission it runs with the user's rights.
    place.env.user_config(&json!({"isolation": "none"}));
    place.ralph(&["probe", "--json"]);
    assert!(mark.exists());
}

#[test]
fn agent_probes_start_no_repo_program() {
    let mut place = Place::new();
    let marks = format!("touch {}", place.env.path("evil.txt").display());
    for name in ["claude", "codex", "gemini", "opencode"] {
        std::fs::remove_file(place.env.path("bin").join(name)).unwrap();
    }
    program(&place.env.path("repo/bin/claude"), &marks);
    place.path = format!("{}:{}", place.env.path("repo/bin").display(), place.path);
    place.ralph(&["doctor"]);
    place.ralph(&["probe", "--agent", "claude", "--json"]);
    assert!(!place.env.path("evil.txt").exists());
    place.ralph(&["trust", "--yes"]).exits(0);
    place.ralph(&["probe", "--agent", "claude", "--isolation", "none", "--json"]);
    assert!(place.env.path("evil.txt").exists(), "once it is allowed, it is tried");
}
