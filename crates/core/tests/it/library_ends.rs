//! How runs of a program end: every code with what it promises (`recoverable`, `resume_from`), and that the promise holds.

use crate::support::{FakeClock, write};
use ralph_loop_core::{Completion, Limits, LoopAgent, LoopAgentBuilder, LoopResult};
use ralph_loop_domain::ports::{
    Agent, AgentRequests, Clock as _, GitRemote, ReleaseWhen, Sandbox, SandboxError, SessionReport,
    SessionRequest, SessionSink,
};
use ralph_loop_protocol::control::BudgetChange;
use ralph_loop_protocol::event::{EventBody, SessionEnd};
use ralph_loop_protocol::id::{AgentName, Seq};
use ralph_loop_protocol::money::{CostBasis, Tokens, Usage, Usd};
use ralph_loop_protocol::outcome::{EndReason, ErrorCode};
use ralph_loop_sandbox::memory::{MemorySandbox, MemoryWorkspace};
use ralph_loop_task::config::Publish;
use std::future::Future;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

type Session = dyn Fn(u32, &dyn Sandbox) -> Result<SessionReport, SandboxError> + Send + Sync;

/// An agent as a closure that gets the number of earlier sessions.
struct Acting {
    name: AgentName,
    sessions: AtomicU32,
    session: Arc<Session>,
}

impl Agent for Acting {
    fn name(&self) -> &AgentName {
        &self.name
    }
    fn session(
        &self,
        _: &SessionRequest<'_>,
        sandbox: &dyn Sandbox,
        _: &mut dyn SessionSink,
    ) -> Result<SessionReport, SandboxError> {
        (self.session)(self.sessions.fetch_add(1, Ordering::SeqCst), sandbox)
    }
    fn release_resources(&self, _: ReleaseWhen) {}
}

fn report(end: SessionEnd, usage: Usage) -> SessionReport {
    SessionReport {
        end,
        final_message: "Did a part.".into(),
        usage,
        response: serde_json::Value::Null,
        duration: Duration::from_millis(1),
        exit_code: Some(0),
        survivors: 0,
        wishes: AgentRequests::default(),
    }
}

/// Writes half of the file in each of two sessions.
fn part(before: u32, sandbox: &dyn Sandbox) -> SessionReport {
    write(sandbox, "result.txt", if before == 0 { "half\nof\nit\n" } else { "done\nand\ntested\n" });
    report(SessionEnd::Completed, Usage::free())
}

fn spends(cost: f64, tokens: u64) -> Usage {
    let tokens = Some(Tokens { input: tokens, ..Tokens::default() });
    Usage { tokens, cost: Some(Usd::from_dollars(cost)), basis: CostBasis::Reported, ..Usage::default() }
}

fn builder(
    temp: &Path,
    session: impl Fn(u32, &dyn Sandbox) -> Result<SessionReport, SandboxError> + Send + Sync + 'static,
) -> LoopAgentBuilder {
    over(temp, &MemorySandbox::default(), session)
}

fn over(
    temp: &Path,
    sandbox: &MemorySandbox,
    session: impl Fn(u32, &dyn Sandbox) -> Result<SessionReport, SandboxError> + Send + Sync + 'static,
) -> LoopAgentBuilder {
    let (sessions, session) = (AtomicU32::new(0), Arc::new(session));
    LoopAgent::builder()
        .workspace(MemoryWorkspace::new(sandbox))
        .sandbox(sandbox.clone())
        .agent(Acting { name: "a".into(), sessions, session })
        .task("Make it done.")
        .repo(temp.join("repo"))
        .records(temp.join("records"))
        .completion(Completion::argv(["grep", "done", "result.txt"]))
        .baseline(false)
}

/// The run ends with this code, says that it can continue from `next`, and does.
fn goes_on(agent: &LoopAgent, code: ErrorCode, next: u32, mend: impl FnOnce()) {
    let first = block_on(agent.run());
    assert_promise(&first, code, true, Some(next));
    mend();
    let again = block_on(agent.resume_from(next).unwrap());
    assert!(again.success, "{code}: {again:?}");
}

fn assert_promise(result: &LoopResult, code: ErrorCode, recoverable: bool, next: Option<u32>) {
    let error = result.error.clone().unwrap_or_else(|| panic!("{code}: {result:?}"));
    assert_eq!((error.code, error.recoverable), (code, recoverable), "{result:?}");
    assert_eq!((result.recoverable(), result.resume_from()), (recoverable, next), "{code}: {result:?}");
    // Users of only the library have no command.
    let hint = error.hint.unwrap_or_else(|| panic!("{code} has no hint"));
    assert!(!hint.contains("`ralph "), "{code}: {hint}");
}

#[test]
fn a_run_that_hit_a_limit_continues_with_a_larger_one() {
    let raise = |agent: &LoopAgent, change: BudgetChange| agent.handle().set_limits(change).unwrap();
    let temp = tempfile::tempdir().unwrap();
    let dear = |before: u32, sandbox: &dyn Sandbox| {
        part(before, sandbox);
        Ok(report(SessionEnd::Completed, spends(2.0, 50)))
    };
    let limits = Limits::default();
    let fresh = |name: &str| builder(&temp.path().join(name), dear);

    let agent = fresh("iterations").limits(limits.max_iterations(1)).build().unwrap();
    let more = BudgetChange { max_iterations: Some(3), ..BudgetChange::default() };
    goes_on(&agent, ErrorCode::MaxIterations, 2, || raise(&agent, more));

    let agent = fresh("cost").limits(limits.max_cost(1.5)).build().unwrap();
    let more = BudgetChange { max_cost: Some(Usd::from_dollars(9.0)), ..BudgetChange::default() };
    goes_on(&agent, ErrorCode::MaxCost, 2, || raise(&agent, more));

    let agent = fresh("tokens").limits(limits.max_tokens(20)).build().unwrap();
    let more = BudgetChange { max_tokens: Some(900), ..BudgetChange::default() };
    goes_on(&agent, ErrorCode::MaxTokens, 2, || raise(&agent, more));

    let clock = Arc::new(FakeClock::default());
    let passing = Arc::clone(&clock);
    let slow = move |before: u32, sandbox: &dyn Sandbox| {
        passing.pause(Duration::from_secs(3600));
        Ok(part(before, sandbox))
    };
    let agent = builder(&temp.path().join("time"), slow)
        .clock(clock)
        .limits(limits.timeout(Duration::from_secs(600)))
        .build()
        .unwrap();
    let more = BudgetChange { max_seconds: Some(36_000), ..BudgetChange::default() };
    goes_on(&agent, ErrorCode::Timeout, 2, || raise(&agent, more));
}

#[test]
fn a_run_continues_after_a_missing_sandbox_or_program_is_fixed() {
    let temp = tempfile::tempdir().unwrap();
    let broken = |before: u32, sandbox: &dyn Sandbox| match before {
        0 => Err(SandboxError::Broken("the machine is gone".into())),
        n => Ok(part(n, sandbox)),
    };
    let agent = builder(&temp.path().join("sandbox"), broken).build().unwrap();
    goes_on(&agent, ErrorCode::SandboxInitFailed, 1, || ());

    let missing = |before: u32, sandbox: &dyn Sandbox| match before {
        0 => Err(SandboxError::CannotStart { program: "coder".into(), reason: "there is none".into() }),
        n => Ok(part(n, sandbox)),
    };
    let agent = builder(&temp.path().join("program"), missing).build().unwrap();
    goes_on(&agent, ErrorCode::IterationFailed, 1, || ());
}

/// After the user fixes a folder that couldn't be created, the same agent can run: it kept its parts.
#[test]
fn a_run_starts_after_unwritable_records_are_fixed() {
    let temp = tempfile::tempdir().unwrap();
    let agent = builder(temp.path(), |before, sandbox| Ok(part(before, sandbox))).build().unwrap();
    std::fs::write(temp.path().join("records"), "a file in the way").unwrap();
    for _ in 0..2 {
        let result = block_on(agent.run());
        let error = result.error.clone().unwrap();
        assert!(result.recoverable(), "{result:?}");
        assert!(
            error.code == ErrorCode::StorageFailed || error.code == ErrorCode::SandboxInitFailed,
            "{error:?}"
        );
        assert!(!error.hint.unwrap_or_default().contains("`ralph "), "{}", error.message);
    }
    std::fs::remove_file(temp.path().join("records")).unwrap();
    let result = block_on(agent.run());
    assert!(result.success, "{result:?}");

    let agent = builder(&temp.path().join("b"), |before, sandbox| Ok(part(before, sandbox))).build().unwrap();
    std::fs::create_dir(temp.path().join("b")).unwrap();
    std::fs::write(temp.path().join("b/repo"), "a file in the way").unwrap();
    let result = block_on(agent.run());
    assert_eq!(
        result.error.as_ref().map(|error| (error.code, error.recoverable)),
        Some((ErrorCode::StorageFailed, true)),
        "{result:?}"
    );
    std::fs::remove_file(temp.path().join("b/repo")).unwrap();
    let result = block_on(agent.run());
    assert!(result.success, "{result:?}");
}

#[test]
fn agents_that_are_all_refused_end_a_run_for_good_and_it_says_so() {
    let temp = tempfile::tempdir().unwrap();
    let refused = |_, _: &dyn Sandbox| {
        Ok(report(SessionEnd::Auth { reason: "the key has expired".into() }, Usage::free()))
    };
    let agent = builder(temp.path(), refused).build().unwrap();
    for _ in 0..2 {
        let result = block_on(agent.run());
        assert_eq!(result.reason, EndReason::Error);
        assert!(result.summary.contains("the key has expired"), "{result:?}");
        assert_promise(&result, ErrorCode::AuthFailed, false, None);
    }
}

#[test]
fn a_stuck_run_asks_and_in_the_end_is_stuck_for_good() {
    let temp = tempfile::tempdir().unwrap();
    let same = |_, sandbox: &dyn Sandbox| {
        write(sandbox, "result.txt", "never\nand\nnever\n");
        Ok(report(SessionEnd::Completed, Usage::free()))
    };
    let agent = builder(temp.path(), same).build().unwrap();
    let first = block_on(agent.run());
    assert_promise(&first, ErrorCode::NeedsHuman, true, Some(first.iterations + 1));
    let last = (0..20).map(|_| block_on(agent.run())).find(|result| result.reason != EndReason::NeedsHuman);
    let last = last.unwrap();
    assert_eq!(last.reason, EndReason::Stuck, "{last:?}");
    assert_promise(&last, ErrorCode::Stuck, false, None);
}

#[test]
fn proven_work_is_pushed_to_its_branch() {
    let temp = tempfile::tempdir().unwrap();
    let agent = builder(temp.path(), |before, sandbox| Ok(part(before, sandbox)))
        .branch("work")
        .publish(Publish::Push)
        .push_to(GitRemote { url: "memory://there".into(), login: None })
        .build()
        .unwrap();
    let result = block_on(agent.run());
    assert!(result.success && result.branch.as_deref() == Some("work"), "{result:?}");
    let events = agent.handle().record().unwrap().follow(Seq(0)).poll().unwrap();
    let mut pushed = events.iter().filter_map(|event| match &event.body {
        EventBody::Pushed(pushed) => pushed.commit.as_ref().map(|_| pushed.branch.as_str()),
        _ => None,
    });
    assert_eq!(pushed.next_back(), Some("work"), "{events:?}");
}

/// The notices in the journal of an agent's run.
fn notices(agent: &LoopAgent) -> Vec<String> {
    let events = agent.handle().record().unwrap().follow(Seq(0)).poll().unwrap();
    let notices = events.into_iter().filter_map(|event| match event.body {
        EventBody::Notice { message } => Some(message),
        _ => None,
    });
    notices.collect()
}

#[test]
fn a_run_continues_after_waiting_for_missing_advice() {
    struct Gone(Arc<AtomicU32>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let temp = tempfile::tempdir().unwrap();
    let gone = Arc::new(AtomicU32::new(0));
    let dropped = Arc::clone(&gone);
    let same_then_done = |before: u32, sandbox: &dyn Sandbox| {
        let text = if before < 4 { "never\nand\nnever\n" } else { "done\nand\ntested\n" };
        write(sandbox, "result.txt", text);
        Ok(report(SessionEnd::Completed, Usage::free()))
    };
    let agent = builder(temp.path(), same_then_done)
        .on_stuck(move |_| {
            let held = Gone(Arc::clone(&dropped));
            async move {
                let _held = held;
                std::future::pending::<Option<String>>().await
            }
        })
        .on_stuck_timeout(Duration::from_millis(1))
        .build()
        .unwrap();
    let result = block_on(agent.run());
    assert!(result.success, "{result:?}");
    let told = notices(&agent);
    let late = told.iter().filter(|one| one.contains("`on_stuck` gave no answer within")).count();
    assert!(late > 0, "{told:?}");
    assert_eq!(gone.load(Ordering::SeqCst) as usize, late, "an unawaited run is dropped");
}

#[test]
fn advice_that_panics_suspends_the_run() {
    let temp = tempfile::tempdir().unwrap();
    let same_then_done = |before: u32, sandbox: &dyn Sandbox| {
        let text = if before < 4 { "never\nand\nnever\n" } else { "done\nand\ntested\n" };
        write(sandbox, "result.txt", text);
        Ok(report(SessionEnd::Completed, Usage::free()))
    };
    let asked = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&asked);
    let agent = builder(temp.path(), same_then_done)
        .on_stuck(move |_| {
            let first = seen.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                assert!(!first, "the advisor is broken");
                Some("Turn around.".to_owned())
            }
        })
        .build()
        .unwrap();
    let first = block_on(agent.run());
    assert_promise(&first, ErrorCode::IterationFailed, true, Some(first.iterations + 1));
    assert!(first.summary.contains("the advisor is broken"), "{first:?}");
    let again = block_on(agent.resume_from(first.iterations + 1).unwrap());
    assert!(again.success, "{again:?}");
    assert_eq!(again.iterations, 5, "no session was done twice");
}

/// A file, a command, a closure and a metric: done when all of them hold, in any order.
#[test]
fn conditions_of_every_kind_hold_together() {
    use ralph_loop_task::config::{Better, MetricConfig};
    use ralph_loop_task::criterion::Pattern;
    let temp = tempfile::tempdir().unwrap();
    let judged: Arc<Mutex<Vec<bool>>> = Arc::default();
    let noted = Arc::clone(&judged);
    let session = |before: u32, sandbox: &dyn Sandbox| {
        // Each session adds one of them; the metric comes last.
        write(sandbox, "result.txt", if before < 1 { "half\nof\nit\n" } else { "done\nand\ntested\n" });
        if before >= 2 {
            write(sandbox, "DONE.md", "It is done.\n");
        }
        write(sandbox, "owner.txt", if before < 3 { "none\n" } else { "me\n" });
        write(sandbox, "speed.txt", if before < 4 { "p99 120 ms\n" } else { "p99 70 ms\n" });
        Ok(report(SessionEnd::Completed, Usage::free()))
    };
    // The metric's shell line, for a sandbox without a shell.
    let sandbox = MemorySandbox::new(|request, files| {
        let line = request.argv.last().filter(|_| request.argv.first().is_some_and(|word| word == "sh"))?;
        let shown = files.get(line.strip_prefix("cat ")?)?.to_vec();
        Some(ralph_loop_sandbox::memory::MemoryExit::prints(shown))
    });
    let p99 = MetricConfig::new(Pattern::parse("p99 ([0-9]+)").unwrap(), Better::Lower).target(80.0);
    let agent = over(temp.path(), &sandbox, session)
        .completion(Completion::file("DONE.md"))
        .completion(Completion::check("owner", move |place| {
            let noted = Arc::clone(&noted);
            async move {
                let mine = place.read("owner.txt").await?.unwrap_or_default() == b"me\n";
                noted.lock().unwrap().push(mine);
                if mine { Ok(()) } else { Err("it has no owner".to_owned()) }
            }
        }))
        .completion(Completion::metric("cat speed.txt", p99))
        .keep_best(true)
        .build()
        .unwrap();
    let result = block_on(agent.run());
    assert!(result.success, "{result:?}");
    assert_eq!(result.iterations, 5, "the last of the conditions decides: {result:?}");
    let best = agent.handle().status().unwrap().best.unwrap();
    assert_eq!((best.value, best.target), (70.0, Some(80.0)));
    let judged = judged.lock().unwrap();
    assert!(judged.contains(&false) && judged.ends_with(&[true]), "{judged:?}");
}
