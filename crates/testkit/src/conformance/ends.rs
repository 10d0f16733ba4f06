//! Checks that commands can be ended early and leave no process behind.

use super::fixture::{Keep, eq, wrong};
use super::{Check, Fault, Fixture, Need};
use ralph_loop_domain::ports::{ExecEnd, StopCause};
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check { name: "ends: output comes while a command runs", needs: &[Need::Streaming], run: streaming },
    Check { name: "ends: the sink stops a command and all it started", needs: &[Need::Streaming], run: stop },
    Check { name: "ends: a time-out ends the whole tree", needs: &[], run: time_out },
    Check { name: "ends: silence ends a command", needs: &[], run: silence },
    Check { name: "ends: nothing outlives a command that ended", needs: &[], run: survivors },
    Check { name: "ends: the sink can end a command that prints nothing", needs: &[], run: asked },
];

/// Starts a child in a separate session that ignores SIGTERM and keeps the streams open; continues once it runs.
const STUBBORN: &str = "setsid sh -c 'trap \"\" TERM HUP INT; echo $$ > pid; while :; do sleep 1; done' & \
    while [ ! -s pid ]; do sleep 0.05; done; echo ready; ";

fn streaming(fixture: &Fixture<'_>) -> Result<(), Fault> {
    // If the output were buffered until the end, the sink couldn't stop it.
    let request = fixture.sh("echo first; sleep 1000")?;
    let mut sink = Keep { stop_at: Some("first\n"), ..Keep::default() };
    let outcome = fixture.sandbox().exec(&request, &mut sink)?;
    eq("the end", outcome.end, ExecEnd::Stopped(StopCause::Cancelled))
}

fn stop(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let mut request = fixture.sh(&format!("{STUBBORN} sleep 1000"))?;
    request.grace = Duration::from_millis(200);
    let mut sink = Keep { stop_at: Some("ready\n"), ..Keep::default() };
    let outcome = fixture.sandbox().exec(&request, &mut sink)?;
    eq("the end", outcome.end, ExecEnd::Stopped(StopCause::Cancelled))?;
    fixture.gone("pid")
}

fn time_out(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let mut request = fixture.sh(&format!("{STUBBORN} sleep 1000"))?;
    request.timeout = Some(Duration::from_secs(5));
    request.grace = Duration::from_millis(200);
    let done = fixture.exec(&request)?;
    eq("the end", done.outcome.end, ExecEnd::TimedOut)?;
    fixture.gone("pid")
}

fn silence(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let mut request = fixture.sh("sleep 1000")?;
    request.idle_timeout = Some(Duration::from_secs(1));
    request.grace = Duration::from_millis(200);
    eq("the end", fixture.exec(&request)?.outcome.end, ExecEnd::IdleTimedOut)
}

fn survivors(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let mut request = fixture.sh(&format!("{STUBBORN} exit 5"))?;
    request.grace = Duration::from_millis(200);
    let done = fixture.exec(&request)?;
    eq("the end", done.outcome.end, ExecEnd::Exited(5))?;
    fixture.gone("pid")
}

fn asked(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let done = fixture.exec(&fixture.sh("sleep 2")?)?;
    eq("the end", done.outcome.end, ExecEnd::Exited(0))?;
    // At least every 250 ms means eight times; half of it leaves room for a loaded machine.
    if done.sink.polls >= 4 { Ok(()) } else { wrong(format!("asked {} times in 2 s", done.sink.polls)) }
}
