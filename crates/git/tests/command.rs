//! The runner itself: deadlines, bounds, errors.
#![allow(clippy::unwrap_used, reason = "helpers beside the tests fail them, too")]

mod support;

use ralph_git::{Git, GitFailure};
use std::time::{Duration, Instant};
use support::Fixture;

#[test]
fn a_command_that_hangs_is_ended_with_everything_it_started() {
    let fixture = Fixture::new();
    let git = fixture.repo().git().with_timeout(Duration::from_millis(200));
    let began = Instant::now();
    let error = git.call(["hang"]).config("alias.hang=!sleep 30 & sleep 30").run().unwrap_err();
    assert_eq!(error.kind, GitFailure::TimedOut);
    assert!(began.elapsed() < Duration::from_secs(10));
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
fn a_failure_tells_command_code_last_words_and_what_to_do() {
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
    let error = call.stdin("protocol=https\nhost=example.invalid\n\n").config("credential.helper=").run();
    // Either no answer at all or an empty one, but never a prompt: the test would hang.
    assert!(error.is_err() || error.unwrap().text().contains("password="));
}
