//! Handover under failures: the runner is killed, its machine is lost, the code host fails before and after it has handled a
//! request. Every run ends proven, with exactly one pull request, no iteration lost, no comment or commit doubled.
//!
//! A short form always runs; `RALPH_TORTURE=full` runs all of it.
#![allow(clippy::disallowed_methods, reason = "tests start and kill processes")]

use crate::RALPH;
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::fake_github::{FakeGitHub, Fault};
use ralph_loop_testkit::torture::{self, Random};
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

const PARTS: u32 = 3;

/// Writes one missing part each time, so that a lost workspace shows as a lost part.
const AGENT: &str = r#"
cat > /dev/null
for n in 1 2 3; do
    # Ended in the middle of its write, a session leaves an empty file.
    if ! grep -qsx "part $n" part$n.txt; then echo "part $n" > part$n.txt; break; fi
done
echo 'did a part'
if grep -qsx 'part 3' part3.txt; then echo '<promise>COMPLETE</promise>'; fi
"#;

struct World<'a> {
    env: &'a TestEnv,
    fake: FakeGitHub,
    repo: TestRepo<'a>,
    round: u64,
}

impl<'a> World<'a> {
    fn new(env: &'a TestEnv) -> Self {
        let fake = FakeGitHub::start().unwrap();
        let repo = TestRepo::with_task(env);
        repo.git(&["remote", "add", "origin", &fake.git_url()]);
        let agent = repo.agent("stub", AGENT);
        let check = "for n in 1 2 3; do grep -qx \"part $n\" part$n.txt || exit 1; done";
        env.user_config(&json!({ "publish": "pr" }));
        let more = json!({ "poll_seconds": 0.02, "max_iterations": 20, "pr": { "labels": ["ralph"] } });
        repo.configure(&[agent], check, &more);
        let world = Self { env, fake, repo, round: 0 };
        let login = format!("http://x-access-token:{}@{}", world.fake.token(), &world.fake.git_url()[7..]);
        world.repo.git(&["push", "-q", &login, "main"]);
        world
    }

    fn command(&self, args: &[&str]) -> Command {
        // Every round uses a new machine.
        let state = self.env.path(&format!("state-{}", self.round));
        let mut command = self.env.ralph_command(&self.repo.dir, args);
        command
            .env("XDG_STATE_HOME", state)
            .env("GITHUB_TOKEN", self.fake.token())
            .env("GITHUB_API_URL", self.fake.url());
        command
    }

    fn start(&self, issue: u64) -> Command {
        self.command(&["run", "--isolation", "none", "--worktree", "--json", "--issue", &issue.to_string()])
    }

    /// Restarts until the run ends; `resume` is the only command it ever needs.
    fn until_proven(&self, what: &str) -> Finished {
        for _ in 0..12 {
            let id = self.run_id();
            let done = TestEnv::finish(&mut self.command(&["--json", "resume", &id]));
            match done.code {
                Some(0) => return done,
                Some(2) if done.stderr.contains("is over") => return done,
                _ => println!("{what}: {:?} {}", done.code, done.stderr),
            }
        }
        panic!("{what}: the run does not end");
    }

    /// The run of this round, by the registry of its machine.
    fn run_id(&self) -> String {
        let folder = self.env.path(&format!("state-{}", self.round)).join("ralph/runs");
        let mut ids: Vec<String> = std::fs::read_dir(folder)
            .map(|entries| entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect())
            .unwrap_or_default();
        ids.sort();
        ids.pop().map(|name| name.trim_end_matches(".json").to_owned()).unwrap_or_default()
    }

    fn events(&self, id: &str) -> Vec<Value> {
        let folder = self.env.path(&format!("state-{}", self.round)).join("ralph/workspaces").join(id);
        let text = std::fs::read_to_string(folder.join(format!(".ralph/runs/{id}/events.jsonl")))
            .unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Asserts what must hold at the end, whatever happened before.
    fn check(&self, what: &str, id: &str, issue: u64) {
        let events = self.events(id);
        let seqs: Vec<u64> = events.iter().map(|e| e["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "{what}: an event is lost or doubled");
        let count = |kind: &str| events.iter().filter(|e| e["kind"] == kind).count();
        assert_eq!((count("run_created"), count("published"), count("finished")), (1, 1, 1), "{what}");
        let branch = events.iter().rev().find(|e| e["kind"] == "published").unwrap()["branch"]
            .as_str()
            .unwrap()
            .to_owned();
        let pulls: Vec<&Value> = events.iter().filter(|e| e["kind"] == "pr_written").collect();
        let numbers: std::collections::BTreeSet<u64> =
            pulls.iter().map(|e| e["number"].as_u64().unwrap()).collect();
        assert_eq!(numbers.len(), 1, "{what}: {numbers:?}");
        assert_eq!(self.fake.pulls_made() as u64, self.round + 1, "{what}: one pull request for each run");
        let head = self.fake.branch(&branch).unwrap();
        let proof: Vec<&Value> =
            events.iter().filter(|e| e["kind"] == "proof_finished" && e["passed"] == true).collect();
        assert_eq!(proof.last().unwrap()["commit"], head, "{what}: what was proven is what was pushed");
        let log = self
            .fake
            .git(&["log", "--format=%(trailers:key=Ralph-Iteration,valueonly,separator=)", &branch, "^main"])
            .unwrap();
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        log.lines().for_each(|n| *seen.entry(n).or_default() += 1);
        assert!(seen.values().all(|n| *n == 1), "{what}: a commit is doubled: {seen:?}");
        // What an iteration recorded is on the branch, on whichever machine it was made. (A session that was killed after
        // it had written its part leaves that to the next one.)
        let worked: std::collections::BTreeSet<String> = events
            .iter()
            .filter(|e| e["kind"] == "checkpointed" && e["commit"].is_string())
            .map(|e| e["iteration"].to_string())
            .collect();
        let listed: std::collections::BTreeSet<String> = seen.keys().map(|n| (*n).to_owned()).collect();
        assert_eq!(listed, worked, "{what}: an iteration's work is lost");
        for part in 1..=PARTS {
            let text = self.fake.git(&["show", &format!("{branch}:part{part}.txt")]);
            assert_eq!(text.as_deref(), Some(format!("part {part}").as_str()), "{what}");
        }
        let comments = self.fake.comments(issue);
        assert_eq!(comments.len(), 1, "{what}: {comments:?}");
        assert!(comments[0].2.contains("Proven"), "{what}: {comments:?}");
        let number = *numbers.first().unwrap();
        assert_eq!(self.fake.labels(number), ["ralph"], "{what}");
    }
}

/// Requests that can fail, and their failures.
fn faults(random: &mut Random) -> (&'static str, Fault) {
    let parts = [
        "POST /repos/octo/app/pulls",
        "PATCH /repos/octo/app/pulls",
        "GET /repos/octo/app/pulls",
        "/comments",
        "POST /repos/octo/app/statuses",
        "git-receive-pack",
        "info/refs",
        "graphql",
        "/labels",
    ];
    let part = parts[random.below(parts.len() as u64) as usize];
    let fault = match random.below(5) {
        0 => Fault::Status(503, None),
        1 => Fault::StatusAfter(502),
        2 => Fault::Hangup,
        3 => Fault::Status(429, Some(0)),
        _ => Fault::HangupAfter,
    };
    (part, fault)
}

#[test]
fn interrupted_handover_ends_proven_with_one_pull_request() {
    let env = TestEnv::new(RALPH);
    let mut world = World::new(&env);
    let rounds = torture::rounds(8, 120);
    let mut random = Random::new(20_261_116);
    let mut whole = 1500;
    for round in 0..rounds {
        world.round = round;
        let issue = world.fake.add_issue(&format!("Round {round}"), "Write `part1.txt` to `part3.txt`.", &[]);
        // The first round measures how long a run takes.
        let kind = if round == 0 { 9 } else { random.below(4) };
        let mut what = format!(
            "round {round}: {}",
            [
                "killed",
                "machine lost",
                "host fails",
                "host fails and killed",
                "",
                "",
                "",
                "",
                "",
                "undisturbed"
            ][kind as usize]
        );
        if matches!(kind, 2 | 3) {
            for _ in 0..1 + random.below(4) {
                let (part, fault) = faults(&mut random);
                what.push_str(&format!(", {part} {fault:?}"));
                world.fake.fail(part, fault);
            }
        }
        let begun = std::time::Instant::now();
        let mut child = world
            .start(issue)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        if kind == 9 || kind == 2 {
            let code = child.wait().unwrap().code();
            if kind == 9 {
                whole = begun.elapsed().as_millis() as u64;
            }
            if code != Some(0) && world.run_id().is_empty() {
                // Refused before the start: the host failed during the permission check.
                TestEnv::finish(&mut world.start(issue)).exits(0);
            } else if code != Some(0) {
                world.until_proven(&what);
            }
        } else {
            std::thread::sleep(Duration::from_millis(random.below(whole)));
            let _ = child.kill();
            let _ = child.wait();
            let id = world.run_id();
            if id.is_empty() || world.events(&id).is_empty() {
                TestEnv::finish(&mut world.start(issue));
            }
            let id = world.run_id();
            let pushed =
                world.fake.git(&["rev-parse", "--verify", "--quiet", &format!("refs/ralph/{id}/state")]);
            let over = world.events(&id).iter().any(|e| e["kind"] == "finished");
            if kind == 1 && pushed.is_some_and(|commit| !commit.is_empty()) && !over {
                what.push_str(" (from the state ref)");
                let state = env.path(&format!("state-{round}"));
                // Child processes of the killed engine may still write for a moment.
                until("the machine is lost", || match std::fs::remove_dir_all(&state) {
                    Ok(()) => Some(()),
                    Err(_) => (!state.exists()).then_some(()),
                });
                world.repo.git(&["worktree", "prune"]);
                let done = TestEnv::finish(&mut world.command(&[
                    "--json",
                    "resume",
                    "--isolation",
                    "none",
                    "--from",
                    "origin",
                    &id,
                ]));
                if done.code != Some(0) {
                    println!("{what}: {}", done.stderr);
                    world.until_proven(&what);
                }
            } else if !over {
                world.until_proven(&what);
            }
        }
        let id = world.run_id();
        println!("{what}: {id}");
        world.check(&what, &id, issue);
    }
}
