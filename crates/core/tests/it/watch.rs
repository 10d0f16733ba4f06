//! Watching and steering a run by its record alone.

use crate::support::{Machine, completed, write};
use ralph_loop_core::handle::{ControlOutcome, RunHandle};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_journal::live::LivePayload;
use ralph_loop_journal::live::stream::{StreamItem, StreamStart};
use ralph_loop_protocol::control::Control;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// An upper bound: the run is over before the question.
const LONG: Duration = Duration::from_secs(600);

#[test]
fn a_letter_is_received_refused_or_not_yet_taken_by_its_own_id() {
    let sent: Arc<Mutex<Vec<String>>> = Arc::default();
    let ids = Arc::clone(&sent);
    let machine = Machine::new(move |request, sandbox| {
        let workspace = request.prompt_file.ancestors().nth(6).unwrap();
        let handle = RunHandle::new(RalphDir::of(workspace).run(request.run), "ana");
        let stranger = Control::Skip { agent: Some("missing".into()) };
        let note = Control::Note { text: "careful".into() };
        ids.lock().unwrap().extend([stranger, note].map(|control| handle.send(control).unwrap()));
        write(sandbox, "result.txt", "done");
        completed("<promise>COMPLETE</promise>")
    });
    machine.run();
    let handle = RunHandle::new(machine.dir().run(&"r1".into()), "ana");
    let fate = |id: &str| handle.wait_for_outcome(id, LONG).unwrap();
    let sent = sent.lock().unwrap();
    assert_eq!(fate(&sent[0]), ControlOutcome::Refused("there is no agent `missing` in this run".into()));
    assert_eq!(fate(&sent[1]), ControlOutcome::Received);
    let late = handle.nudge("too late").unwrap();
    assert_eq!(fate(&late), ControlOutcome::NotYet, "a letter like one that was taken is not that one");
}

#[test]
fn shown_output_is_recorded_without_secrets() {
    let mut machine = Machine::new(|_, sandbox| {
        write(sandbox, "result.txt", "all done");
        completed("<promise>COMPLETE</promise>")
    });
    machine.tokens = vec!["I use hunter2", "hunter2 now ", "and then\n"];
    machine.run_with(Box::new(Silent), Redactor::new([("TOKEN", "hunter2hunter2")]));
    let handle = RunHandle::new(machine.dir().run(&"r1".into()), "ana");
    let mut stream = handle.stream(StreamStart::Beginning).unwrap();
    let (mut text, mut checks, mut last) = (String::new(), String::new(), "");
    loop {
        let items = stream.poll().unwrap();
        if items.is_empty() {
            break;
        }
        for item in items {
            match item {
                StreamItem::Event(line) => last = line.event.body.kind(),
                StreamItem::Live(record) => match record.body {
                    LivePayload::Text { text: piece } => {
                        assert_eq!((last, record.iteration), ("iteration_started", 1));
                        text.push_str(&piece);
                    }
                    LivePayload::CheckOutput { text: piece, .. } => checks.push_str(&piece),
                    _ => {}
                },
                StreamItem::Missed(n) => assert_eq!(n, 0),
            }
        }
    }
    assert!(text.starts_with("I use [") && text.ends_with("] now and then\n"), "{text:?}");
    assert!(!text.contains("hunter2"), "{text:?}");
    assert!(checks.contains("done"), "{checks:?}");
    assert!(!machine.run_dir().join("wake").exists(), "the client disconnected");
}

struct Silent;

impl ralph_loop_core::Observer for Silent {
    fn event(&mut self, _: &ralph_loop_domain::state::RunState, _: &ralph_loop_protocol::event::Event) {}
    fn live(&mut self, _: &ralph_loop_domain::state::RunState, _: &ralph_loop_core::SessionProgress<'_>) {}
    fn output(&mut self, _: ralph_loop_domain::ports::Stream, _: &[u8]) {}
}
