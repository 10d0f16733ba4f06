//! Runs that are killed at every named boundary and at random times, or whose journal is truncated at any line: every run ends
//! proven, with no event lost or doubled, no commit doubled, and the same end as an undisturbed run.
//!
//! A short form always runs; `RALPH_TORTURE=full` runs all of it.
#![allow(clippy::disallowed_methods, reason = "tests start and kill processes")]

use crate::RALPH;
use ralph_loop_testkit::env::{is_alive, until};
use ralph_loop_testkit::torture::{Random, full, rounds};
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use std::collections::BTreeMap;
use std::time::Duration;

const RUN: &[&str] = &["run", "--isolation", "none"];
const FENCED: &[&str] = &["run"];

/// An agent whose session `n` writes file `n` and which leaves a stubborn process behind. From the fourth on it fixes
/// whatever is missing and promises.
const AGENT: &str = r#"
echo $$ > "$AGENT_PID"
setsid sh -c 'trap "" TERM; echo $$ >> "$0"; sleep 600' "$SURVIVORS" >/dev/null 2>&1 &
i=$RALPH_ITERATION
cat > /dev/null
n=1
while [ $n -le 4 ]; do
    if [ $n -eq $i ] || [ $i -gt 4 ]; then printf 'work %s\n' $n > part$n.txt.new && mv part$n.txt.new part$n.txt; fi
    n=$((n+1))
done
echo "did part $i"
if [ $i -ge 4 ]; then echo '<promise>COMPLETE</promise>'; fi
"#;

struct Torture<'a> {
    env: &'a TestEnv,
    repo: TestRepo<'a>,
    run: &'static [&'static str],
}

/// How closely a run must match an undisturbed one. A killed agent leaves its part to a later iteration; a truncated journal
/// finds files of iterations that it no longer lists.
#[derive(Clone, Copy, PartialEq)]
enum Exact {
    End,
    Iterations,
    Commits,
}

impl<'a> Torture<'a> {
    fn new(env: &'a TestEnv) -> Self {
        let repo =
            TestRepo::new(env, "repo with spaces", &[("readme.txt", "hello\n"), ("src/ä.txt", "unicode\n")]);
        repo.write("PROMPT.md", "# Four parts\n\nWrite the four parts.\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-q", "-m", "task"]);
        repo.write("mine.txt", "the user's own, not committed\n");
        repo.write("readme.txt", "hello\nthe user's own change\n");
        let agent = repo.script("agent.sh", AGENT);
        repo.config(&serde_json::json!({
            "agents": [{"name": "stub", "command_argv": [agent],
                        "env": {"AGENT_PID": env.path("agent.pid"), "SURVIVORS": env.path("survivors")}}],
            "verifiers": [{"name": "tests", "command_argv":
                ["sh", "-c", "for n in 1 2 3 4; do grep -q \"work $n\" part$n.txt || exit 1; done"]}],
            "max_iterations": 20,
        }));
        Self { env, repo, run: RUN }
    }

    fn start_with(&self, key: &str, value: &str) -> Finished {
        let mut command = self.env.ralph_command(&self.repo.dir, self.run);
        TestEnv::finish(command.env(key, value))
    }

    /// Restarts until the run ends.
    fn restart(&self) -> Finished {
        let done = self.repo.ralph(self.run);
        self.assert_no_survivors();
        done
    }

    fn assert_no_survivors(&self) {
        let text = std::fs::read_to_string(self.env.path("survivors")).unwrap_or_default();
        for pid in text.lines().filter_map(|l| l.trim().parse().ok()) {
            until(&format!("the end of process {pid}"), || (!is_alive(pid)).then_some(()));
        }
    }

    /// Asserts what must hold at the end, however often the run was killed.
    fn check(&self, what: &str, exact: Exact) {
        let events = self.repo.events();
        let seqs: Vec<u64> = events.iter().map(|e| e["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "{what}: an event is lost or doubled");
        let count = |kind: &str| events.iter().filter(|e| e["kind"] == kind).count();
        assert_eq!(
            (count("run_created"), count("prepared"), count("published"), count("finished")),
            (1, 1, 1, 1),
            "{what}: {:?}",
            self.repo.kinds()
        );
        let mut ended: BTreeMap<u64, usize> = BTreeMap::new();
        for event in events.iter().filter(|e| e["kind"] == "iteration_ended") {
            *ended.entry(event["iteration"].as_u64().unwrap()).or_default() += 1;
        }
        assert!(ended.values().all(|n| *n == 1), "{what}: an iteration ended twice: {ended:?}");
        let run = self.repo.latest();
        let work = format!("refs/ralph/{run}/work");
        let log = self.repo.git(&[
            "log",
            "--format=%(trailers:key=Ralph-Iteration,valueonly,separator=)",
            &work,
            "^main",
        ]);
        let mut commits: Vec<&str> = log.lines().collect();
        let before = commits.len();
        commits.sort_unstable();
        commits.dedup();
        assert_eq!(commits.len(), before, "{what}: a commit is doubled");
        for n in 1..=4 {
            assert_eq!(
                self.repo.git(&["show", &format!("{work}:part{n}.txt")]),
                format!("work {n}"),
                "{what}"
            );
        }
        assert_eq!(
            self.repo.git(&["diff", "--name-only", "main", &work]),
            "part1.txt\npart2.txt\npart3.txt\npart4.txt",
            "{what}"
        );
        if exact != Exact::End {
            assert_eq!(ended.len(), 4, "{what}: {ended:?}");
        }
        if exact == Exact::Commits {
            assert_eq!(commits, ["1", "2", "3", "4"], "{what}");
        }
        let proof: serde_json::Value = serde_json::from_str(&self.repo.run_file("proof.json")).unwrap();
        assert_eq!(proof["passed"], true, "{what}");
        assert_eq!(proof["commit"].as_str().unwrap(), self.repo.git(&["rev-parse", &work]), "{what}");
        // The user's files are unchanged and uncommitted.
        assert_eq!(self.repo.read("mine.txt"), "the user's own, not committed\n", "{what}");
        assert_eq!(
            self.repo.git(&["status", "--porcelain", "--untracked-files=all"]),
            " M readme.txt\n?? mine.txt\n?? part1.txt\n?? part2.txt\n?? part3.txt\n?? part4.txt",
            "{what}"
        );
        assert_eq!(self.repo.git(&["stash", "list"]), "", "{what}");
    }

    /// Restores the state before the run for the next round.
    fn reset(&self) {
        for n in 1..=4 {
            let _ = std::fs::remove_file(self.repo.dir.join(format!("part{n}.txt")));
        }
        let _ = std::fs::remove_dir_all(self.repo.dir.join(".ralph/runs"));
        let _ = std::fs::remove_file(self.repo.dir.join(".ralph/state.json"));
        let _ = std::fs::remove_file(self.env.path("survivors"));
    }
}

#[test]
fn run_killed_at_every_boundary_ends_the_same() {
    let env = TestEnv::new(RALPH);
    at_every_boundary(&Torture::new(&env), "");
}

/// The agent works on a copy of the tree: the copied-back result is complete, wherever the run is killed.
#[test]
fn sandboxed_run_killed_at_every_boundary_ends_the_same() {
    let env = TestEnv::new(RALPH);
    at_every_boundary(
        &Torture { run: FENCED, ..Torture::new(&env) },
        "prepare takein handback checkpoint work.session finish",
    );
    let copies = std::fs::read_dir(env.path("state/ralph/workspaces")).map_or(0, Iterator::count);
    assert!(copies <= 1, "{copies} copies of runs that are over are left");
}

/// `some` names the boundaries of the short form.
fn at_every_boundary(torture: &Torture<'_>, some: &str) {
    let trace = torture.env.path("trace");
    let first = torture.start_with("RALPH_TRACE", trace.to_str().unwrap());
    if first.code == Some(4) && first.stderr.contains("cannot sandbox") {
        ralph_loop_testkit::skip(&first.stderr);
        return;
    }
    first.exits(0);
    torture.check("unkilled", Exact::Commits);
    torture.assert_no_survivors();
    let text = std::fs::read_to_string(&trace).unwrap();
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for name in text.lines().filter_map(|l| Some(l.split_once(' ')?.1)) {
        *seen.entry(name).or_default() += 1;
    }
    assert!(seen.len() >= 18, "the boundaries of a run: {seen:?}");
    for (name, times) in seen {
        if !full() && !some.is_empty() && !some.split(' ').any(|part| name.starts_with(part)) {
            continue;
        }
        for n in 1..=times {
            if !full() && n != times.min(2) {
                continue;
            }
            torture.reset();
            let fault = format!("{name}#{n}");
            let killed = torture.start_with("RALPH_FAULT", &fault);
            assert_eq!(killed.code, None, "{fault} did not kill: {}", killed.stderr);
            torture.assert_no_survivors();
            if name != "finish.after" {
                let again = torture.restart().exits(0);
                assert!(again.stderr.contains("continuing unfinished run"), "{fault}: {}", again.stderr);
            }
            torture.check(&fault, Exact::Commits);
        }
    }
}

fn guard_of(pid: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().filter_map(|c| c.parse().ok()).find(|child: &u32| {
        std::fs::read(format!("/proc/{child}/cmdline"))
            .is_ok_and(|c| String::from_utf8_lossy(&c).contains("__guard"))
    })
}

fn kill(pid: u32) {
    let _ = std::process::Command::new("kill")
        .args(["-9", &pid.to_string()])
        .stderr(std::process::Stdio::null())
        .status();
}

#[test]
fn run_killed_at_random_times_ends_proven() {
    let env = TestEnv::new(RALPH);
    let torture = Torture::new(&env);
    let start = std::time::Instant::now();
    torture.repo.ralph(RUN).exits(0);
    let whole = start.elapsed().as_millis() as u64;
    let rounds = rounds(12, 200);
    let mut random = Random::new(20_261_115);
    for round in 0..rounds {
        torture.reset();
        let victim = ["ralph", "guard", "agent"][(round % 3) as usize];
        let delay = random.below(whole.max(50));
        let what = format!("round {round}: {victim} after {delay} ms");
        let child = env.spawn(&torture.repo.dir, RUN);
        std::thread::sleep(Duration::from_millis(delay));
        match victim {
            "ralph" => kill(child.id()),
            "guard" => guard_of(child.id()).into_iter().for_each(kill),
            _ => {
                let pid = std::fs::read_to_string(env.path("agent.pid")).unwrap_or_default();
                pid.trim().parse().ok().filter(|p| is_alive(*p)).into_iter().for_each(kill);
            }
        }
        let first = TestEnv::wait(child);
        torture.assert_no_survivors();
        let finished = torture.repo.kinds().iter().any(|k| k == "finished");
        if !finished {
            torture.restart().exits(0);
        } else {
            assert!(first.code.is_none_or(|c| c == 0), "{what}: {first:?}");
        }
        torture.check(&what, if victim == "agent" { Exact::End } else { Exact::Commits });
    }
}

#[test]
fn run_with_a_truncated_journal_and_torn_artifacts_finishes() {
    let env = TestEnv::new(RALPH);
    let torture = Torture::new(&env);
    torture.repo.ralph(RUN).exits(0);
    let run = torture.repo.latest();
    let dir = torture.repo.record(&run);
    let journal = dir.join("events.jsonl");
    let whole = std::fs::read(&journal).unwrap();
    let lines: Vec<usize> =
        whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
    let mut cuts: Vec<usize> = lines.clone();
    if full() {
        cuts.extend(lines.iter().flat_map(|at| [at - 1, at - 7, at.saturating_sub(40)]));
    } else {
        cuts = cuts.into_iter().skip(1).step_by(5).collect();
    }
    let pristine = env.path("pristine");
    copy(&torture.repo.dir, &pristine);
    let pristine_record = env.path("pristine-record");
    copy(&dir, &pristine_record);
    for cut in cuts.into_iter().filter(|cut| *cut < whole.len()) {
        std::fs::remove_dir_all(&torture.repo.dir).unwrap();
        copy(&pristine, &torture.repo.dir);
        std::fs::remove_dir_all(&dir).unwrap();
        copy(&pristine_record, &dir);
        // As after a power cut that also lost the sealed copy.
        let _ = std::fs::remove_dir_all(env.path("state/ralph/seals"));
        std::fs::write(&journal, &whole[..cut]).unwrap();
        let _ = std::fs::remove_file(torture.repo.dir.join(".ralph/state.json"));
        tear(&dir);
        torture.restart().exits(0);
        torture.check(&format!("cut at byte {cut}"), Exact::Iterations);
    }
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    let done = std::process::Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(done.success());
}

/// Cuts every artifact in half.
fn tear(dir: &std::path::Path) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        // Git's own data and the lock aren't artifacts.
        if ["git", "copy-git", "grown", "lock"].iter().any(|n| path.ends_with(n)) {
            continue;
        }
        if path.is_dir() {
            tear(&path);
        } else if !["events.jsonl", "spec.json", "inbox.jsonl"].iter().any(|n| path.ends_with(n)) {
            let text = std::fs::read(&path).unwrap();
            std::fs::write(&path, &text[..text.len() / 2]).unwrap();
        }
    }
}
