//! Agents as their installers leave them, and sandboxes that can't be built.

use super::{RALPH, calc, claude_says};
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::json;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

fn program(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The layout of claude's own installer: a version behind an absolute link.
fn installed_claude(env: &TestEnv) {
    let version = env.path("home/.local/share/claude/versions/9.9.9");
    let work = format!("echo 'x = 2' > calc.py\n{}", claude_says("x is two now"));
    program(&version, &format!("[ \"$1\" = --version ] && {{ echo 9.9.9; exit; }}\ncat > /dev/null\n{work}"));
    std::fs::create_dir_all(env.path("home/.local/bin")).unwrap();
    symlink(&version, env.path("home/.local/bin/claude")).unwrap();
}

/// A bubblewrap that works when it is tried, and fails for every command.
fn failing_bwrap(env: &TestEnv) {
    let fails = "for word; do [ \"$word\" = __inside ] && { echo \"bwrap: Can't create file at /x/claude\" >&2; exit 1; }; done";
    program(&env.path("failing/bwrap"), &format!("{fails}\nexec /usr/bin/bwrap \"$@\""));
}

/// `ralph` with the installed agents, and with the programs in `first` before all others; `None` without a sandbox here.
fn ralph(env: &TestEnv, folder: &Path, first: &str, args: &[&str]) -> Option<Finished> {
    let (first, own) = (env.path(first), env.path("home/.local/bin"));
    let path = format!("{}:{}:/usr/local/bin:/usr/bin:/bin", first.display(), own.display());
    let done = TestEnv::finish(env.ralph_command(folder, args).env("PATH", path));
    if done.stderr.contains("cannot sandbox") {
        ralph_loop_testkit::skip(&done.stderr);
        return None;
    }
    Some(done)
}

#[test]
fn linked_agent_proves_its_work_in_place_and_in_a_worktree() {
    for place in [&[][..], &["--worktree"]] {
        let env = TestEnv::new(RALPH);
        let repo = calc(&env);
        installed_claude(&env);
        let args = [&["run", "Make calc.x two in calc.py", "--json", "--isolation", "bwrap"], place].concat();
        let Some(done) = ralph(&env, &repo.dir, "none", &args) else { return };
        let result = done.exits(0).json();
        assert_eq!(
            (&result["success"], &result["iterations"]),
            (&json!(true), &json!(1)),
            "{place:?}: {result}"
        );
    }
}

#[test]
fn failing_launcher_ends_the_run_at_once_and_the_doctor_reports_it() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    installed_claude(&env);
    failing_bwrap(&env);
    for more in [&[][..], &["--no-baseline"]] {
        let args = [&["run", "Make calc.x two in calc.py", "--json", "--new", "--isolation", "bwrap"], more]
            .concat();
        let Some(done) = ralph(&env, &repo.dir, "failing", &args) else { return };
        let result = done.exits(4).json();
        assert_eq!(result["iterations"], 0, "{more:?}: {result}");
        assert_eq!(result["error"]["code"], "SANDBOX_INIT_FAILED", "{result}");
        assert!(result["summary"].as_str().unwrap().contains("Can't create file at /x/claude"), "{result}");
        assert_eq!(repo.events_named("check_finished").len(), 0, "no check has failed");
    }
    let Some(doctor) = ralph(&env, &repo.dir, "failing", &["doctor", "--json"]) else { return };
    let checks = doctor.exits(4).json()["checks"].clone();
    let named = |name: &str| checks.as_array().unwrap().iter().find(|check| check["name"] == name).cloned();
    let claude = named("claude").unwrap();
    let message = claude["message"].as_str().unwrap();
    assert!(message.contains("does not start in the sandbox"), "{claude}");
    assert!(message.contains("Can't create file at /x/claude"), "{claude}");
    assert_eq!(named("an agent").unwrap()["status"], "missing");
    let works = ralph(&env, &repo.dir, "none", &["doctor", "--json"]).unwrap().json();
    assert!(works["checks"].to_string().contains("~/.local/bin/claude, 9.9.9"), "{works}");
}

#[test]
fn agent_without_its_interpreter_ends_the_sandboxed_run_at_once() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agent = repo.agent("stub", "true");
    std::fs::write(env.path("stub.sh"), "#!/no/such/interpreter\n").unwrap();
    repo.configure(&[agent], "false", &json!({}));
    let Some(done) = ralph(&env, &repo.dir, "none", &["run", "--json", "--isolation", "bwrap"]) else {
        return;
    };
    let result = done.exits(4).json();
    assert_eq!(result["iterations"], 0, "{result}");
    assert!(result["summary"].as_str().unwrap().starts_with("cannot start"), "{result}");
}
