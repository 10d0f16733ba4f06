//! A run that gets nowhere is helped: ladder, doctor, critic, advisor, roles and the breaker, through the engine.

use crate::support::{Machine, completed, write};
use ralph_loop_core::{Helpers, StuckContext};
use ralph_loop_domain::model::{
    ModelClient, ModelError, ModelErrorKind, ModelReply, ModelRequest, ModelSink, ReplyPart, StopReason,
};
use ralph_loop_domain::ports::Sandbox as _;
use ralph_loop_protocol::event::{EventBody, Rung, SessionEnd};
use ralph_loop_protocol::money::{Tokens, Usd};
use ralph_loop_protocol::outcome::EndReason;
use ralph_loop_task::config::{Apply, ConfigFile, CriticConfig, DoctorConfig, Models, Profile};
use std::sync::{Arc, Mutex};

/// A model that is a list of answers; what it was asked is kept.
#[derive(Default)]
struct Scripted {
    answers: Mutex<Vec<Result<&'static str, ModelErrorKind>>>,
    asked: Mutex<Vec<String>>,
}

impl Scripted {
    fn saying(answers: &[Result<&'static str, ModelErrorKind>]) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.to_vec()), asked: Mutex::default() })
    }
}

impl ModelClient for Scripted {
    fn call(
        &self,
        profile: &Profile,
        request: &ModelRequest,
        _: &mut dyn ModelSink,
    ) -> Result<ModelReply, ModelError> {
        self.asked.lock().unwrap().push(serde_json::to_string(&(profile, request)).unwrap());
        let mut answers = self.answers.lock().unwrap();
        assert!(!answers.is_empty(), "asked once too often");
        match answers.remove(0) {
            Ok(text) => Ok(ModelReply {
                parts: vec![ReplyPart::Text { text: text.into() }],
                stop: StopReason::EndTurn,
                tokens: Some(Tokens { input: 1000, output: 100, ..Tokens::default() }),
                cost: Some(Usd::from_dollars(0.25)),
                model: None,
                tries: 1,
            }),
            Err(kind) => Err(ModelError { kind, message: "no answer".into(), hint: None }),
        }
    }
}

const REPORT: &str = r#"{"summary":"The seed is wrong.","failure_patterns":[{"pattern":"same failure"}],
    "root_causes":["the clock"],"guardrails":[{"trigger":"a test hangs","instruction":"seed the clock"}],
    "task_edits":[{"find":"Make it done.","replace":"Make result.txt say done.","why":"vague"}]}"#;

/// An agent that changes one file once, and whose check fails forever.
fn circling(change: impl FnOnce(&mut ConfigFile)) -> Machine {
    let mut machine = Machine::new(|_, sandbox| {
        write(sandbox, "scratch.txt", "looked\n");
        completed("I looked around.")
    });
    machine.config.max_iterations = Some(30);
    change(&mut machine.config);
    machine
}

fn with_doctor(machine: &mut Machine, client: Arc<Scripted>, apply: Apply) {
    machine.config.doctor = Some(DoctorConfig { apply, profile: Some("strong".into()), every: 0 });
    machine.models = Models {
        profiles: [("strong".into(), Profile::of_model("strong", "zai/x"))].into(),
        ..Models::default()
    };
    let asker = ralph_loop_agents::BackendAsker::new().with_client(client);
    machine.helpers = Helpers { asker: Some(Arc::new(asker)), ..Helpers::default() };
}

fn rungs(machine: &Machine) -> Vec<Rung> {
    let events = machine.events();
    events
        .iter()
        .filter_map(|e| match &e.body {
            EventBody::Mitigated { rung, .. } => Some(*rung),
            _ => None,
        })
        .collect()
}

fn prompt(machine: &Machine, iteration: u32) -> String {
    std::fs::read_to_string(machine.run_dir().join(format!("iterations/{iteration}/prompt.md"))).unwrap()
}

#[test]
fn each_rung_is_tried_once_and_shows_in_the_next_prompt() {
    let machine = circling(|_| {});
    let result = machine.run();
    assert_eq!((result.reason, result.iterations), (EndReason::NeedsHuman, 7));
    assert_eq!(rungs(&machine), [Rung::Nudge, Rung::Rotate, Rung::Doctor, Rung::Pause]);
    assert!(prompt(&machine, 4).contains("The last iterations lead nowhere: the same failure 3 times"));
    assert!(prompt(&machine, 5).contains("This was tried and failed:\n- iteration 4 (a): I looked around."));
    assert!(prompt(&machine, 6).contains("A doctor read the record of this run"));
    assert!(machine.run_dir().join("diagnosis-5.json").exists());
}

#[test]
fn the_doctor_reads_the_record_is_corrected_once_and_answers_through_the_inbox() {
    let mut machine = circling(|_| {});
    let model = Scripted::saying(&[Ok("I think the seed is wrong."), Ok(REPORT)]);
    with_doctor(&mut machine, model.clone(), Apply::Auto);
    machine.run();
    let asked = model.asked.lock().unwrap();
    assert!(asked[0].contains("Make it done.") && asked[0].contains("the same failure"), "{}", asked[0]);
    assert!(asked[1].contains("no JSON object"), "the repair names the mistake: {}", asked[1]);
    let events = machine.events();
    let diagnosed = events
        .iter()
        .find_map(|e| match &e.body {
            EventBody::Diagnosed(news) => Some((news.by.clone(), news.usage.clone())),
            _ => None,
        })
        .unwrap();
    assert_eq!((diagnosed.0.as_str(), diagnosed.1.cost), ("strong", Some(Usd::from_dollars(0.5))));
    let letters: Vec<_> = events
        .iter()
        .filter_map(|e| match &e.body {
            EventBody::ControlReceived { letter, .. } => Some((letter.from.clone(), letter.control.name())),
            _ => None,
        })
        .collect();
    assert_eq!(letters, [("doctor".into(), "guardrail"), ("doctor".into(), "edit")]);
    assert!(std::fs::read_to_string(machine.dir().join("guardrails.md")).unwrap().contains("seed the clock"));
    assert!(prompt(&machine, 6).contains("Make result.txt say done."), "the edited task is the task now");
    let state = ralph_loop_journal::folder::snapshot::load(&machine.dir().run(&"r1".into())).unwrap();
    assert_eq!(
        state.spending.totals.cost.at_least(),
        Usd::from_dollars(0.5),
        "what the doctor costs is counted"
    );
}

#[test]
fn a_doctor_whose_word_is_only_asked_for_changes_nothing_and_a_lost_model_leaves_the_rules() {
    let mut machine = circling(|_| {});
    with_doctor(&mut machine, Scripted::saying(&[Ok(REPORT)]), Apply::Ask);
    machine.run();
    assert!(!machine.kinds().contains(&"control_received"));
    let text = std::fs::read_to_string(machine.dir().join("diagnostics.md")).unwrap();
    assert!(
        text.contains("-Make it done.\n+Make result.txt say done.") && text.contains("not applied"),
        "{text}"
    );

    let mut machine = circling(|_| {});
    with_doctor(&mut machine, Scripted::saying(&[Err(ModelErrorKind::Auth)]), Apply::Ask);
    machine.run();
    let by = machine.events().iter().find_map(|e| match &e.body {
        EventBody::Diagnosed(news) => Some(news.by.clone()),
        _ => None,
    });
    assert_eq!(by.as_deref(), Some("rules"));
}

#[test]
fn the_doctor_comes_every_so_many_iterations_if_asked() {
    let mut machine = Machine::new(|request, sandbox| {
        write(sandbox, "notes.txt", &format!("step {}\n", request.iteration).repeat(9));
        completed(&format!("step {}", request.iteration))
    });
    machine.config.doctor = Some(DoctorConfig { every: 2, ..DoctorConfig::default() });
    machine.config.stuck_detection = Some(serde_json::from_str(r#"{"disabled":true}"#).unwrap());
    machine.run();
    let at: Vec<u32> = machine
        .events()
        .iter()
        .filter_map(|e| match &e.body {
            EventBody::Diagnosed(news) => Some(news.iteration),
            _ => None,
        })
        .collect();
    assert_eq!(at, [2, 4]);
}

#[test]
fn a_critic_looks_once_per_gutter_and_not_where_money_is_thin() {
    let critic = CriticConfig { profile: Some("strong".into()), ..CriticConfig::default() };
    let run = |least: f64, answers: &[Result<&'static str, ModelErrorKind>]| {
        let mut machine = circling(|_| {});
        let model = Scripted::saying(answers);
        with_doctor(&mut machine, model.clone(), Apply::Ask);
        machine.config.doctor = None;
        machine.config.critic = Some(CriticConfig { min_budget_share: least, ..critic.clone() });
        machine.run();
        (machine, model)
    };
    let (machine, model) = run(0.15, &[Ok("The test reads another file.")]);
    assert_eq!(model.asked.lock().unwrap().len(), 1);
    assert!(
        prompt(&machine, 4)
            .contains("A critic (strong) looked at the last changes: The test reads another file.")
    );
    let (machine, _) = run(0.15, &[Err(ModelErrorKind::Overloaded)]);
    assert!(machine.kinds().contains(&"criticised"), "one that cannot speak has no objections");
    let (machine, model) = run(1.1, &[]);
    assert!(model.asked.lock().unwrap().is_empty(), "too little money, no critic");
    drop(machine);
}

#[test]
fn a_critic_may_be_another_agent_in_a_checkout_of_its_own() {
    let mut machine = Machine::new(|request, sandbox| {
        if request.prompt.contains("You review an unattended coding loop") {
            write(sandbox, "vandalised.txt", "x");
            return completed("You edit the wrong file.");
        }
        write(sandbox, "scratch.txt", "looked\n");
        completed("I looked around.")
    });
    machine.agents = vec!["a", "b"];
    machine.config.agents = Some(
        serde_json::from_str(r#"[{"name":"a","command_argv":["a"]},{"name":"b","command_argv":["b"]}]"#)
            .unwrap(),
    );
    machine.config.max_iterations = Some(4);
    machine.config.agent_selection = Some(ralph_loop_task::config::AgentSelection::Priority);
    machine.run();
    assert!(
        prompt(&machine, 4).contains("A critic (b) looked at the last changes: You edit the wrong file.")
    );
    assert!(
        machine
            .sandbox
            .with_root(std::path::Path::new("/workspace"))
            .unwrap()
            .read(std::path::Path::new("vandalised.txt"))
            .unwrap()
            .is_none(),
        "what it did there changed nothing here"
    );
}

#[test]
fn the_calling_program_is_asked_and_its_answer_is_a_nudge() {
    let mut machine = circling(|_| {});
    let seen: Arc<Mutex<Vec<StuckContext>>> = Arc::default();
    let sink = seen.clone();
    machine.helpers.on_stuck = Some(Arc::new(move |context: &StuckContext| {
        sink.lock().unwrap().push(context.clone());
        (context.iteration == 3).then(|| "Try the other door.".to_owned())
    }));
    machine.run();
    assert!(prompt(&machine, 4).contains("Try the other door."));
    let seen = seen.lock().unwrap();
    assert!(
        seen[0].loop_score > 0.0 && !seen[0].kinds.is_empty() && !seen[0].history.is_empty(),
        "{:?}",
        seen[0]
    );
}

#[test]
fn roles_take_turns_and_findings_reach_the_builder() {
    let mut machine = Machine::new(|request, sandbox| {
        if request.prompt.contains("You are the reviewer") {
            return completed("- src/drain.rs:4 the loop never ends");
        }
        assert!(request.prompt.contains("You are the builder"));
        write(sandbox, &format!("work-{}.txt", request.iteration), "a\nnew\npiece\n");
        completed(
            ["parser for dates", "", "router with new tree", "", "clock that can be seeded"]
                [request.iteration as usize - 1],
        )
    });
    machine.agents = vec!["a", "b"];
    machine.config.agents = Some(
        serde_json::from_str(r#"[{"name":"a","command_argv":["a"]},{"name":"b","command_argv":["b"]}]"#)
            .unwrap(),
    );
    machine.config.roles = Some(
        serde_json::from_str(
            r#"[{"role":"builder","agent":"a"},{"role":"reviewer","agent":"b","model":"m"}]"#,
        )
        .unwrap(),
    );
    machine.config.max_iterations = Some(5);
    machine.run();
    let who: Vec<_> = machine
        .events()
        .iter()
        .filter_map(|e| match &e.body {
            EventBody::IterationStarted { agent, role, model, .. } => {
                Some((agent.to_string(), role.unwrap().as_str(), model.clone()))
            }
            _ => None,
        })
        .collect();
    let (a, b) = (("a".to_owned(), "builder", None), ("b".to_owned(), "reviewer", Some("m".to_owned())));
    assert_eq!(who, [a.clone(), b.clone(), a.clone(), b, a]);
    assert!(
        prompt(&machine, 3).contains("## reviewer (iteration 2)\n\n- src/drain.rs:4 the loop never ends")
    );
    assert!(!prompt(&machine, 4).contains("Findings of other roles"), "the builder has read them");
    let gutter = machine.events().into_iter().find(|e| e.body.kind() == "gutter");
    assert_eq!(gutter, None, "reviewing is not silence");
}

#[test]
fn an_agent_that_keeps_failing_rests_gets_one_try_and_rests_longer() {
    let mut machine = Machine::new(|request, sandbox| {
        if request.config.name.as_str() == "bad" {
            return (SessionEnd::Failed { reason: "segfault".into() }, String::new());
        }
        write(
            sandbox,
            "work.txt",
            &format!("step {}\n", request.iteration).repeat(request.iteration as usize),
        );
        completed(&format!("piece {}", request.iteration))
    });
    machine.agents = vec!["bad", "good"];
    machine.config.agents = Some(
        serde_json::from_str(r#"[{"name":"bad","command_argv":["a"]},{"name":"good","command_argv":["b"]}]"#)
            .unwrap(),
    );
    machine.config.max_iterations = Some(12);
    machine.config.stuck_detection = Some(serde_json::from_str(r#"{"disabled":true}"#).unwrap());
    machine.run();
    let rests: Vec<_> = machine
        .events()
        .iter()
        .filter_map(|e| match &e.body {
            EventBody::CooldownSet { agent, until, reason } => {
                Some((agent.to_string(), until.duration_since(e.at).as_secs(), reason.clone()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(rests.first(), Some(&("bad".to_owned(), 60, "3 sessions in a row failed".to_owned())));
    let workers: Vec<String> = machine
        .events()
        .iter()
        .filter_map(|e| match &e.body {
            EventBody::IterationStarted { agent, .. } => Some(agent.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(workers[..6], ["bad", "good", "bad", "good", "bad", "good"]);
    assert!(workers[6..].iter().all(|w| w == "good"), "while it rests, the other one works: {workers:?}");
}

#[test]
fn pieces_of_a_models_text_reach_the_observer_without_secrets() {
    #[derive(Default)]
    struct RecordingSink(Arc<Mutex<String>>);
    impl ralph_loop_core::Observer for RecordingSink {
        fn event(&mut self, _: &ralph_loop_domain::state::RunState, _: &ralph_loop_protocol::event::Event) {}
        fn live(&mut self, _: &ralph_loop_domain::state::RunState, _: &ralph_loop_core::SessionProgress<'_>) {
        }
        fn output(&mut self, _: ralph_loop_domain::ports::Stream, _: &[u8]) {}
        fn token(&mut self, text: &str) {
            self.0.lock().unwrap().push_str(text);
        }
    }
    let mut machine = Machine::new(|_, _| completed("said"));
    machine.config.max_iterations = Some(1);
    machine.tokens = vec!["the key is hush", "-hush-12345 and", " that is all"];
    let heard = Arc::new(Mutex::new(String::new()));
    machine.run_with(
        Box::new(RecordingSink(heard.clone())),
        ralph_loop_domain::redact::Redactor::new([("KEY", "hush-hush-12345")]),
    );
    let heard = heard.lock().unwrap();
    assert!(heard.starts_with("the key is ") && heard.ends_with(" and that is all"), "{heard}");
    assert!(!heard.contains("hush-hush"), "{heard}");
}
