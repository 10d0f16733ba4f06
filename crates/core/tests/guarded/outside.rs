//! The program outside of the workspace (`scripts/package --outside` builds it from the packages alone), in short: the same code,
//! built with the workspace; the example with a sandbox of this machine; and what else needs one.
#![allow(clippy::disallowed_methods, reason = "a separate program, which fails by panicking")]

#[path = "../../examples/fix_failing_tests.rs"]
mod fix_failing_tests;
#[path = "../../../testkit/outside/src/main.rs"]
mod program;

use ralph_loop_agents::ScriptedAgent;
use ralph_loop_core::{Completion, Limits, LoopAgent, LoopAgentBuilder};
use ralph_loop_domain::vars::Vars;
use ralph_loop_git::{GitWorkspace, Repo, WorkspaceOptions};
use ralph_loop_protocol::id::RunId;
use ralph_loop_sandbox::{LocalOptions, LocalSandbox};
use ralph_loop_task::config::AgentConfig;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[(&str, fn())] = &[
    ("a_program_outside_brings_its_own_sandbox_and_runs_two_agents", program::main),
    ("fix_failing_tests_plays_to_its_end", || fix_failing_tests::main().expect("it plays to its end")),
    ("what_would_be_recorded_elsewhere_or_could_be_rewritten_is_refused", refused),
    ("a_dropped_run_leaves_no_process_and_goes_on_in_another_agent", dropped),
];

/// A repo with one commit, in a folder that is reached over a link.
fn repo(temp: &Path) -> PathBuf {
    let real = temp.join("real");
    std::fs::create_dir(&real).expect("a folder");
    std::os::unix::fs::symlink(&real, temp.join("link")).expect("a link");
    let repo = temp.join("link/repo");
    std::fs::create_dir(&repo).expect("a folder");
    for args in [&["init", "-q", "-b", "main"][..], &["commit", "-q", "--allow-empty", "-m", "start"]] {
        let mut git = Command::new("git");
        git.arg("-C").arg(&repo).args(["-c", "user.name=A", "-c", "user.email=a@example.com"]).args(args);
        assert!(git.status().expect("git").success(), "{args:?}");
    }
    repo
}

/// An agent over a sandbox of this machine and a history in git, which works for `work`.
fn builder(repo: &Path, work: &str) -> LoopAgentBuilder {
    let vars: Vars = std::env::vars_os().collect();
    let git = Repo::discover(&vars, repo).expect("a repo");
    let options = WorkspaceOptions::new(git.identity(Some("A"), Some("a@example.com")));
    let script = format!(
        r#"{{"version": 1, "turns": [{{"do": [{{"run": {{"argv": ["sh", "-c", "{work}"]}}}}], "say": "Done."}}]}}"#
    );
    LoopAgent::builder()
        .workspace(GitWorkspace::new(git, RunId::new("r1"), options).expect("a history"))
        .sandbox(LocalSandbox::start(repo, LocalOptions::new("r1", &vars)).expect("a sandbox"))
        .agent(ScriptedAgent::from_json(AgentConfig::command("a", &[]), &script).expect("a script"))
        .repo(repo)
        .completion(Completion::file("DONE.md"))
        .vars(vars)
}

fn refused() {
    let temp = tempfile::tempdir().expect("a folder");
    let repo = repo(temp.path());
    let fresh = || builder(&repo, "true").task("Write DONE.md.");
    let why = |builder: LoopAgentBuilder| builder.build().expect_err("it does not fit").what;
    for inside in ["link/repo/records", "real/repo/not/there/yet"] {
        let said = why(fresh().records(temp.path().join(inside)));
        assert!(said.starts_with("the records are in"), "{said}");
    }
    let fine = || fresh().records(temp.path().join("records"));
    assert_eq!(why(fine().run_id(RunId::new("r2"))), "the workspace records run r1, and this is run r2");
    assert_eq!(why(fine().branch("b")), "the branch of the workspace is none, and that of the run `b`");
    let agent = fine().build().expect("it fits");
    assert_eq!(agent.handle().run_id(), Some(RunId::new("r1")), "the workspace knows its run");
}

/// The first session starts what would never end; the future is dropped meanwhile, as is the agent.
fn dropped() {
    let temp = tempfile::tempdir().expect("a folder");
    let repo = repo(temp.path());
    let (records, mark) = (temp.path().join("records"), temp.path().join("began"));
    let work = format!(
        "if [ -e {0} ]; then echo done > DONE.md; else echo $$ > {0}; exec sleep 1000; fi",
        mark.display()
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
    let runtime = runtime.expect("a runtime");
    let begun = || std::fs::read_to_string(&mark).ok().filter(|text| text.ends_with('\n'));
    let first = builder(&repo, &work).task("Write DONE.md.").records(&records).baseline(false);
    let first = first.limits(Limits::default().max_tokens_per_iteration(7)).build().expect("it fits");
    let handle = first.handle();
    let pid = runtime.block_on(async {
        let run = tokio::spawn(first.run());
        let pid = loop {
            if let Some(pid) = begun() {
                break pid;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        run.abort();
        assert!(run.await.is_err_and(|error| error.is_cancelled()));
        handle.rested().await;
        pid
    });
    drop(first);
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "what the session had started is gone");
    let again = builder(&repo, &work).resume(RunId::new("r1")).records(&records).build().expect("it fits");
    let result = runtime.block_on(again.run());
    assert!(result.success && result.iterations == 1, "{result:?}");
    assert_eq!(result.work_ref.as_deref(), Some("refs/ralph/r1/work"));
    let state = again.handle().record().expect("a record").state().expect("a state");
    assert_eq!(state.spec.settings.agents[0].max_tokens_per_iteration, Some(7));
}
