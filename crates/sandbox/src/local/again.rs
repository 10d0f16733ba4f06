//! Tells a sandbox that couldn't be built, and a program that couldn't be started in it, from a command that failed.
//!
//! A mount may fail because a socket to be covered disappeared after the check; bubblewrap then gives up before the
//! command has begun, and the start is repeated. Any other failure before that point is the sandbox's, never the
//! command's.

use ralph_loop_domain::ports::{
    Credentials, ExecEnd, ExecOutcome, ExecRequest, ExecSink, SandboxError, StopCause, Stream,
};
use std::ops::ControlFlow;

const TRIES: u32 = 12;
/// The start of bubblewrap's message for a failed mount.
const MOUNT_FAILED: &str = "bwrap: Can't ";
/// What the first process in the sandbox prints on standard error before it starts the command. Later output can't
/// undo it.
pub(super) const BEGUN: &[u8] = b"\x01ralph: begun\n";
/// What it prints next, with the reason, if the program can't be started. A command that prints this first only makes
/// itself count as not started.
pub(super) const NOT_STARTED: &[u8] = b"\x01ralph: not started: ";
const LAUNCHER_WORDS_MAX: usize = 4096;

/// Runs `request` with `start`, again if a mount of its sandbox failed. If an agent's program can't be started, that
/// is an error; any other command then ends as in a shell, since a check may run what has yet to be written.
pub(super) fn exec(
    request: &ExecRequest,
    sink: &mut dyn ExecSink,
    mut start: impl FnMut(&mut dyn ExecSink) -> Result<ExecOutcome, SandboxError>,
) -> Result<ExecOutcome, SandboxError> {
    let program = request.argv.first().map_or("", String::as_str);
    let mut tries = 1;
    loop {
        let mut words = FirstWords { sink: &mut *sink, held: Vec::new(), stage: Stage::Launching };
        let outcome = start(&mut words)?;
        let said = String::from_utf8_lossy(&words.held).trim().to_owned();
        match (words.stage, outcome.end) {
            (Stage::Launching, ExecEnd::Exited(1)) if said.starts_with(MOUNT_FAILED) && tries < TRIES => {
                tries += 1
            }
            (Stage::Launching, ExecEnd::Exited(_) | ExecEnd::Signaled(_)) => {
                return Err(SandboxError::Broken(match said.as_str() {
                    "" => format!("it exited before starting `{program}`, without a message"),
                    said => said.strip_prefix("ralph: ").unwrap_or(said).to_owned(),
                }));
            }
            (Stage::Starting, ExecEnd::Exited(_)) if words.held.starts_with(NOT_STARTED) => {
                let reason = said.get(NOT_STARTED.len()..).unwrap_or_default();
                let error = super::request::cannot_start(program, reason.trim());
                if request.credentials == Credentials::Agent {
                    return Err(error);
                }
                sink.output(Stream::Stderr, format!("ralph: {error}\n").as_bytes());
                return Ok(outcome);
            }
            _ => {
                words.release();
                return Ok(outcome);
            }
        }
    }
}

/// How far a command's start is known to have come.
#[derive(Clone, Copy)]
enum Stage {
    Launching,
    /// It is built; there is no output of the command yet, or only the beginning of [`NOT_STARTED`].
    Starting,
    Running,
}

/// Holds standard error back until the command is known to run.
struct FirstWords<'a> {
    sink: &'a mut dyn ExecSink,
    held: Vec<u8>,
    stage: Stage,
}

impl FirstWords<'_> {
    fn release(&mut self) {
        self.stage = Stage::Running;
        if !self.held.is_empty() {
            self.sink.output(Stream::Stderr, &std::mem::take(&mut self.held));
        }
    }
}

impl ExecSink for FirstWords<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Stdout || matches!(self.stage, Stage::Running) {
            return self.sink.output(stream, bytes);
        }
        self.held.extend_from_slice(bytes);
        if matches!(self.stage, Stage::Launching) {
            let Some(at) = self.held.windows(BEGUN.len()).position(|part| part == BEGUN) else {
                let over = self.held.len().saturating_sub(LAUNCHER_WORDS_MAX);
                self.held.drain(..over);
                return;
            };
            self.stage = Stage::Starting;
            // A loader's warning, for example: no launcher failed.
            self.held.drain(..at + BEGUN.len());
        }
        let failing = self.held.starts_with(NOT_STARTED) || NOT_STARTED.starts_with(&self.held);
        if !failing || self.held.len() > LAUNCHER_WORDS_MAX {
            self.release();
        }
    }

    fn poll(&mut self) -> ControlFlow<StopCause> {
        self.sink.poll()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[derive(Default)]
    struct Heard(Vec<u8>);

    impl ExecSink for Heard {
        fn output(&mut self, _: Stream, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }
        fn poll(&mut self) -> ControlFlow<StopCause> {
            ControlFlow::Continue(())
        }
    }

    type Tried = (u32, String, Result<ExecEnd, String>);

    fn tries(words: &[&[u8]], end: ExecEnd) -> Tried {
        tries_as(Credentials::Agent, words, end)
    }

    fn tries_as(credentials: Credentials, words: &[&[u8]], end: ExecEnd) -> Tried {
        let (mut count, mut heard) = (0, Heard::default());
        let mut request = ExecRequest::new(vec!["tool".into()]);
        request.credentials = credentials;
        let done = exec(&request, &mut heard, |sink| {
            count += 1;
            for word in words {
                sink.output(Stream::Stderr, word);
            }
            Ok(ExecOutcome { end, duration: Duration::ZERO, survivors: 0 })
        });
        let end = done.map(|done| done.end).map_err(|error| error.to_string());
        (count, String::from_utf8(heard.0).unwrap(), end)
    }

    #[test]
    fn a_sandbox_that_was_not_built_is_an_error_and_a_mount_is_tried_again() {
        let mount = b"bwrap: Can't mount x\n".as_slice();
        let failed = |why: &str| (String::new(), Err(format!("the sandbox failed: {why}")));
        let (count, heard, end) = tries(&[mount], ExecEnd::Exited(1));
        assert_eq!((count, (heard, end)), (TRIES, failed("bwrap: Can't mount x")));
        let once = |words: &[&[u8]], end| {
            let (count, heard, end) = tries(words, end);
            assert_eq!(count, 1);
            (heard, end)
        };
        assert_eq!(once(&[b"ralph: no room\n"], ExecEnd::Exited(126)), failed("no room"));
        let silent = "it exited before starting `tool`, without a message";
        assert_eq!(once(&[], ExecEnd::Signaled(9)), failed(silent));
        // A stopped command says nothing about the sandbox.
        assert_eq!(
            once(&[mount], ExecEnd::TimedOut),
            ("bwrap: Can't mount x\n".into(), Ok(ExecEnd::TimedOut))
        );
    }

    #[test]
    fn output_after_the_start_is_passed_on_unchanged() {
        let mount = b"bwrap: Can't mount x\n".as_slice();
        let ran = |words: &[&[u8]], code| {
            let (count, heard, end) = tries(words, ExecEnd::Exited(code));
            assert_eq!((count, end), (1, Ok(ExecEnd::Exited(code))));
            heard.into_bytes()
        };
        assert_eq!(ran(&[BEGUN, mount], 1), mount);
        let (front, back) = BEGUN.split_at(4);
        assert_eq!(ran(&[front, back, mount], 1), mount);
        assert_eq!(ran(&[b"ld.so: a warning\n", BEGUN, mount], 0), mount);
        assert_eq!(ran(&[BEGUN, BEGUN], 0), BEGUN);
        assert_eq!(ran(&[BEGUN], 0), b"");
        // The beginning of the message for a failed start, and the message later on.
        assert_eq!(ran(&[BEGUN, b"\x01ralph: n"], 3), b"\x01ralph: n");
        assert_eq!(ran(&[BEGUN, b"x", NOT_STARTED], 127), [b"x", NOT_STARTED].concat());
    }

    #[test]
    fn a_program_that_cannot_start_is_distinguished_from_one_that_fails() {
        let (front, back) = NOT_STARTED.split_at(9);
        let (words, end) = ([BEGUN, front, back, b"no such file\n"], ExecEnd::Exited(127));
        let said = "cannot start `tool`: no such file";
        assert_eq!(tries(&words, end), (1, String::new(), Err(said.into())));
        assert_eq!(tries_as(Credentials::None, &words, end), (1, format!("ralph: {said}\n"), Ok(end)));
    }
}
