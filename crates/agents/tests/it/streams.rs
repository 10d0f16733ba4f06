//! Property tests: no parser panics, results don't depend on the pieces, and everything stays bounded.

use crate::support::{NOW, RecordingSink};
use proptest::prelude::*;
use ralph_loop_agents::cli::replay;
use ralph_loop_domain::ports::{ExecEnd, ExecOutcome, FINAL_MESSAGE_MAX, SessionReport, Stream};
use ralph_loop_task::config::OutputFormat;
use std::time::Duration;

const FORMATS: [OutputFormat; 7] = [
    OutputFormat::Text,
    OutputFormat::ClaudeJson,
    OutputFormat::ClaudeStreamJson,
    OutputFormat::CodexJson,
    OutputFormat::GeminiJson,
    OutputFormat::OpencodeJson,
    OutputFormat::QwenJson,
];

/// Pieces of real events, whole and broken, of every format.
const PIECES: &[&str] = &[
    "{\"type\":\"system\",\"subtype\":\"init\",\"model\":\"m\"}",
    "{\"type\":\"system\",\"subtype\":\"api_retry\",\"attempt\":3,\"max_retries\":10,\"retry_delay_ms\":1e300,\"error_status\":429}",
    "{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\"resetsAt\":1794715340}}",
    "{\"type\":\"assistant\",\"message\":{\"id\":\"1\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Write\",\"input\":{\"file_path\":\"/é\"}}],\"usage\":{\"input_tokens\":18446744073709551615,\"output_tokens\":9}}}",
    "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":\"{\\\"\"}]}}",
    "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"[API Error: 429 x]\",\"total_cost_usd\":1e308,\"usage\":{\"input_tokens\":18446744073709551615},\"session_id\":\"s\"}",
    "{\"type\":\"result\",\"is_error\":true,\"api_error_status\":99999,\"errors\":[1,\"x\"]}",
    "{\"type\":\"thread.started\",\"thread_id\":\"t\"}",
    "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"<promise>\"}}",
    "{\"type\":\"item.started\",\"item\":{\"id\":\"1\",\"type\":\"file_change\",\"changes\":[{\"path\":\"a\"}]}}",
    "{\"type\":\"error\",\"message\":\"Reconnecting... 9/9 (429 Too Many Requests)\",\"error\":{\"name\":\"APIError\",\"data\":{\"message\":\"m\",\"statusCode\":429}}}",
    "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1,\"cached_input_tokens\":18446744073709551615}}",
    "{\"type\":\"turn.failed\",\"error\":{\"message\":\"try again at 3:54 AM.\"}}",
    "{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"x\",\"delta\":true}",
    "{\"type\":\"result\",\"status\":\"error\",\"error\":{\"message\":\"terminated\",\"code\":1}}",
    "{\n  \"response\": \"r\",\n  \"stats\": {\"models\": {\"g\": {\"tokens\": {\"prompt\": 18446744073709551615, \"total\": 1}}}}\n}",
    "{\"type\":\"text\",\"part\":{\"messageID\":\"m\",\"text\":\"hi\"}}",
    "{\"type\":\"step_finish\",\"part\":{\"reason\":\"stop\",\"tokens\":{\"input\":18446744073709551615,\"output\":18446744073709551615,\"reasoning\":1},\"cost\":1e308}}",
    "Attempt 3 failed: You exceeded your current quota\nRetrying after 99999999999ms...",
    "[",
    "]",
    ",",
    "\n",
    "\r\n",
    "{",
    "}",
    "\"",
    "\\",
    "é",
    "\u{1b}[31m",
    "[INFO] x",
];

fn read(format: OutputFormat, bytes: &[u8], end: ExecEnd, chunk: usize) -> (SessionReport, RecordingSink) {
    let mut told = RecordingSink::default();
    let outcome = ExecOutcome { end, duration: Duration::from_secs(2), survivors: 0 };
    let pieces = [Stream::Stderr, Stream::Stdout]
        .into_iter()
        .flat_map(|stream| bytes.chunks(chunk).map(move |piece| (stream, piece)));
    let report = replay(format, pieces, &outcome, NOW.parse().unwrap(), &mut told);
    (report, told)
}

fn check(bytes: &[u8], end: ExecEnd, chunk: usize) -> Result<(), TestCaseError> {
    for format in FORMATS {
        let (whole, told) = read(format, bytes, end, usize::MAX >> 1);
        let (cut, told_cut) = read(format, bytes, end, chunk);
        prop_assert_eq!(&whole.end, &cut.end, "{:?}", format);
        prop_assert_eq!(&whole.final_message, &cut.final_message, "{:?}", format);
        prop_assert_eq!(&whole.usage, &cut.usage, "{:?}", format);
        prop_assert_eq!(&whole.response, &cut.response, "{:?}", format);
        prop_assert_eq!(&told.activities, &told_cut.activities, "{:?}", format);
        prop_assert!(whole.final_message.len() <= FINAL_MESSAGE_MAX);
        prop_assert!(whole.response.to_string().len() <= 256 * 1024);
        prop_assert!(whole.end.reason().unwrap_or_default().len() <= 1024);
    }
    Ok(())
}

fn ends() -> impl Strategy<Value = ExecEnd> {
    prop::sample::select(vec![
        ExecEnd::Exited(0),
        ExecEnd::Exited(1),
        ExecEnd::Exited(173),
        ExecEnd::Signaled(9),
        ExecEnd::TimedOut,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_the_same_in_any_pieces(
        bytes in prop::collection::vec(any::<u8>(), 0..512),
        end in ends(),
        chunk in 1_usize..40,
    ) {
        check(&bytes, end, chunk)?;
    }

    #[test]
    fn events_whole_and_broken_are_read_the_same_in_any_pieces(
        pieces in prop::collection::vec((prop::sample::select(PIECES), 0_usize..400, any::<bool>()), 0..16),
        end in ends(),
        chunk in 1_usize..80,
    ) {
        let mut bytes = Vec::new();
        for (piece, cut, line) in pieces {
            // Mostly whole, sometimes cut anywhere.
            bytes.extend_from_slice(&piece.as_bytes()[..if cut < 40 { cut.min(piece.len()) } else { piece.len() }]);
            if line {
                bytes.push(b'\n');
            }
        }
        check(&bytes, end, chunk)?;
    }
}
