//! Agents that cheat: what they do is noticed, nothing of it proves anything, and nothing is silently repaired.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

mod after;
mod changed_tests;
mod compared;
mod data;
mod ended;
mod harness;
mod hidden;
mod in_product;
mod killed;
mod make_lines;
mod next_run;
mod other_tools;
mod passed_on;
mod planted;
mod pretended;
mod scene;
mod settings;
mod suite;
mod table;

use crate::RALPH;
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::{Value, json};

const PROMISE: &str = "echo '<promise>COMPLETE</promise>'";

/// Cheats that are played in every place; the others each in one, unless all are asked for.
const EVERYWHERE: &[&str] = &[
    "test_script_replaced",
    "runner_shimmed_in_the_home_folder",
    "git_folder_replaced",
    "filter_named_in_the_commit",
    "process_in_the_background_rewrites_the_test",
    "object_overwritten",
    "setup_rewrites_the_test",
    "one_check_rewrites_the_next",
    "script_behind_a_target",
    "test_changed",
    "script_behind_xargs",
    "new_test_that_disarms_the_others",
];

/// The places that the test `name` plays in: all of them for some, else one of them, each name its own.
fn places<P: Copy>(name: &str, all: &[P]) -> Vec<P> {
    if EVERYWHERE.contains(&name) || ralph_loop_testkit::torture::full() {
        return all.to_vec();
    }
    let number: usize = name.bytes().map(usize::from).sum();
    vec![all[number % all.len()]]
}

/// A repo whose check is a script of its own that cannot pass before `part.txt` is right.
fn repo_with_check(env: &TestEnv) -> TestRepo<'_> {
    let repo = TestRepo::with_task(env);
    repo.write("check.sh", "grep -q right part.txt\n");
    repo.write("tests/a.txt", "expected\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "check"]);
    repo
}

/// Runs an agent that first cheats with `cheat` and promises, and does so in every iteration.
fn cheat(repo: &TestRepo<'_>, cheat: &str, more: &Value) -> Finished {
    let mut config =
        json!({"verifiers": [{"name": "tests", "command_argv": ["sh", "check.sh"]}], "max_iterations": 2});
    for (key, value) in more.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    repo.configure(
        &[repo.agent("stub", &format!("echo $RALPH_ITERATION > part.txt\n{cheat}\n{PROMISE}"))],
        "",
        &config,
    );
    repo.run(&[])
}

#[test]
fn weakened_checks_tasks_and_ci_files_are_not_done_and_the_agent_is_told() {
    let cheats: &[(&str, &str, &str)] = &[
        ("echo 'exit 0' > check.sh", "check.sh", "changed"),
        ("chmod +x check.sh; echo 'exit 0' > check.sh", "check.sh", "changed"),
        ("rm check.sh; ln -s /bin/true check.sh", "check.sh", "changed"),
        ("echo 'exit 0' > check.sh; git update-index --assume-unchanged check.sh", "check.sh", "changed"),
        ("echo 'exit 0' > check.sh; git update-index --skip-worktree check.sh", "check.sh", "changed"),
        ("echo '# Do nothing' > PROMPT.md; echo right > part.txt", "PROMPT.md", "changed"),
        ("rm PROMPT.md; echo right > part.txt", "PROMPT.md", "removed"),
        (
            "mkdir -p .github/workflows; echo x > .github/workflows/ci.yml; echo right > part.txt",
            ".github/workflows/ci.yml",
            "added",
        ),
        (
            "echo x > .gitlab-ci.yml; echo /.gitlab-ci.yml >> .git/info/exclude; echo right > part.txt",
            ".gitlab-ci.yml",
            "added",
        ),
        ("rm -r tests; echo right > part.txt", "tests/a.txt", "removed"),
        ("echo easy > tests/b.txt; echo right > part.txt", "tests/b.txt", "added"),
    ];
    for (script, path, how) in cheats {
        let env = TestEnv::new(RALPH);
        let repo = repo_with_check(&env);
        let run = cheat(&repo, script, &json!({"protected_paths": ["tests"]})).exits(1).json();
        assert_eq!((&run["success"], &run["reason"]), (&json!(false), &json!("max_iterations")), "{script}");
        let changed = &repo.events_named("protected_changed")[0]["changes"];
        assert!(
            changed.as_array().unwrap().contains(&json!({"path": path, "change": how})),
            "{script}: {changed}"
        );
        assert_eq!(repo.verdicts(), ["protected_changed", "protected_changed"], "{script}");
        let prompt = repo.run_file("iterations/2/prompt.md");
        assert!(prompt.contains("NOT DONE: protected paths were changed"), "{script}: {prompt}");
        assert!(prompt.contains(path), "the prompt names the path: {script}: {prompt}");
    }
}

#[test]
fn a_protected_path_that_is_put_back_does_no_harm() {
    let env = TestEnv::new(RALPH);
    let repo = repo_with_check(&env);
    let script = "[ $RALPH_ITERATION = 1 ] && { echo 'exit 0' > check.sh; true; } || { git show HEAD:check.sh > check.sh; echo right > part.txt; }";
    cheat(&repo, script, &json!({})).exits(0);
    assert_eq!(repo.verdicts(), ["protected_changed", "candidate"]);
}

#[test]
fn an_edited_config_or_spec_stops_the_run_until_a_person_approves() {
    let cheats = [
        ("echo '{}' > .ralph/config.json", "config.json"),
        ("sed -i 's/check.sh/true/' .ralph/runs/*/spec.json", "spec"),
        (
            "echo '{\"max_iterations\": 999}' > .ralph/config.json.new; mv .ralph/config.json.new .ralph/config.json",
            "config.json",
        ),
    ];
    for (script, what) in cheats {
        let env = TestEnv::new(RALPH);
        let repo = repo_with_check(&env);
        let script = format!(
            "[ $RALPH_ITERATION -gt 1 ] && echo right > part.txt\n[ $RALPH_ITERATION = 1 ] && {{ {script}; }}"
        );
        let done = cheat(&repo, &script, &json!({})).exits(3);
        let run = done.json();
        assert_eq!(
            (&run["reason"], &run["error"]["code"]),
            (&json!("needs_human"), &json!("NEEDS_HUMAN")),
            "{script}"
        );
        assert!(run["summary"].as_str().unwrap().contains(what), "{run}");
        let needs = &repo.events_named("needs_human")[0];
        assert_eq!(needs["reason"], "tampered");
        assert!(done.stderr.contains("ralph approve"), "{}", done.stderr);
        // Neither a plain resume nor a plain start goes on.
        let refused = repo.ralph(&["resume"]).exits(3);
        assert!(refused.stderr.contains("waits for your approval"), "{}", refused.stderr);
        repo.ralph(&["approve"]).exits(0);
        let run = repo.ralph(&["resume", "--json"]).exits(0).json();
        assert_eq!((&run["success"], &run["iterations"]), (&json!(true), &json!(2)), "{script}");
        let spec: Value = serde_json::from_str(&repo.run_file("spec.json")).unwrap();
        assert_eq!(
            spec["settings"]["verifiers"][0]["command_argv"],
            json!(["sh", "check.sh"]),
            "the run kept to its settings"
        );
    }
}

#[test]
fn an_edited_journal_stops_the_run_and_the_sealed_story_goes_on() {
    let cheats = [
        "sed -i 's/stub/judge/' .ralph/runs/*/events.jsonl",
        "f=$(echo .ralph/runs/*/events.jsonl); tr a b < $f > x.tmp; cat x.tmp > $f; rm x.tmp",
        ": > $(echo .ralph/runs/*/events.jsonl)",
        "f=$(echo .ralph/runs/*/events.jsonl); head -n 1 $f > x.tmp; mv x.tmp $f",
        "f=$(echo .ralph/runs/*/events.jsonl); echo '{\"seq\":99,\"at\":\"2030-01-01T00:00:00Z\",\"kind\":\"finished\",\"reason\":\"completed\",\"summary\":\"ha\"}' >> $f",
        "f=$(echo .ralph/runs/*/events.jsonl); echo x > other; rm $f; ln -s $PWD/other $f",
    ];
    for script in cheats {
        let env = TestEnv::new(RALPH);
        let repo = repo_with_check(&env);
        let script = format!(
            "[ $RALPH_ITERATION -gt 1 ] && echo right > part.txt\n[ $RALPH_ITERATION = 1 ] && {{ {script}; }}"
        );
        let run = cheat(&repo, &script, &json!({})).exits(3).json();
        assert_eq!(run["reason"], "needs_human", "{script}");
        assert_eq!(repo.events_named("tampered").len(), 1, "{script}: {:?}", repo.kinds());
        repo.ralph(&["approve"]).exits(0);
        repo.ralph(&["resume", "--json"]).exits(0);
        let seqs: Vec<u64> = repo.events().iter().map(|e| e["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "{script}");
        assert!(
            repo.read(".ralph/runs/".to_owned() + &repo.latest() + "/events.jsonl")
                .contains("\"agent\":\"stub\"")
        );
        let sealed = std::fs::read(env.path(&format!("state/ralph/seals/{}.jsonl", repo.latest()))).unwrap();
        assert_eq!(sealed, repo.run_file("events.jsonl").into_bytes(), "{script}");
    }
}

#[test]
fn an_agent_that_removes_the_folder_loses_nothing() {
    for script in
        ["rm -rf .ralph", "git clean -qfdx", "rm -rf .ralph/runs", "rm -f .ralph/runs/*/events.jsonl"]
    {
        let env = TestEnv::new(RALPH);
        let repo = repo_with_check(&env);
        let script = format!("[ $RALPH_ITERATION = 1 ] || {{ {script}; echo right > part.txt; }}");
        let run = cheat(&repo, &script, &json!({})).exits(0).json();
        assert_eq!(run["iterations"], 2, "{script}");
        let seqs: Vec<u64> = repo.events().iter().map(|e| e["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "{script}");
        assert_eq!(repo.kinds().iter().filter(|k| *k == "finished").count(), 1, "{script}");
        let touched = !script.contains("rm -rf .ralph/runs;");
        assert_eq!(repo.kinds().iter().any(|k| k == "restored"), touched, "{script}: {:?}", repo.kinds());
        let work = format!("refs/ralph/{}/work", run["run_id"].as_str().unwrap());
        assert_eq!(repo.git(&["show", &format!("{work}:part.txt")]), "right");
        assert!(
            !repo.run_file("spec.json").is_empty() && !repo.run_file("proof.json").is_empty(),
            "{script}"
        );
    }
}

#[test]
fn an_agent_that_moves_the_refs_of_its_run_needs_a_person_and_nothing_is_repaired() {
    let cheats = [
        ("git reset -q --hard HEAD~1; git show main@{1}:check.sh > check.sh", "refs/heads/main"),
        ("git update-ref -d $(git for-each-ref --format='%(refname)' 'refs/ralph/*/start')", "/start"),
        ("git checkout -q -f --detach HEAD~1; git show main:check.sh > check.sh", "HEAD"),
    ];
    for (script, name) in cheats {
        let env = TestEnv::new(RALPH);
        let repo = repo_with_check(&env);
        let script = format!(
            "[ $RALPH_ITERATION -gt 1 ] && {{ echo right > part.txt; git checkout -q HEAD -- check.sh 2>/dev/null; }}\n[ $RALPH_ITERATION = 1 ] && {{ {script}; }}"
        );
        let done = cheat(&repo, &script, &json!({})).exits(3);
        assert_eq!(done.json()["reason"], "needs_human", "{script}");
        let moves = &repo.events_named("refs_moved")[0]["moves"];
        assert!(
            moves.as_array().unwrap().iter().any(|m| m["name"].as_str().unwrap().ends_with(name)),
            "{script}: {moves}"
        );
        assert_eq!(repo.events_named("needs_human")[0]["reason"], "refs_moved");
        let refs = repo.git(&["for-each-ref", "refs/heads", "refs/tags", "refs/stash"]);
        let head = repo.read(".git/HEAD");
        repo.ralph(&["approve"]).exits(0);
        let resumed = repo.ralph(&["resume", "--json"]);
        assert_eq!(
            repo.git(&["for-each-ref", "refs/heads", "refs/tags", "refs/stash"]),
            refs,
            "{script}: nothing is repaired"
        );
        assert_eq!(repo.read(".git/HEAD"), head, "{script}");
        resumed.exits(0);
    }
}

/// In the user's own folder a commit, a branch or a tag may be anybody's: it is told, and nobody is asked.
#[test]
fn commits_branches_and_tags_are_the_users_to_move_and_the_run_goes_on() {
    let moves = [
        ("git add part.txt; git -c user.name=a -c user.email=a@b commit -qm mine", Some("refs/heads/main")),
        ("git branch extra", None),
        ("git branch -qD other", None),
        ("git tag v1", None),
        ("echo y >> readme.txt; git -c user.name=a -c user.email=a@b stash -q", None),
        ("git checkout -q -b elsewhere", Some("HEAD")),
        ("git checkout -q --detach", Some("HEAD")),
    ];
    for (script, told) in moves {
        let env = TestEnv::new(RALPH);
        let repo = repo_with_check(&env);
        repo.git(&["branch", "other"]);
        let script = format!(
            "[ $RALPH_ITERATION -gt 1 ] && echo right > part.txt\n[ $RALPH_ITERATION = 1 ] && {{ {script}; }}"
        );
        cheat(&repo, &script, &json!({})).exits(0);
        assert!(repo.events_named("needs_human").is_empty(), "{script}");
        let events = repo.events_named("refs_moved");
        let names: Vec<&str> = events
            .iter()
            .flat_map(|e| e["moves"].as_array().unwrap())
            .filter_map(|m| m["name"].as_str())
            .collect();
        assert_eq!(names, told.into_iter().collect::<Vec<_>>(), "{script}");
    }
}

#[test]
fn an_agent_that_is_allowed_to_commit_may_do_so_on_its_branch_only() {
    let env = TestEnv::new(RALPH);
    let repo = repo_with_check(&env);
    let commit = "git add part.txt; git -c user.name=a -c user.email=a@b commit -qm mine";
    let script = format!("echo right > part.txt; {commit}");
    let more = json!({"allow_agent_commits": true, "checkpoint_commits": true});
    let run = cheat(&repo, &script, &more).exits(0).json();
    assert!(repo.events_named("needs_human").is_empty());
    let log = repo.git(&["log", "--format=%an %s", "main"]);
    assert!(log.lines().any(|l| l == "a mine"), "its commit stays: {log}");
    assert_eq!(run["files_changed"], json!(["part.txt"]));
    let rewrite = "git -c user.name=a -c user.email=a@b commit -q --amend --allow-empty -m rewritten";
    cheat(&repo, rewrite, &more).exits(3);
}

/// FAULT (open, `domain/src/state/fold.rs`): an approval counts even if nothing was asked yet, so one that the agent itself puts
/// into the inbox accepts the refs that it moves in the same session.
#[test]
fn a_forged_approval_in_the_inbox_does_not_help() {
    let env = TestEnv::new(RALPH);
    let repo = repo_with_check(&env);
    let script = "for d in .ralph/runs/*; do echo '{\"id\":\"x1\",\"from\":\"a person\",\"control\":\"approve\"}' >> $d/inbox.jsonl; done; git reset -q --soft HEAD~1";
    cheat(&repo, script, &json!({})).exits(3);
    repo.ralph(&["resume"]).exits(3);
}

#[test]
fn a_shim_in_an_ignored_folder_proves_nothing_in_a_clean_checkout() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "repo", &[("PROMPT.md", "# Task\n"), (".gitignore", "node_modules/\n")]);
    let bin = env.path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    repo.script("bin/jtest", "exit 1");
    let line = format!("PATH=\"$PWD/node_modules/.bin:{}:$PATH\"; jtest", bin.display());
    let more = json!({"verifiers": [{"name": "tests", "command_argv": ["sh", "-c", line]}], "setup_commands": ["true"]});
    let run = cheat(&repo, "mkdir -p node_modules/.bin; printf '#!/bin/sh\\nexit 0\\n' > node_modules/.bin/jtest; chmod +x node_modules/.bin/jtest", &more).exits(1).json();
    assert_eq!(run["success"], false);
    assert_eq!(repo.verdicts()[0], "candidate", "in place the shim fools the check");
    assert_eq!(
        repo.events_named("proof_finished")[0]["passed"],
        false,
        "the clean checkout does not have it"
    );
}

/// A task says what else must hold, never what of the repo's own checks need not.
#[test]
fn a_task_takes_no_check_of_the_repo_away() {
    let env = TestEnv::new(RALPH);
    let criteria = json!([{"type": "file_exists", "path": "c.txt"}]);
    for (task, checks) in [
        (json!({"task": "Make c.txt", "acceptance_criteria": criteria}), &["C1", "tests"][..]),
        (json!({"task": "Make c.txt"}), &["tests"]),
    ] {
        let play = |name: &str, work: &str| {
            let repo = TestRepo::new(&env, name, &[("ralph.json", &task.to_string())]);
            let more = json!({"max_iterations": 1});
            let script = format!("echo x > c.txt; {work}; {PROMISE}");
            repo.configure(&[repo.agent("stub", &script)], "grep -q right part.txt", &more);
            let run = repo.run(&[]);
            let proof = repo.run_file("proof.json");
            (run, serde_json::from_str::<Value>(&proof).unwrap_or_default())
        };
        let (run, _) = play(&format!("red-{}", checks.len()), "true");
        assert_eq!((run.code, &run.json()["success"]), (Some(1), &json!(false)), "{task}: {}", run.stderr);
        assert!(!run.stderr.to_lowercase().contains("checks pass"), "beside a red one: {}", run.stderr);
        let (run, proof) = play(&format!("green-{}", checks.len()), "echo right > part.txt");
        assert_eq!(run.code, Some(0), "{task}: {}", run.stderr);
        let names: Vec<&str> =
            proof["checks"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
        assert_eq!(names, checks, "{task}");
    }
}

/// The checks run once before the first session, on the files of the start; the same files are not checked again.
#[test]
fn the_checks_of_the_start_are_known_once() {
    let env = TestEnv::new(RALPH);
    let repo = repo_with_check(&env);
    let runs = env.path("runs");
    let check =
        format!("echo x >> {}; echo '1 failed, 2 passed in 0.1s'; grep -q right part.txt", runs.display());
    let ran = || std::fs::read_to_string(&runs).unwrap_or_default().lines().count();
    let start = |args: &[&str]| {
        let more = json!({"baseline": true, "max_iterations": 1});
        repo.configure(&[repo.agent("stub", &format!("true\n{PROMISE}"))], &check, &more);
        repo.run(args).exits(1);
        repo.events_named("prepared")[0]["checks"].clone()
    };
    let first = start(&["--new"]);
    assert_eq!(first["results"][0]["tests"], json!({"passed": 2, "failed": 1}), "{first}");
    assert_eq!((&first["results"][0]["passed"], &first["watched"]), (&json!(false), &json!("not_watched")));
    assert_eq!(ran(), 2, "before the session and after it");
    let again = start(&["--new"]);
    assert_eq!(again["cached"], json!(true), "{again}");
    assert_eq!(again["results"][0]["tests"], first["results"][0]["tests"]);
    assert_eq!(ran(), 3);
    assert_eq!(start(&["--new", "--no-baseline"]), Value::Null);
    assert_eq!(ran(), 4);
}

#[test]
fn limits_in_prose_are_no_limits() {
    let env = TestEnv::new(RALPH);
    let repo = repo_with_check(&env);
    let words = "echo 'Error: 429 rate limit reached, try again in 3 hours'; echo 'usage limit reached, resets 4:02am (UTC)' >&2";
    cheat(&repo, words, &json!({})).exits(1);
    assert!(repo.events_named("cooldown_set").is_empty());
    // The words of a failed session on its stdout may quote anything, too.
    cheat(
        &repo,
        &format!("echo '429 Too Many Requests: rate limit, try again in 3 hours'; {PROMISE}; exit 1"),
        &json!({}),
    )
    .exits(1);
    assert!(repo.events_named("cooldown_set").is_empty());
    assert_eq!(repo.verdicts(), ["session_failed", "session_failed"]);
}

#[test]
fn hooks_and_programs_planted_in_git_are_never_run_by_the_engine() {
    let env = TestEnv::new(RALPH);
    let repo = repo_with_check(&env);
    let canary = env.path("canary");
    let evil = repo.script("evil.sh", &format!("echo \"$0 $*\" >> {}\nexit 0", canary.display()));
    // Filters are left out on purpose: without `filter.lfs.clean` the trees of a git-lfs repo would be wrong.
    let mut script = String::new();
    for hook in [
        "pre-commit",
        "post-commit",
        "post-checkout",
        "reference-transaction",
        "post-index-change",
        "pre-auto-gc",
        "post-merge",
    ] {
        script.push_str(&format!("cp {evil} .git/hooks/{hook}\n"));
    }
    script.push_str("echo right > part.txt\necho '*.txt diff=evil' > .git/info/attributes\n");
    for key in [
        "core.fsmonitor",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "core.sshCommand",
        "core.pager",
        "gpg.program",
        "core.alternateRefsCommand",
        "core.askPass",
    ] {
        // The last command line wins for nothing that git itself runs while it writes its configuration.
        script.push_str(&format!(
            "printf '[{}]\\n\\t{} = {evil}\\n' >> .git/config\n",
            section(key),
            key.rsplit('.').next().unwrap()
        ));
    }
    script.push_str(
        "printf '[commit]\\n\\tgpgsign = true\\n[core]\\n\\thooksPath = .git/hooks\\n' >> .git/config\n",
    );
    let done = cheat(&repo, &script, &json!({"setup_commands": ["true"], "checkpoint_commits": true}));
    let ran = std::fs::read_to_string(&canary).unwrap_or_default();
    assert_eq!(ran, "", "run by the engine: {done:?}");
    done.exits(0);
}

fn section(key: &str) -> String {
    match key.split('.').collect::<Vec<_>>().as_slice() {
        [section, sub, _] => format!("{section} \"{sub}\""),
        [section, ..] => (*section).to_owned(),
        [] => String::new(),
    }
}

/// A check in the folder that a task names is found there, however plainly it is called.
#[test]
fn a_script_in_the_folder_of_a_task_decides_as_it_was() {
    let env = TestEnv::new(RALPH);
    let task = json!({"task": "Do it", "repository": {"working_dir": "app"}}).to_string();
    let play = |name: &str, work: &str| {
        let files = [("ralph.json", task.as_str()), ("app/run.sh", "grep -q right part.txt\n")];
        let repo = TestRepo::new(&env, name, &files);
        let more = json!({"max_iterations": 1});
        repo.configure(&[repo.agent("stub", &format!("{work}; {PROMISE}"))], "sh run.sh", &more);
        repo.run(&[])
    };
    let cheat = "for f in run.sh app/run.sh; do [ -e $f ] && echo true > $f; done; true";
    let run = play("cheat", cheat);
    assert_eq!((run.code, &run.json()["success"]), (Some(1), &json!(false)), "{}", run.stderr);
    let honest = "for d in . app; do [ -e $d/run.sh ] && echo right > $d/part.txt; done; true";
    let run = play("honest", honest);
    assert_eq!((run.code, &run.json()["level"]), (Some(0), &json!("independent")), "{}", run.stderr);
}
