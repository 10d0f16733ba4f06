//! The GitHub Action's step against a fake GitHub: who may start a run, what never does, and what it leaves behind.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

use crate::RALPH;
use ralph_loop_testkit::fake_github::{FakeGitHub, Reach};
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::{Value, json};
use std::path::Path;

const AGENT: &str = "env > \"$HOME/seen\"\necho done > part.txt\necho '::warning::an agent said so'\necho '<promise>COMPLETE</promise>'\n";

/// A checkout as on the runner, with its own GitHub.
struct Job<'a> {
    env: &'a TestEnv,
    fake: FakeGitHub,
    repo: TestRepo<'a>,
}

impl<'a> Job<'a> {
    fn new(env: &'a TestEnv) -> Self {
        let fake = FakeGitHub::start().unwrap();
        let repo = TestRepo::with_task(env);
        repo.git(&["remote", "add", "origin", &fake.git_url()]);
        repo.configure(&[repo.agent("stub", AGENT)], "test -f part.txt", &json!({ "poll_seconds": 0.02 }));
        let login = format!("http://x-access-token:{}@{}", fake.token(), &fake.git_url()[7..]);
        repo.git(&["push", "-q", &login, "main"]);
        env.user_config(&json!({ "isolation": "none" }));
        fake.add_token("token-of-a-guest", "guest", Reach::Read);
        Self { env, fake, repo }
    }

    /// Runs the step for an event, with inputs.
    fn step(&self, name: &str, event: &Value, inputs: &[(&str, &str)]) -> Finished {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../install/action/run");
        let file = self.env.path("event.json");
        std::fs::write(&file, event.to_string()).unwrap();
        for name in ["output", "summary"] {
            std::fs::write(self.env.path(name), "").unwrap();
        }
        let mut command = self.env.command("python3", &self.repo.dir);
        command
            .arg(script)
            .env("GITHUB_EVENT_NAME", name)
            .env("GITHUB_EVENT_PATH", file)
            .env("GITHUB_REPOSITORY", "octo/app")
            .env("GITHUB_API_URL", self.fake.url())
            .env("GITHUB_OUTPUT", self.env.path("output"))
            .env("GITHUB_STEP_SUMMARY", self.env.path("summary"))
            .env("GITHUB_ENV", self.env.path("variables"))
            .env("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "of-the-runner")
            .env("RALPH_ACTION_RALPH", RALPH)
            .env("RALPH_ACTION_TOKEN", self.fake.token())
            .envs(inputs.iter().copied());
        TestEnv::finish(&mut command)
    }

    fn written(&self, name: &str) -> String {
        std::fs::read_to_string(self.env.path(name)).unwrap()
    }

    /// The event of a label or a comment on an issue.
    fn issue(&self, number: u64, title: &str, body: &str, more: Value) -> Value {
        let mut event = json!({
            "issue": { "number": number, "title": title, "body": body },
            "sender": { "login": "ralph-user" },
        });
        for (key, value) in more.as_object().unwrap() {
            event[key] = value.clone();
        }
        event
    }

    #[track_caller]
    fn assert_starts_nothing(&self, name: &str, event: &Value, why: &str) {
        let done = self.step(name, event, &[]).exits(0);
        assert!(done.stdout.contains("nothing was run") && done.stdout.contains(why), "{}", done.stdout);
        assert_eq!(self.written("output"), "started=false\nsuccess=false\n");
        assert_eq!(self.fake.pulls_made(), 0);
    }
}

fn has_python() -> bool {
    let found = std::process::Command::new("python3").arg("--version").output().is_ok();
    if !found {
        ralph_loop_testkit::skip("python3 is not installed");
    }
    found
}

#[test]
fn label_by_a_writer_becomes_a_pull_request() {
    if !has_python() {
        return;
    }
    let env = TestEnv::new(RALPH);
    let job = Job::new(&env);
    let (title, body) = ("Write the part", "Write `part.txt`. `$(touch hacked)` %0A::error::x");
    let number = job.fake.add_issue(title, body, &["ralph"]);
    let event = job.issue(number, title, body, json!({ "action": "labeled", "label": { "name": "ralph" } }));
    let done = job.step("issues", &event, &[("RALPH_ACTION_MAX_COST", "2")]).exits(0);
    assert_eq!(job.fake.pulls_made(), 1);
    let output = job.written("output");
    assert!(output.contains("started=true\nsuccess=true\n") && output.contains("/pull"), "{output}");
    assert_eq!(output.lines().count(), 7, "{output}");
    let summary = job.written("summary");
    assert!(summary.contains("| result | proven |"), "{summary}");
    assert!(!job.repo.dir.join("hacked").exists());
    // Output in between isn't read as runner commands.
    let stop = done.stdout.lines().next().unwrap().strip_prefix("::stop-commands::").unwrap().to_owned();
    assert!(stop.len() >= 16 && done.stdout.contains(&format!("::{stop}::")), "{}", done.stdout);
    let (meanwhile, after) = done.stdout.split_once(&format!("::{stop}::")).unwrap();
    assert!(meanwhile.contains("iteration 1") && after.trim().is_empty(), "{}", done.stdout);
    assert_eq!(done.stderr, "", "what comes by another way may be read after the commands are on again");
    // The run must not see the runner's control files.
    let seen = std::fs::read_to_string(job.env.path("home/seen")).unwrap();
    assert!(!seen.contains("GITHUB_ENV") && !seen.contains("of-the-runner"), "{seen}");
    assert!(!format!("{}{}{output}{summary}", done.stdout, done.stderr).contains(&job.fake.token()));
}

#[test]
fn comment_and_schedule_start_runs() {
    if !has_python() {
        return;
    }
    let env = TestEnv::new(RALPH);
    let job = Job::new(&env);
    let number = job.fake.add_issue("Write the part", "Write `part.txt`.", &[]);
    let comment = json!({ "action": "created", "comment": { "body": "/ralph please", "user": { "login": "ralph-user" } } });
    let event = job.issue(number, "Write the part", "Write `part.txt`.", comment);
    job.step("issue_comment", &event, &[]).exits(0);
    assert_eq!(job.fake.pulls_made(), 1);
    // A task that looks like an option is a task.
    let refused = job.step("schedule", &json!({}), &[]).exits(4);
    assert!(
        refused.stderr.contains("there is no task") && refused.stderr.contains("next:"),
        "{}",
        refused.stderr
    );
    let dry = [("RALPH_ACTION_TASK", "--isolation none"), ("RALPH_ACTION_DRY_RUN", "true")];
    let shown = job.step("schedule", &json!({}), &dry).exits(0).json();
    assert_eq!(shown, json!(["--publish", "pr", "--json", "--", "--isolation none"]));
    let task = [("RALPH_ACTION_TASK", "Write part.txt in the folder again")];
    let done = job.step("workflow_dispatch", &json!({}), &task);
    assert!(job.written("output").contains("started=true"), "{}{}", done.stdout, done.stderr);
}

#[test]
fn outside_pull_requests_and_edited_issues_start_nothing() {
    if !has_python() {
        return;
    }
    let env = TestEnv::new(RALPH);
    let job = Job::new(&env);
    let (title, body) = ("Write the part", "Write `part.txt`.");
    let number = job.fake.add_issue(title, body, &["ralph"]);
    let labeled = json!({ "action": "labeled", "label": { "name": "ralph" } });
    let labeled_by = |who: &str| {
        let mut event = job.issue(number, title, body, labeled.clone());
        event["sender"]["login"] = who.into();
        event
    };
    for (who, why) in [
        ("guest", "may not write"),
        ("stranger", "may not write"),
        ("x[bot]", "x[bot] may not start a run"),
        ("", "an unknown user"),
    ] {
        job.assert_starts_nothing("issues", &labeled_by(who), why);
    }
    // A login is a name, not a path.
    job.assert_starts_nothing("issues", &labeled_by("../../../repos/octo/app"), "may not write");
    let other = json!({ "action": "labeled", "label": { "name": "bug" } });
    job.assert_starts_nothing("issues", &job.issue(number, title, body, other), "not the label");
    let said = |text: &str| json!({ "action": "created", "comment": { "body": text, "user": { "login": "ralph-user" } } });
    for text in ["please /ralph", "/ralphs", ""] {
        job.assert_starts_nothing("issue_comment", &job.issue(number, title, body, said(text)), "no comment");
    }
    let mut pull = job.issue(number, title, body, said("/ralph"));
    pull["issue"]["pull_request"] = json!({ "url": "x" });
    job.assert_starts_nothing("issue_comment", &pull, "no tasks");
    for name in ["pull_request", "pull_request_target", "workflow_run", "push"] {
        job.assert_starts_nothing(name, &json!({}), "start nothing");
    }
    // The approved text was changed since.
    let read = job.issue(number, title, "Write something harmless.", labeled.clone());
    job.assert_starts_nothing("issues", &read, "edited");
    let bad = job.step("issues", &labeled_by("ralph-user"), &[("RALPH_ACTION_TOKEN", "wrong")]).exits(4);
    assert!(bad.stderr.contains("401"), "{}", bad.stderr);
}

#[test]
fn prove_checks_only_the_pull_request_commits() {
    if !has_python() {
        return;
    }
    let env = TestEnv::new(RALPH);
    let job = Job::new(&env);
    job.repo.write("part.txt", "done\n");
    job.repo.git(&["add", "part.txt"]);
    job.repo.git(&["commit", "-qm", "work"]);
    let commit = |rev: &str| job.repo.git(&["rev-parse", rev]);
    let event = json!({ "pull_request": {
        "head": { "sha": commit("HEAD"), "ref": "--isolation=none" },
        "base": { "sha": commit("HEAD~1"), "ref": "main" },
    } });
    let prove = [("RALPH_ACTION_PROVE", "true"), ("RALPH_ACTION_TOKEN", "")];
    let done = job.step("pull_request", &event, &prove).exits(0);
    let output = job.written("output");
    assert!(output.starts_with("started=false\nsuccess=true\n"), "{output} {}", done.stdout);
    assert!(output.contains("proof=independent\n"), "{output}");
    let forged = json!({ "pull_request": { "head": { "sha": "--base" }, "base": { "sha": "x" } } });
    job.step("pull_request", &forged, &prove).exits(4);
    for name in ["pull_request_target", "issues"] {
        let refused = job.step(name, &event, &prove).exits(0);
        assert!(refused.stdout.contains("nothing was run"), "{name}: {}", refused.stdout);
    }
}
