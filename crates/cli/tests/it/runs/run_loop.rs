//! The loop from task to proven result: where the work goes, what is recorded, and what stays untouched.

use crate::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// An agent that does all the work in one session.
const WORKER: &str = "echo work > part.txt\necho 'Wrote the part.'\necho '<promise>COMPLETE</promise>'";
const CHECK: &str = "grep -q work part.txt";

fn work_ref(run: &Value) -> String {
    format!("refs/ralph/{}/work", run["run_id"].as_str().unwrap())
}

#[test]
fn only_agent_work_is_recorded_and_user_files_stay() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.git(&["branch", "other"]);
    repo.write("stashed.txt", "put away\n");
    repo.git(&["add", "stashed.txt"]);
    repo.git(&["stash", "-q"]);
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    repo.write("staged.txt", "staged and changed\n");
    repo.write("readme.txt", "hello\nchanged by the user\n");
    repo.write("untracked.txt", "mine\n");
    repo.stub(WORKER, CHECK);
    // Fresh stat data, so that reading the status does not have to rewrite the index.
    repo.git(&["status", "--porcelain"]);
    let index = std::fs::read(repo.dir.join(".git/index")).unwrap();
    let refs = repo.git(&["for-each-ref", "refs/heads", "refs/stash"]);
    let head = repo.read(".git/HEAD");

    let run = repo.run(&[]).exits(0).json();

    let work = work_ref(&run);
    assert_eq!(run["ref"], work);
    assert_eq!(run["files_changed"], json!(["part.txt"]));
    assert_eq!(repo.git(&["diff", "--name-status", "main", &work]), "A\tpart.txt");
    assert_eq!(repo.git(&["rev-parse", &format!("{work}^")]), repo.git(&["rev-parse", "main"]));
    assert_eq!(std::fs::read(repo.dir.join(".git/index")).unwrap(), index, "the user's index");
    assert_eq!(repo.git(&["for-each-ref", "refs/heads", "refs/stash"]), refs);
    assert_eq!(repo.read(".git/HEAD"), head);
    assert_eq!(repo.git(&["stash", "list"]).lines().count(), 1);
    assert_eq!(
        repo.git(&["status", "--porcelain", "--untracked-files=all"]),
        "M readme.txt\nAM staged.txt\n?? part.txt\n?? untracked.txt".replacen("M readme", " M readme", 1)
    );
    assert_eq!(repo.read("readme.txt"), "hello\nchanged by the user\n");
    // The initial snapshot holds all of the user's files, through a separate index.
    let start = format!("refs/ralph/{}/start", run["run_id"].as_str().unwrap());
    assert_eq!(repo.git(&["show", &format!("{start}:readme.txt")]), "hello\nchanged by the user");
    assert_eq!(repo.git(&["show", &format!("{start}:untracked.txt")]), "mine");
    assert_eq!(repo.git(&["show", &format!("{start}:staged.txt")]), "staged and changed");
    let exclude = repo.read(".git/info/exclude");
    assert!(exclude.lines().any(|line| line == "/.ralph/*"), "{exclude}");
    assert!(!repo.dir.join(".gitignore").exists());
}

#[test]
fn user_file_edited_by_the_agent_is_kept_and_reported() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write("readme.txt", "hello\nmine\n");
    repo.stub(&format!("echo agent >> readme.txt\n{WORKER}"), CHECK);
    repo.run(&[]).exits(0);
    assert_eq!(repo.read("readme.txt"), "hello\nmine\nagent\n");
    let checkpoint = &repo.events_named("checkpointed")[0];
    assert_eq!(checkpoint["dirty_touched"], json!(["readme.txt"]));
}

#[test]
fn commits_have_message_trailers_and_user_identity() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub(WORKER, CHECK);
    let log =
        |run: &Value, format: &str| repo.git(&["log", "-1", &format!("--format={format}"), &work_ref(run)]);
    let run = repo.run(&[]).exits(0).json();
    let id = run["run_id"].as_str().unwrap();
    assert_eq!(log(&run, "%s"), "Wrote the part", "what the agent said of it");
    assert_eq!(log(&run, "%(trailers:key=Ralph-Run,valueonly,separator=)"), id);
    assert_eq!(log(&run, "%(trailers:key=Ralph-Iteration,valueonly,separator=)"), "1");
    assert_eq!(log(&run, "%an <%ae> %cn <%ce>"), "Tester <tester@example.com> Tester <tester@example.com>");

    repo.git(&["config", "--unset", "user.name"]);
    repo.git(&["config", "--unset", "user.email"]);
    std::fs::remove_file(repo.dir.join("part.txt")).unwrap();
    let run = repo.run(&[]).exits(0).json();
    assert_eq!(log(&run, "%an <%ae>"), "Ralph <ralph@localhost>");

    std::fs::remove_file(repo.dir.join("part.txt")).unwrap();
    let more = json!({"commit_author": "Bot", "commit_email": "bot@example.org"});
    repo.configure(&[repo.agent("stub", WORKER)], CHECK, &more);
    let run = repo.run(&[]).exits(0).json();
    assert_eq!(log(&run, "%an <%ae>"), "Bot <bot@example.org>");
}

#[test]
fn branch_option_commits_each_iteration_on_the_new_branch() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let main = repo.git(&["rev-parse", "main"]);
    repo.write("untracked.txt", "mine\n");
    let steps = "echo \"step $RALPH_ITERATION\" >> steps.txt\necho ok\n[ $RALPH_ITERATION -lt 3 ] || { echo work > part.txt; echo '<promise>COMPLETE</promise>'; }";
    repo.stub(steps, CHECK);
    let run = repo.run(&["--branch", "fix"]).exits(0).json();
    assert_eq!(run["branch"], "fix");
    assert_eq!(repo.git(&["branch", "--show-current"]), "fix");
    assert_eq!(repo.git(&["rev-parse", "main"]), main);
    assert_eq!(repo.git(&["rev-list", "--count", "main..fix"]), "3");
    assert_eq!(repo.git(&["rev-parse", "fix"]), repo.git(&["rev-parse", &work_ref(&run)]));
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? untracked.txt");
    let again = repo.run(&["--branch", "main/sub"]).exits(2);
    assert!(again.stderr.contains("next: choose another name, e.g. `--branch main-sub`"), "{again:?}");
}

#[test]
fn worktree_run_leaves_the_user_folder_alone() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write("readme.txt", "hello\nmine\n");
    repo.stub(WORKER, CHECK);
    let run = repo.run(&["--worktree"]).exits(0).json();
    let dir = std::path::PathBuf::from(run["run_dir"].as_str().unwrap());
    assert!(dir.starts_with(env.path("state")), "{dir:?}");
    assert!(!repo.dir.join("part.txt").exists());
    assert_eq!(repo.git(&["status", "--porcelain"]), " M readme.txt");
    assert_eq!(repo.git(&["branch", "--show-current"]), "main");
    let branch = run["branch"].as_str().unwrap();
    assert_eq!(repo.git(&["show", &format!("{branch}:part.txt")]), "work");
    assert_eq!(repo.git(&["show", &format!("{branch}:readme.txt")]), "hello");
    let proof: Value = serde_json::from_slice(&std::fs::read(dir.join("proof.json")).unwrap()).unwrap();
    assert_eq!((&proof["place"], &proof["passed"]), (&json!("clean checkout"), &json!(true)));
    assert_eq!(proof["commit"].as_str().unwrap(), repo.git(&["rev-parse", branch]));
}

#[test]
fn a_clone_leaves_its_source_alone() {
    let env = TestEnv::new(RALPH);
    let source = TestRepo::new(&env, "source", &[("readme.txt", "from the source\n")]);
    let refs = source.git(&["for-each-ref"]);
    let repo = TestRepo::with_task(&env);
    repo.stub(&format!("cat readme.txt\n{WORKER}"), CHECK);
    let missing = repo.run(&["--clone", "no/such/repo"]).exits(4).json();
    assert_eq!(missing["error"]["code"], "CLONE_FAILED", "{missing}");
    let run = repo.run(&["--clone", source.dir.to_str().unwrap()]).exits(0).json();
    assert_eq!(source.git(&["for-each-ref"]), refs);
    assert_eq!(source.git(&["status", "--porcelain"]), "");
    assert!(!repo.dir.join("part.txt").exists());
    let dir = std::path::PathBuf::from(run["run_dir"].as_str().unwrap());
    let workspace = env.path("state/ralph/workspaces").join(run["run_id"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(workspace.join("part.txt")).unwrap(), "work\n");
    let shown =
        std::fs::read_link(workspace.join(".ralph/runs").join(run["run_id"].as_str().unwrap())).unwrap();
    assert_eq!(shown, dir, "the agent's folder shows the record");
    let output = std::fs::read_to_string(dir.join("iterations/1/output.log")).unwrap();
    assert!(output.contains("from the source"), "{output}");
    let proof: Value = serde_json::from_slice(&std::fs::read(dir.join("proof.json")).unwrap()).unwrap();
    assert_eq!(proof["place"], "clean checkout");
}

#[test]
fn every_iteration_writes_its_artifacts() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let steps = "test -f .ralph/active.json && cp .ralph/active.json \"$(dirname $0)/marker.json\"\necho \"line $RALPH_ITERATION\" >> log.txt\necho \"did $RALPH_ITERATION\"\n[ $RALPH_ITERATION -lt 2 ] || { echo work > part.txt; echo '<promise>COMPLETE</promise>'; }";
    repo.stub(steps, CHECK);
    let done = repo.run(&[]).exits(0);
    let run = done.json();
    let id = run["run_id"].as_str().unwrap();
    for n in 1..=2 {
        let file = |name: &str| repo.read(format!(".ralph/iterations/{n}/{name}"));
        for name in ["response.json", "metrics.json", "pr_state.json", "receipt.json"] {
            let value: Result<Value, _> = serde_json::from_str(&file(name));
            assert!(value.is_ok_and(|v| v.is_object()), "{name} of {n}: {}", file(name));
        }
        for line in file("actions.jsonl").lines() {
            serde_json::from_str::<Value>(line).unwrap();
        }
        assert!(file("prompt.md").contains("Write `part.txt`."));
        assert!(file("output.log").contains(&format!("did {n}")));
        assert!(file("git_diff.patch").contains(&format!("+line {n}")), "{}", file("git_diff.patch"));
        assert!(file("test_output.txt").contains("tests"), "{}", file("test_output.txt"));
        let receipt: Value = serde_json::from_str(&file("receipt.json")).unwrap();
        for key in [
            "agent",
            "model",
            "tokens",
            "cost_usd",
            "cost_basis",
            "files_changed",
            "checks",
            "end",
            "verdict",
        ] {
            assert!(receipt.get(key).is_some(), "{key} in {receipt}");
        }
        assert_eq!((&receipt["agent"], &receipt["cost_basis"]), (&json!("stub"), &json!("unknown")));
        assert!(serde_json::from_str::<Value>(&file("metrics.json")).unwrap()["loop_score"].is_number());
    }
    assert_eq!(
        std::fs::read_link(repo.dir.join(".ralph/iterations")).unwrap().to_str().unwrap(),
        format!("runs/{id}/iterations")
    );
    let state: Value = serde_json::from_str(&repo.read(".ralph/state.json")).unwrap();
    assert_eq!(state["status"], "done");
    assert_eq!(state["state"]["seq"], repo.events().len());
    assert!(!repo.dir.join(".ralph/active.json").exists(), "the marker is removed at the end");
    let marker: Value = serde_json::from_slice(&std::fs::read(env.path("marker.json")).unwrap()).unwrap();
    for key in ["timestamp", "pid", "run_id", "max_iterations", "mode"] {
        assert!(!marker[key].is_null(), "{key} in {marker}");
    }
    for name in ["stub", "global"] {
        let changelog = repo.read(format!(".ralph/changelog/{name}.md"));
        let parts = [
            id,
            "iteration 2",
            "status:",
            "session: completed",
            "prompt:",
            "branch: main",
            "files:",
            "part.txt",
            "tests: passed",
            "logs:",
        ];
        for part in parts {
            assert!(changelog.contains(part), "{part} in {changelog}");
        }
    }
    assert!(repo.read(".ralph/activity.log").contains("iteration 2: stub works"));
    assert!(repo.read(".ralph/errors.log").contains("iteration 1: tests failed: exit code"));
    let record = repo.record(id);
    for name in ["events.jsonl", "spec.json", "proof.json", "state.json", "git/record.json"] {
        assert!(record.join(name).is_file(), "{name} in the record");
    }
    let shown = repo.dir.join(format!(".ralph/runs/{id}"));
    assert!(std::fs::symlink_metadata(&shown).unwrap().is_dir(), "a real copy at the end");
    assert_eq!(
        std::fs::read(shown.join("events.jsonl")).unwrap(),
        std::fs::read(record.join("events.jsonl")).unwrap()
    );
    for path in [format!(".git/ralph/{id}/record.json"), ".ralph/lock".to_owned()] {
        assert!(!repo.dir.join(&path).exists(), "{path} is the engine's alone");
    }
    let proof: Value = serde_json::from_str(&repo.run_file("proof.json")).unwrap();
    assert_eq!(
        (&proof["place"], &proof["passed"], &proof["run_id"]),
        (&json!("clean checkout"), &json!(true), &json!(id))
    );
    let check = &proof["checks"][0];
    assert_eq!(
        (&check["name"], &check["exit_code"], &check["tree"]),
        (&json!("tests"), &json!(0), &proof["tree"])
    );
    assert!(check["command"].as_str().unwrap().contains(CHECK));
    // A file that the agent created isn't a protected path.
    assert!(!proof["protected"]["patterns"].as_array().unwrap().contains(&json!("part.txt")), "{proof}");
}

#[test]
fn stdout_holds_only_the_documented_result_object() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub(WORKER, CHECK);
    let documented: BTreeSet<&str> = "success reason run_id run_dir workspace iterations cost_usd cost_basis tokens elapsed_seconds summary level difference watched branch ref pr_url files_changed error".split(' ').collect();
    let keys = |done: &ralph_loop_testkit::Finished| {
        assert_eq!(done.stdout.lines().count(), 1, "{}", done.stdout);
        done.json().as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>()
    };
    let done = repo.run(&[]).exits(0);
    assert_eq!(keys(&done), documented.iter().map(|k| (*k).to_owned()).collect());
    assert_eq!(done.json()["error"], Value::Null);
    std::fs::remove_file(repo.dir.join("part.txt")).unwrap();
    let failed = repo.run(&["--max-iterations", "1", "--verify", "false"]).exits(1);
    assert_eq!(keys(&failed), documented.iter().map(|k| (*k).to_owned()).collect());
    for key in ["code", "message", "hint", "recoverable"] {
        assert!(!failed.json()["error"][key].is_null(), "{key}");
    }
    let refused = repo.run(&["--prompt", "missing.md"]).exits(2);
    assert_eq!(keys(&refused), documented.iter().map(|k| (*k).to_owned()).collect());
    std::fs::remove_file(repo.dir.join("part.txt")).unwrap();
    assert!(repo.ralph(&["run", "--isolation", "none"]).exits(0).stdout.is_empty(), "people read stderr");
}

#[test]
fn two_agents_take_turns_and_priority_keeps_the_first() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agents =
        [repo.agent("one", "echo 1 >> log.txt; echo ok"), repo.agent("two", "echo 2 >> log.txt; echo ok")];
    repo.configure(&agents, "false", &json!({"max_iterations": 4}));
    repo.run(&[]).exits(1);
    let who = || {
        repo.events_named("iteration_started")
            .iter()
            .map(|e| e["agent"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(who(), ["one", "two", "one", "two"]);
    assert!(repo.read(".ralph/changelog/two.md").contains("iteration 4"));
    repo.configure(&agents, "false", &json!({"max_iterations": 3, "modal_selection": "priority"}));
    repo.run(&[]).exits(1);
    assert_eq!(who(), ["one", "one", "one"]);
    repo.run(&["--agents", "two", "--max-iterations", "1"]).exits(1);
    assert_eq!(who(), ["two"]);
}

#[test]
fn prompt_modes_and_turn_variables_reach_each_session() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let mut agents = vec![
        repo.agent("stdin", "echo x > scratch.txt; grep -c 'Write `part.txt`' || exit 9"),
        repo.agent("arg", "printf '%s' \"$1\" | grep -c 'Write `part.txt`' || exit 9"),
        repo.agent(
            "file",
            "grep -c 'Write `part.txt`' \"$1\" || exit 9; [ \"$1\" = \"$RALPH_PROMPT_FILE\" ] || exit 8",
        ),
    ];
    agents[1]["prompt_mode"] = json!("arg");
    agents[2]["prompt_mode"] = json!("file");
    repo.configure(&agents, "false", &json!({"max_iterations": 3}));
    repo.run(&[]).exits(1);
    let ends: Vec<Value> =
        repo.events_named("session_ended").iter().map(|e| e["end"]["how"].clone()).collect();
    assert_eq!(ends, ["completed", "completed", "completed"], "{:?}", repo.events_named("session_ended"));
}

#[test]
fn rising_pass_count_of_an_unknown_script_is_not_stuck() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agent = repo.agent("one", "echo line $RALPH_ITERATION >> part.txt; echo 'Did the next one.'");
    let check = "n=$(wc -l < part.txt); echo \"$n/10 cases ok\"; test $n -ge 10";
    repo.configure(&[agent], check, &json!({"completion": "checks", "max_iterations": 12}));
    repo.run(&[]).exits(0);
    let kinds = repo.kinds();
    assert!(!kinds.contains(&"stuck".to_owned()) && !kinds.contains(&"gutter".to_owned()), "{kinds:?}");
}

#[test]
fn missing_machine_tools_are_reported_then_ask_the_user() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agent = repo.agent("one", "echo $RALPH_ITERATION > part$RALPH_ITERATION.txt; echo 'Tried.'");
    repo.configure(&[agent], "frobnicate-tests --all", &json!({"max_iterations": 12}));
    let run = repo.run(&[]).exits(3).json();
    assert_eq!(run["iterations"], 1, "{run}");
    let kinds = repo.kinds();
    let notice = kinds.iter().position(|kind| kind == "notice").unwrap();
    assert!(notice < kinds.iter().position(|kind| kind == "iteration_started").unwrap(), "{kinds:?}");
    let asked = repo.events_named("needs_human")[0]["message"].as_str().unwrap().to_owned();
    assert!(asked.contains("`frobnicate-tests` is not installed"), "{asked}");
}

#[test]
fn silent_session_with_changes_is_one_iteration() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agent = repo.agent("one", "echo $RALPH_ITERATION >> part.txt");
    repo.configure(&[agent], "test $(wc -l < part.txt) -ge 2", &json!({"completion": "checks"}));
    let run = repo.run(&[]).exits(0).json();
    assert_eq!((&run["iterations"], repo.events_named("session_ended").len()), (&json!(2), 2));
}

#[test]
fn run_ends_after_six_empty_answers() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.configure(&[repo.agent("one", "true")], "test -f part.txt", &json!({}));
    repo.run(&[]).exits(3);
    assert_eq!(repo.events_named("session_ended").len(), 6);
    let asked = repo.events_named("needs_human")[0]["message"].as_str().unwrap().to_owned();
    assert!(asked.contains("`ralph probe one`"), "{asked}");
}

#[test]
fn repeated_final_check_failure_is_detected() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agent = repo.agent("one", "echo $RALPH_ITERATION > part.txt; echo '<promise>COMPLETE</promise>'");
    let more = json!({"setup_commands": [["sh", "-c", "exit 3"]], "max_iterations": 20, "baseline": false});
    repo.configure(&[agent], "test -f part.txt", &more);
    let run = repo.run(&[]).exits(3).json();
    assert!(run["iterations"].as_u64().unwrap() <= 9, "{run}");
    assert!(repo.kinds().contains(&"gutter".to_owned()));
}

#[test]
fn failed_setup_is_reported_at_the_start_but_does_not_block() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agent = repo.agent("one", "echo x >> part.txt; echo '<promise>COMPLETE</promise>'");
    let ready = env.path("ready");
    let setup = format!("test -e {}", ready.display());
    let settings = json!({"setup_commands": [["sh", "-c", setup]], "max_iterations": 1});
    repo.configure(&[agent], "test -f part.txt", &settings);
    let run = repo.run(&[]).exits(1).json();
    assert!(
        run["summary"].as_str().unwrap().contains("failed at the start, so nothing could be proven"),
        "{run}"
    );
    let kinds = repo.kinds();
    let notice = kinds.iter().position(|kind| kind == "notice").unwrap();
    assert!(notice < kinds.iter().position(|kind| kind == "iteration_started").unwrap(), "{kinds:?}");
    let told = repo.events_named("notice")[0]["message"].as_str().unwrap().to_owned();
    assert!(
        told.starts_with("warning: the setup command `sh -c") && told.contains("correct `setup_commands`"),
        "{told}"
    );
    // Once it is fixed, the checks run on the original files again, so the work can show a difference.
    std::fs::write(&ready, "").unwrap();
    let run = repo.ralph(&["resume", "--max-iterations", "3", "--json"]).exits(0).json();
    assert_eq!(run["level"], "independent", "{run}");
}

#[test]
fn unknown_model_ends_the_agents_turns() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agent = repo.agent("one", "echo \"There's an issue with the selected model (x)\" >&2; exit 1");
    repo.configure(&[agent], "test -f part.txt", &json!({}));
    let run = repo.run(&[]);
    let told = run.json();
    assert!(told["summary"].as_str().unwrap().contains("issue with the selected model"), "{told}");
    assert_eq!(repo.events_named("session_ended").len(), 1, "{told}");
}

#[test]
fn metric_ends_at_its_target_with_the_best_files() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agent = repo.agent(
        "one",
        "case $RALPH_ITERATION in 1) echo 90;; 2) echo 120;; *) echo 70;; esac > speed.txt; echo ok",
    );
    repo.configure(
        &[agent],
        "echo p99 $(cat speed.txt) ms",
        &json!({
            "completion": "metric", "keep_best": true, "max_iterations": 5,
            "verifiers": [{"name": "tests", "command_argv": ["sh", "-c", "echo p99 $(cat speed.txt) ms"],
                "metric": {"pattern": "p99 ([0-9.]+)", "better": "lower", "target": 80}}],
        }),
    );
    let run = repo.run(&[]).exits(0).json();
    assert_eq!(run["iterations"], 3, "{run}");
    let back = repo.events_named("went_back");
    assert_eq!((back.len(), &back[0]["iteration"]), (1, &json!(2)), "{back:?}");
    assert!(repo.run_file("iterations/3/prompt.md").contains("The last change was taken back"));
}

#[test]
fn reviewer_changes_nothing_and_pipeline_is_not_stuck() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let builder = repo.agent("maker", "echo $RALPH_ITERATION >> part.txt; echo 'One more part.'");
    let reviewer = repo.agent("reader", "echo mine > part.txt; echo x > notes.rs; echo 'no findings'");
    let tester = repo.agent("tester", "echo 'nothing to add'");
    repo.configure(&[builder, reviewer, tester], "test $(wc -l < part.txt) -ge 4", &json!({
        "completion": "checks", "max_iterations": 12,
        "roles": [{"role": "builder", "agent": "maker"}, {"role": "reviewer", "agent": "reader"}, {"role": "tester", "agent": "tester"}],
    }));
    repo.run(&[]).exits(0);
    assert_eq!(repo.events_named("went_back").len(), 3);
    assert!(!repo.dir.join("notes.rs").exists());
    assert_eq!(repo.events_named("stuck").len(), 0, "{:?}", repo.events_named("stuck"));
}
