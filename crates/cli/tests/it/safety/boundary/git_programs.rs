//! No program that a repo, an agent or the user names for git starts outside a sandbox: not by an attribute, a
//! setting, a hook or a path. Filters of the user's keep working inside.

use super::RALPH;
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Every setting that makes some git start a program.
const SETTINGS: &[&str] = &[
    "core.fsmonitor",
    "core.sshCommand",
    "core.gitProxy",
    "core.askPass",
    "core.editor",
    "core.pager",
    "core.alternateRefsCommand",
    "sequence.editor",
    "credential.helper",
    "gpg.program",
    "gpg.ssh.program",
    "diff.external",
    "interactive.diffFilter",
    "uploadpack.packObjectsHook",
    "filter.evil.clean",
    "filter.evil.smudge",
    "filter.evil.process",
    "filter.lfs.clean",
    "filter.lfs.smudge",
    "filter.lfs.process",
    "merge.evil.driver",
    "merge.default",
    "diff.evil.command",
    "diff.evil.textconv",
    "submodule.s.update",
    "remote.origin.uploadpack",
    "remote.origin.receivepack",
    "trailer.x.command",
    "init.templateDir",
];
const HOOKS: &[&str] = &[
    "pre-commit",
    "post-commit",
    "post-checkout",
    "post-merge",
    "pre-push",
    "reference-transaction",
    "post-index-change",
    "fsmonitor-watchman",
];
/// The agent's part of it, in its first session.
const ATTACK: &str = r#"
for key in $SETTINGS; do git config "$key" "$TRAP" 2>/dev/null; done
printf '[core]\n\tfsmonitor = %s\n[filter "evil"]\n\tclean = %s\n\tsmudge = %s\n' "$TRAP" "$TRAP" "$TRAP" >> .git/config 2>/dev/null
for hook in $HOOKS; do mkdir -p .git/hooks hooks; cp "$TRAP" .git/hooks/$hook 2>/dev/null; cp "$TRAP" hooks/$hook 2>/dev/null; done
mkdir -p deep/er; echo x > deep/er/f.nb; echo x > deep/f
for folder in . deep deep/er; do echo '* filter=evil merge=evil diff=evil' > $folder/.gitattributes; done
printf '*.nb filter=mine\n*.bin filter=lfs\n' >> deep/.gitattributes; echo x > deep/f.bin
printf '[lfs]\n\turl = http://127.0.0.1:9/evil\n' > .lfsconfig
sed -i 's/^1$/one/' both.txt"#;

fn skipped(done: &Finished) -> bool {
    let no = done.code == Some(4) && done.stderr.contains("cannot sandbox");
    if no {
        ralph_loop_testkit::skip(&done.stderr);
    }
    no
}

/// A repo, and a program that leaves a mark wherever it may write one.
struct Trapped<'a> {
    repo: TestRepo<'a>,
    mark: PathBuf,
    trap: String,
}

impl<'a> Trapped<'a> {
    fn new(env: &'a TestEnv) -> Self {
        let repo = TestRepo::with_task(env);
        let mark = env.path("mark");
        let trap = repo.script("trap", &format!("echo \"$0 $*\" >> '{}' 2>/dev/null; cat", mark.display()));
        repo.write("both.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
        repo.write("old.nb", "code\n");
        repo.write(".gitattributes", "*.nb filter=mine merge=mine diff=mine\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "more"]);
        let remote = env.path("remote.git").display().to_string();
        repo.git(&["init", "-q", "--bare", &remote]);
        repo.git(&["remote", "add", "origin", &remote]);
        Self { repo, mark, trap }
    }

    fn agent(&self) {
        let script = format!(
            "cat > /dev/null\nif [ $RALPH_ITERATION = 1 ]; then {ATTACK}\nelse echo x > part.txt; fi\n\
             echo did it\n[ $RALPH_ITERATION = 1 ] || echo '<promise>COMPLETE</promise>'"
        );
        let mut agent = self.repo.agent("stub", &script);
        agent["env"] = json!({ "TRAP": self.trap, "SETTINGS": SETTINGS.join(" "), "HOOKS": HOOKS.join(" ") });
        self.repo.configure(&[agent], "test -f part.txt", &json!({}));
    }

    /// Writes what an agent would like to write into the user's own git folder. Returns what was there.
    fn arm(&self) -> Vec<u8> {
        let config = self.repo.dir.join(".git/config");
        let before = std::fs::read(&config).unwrap();
        for key in SETTINGS.iter().chain(&["filter.mine.clean", "filter.mine.smudge", "merge.mine.driver"]) {
            self.repo.git(&["config", key, &self.trap]);
        }
        for hook in HOOKS {
            let path = self.repo.dir.join(".git/hooks").join(hook);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::copy(&self.trap, path).unwrap();
        }
        // Files must be looked at again, so that a filter would be asked.
        for name in ["both.txt", "old.nb", "readme.txt"] {
            let path = self.repo.dir.join(name);
            let text = std::fs::read(&path).unwrap_or_default();
            std::fs::write(&path, text).unwrap();
        }
        // The commands of this test ran some of them already.
        let _ = std::fs::remove_file(&self.mark);
        before
    }

    fn disarm(&self, config: &[u8]) {
        std::fs::write(self.repo.dir.join(".git/config"), config).unwrap();
        for hook in HOOKS {
            std::fs::remove_file(self.repo.dir.join(".git/hooks").join(hook)).unwrap();
        }
    }

    fn unmarked(&self, what: &str) {
        let ran = std::fs::read_to_string(&self.mark).unwrap_or_default();
        assert_eq!(ran, "", "{what}: programs ran outside the sandbox");
    }
}

#[test]
fn no_program_of_a_setting_attribute_or_hook_starts_outside() {
    for place in [&[][..], &["--worktree"]] {
        let env = TestEnv::new(RALPH);
        let trapped = Trapped::new(&env);
        let repo = &trapped.repo;
        for key in ["clean", "smudge"] {
            repo.git(&["config", &format!("filter.mine.{key}"), &trapped.trap]);
        }
        trapped.agent();
        let _ = std::fs::remove_file(&trapped.mark);
        let done = repo.ralph(&[&["run", "--json"], place].concat());
        if skipped(&done) {
            return;
        }
        trapped.unmarked("a run");
        done.exits(0);
        let start = repo.git(&["rev-parse", "HEAD"]);
        let edit = || repo.write("both.txt", &repo.read("both.txt").replace("9\n", "nine\n"));
        edit();
        let commands: &[&[&str]] = match place {
            [] => &[&["diff"], &["status"], &["restore", "--yes"]],
            _ => &[
                &["diff"],
                &["show"],
                &["apply"],
                &["apply", "--squash"],
                &["apply", "--commit"],
                &["apply", "--branch", "taken"],
                &["restore", "--yes"],
                &["publish", "--push", "--branch", "sent"],
                &["clean", "--dry-run"],
            ],
        };
        for command in commands {
            let config = trapped.arm();
            let done = repo.ralph(command);
            trapped.unmarked(&format!("{command:?}"));
            assert!(done.code.is_some_and(|code| code < 5), "{command:?}: {done:?}");
            trapped.disarm(&config);
            if command[0] == "apply" && command.len() < 3 {
                assert_eq!(done.code, Some(0), "{command:?}: {done:?}");
                let both = repo.read("both.txt");
                assert!(both.starts_with("one\n") && both.ends_with("nine\n"), "{command:?}: {both}");
                repo.git(&["reset", "-q", "--hard", &start]);
                repo.git(&["clean", "-fdq", "--exclude=.ralph"]);
                edit();
            }
            if command.contains(&"sent") {
                assert_eq!(done.code, Some(0), "{done:?}");
                assert!(repo.git(&["ls-remote", "origin"]).contains("refs/heads/sent"));
            }
        }
    }
}

/// The honest twin: notebooks lose their output in git, and keep it in the folder.
#[test]
fn a_filter_of_the_users_works_inside_the_sandbox() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write(".gitattributes", "*.nb filter=nb\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "notebooks"]);
    let strip = repo.script("strip", "grep -v '^out'");
    repo.git(&["config", "filter.nb.clean", &strip]);
    repo.git(&["config", "filter.nb.smudge", "cat"]);
    repo.stub(
        "cat > /dev/null; printf 'code\\nout 1\\n' > a.nb; echo x > part.txt; echo '<promise>COMPLETE</promise>'",
        "grep -q code a.nb",
    );
    let done = repo.ralph(&["run", "--json"]);
    if skipped(&done) {
        return;
    }
    let run = done.exits(0).json()["run_id"].as_str().unwrap().to_owned();
    assert_eq!(repo.read("a.nb"), "code\nout 1\n");
    assert_eq!(repo.git(&["show", &format!("refs/ralph/{run}/work:a.nb")]), "code");
    // What can't run there is refused, with the reason.
    repo.git(&["config", "filter.nb.clean", "/nowhere/strip"]);
    let refused = repo.ralph(&["run", "--new", "--json"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(refused.stderr.contains("the git filter `nb` did not run"), "{}", refused.stderr);
}

/// Programs that the engine starts, from where, and what git starts below them. Each program on the `PATH` is one
/// that notes this first; inside a sandbox the notes can't be written.
struct Recorded {
    bin: PathBuf,
    log: PathBuf,
    git: PathBuf,
}

impl Recorded {
    fn new(env: &TestEnv) -> Self {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let recorded =
            Self { bin: env.path("noted-bin"), log: env.path("started"), git: env.path("started-by-git") };
        std::fs::create_dir_all(&recorded.bin).unwrap();
        std::fs::create_dir_all(&recorded.git).unwrap();
        let script = format!(
            "#!/bin/sh\nname=${{0##*/}}\nif [ -w '{log}' ]; then printf '%s\\t%s\\t%s\\n' \"$name\" \"$PWD\" \"$*\" | tr '\\n' ' ' >> '{log}'; echo >> '{log}'\n\
             [ $name = git ] && export GIT_TRACE2_EVENT='{git}'; fi\n\
             for folder in /usr/local/bin /usr/bin /bin; do [ -x $folder/$name ] && exec $folder/$name \"$@\"; done\n",
            log = recorded.log.display(),
            git = recorded.git.display(),
        );
        let noted = env.path("noted");
        std::fs::write(&noted, script).unwrap();
        std::fs::set_permissions(&noted, std::fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["git", "sh", "bash", "env", "python3", "perl", "ssh", "cat", "nice", "setsid"] {
            symlink(&noted, recorded.bin.join(name)).unwrap();
        }
        std::fs::write(&recorded.log, "").unwrap();
        recorded
    }

    fn ralph(&self, env: &TestEnv, folder: &Path, args: &[&str]) -> Finished {
        let mut command = env.ralph_command(folder, args);
        let path = ralph_loop_testkit::vars().get("PATH").unwrap_or_default();
        TestEnv::finish(command.env("PATH", format!("{}:{path}", self.bin.display())))
    }

    fn started(&self) -> Vec<(String, PathBuf, String)> {
        let text = std::fs::read_to_string(&self.log).unwrap();
        let line = |line: &str| {
            let mut fields = line.splitn(3, '\t');
            let mut next = || fields.next().unwrap_or_default().to_owned();
            (next(), PathBuf::from(next()), next())
        };
        text.lines().filter(|text| !text.trim().is_empty()).map(line).collect()
    }

    /// The command lines that git itself started.
    fn below_git(&self) -> Vec<Vec<String>> {
        let files = std::fs::read_dir(&self.git).unwrap().flatten();
        let text: String = files.map(|file| std::fs::read_to_string(file.path()).unwrap()).collect();
        let events = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        events
            .filter(|event| event["event"] == "child_start")
            .filter_map(|event| serde_json::from_value(event["argv"].clone()).ok())
            .collect()
    }

    fn count(&self, name: &str) -> usize {
        self.started().iter().filter(|(program, ..)| program == name).count()
    }
}

#[test]
fn the_host_starts_no_program_script_or_folder_of_a_tree() {
    let env = TestEnv::new(RALPH);
    let trapped = Trapped::new(&env);
    trapped.repo.git(&["config", "filter.mine.clean", "cat"]);
    trapped.repo.git(&["config", "filter.mine.smudge", "cat"]);
    trapped.agent();
    let recorded = Recorded::new(&env);
    let folder = trapped.repo.dir.clone();
    let done = recorded.ralph(&env, &folder, &["run", "--json", "--worktree"]);
    if skipped(&done) {
        return;
    }
    done.exits(0);
    for args in [
        &["diff"][..],
        &["apply"],
        &["restore", "--yes"],
        &["apply", "--branch", "taken"],
        &["publish", "--push", "--branch", "sent"],
        &["clean", "--older-than", "0d", "--unread", "--yes"],
    ] {
        let done = recorded.ralph(&env, &folder, args);
        assert!(done.code.is_some_and(|code| code < 5), "{args:?}: {done:?}");
    }
    let started = recorded.started();
    assert!(started.iter().any(|(name, ..)| name == "git"), "nothing was noted");
    let trees = [folder, env.path("state/ralph/workspaces"), env.path("state/ralph/copies")];
    let is_below = |path: &Path| trees.iter().any(|tree| path.starts_with(tree));
    for (name, cwd, args) in &started {
        assert!(!is_below(cwd), "{name} {args} was started in {cwd:?}");
        assert_eq!(name, "git", "{name} {args} was started outside the sandbox");
    }
    for argv in recorded.below_git() {
        let is_own = argv.first().is_some_and(|program| program.starts_with("git"));
        assert!(is_own, "git started {argv:?}");
    }
}

#[test]
fn a_run_starts_as_many_git_processes_for_many_files_as_for_one() {
    let counted = |files: u32| {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::with_task(&env);
        let work = format!(
            "cat > /dev/null; mkdir many; i=0; while [ $i -lt {files} ]; do echo $i > many/$i; i=$((i+1)); done; \
             echo x > part.txt; echo '<promise>COMPLETE</promise>'"
        );
        repo.stub(&work, "test -f part.txt");
        let recorded = Recorded::new(&env);
        let done = recorded.ralph(&env, &repo.dir, &["run", "--json"]);
        if skipped(&done) {
            return None;
        }
        done.exits(0);
        Some(recorded.count("git"))
    };
    let Some(one) = counted(1) else { return };
    let many = counted(5000).unwrap();
    assert_eq!(one, many, "more files cost more processes");
    assert!(one <= 60, "{one} git processes");
}

/// Started `git` programs and flushes to the disk, of a whole run of `iterations`. `None` without `strace`.
fn traced(iterations: u32, isolation: &str) -> Option<[usize; 2]> {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agent = repo.agent("stub", "cat > /dev/null; echo $RALPH_ITERATION > part.txt; echo did it");
    repo.configure(&[agent], "false", &json!({ "stuck_detection": { "disabled": true } }));
    let count = iterations.to_string();
    let log = env.path("strace.log");
    let inner = env
        .ralph_command(&repo.dir, &["run", "--json", "--isolation", isolation, "--max-iterations", &count]);
    let mut command = env.command("strace", &repo.dir);
    // Stops a process only at the calls it looks for.
    command.args([
        "-f",
        "--seccomp-bpf",
        "-qq",
        "-e",
        "trace=execve,fsync,fdatasync,syncfs",
        "-e",
        "status=successful",
        "-o",
    ]);
    command.arg(&log).arg(inner.get_program()).args(inner.get_args());
    let Ok(output) = command.output() else {
        ralph_loop_testkit::skip("strace is not installed");
        return None;
    };
    if output.status.code() == Some(4) {
        ralph_loop_testkit::skip("cannot sandbox here");
        return None;
    }
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&std::fs::read(&log).unwrap()).into_owned();
    let calls = |is_it: &dyn Fn(&str) -> bool| text.lines().filter(|line| is_it(line)).count();
    let is_git = |line: &str| {
        let program = line.split_once("execve(\"").and_then(|(_, rest)| rest.split_once('"'));
        program.is_some_and(|(path, _)| path.ends_with("/git"))
    };
    assert!(calls(&is_git) > 0, "nothing was traced");
    Some([calls(&is_git), calls(&|line| line.contains("sync(") || line.contains("syncfs("))])
}

/// Counts, because times say nothing on a busy machine.
#[test]
fn each_further_iteration_starts_few_processes_and_flushes_once() {
    for (isolation, most) in [("none", [4, 1]), ("auto", [13, 1])] {
        let (Some(short), Some(long)) = (traced(3, isolation), traced(8, isolation)) else { return };
        for (at, what) in ["git processes", "flushes"].into_iter().enumerate() {
            let each = (long[at] - short[at]).div_ceil(5);
            assert!(each <= most[at], "isolation {isolation}: {each} {what} per iteration");
        }
    }
}
