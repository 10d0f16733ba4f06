//! The runner: deadlines, bounds, errors.

use crate::support;
use crate::support::Fixture;
use ralph_loop_git::{Git, GitFailure};
use std::fs;
use std::time::Duration;

#[test]
fn a_command_that_hangs_is_ended_with_everything_it_started() {
    let fixture = Fixture::new();
    let git = fixture.repo().git().with_timeout(Duration::from_millis(200));
    let pids = fixture.dir.path().join("pids");
    let hang = format!("alias.hang=!sleep 1000 & echo $! $$ > {}; sleep 1000", pids.display());
    // Under load the deadline may pass before both have started.
    let began = (0..50).any(|_| {
        let error = git.call(["hang"]).config(&hang).run().unwrap_err();
        assert_eq!(error.kind, GitFailure::TimedOut);
        fs::read_to_string(&pids).is_ok_and(|text| text.split_whitespace().count() == 2)
    });
    assert!(began, "the command never began");
    for pid in fs::read_to_string(&pids).unwrap().split_whitespace() {
        ralph_loop_testkit::env::until("the end of what it started", || {
            (!ralph_loop_testkit::env::is_alive(pid.parse().unwrap())).then_some(())
        });
    }
}

#[test]
fn output_is_bounded_and_large_input_does_not_block() {
    let fixture = Fixture::new();
    let git = fixture.repo().git();
    let input = "src/lib.rs\n".repeat(100_000);
    let call = git.call(["check-ignore", "-v", "-n", "--stdin"]).stdin(input.clone());
    let output = call.accept(&[1]).run().unwrap();
    assert_eq!(output.stdout.iter().filter(|b| **b == b'\n').count(), 100_000);
    let call = git.call(["check-ignore", "-v", "-n", "--stdin"]).stdin(input).max_stdout(1000);
    let output = call.run().unwrap();
    assert!(output.truncated && output.stdout.len() == 1000);
}

#[test]
fn failure_reports_command_code_stderr_and_hint() {
    let fixture = Fixture::new();
    let error = fixture.repo().git().call(["rev-parse", "--verify", "no-such-ref"]).run().unwrap_err();
    assert_eq!(error.code(), Some(128));
    assert!(
        error
            .to_string()
            .starts_with("`git rev-parse --verify no-such-ref` failed with exit code 128: fatal")
    );
    fixture.write(".git/index.lock", "");
    let error = fixture.repo().git().call(["add", "-A"]).run().unwrap_err();
    assert!(error.hint.unwrap().contains("lock"));
}

#[test]
fn nothing_asks_for_a_password() {
    let fixture = Fixture::new();
    let call = Git::in_folder(&support::vars(), &fixture.top).call(["credential", "fill"]);
    let answer = call.stdin("protocol=https\nhost=example.invalid\n\n").config("credential.helper=").run();
    // A prompt would hang the test.
    let error = answer.unwrap_err().to_string();
    assert!(error.contains("unable to get password from user"), "{error}");
}
