//! Steering a run from another process: every control is applied, journaled with its sender, and survives a dead driver.

use crate::RALPH;
use ralph_loop_testkit::env::{is_alive, until};
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::{Value, json};
use std::process::Child;

const RUN: &[&str] = &["run", "--isolation", "none", "--json"];

/// Each session writes `step<N>.txt` and its model, then waits for `go<N>` outside the repo; from the third on it promises.
const AGENT: &str = r#"
here=$(dirname "$0")
echo "step $RALPH_ITERATION" > step$RALPH_ITERATION.txt
echo "$RALPH_MODEL" > "$here/model$RALPH_ITERATION"
setsid sh -c 'trap "" TERM HUP; echo $$ >> "$0"; exec sleep 600' "$here/pids" </dev/null >/dev/null 2>&1 &
while [ ! -s "$here/pids" ]; do sleep 0.01; done
echo "$RALPH_AGENT" > "$here/at$RALPH_ITERATION-$RALPH_ATTEMPT"
while [ ! -e "$here/go$RALPH_ITERATION" ]; do sleep 0.02; done
echo "did step $RALPH_ITERATION"
[ $RALPH_ITERATION -lt 3 ] || echo '<promise>COMPLETE</promise>'
"#;

struct Stage<'a> {
    env: &'a TestEnv,
    repo: TestRepo<'a>,
}

impl<'a> Stage<'a> {
    fn new(env: &'a TestEnv) -> Self {
        let repo = TestRepo::with_task(env);
        repo.configure(
            &[repo.agent("one", AGENT), repo.agent("two", AGENT)],
            "test -f step3.txt",
            &json!({"max_iterations": 6}),
        );
        Self { env, repo }
    }
    /// Starts a run and waits until session `n` works.
    fn start(&self) -> Child {
        let child = self.env.spawn(&self.repo.dir, RUN);
        self.at(1, 1);
        child
    }
    /// Waits until this attempt of session `n` works; returns its agent.
    fn at(&self, n: u32, attempt: u32) -> String {
        let path = self.env.path(&format!("at{n}-{attempt}"));
        until(&format!("session {n}, try {attempt}"), || {
            std::fs::read_to_string(&path).ok().filter(|t| t.ends_with('\n'))
        })
        .trim()
        .to_owned()
    }
    /// Lets sessions end.
    fn go(&self, numbers: &[u32]) {
        for n in numbers {
            std::fs::write(self.env.path(&format!("go{n}")), "").unwrap();
        }
    }
    fn has(&self, kind: &str) {
        until(kind, || self.repo.kinds().iter().any(|k| k == kind).then_some(()));
    }
    fn signal(&self, pid: u32, signal: &str) {
        TestEnv::finish(self.env.command("kill", &self.repo.dir).args([signal, &pid.to_string()])).exits(0);
    }
    fn assert_nothing_survives(&self) {
        let pids = std::fs::read_to_string(self.env.path("pids")).unwrap();
        for pid in pids.lines().map(|p| p.parse().unwrap()) {
            until(&format!("the end of {pid}"), || (!is_alive(pid)).then_some(()));
        }
    }
    /// A run that was killed in its first session.
    fn dead(&self) -> String {
        let child = self.start();
        self.signal(child.id(), "-9");
        assert_eq!(TestEnv::wait(child).code, None);
        self.assert_nothing_survives();
        self.repo.latest()
    }
    fn prompt(&self, n: u32) -> String {
        self.repo.run_file(&format!("iterations/{n}/prompt.md"))
    }
}

fn ended(child: Child, code: i32) -> Value {
    TestEnv::wait(child).exits(code).json()
}

#[test]
fn pause_takes_effect_after_the_session_and_resume_continues() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let child = stage.start();
    let sent = stage.repo.ralph(&["pause", "--json"]).exits(0);
    assert_eq!((&sent.json()["sent"], &sent.json()["taken"]), (&json!("pause"), &json!(true)));
    stage.go(&[1, 2, 3]);
    stage.has("wait_started");
    let control = &stage.repo.events_named("control_received")[0];
    assert_eq!((&control["control"], &control["from"]), (&json!("pause"), &json!("tester via cli")));
    let status = stage.repo.ralph(&["status", "--json"]).exits(0);
    assert!(status.stdout.contains("\"paused\""), "{}", status.stdout);
    assert_eq!(stage.repo.verdicts().len(), 1);
    stage.repo.ralph(&["resume"]).exits(0);
    let run = ended(child, 0);
    assert_eq!((&run["iterations"], &run["success"]), (&json!(3), &json!(true)));
    stage.assert_nothing_survives();
}

#[test]
fn stop_ends_the_run_after_the_session_and_keeps_its_work() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let child = stage.start();
    stage.repo.ralph(&["stop"]).exits(0);
    assert!(stage.repo.verdicts().is_empty(), "the session continues");
    stage.go(&[1]);
    let run = ended(child, 1);
    assert_eq!(
        (&run["reason"], &run["iterations"], &run["error"]),
        (&json!("stopped"), &json!(1), &Value::Null)
    );
    assert_eq!(stage.repo.git(&["show", &format!("{}:step1.txt", run["ref"].as_str().unwrap())]), "step 1");
}

#[test]
fn cancel_ends_the_run_at_once_and_keeps_partial_work() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let child = stage.start();
    let sent = stage.repo.ralph(&["cancel", "--json"]).exits(0).json();
    assert_eq!(sent["ended"], true);
    let run = ended(child, 130);
    assert_eq!((&run["reason"], &run["success"]), (&json!("cancelled"), &json!(false)));
    stage.assert_nothing_survives();
    let work = format!("refs/ralph/{}/work", run["run_id"].as_str().unwrap());
    assert_eq!(stage.repo.git(&["show", &format!("{work}:step1.txt")]), "step 1");
    assert_eq!(run["ref"], work);
    assert!(!stage.repo.dir.join(".ralph/active.json").exists());
    let refused = stage.repo.ralph(&["resume"]).exits(2);
    assert!(refused.stderr.contains("is over") && refused.stderr.contains("next:"), "{}", refused.stderr);
    stage.repo.ralph(&["pause"]).exits(2);
}

/// Ctrl-C, a closed terminal and SIGTERM suspend a run, even repeatedly; it resumes with its counts.
#[test]
fn signals_suspend_a_run_and_resume_continues_it() {
    for (signal, times) in [("-INT", 1), ("-TERM", 1), ("-HUP", 1), ("-INT", 3), ("-TERM", 5)] {
        let env = TestEnv::new(RALPH);
        let stage = Stage::new(&env);
        let child = stage.start();
        stage.go(&[1]);
        stage.at(2, 1);
        for _ in 0..times {
            stage.signal(child.id(), signal);
        }
        let run = ended(child, 130);
        assert_eq!((&run["reason"], &run["error"]), (&json!("suspended"), &Value::Null), "{signal}");
        assert!(run["summary"].as_str().unwrap().contains("ralph resume"), "{run}");
        stage.assert_nothing_survives();
        assert!(!stage.repo.dir.join(".ralph/active.json").exists());
        let status = stage.repo.ralph(&["status", "--json"]).exits(0).json();
        assert_eq!((&status["status"], &status["finished"]), (&json!("paused"), &Value::Null), "{status}");
        let listed = stage.repo.ralph(&["list"]).exits(0);
        assert!(listed.stdout.contains("paused"), "{}", listed.stdout);
        let resumed = env.spawn(&stage.repo.dir, &["resume", "--json"]);
        stage.at(2, 2);
        stage.go(&[2, 3]);
        let run = ended(resumed, 0);
        assert_eq!((&run["iterations"], &run["success"]), (&json!(3), &json!(true)), "{signal}");
        let ends = stage.repo.events_named("session_ended");
        assert_eq!(ends[1]["end"]["how"], "stopped", "{signal}");
        assert_eq!(stage.repo.events_named("suspended").len(), 1, "{signal}");
        assert_eq!(
            stage.repo.events_named("iteration_voided").len(),
            1,
            "the interrupted session isn't an iteration"
        );
    }
}

#[test]
fn run_over_budget_continues_with_a_larger_budget() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    stage.go(&[1, 2, 3]);
    let run =
        stage.repo.ralph(&["run", "--isolation", "none", "--json", "--max-iterations", "1"]).exits(1).json();
    assert_eq!(run["reason"], "max_iterations");
    let id = run["run_id"].as_str().unwrap();
    let refused = stage.repo.ralph(&["resume"]).exits(2);
    assert!(
        refused.stderr.contains(&format!("`ralph resume {id} --max-iterations N`")),
        "{}",
        refused.stderr
    );
    let refused = stage.repo.ralph(&["resume", "--max-iterations", "1"]).exits(2);
    assert!(
        refused.stderr.contains("1 iteration") && refused.stderr.contains("more than that"),
        "{}",
        refused.stderr
    );
    stage.repo.ralph(&["resume", "--max-seconds", "9000"]).exits(2);
    let run = stage.repo.ralph(&["resume", "--json", "--max-iterations", "2"]).exits(1).json();
    assert_eq!((&run["reason"], &run["iterations"]), (&json!("max_iterations"), &json!(2)));
    let run = stage.repo.ralph(&["run", "--resume", "--json", "--max-iterations", "5"]).exits(0).json();
    assert_eq!((&run["success"], &run["iterations"], &run["run_id"]), (&json!(true), &json!(3), &json!(id)));
    let refused = stage.repo.ralph(&["resume", "--max-iterations", "50"]).exits(2);
    assert!(refused.stderr.contains("is over"), "{}", refused.stderr);
}

/// The agent's copy of the tree outlives another run in the same folder.
#[test]
fn run_over_budget_continues_after_another_run_in_its_folder() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agent = repo.agent("stub", "cat > /dev/null; echo \"$RALPH_ITERATION\" >> lines.txt; echo did it; [ $(wc -l < lines.txt) -lt 3 ] || echo '<promise>COMPLETE</promise>'");
    repo.configure(&[agent], "test $(wc -l < lines.txt) -ge 3", &json!({}));
    let first = repo.ralph(&["run", "--json", "--max-iterations", "1"]);
    if first.code == Some(4) {
        ralph_loop_testkit::skip(&first.stderr);
        return;
    }
    let first = first.exits(1).json()["run_id"].as_str().unwrap().to_owned();
    let hint = repo.ralph(&[]).exits(0).stdout;
    assert!(hint.contains(&format!("`ralph resume {first} --max-iterations N`")), "{hint}");
    repo.ralph(&["run", "--json", "--max-iterations", "1"]).exits(1);
    let run = repo.ralph(&["resume", &first, "--json", "--max-iterations", "6"]).exits(0).json();
    assert_eq!((&run["success"], &run["run_id"]), (&json!(true), &json!(first)));
}

#[test]
fn run_waiting_for_approval_can_be_ended() {
    for (command, reason) in [("cancel", "cancelled"), ("stop", "stopped")] {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::with_task(&env);
        repo.stub("echo '{}' > .ralph/config.json; echo did it", "true");
        repo.run(&[]).exits(3);
        repo.ralph(&[command]).exits(0);
        assert_eq!(repo.events_named("finished")[0]["reason"], reason);
        let over = repo.ralph(&["resume"]).exits(2);
        assert!(over.stderr.contains("is over"), "{}", over.stderr);
    }
}

/// Plain `ralph` prints the same as `status`, also for a killed run.
#[test]
fn plain_ralph_and_status_print_the_same() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let id = stage.dead();
    // The lock is free once all of the run's processes are gone.
    let status = until("the end of the lock", || {
        let status = stage.repo.ralph(&["status", "--json"]).exits(0).json();
        (status["driven"] == false).then_some(status)
    });
    let plain = stage.repo.ralph(&["--json"]).exits(0).json();
    let (word, at) = (status["status"].as_str().unwrap(), &status["iteration"]);
    assert_eq!(word, "interrupted");
    assert_eq!(plain["stands"], format!("run {id}: {word}, iteration {at} of 6"));
    assert_eq!(plain["next"], format!("not running; run `ralph resume {id}` to continue it"));
    // It has the whole view.
    for key in ["criteria", "budgets", "agents", "history", "spent", "orphaned", "origin", "created_at"] {
        assert!(!status[key].is_null(), "{key}: {status}");
    }
}

#[test]
fn the_limits_of_a_living_run_can_be_changed() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let child = stage.start();
    stage.repo.ralph(&["resume", "--max-iterations", "1"]).exits(0);
    stage.has("control_received");
    stage.go(&[1, 2, 3]);
    let run = ended(child, 1);
    assert_eq!((&run["reason"], &run["iterations"]), (&json!("max_iterations"), &json!(1)));
}

#[test]
fn rotate_replaces_the_session() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let child = stage.start();
    stage.repo.ralph(&["rotate"]).exits(0);
    assert_eq!(stage.at(2, 1), "two");
    stage.go(&[2, 3]);
    ended(child, 0);
    let end = &stage.repo.events_named("session_ended")[0]["end"];
    assert_eq!((&end["how"], &end["cause"]), (&json!("stopped"), &json!("rotated")));
    stage.assert_nothing_survives();
}

#[test]
fn skip_and_cooldown_exclude_an_agent() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let child = stage.start();
    stage.repo.ralph(&["skip"]).exits(0);
    assert_eq!(stage.at(1, 2), "two", "the session did not count");
    stage.repo.ralph(&["skip", "--agent", "one"]).exits(0);
    stage.go(&[1]);
    assert_eq!(stage.at(2, 1), "two", "skipped for one turn");
    stage.repo.ralph(&["cooldown", "one", "--seconds", "600"]).exits(0);
    // The command ends when the control is journaled; the file for users follows.
    let path = stage.repo.dir.join(".ralph/cooldowns.json");
    let cooldowns: Value = until("the cooldown", || {
        let text = std::fs::read_to_string(&path).ok().filter(|text| text.contains("\"one\""))?;
        Some(serde_json::from_str(&text).unwrap())
    });
    assert!(cooldowns["one"]["reason"].as_str().unwrap().contains("tester"), "{cooldowns}");
    stage.go(&[2]);
    assert_eq!(stage.at(3, 1), "two");
    stage.repo.ralph(&["cooldown", "two", "--seconds", "600"]).exits(0);
    stage.has("wait_started");
    stage.repo.ralph(&["cooldown", "one", "--clear"]).exits(0);
    assert_eq!(stage.at(3, 2), "one", "its rest is over");
    stage.go(&[3]);
    assert_eq!(ended(child, 0)["iterations"], 3);
    assert_eq!(
        serde_json::from_str::<Value>(&stage.repo.read(".ralph/cooldowns.json")).unwrap().get("one"),
        None
    );
}

#[test]
fn model_override_lasts_one_session_or_always() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let child = stage.start();
    stage.repo.ralph(&["model", "big-1", "--agent", "two"]).exits(0);
    stage.go(&[1, 2, 3]);
    ended(child, 0);
    let model = |n: u32| std::fs::read_to_string(env.path(&format!("model{n}"))).unwrap();
    assert_eq!([model(1), model(2), model(3)], ["\n", "big-1\n", "\n"]);
    assert_eq!(stage.repo.events_named("iteration_started")[1]["model"], "big-1");
}

/// `logs` and the run's screen show the controls for agents and models.
#[test]
fn models_and_skips_are_shown_with_agent_and_duration() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let child = stage.start();
    for args in [
        &["model", "big-1", "--agent", "two"][..],
        &["model", "big-2", "--always"],
        &["model", "--default"],
        &["skip", "--agent", "two"],
    ] {
        stage.repo.ralph(args).exits(0);
    }
    stage.go(&[1, 2, 3]);
    let run = TestEnv::wait(child).exits(0);
    let logs = stage.repo.ralph(&["logs"]).exits(0).stdout;
    for line in [
        "model from tester (cli): big-1 for two, for one iteration",
        "model from tester (cli): big-2, from now on",
        "model from tester (cli): the configured one",
        "skip from tester (cli): two",
    ] {
        assert!(logs.contains(line), "no `{line}`: {logs}\n{}", run.stderr);
    }
    stage.assert_nothing_survives();
}

#[test]
fn permanent_model_override_lasts_until_reset() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let child = stage.start();
    stage.repo.ralph(&["model", "--always"]).exits(2);
    stage.repo.ralph(&["model", "big-1", "--always"]).exits(0);
    stage.repo.ralph(&["model", "small-2", "--agent", "two"]).exits(0);
    stage.go(&[1, 2]);
    stage.at(3, 1);
    stage.go(&[3]);
    ended(child, 0);
    let model = |n: u32| std::fs::read_to_string(env.path(&format!("model{n}"))).unwrap();
    assert_eq!([model(1), model(2), model(3)], ["\n", "small-2\n", "big-1\n"]);
}

#[test]
fn notes_guardrails_and_nudges_reach_the_prompts_and_their_files() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let child = stage.start();
    stage.repo.ralph(&["note", "the database is read-only"]).exits(0);
    stage.repo.ralph(&["guardrail", "never edit generated files"]).exits(0);
    stage.repo.ralph(&["note", "  "]).exits(2);
    stage.go(&[1, 2, 3]);
    ended(child, 0);
    let all = ["the database is read-only", "never edit generated files"];
    assert!(all.iter().all(|text| !stage.prompt(1).contains(text)));
    assert!(all.iter().all(|text| stage.prompt(2).contains(text)), "{}", stage.prompt(2));
    assert!(all.iter().all(|text| stage.prompt(3).contains(text)), "{}", stage.prompt(3));
    assert!(stage.repo.run_file("notes.md").contains(all[0]), "a note belongs to its run");
    assert!(!stage.repo.read(".ralph/notes.md").contains(all[0]));
    let guardrails = stage.repo.read(".ralph/guardrails.md");
    for part in ["trigger:", "instruction: never edit generated files", "added_after:", "evidence:"] {
        assert!(guardrails.contains(part), "{part} in {guardrails}");
    }
    // Guardrails persist across runs.
    for n in 1..=3 {
        std::fs::remove_file(stage.repo.dir.join(format!("step{n}.txt"))).unwrap();
    }
    stage.repo.ralph(RUN).exits(0);
    assert!(stage.prompt(1).contains(all[1]) && !stage.prompt(1).contains(all[0]), "{}", stage.prompt(1));
}

/// FAULT (open, `domain/src/state/fold.rs`): `iteration_ended` forgets every nudge, also one that came after the prompt of that
/// session was written, so no session ever reads it.
#[test]
fn nudge_reaches_only_the_next_prompt() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let child = stage.start();
    stage.repo.ralph(&["nudge", "look at the drain path"]).exits(0);
    stage.go(&[1, 2, 3]);
    ended(child, 0);
    let told: Vec<bool> = (1..=3).map(|n| stage.prompt(n).contains("look at the drain path")).collect();
    assert_eq!(told, [false, true, false]);
}

#[test]
fn edited_task_is_the_next_version_and_baseline() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let child = stage.start();
    stage.repo.write("PROMPT.md", "# Another task\n\nDo it differently.\n");
    stage.repo.ralph(&["edit", "--file", "PROMPT.md"]).exits(0);
    stage.go(&[1, 2, 3]);
    ended(child, 0);
    assert_eq!(stage.repo.events_named("spec_changed")[0]["version"], 2);
    assert!(stage.prompt(2).contains("Do it differently.") && !stage.prompt(2).contains("Write `part.txt`"));
    let spec = |name: &str| serde_json::from_str::<Value>(&stage.repo.run_file(name)).unwrap();
    assert_eq!(
        (&spec("spec.json")["spec_version"], &spec("spec.v1.json")["spec_version"]),
        (&json!(2), &json!(1))
    );
    assert!(spec("spec.json")["task"]["text"].as_str().unwrap().contains("differently"));
    assert!(spec("spec.v1.json")["task"]["text"].as_str().unwrap().contains("part.txt"));
    assert!(stage.repo.events_named("protected_changed").is_empty(), "a user edit isn't cheating");
    stage.repo.write("empty.md", "\n");
    stage.repo.ralph(&["edit", "--file", "empty.md"]).exits(2);
}

/// Two edits in one session: the second one counts, and each is a separate version.
#[test]
fn the_last_of_two_edits_in_one_session_counts() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let child = stage.start();
    for words in ["Do it once.", "Do it twice."] {
        stage.repo.write("new.md", &format!("# Another task\n\n{words}\n"));
        stage.repo.ralph(&["edit", "--file", "new.md"]).exits(0);
    }
    stage.go(&[1, 2, 3]);
    ended(child, 0);
    assert!(stage.prompt(2).contains("Do it twice.") && !stage.prompt(2).contains("Do it once."));
    assert!(stage.repo.read("PROMPT.md").contains("Do it twice."), "{}", stage.repo.read("PROMPT.md"));
    let spec: Value = serde_json::from_str(&stage.repo.run_file("spec.json")).unwrap();
    assert!(spec["task"]["text"].as_str().unwrap().contains("Do it twice."), "{spec}");
    assert!(stage.repo.events_named("protected_changed").is_empty());
}

/// A task edit changes the task's budgets.
#[test]
fn task_edit_changes_budgets() {
    let task = |most: u32| {
        format!(
            "---\nmax_iterations: {most}\nmax_wall_time_minutes: 10\nmax_cost_usd_estimate: 1\ntest_command: \"test -f step3.txt\"\n---\n\n# \
             Do the work\n\n## Success criteria\n- [ ] M1.1 it is there\n  - verify: `test -f step3.txt`\n- [ ] M1.2 so is the first\n  - verify: `test -f step1.txt`\n"
        )
    };
    // One iteration is too few, and six would be too many.
    for (first, then, code, iterations) in [(1, 6, 0, 3), (6, 1, 1, 1)] {
        let env = TestEnv::new(RALPH);
        let stage = Stage::new(&env);
        std::fs::remove_file(stage.repo.dir.join("PROMPT.md")).unwrap();
        stage.repo.write("ralph_task.md", &task(first));
        stage.repo.git(&["add", "-A"]);
        stage.repo.git(&["commit", "-q", "-m", "task"]);
        let child = stage.start();
        stage.repo.write("new.md", &task(then));
        stage.repo.ralph(&["edit", "--file", "new.md"]).exits(0);
        stage.go(&[1, 2, 3, 4, 5, 6]);
        let run = ended(child, code);
        assert_eq!(run["iterations"], json!(iterations), "{first} then {then}: {run}");
    }
}

/// Runs use the edited, uncommitted task in every workspace.
#[test]
fn uncommitted_task_edit_can_be_finished_in_every_workspace() {
    for place in ["here", "worktree", "clone"] {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::with_task(&env);
        repo.write("PROMPT.md", "# Do the work\n\nWrite `part.txt`, and say why.\n");
        repo.stub("echo part > part.txt; echo '<promise>COMPLETE</promise>'", "test -f part.txt");
        let source = repo.dir.display().to_string();
        let more: &[&str] = match place {
            "worktree" => &["--worktree"],
            "clone" => &["--clone", &source],
            _ => &[],
        };
        let done = repo.run(more);
        assert_eq!(
            (done.code, &done.json()["level"]),
            (Some(0), &json!("independent")),
            "{place}: {}",
            done.stderr
        );
        let dir = done.json()["run_dir"].as_str().unwrap().to_owned();
        let prompt = std::fs::read_to_string(format!("{dir}/iterations/1/prompt.md")).unwrap();
        assert!(prompt.contains("and say why"), "{place}: {prompt}");
        let journal = std::fs::read_to_string(format!("{dir}/events.jsonl")).unwrap();
        assert!(!journal.contains("protected_changed"), "{place}");
    }
}

#[test]
fn second_start_reports_the_lock_holder_and_its_start_time() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let child = stage.start();
    let run = stage.repo.latest();
    for args in [RUN, &["run", "--isolation", "none", "--json", "--new"]] {
        let second = stage.repo.ralph(args).exits(4);
        let told = [format!("process {}", child.id()), run.clone(), "next:".to_owned()];
        assert!(told.iter().all(|part| second.stderr.contains(part.as_str())), "{}", second.stderr);
        let since = second.stderr.split("since ").nth(1).and_then(|rest| rest.split([' ', ')']).next());
        let time = since.filter(|time| time.contains(':') && time.starts_with(|c: char| c.is_ascii_digit()));
        assert!(time.is_some(), "{}", second.stderr);
    }
    assert_eq!(stage.repo.kinds().iter().filter(|k| *k == "run_created").count(), 1);
    assert_eq!(stage.repo.latest(), run, "nothing of the second start is left");
    stage.go(&[1, 2, 3]);
    ended(child, 0);
}

#[test]
fn controls_for_a_dead_run_are_applied_on_resume() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let run = stage.dead();
    let kept = stage.repo.ralph(&["note", "from the grave", "--json"]).exits(0);
    assert_eq!(kept.json()["taken"], false);
    assert!(kept.stderr.contains(&format!("ralph resume {run}")), "{}", kept.stderr);
    stage.repo.ralph(&["nudge", "try the window"]).exits(0);
    stage.go(&[1, 2, 3]);
    let done = stage.repo.ralph(&["resume", "--json"]).exits(0);
    assert_eq!((&done.json()["run_id"], &done.json()["iterations"]), (&json!(run), &json!(3)));
    let first = stage.prompt(1);
    assert!(first.contains("from the grave") && first.contains("try the window"), "{first}");
    // The interrupted session counts for time, not as an iteration.
    let started: Vec<Value> =
        stage.repo.events_named("iteration_started").iter().map(|e| e["attempt"].clone()).collect();
    assert_eq!(started, [1, 2, 1, 1]);
}

#[test]
fn dead_run_continues_by_resume_flag_or_restart() {
    for args in [&["run", "--resume", "--json"][..], RUN, &["resume", "ID", "--json"]] {
        let env = TestEnv::new(RALPH);
        let stage = Stage::new(&env);
        let run = stage.dead();
        stage.go(&[1, 2, 3]);
        let args: Vec<&str> = args.iter().map(|a| if *a == "ID" { run.as_str() } else { a }).collect();
        let folder = if args[0] == "resume" { env.path("home") } else { stage.repo.dir.clone() };
        let done = env.ralph(&folder, &args).exits(0);
        assert_eq!(done.json()["run_id"], run.as_str(), "{args:?}");
        assert_eq!(stage.repo.events_named("driver_started").len(), 2);
        let over = stage.repo.ralph(&["run", "--resume"]).exits(2);
        assert!(over.stderr.contains("is over"), "{}", over.stderr);
    }
}

#[test]
fn dead_run_with_other_settings_stays_separate() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let run = stage.dead();
    let refused = stage.repo.ralph(&[RUN, &["--protect", "readme.txt"]].concat()).exits(2);
    assert!(refused.stderr.contains(&run) && refused.stderr.contains("--new"), "{}", refused.stderr);
    assert_eq!(stage.repo.latest(), run);
    // Cancelled without a driver, it ends at once.
    stage.repo.ralph(&["cancel"]).exits(0);
    let kinds = stage.repo.kinds();
    assert_eq!(kinds.last().unwrap(), "finished", "{kinds:?}");
    stage.go(&[1, 2, 3]);
    let done = stage.repo.ralph(RUN).exits(0);
    assert_ne!(done.json()["run_id"], run.as_str());
}

#[test]
fn invalid_controls_are_refused_with_a_hint() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let none = stage.repo.ralph(&["pause"]).exits(2);
    assert!(none.stderr.contains("no run in") && none.stderr.contains("next:"), "{}", none.stderr);
    stage.dead();
    let before = stage.repo.run_file("inbox.jsonl");
    let refused = |args: &[&str]| -> Finished { stage.repo.ralph(args).exits(2) };
    for args in
        [&["skip", "--agent", "three"][..], &["cooldown", "three"], &["model", "m", "--agent", "three"]]
    {
        let done = refused(args);
        assert!(
            done.stderr.contains("agent `three` isn't part of run")
                && done.stderr.contains("its agents: one, two"),
            "{}",
            done.stderr
        );
    }
    assert!(refused(&["stop", "nope-nope"]).stderr.contains("run `nope-nope` doesn't exist"));
    assert!(refused(&["stop", "../../etc"]).stderr.contains("is not a run id"));
    assert!(refused(&["edit", "--file", "missing.md"]).stderr.contains("missing.md"));
    assert_eq!(stage.repo.run_file("inbox.jsonl"), before, "nothing was sent");
    let json = refused(&["skip", "--agent", "three", "--json"]);
    assert_eq!(json.json()["error"]["code"], "INVALID_INPUT");
}

#[test]
fn control_file_is_removed_only_after_it_is_journaled() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let child = stage.start();
    // A stopped driver reads nothing: `ralph` must not report the control as applied.
    stage.signal(child.id(), "-STOP");
    let sent = stage.repo.ralph(&["note", "be careful", "--json"]).exits(0);
    assert_eq!(sent.json()["taken"], false);
    assert!(sent.stderr.contains("is busy and applies it"), "{}", sent.stderr);
    assert!(stage.repo.events_named("control_received").is_empty());
    stage.signal(child.id(), "-CONT");
    stage.has("control_received");
    assert_eq!(stage.repo.events_named("control_received")[0]["id"], sent.json()["id"]);
    stage.go(&[1, 2, 3]);
    ended(child, 0);
}

#[test]
fn live_output_of_another_process_is_shown() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let child = stage.start();
    stage.go(&[1]);
    stage.at(2, 1);
    let words = stage.repo.ralph(&["logs", "--live", "-n", "0"]).exits(0).stdout;
    assert!(words.contains("| did step 1"), "{words}");
    assert!(
        !stage.repo.ralph(&["logs", "-n", "0"]).exits(0).stdout.contains("| did step"),
        "only when asked for"
    );
    let raw = stage.repo.ralph(&["logs", "--live", "--json"]).exits(0).stdout;
    let lines: Vec<Value> = raw.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text = lines.iter().position(|l| l["kind"] == "text").unwrap();
    assert_eq!(lines[text]["iteration"], 1);
    let before = lines[..text].iter().rfind(|l| l.get("n").is_none()).unwrap();
    assert_eq!(before["seq"], lines[text]["seq"], "it comes after the event that it followed");
    stage.go(&[2, 3]);
    ended(child, 0);
}
