//! Runs of the older layout, with their record in the folder's `.ralph/`: they are read there, and move when they are resumed.

use crate::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::Value;
use std::fs;
use std::path::Path;

const WORKER: &str = "echo did; echo $RALPH_ITERATION >> log.txt\n[ $RALPH_ITERATION = 1 ] || { echo work > part.txt; echo '<promise>COMPLETE</promise>'; }";

/// A run over budget, in the older layout.
fn older_run(env: &TestEnv, repo: &TestRepo<'_>) -> String {
    repo.stub(WORKER, "grep -q work part.txt");
    let run = repo.run(&["--max-iterations", "1"]).exits(1).json()["run_id"].as_str().unwrap().to_owned();
    let (record, old) = (repo.record(&run), repo.dir.join(".ralph/runs").join(&run));
    let private = repo.dir.join(".git/ralph").join(&run);
    fs::remove_dir_all(&old).unwrap();
    for file in fs::read_dir(record.join("git")).unwrap().flatten() {
        fs::rename(file.path(), private.join(file.file_name())).unwrap();
    }
    for name in ["git", "grown"] {
        let _ = fs::remove_dir_all(record.join(name));
    }
    for name in ["lock", "state.json"] {
        fs::remove_file(record.join(name)).unwrap();
    }
    fs::rename(&record, &old).unwrap();
    for name in ["events.jsonl", "spec.json"] {
        fs::hard_link(old.join(name), private.join(name)).unwrap();
    }
    let path = env.path("state/ralph/runs").join(format!("{run}.json"));
    let mut entry: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    entry.as_object_mut().unwrap().remove("record").unwrap();
    entry["spare"] = private.to_str().unwrap().into();
    fs::write(&path, entry.to_string()).unwrap();
    run
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).unwrap().is_symlink()
}

#[test]
fn finished_run_of_the_older_layout_is_read_in_its_folder() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let run = older_run(&env, &repo);
    let listed = repo.ralph(&["list", "--json"]).exits(0).stdout;
    assert!(listed.contains(&run) && listed.contains("failed"), "{listed}");
    assert!(repo.ralph(&["show", &run]).exits(0).stdout.contains("Do the work"));
    assert!(repo.ralph(&["logs", &run]).exits(0).stdout.contains("iteration 1"));
    let restored = repo.ralph(&["restore", &run, "--json", "--yes"]).exits(0).stdout;
    assert!(restored.contains("log.txt") && !repo.dir.join("log.txt").exists(), "{restored}");
    assert!(!is_link(&repo.dir.join(".ralph/runs").join(&run)) && !repo.record(&run).exists());
}

#[test]
fn run_of_the_older_layout_moves_on_resume() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let run = older_run(&env, &repo);
    let done = repo.ralph(&["resume", &run, "--max-iterations", "5", "--json"]).exits(0).json();
    assert_eq!((done["run_id"].as_str(), done["iterations"].as_u64()), (Some(run.as_str()), Some(2)));
    assert_eq!(repo.read("log.txt"), "1\n2\n");
    let record = repo.record(&run);
    assert_eq!(done["run_dir"].as_str(), record.to_str());
    let journal = fs::read(record.join("events.jsonl")).unwrap();
    assert_eq!(journal, fs::read(env.path(&format!("state/ralph/seals/{run}.jsonl"))).unwrap());
    assert!(record.join("git/record.json").is_file() && record.join("iterations/1/prompt.md").is_file());
    assert_eq!(repo.run_file("events.jsonl").into_bytes(), journal, "a copy of the whole run");
    assert!(repo.ralph(&["show", &run]).exits(0).stdout.contains("Do the work"));
}

#[test]
fn edited_journal_of_the_older_layout_is_detected_on_resume() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let run = older_run(&env, &repo);
    let journal = repo.dir.join(".ralph/runs").join(&run).join("events.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, text.replace("stub", "judge")).unwrap();
    let refused = repo.ralph(&["resume", &run, "--max-iterations", "5"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("edited"), "{refused:?}");
    // The run is over, so there is nothing else to approve.
    let approved = repo.ralph(&["approve", &run]);
    assert!(approved.stderr.contains("the sealed copy is the journal again"), "{approved:?}");
    repo.ralph(&["resume", &run, "--max-iterations", "5"]).exits(0);
}

#[test]
fn copied_run_folder_is_read_only() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let run = older_run(&env, &repo);
    fs::remove_file(env.path("state/ralph/runs").join(format!("{run}.json"))).unwrap();
    assert!(repo.ralph(&["show", &run]).exits(0).stdout.contains("Do the work"));
    let refused = repo.ralph(&["resume", &run, "--max-iterations", "5"]).exits(2);
    assert!(refused.stderr.contains("isn't on this machine"), "{}", refused.stderr);
}
