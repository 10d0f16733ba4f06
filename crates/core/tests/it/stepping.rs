//! A run used by a caller: stepped, moved between threads, dropped, observed by several.

use crate::support::{Machine, three_sessions};
use ralph_loop_core::driver::{drive, step};
use ralph_loop_core::{Observer, Progress, Run, RunPorts, SessionProgress};
use ralph_loop_domain::ports::Stream;
use ralph_loop_domain::state::RunState;
use ralph_loop_protocol::event::{Event, EventBody};
use ralph_loop_protocol::lease::{DriverLease, Epoch};
use ralph_loop_protocol::outcome::EndReason;
use std::sync::{Arc, Mutex};

type Heard = Arc<Mutex<Vec<String>>>;

/// Records the events it receives.
struct Scribe(&'static str, Heard);

impl Observer for Scribe {
    fn event(&mut self, _: &RunState, event: &Event) {
        self.1.lock().unwrap().push(format!("{} {}", self.0, event.body.kind()));
    }
    fn live(&mut self, _: &RunState, _: &SessionProgress<'_>) {}
    fn output(&mut self, _: Stream, _: &[u8]) {}
}

#[test]
fn every_observer_gets_every_event_in_order() {
    let machine = Machine::new(three_sessions);
    let heard = Heard::default();
    let observers: Vec<Box<dyn Observer>> =
        vec![Box::new(Scribe("first", heard.clone())), Box::new(Scribe("second", heard.clone()))];
    let ports = RunPorts { observers, ..machine.ports() };
    assert!(drive(Run::create(machine.spec(), ports).unwrap()).success);
    let expected: Vec<String> =
        machine.kinds().iter().flat_map(|kind| [format!("first {kind}"), format!("second {kind}")]).collect();
    assert_eq!(*heard.lock().unwrap(), expected);
}

#[test]
fn observers_are_optional() {
    let machine = Machine::new(three_sessions);
    let ports = RunPorts { observers: Vec::new(), ..machine.ports() };
    assert!(drive(Run::create(machine.spec(), ports).unwrap()).success);
}

#[test]
fn manual_steps_equal_a_run() {
    let whole = Machine::new(three_sessions);
    whole.run();
    let machine = Machine::new(three_sessions);
    let mut run = Run::create(machine.spec(), machine.ports()).unwrap();
    let mut steps = 0;
    // Each step on a separate thread.
    let (mut run, last) = loop {
        let (back, progress) = std::thread::spawn(move || {
            let progress = step(&mut run);
            (run, progress)
        })
        .join()
        .unwrap();
        run = back;
        steps += 1;
        match progress {
            Ok(Progress::Continue) => assert!(steps < 100, "it never ends"),
            Ok(Progress::Idle) => break (run, Ok(())),
            Err(error) => break (run, Err(error)),
        }
    };
    assert!(run.state().result.finished.is_some());
    let result = run.close(last);
    assert_eq!((result.success, result.reason, result.iterations), (true, EndReason::Completed, 3));
    assert_eq!(machine.kinds(), whole.kinds());
}

/// A journal of a version that didn't count drivers.
#[test]
fn drivers_of_older_versions_are_counted_too() {
    let machine = Machine::new(three_sessions);
    drop(Run::create(machine.spec(), machine.ports()).unwrap());
    drop(Run::resume(machine.ports()).unwrap());
    for path in [machine.journal(), machine.temp.path().join("seal.jsonl")] {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut old: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for event in &mut old {
            for field in ["machine", "epoch", "version"] {
                event.as_object_mut().unwrap().remove(field);
            }
        }
        std::fs::write(&path, old.iter().map(|event| format!("{event}\n")).collect::<String>()).unwrap();
    }
    let run = Run::resume(machine.ports()).unwrap();
    assert_eq!(run.lease().epoch, Some(Epoch(3)));
    assert_eq!(run.state().epoch, Epoch(3));
}

#[test]
fn a_driver_dropped_after_any_step_is_resumed_by_the_next() {
    let machine = Machine::new(three_sessions);
    let mut run = Run::create(machine.spec(), machine.ports()).unwrap();
    let mut lives = 1;
    while step(&mut run).unwrap() == Progress::Continue {
        drop(run);
        run = Run::resume(machine.ports()).unwrap();
        lives += 1;
        assert!(lives < 100, "it never ends");
    }
    let result = run.close(Ok(()));
    assert_eq!((result.success, result.iterations), (true, 3));
    let started: Vec<DriverLease> = machine
        .events()
        .into_iter()
        .filter_map(|event| match event.body {
            EventBody::DriverStarted { lease, .. } => Some(lease),
            _ => None,
        })
        .collect();
    let expected: Vec<DriverLease> = (1..=lives)
        .map(|epoch| DriverLease {
            machine: Some("m1".into()),
            epoch: Some(Epoch(epoch)),
            version: Some("test 1".into()),
        })
        .collect();
    assert_eq!(started, expected, "each driver has the next epoch");
}
