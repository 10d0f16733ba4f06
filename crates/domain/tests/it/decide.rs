//! The decision, driven by events alone: no clock, no file, no process.

use jiff::{SignedDuration, Timestamp};
use ralph_loop_domain::budget_warning::budget_warnings;
use ralph_loop_domain::decide::{DoneReason, Due, Left, NextSession, Step, consequences, decide, judge};
use ralph_loop_domain::ports::{Ask, Baseline, StopCause};
use ralph_loop_domain::proof::{HarnessChange, HarnessSource, TestsQuestion};
use ralph_loop_domain::repo::protect::{ProtectedChange, ProtectedKind};
use ralph_loop_domain::state::{RunFacts, RunState};
use ralph_loop_domain::stuck::Signals;
use ralph_loop_protocol::control::{Control, Letter};
use ralph_loop_protocol::event::{
    CheckResult, Event, EventBody, FileChange, Moved, ProofApproved, RefMove, SessionEnd, Verdict,
};
use ralph_loop_protocol::id::{Digest, Seq};
use ralph_loop_protocol::lease::DriverLease;
use ralph_loop_protocol::money::{Cost, Usage, Usd};
use ralph_loop_protocol::outcome::{EndReason, HumanReason};
use ralph_loop_task::config::{Completion, ConfigFile};
use ralph_loop_task::spec::{RunSpec, Task, WorkspaceKind};

struct Run(RunState);

const CONFIG: &str = r#"{"agents":[{"name":"a","command_argv":["a"]},{"name":"b","command_argv":["b"]}],
    "verifiers":[{"name":"tests","command_argv":["t"]},{"name":"lint","command_argv":["l"],"run_when":"on_promise"}],
    "required_verifiers":["tests","lint"],"max_iterations":3}"#;

impl Run {
    fn new(change: impl FnOnce(&mut ConfigFile)) -> Self {
        let mut config = ConfigFile::parse(CONFIG).unwrap();
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
        Self(RunState::new(spec))
    }

    /// Applies a change that would need many events.
    fn change(&mut self, change: impl FnOnce(&mut RunFacts)) {
        let mut facts = RunFacts::clone(&self.0);
        change(&mut facts);
        self.0 = facts.into();
    }

    fn prepared() -> Self {
        Self::new(|_| {}).and_prepared()
    }

    fn and_prepared(mut self) -> Self {
        self.event(EventBody::Prepared {
            baseline: Baseline {
                head: "h".into(),
                branch: Some("main".into()),
                start: "s".into(),
                tree: "t0".into(),
                dirty: vec![],
                dirty_total: 0,
                left_out: vec![],
            },
            surroundings: Default::default(),
            checks: None,
        });
        self
    }

    fn event(&mut self, body: EventBody) -> &mut Self {
        let event = Event { seq: Seq(self.0.seq.0 + 1), at: self.0.now, body };
        self.0.apply(&event);
        self
    }

    fn control(&mut self, control: Control) -> &mut Self {
        let id = format!("l{}", self.0.seq);
        self.event(EventBody::ControlReceived {
            letter: Letter { id, from: "ana".into(), control },
            inbox: 0,
        })
    }

    fn started(&mut self) -> &mut Self {
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
        })
    }

    fn ended(&mut self, end: SessionEnd, promised: bool) -> &mut Self {
        self.ended_asking(end, promised, None)
    }

    fn ended_asking(&mut self, end: SessionEnd, promised: bool, ask: Option<Ask>) -> &mut Self {
        let iteration = self.0.iterations.count + 1;
        self.event(EventBody::SessionEnded {
            iteration,
            end,
            promised,
            message: String::new(),
            usage: Usage::free(),
            duration_ms: 1000,
            exit_code: Some(0),
            response: None,
            survivors: 0,
            claims: Vec::new(),
            ask,
            commit_message: None,
            commit_parts: Vec::new(),
            findings: None,
            denials: 0,
        })
    }

    fn checkpointed(&mut self, tree: &str) -> &mut Self {
        let changed = self.0.work.tree.as_ref().is_none_or(|t| t.as_str() != tree);
        let files = if changed {
            vec![FileChange {
                path: "f".into(),
                status: 'M',
                added: Some(9),
                removed: Some(0),
                blob: Some(tree.into()),
            }]
        } else {
            vec![]
        };
        let iteration = self.0.iterations.count + 1;
        self.event(EventBody::Checkpointed {
            iteration,
            tree: tree.into(),
            commit: changed.then(|| format!("c-{tree}").as_str().into()),
            files_total: files.len(),
            files,
            added: if changed { 9 } else { 0 },
            removed: 0,
            dirty_touched: vec![],
            in_submodules: vec![],
            again: false,
        })
    }

    fn checked(&mut self, name: &str, passed: bool) -> &mut Self {
        let result = CheckResult {
            name: name.into(),
            tree: self.0.work.tree.clone().unwrap(),
            passed,
            why: None,
            exit_code: Some(i32::from(!passed)),
            duration_ms: 10,
            tests: None,
            log: "l".into(),
            log_digest: Digest::of(b""),
            failing: Vec::new(),
            last_lines: Vec::new(),
        };
        let iteration = self.0.iterations.count + 1;
        self.event(EventBody::CheckFinished { iteration, result })
    }

    fn judged(&mut self) -> Verdict {
        let verdict = judge(&self.0);
        let iteration = self.0.iterations.count + 1;
        let (signals, receipt) = (Signals::default(), Digest::of(b"r"));
        self.event(EventBody::IterationEnded {
            failing: Vec::new(),
            iteration,
            verdict,
            signals,
            failure: None,
            receipt,
            evidence: Box::default(),
        });
        verdict
    }

    /// One complete iteration with these results of `tests` and `lint`.
    fn iteration(&mut self, tree: &str, promised: bool, tests: bool, lint: bool) -> Verdict {
        self.started().ended(SessionEnd::Completed, promised).checkpointed(tree);
        while let Step::Verify { checks } = decide(&self.0) {
            for name in checks {
                self.checked(&name, if name == "tests" { tests } else { lint });
            }
        }
        assert_eq!(decide(&self.0), Step::Judge);
        self.judged()
    }

    fn proven(&mut self, passed: bool) -> &mut Self {
        self.proven_or_asks(passed, None)
    }

    /// The final check asks about changed tests.
    fn asks_about_tests(&mut self) -> &mut Self {
        let changed = HarnessChange {
            path: "t.py".into(),
            added: false,
            source: HarnessSource::Glob,
            named: false,
            what: "changed: tests".into(),
        };
        let question = TestsQuestion { changed: vec![changed], ..TestsQuestion::default() };
        self.proven_or_asks(false, Some(Box::new(question)));
        let Step::AskUser(need) = decide(&self.0) else { panic!("{:?}", decide(&self.0)) };
        assert!(need.reason == HumanReason::TestsChanged && need.reason.needs_approval());
        self.event(EventBody::NeedsHuman { reason: need.reason, message: need.message })
    }

    fn proven_or_asks(&mut self, passed: bool, question: Option<Box<TestsQuestion>>) -> &mut Self {
        assert_eq!(decide(&self.0), Step::Prove);
        let commit = self.0.work.commit.clone().unwrap_or_else(|| "h".into());
        let tree = self.0.work.tree.clone().unwrap();
        let failed = if passed { vec![] } else { vec!["tests: exit code 1".to_owned()] };
        self.event(EventBody::ProofStarted { commit: commit.clone(), clean: true });
        assert_eq!(decide(&self.0), Step::Prove, "a proof that was cut off is done again");
        self.event(EventBody::ProofFinished {
            commit,
            tree,
            passed,
            proof: Digest::of(b""),
            failed,
            duration_ms: 5,
            level_reason: None,
            difference: Vec::new(),
            hint: None,
            level: None,
            watched: Default::default(),
            harness: Vec::new(),
            question,
            refused: Vec::new(),
        })
    }

    fn finish_reason(&self) -> EndReason {
        match decide(&self.0) {
            Step::Finish { reason, .. } => reason,
            other => panic!("not the end: {other:?}"),
        }
    }
}

#[test]
fn run_goes_from_prepare_to_a_proven_end() {
    let mut run = Run::new(|_| {});
    assert_eq!(decide(&run.0), Step::Prepare);
    run = run.and_prepared();
    assert_eq!(run.iteration("t1", false, false, true), Verdict::ChecksFail);
    assert_eq!(run.iteration("t2", true, true, true), Verdict::Candidate);
    run.proven(true);
    assert_eq!(decide(&run.0), Step::Publish(Due::HandOver));
    run.event(EventBody::Published { branch: "b".into(), commit: "c".into(), pr_url: None });
    assert_eq!(run.finish_reason(), EndReason::Completed);
    run.event(EventBody::Finished { reason: EndReason::Completed, summary: String::new() });
    assert_eq!(decide(&run.0), Step::Done(DoneReason::Ended));
}

#[test]
fn a_check_without_a_result_has_not_passed() {
    // Half of the required checks have results.
    let mut run = Run::prepared();
    run.started().ended(SessionEnd::Completed, true).checkpointed("t1").checked("tests", true);
    assert!(matches!(decide(&run.0), Step::Verify { .. }), "the other one is required");
    assert_eq!(judge(&run.0), Verdict::FalsePromise);
    // None has one on this tree: results for another tree don't count.
    let mut run = Run::prepared();
    run.started().ended(SessionEnd::Completed, true).checkpointed("t1");
    run.checked("tests", true).checked("lint", true).checkpointed("t2");
    assert_ne!(judge(&run.0), Verdict::Candidate);
    // No check can have a result: none is required, or no verifier has the required name.
    for required in [vec![], vec!["missing".to_owned()]] {
        let mut run = Run::new(|config| config.required_verifiers = Some(required)).and_prepared();
        assert_ne!(run.iteration("t1", true, true, true), Verdict::Candidate);
        assert_ne!(decide(&run.0), Step::Prove);
    }
}

#[test]
fn a_promise_alone_never_ends_a_run() {
    let mut run = Run::prepared();
    assert_eq!(run.iteration("t1", true, false, true), Verdict::FalsePromise);
    assert_eq!(run.iteration("t2", true, true, false), Verdict::FalsePromise);
    assert!(matches!(decide(&run.0), Step::Work(NextSession { iteration: 3, .. })));
}

#[test]
fn passing_checks_without_a_promise_are_not_the_end_unless_the_policy_says_so() {
    let mut run = Run::prepared();
    assert_eq!(run.iteration("t1", false, true, true), Verdict::NotPromised);
    let mut run = Run::new(|c| c.completion = Some(Completion::Checks)).and_prepared();
    assert_eq!(run.iteration("t1", false, true, true), Verdict::Candidate);
}

#[test]
fn work_that_lacks_only_the_promise_ends_after_two_idle_sessions() {
    let mut run = Run::new(|c| {
        c.max_iterations = Some(9);
        c.required_verifiers = Some(vec!["tests".into()]);
    })
    .and_prepared();
    for _ in 0..3 {
        assert!(matches!(decide(&run.0), Step::Work(_)));
        assert_eq!(run.iteration("t1", false, true, true), Verdict::NotPromised);
    }
    let end = ralph_loop_domain::decide::ending(&run.0).map(|(reason, _)| reason);
    assert_eq!(end, Some(EndReason::NoChange), "{:?}", decide(&run.0));
    // Failing checks are for the stuck rules.
    let mut run = Run::new(|c| c.max_iterations = Some(9)).and_prepared();
    for _ in 0..4 {
        assert_eq!(run.iteration("t1", false, false, true), Verdict::ChecksFail);
    }
    assert!(matches!(decide(&run.0), Step::Work(_)));
}

#[test]
fn sentence_is_done_without_a_promise_when_a_red_check_is_green() {
    for (source, red, verdict) in [
        (".ralph/tasks/1f2e.md", "tests", Verdict::Candidate),
        (".ralph/tasks/1f2e.md", "other", Verdict::NotPromised),
        (".ralph/tasks/1f2e/PROMPT.md", "tests", Verdict::NotPromised),
        ("PROMPT.md", "tests", Verdict::NotPromised),
    ] {
        let mut run = Run::new(|c| c.required_verifiers = Some(vec!["tests".into()])).and_prepared();
        run.change(|facts| {
            facts.spec.task.source = source.to_owned();
            let checks = serde_json::json!({"results": [], "red": [red]});
            facts.baseline_checks = serde_json::from_value(checks).unwrap();
        });
        assert_eq!(run.iteration("t1", false, false, true), Verdict::ChecksFail, "{source}");
        assert_eq!(run.iteration("t2", false, true, true), verdict, "{source}, red: {red}");
    }
}

#[test]
fn agent_that_fails_twice_ends_the_run_with_its_reason() {
    let mut run = Run::prepared();
    for _ in 0..2 {
        let end = SessionEnd::Failed { reason: "no such option `-p`".into() };
        run.started().ended(end, false).checkpointed("t0");
        while let Step::Verify { checks } = decide(&run.0) {
            for name in &checks {
                run.checked(name, false);
            }
        }
        assert_eq!(run.judged(), Verdict::SessionFailed);
    }
    let Step::Finish { reason, summary } = decide(&run.0) else { panic!("{:?}", decide(&run.0)) };
    assert_eq!(reason, EndReason::Error);
    assert!(
        summary.starts_with("No agent can work. a: no such option `-p`; run `ralph probe a`; b: no such"),
        "{summary}"
    );
}

#[test]
fn a_result_counts_only_for_the_tree_it_was_made_on() {
    let mut run = Run::prepared();
    run.iteration("t1", false, true, true);
    run.started().ended(SessionEnd::Completed, true).checkpointed("t2");
    assert_eq!(decide(&run.0), Step::Verify { checks: vec!["tests".into(), "lint".into()] });
    // The same tree keeps its results.
    let mut run = Run::prepared();
    run.iteration("t1", true, false, true);
    run.started().ended(SessionEnd::Completed, true).checkpointed("t1");
    assert_eq!(decide(&run.0), Step::Judge);
}

#[test]
fn verifiers_run_when_they_are_asked_to() {
    let mut run = Run::prepared();
    run.started().ended(SessionEnd::Completed, false).checkpointed("t1");
    assert_eq!(
        decide(&run.0),
        Step::Verify { checks: vec!["tests".into()] },
        "on_promise waits for the promise"
    );
    let mut run = Run::new(|c| {
        if let Some(v) = c.verifiers.as_mut() {
            v[0].run_when = ralph_loop_task::config::RunWhen::Always;
        }
    })
    .and_prepared();
    run.iteration("t1", false, true, true);
    run.started().ended(SessionEnd::Completed, false).checkpointed("t1");
    assert_eq!(decide(&run.0), Step::Verify { checks: vec!["tests".into()] }, "always means every iteration");
}

#[test]
fn a_promise_on_the_last_allowed_iteration_still_counts() {
    let mut run = Run::prepared();
    run.iteration("t1", false, false, true);
    run.iteration("t2", false, false, true);
    assert_eq!(run.iteration("t3", true, true, true), Verdict::Candidate);
    assert_eq!(decide(&run.0), Step::Prove);
    run.proven(false);
    assert_eq!(run.finish_reason(), EndReason::MaxIterations);
}

#[test]
fn repeating_a_disproved_promise_is_a_false_promise() {
    let mut run = Run::prepared();
    run.iteration("t1", true, true, true);
    run.proven(false);
    assert_eq!(run.iteration("t1", true, true, true), Verdict::FalsePromise);
    assert_eq!(
        run.iteration("t2", true, true, true),
        Verdict::Candidate,
        "another tree deserves another look"
    );
}

#[test]
fn changed_protected_paths_are_never_done() {
    let mut run = Run::prepared();
    run.started().ended(SessionEnd::Completed, true).checkpointed("t1");
    let changes = vec![ProtectedChange { path: "test.sh".into(), change: ProtectedKind::Changed }];
    run.event(EventBody::ProtectedChanged { iteration: 1, changes, left_out: 0 });
    run.checked("tests", true).checked("lint", true);
    assert_eq!(run.judged(), Verdict::ProtectedChanged);
    assert!(matches!(decide(&run.0), Step::Work(_)));
}

#[test]
fn waits_for_limits_without_an_end_grow_if_no_other_agent_is_free() {
    let mut run = Run::prepared();
    let rest = |run: &mut Run| {
        run.started().ended(SessionEnd::RateLimited { reset_at: None, reason: "limit".into() }, false);
        let now = run.0.now;
        let events = consequences(&run.0, now);
        let until = events.iter().find_map(|event| match event {
            EventBody::CooldownSet { until, .. } => Some(until.duration_since(now).as_secs()),
            _ => None,
        });
        for event in events {
            run.event(event);
        }
        until.unwrap()
    };
    assert_eq!(rest(&mut run), 900, "another agent works meanwhile");
    let waits: Vec<i64> = (0..3)
        .map(|_| {
            let waited = rest(&mut run);
            let now = run.0.now + SignedDuration::from_secs(waited);
            run.0.tick(now);
            waited
        })
        .collect();
    assert_eq!(waits, [30, 60, 120]);
}

#[test]
fn a_wait_for_limits_is_cut_at_its_limit() {
    let mut run = Run::prepared();
    run.0 = {
        let mut facts = ralph_loop_domain::state::RunFacts::clone(&run.0);
        facts.spec.settings.budgets.max_limit_wait = std::time::Duration::from_secs(60);
        facts.spec.settings.agents.truncate(1);
        facts.into()
    };
    let until = Some(run.0.now + SignedDuration::from_hours(5));
    run.started().ended(SessionEnd::RateLimited { reset_at: until, reason: "limit".into() }, false);
    for event in consequences(&run.0, run.0.now) {
        run.event(event);
    }
    let Step::Wait { reason, until } = decide(&run.0) else { panic!() };
    run.event(EventBody::WaitStarted { reason, until });
    let now = run.0.now;
    run.0.tick(now + SignedDuration::from_secs(59));
    assert!(matches!(decide(&run.0), Step::Wait { .. }));
    run.0.tick(now + SignedDuration::from_secs(61));
    assert!(
        matches!(decide(&run.0), Step::Finish { reason: EndReason::Timeout, .. }),
        "{:?}",
        decide(&run.0)
    );
}

#[test]
fn six_empty_sessions_are_enough() {
    let mut run = Run::prepared();
    for n in 1..=6 {
        assert!(!matches!(decide(&run.0), Step::AskUser(_)), "after {n}");
        run.started().ended(SessionEnd::Empty, false);
        let iteration = run.0.iterations.current.as_ref().unwrap().iteration;
        run.event(EventBody::IterationVoided { iteration, reason: "empty answer".into() });
    }
    let Step::AskUser(need) = decide(&run.0) else { panic!("{:?}", decide(&run.0)) };
    assert!(need.message.contains("`ralph probe "), "{need:?}");
}

#[test]
fn agents_take_turns_and_the_first_returns_when_its_rest_is_over() {
    let mut run = Run::prepared();
    let until = run.0.now + SignedDuration::from_secs(60);
    run.started();
    assert_eq!(run.0.agents.last_agent.as_ref().unwrap().as_str(), "a");
    run.ended(SessionEnd::RateLimited { reset_at: Some(until), reason: "limit".into() }, false);
    assert_eq!(decide(&run.0), Step::Checkpoint(Left::Void));
    for event in consequences(&run.0, run.0.now) {
        run.event(event);
    }
    let Step::Work(NextSession { iteration, attempt, agent, skipped, .. }) = decide(&run.0) else { panic!() };
    assert_eq!((iteration, attempt, agent.as_str(), skipped.len()), (1, 2, "b", 0));
    let later = Some(until + SignedDuration::from_secs(60));
    run.started().ended(SessionEnd::RateLimited { reset_at: later, reason: "limit".into() }, false);
    for event in consequences(&run.0, run.0.now) {
        run.event(event);
    }
    let Step::Wait { until: Some(wait), .. } = decide(&run.0) else { panic!("{:?}", decide(&run.0)) };
    assert_eq!(wait, until + SignedDuration::from_secs(2), "exactly until the reset, and a little");
    run.0.tick(wait);
    let Step::Work(NextSession { iteration, agent, skipped, .. }) = decide(&run.0) else { panic!() };
    assert_eq!(
        (iteration, agent.as_str(), skipped.len()),
        (1, "a", 0),
        "waiting doesn't count as an iteration"
    );
    assert_eq!(run.0.stuck.traces.len(), 0, "and no stagnation");
}

#[test]
fn agents_that_never_answered_end_the_run_after_the_first_round() {
    let unreachable = |run: &mut Run| {
        run.started().ended(SessionEnd::Unreachable { reason: "connect ECONNREFUSED".into() }, false);
        for event in consequences(&run.0, run.0.now) {
            run.event(event);
        }
    };
    let mut run = Run::prepared();
    unreachable(&mut run);
    assert!(matches!(decide(&run.0), Step::Work(_)), "the other agent is tried");
    run.started().ended(SessionEnd::Auth { reason: "log in with `b login`".into() }, false);
    for event in consequences(&run.0, run.0.now) {
        run.event(event);
    }
    let Step::Finish { reason: EndReason::Error, summary } = decide(&run.0) else {
        panic!("{:?}", decide(&run.0))
    };
    assert!(summary.contains("b: log in with `b login`") && summary.contains("a: its provider"), "{summary}");
    assert!(summary.contains("`ralph probe a`"), "{summary}");

    // An outage after an answer is waited out.
    let mut run = Run::prepared();
    run.started().ended(SessionEnd::Completed, false).checkpointed("t1");
    run.checked("tests", false);
    run.judged();
    run.change(|facts| facts.spec.settings.agents.truncate(1));
    unreachable(&mut run);
    assert!(matches!(decide(&run.0), Step::Wait { .. }), "{:?}", decide(&run.0));
}

#[test]
fn a_cooldown_says_who_named_its_time() {
    let reason = |reset_at| {
        let mut run = Run::prepared();
        run.started().ended(SessionEnd::RateLimited { reset_at, reason: "429".into() }, false);
        consequences(&run.0, run.0.now).into_iter().find_map(|event| match event {
            EventBody::CooldownSet { reason, .. } => Some(reason),
            _ => None,
        })
    };
    assert_eq!(reason(Some(Timestamp::UNIX_EPOCH)).unwrap(), "429 (the provider's time)");
    assert_eq!(reason(None).unwrap(), "429 (the provider names no time)");
}

#[test]
fn a_refused_login_drops_the_agent_and_the_last_one_ends_the_run() {
    let mut run = Run::prepared();
    for _ in 0..2 {
        run.started().ended(SessionEnd::Auth { reason: "401".into() }, false);
        for event in consequences(&run.0, run.0.now) {
            run.event(event);
        }
    }
    assert_eq!(run.finish_reason(), EndReason::Error);
}

#[test]
fn an_empty_answer_is_tried_again_and_then_counts() {
    let mut run = Run::prepared();
    for _ in 0..2 {
        run.started().ended(SessionEnd::Empty, false);
        assert_eq!(decide(&run.0), Step::Checkpoint(Left::Void));
        for event in consequences(&run.0, run.0.now) {
            run.event(event);
        }
    }
    run.started().ended(SessionEnd::Empty, false);
    assert_eq!(decide(&run.0), Step::Checkpoint(Left::Work));
}

#[test]
fn an_interrupted_session_counts_for_time_and_not_as_an_iteration() {
    let mut run = Run::prepared();
    run.started();
    assert_eq!(decide(&run.0), Step::Checkpoint(Left::Interruption));
    run.ended(SessionEnd::Interrupted, false);
    for event in consequences(&run.0, run.0.now) {
        run.event(event);
    }
    assert_eq!(
        (run.0.iterations.count, run.0.spending.totals.working_ms, run.0.spending.totals.sessions),
        (0, 1000, 1)
    );
    assert!(matches!(decide(&run.0), Step::Work(NextSession { iteration: 1, attempt: 2, .. })));
}

#[test]
fn budgets_are_hard_stops_with_a_warning_before() {
    let mut run = Run::new(|c| c.max_cost_usd_estimate = Some(Usd::from_dollars(1.0))).and_prepared();
    run.started();
    run.event(EventBody::SessionEnded {
        iteration: 1,
        end: SessionEnd::Completed,
        promised: false,
        message: String::new(),
        usage: Usage { cost: Some(Usd::from_dollars(0.85)), ..Usage::free() },
        duration_ms: 0,
        exit_code: None,
        response: None,
        survivors: 0,
        claims: Vec::new(),
        ask: None,
        commit_message: None,
        commit_parts: Vec::new(),
        findings: None,
        denials: 0,
    });
    let warnings = budget_warnings(&run.0);
    assert!(
        matches!(&warnings[..], [EventBody::BudgetWarning { message, .. }] if message == "$0.85 of $1 used (85 %)"),
        "{warnings:?}"
    );
    run.event(warnings[0].clone());
    assert!(budget_warnings(&run.0).is_empty(), "said once");
    run.change(|facts| facts.spending.totals.cost = Cost::reported(Usd::from_dollars(1.0)));
    run.checkpointed("t1").checked("tests", false);
    run.judged();
    assert_eq!(run.finish_reason(), EndReason::MaxCost);
}

#[test]
fn time_and_deadline_end_a_run() {
    let mut run = Run::new(|c| c.max_wall_time_minutes = Some(1.0)).and_prepared();
    run.change(|facts| facts.spending.totals.working_ms = 60_000);
    assert_eq!(run.finish_reason(), EndReason::Timeout);
    let mut run = Run::new(|c| c.deadline = Some(Timestamp::from_second(50).unwrap())).and_prepared();
    assert!(matches!(decide(&run.0), Step::Work(_)));
    run.0.tick(Timestamp::from_second(50).unwrap());
    assert_eq!(run.finish_reason(), EndReason::Timeout);
}

#[test]
fn controls_pause_stop_and_cancel_at_their_time() {
    let mut run = Run::prepared();
    run.started().control(Control::Pause);
    run.ended(SessionEnd::Completed, false).checkpointed("t1").checked("tests", false);
    run.judged();
    assert!(matches!(decide(&run.0), Step::Wait { until: None, .. }), "pause waits after the session");
    run.control(Control::Resume);
    assert!(matches!(decide(&run.0), Step::Work(_)));
    run.control(Control::Stop);
    assert_eq!(run.finish_reason(), EndReason::Stopped);

    let mut run = Run::prepared();
    run.started().control(Control::Cancel);
    run.ended(SessionEnd::Stopped { cause: StopCause::Cancelled }, false);
    assert_eq!(decide(&run.0), Step::Checkpoint(Left::Work), "cancelled work is recorded first");
    run.checkpointed("t1");
    assert_eq!(run.finish_reason(), EndReason::Cancelled);
}

#[test]
fn a_finished_candidate_is_proven_even_when_a_stop_has_come() {
    let mut run = Run::prepared();
    run.iteration("t1", true, true, true);
    run.control(Control::Stop);
    assert_eq!(decide(&run.0), Step::Prove);
}

#[test]
fn moved_refs_and_tampering_need_approval() {
    let mut run = Run::prepared();
    run.started().ended(SessionEnd::Completed, true);
    let moves = vec![RefMove { name: "refs/heads/main".into(), from: None, to: None, needs_person: true }];
    run.event(EventBody::RefsMoved { moves, left_out: 0 });
    run.checkpointed("t1").checked("tests", true).checked("lint", true);
    run.judged();
    let Step::AskUser(need) = decide(&run.0) else { panic!("{:?}", decide(&run.0)) };
    run.event(EventBody::NeedsHuman { reason: need.reason, message: need.message });
    run.control(Control::Resume);
    assert_eq!(decide(&run.0), Step::Done(DoneReason::NeedsUser), "resume alone is not enough");
    run.control(Control::Approve);
    assert_eq!(decide(&run.0), Step::Prove);

    let mut run = Run::prepared();
    run.started().ended(SessionEnd::Completed, true);
    run.event(EventBody::Tampered { what: "config".into() });
    assert!(matches!(decide(&run.0), Step::AskUser(_)), "before anything is judged");
}

#[test]
fn changed_tests_are_approved_or_restored() {
    let asked = || {
        let mut run = Run::prepared();
        assert_eq!(run.iteration("t1", true, true, true), Verdict::Candidate);
        run.control(Control::Approve);
        run.asks_about_tests();
        assert_eq!(
            decide(&run.0),
            Step::Done(DoneReason::NeedsUser),
            "an answer before the question answers nothing"
        );
        run.control(Control::Resume);
        assert_eq!(decide(&run.0), Step::Done(DoneReason::NeedsUser), "resume alone is not enough");
        run
    };
    let mut run = asked();
    run.control(Control::Approve);
    assert!(!run.0.people.approval_pending, "refs and settings were not asked about");
    let (by, commit) = (run.0.people.tests_approved_by.clone().unwrap(), run.0.work.commit.clone().unwrap());
    run.event(EventBody::ProofApproved(ProofApproved { commit, proof: Digest::of(b"x"), by }));
    assert_eq!(decide(&run.0), Step::Publish(Due::HandOver));
    assert!(run.0.people.tests_approved_by.is_none());

    let mut run = asked();
    run.control(Control::Nudge { text: "keep them".into() });
    assert_eq!(decide(&run.0), Step::Done(DoneReason::NeedsUser));
    run.control(Control::Resume);
    assert!(matches!(decide(&run.0), Step::Work(NextSession { iteration: 2, .. })));
    assert!(run.0.people.nudges.iter().any(|nudge| nudge.contains("t.py")), "{:?}", run.0.people.nudges);
    run.control(Control::Approve);
    assert!(run.0.people.tests_approved_by.is_none(), "the question is answered");

    let mut run = asked();
    run.control(Control::Edit { task: "another one".into() });
    run.control(Control::Approve);
    assert!(run.0.people.tests_approved_by.is_none() && matches!(decide(&run.0), Step::Work(_)));

    let mut run = asked();
    run.event(EventBody::Tampered { what: "config".into() });
    run.control(Control::Approve);
    let Step::AskUser(need) = decide(&run.0) else { panic!("{:?}", decide(&run.0)) };
    assert_eq!(need.reason, HumanReason::Tampered, "only the tests were approved");
}

#[test]
fn fetched_refs_are_reported_without_approval() {
    let mut run = Run::prepared();
    let moves =
        vec![RefMove { name: "refs/remotes/origin/main".into(), from: None, to: None, needs_person: false }];
    run.event(EventBody::RefsMoved { moves, left_out: 0 });
    assert!(matches!(decide(&run.0), Step::Work(_)));
}

#[test]
fn models_are_chosen_per_agent_or_for_all() {
    let mut run = Run::prepared();
    run.control(Control::Model { model: Some("big".into()), agent: None, always: true });
    run.control(Control::Model { model: Some("small".into()), agent: Some("b".into()), always: true });
    assert_eq!(run.0.model_for(&"a".into()).as_deref(), Some("big"));
    assert_eq!(run.0.model_for(&"b".into()).as_deref(), Some("small"));
    run.control(Control::Model { model: None, agent: None, always: true });
    assert_eq!(run.0.model_for(&"a".into()), None);
}

#[test]
fn the_state_survives_its_snapshot_byte_for_byte() {
    let mut run = Run::prepared();
    run.iteration("t1", true, false, true);
    run.started();
    let text = serde_json::to_string(&run.0).unwrap();
    let back: RunState = serde_json::from_str(&text).unwrap();
    assert_eq!(back, run.0);
}

#[test]
fn a_long_run_keeps_a_bounded_state() {
    let mut run = Run::new(|c| c.max_iterations = Some(5000)).and_prepared();
    let mut sizes = Vec::new();
    for n in 0..2000 {
        run.iteration(&format!("t{n}"), false, false, true);
        if n == 100 || n == 1999 {
            sizes.push(serde_json::to_string(&run.0).unwrap().len());
        }
    }
    assert!(sizes[1] < sizes[0] + sizes[0] / 5, "{sizes:?}");
}

fn asking(run: &mut Run, tree: &str, ask: Ask) {
    run.started().ended_asking(SessionEnd::Completed, false, Some(ask)).checkpointed(tree);
    run.checked("tests", false);
    run.judged();
}

#[test]
fn agents_question_is_asked_after_the_verdict() {
    let mut run = Run::prepared();
    asking(&mut run, "t1", Ask::Pause { reason: "which database?".into() });
    let Step::AskUser(need) = decide(&run.0) else { panic!("{:?}", decide(&run.0)) };
    assert_eq!(need.reason, HumanReason::AgentAsks);
    assert!(need.message.contains("which database?") && !need.reason.needs_approval());
    run.event(EventBody::NeedsHuman { reason: need.reason, message: need.message });
    assert_eq!(decide(&run.0), Step::Done(DoneReason::NeedsUser));
}

#[test]
fn giving_up_needs_two_sessions_in_a_row() {
    let give_up = || Ask::GiveUp { reason: "no network".into() };
    let mut run = Run::new(|c| c.max_iterations = Some(9)).and_prepared();
    asking(&mut run, "t1", give_up());
    assert!(matches!(decide(&run.0), Step::Work(_)), "once is a word, not evidence");
    assert!(
        run.0.people.nudges.iter().any(|n| n.contains("no network")),
        "the next session gets it: {:?}",
        run.0.people.nudges
    );
    run.iteration("t2", false, false, true);
    asking(&mut run, "t3", give_up());
    assert!(matches!(decide(&run.0), Step::Work(_)), "a session between did not say so");
    asking(&mut run, "t4", give_up());
    assert!(matches!(decide(&run.0), Step::AskUser(_)));
}

#[test]
fn rotate_request_only_starts_a_fresh_session() {
    let mut run = Run::prepared();
    asking(&mut run, "t1", Ask::Rotate { reason: "context is full".into() });
    assert!(matches!(decide(&run.0), Step::Work(NextSession { iteration: 2, .. })));
}

#[test]
fn events_of_any_size_are_cut_and_decide_the_same() {
    let size = |body: &EventBody| serde_json::to_vec(body).unwrap().len();
    let long = |n: usize| format!("{n}-{}", "\u{1}".repeat(4000));
    let moves: Vec<RefMove> = (0..5000)
        .map(|n| RefMove {
            name: format!("refs/tags/{}", long(n)),
            from: None,
            to: Some("0".repeat(40)),
            needs_person: n == 4999,
        })
        .collect();
    let body = EventBody::RefsMoved { moves, left_out: 0 }.bounded();
    assert!(size(&body) < 150_000, "{}", size(&body));
    let EventBody::RefsMoved { moves, left_out } = &body else { panic!("another kind") };
    assert!(moves[0].needs_person, "the one that matters is not cut");
    assert_eq!(moves.len() + left_out, 5000);
    let mut run = Run::prepared();
    run.event(body);
    assert_eq!(run.0.people.alarm.as_ref().map(|a| a.reason), Some(HumanReason::RefsMoved));
    assert!(run.0.people.alarm.as_ref().unwrap().message.len() < 10_000);

    let changes: Vec<ProtectedChange> =
        (0..100_000).map(|n| ProtectedChange { path: long(n), change: ProtectedKind::Changed }).collect();
    let body = EventBody::ProtectedChanged { iteration: 1, changes, left_out: 0 }.bounded();
    assert!(size(&body) < 150_000, "{}", size(&body));
    let EventBody::ProtectedChanged { changes, left_out, .. } = &body else { panic!("another kind") };
    assert!(!changes.is_empty() && changes.len() + left_out == 100_000);

    let files: Vec<FileChange> = (0..100_000)
        .map(|n| FileChange { path: long(n), status: 'A', added: Some(1), removed: None, blob: None })
        .collect();
    let dirty_touched: Vec<String> = (0..100_000).map(long).collect();
    let body = EventBody::Checkpointed {
        iteration: 1,
        tree: "t".into(),
        commit: None,
        files_total: files.len(),
        files,
        added: 100_000,
        removed: 0,
        dirty_touched,
        in_submodules: vec![],
        again: false,
    }
    .bounded();
    assert!(size(&body) < 150_000, "{}", size(&body));
    let EventBody::Checkpointed { files, files_total, dirty_touched, .. } = &body else {
        panic!("another kind")
    };
    assert!(!files.is_empty() && *files_total == 100_000);
    assert!(dirty_touched.last().unwrap().ends_with(" more"));
}

#[test]
fn claims_and_proofs_of_the_old_task_do_not_end_the_run() {
    let edit = || Control::Edit { task: "another task".into() };
    // During the session.
    let mut run = Run::prepared();
    run.started().control(edit());
    run.ended(SessionEnd::Completed, true).checkpointed("t1").checked("tests", true).checked("lint", true);
    assert_eq!(run.judged(), Verdict::NotPromised);
    assert!(matches!(decide(&run.0), Step::Work(NextSession { iteration: 2, .. })));
    assert_eq!(run.iteration("t2", true, true, true), Verdict::Candidate, "the next one has the new text");
    // During the final check.
    let commit = run.0.work.commit.clone().unwrap();
    run.event(EventBody::ProofStarted { commit, clean: true }).control(edit());
    assert!(matches!(decide(&run.0), Step::Work(NextSession { iteration: 3, .. })));
    // If checks alone decide, the session still worked on the old text.
    let mut run = Run::new(|config| config.completion = Some(Completion::Checks)).and_prepared();
    run.started().control(edit());
    run.ended(SessionEnd::Completed, false).checkpointed("t1").checked("tests", true).checked("lint", true);
    assert_ne!(run.judged(), Verdict::Candidate);
}

#[test]
fn checks_run_before_the_next_session_after_a_fix() {
    let needs = || EventBody::NeedsHuman { reason: HumanReason::Setup, message: "install it".into() };
    let mut run = Run::prepared();
    assert_eq!(run.iteration("t1", true, false, true), Verdict::FalsePromise);
    run.event(needs()).control(Control::Resume);
    assert_eq!(decide(&run.0), Step::Verify { checks: vec!["tests".into()] });
    run.checked("tests", true);
    assert_eq!(decide(&run.0), Step::Prove, "the work was done all along");
    // Failing checks are work for the next session; work without a promise isn't done.
    for (promised, passes) in [(true, false), (false, true)] {
        let mut run = Run::prepared();
        run.iteration("t1", promised, false, true);
        run.event(needs()).control(Control::Resume);
        let Step::Verify { checks } = decide(&run.0) else { panic!("{:?}", decide(&run.0)) };
        for name in &checks {
            run.checked(name, passes);
        }
        assert!(matches!(decide(&run.0), Step::Work(NextSession { iteration: 2, .. })));
    }
    // Repeats a final check that lacked something; if it still does, `ralph` asks the user before more work.
    let mut run = Run::prepared();
    run.iteration("t1", true, true, true);
    let refused = |run: &mut Run| {
        run.event(EventBody::ProofFinished {
            commit: "c-t1".into(),
            tree: "t1".into(),
            passed: false,
            proof: Digest::of(b""),
            failed: vec!["tests: exit code 1".into()],
            duration_ms: 5,
            level_reason: None,
            difference: Vec::new(),
            hint: Some("set it up".into()),
            level: None,
            watched: Default::default(),
            harness: Vec::new(),
            refused: Vec::new(),
            question: None,
        });
    };
    refused(&mut run);
    run.event(needs()).control(Control::Resume);
    assert_eq!(decide(&run.0), Step::Prove);
    refused(&mut run);
    assert!(matches!(decide(&run.0), Step::AskUser(need) if need.reason == HumanReason::Setup));
}

#[test]
fn checks_of_the_start_that_lacked_something_run_again_in_a_resumed_run() {
    let driver = |pid| EventBody::DriverStarted { pid, torn_bytes: 0, lease: DriverLease::default() };
    let needs = EventBody::NeedsHuman { reason: HumanReason::Setup, message: "install it".into() };
    let mut run = Run::new(|_| {});
    run.event(driver(1));
    let mut run = run.and_prepared();
    assert!(matches!(decide(&run.0), Step::Work(_)));
    run.event(needs).event(driver(2)).control(Control::Resume);
    assert_eq!(decide(&run.0), Step::Prepare);
    let mut run = run.and_prepared();
    assert!(matches!(decide(&run.0), Step::Work(_)), "once");
    run.event(driver(3));
    assert!(matches!(decide(&run.0), Step::Work(_)), "they lack nothing now");
}

/// The record of an iteration's tree again, with these files and contents.
fn recorded_again(files: &[(&str, &str)]) -> EventBody {
    let file = |(path, blob): &(&str, &str)| FileChange {
        path: (*path).into(),
        status: 'M',
        added: Some(1),
        removed: Some(0),
        blob: Some((*blob).into()),
    };
    EventBody::Checkpointed {
        iteration: 1,
        tree: "marked".into(),
        commit: Some("c-marked".into()),
        files_total: files.len(),
        files: files.iter().map(file).collect(),
        added: 1,
        removed: 0,
        dirty_touched: vec![],
        in_submodules: vec![],
        again: true,
    }
}

#[test]
fn the_engines_marks_do_not_age_results() {
    for (files, tree) in [
        (&[("f", "t1"), ("TASK", "x")][..], "marked"),
        (&[("f", "another content"), ("TASK", "x")][..], "t1"),
        (&[("f", "t1"), ("g", "x")][..], "t1"),
    ] {
        let mut run = Run::prepared();
        let source = run.0.spec.task.source.clone();
        run.started().ended(SessionEnd::Completed, false).checkpointed("t1").checked("tests", true);
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, blob)| (if *path == "TASK" { source.as_str() } else { path }, *blob))
            .collect();
        run.event(recorded_again(&files));
        assert_eq!(run.0.work.tree.as_ref().unwrap().as_str(), "marked");
        assert_eq!(run.0.work.checks["tests"].tree.as_str(), tree, "{files:?}");
    }
}

#[test]
fn a_run_on_another_machine_repeats_the_baseline_before_it_is_proven() {
    let mut run = Run::prepared();
    run.change(|facts| drop(facts.surroundings.insert("grep".into(), "here".into())));
    run.iteration("t1", true, true, true);
    let baseline = run.0.baseline.clone().unwrap();
    let moved =
        Moved { spec: Digest::of(b"spec"), baseline: baseline.clone(), from: "another worker".into() };
    run.event(EventBody::Moved(moved));
    assert_eq!(decide(&run.0), Step::Prepare);
    let surroundings = [("grep".to_owned(), "there".to_owned())].into();
    run.event(EventBody::Prepared { baseline, surroundings, checks: None });
    assert_eq!(decide(&run.0), Step::Prove);
    assert_eq!(run.0.surroundings["grep"], "there", "it is compared with this machine");
    assert_eq!(run.0.work.tree.as_ref().unwrap().as_str(), "t1", "the work continues where it was");
}
