//! Which notifications are sent, and that none is sent twice.

use jiff::Timestamp;
use ralph_loop_domain::ports::Occasion;
use ralph_loop_domain::state::RunState;
use ralph_loop_domain::text::notify::{body, heading, notification};
use ralph_loop_protocol::event::{Event, EventBody, Notified};
use ralph_loop_protocol::id::{Digest, Seq};
use ralph_loop_protocol::outcome::{EndReason, HumanReason};
use ralph_loop_task::config::ConfigFile;
use ralph_loop_task::spec::{RunSpec, Task, WorkspaceKind};

fn run() -> RunState {
    let config = r#"{"agents":[{"name":"a","command_argv":["a"]},{"name":"b","command_argv":["b"]}]}"#;
    RunState::new(RunSpec {
        version: 1,
        spec_version: 1,
        run_id: "20261115-k3f9".into(),
        created_at: Timestamp::UNIX_EPOCH,
        task: Task::from_prompt("# Fix the router\n\nIt loses routes.\n", "PROMPT.md").unwrap(),
        settings: ConfigFile::parse(config).unwrap().resolve(),
        place: WorkspaceKind::InPlace,
        workspace: "/w".into(),
        origin: "/w".into(),
        branch: None,
        config_digest: None,
        handed_to: None,
        forked_from: None,
        unproven_runs: Vec::new(),
    })
}

fn apply(state: &mut RunState, body: EventBody) {
    let event = Event { seq: Seq(state.seq.0 + 1), at: state.now, body };
    state.apply(&event);
}

fn until() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn rest(state: &mut RunState) {
    apply(state, EventBody::CooldownSet { agent: "a".into(), until: until(), reason: "weekly limit".into() });
    apply(
        state,
        EventBody::WaitStarted {
            reason: "every agent rests; a is back first (weekly limit)".into(),
            until: Some(until()),
        },
    );
}

#[test]
fn notification_text_of_every_occasion() {
    let mut state = run();
    apply(&mut state, EventBody::RunCreated { spec: Digest::of(b"s"), title: "Fix the router".into() });
    let evidence = vec!["the same failure 3 times".to_owned(), "no change in 2 iterations".to_owned()];
    apply(&mut state, EventBody::Gutter { iteration: 3, loop_score: 0.9, evidence, tried: Vec::new() });
    rest(&mut state);
    let needs = |reason, message: &str| EventBody::NeedsHuman { reason, message: message.into() };
    apply(&mut state, needs(HumanReason::AgentAsks, "a asks: which port?"));
    let mut texts: Vec<String> = Vec::new();
    let mut write = |state: &RunState, skip: usize| {
        for open in state.telling.open.iter().skip(skip) {
            let message = notification(state, open);
            texts.push(format!("[{}]\n{}\n{}\n", message.id, heading(&message), body(&message)));
        }
    };
    write(&state, 0);
    apply(&mut state, needs(HumanReason::Tampered, "the journal was edited."));
    apply(
        &mut state,
        EventBody::Finished { reason: EndReason::Completed, summary: "Done after 3 iterations.".into() },
    );
    apply(
        &mut state,
        EventBody::Finished { reason: EndReason::MaxCost, summary: "$10.02 of $10 used".into() },
    );
    write(&state, 4);
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn continued_waits_and_other_waits_are_not_new_occasions() {
    let mut state = run();
    rest(&mut state);
    apply(&mut state, EventBody::DriverStarted { pid: 1, torn_bytes: 0, lease: Default::default() });
    rest(&mut state);
    apply(&mut state, EventBody::WaitStarted { reason: "paused by ana".into(), until: None });
    let other = until() + jiff::SignedDuration::from_secs(5);
    apply(
        &mut state,
        EventBody::WaitStarted { reason: "checks of the pull request".into(), until: Some(other) },
    );
    let occasions: Vec<Occasion> = state.telling.open.iter().map(|open| open.occasion).collect();
    assert_eq!(occasions, [Occasion::LimitWait]);
}

#[test]
fn sent_notifications_are_remembered_in_a_bounded_list() {
    let mut state = run();
    for number in 0..50 {
        let message = format!("question {number}");
        apply(&mut state, EventBody::NeedsHuman { reason: HumanReason::AgentAsks, message });
    }
    assert_eq!(state.telling.open.len(), 8);
    let of = state.telling.open[7].of;
    let told =
        Notified { of, occasion: Occasion::NeedsHuman, by: "slack".into(), ok: false, why: Some("x".into()) };
    apply(&mut state, EventBody::Notified(told));
    assert!(state.telling.open[7].told.contains("slack") && state.telling.open[6].told.is_empty());
}
