//! A gigabyte of output in bounded memory; alone in its process, because memory is measured.

use crate::common::{fresh, status_kb};
use ralph_loop_domain::ports::{ExecEnd, ExecRequest, ExecSink, Sandbox as _, StopCause, Stream};
use std::ops::ControlFlow;
use std::time::Instant;

#[derive(Default)]
struct Count {
    bytes: u64,
    polls: u32,
}

impl ExecSink for Count {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        self.polls += 1;
        ControlFlow::Continue(())
    }
}

#[test]
fn a_gigabyte_in_bounded_memory() {
    let b = fresh();
    b.sh("true");
    let before = status_kb(std::process::id(), "VmHWM");
    let begun = Instant::now();
    let mut count = Count::default();
    let argv = ["sh", "-c", "head -c 500000000 /dev/zero >&2 & head -c 500000000 /dev/zero; wait"];
    let outcome = b.sandbox.exec(&ExecRequest::new(argv.map(String::from).to_vec()), &mut count).unwrap();
    let seconds = begun.elapsed().as_secs_f64();
    assert_eq!(outcome.end, ExecEnd::Exited(0));
    assert_eq!(count.bytes, 1_000_000_000);
    let grown = status_kb(std::process::id(), "VmHWM") - before;
    assert!(grown < 8 * 1024, "grown by {grown} kB");
    assert!(f64::from(count.polls) <= seconds / 0.05 + 2.0, "{} polls in {seconds} s", count.polls);
    let guard = b.sandbox.guard_pid().unwrap();
    println!("{:.0} MB/s, grown by {grown} kB, guard {} kB", 1000.0 / seconds, status_kb(guard, "VmHWM"));
}
