//! Reviews and checks of a pull request: withdrawn reviews, checks that did nothing, messages that skip them.

use super::{RALPH, World, world};
use ralph_loop_domain::ports::{CiState, Forge as _};
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::fake_github::{CheckRun, FakeGitHub};
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};
use std::process::{Child, Stdio};

const AGENT: &str = "cat > \"$PROMPTS/$RALPH_ITERATION\"; echo \"$RALPH_ITERATION\" > part.txt; echo '<promise>COMPLETE</promise>'";

/// A repo on a GitHub of this machine.
struct Hosted<'a> {
    env: &'a TestEnv,
    repo: TestRepo<'a>,
    fake: FakeGitHub,
}

impl<'a> Hosted<'a> {
    fn new(env: &'a TestEnv, criteria: &str, more: &Value) -> Self {
        let fake = FakeGitHub::start().unwrap();
        let task = format!(
            "{{\"version\": 2, \"task\": \"Write part.txt\", \"acceptance_criteria\": [{{\"type\": \"file_exists\", \"path\": \
             \"part.txt\"}}{criteria}], \"git\": {{\"create_pr\": true, \"feature_branch\": \"feature/part\"}}}}"
        );
        let repo = TestRepo::new(env, "repo", &[("ralph.json", &task)]);
        repo.git(&["remote", "add", "origin", &fake.git_url()]);
        env.user_config(&json!({ "publish": "pr" }));
        let mut config = json!({ "poll_seconds": 0.02 });
        for (key, value) in more.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        repo.configure(&[repo.agent("stub", AGENT)], "test -f part.txt", &config);
        let login = format!("http://x-access-token:{}@{}", fake.token(), &fake.git_url()[7..]);
        repo.git(&["push", "-q", &login, "main"]);
        std::fs::create_dir(env.path("prompts")).unwrap();
        Self { env, repo, fake }
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = self.env.ralph_command(&self.repo.dir, args);
        command
            .env("PROMPTS", self.env.path("prompts"))
            .env("GITHUB_API_URL", self.fake.url())
            .env("GITHUB_TOKEN", self.fake.token());
        command
    }

    fn start(&self) -> Child {
        let mut command = self.command(&["run", "--isolation", "none", "--json"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The commit that is proven next, once its pull request says so.
    fn proven(&self, number: usize) -> String {
        until("the next proven commit", || {
            let told = self.repo.events_named("pr_written");
            let mut told = told.iter().filter(|event| event["why"] == "proven");
            let commits = self.repo.events_named("published");
            told.nth(number - 1)
                .and(commits.get(number - 1))
                .map(|event| event["commit"].as_str().unwrap().to_owned())
        })
    }

    fn check(&self, commit: &str, conclusion: &str) {
        self.fake.check(CheckRun {
            commit: commit.to_owned(),
            name: "build".into(),
            conclusion: Some(conclusion.to_owned()),
            ..CheckRun::default()
        });
    }

    /// Waits until `ralph` has read the review and found no decision.
    fn wait_for_review(&self) {
        until("a look at the review", || {
            let seen = self.repo.events_named("review_seen");
            seen.iter().any(|event| event["state"] == "waiting").then_some(())
        });
    }

    fn prompt(&self, iteration: u32) -> String {
        std::fs::read_to_string(self.env.path(&format!("prompts/{iteration}"))).unwrap()
    }
}

const BOTH: &str = ", {\"type\": \"pr_approved\"}, {\"type\": \"pr_checks_pass\"}";

#[test]
fn withdrawn_approval_and_later_change_requests_start_a_session() {
    let env = TestEnv::new(RALPH);
    let host = Hosted::new(&env, BOTH, &json!({}));
    let child = host.start();
    let first = host.proven(1);
    host.fake.review(1, "ann", "APPROVED", "", &[]);
    host.fake.dismiss_by(1, "ann", "cy", "The name is wrong.", None);
    host.check(&first, "success");
    let second = host.proven(2);
    assert_ne!(first, second);
    let told = "cy took back the approval of ann: The name is wrong.";
    assert!(host.prompt(2).contains(told), "{}", host.prompt(2));
    host.check(&second, "success");
    // It is reported once; then the run waits for an approval.
    host.wait_for_review();
    host.fake.review(1, "bob", "CHANGES_REQUESTED", "Say more.", &[]);
    let third = host.proven(3);
    assert!(host.prompt(3).contains("Say more."), "{}", host.prompt(3));
    assert!(host.repo.events_named("finished").is_empty());
    host.check(&third, "success");
    host.fake.review(1, "bob", "APPROVED", "", &[]);
    TestEnv::wait(child).exits(0);
    assert_eq!(host.fake.branch("feature/part"), Some(third));
}

/// Neither a dismissal by the host after a push nor a withdrawn approval of an older commit is a reviewer's decision.
#[test]
fn approval_dismissed_by_a_push_starts_no_session() {
    let env = TestEnv::new(RALPH);
    let host = Hosted::new(&env, BOTH, &json!({}));
    let child = host.start();
    let first = host.proven(1);
    host.fake.review(1, "ann", "APPROVED", "", &[]);
    host.check(&first, "failure");
    let second = host.proven(2);
    // A review of the old commit, dismissed manually, and one of the new commit, marked stale by the host.
    host.fake.dismiss_by(1, "ann", "cy", "Old.", None);
    host.fake.review(1, "dan", "APPROVED", "", &[]);
    host.fake.dismiss_by(1, "dan", "dan", "", Some(&second));
    host.check(&second, "success");
    host.wait_for_review();
    host.fake.review(1, "bob", "APPROVED", "", &[]);
    let done = TestEnv::wait(child).exits(0);
    assert_eq!(done.json()["iterations"], 2, "{}", done.stdout);
    assert_eq!(host.fake.branch("feature/part"), Some(second));
}

/// Approval isn't required, but a change request still counts.
#[test]
fn change_requests_before_green_checks_start_a_session() {
    let env = TestEnv::new(RALPH);
    let host = Hosted::new(&env, ", {\"type\": \"pr_checks_pass\"}", &json!({}));
    let child = host.start();
    let first = host.proven(1);
    host.fake.review(1, "bob", "CHANGES_REQUESTED", "Not like this.", &[]);
    host.check(&first, "success");
    let second = host.proven(2);
    assert!(host.prompt(2).contains("Not like this."), "{}", host.prompt(2));
    host.check(&second, "success");
    TestEnv::wait(child).exits(0);
}

/// A host counts skipped checks as green; if all were skipped, nothing was checked, and the run says so.
#[test]
fn all_skipped_checks_do_not_count_as_green() {
    let env = TestEnv::new(RALPH);
    let more = json!({ "ci_appear_minutes": 0.005 });
    let host = Hosted::new(&env, ", {\"type\": \"pr_checks_pass\"}", &more);
    let child = host.start();
    let first = host.proven(1);
    for conclusion in ["skipped", "neutral"] {
        host.check(&first, conclusion);
    }
    let asked = TestEnv::wait(child).exits(3);
    assert!(asked.stderr.contains("its one check was skipped or neutral"), "{}", asked.stderr);
    let status = host.repo.ralph(&["status"]).stdout;
    assert!(status.contains("nothing was checked on the pull request"), "{status}");
    // With one check that ran, it is green.
    host.fake.check(CheckRun {
        commit: first.clone(),
        name: "test".into(),
        conclusion: Some("success".into()),
        ..CheckRun::default()
    });
    TestEnv::finish(&mut host.command(&["resume", "--json"])).exits(0);
}

/// If the agent may commit, its commit is below the run's: the host uses the newest one.
#[test]
fn agent_commits_cannot_skip_host_checks() {
    for agent in [
        "echo work > part.txt; git add part.txt; git commit -qm 'Wrote it [skip ci]'; echo '<promise>COMPLETE</promise>'",
        "if [ $RALPH_ITERATION = 1 ]; then echo work > part.txt; echo wrote it; else git commit -q --allow-empty -m 'Nothing [skip ci]'; echo '<promise>COMPLETE</promise>'; fi",
    ] {
        for args in [&[][..], &["--worktree"]] {
            let env = TestEnv::new(RALPH);
            let more = json!({ "allow_agent_commits": true, "max_iterations": 2 });
            let world = world(&env, agent, "test -f part.txt", &more);
            let done = world.repo.run(args);
            assert_eq!(done.code, Some(0), "{agent} {args:?}: {}", done.stderr);
            let head = world.forge.pr(1).unwrap().head_commit;
            let message = world.remote(&["log", "-1", "--format=%B", &head]);
            assert!(!message.contains("[skip ci]"), "{agent} {args:?}: {message}");
        }
    }
}

/// If the checks can't be watched, every report of the result says so.
#[test]
fn unwatched_checks_are_reported_in_status_proof_and_pull_request() {
    let env = TestEnv::new(RALPH);
    let agent = "echo work > part.txt; echo '<promise>COMPLETE</promise>'";
    let world: World<'_> = world(&env, agent, "test -f part.txt", &json!({}));
    world.repo.run(&[]).exits(0);
    let proof: Value = serde_json::from_str(&world.repo.run_file("proof.json")).unwrap();
    assert_eq!(proof["watched"], "not_watched");
    let body = world.forge.pr(1).unwrap().body;
    assert!(body.contains("not watched"), "{body}");
    for args in [&["status"][..], &["show", "--proof"]] {
        let shown = world.repo.ralph(args).stdout;
        assert!(shown.contains("not watched"), "{args:?}: {shown}");
    }
    let checks = world.forge.checks(&world.forge.pr(1).unwrap().head_commit).unwrap();
    assert!(checks.iter().all(|check| check.state == CiState::Passed));
}
