//! The loop as other programs embed it: built, awaited, watched, steered, dropped and awaited again.

use crate::support::{FnAgent, PROMISE, completed, write};
use ralph_loop_core::handle::AgentState;
use ralph_loop_core::{Completion, ContextFile, Limits, LoopAgent, LoopAgentBuilder};
use ralph_loop_domain::ports::{
    Agent, AgentRequests, AgentResources, GitRemote, ProcessInfo, ReleaseWhen, Sandbox, SandboxError,
    SessionReport, SessionRequest, SessionSink,
};
use ralph_loop_protocol::control::BudgetChange;
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::id::{AgentName, RunId};
use ralph_loop_protocol::money::{Usage, Usd};
use ralph_loop_protocol::outcome::{EndReason, ErrorCode};
use ralph_loop_sandbox::memory::{MemorySandbox, MemoryWorkspace};
use ralph_loop_task::config::{AgentConfig, AgentKind, Better, MetricConfig, Publish};
use ralph_loop_task::criterion::Pattern;
use std::future::Future;
use std::ops::ControlFlow;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

type Session = dyn Fn(&SessionRequest<'_>, &dyn Sandbox) -> (SessionEnd, String) + Send + Sync;

/// An agent whose sessions are `session`, over a machine in memory.
fn builder(temp: &Path, session: Arc<Session>) -> LoopAgentBuilder {
    let sandbox = MemorySandbox::default();
    let repo = temp.join("repo");
    std::fs::create_dir_all(&repo).unwrap();
    LoopAgent::builder()
        .workspace(MemoryWorkspace::new(&sandbox))
        .sandbox(sandbox)
        .agent(FnAgent { name: AgentName::from("a"), session, tokens: vec!["to", "ken"], continues: false })
        .task("# A task\n\nMake it done.")
        .repo(repo)
        .records(temp.join("records"))
        .limits(Limits::default().max_iterations(6))
}

/// An agent with only a name.
fn named(name: &str) -> FnAgent {
    FnAgent {
        name: AgentName::from(name),
        session: Arc::new(two_sessions),
        tokens: Vec::new(),
        continues: false,
    }
}

fn grep() -> Completion {
    Completion::argv(["grep", "done", "result.txt"])
}

/// A number without a target.
fn seconds() -> MetricConfig {
    MetricConfig::new(Pattern::parse("([0-9.]+) s").unwrap(), Better::Lower)
}

/// Nothing in the first session, the work in the second.
fn two_sessions(request: &SessionRequest<'_>, sandbox: &dyn Sandbox) -> (SessionEnd, String) {
    let text = if request.iteration == 1 { "half\nof\nit\n" } else { "done\nand\ntested\n" };
    write(sandbox, "result.txt", text);
    completed(&format!("Wrote part {}.", request.iteration))
}

/// The same; records every prompt.
fn noting_prompts() -> (Arc<Mutex<Vec<String>>>, Arc<Session>) {
    let prompts: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&prompts);
    let session = move |request: &SessionRequest<'_>, sandbox: &dyn Sandbox| {
        seen.lock().unwrap().push(request.prompt.to_owned());
        two_sessions(request, sandbox)
    };
    (prompts, Arc::new(session))
}

#[test]
fn a_run_is_awaited_watched_and_remembered() {
    let temp = tempfile::tempdir().unwrap();
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let hear = |what: &'static str| {
        let heard = Arc::clone(&heard);
        move |more: String| heard.lock().unwrap().push(format!("{what} {more}"))
    };
    let (updates, completes, tokens) = (hear("update"), hear("complete"), hear("token"));
    let agent = builder(temp.path(), Arc::new(two_sessions))
        .completion(grep())
        .rule("Touch nothing else.")
        .context(ContextFile::new("notes.md", "The word is `done`."))
        .on_update(move |status| updates(format!("{} {:?}", status.iteration, status.state)))
        .on_complete(move |result| completes(result.iterations.to_string()))
        .on_token(move |token| tokens(token.to_owned()))
        .build()
        .unwrap();
    let handle = agent.handle();
    assert_eq!(handle.status().unwrap().state, AgentState::Initializing);
    let mut events = agent.events();
    let (result, kinds) = block_on(async {
        let mut running = pin!(agent.run());
        let mut kinds = Vec::new();
        let mut result = None;
        std::future::poll_fn(|cx| {
            if result.is_none()
                && let Poll::Ready(done) = running.as_mut().poll(cx)
            {
                result = Some(done);
            }
            loop {
                match futures_core::Stream::poll_next(pin!(&mut events).as_mut(), cx) {
                    Poll::Ready(Some(event)) => kinds.push(event.unwrap().body.kind()),
                    Poll::Ready(None) if result.is_some() => return Poll::Ready(()),
                    Poll::Ready(None) | Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
        (result.unwrap(), kinds)
    });
    assert!(result.success, "{result:?}");
    assert_eq!((result.reason, result.iterations), (EndReason::Completed, 2));
    assert!(result.diff.contains("+done"), "{}", result.diff);
    assert_eq!(result.agent_summary.as_deref(), Some("Wrote part 2."));
    assert_eq!(result.resume_from(), None);
    assert_eq!(kinds.first(), Some(&"run_created"));
    assert_eq!(kinds.last(), Some(&"finished"));
    let status = handle.status().unwrap();
    assert_eq!((status.state, status.id), (AgentState::Done, handle.run_id()));
    let history = handle.history().unwrap();
    assert_eq!(history.len(), 2);
    assert!(history[1].diff.contains("+done"));
    let heard = heard.lock().unwrap();
    assert!(heard.contains(&"update 1 Running".to_owned()), "{heard:?}");
    assert!(heard.contains(&"complete 2".to_owned()), "{heard:?}");
    // Reports a word only when it is complete, once in each session: half of one could be half of a secret.
    let told: Vec<_> = heard.iter().filter(|line| line.starts_with("token")).collect();
    assert_eq!(told, ["token token", "token token"], "{heard:?}");
    drop(heard);
    let record = handle.record().unwrap().state().unwrap();
    assert!(record.spec.task.text.contains("The word is `done`."));
    assert_eq!(record.spec.task.rules, ["Touch nothing else."]);
    let again = block_on(agent.run());
    assert_eq!((again.success, again.iterations), (true, 2), "a run that is over stays over");
}

/// Works until it is stopped in its first sessions; does the work in the next.
struct Patient {
    name: AgentName,
    waits: u32,
    sessions: Arc<AtomicU32>,
}

impl Agent for Patient {
    fn name(&self) -> &AgentName {
        &self.name
    }
    fn session(
        &self,
        request: &SessionRequest<'_>,
        sandbox: &dyn Sandbox,
        sink: &mut dyn SessionSink,
    ) -> Result<SessionReport, SandboxError> {
        let first = self.sessions.fetch_add(1, Ordering::SeqCst) < self.waits;
        let end = loop {
            match sink.poll() {
                ControlFlow::Break(cause) => break SessionEnd::Stopped { cause },
                ControlFlow::Continue(()) if first => std::thread::yield_now(),
                ControlFlow::Continue(()) => {
                    write(sandbox, "result.txt", "done\nand\ntested\n");
                    break SessionEnd::Completed;
                }
            }
        };
        let _ = request;
        Ok(SessionReport {
            end,
            final_message: PROMISE.into(),
            usage: Usage::free(),
            response: serde_json::Value::Null,
            duration: Duration::from_millis(1),
            exit_code: Some(0),
            survivors: 0,
            wishes: AgentRequests::default(),
        })
    }
    fn release_resources(&self, _: ReleaseWhen) {}
    fn resources(&self) -> AgentResources {
        let name = "server".to_owned();
        let process =
            ProcessInfo { name, command: "serve".into(), uptime_seconds: 3, url: None, ended: None };
        AgentResources { processes: vec![process], browsers: Vec::new() }
    }
}

fn patient(temp: &Path, waits: u32) -> (LoopAgent, Arc<AtomicU32>) {
    let sessions = Arc::new(AtomicU32::new(0));
    let sandbox = MemorySandbox::default();
    let repo = temp.join("repo");
    std::fs::create_dir_all(&repo).unwrap();
    let agent = LoopAgent::builder()
        .workspace(MemoryWorkspace::new(&sandbox))
        .sandbox(sandbox)
        .agent(Patient { name: "a".into(), waits, sessions: Arc::clone(&sessions) })
        .task("Make it done.")
        .repo(repo)
        .records(temp.join("records"))
        .completion(grep())
        .build()
        .unwrap();
    (agent, sessions)
}

/// Lets a future run until `until` holds, then drops it.
fn poll_until<F: Future>(future: F, until: impl Fn() -> bool) {
    block_on(async {
        let mut future = pin!(future);
        loop {
            let pending = std::future::poll_fn(|cx: &mut Context<'_>| {
                Poll::Ready(future.as_mut().poll(cx).is_pending())
            });
            assert!(pending.await, "it ended without help");
            if until() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn a_dropped_run_is_suspended_and_continues_when_awaited_again() {
    let temp = tempfile::tempdir().unwrap();
    let (agent, sessions) = patient(temp.path(), 1);
    let handle = agent.handle();
    block_on(handle.rested());
    poll_until(agent.run(), || sessions.load(Ordering::SeqCst) == 1);
    block_on(handle.rested());
    assert!(!handle.is_driven(), "a program may end now: the run is suspended");
    let result = block_on(agent.run());
    assert!(result.success, "{result:?}");
    let kinds: Vec<&str> = {
        let record = agent.handle().record().unwrap();
        record.follow(ralph_loop_protocol::id::Seq(0)).poll().unwrap().iter().map(|e| e.body.kind()).collect()
    };
    assert!(kinds.contains(&"suspended"), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "driver_started").count(), 2);
}

#[test]
fn a_run_is_stopped_at_once_and_says_so() {
    let temp = tempfile::tempdir().unwrap();
    let (agent, sessions) = patient(temp.path(), 1);
    let handle = agent.handle();
    let result = block_on(async {
        let stop = async {
            while sessions.load(Ordering::SeqCst) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(handle.is_driven());
            handle.force_stop().unwrap();
        };
        let mut running = pin!(agent.run());
        let mut stop = pin!(stop);
        let mut stopped = false;
        std::future::poll_fn(|cx| {
            stopped = stopped || stop.as_mut().poll(cx).is_ready();
            running.as_mut().poll(cx)
        })
        .await
    });
    assert_eq!((result.success, result.reason), (false, EndReason::Cancelled), "{result:?}");
    assert_eq!(handle.status().unwrap().state, AgentState::Stopped);
}

#[test]
fn controls_sent_before_the_run_exists_arrive() {
    let temp = tempfile::tempdir().unwrap();
    let (prompts, session) = noting_prompts();
    let agent =
        builder(temp.path(), session).completion(grep()).system_prompt("You are careful.").build().unwrap();
    agent.handle().nudge("Mind the gap.").unwrap();
    assert!(block_on(agent.run()).success);
    let prompts = prompts.lock().unwrap();
    assert!(prompts[0].contains("Mind the gap.") && prompts[0].starts_with("You are careful."));
    assert!(!prompts[1].contains("Mind the gap."));
}

#[test]
fn an_async_check_runs_on_the_callers_runtime_and_its_words_reach_the_next_session() {
    let temp = tempfile::tempdir().unwrap();
    let (prompts, session) = noting_prompts();
    let check = Completion::check("word", |context| async move {
        // Panics outside of a runtime.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let text = context.read("result.txt").await?.unwrap_or_default();
        let listed = context.list("").await?;
        let found = context.exec(&["grep", "done", "result.txt"]).await?;
        match found.success() {
            true => Ok(()),
            false => Err(format!("the word is not in {} bytes of {}", text.len(), listed.join(","))),
        }
    });
    let agent = builder(temp.path(), session).completion(check).baseline(false).build().unwrap();
    let result = block_on(agent.run());
    assert!(result.success, "{result:?}");
    let prompts = prompts.lock().unwrap();
    assert!(prompts[1].contains("the word is not in 11 bytes of result.txt"), "{}", prompts[1]);
}

#[test]
fn advice_of_an_async_closure_is_in_the_next_prompt() {
    let temp = tempfile::tempdir().unwrap();
    let prompts: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&prompts);
    let session = move |request: &SessionRequest<'_>, sandbox: &dyn Sandbox| {
        seen.lock().unwrap().push(request.prompt.to_owned());
        write(sandbox, "result.txt", "never\nand\nnever\n");
        completed("The same again.")
    };
    let agent = builder(temp.path(), Arc::new(session))
        .completion(grep())
        .on_stuck(|context| async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Some(format!("Stuck since {}: turn around.", context.iteration))
        })
        .build()
        .unwrap();
    let result = block_on(agent.run());
    assert!(!result.success);
    let prompts = prompts.lock().unwrap();
    assert!(prompts.iter().any(|prompt| prompt.contains("turn around.")), "{}", prompts.last().unwrap());
}

#[test]
fn a_limit_ends_a_run_and_a_larger_one_continues_it() {
    let temp = tempfile::tempdir().unwrap();
    let agent = builder(temp.path(), Arc::new(two_sessions))
        .completion(grep())
        .limits(Limits::default().max_iterations(1))
        .build()
        .unwrap();
    let result = block_on(agent.run());
    assert_eq!(result.reason, EndReason::MaxIterations);
    let error = result.error.clone().unwrap();
    assert_eq!(
        (error.code, error.recoverable, result.resume_from()),
        (ErrorCode::MaxIterations, true, Some(2))
    );
    assert_eq!(agent.resume_from(7).unwrap_err().code, ErrorCode::InvalidInput);
    agent.handle().set_limits(BudgetChange { max_iterations: Some(5), ..BudgetChange::default() }).unwrap();
    let result = block_on(agent.resume_from(2).unwrap());
    assert!(result.success, "{result:?}");
    assert_eq!(result.iterations, 2);
}

#[test]
fn another_process_takes_a_run_up_from_its_record() {
    let temp = tempfile::tempdir().unwrap();
    let run = RunId::new("r1");
    let sandbox = MemorySandbox::default();
    let session: Arc<Session> = Arc::new(two_sessions);
    let over = |builder: LoopAgentBuilder| {
        builder
            .workspace(MemoryWorkspace::new(&sandbox))
            .sandbox(sandbox.clone())
            .agent(FnAgent {
                name: AgentName::from("a"),
                session: Arc::clone(&session),
                tokens: Vec::new(),
                continues: false,
            })
            .repo(temp.path().join("repo"))
            .records(temp.path().join("records"))
            .completion(grep())
    };
    std::fs::create_dir_all(temp.path().join("repo")).unwrap();
    let first = over(LoopAgent::builder())
        .task("Make it done.")
        .run_id(run.clone())
        .limits(Limits::default().max_iterations(1));
    assert_eq!(block_on(first.build().unwrap().run()).reason, EndReason::MaxIterations);
    let again = over(LoopAgent::builder()).resume(run.clone()).build().unwrap();
    again.handle().set_limits(BudgetChange { max_iterations: Some(5), ..BudgetChange::default() }).unwrap();
    let result = block_on(again.run());
    assert!(result.success, "{result:?}");
    let other = over(LoopAgent::builder()).resume(run.clone()).model("another").build().unwrap_err();
    assert!(other.what.starts_with("`model` is given for run r1"), "{other}");
    let larger = over(LoopAgent::builder()).resume(run.clone()).limits(Limits::default());
    let refused = larger.build().unwrap_err().to_string();
    assert!(refused.starts_with("`limits` is given for run r1, which exists already\n"), "{refused}");
    let refused = over(LoopAgent::builder()).resume(run).task("Another one.").build().unwrap_err();
    assert!(
        refused.to_string().starts_with("`task` is given for run r1, which exists already\n"),
        "{refused}"
    );
}

#[test]
fn two_agents_in_one_process_and_one_folder_for_each() {
    let temp = tempfile::tempdir().unwrap();
    let (left, right) = (temp.path().join("left"), temp.path().join("right"));
    let agents = [&left, &right]
        .map(|folder| builder(folder, Arc::new(two_sessions)).completion(grep()).build().unwrap());
    let ends = block_on(async {
        let mut runs: Vec<_> = agents.iter().map(|agent| Box::pin(agent.run())).collect();
        let mut done: Vec<Option<bool>> = vec![None; runs.len()];
        std::future::poll_fn(|cx| {
            for (run, done) in runs.iter_mut().zip(&mut done) {
                if done.is_none()
                    && let Poll::Ready(result) = run.as_mut().poll(cx)
                {
                    *done = Some(result.success);
                }
            }
            if done.iter().all(Option::is_some) { Poll::Ready(done.clone()) } else { Poll::Pending }
        })
        .await
    });
    assert_eq!(ends, [Some(true), Some(true)]);
}

#[test]
fn a_second_run_in_the_same_folder_is_refused_while_the_first_is_driven() {
    let temp = tempfile::tempdir().unwrap();
    let (first, sessions) = patient(temp.path(), 1);
    poll_until(
        async {
            let mut running = pin!(first.run());
            let mut asked = false;
            std::future::poll_fn(|cx| {
                let polled = running.as_mut().poll(cx);
                if sessions.load(Ordering::SeqCst) == 1 && !asked {
                    asked = true;
                    let second =
                        builder(temp.path(), Arc::new(two_sessions)).completion(grep()).build().unwrap();
                    let refused = std::thread::spawn(move || block_on(second.run())).join().unwrap();
                    let error = refused.error.clone().unwrap();
                    assert_eq!((error.code, error.recoverable), (ErrorCode::SandboxInitFailed, true));
                    assert!(error.message.contains("is already working in this folder"), "{}", error.message);
                    sessions.store(9, Ordering::SeqCst);
                }
                polled
            })
            .await
        },
        || sessions.load(Ordering::SeqCst) == 9,
    );
}

/// Panics once.
fn breaks_once() -> impl Fn() + Send + Sync + 'static {
    let broke = AtomicU32::new(0);
    move || assert!(broke.fetch_add(1, Ordering::SeqCst) > 0, "it is broken")
}

/// The run is suspended cleanly, says why, and continues with the same agent.
fn assert_continues_after_a_panic(agent: &LoopAgent) {
    let result = block_on(agent.run());
    let error = result.error.clone().unwrap();
    assert_eq!((error.code, result.reason), (ErrorCode::IterationFailed, EndReason::Error), "{result:?}");
    assert!(error.message.contains("it is broken"), "{}", error.message);
    assert_eq!(result.run_id, agent.handle().run_id());
    let next = result.resume_from().unwrap();
    assert_eq!(next, result.iterations + 1);
    let again = block_on(agent.resume_from(next).unwrap());
    assert!(again.success, "{again:?}");
    assert_eq!(again.iterations, 2, "no session was done twice");
}

#[test]
fn a_closure_that_breaks_suspends_the_run_and_says_so() {
    let folders = [(); 4].map(|()| tempfile::tempdir().unwrap());
    let fresh = |at: usize| builder(folders[at].path(), Arc::new(two_sessions)).baseline(false);
    let on_event = breaks_once();
    let watched = fresh(0).completion(grep()).on_event(move |event| {
        if event.body.kind() == "session_ended" {
            on_event();
        }
    });
    assert_continues_after_a_panic(&watched.build().unwrap());
    let on_token = breaks_once();
    assert_continues_after_a_panic(
        &fresh(1).completion(grep()).on_token(move |_| on_token()).build().unwrap(),
    );
    // Also if it panics after a wait, on the task that awaits the run.
    let check = Arc::new(breaks_once());
    let checked = fresh(2).completion(grep()).completion(Completion::check("own", move |_| {
        let check = Arc::clone(&check);
        async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            check();
            Ok(())
        }
    }));
    assert_continues_after_a_panic(&checked.build().unwrap());
    let update = breaks_once();
    assert_continues_after_a_panic(
        &fresh(3).completion(grep()).on_update(move |_| update()).build().unwrap(),
    );
}

#[test]
fn a_panicking_port_ends_the_run_with_its_recorded_state() {
    let temp = tempfile::tempdir().unwrap();
    let session = |request: &SessionRequest<'_>, sandbox: &dyn Sandbox| {
        assert_eq!(request.iteration, 1, "the agent is broken");
        two_sessions(request, sandbox)
    };
    let agent = builder(temp.path(), Arc::new(session)).completion(grep()).build().unwrap();
    let result = block_on(agent.run());
    let error = result.error.clone().unwrap();
    assert!(error.message.contains("the agent is broken"), "{}", error.message);
    assert_eq!((result.iterations, result.resume_from()), (1, Some(2)), "{result:?}");
    assert_eq!(result.run_id, agent.handle().run_id());
    let again = block_on(agent.run());
    assert_eq!(again.error.clone().unwrap().code, ErrorCode::InvalidInput, "its parts are gone with it");
}

#[test]
fn a_check_that_never_ends_is_given_up_after_its_time() {
    let temp = tempfile::tempdir().unwrap();
    let (prompts, session) = noting_prompts();
    struct Gone(Arc<AtomicU32>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let gone = Arc::new(AtomicU32::new(0));
    let dropped = Arc::clone(&gone);
    let check = Completion::check("endless", move |_| {
        let held = Gone(Arc::clone(&dropped));
        async move {
            let _held = held;
            std::future::pending::<Result<(), String>>().await
        }
    });
    let agent = builder(temp.path(), session)
        .completion(check.timeout(Duration::from_millis(1)))
        .baseline(false)
        .limits(Limits::default().max_iterations(2))
        .build()
        .unwrap();
    let result = block_on(agent.run());
    assert_eq!(result.reason, EndReason::MaxIterations, "{result:?}");
    assert!(prompts.lock().unwrap()[1].contains("no end after"), "{}", prompts.lock().unwrap()[1]);
    assert_eq!(gone.load(Ordering::SeqCst), 2, "an unawaited run is dropped");
}

/// A late end of an earlier call doesn't affect the next one.
#[test]
fn a_call_that_is_dropped_late_ends_nothing_of_the_next() {
    let temp = tempfile::tempdir().unwrap();
    let asked = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&asked);
    let check = Completion::check("own", move |_| {
        seen.fetch_add(1, Ordering::SeqCst);
        async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(())
        }
    });
    let agent = builder(temp.path(), Arc::new(two_sessions))
        .completion(grep())
        .completion(check)
        .baseline(false)
        .limits(Limits::default().max_iterations(1))
        .build()
        .unwrap();
    let handle = agent.handle();
    let result = block_on(async {
        let mut first = Box::pin(agent.run());
        // Polled while it is driven, but not for its end.
        while handle.history().unwrap().is_empty() {
            std::future::poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx).is_pending())).await;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        handle.rested().await;
        let more = BudgetChange { max_iterations: Some(5), ..BudgetChange::default() };
        handle.set_limits(more).unwrap();
        let mut second = Box::pin(agent.run());
        std::future::poll_fn(|cx| Poll::Ready(second.as_mut().poll(cx).is_pending())).await;
        drop(first);
        second.await
    });
    assert!(result.success, "{result:?}");
    assert!(asked.load(Ordering::SeqCst) > 0);
}

#[test]
fn a_run_is_paused_resumed_and_stopped_by_its_handle() {
    let temp = tempfile::tempdir().unwrap();
    let agent = builder(temp.path(), Arc::new(two_sessions)).completion(grep()).build().unwrap();
    let handle = agent.handle();
    handle.pause().unwrap();
    let result = block_on(async {
        let mut running = pin!(agent.run());
        let mut paused = 0;
        std::future::poll_fn(|cx| {
            let polled = running.as_mut().poll(cx);
            if paused == 0
                && handle.record().is_some_and(|run| {
                    run.state()
                        .is_ok_and(|state| state.status() == ralph_loop_protocol::status::Status::Paused)
                })
            {
                paused = 1;
                assert_eq!(handle.status().unwrap().state, AgentState::Running);
                handle.stop().unwrap();
                handle.resume().unwrap();
            }
            if polled.is_pending() {
                cx.waker().wake_by_ref();
            }
            polled
        })
        .await
    });
    assert_eq!(result.reason, EndReason::Stopped, "{result:?}");
    assert_eq!(handle.status().unwrap().state, AgentState::Stopped);
}

/// Events come from the journal: the run doesn't wait for readers, and readers miss nothing.
#[test]
fn a_reader_that_is_slow_or_gone_holds_nothing_up_and_misses_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let agent = builder(temp.path(), Arc::new(two_sessions)).completion(grep()).build().unwrap();
    fn poll(stream: &mut ralph_loop_core::loop_agent::EventStream, cx: &mut Context<'_>) -> Option<u64> {
        match futures_core::Stream::poll_next(pin!(stream).as_mut(), cx) {
            Poll::Ready(Some(event)) => Some(event.unwrap().seq.0),
            Poll::Ready(None) | Poll::Pending => None,
        }
    }
    let mut slow = agent.events();
    let mut seen = Vec::new();
    let (result, gone) = block_on(async {
        let mut running = pin!(agent.run());
        let mut gone = 0;
        let result = std::future::poll_fn(|cx| {
            let polled = running.as_mut().poll(cx);
            // Reads one of many events, even if woken several times.
            if seen.is_empty() {
                seen.extend(poll(&mut slow, cx));
            }
            // Polled once, so that it waits to be woken, then dropped.
            let mut other = agent.events();
            gone += usize::from(poll(&mut other, cx).is_some());
            drop(other);
            polled
        })
        .await;
        (result, gone)
    });
    assert!(result.success && gone > 0 && seen == [1], "{seen:?} {result:?}");
    assert_eq!(slow.last().0, 1);
    block_on(std::future::poll_fn(|cx| {
        seen.extend(std::iter::from_fn(|| poll(&mut slow, cx)));
        Poll::Ready(())
    }));
    let last = agent.handle().record().unwrap().state().unwrap().seq.0;
    assert_eq!(seen, (1..=last).collect::<Vec<_>>(), "every event, once, in order");
    // Continues where the reader stopped, without repeating events.
    let mut rest = agent.events_after(ralph_loop_protocol::id::Seq(last - 2));
    let tail = block_on(std::future::poll_fn(|cx| {
        Poll::Ready(std::iter::from_fn(|| poll(&mut rest, cx)).collect::<Vec<_>>())
    }));
    assert_eq!(tail, [last - 1, last]);
}

#[test]
fn a_closure_that_breaks_at_the_end_takes_neither_the_result_nor_the_way_on() {
    let temp = tempfile::tempdir().unwrap();
    let agent = builder(temp.path(), Arc::new(two_sessions))
        .completion(grep())
        .limits(Limits::default().max_iterations(1))
        .on_error(|_| panic!("the callback is broken"))
        .on_complete(|_| panic!("so is this one"))
        .build()
        .unwrap();
    assert_eq!(block_on(agent.run()).reason, EndReason::MaxIterations);
    agent.handle().set_limits(BudgetChange { max_iterations: Some(5), ..BudgetChange::default() }).unwrap();
    let result = block_on(agent.run());
    assert!(result.success, "{result:?}");
    let mut events = pin!(agent.events());
    let mut last = None;
    let last = block_on(std::future::poll_fn(|cx| {
        loop {
            match futures_core::Stream::poll_next(events.as_mut(), cx) {
                Poll::Ready(Some(event)) => last = Some(event.unwrap()),
                Poll::Ready(None) => return Poll::Ready(last.take()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }));
    assert_eq!(last.unwrap().body.kind(), "finished", "the stream ends with the run");
}

#[test]
fn invalid_settings_are_refused_before_creating_anything() {
    let temp = tempfile::tempdir().unwrap();
    let fresh = || builder(temp.path(), Arc::new(two_sessions));
    let refused = |builder: LoopAgentBuilder| builder.build().unwrap_err().to_string();
    let told = [
        (refused(LoopAgent::builder()), "`sandbox` is missing"),
        (refused(fresh()), "`completion` is missing"),
        (refused(fresh().completion(grep()).completion(grep())), "two conditions are called `tests`"),
        (
            refused(fresh().completion(grep()).publish(Publish::Pr)),
            "a pull request is requested, but there is no code host",
        ),
        (
            refused(fresh().completion(grep()).publish(Publish::Push)),
            "a push is requested, but there is nowhere to push to",
        ),
        (
            refused(
                fresh()
                    .completion(grep())
                    .publish(Publish::Push)
                    .push_to(GitRemote { url: "memory://there".into(), login: None }),
            ),
            "the work is to be pushed, but its branch has no name",
        ),
        (refused(fresh().completion(grep()).keep_best(true)), "`keep_best` is on, but nothing is measured"),
        (
            refused(fresh().completion(grep()).limits(Limits::default().max_iterations(0))),
            "the limits leave no room for a single session",
        ),
        (refused(fresh().completion(grep()).task("  \n")), "the task is empty"),
        (refused(fresh().completion(Completion::command(" "))), "the condition `tests` has no command"),
        (
            refused(fresh().completion(Completion::argv(Vec::<String>::new()))),
            "the condition `tests` has no command",
        ),
        (
            refused(fresh().completion(Completion::file("../DONE.md"))),
            "the file of the condition `file` cannot be part of the work",
        ),
        (refused(fresh().completion(grep().named(""))), "a condition has no name"),
        (
            refused(fresh().completion(Completion::metric("bench", seconds()))),
            "a number is measured, but nothing says how much is enough",
        ),
        (
            refused(fresh().completion(Completion::metric("bench", seconds().target(f64::NAN)))),
            "the target of `metric` isn't a number",
        ),
        (
            refused(fresh().completion(grep()).limits(Limits::default().max_cost(-1.0))),
            "`max_cost` is less than nothing, or no number",
        ),
        (
            refused(fresh().completion(grep()).limits(Limits::default().max_cost(f64::NAN))),
            "`max_cost` is less than nothing, or no number",
        ),
        (refused(fresh().completion(grep()).branch("a..b")), "the branch cannot be made"),
        (
            refused(fresh().completion(grep()).context(ContextFile::new("big", "x".repeat(60 * 1024)))),
            "the context has 60 kB",
        ),
        (refused(fresh().completion(grep()).run_id(RunId::new("../x"))), "the run's id cannot be used"),
        (
            refused(
                fresh()
                    .completion(grep())
                    .system_prompt("You are careful.")
                    .agent_with(AgentConfig::model("m", AgentKind::Actions, "x"), named("m")),
            ),
            "`system_prompt` would take the place of what tells `m` how to answer",
        ),
    ];
    assert_eq!(Limits::default().max_cost(f64::INFINITY).max_cost, Usd::MAX, "no limit, and not none at all");
    for (said, begins) in told {
        assert!(said.starts_with(begins), "{said}");
        assert_eq!(said.lines().count(), 3, "what failed, the cause, the next step: {said}");
    }
    assert!(!temp.path().join("records").exists());
}

#[test]
fn agent_processes_are_in_the_status() {
    let temp = tempfile::tempdir().unwrap();
    let (agent, sessions) = patient(temp.path(), u32::MAX);
    let handle = agent.handle();
    poll_until(agent.run(), || {
        // No session ends on its own: the user rotates the first one, and the processes it leaves alive are recorded.
        if sessions.load(Ordering::SeqCst) == 1 {
            handle.send(ralph_loop_protocol::control::Control::Rotate).unwrap();
        }
        handle.status().is_ok_and(|status| status.processes.iter().any(|one| one.name == "server"))
    });
    let rests = block_on(async {
        let mut events = agent.events();
        std::future::poll_fn(|cx| {
            loop {
                match futures_core::Stream::poll_next(pin!(&mut events).as_mut(), cx) {
                    Poll::Ready(Some(_)) => {}
                    Poll::Ready(None) => return Poll::Ready(true),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await
    });
    assert!(rests && handle.status().unwrap().processes.is_empty(), "nothing of it is left");
}
