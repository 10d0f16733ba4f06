//! `ralph` as a library: runs that another program starts inside itself.

use crate::RALPH;
use ralph_loop_app::{App, Environment, ResumeOutcome, RunRequest, SilentReporter, Workplace};
use ralph_loop_core::{CancelToken, Completion};
use ralph_loop_protocol::outcome::{EndReason, ErrorCode};
use ralph_loop_task::config::Isolation;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A repo whose scripted agent writes down its variables at the same time as the agent of the other repo.
fn repo<'a>(env: &'a TestEnv, own: &str, other: &str) -> TestRepo<'a> {
    let repo = TestRepo::new(env, own, &[("PROMPT.md", "# Look around\n\nWrite `seen.txt`.\n")]);
    let marks = env.path("marks");
    std::fs::create_dir_all(&marks).unwrap();
    let (mine, theirs) = (marks.join(own), marks.join(other));
    let look = format!(
        "touch '{}'; i=0; while [ ! -e '{}' ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done; echo \"$VERCEL_PROJECT_ID\" > seen.txt",
        mine.display(),
        theirs.display()
    );
    let script = json!({ "version": 1, "turns": [
        { "do": [{ "run": { "argv": ["sh", "-c", look] } }], "say": "<promise>COMPLETE</promise>" }
    ] });
    repo.write(".ralph/agent.json", &script.to_string());
    let config = json!({
        "agents": [{ "name": "scripted", "kind": "scripted", "script": ".ralph/agent.json" }],
        "verifiers": [{ "name": "tests", "command_argv": ["sh", "-c", "grep -q 'of-' seen.txt"] }],
        "required_verifiers": ["tests"],
    });
    repo.write(".ralph/config.json", &config.to_string());
    repo.write(".env", &format!("VERCEL_PROJECT_ID=project-of-{own}\n"));
    repo.write(".git/info/exclude", ".env\n");
    repo
}

fn run(env: Environment, folder: PathBuf) -> EndReason {
    let app = App::new(env);
    let request = RunRequest { isolation: Some(Isolation::None), ..RunRequest::in_folder(folder) };
    let plan = app.prepare(&request, &SilentReporter).unwrap();
    let ResumeOutcome::Ready(run) =
        app.start(plan, Arc::new(CancelToken::default()), &SilentReporter).unwrap()
    else {
        panic!("a new run is ready to be driven");
    };
    let finished = run.run();
    let reason = finished.result.reason;
    finished.tidy_up();
    reason
}

#[test]
fn two_runs_in_one_process_keep_their_variables_apart() {
    let machine = TestEnv::new(RALPH);
    let (a, b) = (repo(&machine, "a", "b"), repo(&machine, "b", "a"));
    let env = Environment::new(machine.vars().into_iter().collect(), "/").with_program(Path::new(RALPH));
    let start = |folder: &Path| {
        let (env, folder) = (env.clone(), folder.to_owned());
        std::thread::spawn(move || run(env, folder))
    };
    let threads = [start(&a.dir), start(&b.dir)];
    for thread in threads {
        assert_eq!(thread.join().unwrap(), EndReason::Completed);
    }
    assert_eq!(a.read("seen.txt"), "project-of-a\n");
    assert_eq!(b.read("seen.txt"), "project-of-b\n");
    assert_eq!(env.vars().get("VERCEL_PROJECT_ID"), None, "the embedder's own environment is as it was");
}

/// Awaits a future on this thread, without a runtime.
fn block_on<F: std::future::Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::task::Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn embedded_agent_works_with_every_backend_and_continues_after_a_limit() {
    let machine = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&machine);
    let script = "echo \"work $RALPH_ITERATION\" > part.txt; echo \"Part $RALPH_ITERATION.\"";
    repo.configure(&[repo.agent("stub", script)], "test -f part.txt", &json!({ "completion": "checks" }));
    let env = Environment::new(machine.vars().into_iter().collect(), "/").with_program(Path::new(RALPH));
    let app = App::new(env);
    let mut request = RunRequest { isolation: Some(Isolation::None), ..RunRequest::in_folder(&repo.dir) };
    request.overrides.max_iterations = Some(1);
    let check = Completion::check("second", |place| async move {
        let text = String::from_utf8(place.read("part.txt").await?.unwrap_or_default()).unwrap();
        if text.contains('2') { Ok(()) } else { Err(format!("it says `{}`", text.trim())) }
    });
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let hear = Arc::clone(&heard);
    let agent =
        app.agent(&request, vec![check]).on_event(move |event| hear.lock().unwrap().push(event.body.kind()));
    let first = block_on(agent.run());
    assert_eq!(first.reason, EndReason::MaxIterations, "{first:?}");
    assert_eq!(first.resume_from(), Some(2));
    assert_eq!(heard.lock().unwrap().first(), Some(&"run_created"));
    let more = ralph_loop_protocol::control::BudgetChange { max_iterations: Some(4), ..Default::default() };
    agent.handle().set_limits(more).unwrap();
    let second = block_on(agent.run());
    assert!(second.success, "{second:?}");
    assert_eq!((second.iterations, &second.run_id), (2, &first.run_id));
    assert!(second.diff.contains("+work 2"), "{}", second.diff);
    let refused = block_on(app.agent(&RunRequest::in_folder("/nonexistent/x"), Vec::new()).run());
    assert!(!refused.success && refused.error.is_some(), "{refused:?}");
    // Cloning a missing folder fails; once the folder exists, the same agent starts.
    let from = machine.path("later");
    let place = Workplace::Clone { from: from.display().to_string(), depth: None, sparse: Vec::new() };
    let elsewhere = RunRequest { place, ..request };
    let agent = app.agent(&elsewhere, Vec::new());
    let missing = block_on(agent.run());
    let error = missing.error.clone().unwrap();
    assert_eq!((error.code, error.recoverable), (ErrorCode::CloneFailed, true), "{missing:?}");
    assert_eq!(missing.resume_from(), Some(1), "{missing:?}");
    repo.git(&["clone", "-q", ".", &from.display().to_string()]);
    let cloned = block_on(agent.run());
    assert_eq!(cloned.iterations, 1, "{cloned:?}");
}

/// A program that uses only the ports: it pushes the proven result and opens a pull request on a local code host.
#[test]
fn embedded_agent_pushes_the_proven_result_and_opens_a_pull_request() {
    let machine = TestEnv::new(RALPH);
    let repo = TestRepo::new(&machine, "repo", &[("README", "x\n")]);
    repo.git(&["checkout", "-q", "-b", "work"]);
    let vars: ralph_loop_domain::vars::Vars = machine.vars().into_iter().collect();
    let forge = ralph_loop_forge::LocalForge::open(&machine.path("host"), &vars).unwrap();
    repo.git(&["push", "-q", &forge.root().join("repo.git").display().to_string(), "HEAD:main"]);
    let run = ralph_loop_protocol::id::RunId::new("handed");
    let git = ralph_loop_git::Repo::discover(&vars, &repo.dir).unwrap();
    let mut options = ralph_loop_git::WorkspaceOptions::new(git.identity(Some("A"), Some("a@example.com")));
    options.branch = Some("work".into());
    let mut place = ralph_loop_sandbox::LocalOptions::new(run.as_str(), &vars);
    place.guard_exe = Some(RALPH.into());
    let script = r#"{"version": 1, "turns": [
        {"do": [{"write": {"path": "result.txt", "content": "done\n"}}], "say": "Wrote the result."}]}"#;
    let config = ralph_loop_task::config::AgentConfig::command("writer", &[]);
    let agent = ralph_loop_core::LoopAgent::builder()
        .workspace(ralph_loop_git::GitWorkspace::new(git, run.clone(), options).unwrap())
        .sandbox(ralph_loop_sandbox::LocalSandbox::start(&repo.dir, place).unwrap())
        .agent(ralph_loop_agents::ScriptedAgent::from_json(config, script).unwrap())
        .task("# Write the result\n\nInto `result.txt`.")
        .repo(&repo.dir)
        .records(machine.path("records"))
        .completion(Completion::command("grep -q done result.txt"))
        .vars(vars)
        .branch("work")
        .publish(ralph_loop_task::config::Publish::Pr)
        .pr_title("Result: {{task_summary}}")
        .forge(forge)
        .build()
        .unwrap();
    let result = block_on(agent.run());
    assert!(result.success, "{result:?}");
    assert!(result.pr_url.is_some() && result.branch.as_deref() == Some("work"), "{result:?}");
    let bare = machine.path("host/repo.git").display().to_string();
    let there = repo.git(&["--git-dir", &bare, "show", "work:result.txt"]);
    assert_eq!(there.trim(), "done");
    let pr = std::fs::read_to_string(machine.path("host/prs/1.json")).unwrap();
    assert!(pr.contains("Result: Write the result"), "{pr}");
}
