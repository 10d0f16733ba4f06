//! Handover through the real binary: pushes, one pull request, checks, reviews, issues, and resuming on another machine.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

mod gates;

use crate::RALPH;
use ralph_loop_domain::ports::{CiState, Forge as _, NewPr, PrState, ReviewState};
use ralph_loop_forge::LocalForge;
use ralph_loop_protocol::id::Digest;
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::fake_github::FakeGitHub;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};

/// Session `n` writes part `n`; the third promises.
const PARTS: &str = r#"
i=$RALPH_ITERATION
echo "part $i" > part$i.txt
echo "wrote part $i"
if [ $i -ge 3 ]; then echo '<promise>COMPLETE</promise>'; fi
"#;
const CHECK: &str = "test -f part1.txt && test -f part2.txt && test -f part3.txt";

/// A pull request's text without the parts that differ between runs.
fn normalize(body: &str) -> String {
    let rules = [
        (r"[0-9]{8}-[0-9]{6}-[a-z0-9]{4}", "RUN"),
        (r"\b[0-9a-f]{12}\b", "DIGEST"),
        (r"\b[0-9a-f]{10}\b", "COMMIT"),
        (r"\b[0-9]+ m?s\b", "TIME"),
    ];
    rules.iter().fold(body.to_owned(), |text, (rule, word)| {
        regex_lite::Regex::new(rule).unwrap().replace_all(&text, *word).into_owned()
    })
}

struct World<'a> {
    repo: TestRepo<'a>,
    forge: LocalForge,
}

/// A repo with a local forge.
fn world<'a>(env: &'a TestEnv, agent: &str, check: &str, more: &Value) -> World<'a> {
    let repo = TestRepo::with_task(env);
    let folder = env.path("forge");
    let mut config = json!({ "publish": "pr", "poll_seconds": 0.05 });
    for (key, value) in more.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    // Whether and where results are pushed is the user's word.
    env.user_config(&json!({ "local_forge": folder, "publish": config["publish"].take() }));
    config.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    repo.configure(&[repo.agent("stub", agent)], check, &config);
    World { forge: LocalForge::open(&folder, &ralph_loop_testkit::vars()).unwrap(), repo }
}

impl World<'_> {
    fn remote(&self, args: &[&str]) -> String {
        let git = self.forge.root().join("repo.git").display().to_string();
        self.repo.git(&[&["--git-dir", &git], args].concat())
    }
}

#[test]
fn one_pull_request_serves_the_whole_run() {
    let env = TestEnv::new(RALPH);
    let world = world(
        &env,
        PARTS,
        CHECK,
        &json!({ "pr": { "labels": ["ralph"], "title_template": "[{{run_id}}] {{task_summary}}" } }),
    );
    let run = world.repo.run(&[]).exits(0).json();
    let id = run["run_id"].as_str().unwrap();
    let pr = world.forge.pr(1).unwrap();
    assert_eq!((pr.state, pr.draft, pr.base.as_str()), (PrState::Open, false, "main"));
    assert_eq!(pr.head, format!("ralph/{id}"));
    assert_eq!(pr.title, format!("[{id}] Do the work"));
    assert_eq!(run["pr_url"], pr.url);
    assert_eq!(world.forge.open_prs().unwrap().len(), 1);
    assert_eq!(world.forge.labels(1).unwrap(), ["ralph"]);
    // The pushed commit is exactly the proven one.
    let proof: Value = serde_json::from_str(&world.repo.run_file("proof.json")).unwrap();
    assert_eq!(pr.head_commit, proof["commit"].as_str().unwrap());
    assert!(
        pr.body.contains("**Proven, independent.**") && pr.body.contains(&pr.head_commit[..10]),
        "{}",
        pr.body
    );
    insta::assert_snapshot!("pr_proven", normalize(&pr.body));
    let why: Vec<Value> = world.repo.events_named("pr_written").iter().map(|e| e["why"].clone()).collect();
    assert_eq!(why, [json!("opened"), json!("proven")]);
    assert_eq!(world.repo.events_named("pushed").len(), 3);
    // The state is pushed, the initial snapshot isn't.
    let refs = world.remote(&["for-each-ref", "--format=%(refname)"]);
    assert!(refs.contains(&format!("refs/ralph/{id}/state")) && !refs.contains("/start"), "{refs}");
    let files = world.remote(&["ls-tree", "-r", "--name-only", &format!("refs/ralph/{id}/state")]);
    assert!(files.contains(&format!("runs/{id}/events.jsonl")), "{files}");
    // The commit has the proof status.
    let checks = world.forge.checks(&pr.head_commit).unwrap();
    assert_eq!(
        checks.iter().map(|c| (c.name.as_str(), c.state)).collect::<Vec<_>>(),
        [("ralph/proof", CiState::Passed)]
    );
}

/// The agent's text becomes the commit message; it must not decide whether the host checks the commit.
#[test]
fn agent_messages_cannot_skip_host_checks() {
    let env = TestEnv::new(RALPH);
    let agent = "echo work > part.txt; echo 'Wrote the part as asked [skip ci] for review [US-1].'; echo '<promise>COMPLETE</promise>'";
    let world = world(&env, agent, "test -f part.txt", &json!({}));
    world.repo.run(&[]).exits(0);
    let head = world.forge.pr(1).unwrap().head_commit;
    let message = world.remote(&["log", "-1", "--format=%B", &head]);
    assert!(!message.contains("[skip ci]") && message.contains("[US-1]"), "{message}");
}

#[test]
fn failed_run_leaves_a_draft_pull_request() {
    let env = TestEnv::new(RALPH);
    let world = world(&env, "date +%s%N > part.txt; echo tried", "false", &json!({ "max_iterations": 2 }));
    let run = world.repo.run(&[]).exits(1).json();
    let pr = world.forge.pr(1).unwrap();
    assert!(pr.draft && pr.state == PrState::Open);
    assert!(pr.body.starts_with("**Not finished.** The budget for iterations is used up"), "{}", pr.body);
    assert!(!pr.body.contains("**Proven"), "{}", pr.body);
    insta::assert_snapshot!("pr_stopped", normalize(&pr.body));
    assert_eq!(run["pr_url"], pr.url);
}

#[test]
fn result_is_published_once_after_the_run() {
    let env = TestEnv::new(RALPH);
    let agent = "echo work > part.txt; echo '<promise>COMPLETE</promise>'";
    let world = world(&env, agent, "test -f part.txt", &json!({ "publish": null }));
    let run = world.repo.run(&[]).exits(0).json();
    let id = run["run_id"].as_str().unwrap();
    assert_eq!((&run["pr_url"], world.forge.open_prs().unwrap().len()), (&Value::Null, 0));
    // The user keeps working in the folder.
    world.repo.write("mine.txt", "mine\n");

    let published =
        world.repo.ralph(&["--json", "publish", "--title", "Add the part", "--draft"]).exits(0).json();
    let pr = world.forge.pr(1).unwrap();
    assert_eq!((pr.title.as_str(), pr.draft, pr.head), ("Add the part", true, format!("ralph/{id}")));
    let proof: Value = serde_json::from_str(&world.repo.run_file("proof.json")).unwrap();
    assert_eq!(pr.head_commit, proof["commit"].as_str().unwrap());
    assert!(pr.body.starts_with("**Proven, independent.**"), "{}", pr.body);
    assert_eq!((published["pr_url"].as_str(), &published["reason"]), (Some(pr.url.as_str()), &run["reason"]));
    assert!(!world.remote(&["ls-tree", "--name-only", &pr.head_commit]).contains("mine.txt"));
    assert_eq!(world.repo.events_named("control_received").last().unwrap()["control"], "publish");

    // Again: the same pull request, not a second one.
    world.repo.ralph(&["publish", id, "--title", "Add the part"]).exits(0);
    assert_eq!(world.forge.open_prs().unwrap().len(), 1);
    assert_eq!(world.repo.events_named("session_ended").len(), 1);
}

#[test]
fn publish_takes_a_branch_and_refuses_runs_without_result() {
    let env = TestEnv::new(RALPH);
    let agent = "echo work > part.txt; echo '<promise>COMPLETE</promise>'";
    let world = world(&env, agent, "test -f part.txt", &json!({ "publish": null }));
    world.repo.run(&["--worktree"]).exits(0);
    world.repo.ralph(&["publish", "--push", "--branch", "parts/one"]).exits(0);
    let pushed = world.remote(&["rev-parse", "refs/heads/parts/one"]);
    assert_eq!(pushed.trim(), world.repo.events_named("published")[1]["commit"].as_str().unwrap());
    assert!(world.forge.open_prs().unwrap().is_empty());

    let alone = TestRepo::with_task(&env);
    alone.stub(agent, "test -f part.txt");
    env.user_config(&json!({}));
    alone.run(&[]).exits(0);
    let refused = alone.ralph(&["publish"]).exits(4);
    assert!(refused.stderr.contains("the repo has no remote `origin`"), "{}", refused.stderr);
    assert_eq!(alone.ralph(&["--json", "status"]).exits(0).json()["status"], "done");
}

#[test]
fn publishing_needs_a_request_and_a_host() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("echo work > part.txt; echo '<promise>COMPLETE</promise>'", "test -f part.txt");
    repo.run(&[]).exits(0);
    assert!(repo.events_named("pushed").is_empty());
    let refused = repo.run(&["--new", "--publish", "pr"]).exits(4);
    assert!(refused.stderr.contains("the repo has no remote `origin`"), "{}", refused.stderr);
    repo.git(&["remote", "add", "origin", "ssh://git@example.invalid/x.git"]);
    let refused = repo.run(&["--new", "--publish", "pr"]).exits(4);
    assert!(refused.stderr.contains("no known code host"), "{}", refused.stderr);
}

#[test]
fn a_plain_remote_takes_pushes() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let bare = env.path("bare.git");
    repo.git(&["init", "-q", "--bare", bare.to_str().unwrap()]);
    repo.git(&["remote", "add", "origin", bare.to_str().unwrap()]);
    repo.stub("echo work > part.txt; echo '<promise>COMPLETE</promise>'", "test -f part.txt");
    // `ralph` never touches another user's branch of that name.
    repo.git(&["push", "-q", "origin", "main:refs/heads/mine"]);
    let run = repo.run(&["--publish", "push", "--branch", "mine"]).exits(0).json();
    assert_eq!(run["branch"], "mine");
    let there = repo.git(&["ls-remote", "--heads", "origin"]);
    let main = repo.git(&["rev-parse", "main"]);
    assert!(there.lines().any(|line| line == format!("{main}\trefs/heads/mine")), "{there}");
    assert!(there.contains("refs/heads/mine-v2"), "{there}");
}

#[test]
fn failed_host_checks_reach_the_next_session_and_green_ones_end_the_run() {
    let env = TestEnv::new(RALPH);
    let agent = "cat > \"$PROMPTS/$RALPH_ITERATION\"; echo \"$RALPH_ITERATION\" > part.txt; echo '<promise>COMPLETE</promise>'";
    let world = world(&env, agent, "test -f part.txt", &json!({ "wait_for_checks": true }));
    let prompts = env.path("prompts");
    std::fs::create_dir(&prompts).unwrap();
    let mut command = env.ralph_command(&world.repo.dir, &["run", "--isolation", "none", "--json"]);
    let child = command.env("PROMPTS", &prompts).spawn().unwrap();
    let first = until("the first pull request for review", || {
        let pr = world.forge.pr(1).ok()?;
        (!pr.draft).then_some(pr.head_commit)
    });
    world
        .forge
        .set_check(
            &first,
            "build",
            CiState::Failed,
            "1 of 9 fails",
            Some("line 1\nassertion `left == right` failed\n"),
        )
        .unwrap();
    let second = until("a second commit", || {
        let pr = world.forge.pr(1).ok()?;
        (!pr.draft && pr.head_commit != first).then_some(pr.head_commit)
    });
    world.forge.set_check(&second, "build", CiState::Pending, "", None).unwrap();
    world.forge.set_check(&second, "build", CiState::Passed, "fine", None).unwrap();
    TestEnv::wait(child).exits(0);
    let prompt = std::fs::read_to_string(prompts.join("2")).unwrap();
    assert!(prompt.contains("assertion `left == right` failed"), "{prompt}");
    assert_eq!(world.forge.open_prs().unwrap().len(), 1);
}

#[test]
fn run_waits_for_a_review_answers_it_and_ends() {
    let env = TestEnv::new(RALPH);
    let task = r#"{"version": 2, "task": "Write part.txt", "acceptance_criteria": [
        {"id": "C1", "description": "part.txt is there", "type": "file_exists", "path": "part.txt"},
        {"id": "C2", "description": "a reviewer approves", "type": "pr_approved"}],
        "git": {"create_pr": true, "feature_branch": "feature/part"}}"#;
    let agent = "cat > \"$PROMPTS/$RALPH_ITERATION\"; echo \"$RALPH_ITERATION\" > part.txt; echo '<promise>COMPLETE</promise>'";
    let world = world(&env, agent, "test -f part.txt", &json!({}));
    std::fs::remove_file(world.repo.dir.join("PROMPT.md")).unwrap();
    world.repo.write("ralph.json", task);
    world.repo.git(&["add", "-A"]);
    world.repo.git(&["commit", "-q", "-m", "task"]);
    let prompts = env.path("prompts");
    std::fs::create_dir(&prompts).unwrap();
    let args = ["run", "--isolation", "none", "--json", "--worktree"];
    let child = env.ralph_command(&world.repo.dir, &args).env("PROMPTS", &prompts).spawn().unwrap();
    let ready = |not: &str| {
        until("a pull request for review", || {
            let pr = world.forge.pr(1).ok()?;
            (!pr.draft && pr.head_commit != not).then_some(pr)
        })
    };
    let first = ready("");
    assert_eq!(first.head, "feature/part");
    world
        .forge
        .review(1, "ann", ReviewState::ChangesRequested, "Please say more.", &[("part.txt", 1, "too short")])
        .unwrap();
    let second = ready(&first.head_commit);
    let prompt = std::fs::read_to_string(prompts.join("2")).unwrap();
    assert!(prompt.contains("Please say more.") && prompt.contains("part.txt:1: too short"), "{prompt}");
    // An answered change request doesn't come back; an approval of the old commit doesn't count.
    world.forge.review(1, "ann", ReviewState::Approved, "", &[]).unwrap();
    TestEnv::wait(child).exits(0);
    assert_eq!(world.forge.pr(1).unwrap().head_commit, second.head_commit);
    assert_eq!(world.forge.open_prs().unwrap().len(), 1);
}

#[test]
fn pull_request_never_claims_proven_too_early() {
    let env = TestEnv::new(RALPH);
    // The first attempt is proven here and fails there; the second one breaks the check that passed.
    let agent = r#"
        case $RALPH_ITERATION in
            1) echo good > part.txt; echo '<promise>COMPLETE</promise>';;
            2) echo bad > part.txt;;
            *) echo good again > part.txt; echo '<promise>COMPLETE</promise>';;
        esac
        while [ -f "$HOLD" ] && [ $RALPH_ITERATION = 3 ]; do sleep 0.05; done
        echo "step $RALPH_ITERATION"
    "#;
    let world = world(&env, agent, "grep -q good part.txt", &json!({ "wait_for_checks": true }));
    let hold = env.path("hold");
    std::fs::write(&hold, "").unwrap();
    let args = ["run", "--isolation", "none", "--json"];
    let child = env.ralph_command(&world.repo.dir, &args).env("HOLD", &hold).spawn().unwrap();
    let pr =
        |what: &str, word: &str| until(what, || world.forge.pr(1).ok().filter(|pr| pr.body.contains(word)));
    let first = pr("the proven one", "**Proven, independent.**");
    world.forge.set_check(&first.head_commit, "build", CiState::Failed, "no", None).unwrap();
    let between = pr("the one in between", "**Work in progress.**");
    assert!(between.head_commit != first.head_commit && !between.draft, "{between:?}");
    std::fs::remove_file(&hold).unwrap();
    let last = pr("the proven one again", "**Proven, independent.**");
    world.forge.set_check(&last.head_commit, "build", CiState::Passed, "yes", None).unwrap();
    TestEnv::wait(child).exits(0);
}

#[test]
fn a_closed_pull_request_ends_the_run() {
    let env = TestEnv::new(RALPH);
    let world = world(
        &env,
        "date +%s%N > part.txt; sleep 0.2",
        "false",
        &json!({ "max_iterations": 50, "gutter_score": 1.0 }),
    );
    let child =
        env.spawn(&world.repo.dir, &["run", "--isolation", "none", "--json", "--verify", "test -f never"]);
    until("the pull request", || world.forge.pr(1).ok());
    world.forge.close(1).unwrap();
    std::fs::write(world.repo.dir.join(".ralph/x"), "").unwrap();
    let done = TestEnv::wait(child);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(done.stdout.contains("closed without a merge"), "{}", done.stdout);
    assert_eq!(world.forge.pr(1).unwrap().state, PrState::Closed);
}

#[test]
fn issue_is_the_task_and_gets_a_reply() {
    let env = TestEnv::new(RALPH);
    let world = world(&env, PARTS, CHECK, &json!({}));
    let number =
        world.forge.add_issue("Three parts, please", "Write `part1.txt` to `part3.txt`.", &[]).unwrap();
    let run = world.repo.run(&["--issue", &number.to_string()]).exits(0).json();
    let spec: Value = serde_json::from_str(&world.repo.run_file("spec.json")).unwrap();
    assert!(spec["task"]["text"].as_str().unwrap().contains("Write `part1.txt`"), "{spec}");
    let pr = world.forge.find_pr(&format!("ralph/issue-{number}/three-parts-please")).unwrap().unwrap();
    assert!(pr.body.contains(&format!("Resolves #{number}")), "{}", pr.body);
    let comments = world.forge.comments(number).unwrap();
    assert_eq!(comments.len(), 1, "{comments:?}");
    assert!(comments[0].body.contains("Proven") && comments[0].body.contains(&pr.url), "{comments:?}");
    assert_eq!(run["pr_url"], pr.url);
}

#[test]
fn issue_edited_after_approval_is_not_run() {
    let env = TestEnv::new(RALPH);
    let world = world(&env, PARTS, CHECK, &json!({}));
    let (title, body) = ("Three parts, please", "Write `part1.txt` to `part3.txt`.");
    let number = world.forge.add_issue(title, body, &[]).unwrap().to_string();
    let with_sum = |text: &str| {
        let args = ["run", "--isolation", "none", "--json", "--issue", &number];
        let mut command = env.ralph_command(&world.repo.dir, &args);
        TestEnv::finish(command.env("RALPH_ISSUE_SHA256", Digest::of(text.as_bytes()).as_str()))
    };
    let refused = with_sum(&format!("{title}\nWrite something harmless.")).exits(3);
    assert!(refused.stderr.contains("was edited after it was allowed"), "{}", refused.stderr);
    with_sum(&format!("{title}\n{body}")).exits(0);
}

#[test]
fn run_resumes_on_another_machine_after_the_first_is_lost() {
    let env = TestEnv::new(RALPH);
    let world = world(&env, PARTS, CHECK, &json!({}));
    let args = ["run", "--isolation", "none"];
    let killed =
        TestEnv::finish(env.ralph_command(&world.repo.dir, &args).env("RALPH_FAULT", "push.after#2"));
    assert_eq!(killed.code, None, "{}", killed.stderr);
    let id = world.repo.latest();
    let spent = world.repo.events_named("iteration_ended").len();
    assert_eq!(spent, 2);
    // The machine is gone: both the folder and the records next to it are lost.
    std::fs::remove_dir_all(&world.repo.dir).unwrap();
    std::fs::remove_dir_all(env.path("state")).unwrap();
    let elsewhere = env.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let forge = world.forge.root().display().to_string();
    let done = env.ralph(&elsewhere, &["--json", "resume", "--from", &forge, &id]).exits(0);
    let run = done.json();
    // It ran without a sandbox there; the user hasn't allowed that here.
    let here = env.path("state/ralph/workspaces").join(&id).join(format!(".ralph/runs/{id}/spec.json"));
    let spec: Value = serde_json::from_slice(&std::fs::read(here).unwrap()).unwrap();
    assert_ne!(spec["settings"]["isolation"], "none");
    assert_eq!((run["iterations"].as_u64(), run["run_id"].as_str()), (Some(3), Some(id.as_str())));
    let pr = world.forge.pr(1).unwrap();
    assert!(!pr.draft && pr.body.contains("**Proven, independent.**"), "{}", pr.body);
    assert_eq!(world.forge.open_prs().unwrap().len(), 1);
    let log = format!("--git-dir={forge}/repo.git");
    let listed = TestEnv::finish(env.command("git", &elsewhere).args([
        &log,
        "log",
        "--format=%s",
        &pr.head,
        "--not",
        "main",
    ]));
    let subjects: Vec<&str> = listed.stdout.lines().collect();
    assert_eq!(subjects.len(), 3, "one commit for each iteration: {subjects:?}");
}

/// In the user's own clone, which has neither the branch nor the run's refs: the message names their location.
#[test]
fn fetched_run_ends_on_its_branch_and_names_it() {
    let env = TestEnv::new(RALPH);
    let world = world(&env, PARTS, CHECK, &json!({}));
    let killed =
        TestEnv::finish(env.ralph_command(&world.repo.dir, &["run"]).env("RALPH_FAULT", "push.after#2"));
    assert_eq!(killed.code, None, "{}", killed.stderr);
    let id = world.repo.latest();
    std::fs::remove_dir_all(&world.repo.dir).unwrap();
    std::fs::remove_dir_all(env.path("state")).unwrap();
    let forge = world.forge.root().display().to_string();
    let (fresh, bare) = (env.path("fresh"), format!("{forge}/repo.git"));
    let cloned = ["clone", "-q", &bare, fresh.to_str().unwrap()];
    TestEnv::finish(env.command("git", &env.path("tmp")).args(cloned)).exits(0);
    let done = env.ralph(&fresh, &["resume", "--from", &forge, &id]).exits(0);
    let folder = env.path("state/ralph/workspaces").join(&id);
    let said = &done.stderr;
    assert!(
        !said.contains("you have moved") && !said.contains("where you moved it"),
        "the branch hasn't moved: {said}"
    );
    assert!(said.contains(&format!("folder    {}", folder.display())), "{said}");
    // The branch is at the proven commit, locally and on the remote.
    let at = |git: &[&str]| {
        TestEnv::finish(env.command("git", &folder).args(git)).exits(0).stdout.trim().to_owned()
    };
    let branch = format!("ralph/{id}");
    let proven = world.forge.pr(1).unwrap().head_commit;
    assert_eq!(
        (at(&["rev-parse", &branch]), at(&["status", "--porcelain"])),
        (proven.clone(), String::new())
    );
    assert_eq!(at(&["rev-parse", &format!("refs/ralph/{id}/work")]), proven);
}

#[test]
fn overlapping_pull_requests_are_reported_or_ask_the_user() {
    let env = TestEnv::new(RALPH);
    let world = world(&env, PARTS, CHECK, &json!({ "overlap": "pause" }));
    // Another pull request touches `part2.txt`.
    world.forge.seed(&world.repo.dir, "main").unwrap();
    world.repo.git(&["switch", "-q", "-c", "theirs"]);
    world.repo.write("part2.txt", "theirs\n");
    world.repo.git(&["add", "-A", "part2.txt"]);
    world.repo.git(&["commit", "-q", "-m", "theirs"]);
    let bare = world.forge.root().join("repo.git").display().to_string();
    world.repo.git(&["push", "-q", &bare, "theirs"]);
    world.repo.git(&["switch", "-q", "main"]);
    let theirs = NewPr {
        head: "theirs".into(),
        base: "main".into(),
        title: "Theirs".into(),
        body: String::new(),
        draft: false,
    };
    world.forge.open_pr(&theirs).unwrap();
    let asked = world.repo.run(&[]).exits(3).json();
    assert!(asked["summary"].as_str().unwrap().contains("#1"), "{asked}");
    let found = world.repo.events_named("overlap_found");
    assert_eq!(found[0]["prs"][0]["files"], json!(["part2.txt"]));
    // The user has seen it: the run continues and doesn't ask twice.
    world.repo.ralph(&["resume"]).exits(0);
    assert_eq!(world.repo.events_named("overlap_found").len(), 1);
    assert_eq!(world.forge.open_prs().unwrap().len(), 2);
}

#[test]
fn stacked_pull_request_stays_a_draft() {
    let env = TestEnv::new(RALPH);
    let world = world(&env, PARTS, CHECK, &json!({ "pr": { "draft": true, "base": "ralph/first" } }));
    world.repo.git(&["switch", "-q", "-c", "ralph/first"]);
    world.repo.write("first.txt", "first\n");
    world.repo.git(&["add", "-A", "first.txt"]);
    world.repo.git(&["commit", "-q", "-m", "first"]);
    world.repo.run(&["--worktree"]).exits(0);
    let pr = world.forge.pr(1).unwrap();
    assert_eq!((pr.base.as_str(), pr.draft), ("ralph/first", true));
    assert!(pr.body.contains("**Proven, independent.**"), "{}", pr.body);
    assert_eq!(world.forge.pr_files(1).unwrap(), ["part1.txt", "part2.txt", "part3.txt"]);
}

#[test]
fn secret_in_the_result_is_never_pushed() {
    let env = TestEnv::new(RALPH);
    let agent = "if [ $RALPH_ITERATION = 1 ]; then echo \"token: $MY_API_TOKEN\" > part.txt; echo wrote; else \
                 echo work > part.txt; echo '<promise>COMPLETE</promise>'; fi";
    let world = world(&env, agent, "test -f part.txt", &json!({}));
    let secret = ["s3cr3t", "value", "of", "mine"].join("-");
    let args = ["run", "--isolation", "none", "--json"];
    let done =
        TestEnv::finish(env.ralph_command(&world.repo.dir, &args).env("MY_API_TOKEN", &secret)).exits(3);
    assert!(done.stderr.contains("MY_API_TOKEN") && !done.stderr.contains(&secret), "{}", done.stderr);
    assert_eq!(done.json()["error"]["code"], "GIT_PUSH_FAILED");
    // A removed secret stays in the history; once it is rotated, the old value isn't a secret any more.
    let again = |token: &str| {
        TestEnv::finish(env.ralph_command(&world.repo.dir, &["resume"]).env("MY_API_TOKEN", token))
    };
    again(&secret).exits(3);
    assert!(world.forge.open_prs().unwrap().is_empty());
    assert_eq!(world.remote(&["for-each-ref", "refs/ralph", "refs/heads/ralph"]), "");
    let text = std::fs::read_to_string(
        world.repo.dir.join(format!(".ralph/runs/{}/events.jsonl", world.repo.latest())),
    );
    assert!(!text.unwrap().contains(&secret));
    again("another-secret-of-mine").exits(0);
    assert_eq!(world.forge.open_prs().unwrap().len(), 1);
}

const SECRET: &str = "s3cr3t/Value+of=mine";

/// A run whose agent knows `MY_API_TOKEN`, pushed to a plain remote that has `main`.
fn pushed_by(
    agent: &str,
    more: &[&str],
    vars: &[(&str, &str)],
) -> (ralph_loop_testkit::env::Finished, String) {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let bare = env.path("bare.git");
    repo.write("settings.yml", "user: postgres\npassword: postgres\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "settings"]);
    repo.git(&["init", "-q", "--bare", bare.to_str().unwrap()]);
    repo.git(&["remote", "add", "origin", bare.to_str().unwrap()]);
    repo.git(&["push", "-q", "origin", "main"]);
    let script = format!("{agent}\necho work > part.txt; echo '<promise>COMPLETE</promise>'");
    repo.stub(&script, "test -f part.txt");
    let args = [&["run", "--isolation", "none", "--json", "--publish", "push"], more].concat();
    let mut command = env.ralph_command(&repo.dir, &args);
    let done = TestEnv::finish(command.env("MY_API_TOKEN", SECRET).envs(vars.iter().copied()));
    let there = repo.git(&["ls-remote", "origin"]);
    (
        done,
        there.lines().filter(|line| !line.ends_with("refs/heads/main") && !line.ends_with("HEAD")).collect(),
    )
}

#[test]
fn secret_is_found_anywhere_in_a_push() {
    for (what, agent, more, vars) in [
        (
            "a name",
            "touch \"x-$(printf %s $MY_API_TOKEN | tr / -).txt\"; d=${MY_API_TOKEN%%/*}; mkdir \"$d\"; touch \"$d/${MY_API_TOKEN#*/}\"",
            &[][..],
            &[][..],
        ),
        ("lines", "printf '%s\\n    %s\\n' s3cr3t/Va lue+of=mine > notes.txt", &[], &[]),
        ("hex", "printf %s \"$MY_API_TOKEN\" | od -An -tx1 -v | tr -d ' \\n' > hex.txt", &[], &[]),
        (
            "base64 over lines",
            "{ echo some lines before it; printf %s \"$MY_API_TOKEN\"; } | base64 -w 20 > b64.txt",
            &[],
            &[],
        ),
        ("an encoding", "echo 's3cr3t%2fValue%2bof%3dmine' > link.txt", &[], &[]),
        ("an author", ":", &[], &[("GIT_AUTHOR_NAME", SECRET)]),
        (
            "a binary file",
            "{ head -c 3000000 /dev/zero; printf %s \"$MY_API_TOKEN\"; head -c 9 /dev/zero; } > data.bin",
            &[],
            &[],
        ),
    ] {
        let (done, there) = pushed_by(agent, more, vars);
        assert_eq!((done.code, there.as_str()), (Some(3), ""), "{what}: {}", done.stderr);
        assert!(done.stderr.contains("_TOKEN: nothing is pushed"), "{what}: {}", done.stderr);
        assert!(!done.stderr.contains(SECRET), "{what}: {}", done.stderr);
    }
    // A run on a branch with such a name doesn't even start.
    let (done, there) =
        pushed_by(":", &["--branch", "work-on-s3cr3t"], &[("BRANCH_TOKEN", "work-on-s3cr3t")]);
    assert_eq!(there, "", "{}", done.stderr);
}

#[test]
fn secret_lookalikes_are_pushed() {
    // A word that the remote's files already have, one that is too short, a placeholder, and a name.
    let vars = [("DB_PASSWORD", "postgres"), ("PIN_TOKEN", "ab12"), ("OTHER_API_KEY", "")];
    let agent = "echo 'name: db' >> settings.yml; echo 'set the token ab12: OPENAI_API_KEY=sk-...' > README.md; echo 's3cr3t values' > words.txt";
    let (done, there) = pushed_by(agent, &[], &vars);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(there.contains("refs/heads/"), "{there}");
}

#[test]
fn github_app_hands_over_and_a_bad_token_fails_before_any_cost() {
    let env = TestEnv::new(RALPH);
    let fake = FakeGitHub::start().unwrap();
    let repo = TestRepo::with_task(&env);
    repo.git(&["remote", "add", "origin", &fake.git_url()]);
    env.user_config(&json!({ "publish": "pr" }));
    repo.configure(&[repo.agent("stub", PARTS)], CHECK, &json!({ "poll_seconds": 0.02 }));
    let login = format!("http://x-access-token:{}@{}", fake.token(), &fake.git_url()[7..]);
    repo.git(&["push", "-q", &login, "main"]);
    let run = |vars: &[(&str, String)]| {
        let mut command = env.ralph_command(&repo.dir, &["run", "--new", "--isolation", "none", "--json"]);
        command.env("GITHUB_API_URL", fake.url()).envs(vars.iter().map(|(k, v)| (*k, v.as_str())));
        TestEnv::finish(&mut command)
    };
    let refused = run(&[("GITHUB_TOKEN", ["no", "such", "token"].join("_"))]).exits(4);
    assert!(refused.stderr.contains("401") && refused.stderr.contains("next:"), "{}", refused.stderr);
    let refused = run(&[]).exits(4);
    assert!(refused.stderr.contains("GITHUB_TOKEN"), "{}", refused.stderr);
    assert_eq!(repo.latest(), "", "nothing was started");
    let app = [("GITHUB_APP_ID", fake.app_id()), ("GITHUB_APP_PRIVATE_KEY_PEM", fake.app_pem())];
    let done = run(&app).exits(0).json();
    assert_eq!(fake.pulls_made(), 1);
    assert!(done["pr_url"].as_str().unwrap().contains("/pull"), "{done}");
    // A private repo is cloned with the same login, and the clone does not keep it.
    fake.private(true);
    let mut command = env.ralph_command(
        &repo.dir,
        &["run", "--new", "--isolation", "none", "--json", "--clone", &fake.git_url()],
    );
    let vars = app.iter().map(|(k, v)| (*k, v.as_str()));
    let cloned = TestEnv::finish(command.env("GITHUB_API_URL", fake.url()).envs(vars)).exits(0).json();
    assert_eq!(fake.pulls_made(), 2);
    let folder = env.path("state/ralph/workspaces").join(cloned["run_id"].as_str().unwrap());
    let settings = std::fs::read_to_string(folder.join(".git/config")).unwrap();
    assert!(settings.contains("octo/app.git") && !settings.contains("x-access-token"), "{settings}");
    // The token is nowhere on the disk of the run.
    let state = fake.git(&[
        "show",
        &format!("refs/ralph/{}/state:runs/{0}/events.jsonl", done["run_id"].as_str().unwrap()),
    ]);
    assert!(!state.unwrap().contains("ghs_"));
}

#[test]
fn password_in_a_remote_url_reaches_only_git() {
    let env = TestEnv::new(RALPH);
    let fake = FakeGitHub::start().unwrap();
    let repo = TestRepo::with_task(&env);
    let address = format!("http://x-access-token:{}@{}", fake.token(), &fake.git_url()[7..]);
    repo.git(&["remote", "add", "origin", &address]);
    repo.git(&["push", "-q", "origin", "main"]);
    repo.stub(PARTS, CHECK);
    let refused = repo.run(&["--publish", "pr"]).exits(4);
    assert!(refused.stderr.contains("no known code host"), "{}", refused.stderr);
    let seen = env.path("seen");
    let done = repo.run(&["--publish", "push"]).exits(0);
    std::fs::write(&seen, format!("{}{}{}", refused.stderr, done.stdout, done.stderr)).unwrap();
    let run = done.json()["run_id"].as_str().unwrap().to_owned();
    assert!(fake.branch(&format!("ralph/{run}")).is_some());
    for place in [
        seen,
        repo.dir.join(format!(".ralph/runs/{run}/events.jsonl")),
        repo.dir.join(format!(".ralph/runs/{run}/spec.json")),
    ] {
        let text = std::fs::read_to_string(&place).unwrap();
        assert!(!text.contains(&fake.token()), "{}", place.display());
    }
}

#[test]
fn missing_approval_needs_the_user() {
    let env = TestEnv::new(RALPH);
    let task = r#"{"version": 2, "task": "Write part.txt", "acceptance_criteria": [
        {"type": "file_exists", "path": "part.txt"}, {"type": "pr_approved"}, {"type": "pr_checks_pass"}],
        "git": {"create_pr": true}}"#;
    let agent = "echo work > part.txt; echo '<promise>COMPLETE</promise>'";
    let more = json!({ "review_timeout_hours": 0.0001, "ci_timeout_minutes": 60, "ci_appear_minutes": 0.002, "poll_seconds": 0.01 });
    let world = world(&env, agent, "test -f part.txt", &more);
    std::fs::remove_file(world.repo.dir.join("PROMPT.md")).unwrap();
    world.repo.write("ralph.json", task);
    world.repo.git(&["add", "-A"]);
    world.repo.git(&["commit", "-q", "-m", "task"]);
    // A criterion about checks isn't met without any check.
    let asked = world.repo.run(&[]).exits(3).json();
    assert!(asked["summary"].as_str().unwrap().contains("no check of the pull request appeared"), "{asked}");
    let head = world.forge.pr(1).unwrap().head_commit;
    world.forge.set_check(&head, "build", CiState::Passed, "fine", None).unwrap();
    let asked = world.repo.ralph(&["--json", "resume"]).exits(3).json();
    assert!(asked["summary"].as_str().unwrap().contains("no approval for"), "{asked}");
    world.forge.review(1, "ann", ReviewState::Approved, "", &[]).unwrap();
    world.repo.ralph(&["resume"]).exits(0);
    // The last text has ticks for the host's criteria, and every file has the state after its iteration.
    let body = world.forge.pr(1).unwrap().body;
    assert_eq!((body.matches("- [x]").count(), body.matches("- [ ]").count()), (3, 0), "{body}");
    let state: Value = serde_json::from_str(&world.repo.run_file("iterations/1/pr_state.json")).unwrap();
    assert_eq!((&state["pr"]["number"], &state["approved_by"]), (&json!(1), &json!("ann")), "{state}");
    let seen = world.repo.events_named("checks_seen");
    let green: Vec<bool> =
        seen.iter().filter(|e| e["state"] == "passed").map(|e| e["next"].is_string()).collect();
    assert_eq!(green, [true, false], "the first green one is not the end");
}

#[test]
fn milestones_keep_the_pull_request_up_to_date() {
    let env = TestEnv::new(RALPH);
    let agent = r#"
        i=$RALPH_ITERATION
        case $i in
            1) echo start > readme2.txt;;
            2) echo a > a.txt;;
            *) echo b > b.txt;;
        esac
        echo "step $i"
    "#;
    let world = world(&env, agent, "true", &json!({ "publish": null }));
    std::fs::remove_file(world.repo.dir.join("PROMPT.md")).unwrap();
    world.repo.write(
        "ralph_task.md",
        "---\ntask_id: t-1\ntarget_branch_slug: letters\nmax_iterations: 6\nmax_wall_time_minutes: 10\nmax_cost_usd_estimate: 1\n\
         test_command: \"test -f a.txt\"\nverify_commands:\n  - \"test -f a.txt\"\npr:\n  labels: [letters]\n---\n\n# Task: two letters\n\n\
         ## Success criteria\n\n### Milestone M1 — letters\n- [ ] M1.1 a.txt is there\n  - verify: `test -f a.txt`\n\
         - [ ] M1.2 b.txt is there\n  - verify: `test -f b.txt`\n",
    );
    world.repo.git(&["add", "-A"]);
    world.repo.git(&["commit", "-q", "-m", "task"]);
    // A task of this kind ends in a pull request if the user allows that.
    world.repo.ralph(&["trust", "--yes"]).exits(0);
    let run = world.repo.run(&["--worktree"]).exits(0).json();
    let pr = world.forge.pr(1).unwrap();
    assert_eq!(pr.head, run["branch"].as_str().unwrap());
    assert!(pr.head.ends_with("letters") && pr.title.contains("two letters"), "{pr:?}");
    assert!(pr.body.contains("- [x] M1.1") && pr.body.contains("- [x] M1.2"), "{}", pr.body);
    assert_eq!(world.forge.labels(1).unwrap(), ["letters"]);
    let folder = env.path("state/ralph/workspaces").join(run["run_id"].as_str().unwrap());
    let events = std::fs::read_to_string(
        folder.join(format!(".ralph/runs/{}/events.jsonl", run["run_id"].as_str().unwrap())),
    );
    let why: Vec<String> = events
        .unwrap()
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|event| event["kind"] == "pr_written")
        .map(|event| format!("{} {}", event["why"].as_str().unwrap(), event["met"]))
        .collect();
    assert_eq!(why, ["opened 0", "progress 1", "proven 2"]);
}

#[test]
fn the_doctor_names_the_code_host() {
    let env = TestEnv::new(RALPH);
    let world = world(&env, PARTS, CHECK, &json!({}));
    let report = world.repo.ralph(&["--json", "doctor"]).json();
    let host =
        report["checks"].as_array().unwrap().iter().find(|c| c["name"] == "code host").unwrap().clone();
    assert_eq!(host["status"], "ok", "{host}");
    assert!(host["message"].as_str().unwrap().starts_with("local "), "{host}");
}

#[test]
fn pushed_state_is_bounded_and_holds_no_secret() {
    let env = TestEnv::new(RALPH);
    let agent = "head -c 20000000 /dev/zero | tr '\\0' 'x' >> .ralph/progress.md\n\
                 echo \"token $MY_API_TOKEN\" >> .ralph/notes.md\n\
                 echo work > part.txt; echo '<promise>COMPLETE</promise>'";
    let world = world(&env, agent, "test -f part.txt", &json!({}));
    let secret = ["s3cr3t", "value", "of", "mine"].join("-");
    let args = ["run", "--isolation", "none", "--json"];
    let done =
        TestEnv::finish(env.ralph_command(&world.repo.dir, &args).env("MY_API_TOKEN", &secret)).exits(0);
    let id = done.json()["run_id"].as_str().unwrap().to_owned();
    let state = format!("refs/ralph/{id}/state");
    let list = world.remote(&["ls-tree", "-r", "-l", &state]);
    let sizes: u64 =
        list.lines().filter_map(|line| line.split_whitespace().nth(3)?.parse::<u64>().ok()).sum();
    assert!(sizes < 10_000_000, "{list}");
    assert!(list.contains("events.jsonl") && list.contains("notes.md"), "{list}");
    assert!(!world.remote(&["show", &format!("{state}:notes.md")]).contains(&secret));
}

/// Only the proven commit is handed over: if the branch moved in between, `ralph` reports it and waits.
#[test]
fn branch_that_differs_from_the_proof_needs_the_user() {
    let env = TestEnv::new(RALPH);
    for publish in ["none", "push", "pr"] {
        let forge = env.path(&format!("forge-{publish}"));
        env.user_config(&json!({ "local_forge": forge, "publish": publish }));
        let repo = TestRepo::new(&env, publish, &[("PROMPT.md", "# Do the work\n")]);
        let agent = repo.agent("stub", "echo work > part.txt; echo '<promise>COMPLETE</promise>'");
        repo.configure(&[agent], "test -f part.txt", &json!({ "poll_seconds": 0.05 }));
        let args = ["run", "--isolation", "none", "--json", "--branch", "topic"];
        let killed =
            TestEnv::finish(env.ralph_command(&repo.dir, &args).env("RALPH_FAULT", "publish.before#1"));
        assert_eq!(killed.code, None, "{publish}: {}", killed.stderr);
        let proven = repo.git(&["rev-parse", "topic"]);
        repo.git(&["update-ref", "refs/heads/topic", "topic~1"]);
        let asked = repo.ralph(&["resume", "--json"]);
        assert_eq!(asked.code, Some(3), "{publish}: {}", asked.stderr);
        assert!(asked.stderr.contains("topic"), "{publish}: {}", asked.stderr);
        repo.git(&["update-ref", "refs/heads/topic", &proven]);
        let done = repo.ralph(&["resume", "--json"]).exits(0);
        assert_eq!(done.json()["success"], true, "{publish}: {}", done.stderr);
        assert_eq!(repo.git(&["rev-parse", "topic"]), proven);
        let proof: Value = serde_json::from_str(&repo.run_file("proof.json")).unwrap();
        assert_eq!(proof["commit"], proven.as_str(), "{publish}");
    }
}
