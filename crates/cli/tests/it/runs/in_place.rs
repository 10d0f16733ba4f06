//! Runs in the user's own folder, sandboxed: the agent works on a copy of the tree, each iteration's result is handed back,
//! and nothing of the user's is ever overwritten.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

use crate::RALPH;
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// Skips the test if this machine has no sandbox.
macro_rules! fenced {
    ($done:expr) => {{
        let done = $done;
        if done.code == Some(4) && done.stderr.contains("cannot sandbox") {
            ralph_loop_testkit::skip(&done.stderr);
            return;
        }
        done
    }};
}

/// Every file below a folder with its bytes, kind and mode; without git's and ralph's own folders.
fn files(top: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    fn walk(top: &Path, below: &Path, found: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
        for entry in std::fs::read_dir(top.join(below)).unwrap().flatten() {
            let path = below.join(entry.file_name());
            if path == Path::new(".git") || path == Path::new(".ralph") {
                continue;
            }
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                walk(top, &path, found);
            } else if meta.is_symlink() {
                let target = std::fs::read_link(top.join(&path)).unwrap();
                found.insert(path, (meta.mode(), target.into_os_string().into_encoded_bytes()));
            } else if meta.len() > 1024 * 1024 {
                found.insert(path, (meta.mode(), meta.len().to_string().into_bytes()));
            } else {
                found.insert(path.clone(), (meta.mode(), std::fs::read(top.join(path)).unwrap()));
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(top, Path::new(""), &mut found);
    found
}

/// An agent whose first session lists the tree and writes a part, and whose second one deletes a file and finishes.
const LOOKS_AROUND: &str = r#"
cat a.txt b.txt mine.txt build/out.o sub/inner.txt big.bin 2>/dev/null | head -c 300 | tr -d '\0' > seen.txt
ls -A > names.txt
git status --short > status.txt
head -c 1 .ralph/runs/*/spec.json > run.txt
echo x 2>/dev/null >> .ralph/runs/*/events.jsonl && echo written >> run.txt
if [ "$RALPH_ITERATION" = 1 ]; then
    echo one > part1.txt; mkdir -p deep/er; echo x > deep/er/new.sh; chmod +x deep/er/new.sh; ln -s part1.txt link2
    echo note >> .ralph/notes.md
else
    echo two > part2.txt; rm old/file.txt; echo '<promise>COMPLETE</promise>'
fi"#;

fn mess(env: &TestEnv, repo: &TestRepo<'_>) {
    for (path, text) in [
        ("a.txt", "a\n"),
        ("b.txt", "b\n"),
        ("gone.txt", "gone\n"),
        ("old/file.txt", "old\n"),
        ("run.sh", "#!/bin/sh\n"),
        (".gitignore", "build/\n.env\n"),
        ("crlf.txt", "one\r\ntwo\r\n"),
    ] {
        repo.write(path, text);
    }
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "more"]);
    repo.write("a.txt", "a, mine\n");
    repo.write("b.txt", "b, staged\n");
    repo.git(&["add", "b.txt"]);
    repo.write("b.txt", "b, staged and changed again\n");
    repo.write("staged.txt", "new and staged\n");
    repo.git(&["add", "staged.txt"]);
    repo.git(&["rm", "-q", "--cached", "crlf.txt"]);
    std::fs::remove_file(repo.dir.join("gone.txt")).unwrap();
    repo.write("mine.txt", "untracked\n");
    repo.write("dir with space/ü.txt", "unicode\n");
    repo.write("build/out.o", "object\n");
    repo.write(".env", "TOKEN=1\n");
    symlink("a.txt", repo.dir.join("link")).unwrap();
    symlink("/nowhere", repo.dir.join("dangling")).unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(repo.dir.join("run.sh"), mode).unwrap();
    let big = std::fs::File::create(repo.dir.join("big.bin")).unwrap();
    big.set_len(101 * 1024 * 1024).unwrap();
    let inner = repo.dir.join("sub");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("inner.txt"), "inner\n").unwrap();
    for args in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-q", "-m", "inner"]] {
        let who = ["-c", "user.name=T", "-c", "user.email=t@example.com"];
        TestEnv::finish(env.command("git", &inner).args(who).args(args)).exits(0);
    }
}

#[test]
fn uncommitted_user_files_stay_unchanged_in_place() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    mess(&env, &repo);
    repo.stub(LOOKS_AROUND, "test -f part2.txt");
    let before = files(&repo.dir);
    let index = std::fs::read(repo.dir.join(".git/index")).unwrap();
    let config = repo.read(".git/config");
    let done = fenced!(repo.ralph(&["run", "--json"])).exits(0);
    assert!(done.stderr.contains("`.env`"), "the omitted file is reported: {}", done.stderr);
    assert_eq!(std::fs::read(repo.dir.join(".git/index")).unwrap(), index, "the index is as it was");
    assert_eq!(repo.read(".git/config"), config);
    let mut after = files(&repo.dir);
    let mut made: Vec<String> = Vec::new();
    after.retain(|path, _| {
        let new = !before.contains_key(path);
        made.extend(new.then(|| path.display().to_string()));
        !new
    });
    made.sort();
    let expected = [
        "deep/er/new.sh",
        "link2",
        "names.txt",
        "part1.txt",
        "part2.txt",
        "run.txt",
        "seen.txt",
        "status.txt",
    ];
    assert_eq!(made, expected);
    let mut kept = before;
    assert!(kept.remove(Path::new("old/file.txt")).is_some() && !repo.dir.join("old").exists());
    assert_eq!(after, kept);
    assert_eq!(std::fs::read_link(repo.dir.join("link2")).unwrap(), Path::new("part1.txt"));
    let mode = std::fs::metadata(repo.dir.join("deep/er/new.sh")).unwrap().mode();
    assert_eq!(mode & 0o111, 0o111);
    // The agent saw all of the user's files except the secret.
    assert_eq!(repo.read("seen.txt"), "a, mine\nb, staged and changed again\nuntracked\nobject\ninner\n");
    let names = repo.read("names.txt");
    assert!(names.lines().any(|n| n == "big.bin") && !names.lines().any(|n| n == ".env"), "{names}");
    assert!(repo.read("status.txt").contains("MM b.txt"), "{}", repo.read("status.txt"));
    assert!(repo.read(".ralph/notes.md").contains("note"), "state files are the user's, too");
    assert_eq!(repo.read("run.txt"), "{", "the run's own files can be read, and only that");
    // Only the agent's own changes were committed, and only on the run's own ref.
    let work = format!("refs/ralph/{}/work", repo.latest());
    let changed = repo.git(&["diff", "--name-only", "main", &work]);
    assert_eq!(
        changed,
        "deep/er/new.sh\nlink2\nnames.txt\nold/file.txt\npart1.txt\npart2.txt\nrun.txt\nseen.txt\nstatus.txt"
    );
    assert_eq!(repo.git(&["log", "--format=%s", "-1", "main"]), "more");
    let handed: Vec<u64> =
        repo.events_named("handed_back").iter().map(|e| e["iteration"].as_u64().unwrap()).collect();
    assert_eq!(handed, [1, 2], "after each iteration");
    assert_eq!(repo.git(&["fsck", "--no-dangling", "--no-progress"]), "");
    let twins = std::fs::read_dir(env.path("state/ralph/workspaces")).unwrap().count();
    assert_eq!(twins, 0, "the copy is gone with the run");

    // And all of it can be undone.
    repo.ralph(&["restore", &repo.latest(), "--yes"]).exits(0);
    assert_eq!(repo.read("old/file.txt"), "old\n");
    assert!(!repo.dir.join("part1.txt").exists() && !repo.dir.join("link2").exists());
    assert_eq!(repo.read("b.txt"), "b, staged and changed again\n");
    assert_eq!(std::fs::read(repo.dir.join(".git/index")).unwrap(), index);
}

/// A session that reports that it runs, and ends on request.
const WAITS: &str = r#"
if [ "$RALPH_ITERATION" = 1 ]; then
    touch .ralph/started; until [ -e .ralph/go ]; do sleep 0.05; done
    echo agent > readme.txt; echo new > fresh.txt
else
    cp other.txt seen.txt; echo part > part.txt; echo '<promise>COMPLETE</promise>'
fi"#;

/// The agent's folder of the active run.
fn agent_copy(env: &TestEnv) -> Option<PathBuf> {
    let mut found = std::fs::read_dir(env.path("state/ralph/workspaces")).ok()?.flatten();
    found.find(|e| e.path().join(".ralph/started").exists()).map(|e| e.path())
}

/// Runs the agent above; calls `meanwhile` during its first session.
fn during(env: &TestEnv, repo: &TestRepo<'_>, args: &[&str], meanwhile: impl FnOnce()) -> Finished {
    let child = env.spawn(&repo.dir, &[&["--verbose", "run"], args].concat());
    let pid = child.id();
    let folder = until("the session, or an early end", || {
        agent_copy(env).map(Some).or_else(|| (!ralph_loop_testkit::env::is_alive(pid)).then_some(None))
    });
    if let Some(folder) = folder {
        meanwhile();
        std::fs::write(folder.join(".ralph/go"), "").unwrap();
    }
    TestEnv::wait(child)
}

#[test]
fn file_changed_by_the_user_is_reported_and_never_overwritten() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write("other.txt", "other\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "other"]);
    repo.stub(WAITS, "test -f part.txt");
    let done = during(&env, &repo, &[], || {
        repo.write("readme.txt", "mine, just now\n");
        repo.write("other.txt", "other, mine\n");
        repo.write("fresh.txt", "mine, too\n");
        repo.write(".ralph/guardrails.md", "### guardrail: mine\n");
        // No other run can start here in the meantime.
        let second = repo.ralph(&["run", "--new"]).exits(4);
        assert!(second.stderr.contains("one run at a time per folder"), "{}", second.stderr);
        assert_eq!(std::fs::read_dir(env.path("state/ralph/workspaces")).unwrap().count(), 1);
    });
    let done = fenced!(done).exits(0);
    assert!(done.stderr.contains("you have changed 2 files, too"), "{}", done.stderr);
    assert!(
        done.stderr.contains("your own change of `other.txt` was brought to the agent"),
        "{}",
        done.stderr
    );
    assert_eq!(repo.read("readme.txt"), "mine, just now\n");
    assert_eq!(repo.read("fresh.txt"), "mine, too\n");
    assert_eq!(repo.read("other.txt"), "other, mine\n");
    assert_eq!(repo.read("part.txt"), "part\n");
    assert_eq!(repo.read("seen.txt"), "other, mine\n", "the next session starts from what the user sees");
    let run = repo.latest();
    assert_eq!(repo.git(&["show", &format!("refs/ralph/{run}/work:readme.txt")]), "agent");
    assert!(done.stderr.contains(&format!("git show refs/ralph/{run}/work:fresh.txt")), "{}", done.stderr);
    let told = repo.events_named("handed_back");
    assert_eq!(told[0]["conflicts"], json!(["fresh.txt", "readme.txt"]));
    assert!(repo.run_file("iterations/2/prompt.md").contains("guardrail: mine"));

    // Undoing later also reverts only the run's changes.
    repo.write("wip.txt", "mine, after it\n");
    let plan = repo.ralph(&["restore", "--json", "--yes"]).exits(0).json();
    assert_eq!(plan["yours"], json!(["fresh.txt", "other.txt", "readme.txt", "wip.txt"]), "{plan}");
    assert!(!repo.dir.join("part.txt").exists() && !repo.dir.join("seen.txt").exists());
    assert_eq!(repo.read("other.txt"), "other, mine\n");
    assert_eq!(repo.read("wip.txt"), "mine, after it\n");
    // The suggested restore command works.
    let source = format!("--source=refs/ralph/{run}/before-restore");
    repo.git(&["restore", "--overlay", &source, "--", ":/"]);
    assert_eq!(repo.read("part.txt"), "part\n");
}

#[test]
fn missing_tool_in_the_sandbox_is_reported_before_the_first_session() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agent = repo.agent("stub", "echo x > part.txt; echo '<promise>COMPLETE</promise>'");
    repo.configure(&[agent], "frobnicate-tests --all", &json!({}));
    fenced!(repo.ralph(&["run", "--json"])).exits(3);
    let events = repo.events();
    let started = events.iter().position(|event| event["kind"] == "iteration_started").unwrap();
    let warned = events[..started].iter().any(|event| {
        let said = event["message"].as_str().unwrap_or_default();
        event["kind"] == "notice"
            && said.starts_with("warning: ")
            && said.contains("`frobnicate-tests` is not installed")
    });
    assert!(warned, "{events:?}");
    let asked = repo.events_named("needs_human")[0]["message"].as_str().unwrap().to_owned();
    assert!(asked.contains("`frobnicate-tests` is not installed"), "{asked}");
    // Without initial checks it is named once, too.
    repo.ralph(&["run", "--new", "--no-baseline", "--max-iterations", "1"]);
    let told = repo.events_named("notice");
    let named =
        |event: &&Value| event["message"].as_str().is_some_and(|said| said.contains("cannot pass here"));
    assert_eq!(told.iter().filter(named).count(), 1, "{told:?}");
}

#[test]
fn branch_gets_each_iteration_and_keeps_user_commits() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write("other.txt", "other\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "other"]);
    repo.write("mine.txt", "mine\n");
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    repo.stub(WAITS, "test -f part.txt");
    let done = during(&env, &repo, &["--branch", "fix"], || {});
    fenced!(done).exits(0);
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/fix");
    let run = repo.latest();
    assert_eq!(repo.git(&["rev-parse", "fix"]), repo.git(&["rev-parse", &format!("refs/ralph/{run}/work")]));
    assert_eq!(repo.git(&["rev-list", "--count", "main..fix"]), "2");
    assert_eq!(repo.git(&["status", "--porcelain"]), "A  staged.txt\n?? mine.txt");
    assert!(repo.git(&["reflog", "fix"]).contains("ralph: run"));

    // A commit of the user on the same branch: the run leaves the branch alone and says so.
    repo.stub(&WAITS.replace("fresh.txt", "second.txt"), "test -f second.txt");
    let done = during(&env, &repo, &["--branch", "fix", "--new"], || {
        repo.git(&["commit", "-q", "-m", "mine"]);
    });
    let done = fenced!(done).exits(0);
    assert!(done.stderr.contains("you have moved the branch `fix`"), "{}", done.stderr);
    assert_eq!(repo.git(&["log", "--format=%s", "-1", "fix"]), "mine");
    assert_eq!(repo.read("second.txt"), "new\n");
    assert!(done.stderr.contains("the branch `fix` stayed where you moved it"), "{}", done.stderr);
}

#[test]
fn git_program_settings_never_reach_the_user_repo() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write(".gitignore", ".env\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "ignore"]);
    repo.write(".env", "SECRET=1\n");
    repo.stub(
        r#"exec 2>/dev/null
        for f in .git/hooks/post-commit .git/hooks/post-checkout; do echo 'touch /tmp/planted' > $f; chmod +x $f; done
        git config core.hooksPath evil; git config alias.status '!touch planted'
        echo '[core]' >> .git/config; mv .git .git2; echo x > .git/config
        git branch agent-branch; git tag agent-tag; git update-ref refs/heads/main HEAD
        printf '' > .gitignore; echo 'SECRET=agent' > .env; ln -s /etc outside; mkdir -p sub/.git/hooks
        echo evil > sub/.git/hooks/pre-commit; echo part > part.txt
        ln -s "$PWD/../.." up; echo '<promise>COMPLETE</promise>'"#,
        "test -f part.txt",
    );
    let refs = repo.git(&["for-each-ref", "refs/heads", "refs/tags"]);
    let config = repo.read(".git/config");
    let done = fenced!(repo.ralph(&["run", "--json", "--max-iterations", "1"]));
    let done = done.exits(1);
    assert_eq!(done.json()["reason"], "max_iterations", "{done:?}");
    assert_eq!(repo.git(&["for-each-ref", "refs/heads", "refs/tags"]), refs);
    assert_eq!(repo.read(".git/config"), config);
    let hooks = repo.dir.join(".git/hooks");
    let planted = ["post-commit", "post-checkout"].iter().any(|name| hooks.join(name).exists());
    assert!(!planted && !repo.dir.join("sub/.git").exists());
    assert_eq!(repo.read(".env"), "SECRET=1\n", "what git ignored is not overwritten");
    assert!(!Path::new("/tmp/planted").exists() && !repo.dir.join("planted").exists());
}

/// Landlock can't protect the agent's git folder; planted files there have no effect outside.
#[test]
fn landlock_in_place_applies_changes_and_ignores_agent_settings() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let planted = env.path("planted");
    repo.stub(
        &format!(
            r#"exec 2>/dev/null
            git config filter.evil.clean 'touch {0}; cat'; git config filter.evil.required true
            echo '* filter=evil' > .gitattributes; echo '[filter "evil"] clean = "touch {0}; cat"' >> .git/config
            echo part > part.txt; rm -f .gitattributes.x; echo '<promise>COMPLETE</promise>'"#,
            planted.display()
        ),
        "test -f part.txt",
    );
    let done = fenced!(repo.ralph(&["run", "--json", "--isolation", "landlock"]));
    // Attributes are files like any other: only the user's own filters run, and those in the sandbox.
    done.exits(0);
    assert_eq!(repo.read("part.txt"), "part\n");
    assert!(!planted.exists(), "a filter of the agent was run outside the sandbox");
}

#[test]
fn task_edit_reaches_agent_and_user() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write("other.txt", "other\n");
    repo.stub(WAITS, "test -f part.txt");
    let done = during(&env, &repo, &[], || {
        repo.write("new-task.md", "# Another task\n\nWrite `part.txt` better.\n");
        repo.ralph(&["edit", "--file", "new-task.md"]).exits(0);
    });
    fenced!(done).exits(0);
    assert!(repo.read("PROMPT.md").contains("Another task"), "{}", repo.read("PROMPT.md"));
    assert!(repo.run_file("iterations/2/prompt.md").contains("Another task"));
    assert!(repo.events_named("protected_changed").is_empty());
}
