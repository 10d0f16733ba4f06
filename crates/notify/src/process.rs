//! Runs a user's notification program, and ends it when it takes too long.
#![allow(clippy::disallowed_methods, reason = "the home of the user's own notification programs")]

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use ralph_loop_domain::vars::Vars;
use ralph_loop_protocol::display::text::one_line;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_millis(4500);
const POLL: Duration = Duration::from_millis(10);
const SAID: u64 = 4096;

/// Runs a program with `input` on stdin and only `vars` in its environment.
pub(crate) fn run(argv: &[String], vars: &Vars, input: &str) -> Result<(), String> {
    let (program, args) = argv.split_first().ok_or("no program is named")?;
    let mut child = Command::new(program)
        .args(args)
        .env_clear()
        .envs(vars.iter())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // A separate group: its children end with it, and the terminal's Ctrl-C doesn't reach it.
        .process_group(0)
        .spawn()
        .map_err(|e| format!("`{program}` cannot be started: {e}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_owned();
        // A program need not read its input.
        std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    }
    let (done, said) = channel();
    if let Some(stderr) = child.stderr.take() {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.take(SAID).read_to_end(&mut text);
            done.send(String::from_utf8_lossy(&text).into_owned())
        });
    }
    let deadline = Instant::now() + LIMIT;
    let status = loop {
        match child.try_wait().map_err(|e| format!("`{program}` cannot be waited for: {e}"))? {
            Some(status) => break status,
            None if Instant::now() >= deadline => {
                if let Ok(id) = i32::try_from(child.id()) {
                    let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
                }
                let _ = child.wait();
                return Err(format!(
                    "`{program}` took longer than {} seconds and was ended",
                    LIMIT.as_secs()
                ));
            }
            None => std::thread::sleep(POLL),
        }
    };
    if status.success() {
        return Ok(());
    }
    let said = said.recv_timeout(Duration::from_millis(200)).unwrap_or_default();
    Err(one_line(&format!("`{program}` ended with {status}: {}", said.trim()), 300))
}
