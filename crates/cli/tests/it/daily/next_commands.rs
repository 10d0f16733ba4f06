//! The next command that `ralph` suggests at the end of a run works in that folder.

use super::{RALPH, calc, capable_claude, claude_says, program, ralph_in};
use ralph_loop_testkit::TestEnv;
use std::path::Path;

/// The arguments of all `ralph` commands in backticks on `next:` lines, without commands that have placeholders.
fn commands(said: &str) -> Vec<Vec<String>> {
    let lines = said.lines().filter(|line| line.trim_start().starts_with("next:"));
    let quoted = lines.flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted
        .filter_map(|words| words.strip_prefix("ralph "))
        .filter(|words| !words.contains('…') && !words.contains("DIR"))
        .map(|words| {
            words.split_whitespace().map(|word| if word == "N" { "9" } else { word }.to_owned()).collect()
        })
        .collect()
}

/// Runs each of them; commands that undo the result come last.
#[track_caller]
fn each_works(env: &TestEnv, folder: &Path, said: &str, codes: &[i32]) -> usize {
    let mut all = commands(said);
    assert!(!all.is_empty(), "no next command in:\n{said}");
    all.sort_by_key(|words| ["resume", "apply", "restore"].contains(&words[0].as_str()));
    for words in &all {
        let mut args: Vec<&str> = words.iter().map(String::as_str).collect();
        if args[0] == "open" {
            args.push("--print");
        }
        if args[0] == "restore" {
            args.push("--yes");
        }
        let done = ralph_in(env, folder, &args);
        assert!(done.code.is_some_and(|code| codes.contains(&code)), "ralph {args:?}: {done:?}\n{said}");
    }
    all.len()
}

#[test]
fn next_command_works_after_a_proven_run_in_every_workspace() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    capable_claude(&env);
    for place in [&["--isolation", "none"][..], &["--worktree"], &["--clone", "."], &["--branch", "topic"]] {
        let run = [&["run", "Make calc.x two in calc.py", "--isolation", "none"][..], place].concat();
        let run: Vec<&str> = if place[0] == "--isolation" { run[..4].to_vec() } else { run };
        let done = ralph_in(&env, &repo.dir, &run).exits(0);
        each_works(&env, &repo.dir, &done.stderr, &[0]);
        repo.git(&["checkout", "-q", "-f", "main"]);
        repo.git(&["reset", "-q", "--hard", "main"]);
        repo.git(&["clean", "-qfd"]);
        if repo.read("calc.py") == "x = 2\n" {
            repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
        }
        let status = repo.ralph(&["status"]).exits(0);
        assert!(status.stdout.contains("`ralph show"), "{}", status.stdout);
    }
}

#[test]
fn clone_run_from_a_plain_folder_writes_nothing_there() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    capable_claude(&env);
    let plain = env.path("plain");
    std::fs::create_dir_all(&plain).unwrap();
    let from = repo.dir.display().to_string();
    let run = ["run", "--isolation", "none", "--clone", &from, "Make calc.x two in calc.py"];
    let done = ralph_in(&env, &plain, &run).exits(0);
    each_works(&env, &plain, &done.stderr, &[0]);
    let refused = ralph_in(&env, &plain, &["apply"]).exits(2);
    assert!(
        refused.stderr.contains("--into DIR") && refused.stderr.contains("git fetch"),
        "{}",
        refused.stderr
    );
    assert_eq!(repo.read("calc.py"), "x = 1\n");
    let done = ralph_in(&env, &plain, &["apply", "--squash", "--into", &from]).exits(0);
    assert!(done.stderr.contains("one commit"), "{}", done.stderr);
    assert_eq!(repo.read("calc.py"), "x = 2\n");
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "Set `calc.x` to two");
}

#[test]
fn next_command_works_after_a_failed_run() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    program(&env, "claude", &format!("cat > /dev/null\necho 1 >> other.py\n{}", claude_says("Tried it.")));
    let run = ["run", "--isolation", "none", "--max-iterations", "1", "Make calc.x two"];
    let done = ralph_in(&env, &repo.dir, &run).exits(1);
    // With a larger budget it continues, and ends without success again.
    each_works(&env, &repo.dir, &done.stderr, &[0, 1, 3]);
    let status = repo.ralph(&["status"]).exits(0).stdout;
    assert!(status.contains("next") || status.contains("`ralph"), "{status}");
    // The user has to fix something: `resume` continues then, and there is no proof to show.
    let run = ["run", "--new", "--isolation", "none", "--verify", "mytool calc.py", "Make calc.x two"];
    let done = ralph_in(&env, &repo.dir, &run).exits(3);
    assert!(!done.stderr.contains("--proof") && !done.stderr.contains("run --new"), "{}", done.stderr);
    each_works(&env, &repo.dir, &done.stderr, &[0, 3]);
}

#[test]
fn agent_question_is_in_the_summary() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    let asks = claude_says("I looked around.\nWhich of the two values do you want?")
        .replace("<promise>COMPLETE</promise>", "");
    let asks = asks.replace("\\n\\n", "");
    program(&env, "claude", &format!("cat > /dev/null\n{asks}"));
    let run = ["run", "--isolation", "none", "--max-iterations", "1", "Make calc.x right"];
    let done = ralph_in(&env, &repo.dir, &run).exits(1);
    assert!(
        done.stderr.contains("asked     claude: Which of the two values do you want?"),
        "{}",
        done.stderr
    );
    let shown = repo.ralph(&["diff"]).exits(0);
    assert!(shown.stderr.contains("changed no files"), "{}", shown.stderr);
}
