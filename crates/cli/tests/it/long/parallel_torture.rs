//! Two parallel runs in every kind of workspace while the user commits and runners are killed or stopped at random times:
//! every run ends proven, the runs don't interfere, and nothing half-made is left.
//!
//! A short form always runs; `RALPH_TORTURE=full` runs all of it.
#![allow(clippy::disallowed_methods, reason = "tests start and kill processes")]

use crate::RALPH;
use ralph_loop_testkit::torture::{self, Random};
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const PARTS: u32 = 3;

/// Writes one missing part each time, so that lost work shows as a lost part. Sometimes it creates or switches branches.
const AGENT: &str = r#"
cat > /dev/null
case $RALPH_ITERATION in
    2) git checkout -q -b feature-$$ 2>/dev/null ;;
    3) git add -A 2>/dev/null && git -c user.name=a -c user.email=a@b commit -qm mine 2>/dev/null ;;
esac
for n in 1 2 3; do
    # Ended in the middle of its write, a session leaves an empty file.
    if ! grep -qsx "part $n" part$n.txt; then echo "part $n" > part$n.txt; break; fi
done
echo 'did a part'
if grep -qsx 'part 3' part3.txt; then echo '<promise>COMPLETE</promise>'; fi
"#;

/// Where a run works.
const PLACES: [&[&str]; 4] = [
    &["run", "--json"],
    &["run", "--json", "--isolation", "none", "--worktree"],
    &["run", "--json", "--worktree"],
    &["run", "--json", "--clone", "."],
];

struct Round<'a> {
    env: &'a TestEnv,
    repo: TestRepo<'a>,
    what: String,
    commits: u32,
}

impl<'a> Round<'a> {
    fn new(env: &'a TestEnv) -> Self {
        let repo = TestRepo::with_task(env);
        let agent = repo.agent("stub", AGENT);
        let check = "for n in 1 2 3; do grep -qx \"part $n\" part$n.txt || exit 1; done";
        repo.configure(&[agent], check, &json!({ "max_iterations": 30 }));
        Self { env, repo, what: String::new(), commits: 0 }
    }

    fn start(&self, args: &[&str]) -> Child {
        let mut command = self.env.ralph_command(&self.repo.dir, args);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// The user's work: a commit, sometimes a branch, a tag or packed refs.
    fn act_as_user(&mut self, random: &mut Random) {
        self.commits += 1;
        let n = self.commits.to_string();
        self.repo.write("mine.txt", &format!("{n}\n"));
        self.repo.git(&["add", "mine.txt"]);
        self.repo.git(&["commit", "-qm", &n]);
        match random.below(4) {
            0 => drop(self.repo.git(&["branch", &format!("user-{n}")])),
            1 => drop(self.repo.git(&["tag", &format!("v{n}")])),
            2 => drop(self.repo.git(&["pack-refs", "--all"])),
            _ => {}
        }
    }

    /// The runs of this machine, by its registry.
    fn runs(&self) -> BTreeSet<String> {
        let listed = self.repo.ralph(&["list", "--all", "--json"]);
        let value: Value = serde_json::from_str(listed.stdout.trim()).unwrap_or_default();
        let rows =
            value.as_array().cloned().or_else(|| value["runs"].as_array().cloned()).unwrap_or_default();
        rows.iter().filter_map(|row| row["run_id"].as_str().map(str::to_owned)).collect()
    }

    /// Restarts until the run ends; `resume` is the only command it ever needs.
    fn until_proven(&self, id: &str) {
        let mut last: Option<Finished> = None;
        for _ in 0..8 {
            let done = self.repo.ralph(&["--json", "resume", id]);
            match done.code {
                Some(0) => return,
                Some(2) if done.stderr.contains("is over") => return,
                _ => println!("{}: {id}: {:?} {}", self.what, done.code, done.stderr),
            }
            last = Some(done);
        }
        panic!("{}: run {id} does not end: {last:?}", self.what);
    }

    fn check(&self, id: &str) {
        let what = format!("{}: {id}", self.what);
        let shown = self.repo.ralph(&["status", id, "--json"]).exits(0).json();
        assert_eq!(shown["status"], "done", "{what}: {shown}");
        let events = self.events(id);
        let seqs: Vec<u64> = events.iter().map(|e| e["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "{what}: an event is lost or doubled");
        let count = |kind: &str| events.iter().filter(|e| e["kind"] == kind).count();
        assert_eq!((count("run_created"), count("finished")), (1, 1), "{what}");
        assert_eq!(count("needs_human"), 0, "{what}: no question for the user");
        let proof =
            events.iter().rev().find(|e| e["kind"] == "proof_finished" && e["passed"] == true).unwrap();
        let commit = proof["commit"].as_str().unwrap();
        for part in 1..=PARTS {
            let text = self.show(id, commit, &format!("part{part}.txt"));
            assert_eq!(text.as_deref(), Some(format!("part {part}").as_str()), "{what}");
        }
    }

    /// A file of a commit, in the user's repo or in the run's clone.
    fn show(&self, id: &str, commit: &str, file: &str) -> Option<String> {
        let clone = self.env.path("state/ralph/workspaces").join(id);
        [self.repo.dir.clone(), clone].iter().filter(|dir| dir.is_dir()).find_map(|dir| {
            let done =
                TestEnv::finish(self.env.command("git", dir).args(["show", &format!("{commit}:{file}")]));
            (done.code == Some(0)).then(|| done.stdout.trim_end().to_owned())
        })
    }

    fn events(&self, id: &str) -> Vec<Value> {
        let shown = self.repo.ralph(&["logs", id, "--json"]);
        shown.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Asserts that killed processes left nothing in the user's repo.
    fn assert_no_leftovers(&self) {
        let mut locks = Vec::new();
        find_locks(&self.repo.dir.join(".git"), &mut locks);
        assert!(locks.is_empty(), "{}: {locks:?}", self.what);
        let trees = self.repo.git(&["worktree", "list", "--porcelain"]);
        assert!(!trees.contains("prunable"), "{}: {trees}", self.what);
        let partial =
            std::fs::read_dir(self.env.path("state/ralph/workspaces")).into_iter().flatten().flatten();
        let partial: Vec<PathBuf> =
            partial.map(|e| e.path()).filter(|p| p.to_string_lossy().ends_with("-partial")).collect();
        assert!(partial.is_empty(), "{}: {partial:?}", self.what);
        self.repo.git(&["fsck", "--no-dangling", "--no-progress"]);
        let subjects = self.repo.git(&["log", "--format=%s", "main"]);
        for n in 1..=self.commits {
            assert!(
                subjects.lines().any(|s| s == n.to_string()),
                "{}: the user's commit {n} is lost",
                self.what
            );
        }
    }
}

/// Finds git's lock files, without the run's own.
fn find_locks(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name == "ralph") {
                continue;
            }
            find_locks(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "lock") {
            found.push(path);
        }
    }
}

fn signal(child: &Child, name: &str) {
    let _ = std::process::Command::new("kill")
        .args([name, &child.id().to_string()])
        .stderr(Stdio::null())
        .status();
}

#[test]
fn parallel_runs_end_proven_despite_kills_and_user_commits() {
    let rounds = torture::rounds(4, 380);
    let mut random = Random::new(20_261_117);
    let mut whole = 2500;
    for number in 0..rounds {
        let env = TestEnv::new(RALPH);
        let mut round = Round::new(&env);
        // Only one run can work in the user's own folder.
        let first = random.below(4) as usize;
        let second = 1 + random.below(3) as usize;
        let endings = ["-9", "-9", "-9", "-TERM", "-INT", "-HUP"];
        let (one, two) = (random.one_of(&endings), random.one_of(&endings));
        round.what = format!("round {number}: {:?} {one} beside {:?} {two}", PLACES[first], PLACES[second]);
        let begun = Instant::now();
        let mut runs = [round.start(PLACES[first]), round.start(PLACES[second])];
        if number == 0 {
            // The first round measures how long two runs take.
            for run in &mut runs {
                let _ = run.wait();
            }
            whole = (begun.elapsed().as_millis() as u64).max(200);
        } else {
            let (early, late) = (random.below(whole), random.below(whole));
            std::thread::sleep(Duration::from_millis(early));
            round.act_as_user(&mut random);
            signal(&runs[0], one);
            std::thread::sleep(Duration::from_millis(late.saturating_sub(early)));
            signal(&runs[1], two);
            for run in &mut runs {
                let _ = run.wait();
            }
            round.act_as_user(&mut random);
        }
        for id in round.runs() {
            round.until_proven(&id);
        }
        // If it was killed before the run existed, it is started again.
        for place in [PLACES[first], PLACES[second]].into_iter().skip(round.runs().len().min(2)) {
            let done = round.repo.ralph(place);
            if done.code == Some(4) && done.stderr.contains("sandbox") {
                ralph_loop_testkit::skip(&done.stderr);
                return;
            }
            done.exits(0);
        }
        let ids = round.runs();
        println!("{}: {ids:?}", round.what);
        assert_eq!(ids.len(), 2, "{}: {ids:?}", round.what);
        for id in &ids {
            round.check(id);
        }
        round.assert_no_leftovers();
    }
}
