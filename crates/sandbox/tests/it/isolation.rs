//! Sandboxed commands: what they see and can change, and how they end.

pub(crate) mod egress;
pub(crate) mod escapes;
pub(crate) mod layouts;
pub(crate) mod same_path;
pub(crate) mod view;

use crate::common;
use crate::common::{Output, PROBE, Sink, run, sh};
use ralph_loop_domain::ports::{ExecEnd, ExecRequest, Sandbox as _, SandboxError, StopCause};
use ralph_loop_sandbox::isolation::{GitAccess, detect};
use ralph_loop_sandbox::{IsolationSpec, LocalIsolation, LocalOptions, LocalSandbox};
use ralph_loop_task::config::Isolation;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

struct Fenced {
    dir: tempfile::TempDir,
    sandbox: LocalSandbox,
}

fn options(
    dir: &Path,
    isolation: Isolation,
    change: impl FnOnce(&mut IsolationSpec),
) -> Option<LocalOptions> {
    let mut spec = IsolationSpec::new(dir.join("run"));
    change(&mut spec);
    let isolation = match detect(&ralph_loop_testkit::vars()).choose(isolation, spec) {
        Ok(isolation) => isolation,
        Err(why) => {
            println!("skipped: {why}");
            return None;
        }
    };
    let id = dir.file_name().unwrap().to_str().unwrap().trim_start_matches('.').to_owned();
    Some(LocalOptions {
        guard_exe: Some(PathBuf::from(PROBE)),
        isolation,
        ..LocalOptions::new(id, &ralph_loop_testkit::vars())
    })
}

fn fenced_with(change: impl FnOnce(&mut IsolationSpec)) -> Option<Fenced> {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let options = options(dir.path(), Isolation::Bwrap, change)?;
    let sandbox = LocalSandbox::start(&work, options).unwrap();
    Some(Fenced { dir, sandbox })
}

fn sandboxed() -> Option<Fenced> {
    fenced_with(|_| {})
}

impl Fenced {
    fn sh(&self, script: &str) -> Output {
        run(&self.sandbox, &sh(script))
    }
    fn work(&self) -> PathBuf {
        self.dir.path().join("work").canonicalize().unwrap()
    }
}

fn code(output: &Output) -> Option<i32> {
    output.outcome.end.code()
}

#[test]
fn a_command_works_in_its_workspace_and_its_files_stay() {
    let Some(sandboxed) = sandboxed() else { return };
    let done = sandboxed.sh("pwd; echo hello > made; cat made; echo oops >&2; exit 7");
    assert_eq!((code(&done), done.stderr.as_str()), (Some(7), "oops\n"), "{}", done.stdout);
    assert_eq!(done.stdout, format!("{}\nhello\n", sandboxed.work().display()));
    assert_eq!(std::fs::read_to_string(sandboxed.work().join("made")).unwrap(), "hello\n");
}

#[test]
fn home_is_empty_lives_as_long_as_the_run_and_is_removed_with_it() {
    let Some(sandboxed) = sandboxed() else { return };
    let first = sandboxed.sh("echo x > ~/mine; ls -A ~; ls -A /tmp | grep -v work");
    assert!(first.stdout.lines().any(|line| line == "mine"), "{}", first.stdout);
    assert_eq!(sandboxed.sh("cat ~/mine").stdout, "x\n");
    let connection = sandboxed.sandbox.new_connection().unwrap();
    assert_eq!(run(&*connection, &sh("cat ~/mine")).stdout, "x\n");
    let folder = sandboxed.dir.path().join("run");
    assert!(folder.join("home/mine").exists());
    drop((connection, sandboxed.sandbox));
    assert!(!folder.exists());
}

#[test]
fn a_command_gets_only_harmless_variables_and_its_own() {
    let Some(sandboxed) = sandboxed() else { return };
    let mut request = sh("env");
    request.env = vec![("MY_KEY".into(), "1".into()), ("RALPH_RUN".into(), "other".into())];
    let env = run(&sandboxed.sandbox, &request).stdout;
    let names: Vec<&str> = env.lines().filter_map(|line| line.split('=').next()).collect();
    assert!(names.contains(&"PATH") && names.contains(&"HOME") && names.contains(&"MY_KEY"), "{env}");
    // Cargo sets many variables for its tests.
    assert!(ralph_loop_testkit::vars().get_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!env.contains("CARGO_") && !env.contains("RALPH_RUN=other"), "{env}");
}

/// Variables that make the loader record each loaded program, in a file per process.
fn loader_tells(work: &Path) -> Vec<(String, String)> {
    let to = work.join("loaded").to_str().unwrap().to_owned();
    vec![("LD_DEBUG".into(), "libs".into()), ("LD_DEBUG_OUTPUT".into(), to)]
}

/// The recorded programs.
fn loaded(work: &Path) -> Vec<String> {
    let files = std::fs::read_dir(work).unwrap().map(|entry| entry.unwrap().path());
    let told = files.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("loaded"));
    let told: String = told.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let programs = told.lines().filter_map(|line| line.split_once("initialize program: "));
    programs.map(|(_, program)| program.to_owned()).collect()
}

#[test]
fn the_variables_of_a_command_reach_no_program_outside_the_sandbox() {
    for isolation in [Isolation::Bwrap, Isolation::Landlock] {
        for watched in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let work = dir.path().canonicalize().unwrap().join("work");
            std::fs::create_dir(&work).unwrap();
            let Some(options) = options(dir.path(), isolation, |_| {}) else { continue };
            let sandbox = LocalSandbox::start(&work, options).unwrap();
            let mut request = sh("echo \"$LD_DEBUG_OUTPUT\"");
            request.env = loader_tells(&work);
            let mut sink = Sink::default();
            if watched {
                sandbox.exec_watched(&request, &mut sink).unwrap();
            } else {
                sandbox.exec(&request, &mut sink).unwrap();
            }
            let said = String::from_utf8(sink.stdout).unwrap();
            assert_eq!(said, format!("{}\n", work.join("loaded").display()), "the command has them");
            assert_eq!(loaded(&work), ["sh"], "{isolation:?}, watched {watched}: the command alone");
            let left = run(&sandbox, &sh("ls /proc/self/fd"));
            assert_eq!(
                left.stdout, "0\n1\n2\n3\n",
                "nothing but its streams (and the folder that is listed)"
            );
        }
    }
}

#[test]
fn a_program_that_is_missing_is_reported_as_without_a_sandbox() {
    let Some(sandboxed) = sandboxed() else { return };
    let request = ExecRequest::new(vec!["no-such-program".into()]);
    let error = sandboxed.sandbox.exec(&request, &mut Sink::default()).unwrap_err();
    assert!(matches!(error, SandboxError::CannotStart { .. }), "{error}");
    let done = run(&sandboxed.sandbox, &ExecRequest::new(vec!["./nothing".into()]));
    assert_eq!(code(&done), Some(127));
    assert!(done.stderr.contains("cannot start `./nothing`"), "{}", done.stderr);
}

#[test]
fn a_stopped_command_has_its_grace() {
    let Some(sandboxed) = sandboxed() else { return };
    let ready = sandboxed.work().join("ready");
    let mut request = sh("trap 'echo bye; exit 3' TERM; touch ready; while :; do sleep 0.05; done");
    request.grace = Duration::from_secs(20);
    let mut sink = Sink::asking(|| {
        if ready.exists() { ControlFlow::Break(StopCause::Cancelled) } else { ControlFlow::Continue(()) }
    });
    let outcome = sandboxed.sandbox.exec(&request, &mut sink).unwrap();
    assert_eq!(outcome.end, ExecEnd::Stopped(StopCause::Cancelled));
    let output = sink.output_of(outcome);
    assert_eq!(output.stdout, "bye\n");
    assert!(output.outcome.duration < request.grace);
}

#[test]
fn nothing_outlives_a_command() {
    let Some(sandboxed) = sandboxed() else { return };
    // A name to find them by: ids inside differ from those outside.
    let mark = sandboxed.dir.path().file_name().unwrap().to_str().unwrap().to_owned();
    sandboxed.sh(&format!(
        "setsid sh -c 'trap \"\" TERM HUP; echo up > up; while :; do sleep 1000; done' {mark} </dev/null >/dev/null 2>&1 & \
         while [ ! -e up ]; do sleep 0.01; done"
    ));
    assert!(sandboxed.work().join("up").exists());
    let mut living = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let text = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&text).contains(&mark) {
            living.push(entry.path());
        }
    }
    assert!(living.is_empty(), "{living:?}");
}

fn git(folder: &Path, args: &[&str]) {
    #[allow(clippy::disallowed_methods)]
    let done = std::process::Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"])
        .args(args)
        .output()
        .unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

const COMMIT: &str = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; \
     echo new > new && git status --short && git add new && git diff --cached --stat && git commit -qm inside";

#[test]
fn git_works_in_a_clone_but_cannot_be_made_to_run_programs() {
    let Some(sandboxed) = sandboxed() else { return };
    let work = sandboxed.work();
    git(&work, &["init", "-q"]);
    git(&work, &["commit", "-q", "--allow-empty", "-m", "start"]);
    let done = sandboxed.sh(COMMIT);
    assert_eq!(code(&done), Some(0), "{}{}", done.stdout, done.stderr);
    for attempt in [
        "echo 'touch /tmp/x' > .git/hooks/pre-commit",
        "git config core.fsmonitor ./evil",
        "echo '[core]' >> .git/config",
        "echo '* filter=x' > .git/info/attributes",
        "mv .git .git2",
        "rm -rf .git/hooks",
        "mv .git/hooks .git/hooks2",
        "ln -s /tmp .git/hooks/x",
    ] {
        let done = sandboxed.sh(attempt);
        assert_ne!(code(&done), Some(0), "{attempt}");
    }
    assert!(work.join(".git/hooks").is_dir() && !work.join(".git2").exists());
    // Redirects git to another configuration: removed before any git outside reads it.
    sandboxed.sh("mkdir -p evil && cp -r .git/. evil/ && echo ../evil > .git/commondir; echo '[a]' > .git/config.worktree");
    assert!(work.join("evil/config").exists());
    assert!(!work.join(".git/commondir").exists() && !work.join(".git/config.worktree").exists());
}

#[test]
fn the_users_own_git_folder_is_read_only_for_a_worktree_unless_commits_are_allowed() {
    for access in [GitAccess::ReadOnly, GitAccess::Commit] {
        let Some(sandboxed) = fenced_with(|spec| spec.git = access) else { return };
        let main = sandboxed.dir.path().join("main");
        std::fs::create_dir(&main).unwrap();
        git(&main, &["init", "-q"]);
        git(&main, &["commit", "-q", "--allow-empty", "-m", "start"]);
        std::fs::remove_dir(sandboxed.work()).unwrap();
        let path = sandboxed.dir.path().join("work");
        git(&main, &["worktree", "add", "-q", "-b", "ralph/x", path.to_str().unwrap()]);
        let look = sandboxed.sh("git status --short && git log --oneline && git diff");
        assert_eq!(code(&look), Some(0), "{}", look.stderr);
        let commit = sandboxed.sh(COMMIT);
        let expected = access == GitAccess::Commit;
        assert_eq!(code(&commit) == Some(0), expected, "{access:?} {}{}", commit.stdout, commit.stderr);
        let common = main.join(".git");
        let common = common.display();
        for attempt in [
            format!("echo x > {common}/hooks/pre-commit"),
            format!("echo x >> {common}/config"),
            format!("echo x > {common}/refs/heads/main"),
            format!("echo x > {common}/HEAD"),
            format!("mv {common} {common}2"),
            "echo 'gitdir: /tmp' > .git".to_owned(),
            "mv .git .git2".to_owned(),
            "rm .git".to_owned(),
        ] {
            let done = sandboxed.sh(&attempt);
            assert_ne!(code(&done), Some(0), "{access:?}: {attempt}");
        }
        git(&main, &["fsck"]);
    }
}

#[test]
fn second_checkout_is_sandboxed_too() {
    let Some(sandboxed) = sandboxed() else { return };
    let other = sandboxed.dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let other_root = sandboxed.sandbox.with_root(&other).unwrap();
    let work = sandboxed.work().join("x");
    let done = run(&*other_root, &sh(&format!("echo 1 > here; echo 2 > {}", work.display())));
    assert_ne!(code(&done), Some(0));
    assert!(other.join("here").exists() && !work.exists());
}

#[test]
fn weaker_isolation_than_requested_is_refused() {
    let report = detect(&ralph_loop_testkit::vars());
    for finding in &report.findings {
        println!("{} {} {}", finding.name, finding.works, finding.detail);
    }
    let lacking = |names: &[&str]| {
        let mut report = report.clone();
        for finding in &mut report.findings {
            (finding.works, finding.detail) = (!names.contains(&finding.name), "not here".into());
        }
        report
    };
    let refused = |report: &ralph_loop_sandbox::isolation::IsolationReport, asked| {
        report.choose(asked, IsolationSpec::new("/x")).unwrap_err()
    };
    assert_eq!(refused(&lacking(&["bwrap"]), Isolation::Bwrap), "bwrap: not here");
    let none = lacking(&["bwrap", "landlock"]);
    assert_eq!(refused(&none, Isolation::Auto), "bwrap: not here; landlock: not here");
    assert_eq!(refused(&none, Isolation::Landlock), "landlock: not here");
    assert!(matches!(none.choose(Isolation::None, IsolationSpec::new("/x")), Ok(LocalIsolation::None)));
}

/// A folder outside everything that the sandbox covers (temporary folders, the home): builds may be in one of those.
fn seen_from_inside() -> Option<tempfile::TempDir> {
    let home = ralph_loop_testkit::vars().home().map(Path::to_owned).unwrap_or_default();
    let built = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let covered = |path: &Path| {
        ["/tmp", "/var/tmp", "/run", "/home", "/root"].iter().any(|top| path.starts_with(top))
            || (!home.as_os_str().is_empty() && path.starts_with(&home))
    };
    let places = [built, "/srv".into(), "/opt".into(), "/var/lib".into(), "/var/cache".into()];
    let found =
        places.iter().filter(|place| !covered(place)).find_map(|place| tempfile::tempdir_in(place).ok());
    if found.is_none() {
        println!("skipped: no folder outside of home and temporary ones can be written here");
    }
    found
}

#[test]
fn service_sockets_are_unreachable() {
    let Some(place) = seen_from_inside() else { return };
    let shown = place.path().to_owned();
    let Some(sandboxed) = fenced_with(|spec| spec.read_only.push(shown)) else { return };
    let socket = place.path().canonicalize().unwrap().join("s");
    let _service = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let attempt = format!("{} __try unix {}", "\"$RALPH\"", socket.display());
    let with = |sandbox: &LocalSandbox, program: &str| {
        let mut request = sh(&attempt);
        request.env = vec![("RALPH".into(), program.to_owned())];
        code(&run(sandbox, &request))
    };
    assert_eq!(with(&sandboxed.sandbox, "/run/ralph/ralph"), Some(1));
    assert_eq!(with(&common::fresh().sandbox, PROBE), Some(0));
    assert_eq!(
        code(&sandboxed.sh(&format!("test -e {}", place.path().display()))),
        Some(0),
        "the folder is seen"
    );
}

#[test]
fn services_that_come_and_go_do_not_keep_a_command_from_starting() {
    let Some(sandboxed) = sandboxed() else { return };
    let Some(place) = seen_from_inside() else { return };
    let over = std::sync::atomic::AtomicBool::new(false);
    let folder = place.path().canonicalize().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::SeqCst) {
                let socket = folder.join("s");
                let service = std::os::unix::net::UnixListener::bind(&socket);
                std::thread::park_timeout(Duration::from_millis(4));
                drop(service);
                let _ = std::fs::remove_file(&socket);
                std::thread::park_timeout(Duration::from_millis(8));
            }
        });
        let ends: Vec<(Option<i32>, String)> = (0..30)
            .map(|n| {
                let done = sandboxed.sh(&format!("echo {n}; echo well >&2; exit 5"));
                assert_eq!(done.stdout, format!("{n}\n"), "{}", done.stderr);
                (code(&done), done.stderr)
            })
            .collect();
        over.store(true, std::sync::atomic::Ordering::SeqCst);
        assert!(ends.iter().all(|end| *end == (Some(5), "well\n".to_owned())), "{ends:?}");
    });
}

/// What one command leaves for the mounts of the next to follow.
#[test]
fn links_that_a_command_leaves_are_not_mounted() {
    let Some(sandboxed) = sandboxed() else { return };
    let secret = sandboxed.dir.path().canonicalize().unwrap().join("secret");
    std::fs::create_dir(&secret).unwrap();
    std::fs::write(secret.join("key"), "private\n").unwrap();
    let empty = sandboxed.dir.path().canonicalize().unwrap().join("made-by-a-link");
    git_init(&sandboxed.work());
    let dot = sandboxed.work().join(".git");
    for name in ["modules", "config.worktree", "info", "hooks"] {
        let path = dot.join(name);
        std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path)).ok();
        let target = if name == "hooks" { &empty } else { &secret };
        std::os::unix::fs::symlink(target, &path).unwrap();
        let done = sandboxed.sh(&format!("cat .git/{name}/key; echo x > .git/{name}/key"));
        assert!(!done.stdout.contains("private"), "{name}: {}", done.stdout);
        assert_eq!(std::fs::read_to_string(secret.join("key")).unwrap(), "private\n", "{name}");
        assert!(!empty.exists(), "{name}");
        std::fs::remove_file(&path).ok();
    }
}

#[test]
fn worktree_cannot_claim_another_repo() {
    let Some(sandboxed) = fenced_with(|spec| spec.git = GitAccess::Commit) else { return };
    let other = sandboxed.dir.path().canonicalize().unwrap().join("other");
    std::fs::create_dir(&other).unwrap();
    git_init(&other);
    let dot = other.join(".git");
    std::fs::create_dir_all(dot.join("worktrees/x")).unwrap();
    std::fs::write(dot.join("worktrees/x/commondir"), "../..\n").unwrap();
    std::fs::write(dot.join("worktrees/x/gitdir"), "/somewhere/else/.git\n").unwrap();
    std::fs::write(dot.join("worktrees/x/HEAD"), "ref: refs/heads/main\n").unwrap();
    let text = format!("gitdir: {}\n", dot.join("worktrees/x").display());
    std::fs::write(sandboxed.work().join(".git"), text).unwrap();
    let done = sandboxed.sh(&format!("ls {0}; echo x > {0}/objects/x", dot.display()));
    assert!(!done.stdout.contains("objects"), "{}", done.stdout);
    assert!(!dot.join("objects/x").exists());
}

#[test]
fn a_command_cannot_change_the_file_it_reads_its_input_from() {
    let Some(sandboxed) = sandboxed() else { return };
    let prompt = sandboxed.dir.path().join("prompt");
    std::fs::write(&prompt, "the task\n").unwrap();
    let mut request = sh("echo changed > /proc/self/fd/0; cat");
    request.stdin = ralph_loop_domain::ports::Stdin::File(prompt.clone());
    let done = run(&sandboxed.sandbox, &request);
    assert_eq!(done.stdout, "the task\n", "{}", done.stderr);
    assert_eq!(std::fs::read_to_string(&prompt).unwrap(), "the task\n");
}

#[test]
fn a_fifo_outside_is_not_written_and_one_inside_works() {
    // A path that commands see, outside this test's sandboxes.
    let Ok(shown) = tempfile::tempdir_in("/opt") else {
        return ralph_loop_testkit::skip("only root can make a FIFO in /opt");
    };
    let fifo = shown.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let path = shown.path().to_owned();
    let Some(sandboxed) = fenced_with(|spec| spec.read_only.push(path)) else { return };
    // It has a reader, so that opening it doesn't block.
    let flags = nix::fcntl::OFlag::O_RDWR | nix::fcntl::OFlag::O_NONBLOCK;
    let reader = nix::fcntl::open(&fifo, flags, nix::sys::stat::Mode::empty()).unwrap();
    let done = sandboxed.sh(&format!("ls {0} && echo x > {0}", fifo.display()));
    let mut heard = [0; 8];
    let heard = nix::unistd::read(&reader, &mut heard);
    assert!(done.stdout.contains("fifo"), "it is seen: {}", done.stderr);
    if landlock_works() {
        assert_eq!(heard, Err(nix::errno::Errno::EAGAIN), "{}", done.stderr);
    }
    let inside = "mkfifo pipe ~/pipe /tmp/pipe; for p in pipe ~/pipe /tmp/pipe; do cat $p & echo through > $p; wait; done; mkdir -p a b; echo y > a/y; mv a/y b/y; cat b/y";
    assert_eq!(sandboxed.sh(inside).stdout, "through\nthrough\nthrough\ny\n");
}

fn landlock_works() -> bool {
    let report = detect(&ralph_loop_testkit::vars());
    let works = report.findings.iter().any(|finding| finding.name == "landlock" && finding.works);
    if !works {
        ralph_loop_testkit::skip("this kernel has no Landlock, which keeps FIFOs outside from being written");
    }
    works
}

#[allow(clippy::disallowed_methods, reason = "a test makes a repo")]
fn git_init(folder: &Path) {
    let done = std::process::Command::new("git").args(["init", "-q"]).current_dir(folder).status().unwrap();
    assert!(done.success());
}

#[test]
fn a_command_that_talks_like_bubblewrap_runs_once() {
    let Some(sandboxed) = sandboxed() else { return };
    let done = sandboxed.sh("echo run >> runs; echo \"bwrap: Can't mount x\" >&2; exit 1");
    assert_eq!((code(&done), done.stderr.as_str()), (Some(1), "bwrap: Can't mount x\n"));
    assert_eq!(std::fs::read_to_string(sandboxed.work().join("runs")).unwrap(), "run\n");
}

/// The recorded activity of a watched command, one line each.
fn seen(fenced: &Fenced, script: &str) -> Option<(Option<i32>, Vec<String>)> {
    let mut sink = Sink::default();
    let (outcome, trace) = fenced.sandbox.exec_watched(&sh(script), &mut sink).unwrap();
    let lines = trace?.steps.into_iter().map(|s| format!("{:?} {} {}", s.kind, s.scripts, s.path)).collect();
    Some((outcome.end.code(), lines))
}

#[test]
fn a_watched_command_shows_what_its_runners_open_and_who_writes() {
    let Some(fenced) = sandboxed() else { return };
    let write = |path: &str, text: &str| {
        let path = fenced.work().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("tools/run.sh", "read want < want.cfg; sh lib.sh; cat data.txt > /dev/null; exit 3\n");
    write("lib.sh", "true\n");
    write("want.cfg", "x\n");
    write("data.txt", "x\n");
    std::os::unix::fs::symlink("tools/run.sh", fenced.work().join("link")).unwrap();
    let Some((code, lines)) = seen(&fenced, "env A=1 timeout 60 sh link") else {
        println!("skipped: commands cannot be watched here");
        return;
    };
    assert_eq!(code, Some(3), "the command ends as without a watcher");
    assert_eq!(
        lines,
        [
            "Ran 0 link",
            "Ran 0 tools/run.sh",
            "Ran 1 lib.sh",
            "Read 1 link",
            "Read 1 tools/run.sh",
            "Read 1 want.cfg",
            "Read 2 lib.sh",
        ],
        "a file that `cat` reads isn't a runner's"
    );
    let (_, lines) = seen(&fenced, "cp lib.sh new.sh; mv new.sh lib.sh; (cd tools; rm run.sh)").unwrap();
    assert_eq!(lines, ["Wrote 0 lib.sh", "Wrote 0 new.sh", "Wrote 0 tools/run.sh"]);
}

#[test]
fn a_watched_command_works_as_without_a_watcher() {
    let Some(fenced) = sandboxed() else { return };
    // Signals reach it, jobs can be stopped and resumed, and its leftovers are ended.
    let script = "trap 'echo usr >> out' USR1; kill -USR1 $$; sleep 100 & p=$!; kill -STOP $p; \
        while ! grep -q 'State:.[Tt]' /proc/$p/status; do :; done; kill -CONT $p; kill $p; wait $p; echo $? >> out; \
        (setsid sleep 1000 &); exit 7";
    let Some((code, _)) = seen(&fenced, script) else {
        println!("skipped: commands cannot be watched here");
        return;
    };
    assert_eq!(code, Some(7));
    assert_eq!(std::fs::read_to_string(fenced.work().join("out")).unwrap(), "usr\n143\n");
    let (code, _) = seen(&fenced, "kill -9 $$").unwrap();
    assert_eq!(code, Some(137));
}
