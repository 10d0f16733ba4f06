//! What a command gets and what it returns.

use crate::common;
use crate::common::{Sink, alive, fresh, refused, run, sh};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ralph_loop_domain::ports::{ExecEnd, ExecRequest, Sandbox as _, SandboxError, Stdin, StopCause};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[test]
fn exit_codes_and_signals_are_distinguished() {
    let b = fresh();
    assert_eq!(b.sh("exit 0").outcome.end, ExecEnd::Exited(0));
    assert_eq!(b.sh("exit 255").outcome.end, ExecEnd::Exited(255));
    assert_eq!(b.sh("kill -TERM $$").outcome.end, ExecEnd::Signaled(15));
    assert_eq!(b.sh("kill -KILL $$").outcome.end, ExecEnd::Signaled(9));
    assert_eq!(b.sh("exec perl -e 'kill 40, $$; sleep 9'").outcome.end, ExecEnd::Signaled(40));
    assert_eq!(b.sh("true").outcome.survivors, 0);
}

#[test]
fn streams_are_separate_and_whole() {
    let b = fresh();
    let output = b.sh("printf out; printf err >&2; printf 'ü∆\\n'");
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("outü∆\n", "err"));
    let output = b.sh("i=0; while [ $i -lt 2000 ]; do echo line $i; echo other $i >&2; i=$((i+1)); done");
    let expected = |word: &str| (0..2000).map(|i| format!("{word} {i}\n")).collect::<String>();
    assert_eq!(output.stdout, expected("line"));
    assert_eq!(output.stderr, expected("other"));
}

#[test]
fn a_command_runs_in_its_folder_with_its_variables() {
    let b = fresh();
    std::fs::create_dir_all(b.path().join("sub/dir")).unwrap();
    let mut request = sh("pwd; echo \"$PWD\"; echo \"$A-$B-$RALPH_RUN\"; echo \"${OLDPWD-none}\"");
    request.cwd = PathBuf::from("sub/dir");
    request.env = [("A", "old"), ("B", "ü b"), ("A", "new"), ("RALPH_RUN", "forged")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
    let output = run(&b.sandbox, &request);
    let here = b.sandbox.root().join("sub/dir");
    let here = here.display();
    let id = b.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.').to_owned();
    assert_eq!(output.stdout, format!("{here}\n{here}\nnew-ü b-{id}\nnone\n"));
}

#[test]
fn variables_can_be_kept_from_commands() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = common::options("env");
    options.env_remove = vec!["HOME".to_owned()];
    let sandbox = ralph_loop_sandbox::LocalSandbox::start(dir.path(), options).unwrap();
    let output = run(&sandbox, &sh("echo ${HOME-none} ${PATH:+path}"));
    assert_eq!(output.stdout, "none path\n");
}

#[test]
fn standard_input_of_every_kind() {
    let b = fresh();
    assert_eq!(b.sh("wc -c").stdout.trim(), "0");
    let mut request = sh("sleep 0.02; wc -c; echo");
    request.stdin = Stdin::Bytes(vec![b'x'; 3_000_000]);
    assert_eq!(run(&b.sandbox, &request).stdout.trim(), "3000000");
    // Input that isn't read is harmless.
    request.argv = vec!["true".to_owned()];
    assert_eq!(run(&b.sandbox, &request).outcome.end, ExecEnd::Exited(0));
    let file = b.path().join("input");
    std::fs::write(&file, "from a file").unwrap();
    request.argv = vec!["cat".to_owned()];
    request.stdin = Stdin::File(file);
    assert_eq!(run(&b.sandbox, &request).stdout, "from a file");
    request.stdin = Stdin::File(b.path().join("missing"));
    assert!(matches!(refused(&b.sandbox, &request), SandboxError::File { verb: "open", .. }));
}

#[test]
fn large_arguments_and_environments_pass() {
    let b = fresh();
    let prompt = "é".repeat(65_000);
    let mut request = ExecRequest::new(vec!["printf".to_owned(), "%s".to_owned(), prompt.clone()]);
    request.argv = ["sh", "-c", "printf '%s' \"$1\"; printf '%s' \"$BIG\" | wc -c >&2", "sh", &prompt]
        .map(String::from)
        .to_vec();
    request.env = vec![("BIG".to_owned(), "y".repeat(120_000))];
    let output = run(&b.sandbox, &request);
    assert_eq!(output.stdout, prompt);
    assert_eq!(output.stderr.trim(), "120000");
    request.argv = vec!["true".to_owned(), "x".repeat(200_000)];
    let error = refused(&b.sandbox, &request).to_string();
    assert!(error.contains("too large"), "{error}");
}

#[test]
fn failed_start_reports_why_and_the_sandbox_still_works() {
    let b = fresh();
    std::fs::write(b.path().join("plain"), "text").unwrap();
    std::fs::write(b.path().join("no-interpreter"), "#!/no/such/thing\n").unwrap();
    for name in ["plain", "no-interpreter"] {
        let mode = if name == "plain" { 0o644 } else { 0o755 };
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(b.path().join(name), permissions).unwrap();
    }
    for (argv, part) in [
        (vec!["no-such-program-here"], "on the PATH"),
        (vec!["./missing"], "no such file"),
        (vec!["./plain"], "not an executable"),
        (vec!["./no-interpreter"], "interpreter"),
        (vec!["/"], "not an executable"),
        (vec![""], ""),
        (vec!["echo", "a\0b"], "NUL"),
        (vec![], "empty"),
    ] {
        let request = ExecRequest::new(argv.iter().map(|s| (*s).to_owned()).collect());
        match refused(&b.sandbox, &request) {
            SandboxError::CannotStart { reason, .. } => assert!(reason.contains(part), "{argv:?}: {reason}"),
            other => panic!("{argv:?}: {other}"),
        }
    }
    let mut request = sh("true");
    request.env = vec![("A=B".to_owned(), String::new())];
    assert!(matches!(refused(&b.sandbox, &request), SandboxError::CannotStart { .. }));
    assert_eq!(b.sh("echo fine").stdout, "fine\n");
}

#[test]
fn the_folder_of_a_command_stays_inside() {
    let b = fresh();
    std::os::unix::fs::symlink("/", b.path().join("out")).unwrap();
    for bad in ["/tmp", "..", "out"] {
        let mut request = sh("true");
        request.cwd = PathBuf::from(bad);
        assert!(matches!(refused(&b.sandbox, &request), SandboxError::OutsideWorkspace(_)), "{bad}");
    }
    let mut request = sh("true");
    request.cwd = PathBuf::from("missing");
    assert!(matches!(refused(&b.sandbox, &request), SandboxError::File { verb: "enter", .. }));
}

#[test]
fn the_path_of_the_command_counts() {
    let b = fresh();
    std::fs::create_dir(b.path().join("bin")).unwrap();
    let tool = b.path().join("bin/my-tool");
    std::fs::write(&tool, "#!/bin/sh\necho tool\n").unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut request = ExecRequest::new(vec!["my-tool".to_owned()]);
    request.env = vec![("PATH".to_owned(), format!("{}:/usr/bin:/bin", b.path().join("bin").display()))];
    assert_eq!(run(&b.sandbox, &request).stdout, "tool\n");
}

#[test]
fn command_starts_with_clean_signals_and_descriptors() {
    let b = fresh();
    // Signals: none blocked, none ignored; descriptors: the three and the one that ls opens; its own session.
    let output = b
        .sh("grep -E 'SigBlk|SigIgn' /proc/self/status; ls /proc/self/fd | wc -l; ps -o sid= -p $$; echo $$");
    let lines: Vec<&str> = output.stdout.lines().map(str::trim).collect();
    assert_eq!(lines[0], "SigBlk:\t0000000000000000");
    assert_eq!(lines[1], "SigIgn:\t0000000000000000");
    assert_eq!(lines[2], "4", "{}", output.stdout);
    assert_eq!(lines[3], lines[4]);
}

#[test]
fn the_sink_is_polled_in_silence_and_in_noise() {
    let b = fresh();
    for script in ["sleep 0.6", "timeout 0.6 yes"] {
        // A busy machine may delay us, but not every time: one undisturbed round is enough.
        let mut rounds = Vec::new();
        let keeps_pace = (0..10).any(|_| {
            let mut sink = Sink::default();
            b.sandbox.exec(&sh(script), &mut sink).unwrap();
            rounds.push((sink.longest_gap, sink.polls));
            sink.longest_gap < Duration::from_millis(250) && (4..=14).contains(&sink.polls)
        });
        assert!(keeps_pace, "{script}: longest gap and polls of each round: {rounds:?}");
    }
}

#[test]
fn a_stop_before_the_start_starts_nothing() {
    let b = fresh();
    let mut sink = Sink::asking(|| ControlFlow::Break(StopCause::Cancelled));
    let outcome = b.sandbox.exec(&sh("touch started"), &mut sink).unwrap();
    assert_eq!(outcome.end, ExecEnd::Stopped(StopCause::Cancelled));
    assert!(!b.path().join("started").exists());
}

#[test]
fn commands_of_sandboxes_with_one_guard_take_turns() {
    let b = fresh();
    let other = tempfile::tempdir().unwrap();
    let other_root = b.sandbox.with_root(other.path()).unwrap();
    assert_eq!(other_root.kind(), "local");
    assert_eq!(run(&*other_root, &sh("pwd")).stdout.trim(), other_root.root().to_str().unwrap());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || run(&*other_root, &sh("echo second")).stdout);
        assert_eq!(b.sh("sleep 0.3; echo first").stdout, "first\n");
        assert_eq!(waiting.join().unwrap(), "second\n");
    });
}

#[test]
fn process_that_holds_the_pipe_is_not_waited_for() {
    let b = fresh();
    let fifo = b.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    #[allow(clippy::disallowed_methods)]
    let mut stranger = std::process::Command::new("sh")
        .args([
            "-c",
            "read pid < fifo; exec 5> /proc/$pid/fd/1; echo ok > answer; exec sleep 1000 >&5 2>/dev/null",
        ])
        .current_dir(b.path())
        .spawn()
        .unwrap();
    // In a subshell: the named pipe must never be the command's own standard output.
    let output = b.sh("(echo $$ > fifo); while [ ! -s answer ]; do sleep 0.01; done; echo mine");
    assert_eq!(output.stdout, "mine\n");
    // It still holds the pipe, and would for a long time.
    let pid = i32::try_from(stranger.id()).unwrap();
    assert!(alive(pid));
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn guard_ignores_sigterm() {
    let b = fresh();
    let guard = Pid::from_raw(i32::try_from(b.sandbox.guard_pid().unwrap()).unwrap());
    for signal in
        [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGPIPE, Signal::SIGQUIT, Signal::SIGTSTP]
    {
        kill(guard, signal).unwrap();
    }
    assert_eq!(b.sh("echo still here").stdout, "still here\n");
    assert_eq!(b.sandbox.guard_pid(), Some(u32::try_from(guard.as_raw()).unwrap()));
}

#[test]
fn program_that_is_not_a_guard_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    for (program, why) in [
        ("/bin/true", "`/bin/true` is not the program it should be"),
        ("/no/such/program", "No such file or directory"),
    ] {
        let mut options = common::options("none");
        options.guard_exe = Some(PathBuf::from(program));
        let error = ralph_loop_sandbox::LocalSandbox::start(dir.path(), options).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let error =
        ralph_loop_sandbox::LocalSandbox::start(Path::new("/no/such/folder"), common::options("none"))
            .unwrap_err();
    assert_eq!(error.to_string(), "cannot open `/no/such/folder`: No such file or directory (os error 2)");
}
