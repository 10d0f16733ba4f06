//! What a sandboxed agent finds in its copy, and a check on the machine.

use crate::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;

#[test]
fn ignored_files_stash_and_other_branches_stay_with_the_user() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let names = ["prod.env", "AuthKey.p8", "backup.sql", "config/local.yml"];
    repo.write(".gitignore", "prod.env\n*.p8\n*.sql\nlocal.yml\n/target/\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "ignore"]);
    repo.git(&["switch", "-qc", "other"]);
    repo.write("branch.txt", "CANARY\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "CANARY"]);
    repo.git(&["switch", "-q", "main"]);
    repo.write("stashed.txt", "CANARY\n");
    repo.git(&["add", "-A"]);
    repo.git(&["stash", "-q"]);
    for name in names {
        repo.write(name, "CANARY\n");
    }
    repo.write("target/built", "built\n");
    let script = "cp target/built built.txt; ls -A . config > names.txt 2>&1
        git cat-file --batch-all-objects --batch > objects.txt; git log --all --format=%s > log.txt
        echo '<promise>COMPLETE</promise>'";
    repo.stub(script, "test -f names.txt");
    let done = repo.ralph(&["run", "--json"]);
    if done.code == Some(4) {
        return ralph_loop_testkit::skip("this machine cannot sandbox agents");
    }
    let done = done.exits(0);
    let listed = repo.read("names.txt");
    for name in names {
        assert!(!listed.contains(name.rsplit('/').next().unwrap()), "{name}: {listed}");
    }
    assert!(!repo.read("objects.txt").contains("CANARY") && !repo.read("log.txt").contains("CANARY"));
    assert_eq!(repo.read("built.txt"), "built\n");
    assert!(
        done.stderr.contains("`prod.env`") && done.stderr.contains("workspace.include"),
        "{}",
        done.stderr
    );
}

#[test]
fn a_repo_asks_for_ignored_files_and_the_user_decides() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write(".gitignore", "prod.env\nbackup.sql\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "ignore"]);
    repo.write("prod.env", "one\n");
    repo.write("backup.sql", "two\n");
    let script = "cat prod.env backup.sql > seen.txt 2>/dev/null; echo x >> part.txt; echo '<promise>COMPLETE</promise>'";
    let agent = repo.agent("stub", script);
    repo.configure(&[agent], "test -f part.txt", &json!({"workspace": {"include": ["prod.env"]}}));
    let done = repo.ralph(&["run", "--json"]);
    assert_ne!(done.code, Some(0), "it needs approval: {}", done.stderr);
    assert!(done.stderr.contains("prod.env"), "{}", done.stderr);
    repo.ralph(&["trust", "--yes"]).exits(0);
    let done = repo.ralph(&["run", "--json"]);
    if done.code == Some(4) {
        return ralph_loop_testkit::skip("this machine cannot sandbox agents");
    }
    done.exits(0);
    assert_eq!(repo.read("seen.txt"), "one\n");
}

#[test]
fn a_check_that_needs_a_path_outside_the_view_names_it() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("echo x >> part.txt; echo '<promise>COMPLETE</promise>'", "cat /srv/ralph-fixtures/data.csv");
    let done = repo.ralph(&["run", "--max-iterations", "1", "--no-baseline"]);
    if done.code == Some(4) {
        return ralph_loop_testkit::skip("this machine cannot sandbox agents");
    }
    let all = format!("{}{}", done.stdout, done.stderr);
    assert!(all.contains("`/srv/ralph-fixtures/data.csv` is outside the sandbox's view"), "{all}");
    assert!(all.contains("sandbox_read"), "{all}");
}
