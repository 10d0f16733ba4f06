//! SIGINT, SIGTERM and SIGHUP end a run in good order: everything it started is ended, its work is recorded.
#![allow(unsafe_code, reason = "a signal handler that stores one number")]

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use ralph_core::CancelFlag;
use std::sync::{Arc, OnceLock};

static FLAG: OnceLock<Arc<CancelFlag>> = OnceLock::new();

extern "C" fn on_signal(signal: i32) {
    if let Some(flag) = FLAG.get() {
        flag.set(u8::try_from(signal).unwrap_or(1));
    }
}

/// A flag that the signals set.
pub fn install() -> Arc<CancelFlag> {
    let flag = FLAG.get_or_init(|| Arc::new(CancelFlag::default())).clone();
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
