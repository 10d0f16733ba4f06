//! Git folders that an agent can write: that of a sparse clone, and the one a run leaves for the next. `ralph` trusts nothing in
//! them, waits for nothing, and proves an honest run there.

use super::RALPH;
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::json;
use std::path::{Path, PathBuf};

/// An attack on the git folder of a sparse clone.
struct GitAttack {
    name: &'static str,
    script: &'static str,
    /// How the run may end.
    ends: &'static [i32],
}

const fn attack(name: &'static str, script: &'static str) -> GitAttack {
    GitAttack { name, script, ends: &[0] }
}

/// The removed file was needed: `ralph` asks the user, or the run ends.
const fn decided(name: &'static str, script: &'static str) -> GitAttack {
    GitAttack { name, script, ends: &[0, 1, 3, 4] }
}

/// Agent settings with a filter for every file.
const EVIL: &str = "mkdir -p .git/evil/info; cp -r .git/refs .git/objects .git/packed-refs .git/HEAD .git/evil/; \
     cp .git/config .git/evil/config; chmod 644 .git/evil/config; \
     printf '[filter \"x\"]\\n\\tclean = touch \"%s/made\"; cat\\n\\tsmudge = touch \"%s/made\"; cat\\n[core]\\n\\tfsmonitor = touch \"%s/made\"\\n' \"$VICTIM\" \"$VICTIM\" \"$VICTIM\" >> .git/evil/config; \
     echo '* filter=x' > .git/evil/info/attributes";

#[rustfmt::skip]
const SPARSE: &[GitAttack] = &[
    attack("a sparse clone: another folder of settings", "$EVIL; echo evil > .git/commondir"),
    attack("a sparse clone: another folder of settings, and a read-only `.git`", "$EVIL; echo evil > .git/commondir; chmod 555 .git"),
    attack("a sparse clone: settings of a worktree", "$EVIL; git config extensions.worktreeConfig true; cat .git/evil/config >> .git/config.worktree"),
    attack("a sparse clone: the logs lead out", "rm -rf .git/logs; ln -s \"$VICTIM\" .git/logs"),
    attack("a sparse clone: the refs lead out", "rm -rf .git/refs; ln -s \"$VICTIM\" .git/refs"),
    attack("a sparse clone: the folders of objects lead out", "for i in 0 1 2 3 4 5 6 7 8 9 a b c d e f; do for j in 0 1 2 3 4 5 6 7 8 9 a b c d e f; do rm -rf .git/objects/$i$j; ln -s \"$VICTIM\" .git/objects/$i$j; done; done"),
    decided("a sparse clone: what the run keeps leads out", "rm -rf .git/ralph; ln -s \"$VICTIM\" .git/ralph"),
    attack("a sparse clone: `HEAD` is a pipe", "rm .git/HEAD; mkfifo .git/HEAD"),
    attack("a sparse clone: the index is a pipe", "rm .git/index; mkfifo .git/index"),
    decided("a sparse clone: the packed refs are a pipe", "rm .git/packed-refs; mkfifo .git/packed-refs"),
    attack("a sparse clone: borrowed objects are named by a pipe", "rm -f .git/objects/info/alternates; mkdir -p .git/objects/info; mkfifo .git/objects/info/alternates"),
    attack("a sparse clone: the end of the history is a pipe", "rm -f .git/shallow; mkfifo .git/shallow"),
    attack("a sparse clone: other folders are checked out", "printf '/*\\n' > .git/info/sparse-checkout; git config core.sparseCheckout false; true"),
    decided("a sparse clone: `.git` is gone", "rm -rf .git/refs .git/HEAD .git/objects .git/index"),
];

fn victim(env: &TestEnv) -> PathBuf {
    let victim = env.path("victim");
    std::fs::create_dir_all(&victim).unwrap();
    std::fs::write(victim.join("file"), "precious").unwrap();
    victim
}

fn assert_untouched(victim: &Path, what: &str) {
    let names: Vec<String> =
        std::fs::read_dir(victim).unwrap().flatten().map(|e| e.file_name().into_string().unwrap()).collect();
    assert_eq!(names, ["file"], "{what}: something was made outside");
    assert_eq!(std::fs::read_to_string(victim.join("file")).unwrap(), "precious", "{what}");
}

/// A repo with `packages/api` as its sparse folder; the agent attacks in its first session and works in the second.
fn sparse_repo<'a>(env: &'a TestEnv, script: &str, victim: &Path) -> TestRepo<'a> {
    let repo = TestRepo::with_task(env);
    for package in ["api", "web"] {
        for n in 0..5 {
            repo.write(&format!("packages/{package}/file{n}.txt"), &format!("{package} {n}\n"));
        }
    }
    repo.git(&["config", "uploadpack.allowFilter", "true"]);
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "many"]);
    let script = script.replace("$EVIL", EVIL);
    let work = format!(
        "cat > /dev/null\nif [ $RALPH_ITERATION = 1 ]; then\n{script}\nelse echo x > packages/api/part.txt; fi\necho did it\n\
         [ $RALPH_ITERATION = 1 ] || echo '<promise>COMPLETE</promise>'"
    );
    let mut agent = repo.agent("stub", &work);
    agent["env"] = json!({ "VICTIM": victim.to_str().unwrap() });
    repo.configure(&[agent], "test -f packages/api/part.txt", &json!({"max_iterations": 4}));
    repo
}

fn sparse_run(repo: &TestRepo<'_>, more: &[&str]) -> Finished {
    let clone = repo.dir.display().to_string();
    repo.ralph(&[&["run", "--json", "--clone", &clone, "--sparse", "packages/api"], more].concat())
}

fn cannot_sandbox(done: &Finished) -> bool {
    let no = done.code == Some(4) && done.stderr.contains("cannot sandbox");
    if no {
        ralph_loop_testkit::skip(&done.stderr);
    }
    no
}

fn sparse_clone_stays_contained(from: usize, step: usize, more: &[&str]) {
    for GitAttack { name, script, ends } in SPARSE.iter().skip(from).step_by(step) {
        let env = TestEnv::new(RALPH);
        let victim = victim(&env);
        let repo = sparse_repo(&env, script, &victim);
        let done = sparse_run(&repo, more);
        if cannot_sandbox(&done) {
            return;
        }
        assert_untouched(&victim, name);
        assert!(ends.contains(&done.code.unwrap_or(-1)), "{name}: {done:?}");
        for args in [&["diff"][..], &["show", "--checks"], &["apply", "--branch", "taken"]] {
            repo.ralph(args);
            assert_untouched(&victim, name);
        }
    }
}

#[test]
fn sparse_clone_git_folder_is_not_trusted_1() {
    sparse_clone_stays_contained(0, 2, &[]);
}

#[test]
fn sparse_clone_git_folder_is_not_trusted_2() {
    sparse_clone_stays_contained(1, 2, &[]);
}

#[test]
fn sparse_clone_git_folder_is_not_trusted_with_landlock() {
    sparse_clone_stays_contained(0, 3, &["--isolation", "landlock"]);
}

#[test]
fn killed_run_in_a_sparse_clone_ignores_planted_git_files() {
    for fault in ["checkpoint.before", "checkpoint.committed"] {
        let env = TestEnv::new(RALPH);
        let victim = victim(&env);
        let repo = sparse_repo(&env, "$EVIL; echo evil > .git/commondir", &victim);
        let clone = repo.dir.display().to_string();
        let args = ["run", "--json", "--clone", &clone, "--sparse", "packages/api"];
        let killed = TestEnv::finish(env.ralph_command(&repo.dir, &args).env("RALPH_FAULT", fault));
        if cannot_sandbox(&killed) {
            return;
        }
        let run = repo.latest();
        repo.ralph(&["resume", &run, "--json"]).exits(0);
        assert_untouched(&victim, fault);
    }
}

/// The honest twin: changes inside and outside of the sparse folders come back, and files outside of the checkout aren't deleted.
#[test]
fn sandboxed_run_in_a_sparse_clone_is_proven() {
    let env = TestEnv::new(RALPH);
    let victim = victim(&env);
    let work = "ls packages > packages/api/seen.txt; git status --short > packages/api/status.txt; \
        git -c user.name=a -c user.email=a@b commit -q --allow-empty -m mine 2> packages/api/commit.txt; \
        mkdir -p packages/web; echo more > packages/web/added.txt; echo other > packages/web/file1.txt; rm packages/api/file2.txt";
    let repo = sparse_repo(&env, work, &victim);
    let done = sparse_run(&repo, &["--depth", "1"]);
    if cannot_sandbox(&done) {
        return;
    }
    let done = done.exits(0).json();
    let run = done["run_id"].as_str().unwrap();
    let top = env.path("state/ralph/workspaces").join(run);
    assert!(!env.path("state/ralph/copies").join(run).exists(), "the copy is gone");
    let git = |args: &[&str]| TestEnv::finish(env.command("git", &top).args(args)).exits(0).stdout;
    assert_eq!(std::fs::read_to_string(top.join("packages/api/seen.txt")).unwrap(), "api\n");
    let status = std::fs::read_to_string(top.join("packages/api/status.txt")).unwrap();
    assert!(!status.contains(" D "), "{status}");
    assert_eq!(std::fs::read_to_string(top.join("packages/api/commit.txt")).unwrap(), "");
    let changed = git(&["diff", "--name-status", "HEAD~1", "HEAD"]);
    let all = git(&["diff", "--name-status", "HEAD~2", "HEAD"]);
    for line in ["D\tpackages/api/file2.txt", "A\tpackages/web/added.txt", "M\tpackages/web/file1.txt"] {
        assert!(changed.contains(line) || all.contains(line), "{line}: {changed}{all}");
    }
    for line in ["D\tpackages/web", "D\treadme.txt"] {
        assert!(!all.contains(line), "{all}");
    }
    let left: Vec<PathBuf> =
        std::fs::read_dir(repo.record(run)).unwrap().flatten().map(|e| e.path()).collect();
    let left: Vec<&PathBuf> = left.iter().filter(|p| p.extension().is_some_and(|e| e == "tmp")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A killed run in a worktree resumes in its sandbox.
#[test]
fn killed_run_in_a_sandboxed_worktree_resumes() {
    for fault in ["prepare.after", "checkpoint.before", "checkpoint.committed", "prove.before"] {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::with_task(&env);
        repo.stub(
            "cat > /dev/null; echo $RALPH_ITERATION >> rounds.txt; echo x > part.txt; echo '<promise>COMPLETE</promise>'",
            "test -f part.txt",
        );
        repo.write("readme.txt", "unfinished\n");
        let mut command = env.ralph_command(&repo.dir, &["run", "--json", "--worktree"]);
        let killed = TestEnv::finish(command.env("RALPH_FAULT", fault));
        if cannot_sandbox(&killed) {
            return;
        }
        let run = repo.latest();
        let done = if killed.code == Some(0) { killed } else { repo.ralph(&["resume", &run, "--json"]) };
        let done = done.exits(0).json();
        let top = env.path("state/ralph/workspaces").join(done["run_id"].as_str().unwrap());
        assert_eq!(std::fs::read_to_string(top.join("part.txt")).unwrap(), "x\n", "{fault}");
        assert_eq!(repo.read("readme.txt"), "unfinished\n");
        assert!(!repo.dir.join("part.txt").exists(), "{fault}");
    }
}

/// The agent sees a submodule's files; the pinned commit stays.
#[test]
fn submodules_are_copied_for_the_agent_and_stay_unchanged() {
    for args in [&[][..], &["--worktree"]] {
        let env = TestEnv::new(RALPH);
        let part = TestRepo::new(&env, "part", &[("lib.txt", "library\n")]);
        let repo = TestRepo::with_task(&env);
        let from = part.dir.display().to_string();
        repo.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", &from, "vendor/part"]);
        repo.git(&["commit", "-qam", "a submodule"]);
        let pinned = repo.git(&["rev-parse", "HEAD:vendor/part"]);
        repo.stub(
            "cat > /dev/null; cat vendor/part/lib.txt > part.txt 2>&1; echo changed >> vendor/part/lib.txt; echo '<promise>COMPLETE</promise>'",
            // A worktree has empty submodules, as git leaves them; the clean checkout of the final check has their files.
            if args.is_empty() { "grep -q library vendor/part/lib.txt part.txt" } else { "test -f part.txt" },
        );
        let done = repo.ralph(&[&["run", "--json"], args].concat());
        if cannot_sandbox(&done) {
            return;
        }
        let done = done.exits(0).json();
        let top = match args {
            [] => repo.dir.clone(),
            _ => env.path("state/ralph/workspaces").join(done["run_id"].as_str().unwrap()),
        };
        if args.is_empty() {
            // A worktree has empty submodules, as git leaves them.
            assert_eq!(std::fs::read_to_string(top.join("part.txt")).unwrap(), "library\n");
        }
        assert_eq!(repo.read("vendor/part/lib.txt"), "library\n", "the user's submodule is as it was");
        let git = |args: &[&str]| TestEnv::finish(env.command("git", &top).args(args)).exits(0).stdout;
        assert_eq!(git(&["rev-parse", "HEAD:vendor/part"]).trim(), pinned);
        let status = TestEnv::finish(env.command("git", &repo.dir).args(["status", "--short"])).stdout;
        assert!(!status.contains("vendor"), "{status}");
    }
}

/// A result replaces a folder by a file while the user has an untracked file in that folder.
#[test]
fn apply_refuses_to_overwrite_a_folder_with_unknown_files() {
    for (ignored, how) in [(true, &["apply"][..]), (false, &["apply"]), (true, &["apply", "--squash"])] {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::with_task(&env);
        let many: String = (1..40).map(|n| format!("{n}\n")).collect();
        repo.write("zbig.txt", &many);
        repo.write("d/1", "1\n");
        repo.write(".gitignore", if ignored { "*.log\n" } else { "\n" });
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "folder"]);
        repo.stub(
            "cat > /dev/null; sed -i 's/^1$/one/' zbig.txt; rm -rf d; echo file > d; echo '<promise>COMPLETE</promise>'",
            "test -f d",
        );
        repo.run(&["--worktree"]).exits(0);
        repo.write("d/mine.log", "mine\n");
        repo.write("zbig.txt", &format!("{many}my unfinished work\n"));
        let before = repo.git(&["status", "--short"]);
        let refused = repo.ralph(how);
        assert_eq!(refused.code, Some(3), "{refused:?}");
        assert!(refused.stderr.contains("`d/mine.log`"), "{}", refused.stderr);
        assert_eq!(repo.git(&["status", "--short"]), before);
        assert_eq!(repo.read("d/mine.log"), "mine\n");
        assert_eq!(repo.read("d/1"), "1\n");
        assert!(repo.read("zbig.txt").ends_with("my unfinished work\n"));
        // The honest twin: without a conflict, `apply` works next to the user's unfinished work.
        std::fs::remove_file(repo.dir.join("d/mine.log")).unwrap();
        repo.ralph(&["apply"]).exits(0);
        assert_eq!(repo.read("d"), "file\n");
        let now = repo.read("zbig.txt");
        assert!(now.starts_with("one\n") && now.ends_with("my unfinished work\n"), "{now}");
    }
}

/// A lock file in a repo isn't a lock, and `ralph` doesn't wait for it.
#[test]
fn lock_files_in_a_repo_are_ignored() {
    for kind in ["a pipe", "a link to a device", "a link to the user's file"] {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::with_task(&env);
        repo.stub(
            "cat > /dev/null; echo x > part.txt; echo '<promise>COMPLETE</promise>'",
            "test -f part.txt",
        );
        let lock = repo.dir.join(".ralph/lock");
        let own = env.path("own");
        std::fs::write(&own, "precious").unwrap();
        match kind {
            "a pipe" => drop(TestEnv::finish(env.command("mkfifo", &repo.dir).arg(&lock)).exits(0)),
            "a link to a device" => std::os::unix::fs::symlink("/dev/zero", &lock).unwrap(),
            _ => std::os::unix::fs::symlink(&own, &lock).unwrap(),
        }
        for args in [
            &["status"][..],
            &["guardrail", "add", "never do that"],
            &["list"],
            &["clean", "--dry-run"],
            &["bug-report"],
        ] {
            let done = repo.ralph(args);
            assert!(done.code.is_some_and(|code| code < 5), "{kind}: {args:?}: {done:?}");
        }
        repo.run(&[]).exits(0);
        assert_eq!(std::fs::read_to_string(&own).unwrap(), "precious");
    }
}

fn source_of(env: &TestEnv) -> PathBuf {
    let sources = std::fs::read_dir(env.path("state/ralph/sources")).unwrap().flatten();
    sources.map(|entry| entry.path()).find(|path| path.is_dir()).unwrap()
}

/// Settings left in the checkout of a URL don't count as the user's for the next run of that URL.
#[test]
fn checkout_of_a_url_is_cleaned_between_runs() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write(".gitignore", "*.ignored\n.env\n");
    repo.stub(
        "cat > prompt.ignored; ls -A > seen.txt; echo x > part.txt; echo '<promise>COMPLETE</promise>'",
        "test -f part.txt",
    );
    repo.git(&["add", "-A", "-f"]);
    repo.git(&["commit", "-qm", "settings"]);
    let here = env.path("here");
    std::fs::create_dir_all(&here).unwrap();
    let url = format!("file://{}", repo.dir.display());
    let run = |text: &str| {
        env.ralph(&here, &["run", "--new", "--isolation", "none", "--json", "--clone", &url, text]).exits(0)
    };
    run("Write part.txt");
    let source = source_of(&env);
    for name in [".env", "CLAUDE.md", "made.ignored", ".ralph/models.yaml"] {
        std::fs::write(source.join(name), "ANTHROPIC_API_KEY=sk-ant-of-another-user\n").unwrap();
    }
    std::fs::create_dir_all(source.join("nested/.git")).unwrap();
    std::fs::write(source.join("readme.txt"), "changed\n").unwrap();
    run("Write part.txt again");
    for name in [".env", "CLAUDE.md", "made.ignored", ".ralph/models.yaml", "nested"] {
        assert!(!source.join(name).exists(), "{name} is still there");
    }
    // The honest twin: the repo's files and run records stay.
    assert_eq!(std::fs::read_to_string(source.join("readme.txt")).unwrap(), "hello\n");
    assert_eq!(std::fs::read_dir(source.join(".ralph/runs")).unwrap().count(), 2);
}

#[test]
fn parallel_runs_of_one_url_are_both_proven() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("cat > /dev/null; echo x > part.txt; echo '<promise>COMPLETE</promise>'", "test -f part.txt");
    // Random bytes, so that a clone is slow.
    let mut random = std::fs::File::open("/dev/urandom").unwrap();
    for n in 0..12 {
        let mut bytes = vec![0; 1 << 20];
        std::io::Read::read_exact(&mut random, &mut bytes).unwrap();
        std::fs::write(repo.dir.join(format!("large{n}")), bytes).unwrap();
    }
    repo.git(&["add", "-A", "-f"]);
    repo.git(&["commit", "-qm", "large"]);
    let url = format!("file://{}", repo.dir.display());
    let started: Vec<_> = ["one", "two", "three"]
        .into_iter()
        .map(|name| {
            let folder = env.path(name);
            std::fs::create_dir_all(&folder).unwrap();
            let text = format!("Write part.txt for {name}");
            env.spawn(&folder, &["run", "--isolation", "none", "--json", "--clone", &url, &text])
        })
        .collect();
    for child in started {
        TestEnv::wait(child).exits(0);
    }
}

#[test]
fn ignored_file_in_its_own_folder_is_copied() {
    let env = TestEnv::new(RALPH);
    env.user_config(&serde_json::json!({"workspace": {"include": ["config/local.yml"]}}));
    let repo = TestRepo::with_task(&env);
    repo.write(".gitignore", "/config/local.yml\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "ignores"]);
    repo.write("config/local.yml", "here\n");
    repo.stub(
        "cat > /dev/null; cp config/local.yml part.txt; echo '<promise>COMPLETE</promise>'",
        "grep -q here part.txt",
    );
    let done = repo.ralph(&["run"]);
    if cannot_sandbox(&done) {
        return;
    }
    let done = done.exits(0);
    assert!(!done.stderr.contains("config/local.yml"), "{}", done.stderr);
    assert_eq!(repo.read("part.txt"), "here\n");
}

#[test]
fn task_kept_by_a_failed_start_does_not_block_git() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let mut command = env.ralph_command(&repo.dir, &["run", "-p", "Write part.txt", "--agents", "unknown"]);
    let refused = TestEnv::finish(&mut command);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert_eq!(repo.git(&["status", "--short"]), "");
}

/// Serves the files below a folder, one connection at a time.
fn serve_files(folder: PathBuf) -> String {
    use std::io::{BufRead as _, BufReader, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/repo.git", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let Some(Ok(first)) = lines.next() else { continue };
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let path = first.split(' ').nth(1).unwrap_or_default();
            let path = path.split('?').next().unwrap_or_default().trim_start_matches('/');
            let (status, body) = match std::fs::read(folder.join(path)) {
                Ok(body) => ("200 OK", body),
                Err(_) => ("404 Not Found", Vec::new()),
            };
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    url
}

#[test]
fn static_file_server_can_be_cloned() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("cat > /dev/null; echo x > part.txt; echo '<promise>COMPLETE</promise>'", "test -f part.txt");
    repo.git(&["add", "-A", "-f"]);
    repo.git(&["commit", "-qm", "settings"]);
    let served = env.path("served");
    std::fs::create_dir_all(&served).unwrap();
    let bare = served.join("repo.git").display().to_string();
    repo.git(&["clone", "-q", "--bare", ".", &bare]);
    TestEnv::finish(env.command("git", &served.join("repo.git")).arg("update-server-info")).exits(0);
    let url = serve_files(served);
    let here = env.path("here");
    std::fs::create_dir_all(&here).unwrap();
    // Twice: the second time the checkout already exists.
    for text in ["Write part.txt", "Write part.txt again"] {
        let args = ["run", "--new", "--isolation", "none", "--json", "--clone", &url, text];
        env.ralph(&here, &args).exits(0);
    }
}
