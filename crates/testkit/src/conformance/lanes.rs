//! Several commands at once, and commands in the background.

use super::bench::{LONGEST, eq, exec, wrong};
use super::{Bench, Check, Fault, Need};
use ralph_domain::ports::{ExecEnd, ExecSink, StopCause, Stream};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

pub(super) const CHECKS: &[Check] = &[
    Check { name: "lanes: a command runs in the background", needs: &[Need::Parallel], run: background },
    Check { name: "lanes: several commands run at once", needs: &[Need::Parallel], run: at_once },
    Check { name: "lanes: a lane sees the same files", needs: &[], run: same_files },
];

/// Ends its command when it is told.
pub(super) struct Until {
    told: Arc<AtomicBool>,
    started: Instant,
}

impl ExecSink for Until {
    fn output(&mut self, _: Stream, _: &[u8]) {}
    fn poll(&mut self) -> ControlFlow<StopCause> {
        if self.told.load(Ordering::Acquire) || self.started.elapsed() > LONGEST {
            return ControlFlow::Break(StopCause::Cancelled);
        }
        ControlFlow::Continue(())
    }
}

/// A sink that ends its command when the flag is set.
pub(super) fn stopper() -> (Arc<AtomicBool>, Until) {
    let told = Arc::new(AtomicBool::new(false));
    (Arc::clone(&told), Until { told, started: Instant::now() })
}

fn background(bench: &Bench<'_>) -> Result<(), Fault> {
    let mut request = bench.sh("echo $$ > pid; echo up > up; while :; do sleep 1; done")?;
    request.timeout = None;
    let lane = bench.sandbox().lane()?;
    let (told, mut sink) = stopper();
    let running = std::thread::spawn(move || lane.exec(&request, &mut sink));
    let seen = bench.run("while [ ! -s up ]; do sleep 0.05; done; cat up");
    // A second command ends, and the one in the background lives on.
    let alive = bench.run("kill -0 $(cat pid) && echo alive");
    told.store(true, Ordering::Release);
    let ended = match running.join() {
        Ok(ended) => ended?,
        Err(_) => return wrong("the lane panicked"),
    };
    eq("what the background wrote", seen?.trim(), "up")?;
    eq("the background, while others ended", alive?.trim(), "alive")?;
    eq("the end", ended.end, ExecEnd::Stopped(StopCause::Cancelled))?;
    bench.gone("pid")
}

fn at_once(bench: &Bench<'_>) -> Result<(), Fault> {
    let meet = |own: usize| {
        let others = (0..3).map(|n| format!("while [ ! -e m{n} ]; do sleep 0.05; done; "));
        bench.sh(&format!("echo > m{own}; {} echo met", others.collect::<String>()))
    };
    let mut running = Vec::new();
    for own in 0..3 {
        let (lane, request) = (bench.sandbox().lane()?, meet(own)?);
        running.push(std::thread::spawn(move || exec(lane.as_ref(), &request)));
    }
    for one in running {
        match one.join() {
            Ok(done) => eq("a command that waits for the others", done?.stdout().trim(), "met")?,
            Err(_) => return wrong("a lane panicked"),
        }
    }
    Ok(())
}

fn same_files(bench: &Bench<'_>) -> Result<(), Fault> {
    bench.folder()?;
    let lane = bench.sandbox().lane()?;
    lane.write(&bench.path("x"), b"from a lane", ralph_domain::ports::WriteMode::Replace)?;
    eq("the file", bench.sandbox().read(&bench.path("x"))?, Some(b"from a lane".to_vec()))?;
    eq("the root", lane.root().to_owned(), bench.sandbox().root().to_owned())
}
