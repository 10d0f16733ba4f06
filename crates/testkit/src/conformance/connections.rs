//! Several commands at once, and commands in the background.

use super::fixture::{LONGEST, eq, exec, wrong};
use super::{Check, Fault, Fixture, Need};
use ralph_loop_domain::ports::{ExecEnd, ExecSink, StopCause, Stream};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "connections: a command runs in the background",
        needs: &[Need::Parallel],
        run: background,
    },
    Check { name: "connections: several commands run at once", needs: &[Need::Parallel], run: at_once },
    Check { name: "connections: a connection sees the same files", needs: &[], run: same_files },
];

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

fn background(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let mut request = fixture.sh("echo $$ > pid; echo up > up; while :; do sleep 1; done")?;
    request.timeout = None;
    let connection = fixture.sandbox().new_connection()?;
    let (told, mut sink) = stopper();
    let running = std::thread::spawn(move || connection.exec(&request, &mut sink));
    let seen = fixture.run("while [ ! -s up ]; do sleep 0.05; done; cat up");
    // A second command ends, and the background command keeps running.
    let alive = fixture.run("kill -0 $(cat pid) && echo alive");
    told.store(true, Ordering::Release);
    let ended = match running.join() {
        Ok(ended) => ended?,
        Err(_) => return wrong("the connection panicked"),
    };
    eq("what the background wrote", seen?.trim(), "up")?;
    eq("the background, while others ended", alive?.trim(), "alive")?;
    eq("the end", ended.end, ExecEnd::Stopped(StopCause::Cancelled))?;
    fixture.gone("pid")
}

fn at_once(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let meet = |own: usize| {
        let others = (0..3).map(|n| format!("while [ ! -e m{n} ]; do sleep 0.05; done; "));
        fixture.sh(&format!("echo > m{own}; {} echo met", others.collect::<String>()))
    };
    let mut running = Vec::new();
    for own in 0..3 {
        let (connection, request) = (fixture.sandbox().new_connection()?, meet(own)?);
        running.push(std::thread::spawn(move || exec(connection.as_ref(), &request)));
    }
    for one in running {
        match one.join() {
            Ok(done) => eq("a command that waits for the others", done?.stdout().trim(), "met")?,
            Err(_) => return wrong("a connection panicked"),
        }
    }
    Ok(())
}

fn same_files(fixture: &Fixture<'_>) -> Result<(), Fault> {
    fixture.folder()?;
    let connection = fixture.sandbox().new_connection()?;
    connection.write(
        &fixture.path("x"),
        b"from a connection",
        ralph_loop_domain::ports::WriteMode::Replace,
    )?;
    eq("the file", fixture.sandbox().read(&fixture.path("x"))?, Some(b"from a connection".to_vec()))?;
    eq("the root", connection.root().to_owned(), fixture.sandbox().root().to_owned())
}
