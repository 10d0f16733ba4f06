//! SIGINT, SIGTERM and SIGHUP suspend a run: its session is closed, everything it started is ended, and
//! `ralph resume` continues. A second Ctrl-C on a terminal asks whether to end the run permanently.
#![allow(unsafe_code, reason = "a signal handler that stores one number")]

use crate::output::Out;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use ralph_loop_core::CancelToken;
use std::sync::{Arc, OnceLock};

static FLAG: OnceLock<Arc<CancelToken>> = OnceLock::new();

extern "C" fn on_signal(signal: i32) {
    if let Some(flag) = FLAG.get() {
        flag.set(u8::try_from(signal).unwrap_or(1));
    }
}

/// Whether a terminating signal arrived.
pub fn came() -> bool {
    FLAG.get().is_some_and(|flag| flag.get().is_some())
}

/// Whether to close the terminal UI. There Ctrl-C is a key; as a signal it is meant for the pager.
pub fn closes() -> bool {
    FLAG.get().and_then(|flag| flag.get()).is_some_and(|signal| signal != "Ctrl-C")
}

/// After repeated Ctrl-C, asks whether to end the run permanently.
pub fn asks_for_the_end(out: &Out) -> bool {
    let Some(flag) = FLAG.get() else { return false };
    if flag.get() != Some("Ctrl-C") || flag.times() < 2 || !out.asks() {
        return false;
    }
    out.say("Ctrl-C again: end this run for good? You can't resume it then. [y/N]");
    let mut answer = [0_u8; 16];
    // Another Ctrl-C interrupts the read and isn't a yes.
    match nix::unistd::read(std::io::stdin(), &mut answer) {
        Ok(count) => answer.get(..count).is_some_and(|text| matches!(text.first(), Some(b'y' | b'Y'))),
        Err(_) => false,
    }
}

/// A flag set by signals.
pub fn install() -> Arc<CancelToken> {
    let flag = FLAG.get_or_init(|| Arc::new(CancelToken::default())).clone();
    let action = SigAction::new(SigHandler::Handler(on_signal), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler only stores to an atomic.
        let _ = unsafe { sigaction(signal, &action) };
    }
    let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // SAFETY: ignoring a signal runs no code.
    let _ = unsafe { sigaction(Signal::SIGPIPE, &ignore) };
    flag
}
