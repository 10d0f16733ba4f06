//! Programs in the agent's tree are never started outside the sandbox, even if the user's git settings or `PATH` name them.

use super::{Place, WORK, program};
use ralph_loop_testkit::TestEnv;
use serde_json::json;

const RUN: [&str; 4] = ["run", "--new", "--json", "--yes"];

#[test]
fn engine_uses_no_tools_from_repo_folders_on_the_path() {
    let mut place = Place::new();
    program(&place.env.path("repo/bin/tool"), "echo tool");
    place.git(&["add", "-A"]);
    place.git(&["commit", "-qm", "tools"]);
    let ran = place.env.path("ran");
    let traps = ["git", "bwrap", "sh", "ssh"].map(|name| {
        format!(
            "printf '#!/bin/sh\\necho {name} >> {}\\nexec /usr/bin/{name} \"$@\"\\n' > bin/{name}; chmod +x bin/{name}",
            ran.display()
        )
    });
    let work = format!(
        "[ $RALPH_ITERATION = 1 ] && {{ {}; cat > /dev/null; echo did; exit; }}\n{WORK}",
        traps.join("; ")
    );
    program(&place.env.path("bin/claude"), &work);
    place.path = format!("{}:{}", place.env.path("repo/bin").display(), place.path);
    // Checks can still use the repo's tool.
    place.config(&json!({
        "verifiers": [{ "name": "tests", "command_argv": ["/bin/sh", "-c", "test -f part.txt && tool"] }],
    }));
    let done = place.ralph(&RUN);
    if done.code == Some(4) && done.stderr.contains("cannot sandbox") {
        return ralph_loop_testkit::skip(&done.stderr);
    }
    assert!(matches!(done.code, Some(0 | 3)), "{done:?}");
    for args in [&["diff"][..], &["status"], &["doctor"], &["apply"], &["restore", "--yes"]] {
        place.ralph(args);
    }
    let told = std::fs::read_to_string(&ran).unwrap_or_default();
    assert_eq!(told, "", "programs of the agent's ran outside of the sandbox");
}

#[test]
fn without_a_terminal_only_the_flag_allows() {
    let place = Place::new();
    place.config(&json!({"allowed_hosts": ["evil.example"]}));
    let mut command = place.command(&place.env.path("repo"), &["trust"]);
    let told = TestEnv::finish(command.stdin(std::process::Stdio::null())).exits(3);
    assert!(told.stderr.contains("ralph trust --yes"), "{}", told.stderr);
    let listed = place.ralph(&["trust", "--json"]).exits(3).json();
    assert!(listed.to_string().contains("evil.example"), "{listed}");
    place.run(&[]).exits(3);
    place.ralph(&["trust", "--yes"]).exits(0);
    place.run(&[]).exits(0);
}

/// An uncommitted file isn't always ignored; if it looks like a secret, `ralph` doesn't copy it.
#[test]
fn untracked_secrets_stay_out_of_the_copy_and_git_objects() {
    for args in [&[][..], &["--isolation", "none"]] {
        let place = Place::new();
        let secrets = [(".env.local", "TOKEN=word-of-the-user"), ("id_rsa", "PRIVATE KEY word-of-the-user")];
        for (name, text) in secrets {
            place.write(name, text);
        }
        place.write("notes.txt", "of the user's\n");
        let seen = format!("cat .env.local id_rsa notes.txt > seen.txt 2>&1\n{WORK}");
        program(&place.env.path("bin/claude"), &seen);
        let done = place.ralph(&[&RUN[..], args].concat());
        if done.code == Some(4) && done.stderr.contains("cannot sandbox") {
            return ralph_loop_testkit::skip(&done.stderr);
        }
        let run = done.exits(0).json()["run_id"].as_str().unwrap().to_owned();
        let files = place.git(&["ls-tree", "-r", "--name-only", &format!("refs/ralph/{run}/start")]);
        assert!(files.contains("notes.txt"), "{files}");
        for (name, text) in secrets {
            assert!(!files.contains(name), "{files}");
            assert_eq!(place.read(name), text, "it stays as it is");
            assert_eq!(
                args.is_empty(),
                !place.read("seen.txt").contains(text),
                "{args:?}: {}",
                place.read("seen.txt")
            );
        }
        place.ralph(&["restore", "--yes"]).exits(0);
        for (name, text) in secrets {
            assert_eq!(place.read(name), text, "{args:?}: restoring leaves it");
        }
    }
}
