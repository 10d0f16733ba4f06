//! Memory stays bounded, whatever an agent prints. A separate file, because it measures the whole process's memory.

use crate::support::{Canned, cli};
use ralph_loop_domain::ports::{ExecEnd, FINAL_MESSAGE_MAX};
use ralph_loop_task::config::OutputFormat;

const MEGABYTE: usize = 1024 * 1024;

/// The process's peak memory, in bytes; `None` if unavailable.
fn peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok()? * 1024)
}

#[test]
fn no_flood_fills_the_memory() {
    let before = peak();
    let binary: Vec<u8> = (0..MEGABYTE).map(|i| (i * 31 % 256) as u8).collect();
    let floods: [(&str, Vec<u8>); 5] = [
        ("one endless line", vec![b'x'; MEGABYTE]),
        ("binary", binary),
        ("an endless string", [b"{\"type\":\"result\",\"x\":\"".to_vec(), vec![b'y'; MEGABYTE]].concat()),
        ("endless nesting", b"{\"a\":".repeat(MEGABYTE / 5)),
        (
            "endless messages",
            b"{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"0123456789\",\"delta\":true}\n"
                .repeat(MEGABYTE / 79),
        ),
    ];
    for format in [
        OutputFormat::Text,
        OutputFormat::ClaudeJson,
        OutputFormat::ClaudeStreamJson,
        OutputFormat::CodexJson,
        OutputFormat::GeminiJson,
        OutputFormat::OpencodeJson,
        OutputFormat::QwenJson,
    ] {
        for (name, bytes) in &floods {
            let mut sandbox = Canned::new(bytes.clone(), bytes.clone(), ExecEnd::Exited(0));
            sandbox.chunk = 64 * 1024;
            sandbox.times = 10;
            let (report, told) = cli(format, &sandbox);
            assert_eq!(told.bytes as usize, 2 * 10 * bytes.len(), "all of it is passed on");
            assert!(report.final_message.len() <= FINAL_MESSAGE_MAX, "{format:?}: {name}");
            assert!(report.response.to_string().len() <= 256 * 1024, "{format:?}: {name}");
            if *name == "an endless string" && format != OutputFormat::Text {
                assert_eq!(report.response["dropped_lines"], 1, "{format:?}");
            }
        }
    }
    if let (Some(before), Some(after)) = (before, peak()) {
        let grown = (after - before) / MEGABYTE;
        println!("the peak grew by {grown} MB");
        assert!(grown < 32, "the peak grew by {grown} MB");
    }
}
