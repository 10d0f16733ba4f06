//! The view of a run at various moments.

use jiff::{SignedDuration, Timestamp};
use ralph_loop_domain::state::RunState;
use ralph_loop_domain::view::{ViewContext, view};
use ralph_loop_protocol::display::view::{AgentStanding, RunView};
use ralph_loop_protocol::event::{Baseline, CheckResult, Event, EventBody, SessionEnd};
use ralph_loop_protocol::id::{Digest, RunId, Seq};
use ralph_loop_protocol::money::in_session::SessionCost;
use ralph_loop_protocol::money::{Tokens, Usage, Usd};
use ralph_loop_protocol::outcome::{EndReason, HumanReason};
use ralph_loop_protocol::status::Status;
use ralph_loop_task::config::{AgentConfig, ConfigFile, VerifierConfig};
use ralph_loop_task::spec::{RunSpec, Task, WorkspaceKind};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

fn run() -> RunState {
    let settings = ConfigFile {
        agents: Some(vec![AgentConfig::command("a", &["a"]), AgentConfig::command("b", &["b"])]),
        verifiers: Some(vec![VerifierConfig::command("tests", vec!["make".into(), "test".into()])]),
        ..ConfigFile::default()
    };
    RunState::new(RunSpec {
        version: 1,
        spec_version: 1,
        run_id: RunId::new("r1"),
        created_at: at(0),
        task: Task::from_prompt("# Do it", "PROMPT.md").unwrap(),
        settings: settings.resolve(),
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

fn fold(state: &mut RunState, seconds: i64, body: EventBody) {
    state.apply(&Event { seq: state.seq.next(), at: at(seconds), body });
}

fn seen(state: &RunState, seconds: i64, driven: bool) -> RunView {
    view(state, &ViewContext { now: Some(at(seconds)), driven, ..ViewContext::default() })
}

fn prepared() -> RunState {
    let mut state = run();
    let baseline = Baseline {
        head: "h".into(),
        branch: Some("main".into()),
        start: "s".into(),
        tree: "t".into(),
        dirty: Vec::new(),
        dirty_total: 0,
        left_out: Vec::new(),
    };
    fold(&mut state, 0, EventBody::RunCreated { spec: Digest::of(b""), title: "Do it".into() });
    fold(&mut state, 1, EventBody::Prepared { baseline, surroundings: Default::default(), checks: None });
    state
}

fn working() -> RunState {
    let mut state = prepared();
    fold(
        &mut state,
        2,
        EventBody::IterationStarted {
            iteration: 1,
            attempt: 1,
            agent: "a".into(),
            model: None,
            prompt: Digest::of(b"p"),
            skipped: Vec::new(),
            role: None,
        },
    );
    state
}

#[test]
fn active_run_shows_agent_and_last_output() {
    let state = working();
    let moment = ViewContext {
        now: Some(at(62)),
        driven: true,
        last_output: Some(at(58)),
        activity: Some("at src/a.rs".into()),
        zone: None,
    };
    let shown = view(&state, &moment);
    assert_eq!(shown.now, "a is working for 1 min · last output 4 s ago · at src/a.rs");
    assert_eq!((shown.status, shown.orphaned, shown.next), (Status::Working, false, None));
    assert_eq!(shown.branch.as_deref(), Some("main"));
    assert_eq!(shown.seq, Seq(3));
    assert_eq!(shown.current.unwrap().iteration, 1);
    let standing: Vec<_> = shown.agents.iter().map(|agent| agent.standing).collect();
    assert_eq!(standing, [AgentStanding::Working, AgentStanding::Free]);
}

#[test]
fn time_and_cost_increase_during_a_session() {
    let shown = seen(&working(), 62, true);
    assert_eq!(shown.worked_until(at(62)), 60.0);
    let heard = |seconds| Some(SessionCost { at: at(seconds), sum: Usd::from_dollars(0.5) });
    assert_eq!(shown.cost_with(heard(60)).to_string(), "≈ $0.50");
    assert_eq!(shown.cost_with(heard(1)), shown.spent.cost, "of a session before");
    let rests = seen(&working(), 62, false);
    assert_eq!((rests.worked_until(at(62)), rests.cost_with(heard(60))), (0.0, rests.spent.cost));
}

#[test]
fn run_without_a_driver_says_how_to_continue() {
    let shown = seen(&working(), 100, false);
    assert!(shown.orphaned);
    assert_eq!(shown.status, Status::Interrupted);
    assert_eq!(shown.now, "not running; run `ralph resume r1` to continue it");
    assert_eq!(shown.agents[0].standing, AgentStanding::Free);
}

#[test]
fn check_shows_its_last_result_and_whether_it_is_current() {
    let mut state = working();
    let before = seen(&state, 3, true);
    assert_eq!((before.checks[0].last.as_ref(), before.checks[0].required), (None, true));
    let result = CheckResult {
        name: "tests".into(),
        tree: "t".into(),
        passed: false,
        why: Some("exit code 1".into()),
        exit_code: Some(1),
        duration_ms: 1500,
        tests: None,
        log: "l".into(),
        log_digest: Digest::of(b""),
        failing: Vec::new(),
        last_lines: Vec::new(),
    };
    fold(&mut state, 4, EventBody::CheckFinished { iteration: 1, result: result.clone() });
    let shown = seen(&state, 5, true);
    assert_eq!(shown.checks[0].command, "make test");
    assert_eq!(shown.checks[0].last, Some(result));
    assert!(shown.checks[0].current_tree);
    let time = shown
        .budgets
        .iter()
        .find(|b| b.budget == ralph_loop_protocol::money::budget::BudgetKind::Time)
        .unwrap();
    assert_eq!((time.used, time.limit), (Some(1.5), 7200.0));
}

#[test]
fn unknown_costs_and_tokens_are_null_in_json_and_known_parts_count() {
    let ended = |usage: Usage| EventBody::SessionEnded {
        iteration: 1,
        end: SessionEnd::Completed,
        promised: false,
        message: String::new(),
        usage,
        duration_ms: 1000,
        exit_code: Some(0),
        response: None,
        survivors: 0,
        claims: Vec::new(),
        ask: None,
        commit_message: None,
        commit_parts: Vec::new(),
        findings: None,
        denials: 0,
    };
    let spent = |state: &RunState| {
        let json = serde_json::to_value(seen(state, 9, true)).unwrap();
        let budget = json["budgets"].as_array().unwrap().iter().find(|one| one["budget"] == "cost").unwrap();
        let agent = &json["agents"][0];
        for of in [agent, &json["spent"]] {
            assert_eq!(
                (&of["cost_usd"], &of["tokens"]["input"]),
                (&budget["used"], &agent["tokens"]["input"]),
                "{json}"
            );
            assert_eq!(of["cost_usd"].is_null(), of["tokens"].is_null(), "{json}");
        }
        (budget["used"].as_f64(), json["spent"]["cost_basis"].as_str().unwrap().to_owned())
    };
    assert_eq!(spent(&prepared()), (Some(0.0), "reported".into()), "before any session nothing was spent");
    let mut state = working();
    fold(&mut state, 3, ended(Usage::unknown()));
    assert_eq!(spent(&state), (None, "unknown".into()));
    let tokens = Some(Tokens { input: 7, ..Tokens::default() });
    fold(&mut state, 4, ended(Usage { tokens, cost: Some(Usd::from_dollars(0.5)), ..Usage::default() }));
    assert_eq!(spent(&state), (Some(0.5), "unknown".into()), "it cost at least that");
}

#[test]
fn rest_question_and_end_are_shown() {
    let mut state = prepared();
    let until = at(0) + SignedDuration::from_mins(12);
    let rest = EventBody::CooldownSet { agent: "b".into(), until, reason: "rate limited".into() };
    fold(&mut state, 2, rest);
    fold(&mut state, 2, EventBody::WaitStarted { reason: "b rests".into(), until: Some(until) });
    let shown = seen(&state, 60, true);
    assert_eq!(shown.status, Status::Waiting);
    assert_eq!(shown.now, "waiting, continues in 11 min (22:25 UTC) · b rests");
    assert_eq!((shown.agents[1].standing, shown.agents[1].until), (AgentStanding::Resting, Some(until)));
    assert_eq!(seen(&state, 721, true).agents[1].standing, AgentStanding::Free, "the rest is over");

    let need = EventBody::NeedsHuman { reason: HumanReason::RefsMoved, message: "main moved".into() };
    fold(&mut state, 70, need);
    let shown = seen(&state, 80, false);
    assert_eq!((shown.status, shown.orphaned), (Status::NeedsYou, false));
    assert_eq!(shown.now, "needs you: main moved");
    assert_eq!(shown.next.as_deref(), Some("look at it, then `ralph approve r1` and `ralph resume r1`"));

    fold(
        &mut state,
        90,
        EventBody::Finished { reason: EndReason::Stopped, summary: "Stopped by ana.".into() },
    );
    let shown = seen(&state, 100, false);
    assert_eq!((shown.status, shown.now.as_str()), (Status::Stopped, "Stopped by ana (10 s ago)"));
    assert_eq!(shown.last_event_at, at(90));
}

#[test]
fn view_round_trips_through_json() {
    let shown = seen(&working(), 5, true);
    let text = serde_json::to_string(&shown).unwrap();
    assert_eq!(serde_json::from_str::<RunView>(&text).unwrap(), shown);
}
