//! Test hooks at the named boundaries of a run. Without their variables each costs one comparison.
//!
//! `RALPH_FAULT=<boundary>[#n]` ends this process with SIGKILL when it passes that boundary for the n-th time (torture
//! tests). `RALPH_TRACE=<file>` writes the time of every boundary there (benchmark).

use ralph_domain::vars::Vars;
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
    trace: Option<std::io::BufWriter<std::fs::File>>,
    start: Instant,
}

impl Boundaries {
    /// As the variables say.
    pub fn new(vars: &Vars) -> Self {
        let fault = vars.get("RALPH_FAULT").map(|text| match text.split_once('#') {
            Some((name, n)) => (name.to_owned(), n.parse().unwrap_or(1)),
            None => (text.clone(), 1),
        });
        let trace = vars.get_os("RALPH_TRACE").and_then(|path| std::fs::File::create(path).ok());
        Self { fault, trace: trace.map(std::io::BufWriter::new), start: Instant::now() }
    }

    /// A boundary is passed.
    pub fn pass(&mut self, name: &str) {
        if let Some(trace) = &mut self.trace {
            let _ = writeln!(trace, "{} {name}", self.start.elapsed().as_nanos());
        }
        let Some((at, left)) = &mut self.fault else { return };
        if at == name {
            *left = left.saturating_sub(1);
            if *left == 0 {
                let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL);
            }
        }
    }
}
