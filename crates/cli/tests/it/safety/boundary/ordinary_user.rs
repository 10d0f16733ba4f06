//! An agent, as an ordinary user, makes its folders inaccessible. The run continues and leaves nothing on disk.
//! (Root may do everything, so a test that runs as root switches to another user.)

use super::RALPH;
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::json;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

/// A user with no other files on this machine.
const USER: u32 = 61_234;

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Runs `ralph` as an ordinary user who owns the whole test machine; `None` if that isn't possible.
fn ralph(env: &TestEnv, folder: &Path, args: &[&str]) -> Option<Finished> {
    let mut command = env.ralph_command(folder, args);
    if is_root() {
        let all = env.path("");
        let owner = format!("{USER}:{USER}");
        TestEnv::finish(env.command("chown", &all).args(["-R", &owner, "."])).exits(0);
        command.uid(USER).gid(USER);
    }
    let output = command.output().ok()?;
    let done = Finished {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    if done.code == Some(4) && done.stderr.contains("cannot sandbox") {
        ralph_loop_testkit::skip(&done.stderr);
        return None;
    }
    Some(done)
}

/// A machine whose `ralph` every user can start: its own folder may belong to another user, so it gets a second link.
fn machine() -> (TestEnv, tempfile::TempDir) {
    use std::os::unix::fs::PermissionsExt as _;
    let place = tempfile::Builder::new().prefix("ralph-test-bin-").tempdir().unwrap();
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = place.path().join("ralph");
    if std::fs::hard_link(RALPH, &program).is_err() {
        std::fs::copy(RALPH, &program).unwrap();
    }
    (TestEnv::new(program), place)
}

/// Whether an ordinary user can start a program: this machine may have no other user.
fn can_start(env: &TestEnv) -> bool {
    let version = ralph(env, &env.path(""), &["--version"]);
    let can = version.is_some_and(|done| done.code == Some(0));
    if !can {
        ralph_loop_testkit::skip("there is no ordinary user who can start the program");
    }
    can
}

fn attack(name: &'static str, script: &'static str) -> (&'static str, &'static str) {
    (name, script)
}

fn attacks() -> Vec<(&'static str, &'static str)> {
    vec![
        attack("the agent makes `.git` inaccessible", "chmod 000 .git"),
        attack("the agent makes `.git` read-only", "chmod 555 .git"),
        attack("the agent makes its folder inaccessible", "chmod 000 ."),
        attack("the agent makes its folder read-only", "chmod 555 ."),
        attack("the agent makes `.ralph` inaccessible", "chmod 000 .ralph"),
        attack("the agent makes `.ralph` read-only", "chmod 555 .ralph"),
        attack("the agent makes the objects read-only", "chmod 555 .git/objects"),
        attack("the agent makes the refs inaccessible", "chmod 000 .git/refs"),
        attack(
            "the agent makes a folder of its home inaccessible",
            "mkdir -p ~/d/e; touch ~/d/e/f; chmod 000 ~/d",
        ),
        // An honest case: Go keeps its modules like that.
        attack(
            "the agent leaves folders that are read-only",
            "mkdir -p mods/a; echo x > mods/a/f; chmod 444 mods/a/f; chmod 555 mods/a mods",
        ),
    ]
}

fn play(from: usize, step: usize) {
    for (name, script) in attacks().into_iter().skip(from).step_by(step) {
        let (env, _program) = machine();
        if !can_start(&env) {
            return;
        }
        let repo = TestRepo::with_task(&env);
        let work = format!(
            "cat > /dev/null\nif [ $RALPH_ITERATION = 1 ]; then\n{script}\nelse echo x > part.txt; fi\necho did it\n\
             [ $RALPH_ITERATION = 1 ] || echo '<promise>COMPLETE</promise>'"
        );
        repo.configure(&[repo.agent("stub", &work)], "test -f part.txt", &json!({"max_iterations": 4}));
        let Some(done) = ralph(&env, &repo.dir, &["run", "--json"]) else { return };
        assert_eq!(done.code, Some(0), "{name}: {done:?}");
        assert_eq!(repo.read("part.txt"), "x\n", "{name}");
        for folder in ["copies", "fences"] {
            let left = std::fs::read_dir(env.path("state/ralph").join(folder)).into_iter().flatten().count();
            assert_eq!(left, 0, "{name}: something is left in {folder}");
        }
    }
}

#[test]
fn unreadable_agent_folders_do_not_end_the_run_1() {
    play(0, 2);
}

#[test]
fn unreadable_agent_folders_do_not_end_the_run_2() {
    play(1, 2);
}

#[test]
fn read_only_git_folder_of_a_sparse_clone_is_not_trusted() {
    let (env, _program) = machine();
    if !can_start(&env) {
        return;
    }
    let repo =
        TestRepo::new(&env, "repo", &[("sub/f", "1\n"), ("other/f", "1\n"), ("PROMPT.md", "# Work\n")]);
    let marker = env.path("made");
    let work = format!(
        "cat > /dev/null; echo x > sub/part.txt; mkdir -p .git/evil/info; cp -r .git/refs .git/objects .git/packed-refs .git/evil/; \
         cp .git/config .git/evil/config; chmod 644 .git/evil/config; \
         printf '[filter \"x\"]\\n\\tclean = touch {}; cat\\n' >> .git/evil/config; echo '* filter=x' > .git/evil/info/attributes; \
         echo evil > .git/commondir; chmod 555 .git; echo '<promise>COMPLETE</promise>'",
        marker.display()
    );
    repo.configure(
        &[repo.agent("stub", &work)],
        "test -f sub/part.txt",
        &json!({"max_iterations": 2, "clone": {"sparse": ["sub"]}}),
    );
    let clone = repo.dir.display().to_string();
    let Some(done) = ralph(&env, &repo.dir, &["run", "--json", "--clone", &clone]) else { return };
    assert!(!marker.exists(), "a program of the agent's ran: {done:?}");
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn linked_agent_starts_in_the_sandbox_of_an_ordinary_user() {
    let (env, _program) = machine();
    if !can_start(&env) {
        return;
    }
    let repo = TestRepo::with_task(&env);
    let work = "cat > /dev/null\necho x > part.txt; echo did it; echo '<promise>COMPLETE</promise>'";
    let version = env.path("home/.local/share/tool/versions/1.0");
    std::fs::create_dir_all(version.parent().unwrap()).unwrap();
    std::fs::rename(repo.script("tool.sh", work), &version).unwrap();
    std::fs::create_dir_all(env.path("home/.local/bin")).unwrap();
    let link = env.path("home/.local/bin/tool");
    std::os::unix::fs::symlink(&version, &link).unwrap();
    let agent = json!({ "name": "tool", "command_argv": [link] });
    repo.configure(&[agent], "test -f part.txt", &json!({}));
    for place in [&["run", "--json", "--new"][..], &["run", "--json", "--new", "--worktree"]] {
        let Some(done) = ralph(&env, &repo.dir, place) else { return };
        assert_eq!(done.code, Some(0), "{place:?}: {done:?}");
    }
}
