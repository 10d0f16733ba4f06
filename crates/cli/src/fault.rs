//! Test hooks at the named boundaries of a run. Without their variables each costs one comparison.
//!
//! `RALPH_FAULT=<boundary>[#n]` ends this process with SIGKILL when it passes that boundary for the n-th time (torture
//! tests); with `freeze:` before it, the process is stopped there until somebody lets it go on. `RALPH_TRACE=<file>` writes the time of every boundary there (benchmark).

use nix::sys::signal::Signal;
use ralph_loop_domain::vars::Vars;
use std::io::Write as _;
use std::time::Instant;

/// The fault that a face itself is asked for, where its name begins like this; it is no boundary of a run.
pub fn of_face(vars: &Vars, prefix: &str) -> Option<String> {
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
    /// As the variables say.
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

    /// A boundary is passed.
    pub fn pass(&mut self, name: &str) {
        if let Some(trace) = &mut self.trace {
            let _ = writeln!(trace, "{} {name}", self.start.elapsed().as_nanos());
        }
        let Some((at, left)) = &mut self.fault else { return };
        if at == name {
            // Once: a process that was let go on passes it again.
            let due = *left == 1;
            *left = left.saturating_sub(1);
            if due {
                let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), self.signal);
            }
        }
    }
}
