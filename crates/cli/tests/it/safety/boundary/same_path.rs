//! The agent's tree and the clean checkout of the final check are mounted at the path of the user's repo: absolute paths work
//! there and never reach the repo itself.

use super::RALPH;
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::json;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Creates a virtual environment: scripts with an absolute interpreter path.
const MAKE_VENV: &str = r#"mkdir -p .venv/bin
printf '#!/bin/sh\nexec /bin/sh "$@"\n' > .venv/bin/interpreter
printf '#!%s/.venv/bin/interpreter\necho ran in "$(pwd)"\n' "$PWD" > .venv/bin/tool
printf 'tool = %s/.venv/bin/tool\n' "$PWD" > local.cfg
chmod +x .venv/bin/interpreter .venv/bin/tool
"#;

/// A session that uses it by every path it has.
const USES_VENV: &str = r#"cat > /dev/null
[ -d .venv ] || sh make-venv.sh
{ pwd; echo "$PWD"; .venv/bin/tool; "$(sed 's/tool = //' local.cfg)"; } > part.txt
git log -1 --format=%s >> part.txt
echo '<promise>COMPLETE</promise>'"#;

fn has_no_sandbox(done: &Finished) -> bool {
    let missing = done.code == Some(4) && done.stderr.contains("sandbox");
    if missing {
        ralph_loop_testkit::skip(&done.stderr);
    }
    missing
}

/// A repo at `place` with a virtual environment that git ignores.
fn venv_repo<'a>(env: &'a TestEnv, place: &str) -> TestRepo<'a> {
    let files = [
        ("PROMPT.md", "# Do the work\n\nWrite `part.txt`.\n"),
        (".gitignore", ".venv/\nlocal.cfg\nignored.txt\n"),
        ("make-venv.sh", MAKE_VENV),
        ("readme.txt", "hello\n"),
    ];
    let repo = TestRepo::new(env, place, &files);
    let made = TestEnv::finish(env.command("sh", &repo.dir).arg("make-venv.sh"));
    assert_eq!(made.code, Some(0), "{made:?}");
    repo
}

/// The check runs the tool by its full path, in the session's tree and in the final check's.
fn configure(repo: &TestRepo<'_>, script: &str) {
    let at = repo.dir.display();
    let check = format!("[ \"$(pwd)\" = '{at}' ] && '{at}/.venv/bin/tool' && .venv/bin/tool && cat part.txt");
    let setup = json!({ "setup_commands": [["sh", "make-venv.sh"]] });
    repo.configure(&[repo.agent("stub", script)], &check, &setup);
}

/// The file created by a run, in the user's folder and equal on the run's branch.
fn created_file(env: &TestEnv, done: &Finished, name: &str) -> String {
    let result = done.json();
    let folder = Path::new(result["workspace"].as_str().unwrap());
    let text = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    // In place the user commits the files.
    if let Some(branch) = result["branch"].as_str().filter(|branch| branch.starts_with("ralph/")) {
        let shown = TestEnv::finish(env.command("git", folder).args(["show", &format!("{branch}:{name}")]));
        assert_eq!(shown.exits(0).stdout, text, "{name}");
        let status = TestEnv::finish(env.command("git", folder).args(["status", "--porcelain"]));
        assert_eq!(status.exits(0).stdout, "");
    }
    text
}

fn assert_venv_works(place: &str, args: &[&str]) {
    let env = TestEnv::new(RALPH);
    let repo = venv_repo(&env, place);
    configure(&repo, USES_VENV);
    let done = repo.ralph(&[&["run", "--json", "--isolation", "bwrap"], args].concat());
    if has_no_sandbox(&done) {
        return;
    }
    let done = done.exits(0);
    let at = repo.dir.display();
    let expected = format!("{at}\n{at}\nran in {at}\nran in {at}\nstart\n");
    assert_eq!(created_file(&env, &done, "part.txt"), expected, "{done:?}");
    let run = done.json()["run_id"].as_str().unwrap().to_owned();
    let log = std::fs::read_to_string(repo.record(&run).join("proof/check-tests.log")).unwrap();
    assert!(log.starts_with(&format!("ran in {at}\nran in {at}\n")), "{log}");
}

#[test]
fn a_virtual_environment_works_in_place() {
    assert_venv_works("home/code/repo", &[]);
}

#[test]
fn a_virtual_environment_works_in_a_worktree() {
    assert_venv_works("code/größe", &["--worktree"]);
}

#[test]
fn a_virtual_environment_works_in_a_clone() {
    assert_venv_works("home/repo", &["--clone", "."]);
}

/// A virtual environment and a Go of the user's, outside of the repo, on the PATH; their neighbors stay hidden.
#[test]
fn home_tools_on_the_path_work_and_their_neighbors_stay_hidden() {
    let env = TestEnv::new(RALPH);
    let repo =
        TestRepo::new(&env, "home/code/repo", &[("part.txt", "start\n"), ("PROMPT.md", "# Do the work\n")]);
    let home = env.path("home");
    let venv = home.join("venvs/x");
    let mut command = env.command("python3", &home);
    let made = TestEnv::finish(command.args(["-m", "venv", "--without-pip"]).arg(&venv));
    if made.code != Some(0) {
        ralph_loop_testkit::skip("`python3 -m venv` does not work on this machine");
        return;
    }
    let write = |name: &str, text: &str| {
        let path = home.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let libraries =
        TestEnv::finish(env.command("sh", &home).args(["-c", "echo venvs/x/lib/python3*/site-packages"]));
    write(&format!("{}/own_library.py", libraries.stdout.trim()), "VALUE = 7\n");
    write("sdk/go/src/runtime/version", "1.99\n");
    write("sdk/go/bin/go", "#!/bin/sh\ncat \"$(dirname \"$0\")/../src/runtime/version\"\n");
    write("venvs/letters.txt", "secret\n");
    write("sdk/letters.txt", "secret\n");
    TestEnv::finish(env.command("chmod", &home).args(["+x", "sdk/go/bin/go"])).exits(0);
    let look = "python3 -c 'import own_library; print(own_library.VALUE)'; go; ls \"$LETTERS/venvs\" \"$LETTERS/sdk\" | grep -c letters";
    let mut agent = repo.agent(
        "stub",
        &format!("cat > /dev/null\n{{ {look}; }} > part.txt 2>&1\necho '<promise>COMPLETE</promise>'"),
    );
    agent["env"] = json!({ "LETTERS": home });
    repo.configure(&[agent], "python3 -c 'import own_library' && go", &json!({ "max_iterations": 1 }));
    let mut command = env.ralph_command(&repo.dir, &["run", "--json", "--isolation", "bwrap"]);
    let tools = format!("{}:{}", venv.join("bin").display(), home.join("sdk/go/bin").display());
    let path = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path?.to_str());
    let path = format!("{tools}:{}", path.unwrap_or("/usr/bin:/bin"));
    command.env("PATH", path);
    let done = TestEnv::finish(&mut command);
    if has_no_sandbox(&done) {
        return;
    }
    let done = done.exits(0);
    assert_eq!(repo.read("part.txt"), "7\n1.99\n0\n", "{done:?}");
}

/// Changes by absolute paths, to files and git, stay in the agent's copy.
const ATTACKS_BY_FULL_PATH: &str = r#"cat > /dev/null
echo agent > "$AT/ignored.txt"; rm -f "$AT/local.cfg"
cp "$(git rev-parse --git-path HEAD)" "$AT/head.txt" 2>/dev/null
git branch evil; git tag evil-tag; git update-ref refs/heads/stolen HEAD
mkdir -p "$AT/.git/refs/heads"; git rev-parse HEAD > "$AT/.git/refs/heads/by-path"
echo planted | git hash-object -w --stdin > planted.id
echo '[alias] x = !touch /tmp/x' >> "$AT/.git/config"; echo evil > "$AT/.git/hooks/post-checkout"
rm -rf "$AT/.git/logs"; for f in "$AT"/.git/objects/info/*; do [ -e "$f" ] && cat "$f"; done > borrowed.txt
for f in $(cat borrowed.txt); do touch "$f/evil" && echo "wrote $f" >> part.txt; done
ls "$AT" | grep -c user-only >> part.txt
echo part >> part.txt; rm -f borrowed.txt
exec 2>/dev/null; echo '<promise>COMPLETE</promise>'"#;

fn absolute_paths_lead_to_the_copy(args: &[&str]) {
    let env = TestEnv::new(RALPH);
    let repo = venv_repo(&env, "home/repo");
    repo.write("ignored.txt", "mine\n");
    repo.write(".git/logs/kept", "mine\n");
    std::fs::create_dir_all(repo.dir.join(".git/user-only")).unwrap();
    let at = repo.dir.display().to_string();
    let mut agent = repo.agent("stub", ATTACKS_BY_FULL_PATH);
    agent["env"] = json!({ "AT": at });
    repo.configure(
        &[agent],
        "test -f part.txt",
        &json!({ "max_iterations": 1, "allow_agent_commits": true }),
    );
    let refs = repo.git(&["for-each-ref", "refs/heads", "refs/tags"]);
    let config = repo.read(".git/config");
    let done = repo.ralph(&[&["run", "--json", "--isolation", "bwrap"], args].concat());
    if has_no_sandbox(&done) {
        return;
    }
    let done = done.exits(0);
    let id = created_file(&env, &done, "planted.id");
    assert_eq!(created_file(&env, &done, "part.txt"), "0\npart\n", "{done:?}");
    assert_eq!(repo.read("ignored.txt"), "mine\n");
    assert!(repo.dir.join("local.cfg").is_file());
    assert_eq!(repo.read(".git/config"), config);
    assert_eq!(repo.read(".git/logs/kept"), "mine\n");
    assert!(!repo.dir.join(".git/hooks/post-checkout").exists());
    assert!(!repo.dir.join(".git/objects/evil").exists());
    let own = done.json()["branch"].as_str().map(|b| format!("refs/heads/{b}")).unwrap_or_default();
    let now = repo.git(&["for-each-ref", "refs/heads", "refs/tags"]);
    let now: Vec<&str> = now.lines().filter(|line| own.is_empty() || !line.ends_with(&own)).collect();
    assert_eq!(now.join("\n"), refs);
    let planted = env.command("git", &repo.dir).args(["cat-file", "-e", id.trim()]).status().unwrap();
    assert!(!planted.success(), "an object of the agent's is in the user's store");
}

#[test]
fn absolute_paths_lead_to_the_copy_in_place() {
    absolute_paths_lead_to_the_copy(&[]);
}

#[test]
fn absolute_paths_lead_to_the_copy_in_a_worktree() {
    absolute_paths_lead_to_the_copy(&["--worktree"]);
}

/// The agent commits as the user, wherever git gets that identity; settings inside the sandbox take precedence.
fn commits_have_the_user_as_author(args: &[&str]) {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.git(&["config", "--unset", "user.name"]);
    repo.git(&["config", "--unset", "user.email"]);
    std::fs::write(env.path("home/.gitconfig"), "[user]\n\tname = Ann Ä\n\temail = ann@example.org\n")
        .unwrap();
    repo.stub(
        "cat > /dev/null; echo x > part.txt; git add part.txt && git commit -qm mine\n\
         git log -1 --format='%an <%ae> %cn <%ce>' > who.txt; git init -q \"$TMPDIR/o\"; cd \"$TMPDIR/o\"\n\
         git config user.name Other; git commit -q --allow-empty -m x; cd - > /dev/null\n\
         git -C \"$TMPDIR/o\" log -1 --format='%an <%ae>' >> who.txt; echo '<promise>COMPLETE</promise>'",
        "test -s who.txt",
    );
    let done = repo.ralph(&[&["run", "--json"], args].concat());
    if has_no_sandbox(&done) {
        return;
    }
    let who = created_file(&env, &done.exits(0), "who.txt");
    assert_eq!(who, "Ann Ä <ann@example.org> Ann Ä <ann@example.org>\nOther <ann@example.org>\n");
}

#[test]
fn commits_have_the_user_as_author_in_every_local_sandbox() {
    for args in [
        &["--isolation", "bwrap"][..],
        &["--isolation", "bwrap", "--worktree"],
        &["--isolation", "landlock"],
        &["--isolation", "landlock", "--worktree"],
        &["--isolation", "bwrap", "--clone", "."],
    ] {
        commits_have_the_user_as_author(args);
    }
}

#[test]
fn symlinked_repo_and_worktree_keep_their_path() {
    let env = TestEnv::new(RALPH);
    let main = TestRepo::with_task(&env);
    main.git(&["worktree", "add", "-q", "-b", "side", env.path("data/side").to_str().unwrap()]);
    symlink(env.path("data"), env.path("home/code")).unwrap();
    let by_link = env.path("home/code/side");
    let config = json!({
        "agents": [main.agent("stub", &format!(
            "cat > /dev/null; {{ pwd -P; cat '{}/readme.txt'; git log -1 --format=%s; }} > part.txt; echo '<promise>COMPLETE</promise>'",
            by_link.display()
        ))],
        "verifiers": [{ "name": "tests", "command_argv": ["sh", "-c", format!("test -f '{}/part.txt'", by_link.display())] }],
    });
    std::fs::create_dir_all(by_link.join(".ralph")).unwrap();
    std::fs::write(by_link.join(".ralph/config.json"), config.to_string()).unwrap();
    let done = env.ralph(&by_link, &["run", "--json", "--isolation", "bwrap"]);
    if has_no_sandbox(&done) {
        return;
    }
    done.exits(0);
    let part = std::fs::read_to_string(by_link.join("part.txt")).unwrap();
    assert_eq!(part, format!("{}\nhello\nstart\n", env.path("data/side").display()));
}

#[test]
fn parallel_runs_each_see_the_repo_path() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let config = json!({ "agents": [repo.agent("stub", &format!(
        "cat > /dev/null; echo $RALPH_RUN > '{}/part.txt'; sleep 1; cat part.txt > seen.txt; echo '<promise>COMPLETE</promise>'",
        repo.dir.display()
    ))], "verifiers": [{ "name": "tests", "command_argv": ["sh", "-c", "cmp part.txt seen.txt"] }] });
    repo.config(&config);
    let start = || env.spawn(&repo.dir, &["run", "--worktree", "--json", "--isolation", "bwrap"]);
    for child in [start(), start()] {
        let done = TestEnv::wait(child);
        if has_no_sandbox(&done) {
            return;
        }
        let done = done.exits(0);
        let run = done.json()["run_id"].as_str().unwrap().to_owned();
        assert_eq!(created_file(&env, &done, "part.txt"), format!("{run}\n"));
    }
    assert!(!repo.dir.join("part.txt").exists());
}
