//! Hostile changes by a sandboxed agent to its tree and git folder: odd names, other spellings of `.git`, links that change
//! during a check, settings, refs and objects that git would obey. No file outside is read or written, no agent program runs
//! on the host, nothing hangs. The honest twins are in the same table: files that are merely odd are kept unchanged.

use super::RALPH;
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::json;
use std::path::{Path, PathBuf};

/// How a run may end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// The work of the second session is proven.
    Proven,
    /// By a decision: the change prevents a proof, or `ralph` asks the user.
    Decided,
}

/// One attack, made in the first of two sessions, and the expected state of the user's folder.
struct TreeAttack {
    name: &'static str,
    script: &'static str,
    ends: Ends,
    look: fn(&Path),
}

const fn attack(name: &'static str, script: &'static str, look: fn(&Path)) -> TreeAttack {
    TreeAttack { name, script, ends: Ends::Proven, look }
}

const fn decided(name: &'static str, script: &'static str) -> TreeAttack {
    TreeAttack { name, script, ends: Ends::Decided, look: |_| {} }
}

fn has(repo: &Path, name: &str) {
    assert!(repo.join(name).symlink_metadata().is_ok(), "`{name:?}` was not handed back");
}

fn assert_missing(repo: &Path, name: &str) {
    assert!(repo.join(name).symlink_metadata().is_err(), "`{name:?}` was handed back");
}

const NOTHING: fn(&Path) = |_| {};

#[rustfmt::skip]
const ODD_NAMES: &[TreeAttack] = &[
    attack("a name with a line break", "printf x > \"$(printf 'a\\nb c')\"", |repo| has(repo, "a\nb c")),
    attack("names with two dots", "mkdir 'a..b'; echo x > 'a..b/..c'; echo x > ...", |repo| { has(repo, "a..b/..c"); has(repo, "..."); }),
    attack("the longest name", "echo x > $(printf 'n%.0s' $(seq 255))", |repo| has(repo, &"n".repeat(255))),
    attack("a path of a thousand folders", "mkdir -p $(printf 'd/%.0s' $(seq 1000)); echo x > $(printf 'd/%.0s' $(seq 1000))f", |repo| has(repo, &format!("{}f", "d/".repeat(1000)))),
    attack("a path longer than the kernel takes", "mkdir deep; (cd deep; for i in $(seq 30); do mkdir $(printf 'l%.0s' $(seq 200)); cd $(printf 'l%.0s' $(seq 200)); done; echo x > f)", NOTHING),
    attack("a name that isn't UTF-8", "printf x > \"$(printf 'bad\\377name')\"", |repo| {
        use std::os::unix::ffi::OsStrExt as _;
        assert!(repo.join(std::ffi::OsStr::from_bytes(b"bad\xffname")).is_file());
    }),
    attack("names that look like options and patterns", "mkdir -- -C ':(top)' '!x'; for d in -C ':(top)' '!x'; do echo x > \"./$d/--output=evil\"; done; echo x > '#c'; echo x > '*'", |repo| { has(repo, "-C/--output=evil"); has(repo, ":(top)/--output=evil"); has(repo, "*"); }),
    attack("a file with every permission", "echo x > all; chmod 6777 all", |repo| {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(repo.join("all")).unwrap().permissions().mode();
        assert_eq!(mode & 0o6002, 0, "{mode:o}");
    }),
    attack("a folder instead of a file", "rm readme.txt; mkdir readme.txt; echo x > readme.txt/y", |repo| has(repo, "readme.txt/y")),
    attack("an unreadable folder", "mkdir shut; echo x > shut/f; chmod 000 shut", NOTHING),
    attack("a pipe and a socket among the files", "mkdir s; mkfifo s/pipe; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s/sock\")'", |repo| { assert_missing(repo, "s/pipe"); assert_missing(repo, "s/sock"); }),
    attack("a large file that holds nothing", "truncate -s 400M hole || true", NOTHING),
    attack("links among the files", "mkdir l; ln -s readme.txt in; ln -s ../readme.txt l/in", |repo| assert!(repo.join("l/in").is_symlink() && repo.join("in").is_file())),
    decided("a link out among the files", "ln -s \"$VICTIM/file\" out; mkdir l; ln -s \"$VICTIM\" l/out"),
    attack("a name in two normal forms", "echo a > \"$(printf 'e\\314\\201')\"; echo b > \"$(printf '\\303\\251')\"", |repo| { has(repo, "e\u{301}"); has(repo, "\u{e9}"); }),
];

#[rustfmt::skip]
const OTHER_GITS: &[TreeAttack] = &[
    attack("`.GIT` with settings", "mkdir .GIT; printf '[core]\\n\\tfsmonitor = touch \"%s/made\"\\n' \"$VICTIM\" > .GIT/config; echo 'ref: refs/heads/main' > .GIT/HEAD", |repo| assert_missing(repo, ".GIT/config")),
    attack("`.Git` in a folder", "mkdir -p sub/.Git/hooks; echo 'touch \"$VICTIM/made\"' > sub/.Git/hooks/post-checkout", |repo| assert_missing(repo, "sub/.Git/hooks/post-checkout")),
    attack("a nested repo", "mkdir n; cd n; git init -q .; echo x > f; git add f; git -c user.name=a -c user.email=a@b commit -qm x; cd ..", |repo| { has(repo, "n/f"); assert_missing(repo, "n/.git"); }),
    decided("a nested repo with a filter", "mkdir n; cd n; git init -q .; git config filter.x.clean 'touch \"$VICTIM/made\"; cat'; echo '* filter=x' > .gitattributes; echo x > f; cd .."),
    attack("a nested repo as a file `.git`", "mkdir m; echo \"gitdir: $VICTIM\" > m/.git; echo x > m/f", |repo| { has(repo, "m/f"); assert_missing(repo, "m/.git"); }),
    attack("a submodule whose URL is a command", "printf '[submodule \"s\"]\\n\\tpath = s\\n\\turl = ext::sh -c \"touch %s/made\"\\n\\tupdate = !touch made\\n' \"$VICTIM\" > .gitmodules; mkdir -p s; echo x > s/f", |repo| has(repo, "s/f")),
    attack("a submodule whose name leads out", "printf '[submodule \"../../victim\"]\\n\\tpath = s\\n\\turl = --upload-pack=touch\\n' > .gitmodules", NOTHING),
    decided("attributes with a filter of the agent's", "git config filter.x.clean 'touch \"$VICTIM/made\"; cat' ; git config filter.x.smudge 'touch \"$VICTIM/made\"; cat'; echo '* filter=x diff=x merge=x' > .gitattributes; git config diff.x.textconv 'touch \"$VICTIM/made\"'"),
    attack("settings included from elsewhere", "git config include.path ../evil.cfg; printf '[core]\\n\\tsshCommand = touch made\\n\\thooksPath = hooks\\n' > evil.cfg; mkdir hooks; printf '#!/bin/sh\\ntouch \"$VICTIM/made\"\\n' > hooks/pre-commit; chmod +x hooks/pre-commit", NOTHING),
    attack("the original commit is replaced", "new=$(echo evil | git commit-tree HEAD^{tree} 2>/dev/null) && git replace HEAD $new; true", NOTHING),
    attack("objects borrowed from elsewhere", "mkdir -p .git/objects/info; echo \"$VICTIM\" > .git/objects/info/alternates; echo http://evil.example > .git/objects/info/http-alternates", NOTHING),
    attack("a graft", "mkdir -p .git/info; git rev-parse HEAD > .git/info/grafts; true", NOTHING),
    attack("a tag with the name of the branch", "git tag main; git tag HEAD; git update-ref refs/heads/refs/heads/main HEAD; true", NOTHING),
    attack("branches that look like options", "mkdir -p .git/refs/heads; for n in -x --upload-pack=touch '..' 'a b' '~1'; do git rev-parse HEAD > \".git/refs/heads/$n\"; done; true", NOTHING),
    attack("the index is a pipe", "rm -f .git/index; mkfifo .git/index", NOTHING),
    attack("the index is a link out", "rm -f .git/index; ln -s \"$VICTIM/file\" .git/index", NOTHING),
    decided("HEAD is a pipe", "rm -f .git/HEAD && mkfifo .git/HEAD; true"),
    decided("packed refs are a pipe", "rm -f .git/packed-refs && mkfifo .git/packed-refs; true"),
    attack("a folder of objects is a link out", "rm -rf .git/objects/aa; ln -s \"$VICTIM\" .git/objects/aa; true", NOTHING),
    attack("refs are a link out", "rm -rf .git/refs; ln -s \"$VICTIM\" .git/refs; true", NOTHING),
    attack("files are marked as unchanged", "git update-index --assume-unchanged readme.txt; echo changed > readme.txt", |repo| {
        assert_eq!(std::fs::read_to_string(repo.join("readme.txt")).unwrap(), "changed\n");
    }),
];

#[rustfmt::skip]
const CHANGING: &[TreeAttack] = &[
    attack("a memory file changes between file and link", "(while :; do ln -sf \"$VICTIM/errors.log\" .ralph/errors.log; rm -f .ralph/errors.log; echo a > .ralph/errors.log; done) & sleep 1", NOTHING),
    attack("a memory file changes between file and pipe", "(while :; do rm -f .ralph/notes.md; mkfifo .ralph/notes.md; rm -f .ralph/notes.md; echo a > .ralph/notes.md; done) & sleep 1", NOTHING),
    // If the run ends while the link exists, `ralph` refuses it because it leads out of the repo.
    decided("a folder changes between folder and link", "mkdir d; echo x > d/f; (while :; do mv d e; ln -s \"$VICTIM\" d; rm d; mv e d; done) 2>/dev/null & sleep 1"),
    decided("`.ralph` changes between folder and link", "(while :; do mv .ralph .r; ln -s \"$VICTIM\" .ralph; rm .ralph; mv .r .ralph; done) 2>/dev/null & sleep 1"),
    attack("a file changes while it is recorded", "(while :; do echo $RANDOM > busy; done) 2>/dev/null & sleep 1", NOTHING),
    attack("a tracked file becomes a pipe", "rm readme.txt; mkfifo readme.txt", NOTHING),
    attack("a tracked file becomes a socket", "rm readme.txt; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"readme.txt\")'", NOTHING),
    decided("the task becomes a pipe", "rm PROMPT.md; mkfifo PROMPT.md"),
    decided("the task becomes a link out", "rm PROMPT.md; ln -s \"$VICTIM/file\" PROMPT.md"),
    decided("the configuration becomes a pipe", "rm -f .ralph/config.json; mkfifo .ralph/config.json"),
    decided("the configuration becomes a link out", "rm -f .ralph/config.json; ln -s \"$VICTIM/config.json\" .ralph/config.json"),
    decided("a protected file that git ignores becomes a pipe", "rm -f guarded.ignored; mkfifo guarded.ignored"),
    decided("a protected file that git ignores becomes a link out", "rm -f guarded.ignored; ln -s \"$VICTIM/file\" guarded.ignored"),
];

const SECRET: &str = "TOPSECRET of the user\n";
const NAMES: &[&str] = &["errors.log", "file", "config.json"];

fn victim(env: &TestEnv) -> PathBuf {
    let victim = env.path("victim");
    std::fs::create_dir_all(&victim).unwrap();
    for name in NAMES {
        std::fs::write(victim.join(name), SECRET).unwrap();
    }
    victim
}

fn repo<'a>(env: &'a TestEnv, script: &str, victim: &Path) -> TestRepo<'a> {
    let repo = TestRepo::with_task(env);
    repo.write(".gitignore", "*.ignored\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "ignores"]);
    repo.write("guarded.ignored", "guarded\n");
    let work = format!(
        "cat > /dev/null\nif [ $RALPH_ITERATION = 1 ]; then\n{script}\nelse echo x > part.txt; fi\necho did it\n\
         [ $RALPH_ITERATION = 1 ] || echo '<promise>COMPLETE</promise>'"
    );
    let mut agent = repo.agent("stub", &work);
    agent["env"] = json!({ "VICTIM": victim.to_str().unwrap() });
    let more = json!({"max_iterations": 4, "protected_paths": ["guarded.ignored"]});
    repo.configure(&[agent], "test -f part.txt", &more);
    repo
}

fn assert_untouched(victim: &Path, what: &str, done: &Finished) {
    for entry in std::fs::read_dir(victim).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        assert!(NAMES.contains(&name.as_str()), "{what}: {name} was made outside");
        assert_eq!(std::fs::read_to_string(entry.path()).unwrap(), SECRET, "{what}: {name} was changed");
    }
    let shown = format!("{}{}", done.stdout, done.stderr);
    assert!(!shown.contains("TOPSECRET"), "{what}: {shown}");
}

fn play(attacks: &[TreeAttack], args: &[&str]) {
    for TreeAttack { name, script, ends, look } in attacks {
        let env = TestEnv::new(RALPH);
        let victim = victim(&env);
        let repo = repo(&env, script, &victim);
        let done = repo.ralph(&[&["run", "--json"], args].concat());
        if done.code == Some(4) && done.stderr.contains("cannot sandbox") {
            return ralph_loop_testkit::skip(&done.stderr);
        }
        assert_untouched(&victim, name, &done);
        match ends {
            Ends::Proven => assert_eq!(done.code, Some(0), "{name}: {done:?}"),
            Ends::Decided => assert!(matches!(done.code, Some(0 | 1 | 3)), "{name}: {done:?}"),
        }
        if args.is_empty() && *ends == Ends::Proven {
            look(&repo.dir);
        }
        // Removes leftovers in the tree.
        if let Ok(shut) = std::fs::metadata(repo.dir.join("shut")) {
            let mut open = shut.permissions();
            std::os::unix::fs::PermissionsExt::set_mode(&mut open, 0o700);
            std::fs::set_permissions(repo.dir.join("shut"), open).unwrap();
        }
    }
}

macro_rules! parts {
    ($($name:ident $table:ident $from:literal / $step:literal)*) => {
        $(#[test]
        fn $name() {
            let part: Vec<TreeAttack> = $table.iter().skip($from).step_by($step)
                .map(|a| TreeAttack { name: a.name, script: a.script, ends: a.ends, look: a.look }).collect();
            play(&part, &[]);
        })*
    };
}

parts! {
    odd_names_are_kept_1 ODD_NAMES 0 / 2
    odd_names_are_kept_2 ODD_NAMES 1 / 2
    agent_git_settings_are_ignored_1 OTHER_GITS 0 / 3
    agent_git_settings_are_ignored_2 OTHER_GITS 1 / 3
    agent_git_settings_are_ignored_3 OTHER_GITS 2 / 3
    files_that_change_during_a_check_stay_contained_1 CHANGING 0 / 2
    files_that_change_during_a_check_stay_contained_2 CHANGING 1 / 2
}

/// Plays every fourth attack in a worktree.
fn play_in_a_worktree(table: &[TreeAttack]) {
    let part: Vec<TreeAttack> = table
        .iter()
        .step_by(4)
        .map(|a| TreeAttack { name: a.name, script: a.script, ends: a.ends, look: a.look })
        .collect();
    play(&part, &["--worktree"]);
}

#[test]
fn odd_names_are_kept_in_a_worktree() {
    play_in_a_worktree(ODD_NAMES);
}

#[test]
fn agent_git_settings_are_ignored_in_a_worktree() {
    play_in_a_worktree(OTHER_GITS);
}

#[test]
fn files_that_change_during_a_check_stay_contained_in_a_worktree() {
    play_in_a_worktree(CHANGING);
}

/// The resuming process meets the files that a killed run left behind.
fn resumed_run_stays_contained(fault: &str) {
    for (name, script) in [
        ("resume meets a pipe as notes", "rm -f .ralph/notes.md; mkfifo .ralph/notes.md"),
        (
            "resume meets a link out as errors",
            "rm -f .ralph/errors.log; ln -s \"$VICTIM/errors.log\" .ralph/errors.log",
        ),
        ("resume meets the index as a pipe", "rm -f .git/index; mkfifo .git/index"),
        ("resume meets refs as a link out", "rm -rf .git/refs; ln -s \"$VICTIM\" .git/refs; true"),
        ("resume meets `.ralph` as a link out", "rm -rf .ralph; ln -s \"$VICTIM\" .ralph"),
    ] {
        let env = TestEnv::new(RALPH);
        let victim = victim(&env);
        let repo = repo(&env, script, &victim);
        let mut command = env.ralph_command(&repo.dir, &["run", "--json"]);
        let killed = TestEnv::finish(command.env("RALPH_FAULT", fault));
        if killed.code == Some(4) && killed.stderr.contains("cannot sandbox") {
            return ralph_loop_testkit::skip(&killed.stderr);
        }
        assert_untouched(&victim, name, &killed);
        let done = repo.ralph(&["resume", "--json"]);
        assert_untouched(&victim, name, &done);
        assert_eq!(done.code, Some(0), "{name} {fault}: {done:?}");
    }
}

#[test]
fn run_killed_before_a_checkpoint_resumes_safely() {
    resumed_run_stays_contained("checkpoint.before");
}

#[test]
fn run_killed_after_a_checkpoint_resumes_safely() {
    resumed_run_stays_contained("checkpoint.committed");
}

/// Two agents at once, each attacking the files that they share.
#[test]
fn parallel_sandboxed_runs_are_isolated() {
    let env = TestEnv::new(RALPH);
    let victim = victim(&env);
    let script = "git update-ref refs/heads/main HEAD~0; git tag -f both HEAD; rm -rf .ralph/runs; ln -s \"$VICTIM\" .ralph/runs; \
                  git worktree prune; git gc --prune=now -q; true";
    let repo = repo(&env, script, &victim);
    let both: Vec<_> = (0..2).map(|_| env.spawn(&repo.dir, &["run", "--json", "--worktree"])).collect();
    let both: Vec<Finished> = both.into_iter().map(TestEnv::wait).collect();
    for done in &both {
        if done.code == Some(4) && done.stderr.contains("cannot sandbox") {
            return ralph_loop_testkit::skip(&done.stderr);
        }
        assert_untouched(&victim, "two at once", done);
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    repo.git(&["fsck", "--strict"]);
    assert_eq!(repo.git(&["tag"]), "", "no tag of an agent's is there");
}
