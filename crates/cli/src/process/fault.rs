//! Test hooks at a run's named boundaries. Without their variables each costs one comparison.
//!
//! `RALPH_FAULT=<boundary>[#n]` kills this process when it passes the boundary for the n-th time (torture
//! tests); with `freeze:` before it, the process stops there until it gets SIGCONT. `RALPH_TRACE=<file>` logs
//! the time of every boundary (benchmark).

use nix::sys::signal::Signal;
use ralph_loop_domain::vars::Vars;
use std::io::Write as _;
use std::time::Instant;

/// A fault with this prefix, meant for an interface rather than a run's boundary.
pub fn inject_from_env(vars: &Vars, prefix: &str) -> Option<String> {
    vars.get("RALPH_FAULT").filter(|name| name.starts_with(prefix))
}

/// What happens at boundaries.
#[derive(Debug)]
pub struct Boundaries {
    fault: Option<(String, u32)>,
    signal: Signal,
    trace: Option<std::io::BufWriter<std::fs::File>>,
    start: Instant,
}

impl Boundaries {
    pub fn new(vars: &Vars) -> Self {
        let text = vars.get("RALPH_FAULT");
        let frozen = text.as_deref().and_then(|text| text.strip_prefix("freeze:"));
        let signal = if frozen.is_some() { Signal::SIGSTOP } else { Signal::SIGKILL };
        let fault = frozen.or(text.as_deref()).map(|text| match text.split_once('#') {
            Some((name, n)) => (name.to_owned(), n.parse().unwrap_or(1)),
            None => (text.to_owned(), 1),
        });
        let trace = vars.get_os("RALPH_TRACE").and_then(|path| std::fs::File::create(path).ok());
        Self { fault, signal, trace: trace.map(std::io::BufWriter::new), start: Instant::now() }
    }

    pub fn pass(&mut self, name: &str) {
        if let Some(trace) = &mut self.trace {
            let _ = writeln!(trace, "{} {name}", self.start.elapsed().as_nanos());
        }
        let Some((at, left)) = &mut self.fault else { return };
        if at == name {
            // Only once: a continued process passes it again.
            let due = *left == 1;
            *left = left.saturating_sub(1);
            if due {
                let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), self.signal);
            }
        }
    }
}
