//! `ralph clean` and `ralph cost`: leftovers of runs and their cost.

use super::{RALPH, calc, capable_claude, ralph_in};
use ralph_loop_testkit::{TestEnv, TestRepo};

fn ran(env: &TestEnv, repo: &TestRepo<'_>, sentence: &str, more: &[&str]) -> String {
    let args = [&["run", "--isolation", "none", "--json", sentence], more].concat();
    ralph_in(env, &repo.dir, &args).exits(0).json()["run_id"].as_str().unwrap().to_owned()
}

#[test]
fn clean_removes_finished_runs_but_keeps_untaken_results() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    capable_claude(&env);
    let worktree = ran(&env, &repo, "Make it two in a worktree", &["--worktree"]);
    let clone = ran(&env, &repo, "Make it two in a clone", &["--clone", "."]);
    let folder = |run: &str| env.path("state/ralph/workspaces").join(run);
    let plan = repo.ralph(&["clean", "--older-than", "0d", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(plan["runs"].as_array().unwrap().len(), 0, "the user hasn't seen them: {plan}");
    assert_eq!(plan["kept"].as_array().unwrap().len(), 2, "{plan}");
    for run in [&worktree, &clone] {
        repo.ralph(&["show", run]).exits(0);
    }
    let young = repo.ralph(&["clean", "--json"]).exits(0).json();
    assert_eq!(young["removed"], false, "{young}");
    let plan = repo.ralph(&["clean", "--older-than", "0d", "--dry-run"]).exits(0).stdout;
    assert!(plan.contains(&worktree) && plan.contains("2 refs"), "{plan}");
    assert!(plan.contains("its work is only in its clone"), "{plan}");
    assert!(folder(&worktree).is_dir());
    let branch = format!("ralph/{worktree}");
    // Headless, nothing is removed without `--yes`.
    let shown = repo.ralph(&["clean", "--older-than", "0d"]).exits(0);
    assert!(shown.stderr.contains("remove it with `ralph clean --older-than 0d --yes`"), "{}", shown.stderr);
    assert!(shown.stdout.contains("of 1 finished run:"), "{}", shown.stdout);
    let json = repo.ralph(&["clean", "--older-than", "0d", "--json"]).exits(0).json();
    assert_eq!(json["removed"], false, "{json}");
    let young = repo.ralph(&["clean"]).exits(0).stdout;
    assert!(young.contains("only runs that ended more than 14 days ago count"), "{young}");
    assert!(folder(&worktree).is_dir());
    let done = repo.ralph(&["clean", "--older-than", "0d", "--yes", "--json"]).exits(0).json();
    assert_eq!(done["removed"], true);
    assert!(done["bytes"].as_u64().unwrap() > 0, "{done}");
    assert!(!folder(&worktree).exists() && folder(&clone).is_dir());
    assert_eq!(repo.git(&["show", &format!("{branch}:calc.py")]), "x = 2", "branches stay");
    assert!(!repo.git(&["for-each-ref"]).contains(&format!("refs/ralph/{worktree}")));
    assert!(!repo.git(&["worktree", "list"]).contains(&worktree));
    repo.ralph(&["apply", &clone, "--squash"]).exits(0);
    repo.ralph(&["clean", "--older-than", "0d", "--yes"]).exits(0);
    assert!(!folder(&clone).exists());
    let listed = repo.ralph(&["list", "--json"]).exits(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 2, "the record stays: {listed}");
    repo.ralph(&["show", &clone]).exits(0);
    assert_eq!(repo.git(&["branch", "--list", &branch]), "", "the checked out branch contains its change");
    for command in ["diff", "restore"] {
        let refused = repo.ralph(&[command, &worktree]).exits(2);
        assert!(refused.stderr.contains("cleaned up"), "{command}: {}", refused.stderr);
    }
    let shown = repo.ralph(&["show", &worktree]).exits(0).stdout;
    assert!(
        shown.contains("cleaned up") && !shown.contains("refs/ralph/"),
        "nothing stale is named: {shown}"
    );
    let costs = repo.ralph(&["cost", "--json"]).exits(0).json();
    assert_eq!(costs["rows"][0]["sessions"], 2, "{costs}");
}

#[test]
fn an_unfinished_run_is_never_cleaned_up() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("cat > /dev/null; echo x > part.txt", "test -f part.txt");
    let mut command = env.ralph_command(&repo.dir, &["run", "--isolation", "none", "--worktree", "--json"]);
    let done = TestEnv::finish(command.env("RALPH_FAULT", "checkpoint.committed"));
    let run = repo.ralph(&["list", "--json"]).json()[0]["run_id"].as_str().unwrap_or_default().to_owned();
    assert!(!run.is_empty(), "{done:?}");
    let args = ["clean", "--older-than", "0d", "--unread", "--yes", "--json"];
    let plan = repo.ralph(&args).exits(0).json();
    assert_eq!(plan["runs"].as_array().unwrap().len(), 0, "{plan}");
    assert!(plan["kept"][0]["why"].as_str().unwrap().contains("unfinished: run `ralph resume`"), "{plan}");
    assert!(env.path("state/ralph/workspaces").join(&run).is_dir());
    let mut command = env.ralph_command(&repo.dir, &["run", "--isolation", "none", "--worktree"]);
    let again = TestEnv::finish(command.env("RALPH_FAULT", "checkpoint.committed"));
    let hint = format!("run {run} of the same task is unfinished (`ralph resume {run}` continues it)");
    assert!(again.stderr.contains(&hint), "{}", again.stderr);
}

#[test]
fn cost_totals_by_agent_model_and_repo() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    capable_claude(&env);
    ran(&env, &repo, "Make it two", &[]);
    for (by, name) in [("agent", "claude"), ("repo", repo.dir.to_str().unwrap())] {
        let costs = repo.ralph(&["cost", "--since", "1h", "--by", by, "--json"]).exits(0).json();
        assert_eq!(costs["by"], by);
        assert_eq!(costs["rows"][0]["name"], name, "{costs}");
        assert_eq!(costs["rows"][0]["sessions"], 1, "{costs}");
        assert_eq!(costs["cost_usd"], 0.02, "{costs}");
    }
    let text = repo.ralph(&["cost", "--by", "model"]).exits(0).stdout;
    assert!(text.contains("$0.02"), "{text}");
    repo.ralph(&["cost", "--since", "soon"]).exits(2);
    let doctor = ralph_in(&env, &repo.dir, &["doctor"]).stdout;
    assert!(doctor.contains("kept by runs"), "{doctor}");
}

#[test]
fn clean_removes_unneeded_checkouts_of_other_repos() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    capable_claude(&env);
    let plain = env.path("plain");
    std::fs::create_dir_all(&plain).unwrap();
    let from = repo.dir.display().to_string();
    let args = ["run", "--isolation", "none", "--clone", &from, "--json", "Make it two"];
    ralph_in(&env, &plain, &args).exits(0);
    let sources = || {
        let entries = std::fs::read_dir(env.path("state/ralph/sources")).unwrap().flatten();
        entries.filter(|entry| entry.path().join(".git").exists()).count()
    };
    let clean = ["clean", "--all", "--unread", "--older-than", "0d", "--yes"];
    ralph_in(&env, &plain, &clean).exits(0);
    assert_eq!(sources(), 1, "its clone alone holds the work");
    ralph_in(&env, &plain, &["apply", "--into", &from]).exits(0);
    std::fs::remove_dir_all(env.path("state/ralph/workspaces")).unwrap();
    let done = ralph_in(&env, &plain, &clean).exits(0);
    assert!(done.stderr.contains("1 checkout of other repos"), "{}", done.stderr);
    assert_eq!(sources(), 0);
}
