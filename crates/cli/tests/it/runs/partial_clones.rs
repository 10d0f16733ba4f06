//! Runs in shallow, sparse clones: they work, are proven and are recorded as in a full clone.

use crate::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};
use std::path::PathBuf;

const WORK: &str =
    "echo x > packages/api/part.txt; ls packages > packages/api/seen.txt; echo '<promise>COMPLETE</promise>'";

fn repo(env: &TestEnv) -> TestRepo<'_> {
    let repo = TestRepo::with_task(env);
    for package in ["api", "web", "docs"] {
        for n in 0..100 {
            repo.write(&format!("packages/{package}/file{n}.txt"), &format!("{package} {n}\n"));
        }
    }
    repo.git(&["config", "uploadpack.allowFilter", "true"]);
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "many"]);
    repo
}

fn place_of(done: &ralph_loop_testkit::env::Finished) -> PathBuf {
    let run = done.json();
    let record = PathBuf::from(run["run_dir"].as_str().unwrap());
    record.ancestors().nth(2).unwrap().join("workspaces").join(run["run_id"].as_str().unwrap())
}

#[test]
fn run_in_a_sparse_clone_is_proven_with_the_same_folders() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env);
    // The final check also lacks the other packages.
    repo.configure(
        &[repo.agent("stub", WORK)],
        "test -f packages/api/part.txt && test ! -e packages/web",
        &json!({}),
    );
    let clone = repo.dir.display().to_string();
    let done = repo.run(&["--clone", &clone, "--depth", "1", "--sparse", "packages/api"]).exits(0);
    let top = place_of(&done);
    let git = |args: &[&str]| {
        let output = TestEnv::finish(env.command("git", &top).args(args)).exits(0);
        output.stdout.trim().to_owned()
    };
    assert_eq!(std::fs::read_to_string(top.join("packages/api/seen.txt")).unwrap(), "api\n");
    assert_eq!(git(&["rev-list", "--count", "HEAD"]), "2", "one commit of theirs and one of ours");
    let changed = git(&["diff", "--name-status", "HEAD~1", "HEAD"]);
    assert_eq!(
        changed, "A\tpackages/api/part.txt\nA\tpackages/api/seen.txt",
        "files outside the sparse checkout aren't deleted"
    );
    let spec = std::fs::read_to_string(
        top.join(".ralph/runs").join(done.json()["run_id"].as_str().unwrap()).join("spec.json"),
    );
    let spec: Value = serde_json::from_str(&spec.unwrap()).unwrap();
    assert_eq!(spec["place"]["sparse"], json!(["packages/api"]));
}

#[test]
fn flags_override_the_configured_clone_options() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env);
    repo.configure(
        &[repo.agent("stub", WORK)],
        "true",
        &json!({"clone": {"depth": 1, "sparse": ["packages/web"]}}),
    );
    let clone = repo.dir.display().to_string();
    let done =
        repo.run(&["--clone", &clone, "--sparse", "packages/api", "--sparse", "packages/docs"]).exits(0);
    assert_eq!(
        std::fs::read_to_string(place_of(&done).join("packages/api/seen.txt")).unwrap(),
        "api\ndocs\n"
    );

    let refused = repo.run(&["--clone", &clone, "--sparse", "../x"]).exits(4);
    assert!(refused.stderr.contains("`../x` isn't a folder"), "{}", refused.stderr);
    repo.run(&["--sparse", "packages/api"]).exits(2);
    repo.run(&["--clone", &clone, "--depth", "0"]).exits(2);
}
