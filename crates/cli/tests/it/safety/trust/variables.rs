//! Variables that a repo or a fetched state sets for a command reach only that command: the engine's helper
//! programs, which run before the sandbox, start without them.

use super::{Place, WORK};
use crate::safety::trust::fetched::pushed;
use ralph_loop_testkit::TestEnv;
use serde_json::{Value, json};
use std::path::Path;

/// A library for the loader: it leaves a file where no sandboxed command can write.
const LOADED: &str = r#"#include <stdio.h>
__attribute__((constructor)) static void loaded(void) {
    FILE *file = fopen(PLACE, "a");
    if (file) { fputs("loaded\n", file); fclose(file); }
}
"#;

/// An agent that writes its variables to a file that leaves the sandbox.
const NOTE: &str = "cat > /dev/null; env > seen.txt; echo x > part.txt; echo '<promise>COMPLETE</promise>'";

/// Builds the library in the repo; returns whether a compiler exists.
fn build(place: &Place, out: &Path) -> bool {
    place.write("evil.c", LOADED);
    let word = format!("-DPLACE=\"{}\"", out.join("loaded").display());
    let mut cc = place.env.command("cc", &place.env.path("repo"));
    cc.args(["-shared", "-fPIC", &word, "-o", "evil.so", "evil.c"]);
    cc.status().is_ok_and(|status| status.success())
}

/// Variables that make the loader run repo code, or write a file for every program (which needs no code).
fn hostile(out: &Path) -> Value {
    json!({
        "LD_PRELOAD": "./evil.so", "LD_AUDIT": "./evil.so", "LD_LIBRARY_PATH": ".", "GCONV_PATH": ".",
        "LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": out.join("told"), "WORDS": "reach the command",
    })
}

fn leftover_files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).collect()
}

#[test]
fn agent_variables_reach_no_program_outside_the_sandbox() {
    for isolation in ["bwrap", "landlock"] {
        let place = Place::new();
        let out = place.env.path("out");
        std::fs::create_dir(&out).unwrap();
        let compiled = build(&place, &out);
        place.agent("any", &["sh", "-c", NOTE], &hostile(&out));
        let done = place.ralph(&["run", "--new", "--json", "--isolation", isolation]);
        if done.code == Some(4) {
            ralph_loop_testkit::skip(&done.stderr);
            continue;
        }
        assert_eq!(
            leftover_files(&out),
            [""; 0],
            "{isolation}, compiled {compiled}: a program of ours was loaded with them"
        );
        let done = done.exits(0);
        let seen = place.read("seen.txt");
        assert!(
            seen.contains("WORDS=reach the command") && seen.contains("LD_PRELOAD=./evil.so"),
            "{seen} {}",
            done.stderr
        );
    }
}

/// Without a sandbox nothing contains them, so `ralph` asks the user.
#[test]
fn unsandboxed_code_loading_variables_need_permission() {
    let place = Place::new();
    place.agent("any", &["sh", "-c", WORK], &json!({"LD_PRELOAD": "./evil.so"}));
    let refused = place.run(&[]).exits(3);
    let words = "agent `any` to be started without a sandbox with `LD_PRELOAD=./evil.so`";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
    assert_eq!(place.runs(), 0);
    place.run(&["--yes"]).exits(0);
}

/// A run flag decides about the sandbox, so the list also has the requests without one.
#[test]
fn unsandboxed_requests_are_listed_and_allowed_once() {
    let mut place = Place::new();
    let all =
        json!({"LD_PRELOAD": "./evil.so", "NODE_OPTIONS": "--require ./evil.js", "WORDS": "do no harm"});
    place.agent("any", &["sh", "-c", WORK], &all);
    let listed = place.ralph(&["trust", "--show"]).exits(3);
    for words in ["`LD_PRELOAD=./evil.so`", "`NODE_OPTIONS=--require ./evil.js`"] {
        let line = format!("agent `any` to be started without a sandbox with {words}");
        assert!(listed.stdout.contains(&line), "{}", listed.stdout);
    }
    assert!(!listed.stdout.contains("WORDS"), "{}", listed.stdout);
    // In CI: exactly this set, by its name.
    let hash =
        place.ralph(&["trust", "--show", "--json"]).exits(3).json()["hash"].as_str().unwrap().to_owned();
    place.run(&[]).exits(3);
    place.vars.push(("RALPH_TRUST".to_owned(), hash));
    place.run(&[]).exits(0);
    place.vars.pop();
    place.ralph(&["trust", "--yes"]).exits(0);
    place.run(&[]).exits(0);
    // Another value asks again.
    place.agent("any", &["sh", "-c", WORK], &json!({"LD_PRELOAD": "./other.so"}));
    place.run(&[]).exits(3);
    let listed = place.ralph(&["trust", "--show"]).exits(3);
    assert!(listed.stdout.contains("`LD_PRELOAD=./other.so`"), "{}", listed.stdout);
    // The honest twin: variables that load no code need no permission.
    place.agent("any", &["sh", "-c", WORK], &json!({"WORDS": "do no harm"}));
    let listed = place.ralph(&["trust", "--show"]).exits(0);
    assert!(listed.stdout.contains("requests no permissions"), "{}", listed.stdout);
    place.run(&[]).exits(0);
}

/// The variable has a name for each way to start: in CI the same variable allows a sandboxed run of the same repo.
#[test]
fn one_variable_allows_a_repo_with_a_sandbox_and_without_one() {
    let mut place = Place::new();
    place.agent("any", &["sh", "-c", WORK], &json!({"LD_PRELOAD": "./evil.so"}));
    place.config(&json!({"allowed_hosts": ["example.org"]}));
    let hash =
        place.ralph(&["trust", "--show", "--json"]).exits(3).json()["hash"].as_str().unwrap().to_owned();
    assert_eq!(hash.split(',').count(), 2, "{hash}");
    place.vars.push(("RALPH_TRUST".to_owned(), hash));
    place.run(&[]).exits(0);
    std::fs::remove_file(place.env.path("repo/part.txt")).unwrap();
    place.agent("any", &["sh", "-c", NOTE], &json!({"LD_PRELOAD": "./evil.so"}));
    let done = place.ralph(&["run", "--new", "--json", "--isolation", "bwrap"]);
    match done.code {
        Some(4) => ralph_loop_testkit::skip(&done.stderr),
        _ => drop(done.exits(0)),
    }
}

#[test]
fn fetched_run_keeps_only_the_model_argument() {
    let pushed = pushed(&json!({"agents": [{
        "name": "claude", "command_argv": ["claude", "-p"], "model": "m", "model_argv": ["--settings", "evil.json"],
        "env": {"LD_PRELOAD": "./evil.so"},
    }]}));
    pushed.resume(&["--isolation", "none"]).exits(0);
    let seen = std::fs::read_to_string(pushed.workspace().join(".ralph/seen.txt")).unwrap();
    assert!(!seen.contains("evil"), "{seen}");
    let args = seen.lines().find(|line| line.starts_with("args=")).unwrap_or_default();
    assert!(args.ends_with("-p"), "{seen}");
}

/// A run started in place in a repo with a tracked configuration resumes elsewhere: the configuration isn't agent work.
#[test]
fn fetched_run_uses_the_committed_configuration() {
    let place = Place::new();
    let work = "cat > /dev/null; [ $RALPH_ITERATION = 1 ] && echo 1 > one.txt || echo x > part.txt; echo '<promise>COMPLETE</promise>'";
    place.agent("any", &["sh", "-c", work], &json!({}));
    place.track(".ralph/config.json");
    let forge = place.env.path("forge");
    place.env.user_config(&json!({"local_forge": forge, "publish": "pr", "poll_seconds": 0.05}));
    let mut command = place.command(&place.env.path("repo"), &["run", "--isolation", "none"]);
    let killed = TestEnv::finish(command.env("RALPH_FAULT", "push.after#1"));
    assert_eq!(killed.code, None, "{}", killed.stderr);
    let runs = std::fs::read_dir(place.env.path("repo/.ralph/runs")).unwrap().flatten();
    let run = runs.map(|entry| entry.file_name().into_string().unwrap()).next().unwrap();
    std::fs::remove_dir_all(place.env.path("state")).unwrap();
    std::fs::remove_dir_all(place.env.path("config")).unwrap();
    std::fs::create_dir(place.env.path("elsewhere")).unwrap();
    let from = ["--json", "resume", "--from", forge.to_str().unwrap(), &run, "--isolation", "none"];
    place.ralph_in(&place.env.path("elsewhere"), &from).exits(0);
}
