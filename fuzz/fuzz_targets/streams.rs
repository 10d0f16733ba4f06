//! What agents print: no parser panics, and the result does not depend on the pieces in which it comes. The first byte
//! chooses the format, the second the size of the pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_agents::cli::replay;
use ralph_domain::config::OutputFormat;
use ralph_domain::ports::{ExecEnd, ExecOutcome, SessionReport, SessionSink, StopCause, Stream};
use std::ops::ControlFlow;
use std::time::Duration;

const FORMATS: [OutputFormat; 6] = [
    OutputFormat::ClaudeStreamJson,
    OutputFormat::CodexJson,
    OutputFormat::GeminiJson,
    OutputFormat::OpencodeJson,
    OutputFormat::QwenJson,
    OutputFormat::Text,
];

struct Deaf;

impl SessionSink for Deaf {
    fn output(&mut self, _: Stream, _: &[u8]) {}
    fn activity(&mut self, line: &str) {
        assert!(line.len() <= 200 && !line.contains('\n'));
    }
    fn action(&mut self, json_line: &str) {
        assert!(json_line.len() <= 4096 && !json_line.contains('\n'));
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

fn read(format: OutputFormat, bytes: &[u8], code: i32, chunk: usize) -> SessionReport {
    let outcome = ExecOutcome { end: ExecEnd::Exited(code), duration: Duration::ZERO, survivors: 0 };
    let pieces = [Stream::Stderr, Stream::Stdout]
        .into_iter()
        .flat_map(|stream| bytes.chunks(chunk).map(move |piece| (stream, piece)));
    replay(format, pieces, &outcome, jiff::Timestamp::UNIX_EPOCH, &mut Deaf)
}

fuzz_target!(|data: &[u8]| {
    let [choice, size, bytes @ ..] = data else { return };
    let format = FORMATS[usize::from(*choice) % FORMATS.len()];
    for code in [0, 1] {
        let whole = read(format, bytes, code, bytes.len().max(1));
        let cut = read(format, bytes, code, usize::from(*size) + 1);
        assert_eq!(whole.end, cut.end);
        assert_eq!(whole.final_message, cut.final_message);
        assert_eq!(whole.usage, cut.usage);
        assert_eq!(whole.response, cut.response);
    }
});
