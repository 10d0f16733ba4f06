//! Recovery steps: their order, when all were tried, and what restarts them.

use jiff::Timestamp;
use ralph_loop_domain::decide::{Help, NextSession, Step, decide};
use ralph_loop_domain::ports::Baseline;
use ralph_loop_domain::recovery::{self, Fallback, NextHelp};
use ralph_loop_domain::state::RunState;
use ralph_loop_domain::stuck::{Signals, StuckKind};
use ralph_loop_protocol::event::{Event, EventBody, Rung, SessionEnd, Verdict};
use ralph_loop_protocol::id::{Digest, Seq};
use ralph_loop_protocol::money::Usage;
use ralph_loop_protocol::outcome::EndReason;
use ralph_loop_task::config::{AgentConfig, AgentSelection, ConfigFile, OnStuck};
use ralph_loop_task::spec::{RunSpec, Task, WorkspaceKind};

struct Run(RunState);

impl Run {
    fn new(change: impl FnOnce(&mut ConfigFile)) -> Self {
        let mut config = ConfigFile::parse(
            r#"{"agents":[{"name":"a","command_argv":["a"]}],
                "verifiers":[{"name":"tests","command_argv":["t"]}],"max_iterations":99,"critic":{"disabled":true}}"#,
        )
        .unwrap();
        change(&mut config);
        let spec = RunSpec {
            version: 1,
            spec_version: 1,
            run_id: "r".into(),
            created_at: Timestamp::UNIX_EPOCH,
            task: Task::from_prompt("t", "PROMPT.md").unwrap(),
            settings: config.resolve(),
            place: WorkspaceKind::InPlace,
            workspace: "/w".into(),
            origin: "/w".into(),
            branch: None,
            config_digest: None,
            handed_to: None,
            forked_from: None,
            unproven_runs: Vec::new(),
        };
        let mut run = Self(RunState::new(spec));
        let baseline = Baseline {
            head: "h".into(),
            branch: None,
            start: "s".into(),
            tree: "t0".into(),
            dirty: vec![],
            dirty_total: 0,
            left_out: vec![],
        };
        run.event(EventBody::Prepared { baseline, surroundings: Default::default(), checks: None });
        run
    }

    fn event(&mut self, body: EventBody) {
        let event = Event { seq: Seq(self.0.seq.0 + 1), at: self.0.now, body };
        self.0.apply(&event);
    }

    /// One iteration that ends with these signals; returns the events that follow.
    fn iteration(&mut self, signals: &Signals) -> Vec<&'static str> {
        let Step::Work(NextSession { iteration, attempt, agent, model, role, skipped }) = decide(&self.0)
        else {
            panic!("no work comes next, but {:?}", decide(&self.0))
        };
        self.event(EventBody::IterationStarted {
            iteration,
            attempt,
            agent,
            model,
            prompt: Digest::of(b"p"),
            skipped,
            role,
        });
        self.event(EventBody::SessionEnded {
            iteration,
            end: SessionEnd::Completed,
            promised: false,
            message: "looked around".into(),
            usage: Usage::free(),
            duration_ms: 1,
            exit_code: None,
            response: None,
            survivors: 0,
            denials: 0,
            claims: vec![],
            ask: None,
            commit_message: None,
            commit_parts: Vec::new(),
            findings: None,
        });
        self.event(EventBody::Checkpointed {
            iteration,
            tree: "t1".into(),
            commit: None,
            files_total: 0,
            files: vec![],
            added: 0,
            removed: 0,
            dirty_touched: vec![],
            in_submodules: vec![],
            again: false,
        });
        let verdict = Verdict::ChecksFail;
        self.event(EventBody::IterationEnded {
            failing: Vec::new(),
            iteration,
            verdict,
            signals: signals.clone(),
            failure: None,
            receipt: Digest::of(b"r"),
            evidence: Box::default(),
        });
        let news = recovery::notice(&self.0, iteration, verdict, signals, Default::default());
        news.into_iter()
            .map(|body| {
                let kind = body.kind();
                self.event(body);
                kind
            })
            .collect()
    }

    /// Tries the next rung and returns it.
    fn climb(&mut self) -> Rung {
        let Step::Recover(Help::Rung(rung)) = decide(&self.0) else { panic!("{:?}", decide(&self.0)) };
        let (mut benched, mut substitute) = (None, None);
        if rung == Rung::Fallback {
            match recovery::fallback(&self.0).unwrap() {
                Fallback::Agent { benched: agent, .. } => benched = Some(agent),
                Fallback::Model { agent, model } => substitute = Some((agent, model)),
            }
        }
        let detail = recovery::words(&self.0, rung);
        self.event(EventBody::Mitigated { rung, detail, benched, substitute });
        rung
    }
}

fn circling() -> Signals {
    Signals {
        loop_score: 0.8,
        repeated_failure: 0.5,
        evidence: vec!["same failure".into()],
        ..Signals::default()
    }
}

fn better() -> Signals {
    Signals { progress: Some("9 tests pass, 8 before".into()), ..Signals::default() }
}

#[test]
fn every_step_is_tried_once_then_the_user_is_asked() {
    let mut run = Run::new(|_| {});
    let mut story = Vec::new();
    for n in 1..=5 {
        if run.iteration(&circling()).contains(&"gutter") {
            story.push((n, run.climb()));
        }
    }
    assert_eq!(story, [(1, Rung::Nudge), (2, Rung::Rotate), (3, Rung::Doctor), (5, Rung::Pause)]);
}

#[test]
fn progress_starts_the_ladder_again() {
    let mut run = Run::new(|_| {});
    run.iteration(&circling());
    assert_eq!(run.climb(), Rung::Nudge);
    run.iteration(&better());
    assert_eq!((run.0.stuck.gutters, run.0.stuck.rung), (0, None));
    run.iteration(&circling());
    assert_eq!(run.climb(), Rung::Nudge, "the first rung again");
}

#[test]
fn used_up_it_pauses_or_ends_by_policy_and_by_count() {
    let used_up = |change: fn(&mut ConfigFile)| {
        let mut run = Run::new(change);
        loop {
            if run.iteration(&circling()).contains(&"gutter") {
                match recovery::next(&run.0) {
                    NextHelp::Try(Rung::Pause) => return (run, None),
                    NextHelp::Try(_) => drop(run.climb()),
                    NextHelp::End => {
                        let Step::Finish { reason, .. } = decide(&run.0) else { panic!() };
                        return (run, Some(reason));
                    }
                }
            }
        }
    };
    assert_eq!(used_up(|_| {}).1, None);
    assert_eq!(used_up(|c| c.on_stuck = Some(OnStuck::Fail)).1, Some(EndReason::Stuck));
    assert_eq!(used_up(|c| c.max_consecutive_gutter = Some(1)).1, Some(EndReason::Stuck));
}

#[test]
fn a_fallback_is_a_model_first_then_an_agent_that_had_no_turn() {
    let mut run = Run::new(|c| {
        let mut a = AgentConfig::command("a", &["a"]);
        a.fallback_profile = Some("bigger".into());
        c.agents = Some(vec![a, AgentConfig::command("b", &["b"])]);
        c.agent_selection = Some(AgentSelection::Priority);
    });
    run.iteration(&circling());
    run.climb();
    run.iteration(&circling());
    run.climb();
    run.iteration(&circling());
    assert_eq!(run.climb(), Rung::Fallback);
    assert_eq!(run.0.model_for(&"a".into()).as_deref(), Some("bigger"));
    assert!(
        matches!(recovery::fallback(&run.0), Some(Fallback::Agent { instead, .. }) if instead.as_str() == "b")
    );
    run.iteration(&better());
    assert_eq!(run.0.model_for(&"a".into()), None, "progress gives the model back");

    let mut run = Run::new(|c| {
        c.agents = Some(vec![AgentConfig::command("a", &["a"]), AgentConfig::command("b", &["b"])]);
        c.agent_selection = Some(AgentSelection::Priority);
    });
    for _ in 0..3 {
        run.iteration(&circling());
        run.climb();
    }
    assert_eq!(run.0.stuck.rung, Some(Rung::Fallback));
    assert!(
        matches!(decide(&run.0), Step::Work(NextSession { agent, .. }) if agent.as_str() == "b"),
        "a sits out"
    );
}

#[test]
fn tried_agents_are_not_a_fallback() {
    let mut run = Run::new(|c| {
        c.agents = Some(vec![AgentConfig::command("a", &["a"]), AgentConfig::command("b", &["b"])]);
    });
    run.iteration(&Signals::default());
    run.iteration(&circling());
    assert_eq!(recovery::fallback(&run.0), None);
}

#[test]
fn single_sign_is_reported_once_and_again_after_progress() {
    let mut run = Run::new(|_| {});
    let sign = Signals {
        loop_score: 0.3,
        stagnation: 0.3,
        evidence: vec!["no change".into()],
        ..Signals::default()
    };
    assert_eq!(run.iteration(&sign), ["stuck"]);
    assert!(run.0.stuck.noticed.contains(&StuckKind::NoProgress));
    assert!(run.0.people.nudges.iter().any(|n| n.contains("no change")));
    assert!(run.iteration(&sign).is_empty(), "not twice");
    run.iteration(&better());
    assert_eq!(run.iteration(&sign), ["stuck"]);
}

#[test]
fn nothing_is_noticed_when_disabled_or_for_candidates() {
    let mut run =
        Run::new(|c| c.stuck_detection = Some(serde_json::from_str(r#"{"disabled":true}"#).unwrap()));
    assert!(run.iteration(&circling()).is_empty());
    let run = Run::new(|_| {});
    assert!(recovery::notice(&run.0, 1, Verdict::Candidate, &circling(), Default::default()).is_empty());
}
