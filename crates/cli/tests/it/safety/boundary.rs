//! Hostile files in an agent's tree (links out of it, FIFOs, folders instead of files): no file outside is written or read,
//! nothing hangs, and the run continues. Each attack runs sandboxed in place and, if it can do more there, without a sandbox
//! in a worktree.

mod agent_tree;
mod git_folders;
mod git_programs;
mod ordinary_user;
mod repo_files;
mod same_path;

use crate::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;

/// Runs an agent that attacks in its first session and works in its second. Returns its second prompt.
fn attacked(env: &TestEnv, attack: &str, args: &[&str]) -> Option<String> {
    let victim = env.path("victim");
    std::fs::create_dir_all(&victim).unwrap();
    for name in
        ["errors.log", "progress.md", "notes.md", "guardrails.md", "file", "config.json", "active.json"]
    {
        std::fs::write(victim.join(name), "TOPSECRET of the user\n").unwrap();
    }
    let repo = TestRepo::with_task(env);
    let prompts = env.path("prompts");
    std::fs::create_dir_all(&prompts).unwrap();
    let mut agent = repo.agent(
        "stub",
        &format!(
            "cat > /dev/null\nif [ $RALPH_ITERATION = 1 ]; then echo 'PAYLOAD of the agent' > payload; {attack}\nelse echo x > part.txt; fi\necho did it\n[ $RALPH_ITERATION = 1 ] || echo '<promise>COMPLETE</promise>'"
        ),
    );
    agent["env"] = json!({ "VICTIM": victim.to_str().unwrap() });
    repo.configure(&[agent], "cat payload; test -f part.txt", &json!({ "max_iterations": 5 }));
    let mut command = vec!["run", "--json"];
    command.extend(args);
    let done = repo.ralph(&command);
    if done.code == Some(4) && done.stderr.contains("sandbox") {
        ralph_loop_testkit::skip(&done.stderr);
        return None;
    }
    let what = format!("{attack} {args:?}");
    assert_eq!(done.code, Some(0), "{what}: {done:?}");
    for entry in std::fs::read_dir(&victim).unwrap().flatten() {
        let path = entry.path();
        assert!(path.is_file(), "{what}: {path:?}");
        let name = entry.file_name().into_string().unwrap();
        assert!(
            ["errors.log", "progress.md", "notes.md", "guardrails.md", "file", "config.json", "active.json"]
                .contains(&name.as_str()),
            "{what}: {name} was made outside"
        );
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "TOPSECRET of the user\n",
            "{what}: {name} was changed"
        );
    }
    let run = done.json()["run_id"].as_str().unwrap().to_owned();
    let prompt = repo.record(&run).join("iterations/2/prompt.md");
    let prompt = std::fs::read_to_string(prompt).unwrap();
    assert!(!prompt.contains("TOPSECRET"), "{what}: a file outside reached the prompt");
    Some(prompt)
}

/// Each with its name in `ATTACKS.md`.
#[rustfmt::skip]
const ATTACKS: &[(&str, &str)] = &[
    ("errors.log becomes a link out", "rm -f .ralph/errors.log; ln -s \"$VICTIM/errors.log\" .ralph/errors.log"),
    ("progress.md becomes a link out", "rm -f .ralph/progress.md; ln -s \"$VICTIM/progress.md\" .ralph/progress.md"),
    ("notes.md becomes a link out", "rm -f .ralph/notes.md; ln -s \"$VICTIM/notes.md\" .ralph/notes.md"),
    ("guardrails.md becomes a link out", "rm -f .ralph/guardrails.md; ln -s \"$VICTIM/guardrails.md\" .ralph/guardrails.md"),
    ("active.json becomes a link out", "rm -f .ralph/active.json; ln -s \"$VICTIM/active.json\" .ralph/active.json"),
    ("diagnostics.md becomes a link out", "rm -f .ralph/diagnostics.md; ln -s \"$VICTIM/file\" .ralph/diagnostics.md"),
    ("the changelog becomes a link out", "rm -rf .ralph/changelog; ln -s \"$VICTIM\" .ralph/changelog"),
    ("the iterations become a link out", "rm -rf .ralph/iterations; ln -s \"$VICTIM\" .ralph/iterations"),
    ("the runs become a link out", "rm -rf .ralph/runs; ln -s \"$VICTIM\" .ralph/runs"),
    ("`.ralph` becomes a link out", "rm -rf .ralph; ln -s \"$VICTIM\" .ralph"),
    ("`.ralph` becomes a file", "rm -rf .ralph; echo x > .ralph"),
    ("`.ralph` becomes a pipe", "rm -rf .ralph; mkfifo .ralph"),
    ("errors.log becomes a pipe", "rm -f .ralph/errors.log; mkfifo .ralph/errors.log"),
    ("progress.md becomes a pipe", "rm -f .ralph/progress.md; mkfifo .ralph/progress.md"),
    ("notes.md becomes a pipe", "rm -f .ralph/notes.md; mkfifo .ralph/notes.md"),
    ("guardrails.md becomes a pipe", "rm -f .ralph/guardrails.md; mkfifo .ralph/guardrails.md"),
    ("active.json becomes a pipe", "rm -f .ralph/active.json; mkfifo .ralph/active.json"),
    ("activity.log becomes a pipe", "rm -f .ralph/activity.log; mkfifo .ralph/activity.log"),
    ("state.json becomes a pipe", "rm -f .ralph/state.json; mkfifo .ralph/state.json"),
    ("the changelog becomes a pipe", "rm -rf .ralph/changelog; mkfifo .ralph/changelog"),
    ("names of temporary files are taken by links", "for f in 0 1 2 3 4 5 6 7 8 9; do ln -s \"$VICTIM/file\" .ralph/active.json.$f.tmp; done"),
    ("errors.log becomes a link to the users of the system", "rm -f .ralph/errors.log; ln -s ../../../../../../../../../../../../etc/passwd .ralph/errors.log"),
    ("errors.log becomes a link to variables", "rm -f .ralph/errors.log; ln -s /proc/self/environ .ralph/errors.log"),
    ("errors.log becomes a link to a device", "rm -f .ralph/errors.log; ln -s /dev/zero .ralph/errors.log"),
];

/// Plays every sixth attack: each takes a whole run, and the parts run in parallel.
fn play_every_sixth_attack(from: usize) {
    for (_, attack) in ATTACKS.iter().skip(from).step_by(6) {
        let env = TestEnv::new(RALPH);
        if attacked(&env, attack, &[]).is_none() {
            return;
        }
    }
}

macro_rules! sandboxed {
    ($($name:ident $from:literal)*) => {
        $(#[test]
        fn $name() {
            play_every_sixth_attack($from);
        })*
    };
}

sandboxed! { sandboxed_agent_stays_contained_1 0 sandboxed_agent_stays_contained_2 1 sandboxed_agent_stays_contained_3 2 sandboxed_agent_stays_contained_4 3 sandboxed_agent_stays_contained_5 4 sandboxed_agent_stays_contained_6 5 }

#[test]
fn sandboxed_worktree_contains_the_agent() {
    for (_, attack) in ATTACKS.iter().step_by(3) {
        let env = TestEnv::new(RALPH);
        if attacked(&env, attack, &["--worktree"]).is_none() {
            return;
        }
    }
}

/// Without a sandbox there is no protection against malice, but an agent's accidents must not hang the run or spread.
#[test]
fn unsandboxed_run_never_hangs() {
    let waits = |attack: &str| attack.contains("mkfifo") || attack.contains("/dev/zero");
    for (_, attack) in ATTACKS.iter().filter(|(_, attack)| waits(attack)) {
        let env = TestEnv::new(RALPH);
        attacked(&env, attack, &["--isolation", "none", "--worktree"]).unwrap();
    }
}

/// The honest twin: the agent's memory files reach the next prompt.
#[test]
fn agent_notes_reach_the_next_prompt() {
    let env = TestEnv::new(RALPH);
    let work = "echo 'learned: use the left door' >> .ralph/progress.md";
    let Some(prompt) = attacked(&env, work, &[]) else { return };
    assert!(prompt.contains("use the left door"), "{prompt}");
    assert!(prompt.contains("PAYLOAD"), "the failing check's output is in the prompt: {prompt}");
}

/// `ralph` refuses a `.ralph` that is a link, from the repo or the user, before it writes anything.
#[test]
fn symlinked_state_folder_is_refused_and_unchanged() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let elsewhere = env.path("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    repo.stub("echo x > part.txt", "true");
    std::fs::remove_dir_all(repo.dir.join(".ralph")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, repo.dir.join(".ralph")).unwrap();
    let refused = repo.ralph(&["run", "--json", "--verify", "true"]).exits(2);
    assert!(
        refused.stderr.contains("is not a folder") && refused.stderr.contains("next:"),
        "{}",
        refused.stderr
    );
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    assert_eq!(std::fs::read_link(repo.dir.join(".ralph")).unwrap(), elsewhere);
}
