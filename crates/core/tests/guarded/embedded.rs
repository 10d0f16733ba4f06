//! Another program drives runs, with real processes: two at once, in two threads and two repos; and one that it
//! drops and resumes.
#![allow(clippy::disallowed_methods, reason = "a test sets up repos")]

use nix::sys::prctl;
use ralph_loop_agents::ScriptedAgent;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_core::{
    CancelToken, Completion, Helpers, LoopAgent, LoopAgentBuilder, Refusals, Run, RunPorts,
};
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_domain::redact::Redactor;
use ralph_loop_git::{GitWorkspace, Repo, WorkspaceOptions};
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_journal::journal::RunPaths;
use ralph_loop_protocol::outcome::{EndReason, ErrorCode, RunResult};
use ralph_loop_protocol::proof::level::Watching;
use ralph_loop_sandbox::{LocalOptions, LocalSandbox};
use ralph_loop_task::config::{AgentConfig, ConfigFile};
use ralph_loop_task::spec::{RunSpec, Task, WorkspaceKind};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Barrier};
use std::task::Poll;

pub const TESTS: &[(&str, fn())] = &[
    ("two_runs_at_once_in_a_program_of_its_own", two_runs_at_once),
    ("a_run_dropped_in_a_session_ends_its_processes_and_is_resumed", dropped_in_a_session),
    ("a_push_that_fails_is_told_and_done_once_it_can_be", failed_push),
];

/// A program drops its run in the middle of a session with a running process, and exits; another program resumes the run.
fn dropped_in_a_session() {
    let temp = tempfile::tempdir().unwrap();
    let (root, records) = (temp.path().join("repo"), temp.path().join("records"));
    make_repo(&root);
    let script = r#"{"version": 1, "turns": [
        {"do": [{"run": {"argv": ["sh", "-c", "[ -e .git/again ] || { echo half > half.txt; echo $$ > .git/pid; exec sleep 600; }"]}},
                {"write": {"path": "result.txt", "content": "done\n"}}], "say": "All of it."}]}"#;
    let vars: ralph_loop_domain::vars::Vars = std::env::vars_os().collect();
    let run = ralph_loop_protocol::id::RunId::new("dropped");
    let ports = |builder: LoopAgentBuilder| {
        let repo = Repo::discover(&vars, &root).unwrap();
        let options = WorkspaceOptions::new(repo.identity(Some("A"), Some("a@example.com")));
        let config = AgentConfig::command("actor", &[]);
        builder
            .sandbox(LocalSandbox::start(&root, LocalOptions::new(run.as_str(), &vars)).unwrap())
            .workspace(GitWorkspace::new(repo, run.clone(), options).unwrap())
            .agent(ScriptedAgent::from_json(config, script).unwrap())
            .repo(&root)
            .records(&records)
            .vars(vars.clone())
            .completion(Completion::command("grep -q done result.txt"))
            .completion(Completion::check("own", |place| async move {
                let found = place.exec(&["grep", "-q", "done", "result.txt"]).await?;
                if found.success() { Ok(()) } else { Err("it is not done".to_owned()) }
            }))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let agent =
        ports(LoopAgent::builder().task("# A task\n\nMake it done.").baseline(false)).build().unwrap();
    let sleeper = runtime.block_on(async {
        let mut running = Box::pin(agent.run());
        loop {
            let ended = std::future::poll_fn(|cx| Poll::Ready(running.as_mut().poll(cx).is_ready())).await;
            assert!(!ended, "it ended without a signal");
            let written = std::fs::read_to_string(root.join(".git/pid")).unwrap_or_default();
            if let Ok(pid) = written.trim().parse::<u32>() {
                return pid;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        // The future is dropped here.
    });
    runtime.block_on(agent.handle().rested());
    assert!(!Path::new(&format!("/proc/{sleeper}")).exists(), "what the session had started is gone");
    let state = agent.handle().record().unwrap().state().unwrap();
    assert_eq!((state.iterations.count, state.people.suspended_by.is_some()), (0, true));
    drop(agent);
    // The sandbox's guard ends with the last thread that holds it.
    let mine = format!("/proc/{0}/task/{0}/children", std::process::id());
    while !std::fs::read_to_string(&mine).unwrap().is_empty() {
        std::thread::yield_now();
    }

    std::fs::write(root.join(".git/again"), "").unwrap();
    let again = ports(LoopAgent::builder().resume(run.clone())).build().unwrap();
    let result = runtime.block_on(again.run());
    assert!(result.success, "{result:?}");
    assert_eq!((result.iterations, result.run_id.as_ref()), (1, Some(&run)));
    assert_eq!(result.watched, Some(Watching::NotWatched), "a closure's commands aren't watched");
    assert!(result.diff.contains("+half") && result.diff.contains("+done"), "{}", result.diff);
}

fn two_runs_at_once() {
    // The first thread makes libc claim a signal, in any program.
    std::thread::spawn(|| {}).join().unwrap();
    let before = process();
    let temp = tempfile::tempdir().unwrap();
    // The first session of each run waits for the other's, so that both run at the same time.
    let meet = Arc::new(Barrier::new(2));
    let runs = ["left", "right"].map(|name| {
        let (folder, meet) = (temp.path().join(name), Arc::clone(&meet));
        std::thread::spawn(move || {
            std::fs::create_dir(&folder).unwrap();
            let run = open(&folder, name);
            meet.wait();
            ralph_loop_core::driver::drive(run)
        })
    });
    let results = runs.map(|run| run.join().unwrap());
    for (name, result) in ["left", "right"].into_iter().zip(&results) {
        assert_proven(&temp.path().join(name).join("repo"), name, result);
    }
    let changed: Vec<_> = process().into_iter().filter(|line| !before.contains(line)).collect();
    assert_eq!(changed, Vec::<String>::new(), "the process is as it was");
    let mine = format!("/proc/{0}/task/{0}/children", std::process::id());
    assert_eq!(std::fs::read_to_string(mine).unwrap(), "", "nothing runs any more");
}

/// What is proven cannot be pushed: the run waits, and the same agent hands it over once the name is free.
fn failed_push() {
    let temp = tempfile::tempdir().unwrap();
    let (root, there) = (temp.path().join("repo"), temp.path().join("there.git"));
    make_repo(&root);
    let git = |folder: &Path, args: &[&str]| {
        let done = Command::new("git").arg("-C").arg(folder).args(args).output().unwrap();
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    git(&root, &["checkout", "-q", "-b", "work"]);
    // Another user's work exists there under the same name.
    git(temp.path(), &["init", "-q", "--bare", "there.git"]);
    make_repo(&temp.path().join("other"));
    std::fs::write(temp.path().join("other/theirs.txt"), "theirs\n").unwrap();
    git(&temp.path().join("other"), &["add", "."]);
    git(
        &temp.path().join("other"),
        &["-c", "user.name=B", "-c", "user.email=b@example.com", "commit", "-q", "-m", "theirs"],
    );
    git(&temp.path().join("other"), &["push", "-q", &there.display().to_string(), "HEAD:work"]);
    let script = r#"{"version": 1, "turns": [
        {"do": [{"write": {"path": "result.txt", "content": "done\n"}}], "say": "All of it."}]}"#;
    let vars: ralph_loop_domain::vars::Vars = std::env::vars_os().collect();
    let run = ralph_loop_protocol::id::RunId::new("pushed");
    let repo = Repo::discover(&vars, &root).unwrap();
    let mut options = WorkspaceOptions::new(repo.identity(Some("A"), Some("a@example.com")));
    options.branch = Some("work".into());
    let agent = LoopAgent::builder()
        .sandbox(LocalSandbox::start(&root, LocalOptions::new(run.as_str(), &vars)).unwrap())
        .workspace(GitWorkspace::new(repo, run, options).unwrap())
        .agent(ScriptedAgent::from_json(AgentConfig::command("actor", &[]), script).unwrap())
        .task("# A task\n\nMake it done.")
        .repo(&root)
        .records(temp.path().join("records"))
        .vars(vars)
        .completion(Completion::command("grep -q done result.txt"))
        .baseline(false)
        .branch("work")
        .publish(ralph_loop_task::config::Publish::Push)
        .push_to(ralph_loop_domain::ports::GitRemote { url: there.display().to_string(), login: None })
        .build()
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let refused = runtime.block_on(agent.run());
    let error = refused.error.clone().unwrap();
    assert_eq!((error.code, error.recoverable), (ErrorCode::GitPushFailed, true), "{refused:?}");
    assert!(!error.hint.unwrap_or_default().contains("`ralph "), "{refused:?}");
    let next = refused.resume_from().unwrap();
    git(&there, &["update-ref", "-d", "refs/heads/work"]);
    let handed = runtime.block_on(agent.resume_from(next).unwrap());
    assert!(handed.success, "{handed:?}");
    assert_eq!((handed.iterations, git(&there, &["show", "work:result.txt"]).as_str()), (1, "done\n"));
}

/// Everything that makes a run, in `folder`, put together by hand.
fn open(folder: &Path, name: &str) -> Run {
    let root = folder.join("repo");
    make_repo(&root);
    let (state, other) = (folder.join("state"), if name == "left" { "right" } else { "left" });
    // Each says where it worked, and looks for its neighbour.
    let script = format!(
        r#"{{"version": 1, "turns": [
            {{"do": [{{"run": {{"argv": ["sh", "-c", "echo $RALPH_RUN > half.txt; sleep 0.2"]}}}}], "say": "Half of it."}},
            {{"do": [{{"write": {{"path": "result.txt", "content": "{name} is done\n"}}}}], "say": "<promise>COMPLETE</promise>"}}]}}"#
    );
    let config = ConfigFile::parse(&format!(
        r#"{{"agents": [{{"name": "actor", "kind": "scripted", "script": "s.json"}}], "isolation": "none",
            "verifiers": [{{"name": "tests", "command_argv": ["sh", "-c", "grep -q '{name} is done' result.txt && grep -qv {other} half.txt"]}}],
            "max_iterations": 5}}"#
    ))
    .unwrap();
    let spec = RunSpec {
        version: 1,
        spec_version: 1,
        run_id: name.into(),
        created_at: SystemClock::default().now(),
        task: Task::from_prompt("# A task\n\nMake it done.\n", "PROMPT.md").unwrap(),
        settings: ralph_loop_task::config::Settings { baseline: false, ..config.resolve() },
        place: WorkspaceKind::InPlace,
        workspace: root.clone(),
        origin: root.clone(),
        branch: None,
        config_digest: None,
        handed_to: None,
        forked_from: None,
        unproven_runs: Vec::new(),
    };
    let agent = ScriptedAgent::from_json(spec.settings.agents.first().unwrap().clone(), &script).unwrap();
    let vars: ralph_loop_domain::vars::Vars = std::env::vars_os().collect();
    let repo = Repo::discover(&vars, &root).unwrap();
    let options = WorkspaceOptions::new(repo.identity(Some("A"), Some("a@example.com")));
    let dir = RalphDir::of(&root);
    let parts = RunPorts {
        places: RunPaths {
            dir: dir.run(&spec.run_id),
            seal: Some(state.join("seal.jsonl")),
            elsewhere: None,
        },
        cooldowns: dir.cooldowns(),
        home: dir.clone(),
        dir,
        proof_dir: state.join("proof"),
        baseline_cache: None,
        sandbox: Box::new(LocalSandbox::start(&root, LocalOptions::new(name, &vars)).unwrap()),
        workspace: Box::new(GitWorkspace::new(repo, spec.run_id.clone(), options).unwrap()),
        installed: Vec::new(),
        agents: vec![Box::new(agent)],
        custom_checks: BTreeMap::new(),
        clock: Arc::new(SystemClock::default()),
        redactor: Arc::new(Redactor::default()),
        observers: Vec::new(),
        cancel: Arc::new(CancelToken::default()),
        helpers: Helpers::default(),
        refusals: Refusals::default(),
        forge: None,
        push_to: None,
        notifiers: Vec::new(),
        keeper: None,
        machine: Some("m1".into()),
        version: Some("embedded 1".into()),
        vars,
    };
    Run::create(spec, parts).unwrap()
}

fn make_repo(root: &Path) {
    let git = |args: &[&str]| {
        let done = Command::new("git").arg("-C").arg(root).args(args).output().unwrap();
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    std::fs::create_dir(root).unwrap();
    git(&["init", "-q", "-b", "main"]);
    std::fs::write(root.join(".gitignore"), "/.ralph/\n").unwrap();
    git(&["add", "."]);
    git(&["-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "start"]);
}

fn assert_proven(root: &Path, name: &str, result: &RunResult) {
    assert_eq!((result.success, result.reason), (true, EndReason::Completed), "{result:?}");
    assert_eq!(result.iterations, 2);
    let run = RalphDir::of(root).run(&name.into());
    let events = std::fs::read_to_string(run.events()).unwrap();
    assert!(events.contains("\"kind\":\"proof_finished\""), "{events}");
    let half = std::fs::read_to_string(root.join("half.txt")).unwrap();
    assert_eq!(half.trim(), name, "its commands carry its own mark");
}

/// What a library could change of the process behind its back.
fn process() -> Vec<String> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).unwrap();
    let kept = ["SigIgn:", "SigCgt:", "SigBlk:", "Umask:", "NoNewPrivs:", "Seccomp:"];
    let mut found: Vec<String> = read("status")
        .lines()
        .filter(|line| kept.iter().any(|name| line.starts_with(name)))
        .map(str::to_owned)
        .collect();
    found.extend([read("limits"), read("oom_score_adj"), read("comm")]);
    found.push(std::env::current_dir().unwrap().display().to_string());
    found.push(format!("orphans come here: {}", prctl::get_child_subreaper().unwrap()));
    found.extend(std::env::vars().map(|(name, value)| format!("{name}={value}")));
    found
}
