//! The record of a run that this machine didn't register, in a folder's `.ralph/`.

use crate::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use std::fs;

#[test]
fn copied_run_folder_is_read_only() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("echo did", "false");
    let run = repo.run(&["--max-iterations", "1"]).exits(1).json()["run_id"].as_str().unwrap().to_owned();
    let shown = repo.dir.join(".ralph/runs").join(&run);
    fs::remove_dir_all(&shown).unwrap();
    fs::rename(repo.record(&run), &shown).unwrap();
    fs::remove_file(env.path("state/ralph/runs").join(format!("{run}.json"))).unwrap();
    assert!(repo.ralph(&["show", &run]).exits(0).stdout.contains("Do the work"));
    let refused = repo.ralph(&["resume", &run, "--max-iterations", "5"]).exits(2);
    assert!(refused.stderr.contains("isn't on this machine"), "{}", refused.stderr);
}
