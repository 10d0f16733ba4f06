//! How much the guard of `ralph hook pre-tool-use` catches, what it refuses wrongly, and how long an answer takes.
//!
//! ```text
//! ralph-guard-bench --tune               the half that rules are chosen on, with every miss
//! ralph-guard-bench                      all of it; the held-out half is what the rules are worth
//! ralph-guard-bench --binary PATH        also how long `PATH hook EVENT` takes on a transcript of 5 MB
//! ```
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, measures and starts the binary"
)]

use ralph_loop_hooks::guard::{AllowRules, Guard, Places};
use ralph_loop_testkit::guard::{Disguised, Half, Label, dangerous, published};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let tune = args.iter().any(|arg| arg == "--tune");
    let guard = guard();
    let mut times = Vec::new();
    for (half, title) in [(Half::Tune, "chosen on"), (Half::HeldOut, "held out")] {
        if half == Half::HeldOut && tune {
            continue;
        }
        let of_half: Vec<Disguised> = dangerous().into_iter().filter(|one| one.half == half).collect();
        caught(&guard, &of_half, title, &mut times);
    }
    alarms(&guard, tune, &mut times);
    println!("\ntime of a decision: {}", spread(&mut times));
    if let Some(binary) = args.iter().position(|arg| arg == "--binary").and_then(|at| args.get(at + 1))
        && let Err(error) = starts(Path::new(binary))
    {
        println!("the binary could not be measured: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn guard() -> Guard {
    let places = Places {
        home: "/home/user".into(),
        project: "/home/user/project".into(),
        cwd: "/home/user/project".into(),
        own: vec!["/usr/local/bin/ralph".into()],
    };
    Guard::new(places, AllowRules::default())
}

fn timed(
    guard: &Guard,
    command: &str,
    times: &mut Vec<Duration>,
) -> Option<ralph_loop_hooks::guard::Refusal> {
    let start = Instant::now();
    let verdict = guard.judge_command(command);
    times.push(start.elapsed());
    verdict
}

fn caught(guard: &Guard, all: &[Disguised], title: &str, times: &mut Vec<Duration>) {
    let mut techniques: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut misses = Vec::new();
    for one in all {
        let count = techniques.entry(one.technique).or_default();
        count.1 += 1;
        match timed(guard, &one.command, times) {
            Some(_) => count.0 += 1,
            None => misses.push(one),
        }
    }
    let hits: usize = techniques.values().map(|(hit, _)| hit).sum();
    println!("\ntechniques {title}: {hits} of {} caught ({:.1} %)", all.len(), percent(hits, all.len()));
    for (technique, (hit, of)) in &techniques {
        println!("  {hit:>3} of {of:>3}  {technique}");
    }
    for miss in misses {
        println!("  missed ({}, {}): {}", miss.technique, miss.category, miss.command.replace('\n', "\\n"));
    }
}

fn alarms(guard: &Guard, tune: bool, times: &mut Vec<Duration>) {
    // Every other command is left for the final number.
    let all: Vec<_> = published()
        .into_iter()
        .enumerate()
        .filter(|(at, _)| !tune || at % 2 == 0)
        .map(|(_, one)| one)
        .collect();
    let harmless: Vec<_> = all.iter().filter(|one| one.label == Label::Harmless).collect();
    let mut wrong = Vec::new();
    for one in &harmless {
        if let Some(refusal) = timed(guard, one.command, times) {
            wrong.push((one.command, refusal));
        }
    }
    println!(
        "\nfalse alarms: {} of {} commands of published packages ({:.2} %)",
        wrong.len(),
        harmless.len(),
        percent(wrong.len(), harmless.len())
    );
    for (command, refusal) in &wrong {
        println!("  {}: {command}\n      {}", refusal.category.word(), refusal.why);
    }
    let meant: Vec<_> = all.iter().filter(|one| one.label == Label::Meant).collect();
    let refused = meant.iter().filter(|one| guard.judge_command(one.command).is_some()).count();
    println!("refused by definition (sudo, publish, …): {refused} of {} that name such a thing", meant.len());
}

/// How long the binary takes from its start to its answer.
fn starts(binary: &Path) -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let transcript = folder.path().join("t.jsonl");
    let mut file = std::fs::File::create(&transcript)?;
    let line = format!("{{\"type\":\"user\",\"message\":{{\"content\":\"{}\"}}}}\n", "x".repeat(2000));
    let count = r#"{"type":"assistant","message":{"usage":{"input_tokens":10,"cache_read_input_tokens":90000,"output_tokens":9}}}"#;
    for number in 0..2500 {
        file.write_all(line.as_bytes())?;
        if number % 10 == 0 {
            writeln!(file, "{count}")?;
        }
    }
    println!(
        "\nfrom start to answer, transcript of {} MB, 300 times each:",
        file.metadata()?.len() / 1_000_000
    );
    let cwd = folder.path().display().to_string();
    let event = |name: &str, rest: &str| {
        format!(
            r#"{{"session_id":"bench","transcript_path":"{}","cwd":"{cwd}","hook_event_name":"{name}"{rest}}}"#,
            transcript.display()
        )
    };
    let command = r#","tool_name":"Bash","tool_input":{"command":"cd src && for f in *.rs; do grep -n \"$(echo x | tr x y)\" \"$f\" | head -5; done && cargo test 2>&1 | tail -20"}"#;
    for (name, input) in [
        ("pre-tool-use", event("PreToolUse", command)),
        ("post-tool-use", event("PostToolUse", command)),
        ("session-start", event("SessionStart", "")),
        ("stop", event("Stop", "")),
    ] {
        let mut times = Vec::new();
        for _ in 0..300 {
            let start = Instant::now();
            let mut child = Command::new(binary)
                .args(["hook", name])
                .env("HOME", folder.path())
                .env("XDG_STATE_HOME", folder.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()?;
            if let Some(mut stdin) = child.stdin.take() {
                stdin.write_all(input.as_bytes())?;
            }
            child.wait()?;
            times.push(start.elapsed());
        }
        println!("  {name:<14} {}", spread(&mut times));
    }
    Ok(())
}

fn spread(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |part: usize| {
        times.get((times.len() * part / 1000).min(times.len().saturating_sub(1))).copied().unwrap_or_default()
    };
    format!("p50 {:.2} ms · p99 {:.2} ms · most {:.2} ms", ms(at(500)), ms(at(990)), ms(at(1000)))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn percent(part: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { part as f64 * 100.0 / of as f64 }
}
