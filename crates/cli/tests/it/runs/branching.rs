//! Forks, races, metrics and replays.

use crate::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};

/// A repo whose agent writes `part.txt` in as many iterations as it takes to reach `work 3`.
fn counting(env: &TestEnv) -> TestRepo<'_> {
    let repo = TestRepo::with_task(env);
    let script = "n=$(( $(cat part.txt 2>/dev/null | wc -l) + 1 )); echo \"work $n\" >> part.txt; \
                  echo \"- did part $n\" >> .ralph/progress.md; echo \"Part $n.\"; echo '<promise>COMPLETE</promise>'";
    let other = "echo 'work 3' > part.txt; echo other >> part.txt; cat > seen.txt; echo '<promise>COMPLETE</promise>'";
    let agents = [repo.agent("stub", script), repo.agent("other", other)];
    repo.configure(&agents, "grep -q 'work 3' part.txt", &json!({ "agent_priority": ["stub"] }));
    repo
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[test]
fn fork_starts_from_an_iteration_with_another_agent() {
    let env = TestEnv::new(RALPH);
    let repo = counting(&env);
    let first = repo.run(&["--worktree"]).exits(0).json();
    assert_eq!(first["iterations"], 3, "{first}");
    let run = text(&first, "run_id").to_owned();
    let forked = repo
        .ralph(&["fork", &run, "--at", "1", "--agent", "other", "--guardrail", "Be brief.", "--json"])
        .exits(0)
        .json();
    assert_eq!((&forked["success"], &forked["iterations"]), (&json!(true), &json!(1)), "{forked}");
    assert_ne!(forked["run_id"], first["run_id"]);
    let branch = text(&forked, "branch");
    assert_eq!(repo.git(&["show", &format!("{branch}:part.txt")]), "work 3\nother");
    // It has the history up to the first iteration, without later ones.
    let subjects = repo.git(&["log", "--format=%b", branch]);
    assert!(
        subjects.contains(&format!("Ralph-Run: {run}")) && subjects.contains("Ralph-Iteration: 1"),
        "{subjects}"
    );
    assert_eq!(subjects.matches(&format!("Ralph-Run: {run}")).count(), 1, "{subjects}");
    let spec: Value = serde_json::from_str(
        &std::fs::read_to_string(repo.record(text(&forked, "run_id")).join("spec.json")).unwrap(),
    )
    .unwrap();
    assert_eq!(text(&spec["forked_from"], "run"), run);
    let prompt = repo.git(&["show", &format!("{branch}:seen.txt")]);
    for words in ["continues from iteration 1 of run", "did part 1", "Be brief."] {
        assert!(prompt.contains(words), "{words}: {prompt}");
    }
    assert!(!prompt.contains("did part 2"), "{prompt}");
    // The other run is unchanged.
    assert_eq!(
        repo.git(&["show", &format!("{}:part.txt", text(&first, "branch"))]),
        "work 1\nwork 2\nwork 3"
    );
    // `apply` takes the whole result, including the first iteration's part.
    let diff = repo.ralph(&["diff", text(&forked, "run_id")]).exits(0).stdout;
    assert!(diff.contains("+work 3") && diff.contains("+other"), "{diff}");
    repo.ralph(&["apply", text(&forked, "run_id")]).exits(0);
    assert_eq!(repo.read("part.txt"), "work 3\nother\n");
}

/// A run's changes to tests aren't part of the original state of its fork.
#[test]
fn fork_is_compared_with_the_original_start() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write("tests/test_part.sh", "grep -q right part.txt\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "tests"]);
    let cheat = "echo wrong > part.txt; echo 'grep -q wrong part.txt' > tests/test_part.sh; echo '<promise>COMPLETE</promise>'";
    let honest = "echo right > part.txt; echo '<promise>COMPLETE</promise>'";
    let agents = [repo.agent("cheat", cheat), repo.agent("honest", honest)];
    repo.configure(
        &agents,
        "sh tests/test_part.sh",
        &json!({ "agent_priority": ["cheat"], "max_iterations": 1 }),
    );
    let first = repo.ralph(&["run", "--isolation", "none", "--worktree", "--json"]).json();
    let level = |end: &Value| end["proof"]["level"].clone();
    assert_ne!(level(&first), json!("independent"), "{first}");
    let run = text(&first, "run_id").to_owned();
    let fork = repo.ralph(&["fork", &run, "--at", "1", "--json"]).json();
    assert_ne!((&fork["success"], level(&fork)), (&json!(true), json!("independent")), "{fork}");
    // The honest twin: with the original tests it is proven.
    let fork = repo.ralph(&["fork", &run, "--at", "0", "--agent", "honest", "--json"]).exits(0).json();
    let shown = repo.ralph(&["show", text(&fork, "run_id"), "--proof", "--json"]).exits(0).json();
    assert!(shown.to_string().contains("independent"), "{fork} {shown}");
}

#[test]
fn fork_of_a_missing_iteration_lists_the_existing_ones() {
    let env = TestEnv::new(RALPH);
    let repo = counting(&env);
    repo.ralph(&["fork"]).exits(2);
    repo.run(&["--worktree"]).exits(0);
    let refused = repo.ralph(&["fork", "--at", "9"]).exits(2);
    assert!(refused.stderr.contains("has no finished iteration 9"), "{}", refused.stderr);
    assert!(refused.stderr.contains("`--at 3` the last one"), "{}", refused.stderr);
    let start = repo.ralph(&["fork", "--at", "0", "--json"]).exits(0).json();
    assert_eq!(start["iterations"], 3, "{start}");
    let unknown = repo.ralph(&["fork", "--agent", "unknown"]).exits(2);
    assert!(unknown.stderr.contains("agent `unknown` doesn't exist"), "{}", unknown.stderr);
}

#[test]
fn replay_detects_an_edited_record() {
    let env = TestEnv::new(RALPH);
    let repo = counting(&env);
    let run = repo.run(&["--worktree"]).exits(0).json();
    let again = repo.ralph(&["replay", "--json"]).exits(0).json();
    assert_eq!(again["differences"], json!([]), "{again}");
    assert_eq!(again["prompts"], 3, "{again}");
    assert!(again["decisions"].as_u64().unwrap() >= 10, "{again}");
    let told = repo.ralph(&["replay"]).exits(0);
    assert!(told.stdout.contains("today's engine does the same"), "{}", told.stdout);
    // The rule differs from the run's original rule: the record shows it.
    let record = repo.record(text(&run, "run_id"));
    let spec = std::fs::read_to_string(record.join("spec.json")).unwrap();
    let edited = spec.replace("\"max_iterations\": 5", "\"max_iterations\": 2");
    assert_ne!(spec, edited);
    std::fs::write(record.join("spec.json"), edited).unwrap();
    let other = repo.ralph(&["replay", "--json"]).exits(1).json();
    let differences = other["differences"].as_array().unwrap();
    let decision = differences.iter().find(|one| one["what"] == "decision").unwrap();
    assert_eq!(text(decision, "recorded"), "iteration 3 (try 1) by stub");
    assert_eq!(text(decision, "today"), "end: max_iterations");
}

/// A repo in which `quick` does the work and `slow` waits until it is killed.
fn racing(env: &TestEnv) -> TestRepo<'_> {
    let repo = TestRepo::with_task(env);
    let quick = repo.agent("quick", "echo work > part.txt; echo '<promise>COMPLETE</promise>'");
    let slow = repo.agent("slow", "echo half > part.txt; sleep 600; echo '<promise>COMPLETE</promise>'");
    let wordy = repo.agent(
        "wordy",
        "for i in 1 2 3 4 5 6 7 8 9; do echo $i; done > more.txt; echo work > part.txt; echo '<promise>COMPLETE</promise>'",
    );
    let says = "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"<promise>COMPLETE</promise>\",\
                \"total_cost_usd\":0.57,\"modelUsage\":{\"m\":{\"inputTokens\":1,\"outputTokens\":1,\"costBasis\":\"list\"}},\
                \"usage\":{\"input_tokens\":1,\"output_tokens\":1}}";
    let mut priced = repo.agent("priced", &format!("sleep 1; echo work > part.txt; echo '{says}'"));
    priced["output_format"] = json!("claude-stream-json");
    repo.configure(&[quick, slow, wordy, priced], "grep -q work part.txt", &json!({}));
    repo
}

#[test]
fn first_proven_result_wins_a_race_and_ends_the_others() {
    let env = TestEnv::new(RALPH);
    let repo = racing(&env);
    let race = repo.run(&["--race", "slow,quick"]).exits(0).json();
    assert_eq!(text(&race["winner"], "name"), "quick", "{race}");
    let runs = race["runs"].as_array().unwrap();
    assert_eq!((text(&runs[0], "name"), &runs[0]["exit_code"]), ("slow", &json!(130)), "{race}");
    assert_eq!(text(&runs[0]["result"], "reason"), "cancelled", "{race}");
    assert_eq!(repo.read("part.txt"), "", "the user's own files are as they were");
    let lost = text(&runs[0]["result"], "summary");
    assert!(lost.starts_with("Ended by the race") && lost.contains("lost to quick"), "{lost}");
    let winner = text(&race["winner"], "run_id");
    let meant = repo.ralph(&["status", "--json"]).exits(0).json();
    assert_eq!(text(&meant, "run_id"), winner, "without a run id, the winner is meant");
    repo.ralph(&["apply"]).exits(0);
    assert_eq!(repo.read("part.txt"), "work\n");
}

#[test]
fn waiting_racer_loses_once_another_wins() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write("test_part.py", "assert open('part.txt').read() == 'work'\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "test"]);
    let promise = "echo '<promise>COMPLETE</promise>'";
    let asked = repo.agent(
        "asked",
        &format!("echo pass > test_part.py; touch {}; {promise}", env.path("asked").display()),
    );
    // The other one starts to win once this one has done its part.
    let good = repo.agent(
        "good",
        &format!("n=0; while [ ! -e {} ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n + 1)); done; sleep 3; printf work > part.txt; {promise}", env.path("asked").display()),
    );
    repo.configure(&[asked, good], "python3 test_part.py", &json!({}));
    let race = repo.run(&["--race", "asked,good"]).exits(0).json();
    assert_eq!(text(&race["winner"], "name"), "good", "{race}");
    let listed = repo.ralph(&["list", "--json"]).exits(0).json();
    let states: Vec<&str> = listed.as_array().unwrap().iter().map(|run| text(run, "status")).collect();
    assert!(!states.contains(&"needs_human") && states.len() == 2, "{listed}");
}

#[test]
fn race_reports_unknown_costs_and_that_it_pushes_nothing() {
    let env = TestEnv::new(RALPH);
    let repo = racing(&env);
    let remote = env.path("remote.git").display().to_string();
    repo.git(&["init", "--quiet", "--bare", &remote]);
    repo.git(&["remote", "add", "origin", &remote]);
    env.user_config(&json!({ "publish": "push" }));
    let by_cost = ["--best", "cost", "--yes", "--isolation", "none"];
    let race = repo.ralph(&[&["run", "--race", "quick,priced"][..], &by_cost].concat()).exits(0);
    for words in [
        "✓ priced wins",
        "done      quick, cost unknown: can't win, its cost isn't fully known; Proven",
        "done      priced, $0.57: Proven",
        "together: at least $0.57, $10 at most",
        "nothing was pushed",
    ] {
        assert!(race.stderr.contains(words), "{words}: {}", race.stderr);
    }
    let race = repo.ralph(&[&["run", "--race", "wordy,quick"][..], &by_cost].concat()).exits(1);
    assert!(
        race.stderr.contains("no winner: the cost of no proven result is fully known"),
        "{}",
        race.stderr
    );
    assert!(race.stderr.contains("next: choose a proven result; `ralph apply "), "{}", race.stderr);
    let logs = env.path("state/ralph/many");
    assert_eq!(std::fs::read_dir(logs).map_or(0, Iterator::count), 0, "no log is left behind");
}

#[test]
fn the_best_of_several_proven_results_wins() {
    let env = TestEnv::new(RALPH);
    let repo = racing(&env);
    let race = repo.run(&["--race", "wordy,quick", "--best", "diff"]).exits(0).json();
    assert_eq!(text(&race["winner"], "name"), "quick", "{race}");
    assert!(race["runs"].as_array().unwrap().iter().all(|run| run["exit_code"] == 0), "{race}");
    let same = repo.run(&["--race", "2", "--agents", "priced", "--best", "cost"]).exits(0).json();
    assert_eq!(text(&same["winner"], "name"), "#1", "{same}");
}

#[test]
fn impossible_race_is_refused_before_it_starts() {
    let env = TestEnv::new(RALPH);
    let repo = racing(&env);
    for (args, words) in [
        (&["--race", "quick"][..], "1 run cannot race"),
        (&["--race", "quick,quick"], "`quick` is named twice"),
        (&["--race", "quick,slow", "--best"], "no verifier has a `metric`"),
        (&["--race", "quick,slow", "--publish", "pr"], "a race can't publish its result"),
    ] {
        let refused = repo.run(args).exits(2);
        assert!(refused.stderr.contains(words), "{args:?}: {}", refused.stderr);
    }
    assert_eq!(repo.ralph(&["list", "--json"]).exits(0).json(), json!([]));
}

/// One `claude` that spends more than half of what each session is allowed, several times over.
#[test]
fn racers_share_one_budget() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let script = "echo more >> part.txt; allowed=0; while [ $# -gt 0 ]; do \
                  if [ \"$1\" = --max-budget-usd ]; then allowed=$2; fi; shift; done; \
                  spent=$(awk \"BEGIN { print $allowed * 0.7 }\"); \
                  echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"not yet\",\
                  \"total_cost_usd\":'$spent',\"modelUsage\":{\"m\":{\"inputTokens\":1,\"outputTokens\":1,\"costBasis\":\"list\"}},\
                  \"usage\":{\"input_tokens\":1,\"output_tokens\":1}}'";
    let mut agent = repo.agent("greedy", "true");
    agent["command_argv"] = json!([repo.script("claude", script)]);
    agent["output_format"] = json!("claude-stream-json");
    repo.configure(&[agent], "false", &json!({ "max_iterations": 4 }));
    let ended = repo.run(&["--race", "3", "--agents", "greedy", "--max-cost", "3", "--yes"]);
    let race = ended.json();
    let all = race["cost_usd"].as_f64().unwrap();
    assert!(all > 0.0 && all <= 3.0, "{race}");
    for run in race["runs"].as_array().unwrap() {
        assert!(run["cost_usd"].as_f64().unwrap() > 0.0, "each has a share: {race}");
    }
    let first = repo.ralph(&["status", text(&race["runs"][0], "run_id"), "--json"]).exits(0).json();
    assert_eq!(
        (&first["race"]["over"], &first["race"]["budget_usd"]),
        (&json!(true), &json!(3.0)),
        "{first}"
    );
    assert_eq!(first["race"]["runs"].as_array().unwrap().len(), 3, "{first}");
}

#[test]
fn detached_race_finishes_in_the_background() {
    let env = TestEnv::new(RALPH);
    let repo = racing(&env);
    let begun = repo.run(&["--race", "slow,quick", "--detach"]).exits(0).json();
    let race = text(&begun, "run_id").to_owned();
    let race = ralph_loop_testkit::env::until("the race is over", || {
        let seen = repo.ralph(&["status", &race, "--json"]).exits(0).json();
        (seen["race"]["over"] == true).then(|| seen["race"].clone())
    });
    assert_eq!(race["winner"], race["runs"][1]["run_id"], "{race}");
    assert_eq!((&race["runs"][0]["status"], &race["runs"][1]["proven"]), (&json!("stopped"), &json!(true)));
}

#[test]
fn metric_is_the_median_of_repeated_measurements() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    // Ten less each time, with a noise of one; every fifth run is an outlier.
    let agent = repo.agent(
        "stub",
        "echo \"$(( $(cat part.txt 2>/dev/null || echo 100) - 10 ))\" > part.txt; echo better",
    );
    let log = env.path("measured");
    let bench = format!(
        "n=$(cat '{0}' 2>/dev/null | wc -l); echo x >> '{0}'; v=$(cat part.txt); \
         case $((n % 5)) in 4) v=999;; *) v=$((v + n % 2));; esac; echo \"time $v ms\"",
        log.display()
    );
    repo.config(&json!({
        "agents": [agent],
        "verifiers": [{
            "name": "bench", "command_argv": ["sh", "-c", bench],
            "metric": { "pattern": "time ([0-9]+) ms", "better": "lower", "target": 75, "repeat": 5 },
        }],
        "completion": "metric", "keep_best": true, "max_iterations": 6, "tests": "free", "baseline": false,
    }));
    let run = repo.run(&["--worktree"]).exits(0).json();
    assert_eq!(run["iterations"], 3, "{run}");
    assert!(text(&run, "summary").contains("Best: bench 7"), "{run}");
    let status = repo.ralph(&["status", "--json"]).exits(0).json();
    let best = &status["best"];
    assert!(best["value"].as_f64().unwrap() <= 71.0 && best["target"] == 75.0, "{status}");
    assert!(best["noise"].as_f64().unwrap() <= 1.0, "one outlier in five runs isn't noise: {status}");
    let shown = repo.ralph(&["status"]).exits(0);
    assert!(shown.stdout.contains("best bench 7"), "{}", shown.stdout);
    let iteration = repo.record(text(&run, "run_id")).join("iterations/1");
    assert!(iteration.join("check-bench.5.log").is_file() && !iteration.join("check-bench.6.log").exists());
    let refused = repo.read(".ralph/config.json").replace("\"repeat\": 5", "\"repeat\": 99");
    repo.write(".ralph/config.json", &refused);
    let refused = repo.run(&["--new"]).exits(2);
    assert!(refused.stderr.contains("must be between 1 and 25"), "{}", refused.stderr);
}

#[test]
fn change_worse_than_the_baseline_is_reverted() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write("speed.txt", "100\n");
    repo.git(&["add", "speed.txt"]);
    repo.git(&["commit", "-qm", "The start"]);
    let agent = repo.agent(
        "stub",
        "cat speed.txt >> seen.txt; case $RALPH_ITERATION in 1) echo 120;; *) echo 70;; esac > speed.txt; echo ok",
    );
    repo.config(&json!({
        "agents": [agent],
        "verifiers": [{
            "name": "bench", "command_argv": ["sh", "-c", "echo p99 $(cat speed.txt) ms"],
            "metric": { "pattern": "p99 ([0-9.]+)", "better": "lower", "target": 80 },
        }],
        "completion": "metric", "keep_best": true, "max_iterations": 4, "tests": "free", "baseline": true,
    }));
    let run = repo.run(&[]).exits(0).json();
    assert_eq!(run["iterations"], 2, "{run}");
    let back = repo.events_named("went_back");
    assert_eq!((back.len(), &back[0]["iteration"]), (1, &json!(1)), "{back:?}");
    assert!(text(&back[0], "why").contains("100 was the best (at the start)"), "{back:?}");
    assert_eq!(repo.ralph(&["replay", "--json"]).exits(0).json()["differences"], json!([]));
}

/// From a benchmark to a proven result: the template is filled in, linted, and run to its target.
#[test]
fn metric_template_ends_at_its_target_with_the_best_files() {
    let env = TestEnv::new(RALPH);
    let files = [
        ("work.sh", "echo took 100 ms\n"),
        ("bench.sh", "out=\"$(sh work.sh)\" || exit 1\necho \"$out\"\n"),
        ("test.sh", "out=\"$(sh work.sh)\" || exit 1\ncase \"$out\" in took*) ;; *) exit 1 ;; esac\n"),
        ("Makefile", "test:\n\tsh test.sh\n"),
    ];
    let repo = TestRepo::new(&env, "repo", &files);
    let agent = repo.agent(
        "stub",
        "case $RALPH_ITERATION in 1) n=90;; 2) n=130;; *) n=70;; esac; cat work.sh >> seen.txt; echo \"echo took $n ms\" > work.sh; echo faster",
    );
    repo.config(&json!({ "agents": [agent] }));
    let told =
        repo.ralph(&["init", "--template", "metric", "--name", "Answer faster", "--json"]).exits(0).json();
    assert_eq!((&told["dialect"], &told["config_kept"]), (&json!("ralph_task.md"), &json!(true)), "{told}");
    assert!(told["next"].to_string().contains("under `metric` in `ralph_task.md`"), "{told}");
    let untouched = repo.ralph(&["lint"]).exits(2);
    let said = format!("{}{}", untouched.stdout, untouched.stderr);
    assert!(said.contains("which number to improve"), "{said}");
    let asked = "Describe in two to four sentences which number to improve, what to reach, and what you know about the causes.";
    let written = repo.read("ralph_task.md");
    assert!(written.contains("test_command: \"make test\"\n"), "{written}");
    assert!(written.contains("# Task: Answer faster\n"), "{written}");
    repo.write("ralph_task.md", &written.replace(asked, "`work.sh` takes 100 ms; 80 ms are enough."));
    let lint = repo.ralph(&["lint", "--json"]).exits(0).json();
    assert_eq!((&lint["errors"], &lint["warnings"]), (&json!(0), &json!(0)), "{lint}");
    repo.git(&["add", "ralph_task.md"]);
    repo.git(&["commit", "-qm", "The task"]);

    let run = repo.run(&["--publish", "none"]).exits(0).json();
    assert_eq!((&run["success"], &run["iterations"]), (&json!(true), &json!(3)), "{run}");
    assert!(text(&run, "summary").contains("Best: metric 70"), "{run}");
    assert_eq!(repo.events_named("went_back").len(), 1, "the second session made it worse");
    let status = repo.ralph(&["status", "--json"]).exits(0).json();
    assert_eq!(
        (&status["best"]["value"], &status["best"]["target"]),
        (&json!(70.0), &json!(80.0)),
        "{status}"
    );
    assert!(repo.read("ralph_task.md").contains("- [x] M1.1"), "the box is ticked by the engine");
}
