//! A program that is not `ralph` and drives runs: two at a time, in two threads and two repos, with real processes.
//!
//! It plays the guard of its own sandboxes (`ralph_sandbox::init`), so it has its own `main`, which speaks as much of
//! libtest as `cargo test` and `cargo nextest` ask for.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test fails by panicking; this is its own harness and sets up repos"
)]

use nix::sys::prctl;
use ralph_agents::ScriptedAgent;
use ralph_core::clock::SystemClock;
use ralph_core::{CancelFlag, Driver, DriverParts, Helpers, Refusals};
use ralph_domain::config::ConfigFile;
use ralph_domain::outcome::{EndReason, RunResult};
use ralph_domain::ports::Clock as _;
use ralph_domain::redact::Redactor;
use ralph_domain::spec::{RunSpec, Task, WorkspaceKind};
use ralph_git::{GitWorkspace, Repo, WorkspaceOptions};
use ralph_journal::journal::Places;
use ralph_journal::layout::RalphDir;
use ralph_sandbox::{LocalOptions, LocalSandbox};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::{Arc, Barrier};

const NAME: &str = "two_runs_at_once_in_a_program_of_its_own";

fn main() -> ExitCode {
    ralph_sandbox::init();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if has("--list") {
        if !has("--ignored") {
            println!("{NAME}: test");
        }
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    if wanted.is_empty() || wanted.iter().any(|want| NAME.contains(want.as_str())) {
        two_runs_at_once();
        println!("test {NAME} ... ok");
    }
    ExitCode::SUCCESS
}

fn two_runs_at_once() {
    // The first thread makes libc claim a signal of its own, in any program.
    std::thread::spawn(|| {}).join().unwrap();
    let before = process();
    let temp = tempfile::tempdir().unwrap();
    // The first session of each run waits for the other's, so that both are under way at the same time.
    let meet = Arc::new(Barrier::new(2));
    let runs = ["left", "right"].map(|name| {
        let (folder, meet) = (temp.path().join(name), Arc::clone(&meet));
        std::thread::spawn(move || {
            std::fs::create_dir(&folder).unwrap();
            let driver = drive(&folder, name);
            meet.wait();
            driver.run()
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

/// Everything that makes a run, in `folder`, put together by hand.
fn drive(folder: &Path, name: &str) -> Driver {
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
        settings: ralph_domain::config::Settings { baseline: false, ..config.resolve() },
        place: WorkspaceKind::InPlace,
        workspace: root.clone(),
        origin: root.clone(),
        branch: None,
        config_digest: None,
        handed_to: None,
        forked_from: None,
        left_work: Vec::new(),
    };
    let agent = ScriptedAgent::from_json(spec.settings.agents.first().unwrap().clone(), &script).unwrap();
    let vars: ralph_domain::vars::Vars = std::env::vars_os().collect();
    let repo = Repo::discover(&vars, &root).unwrap();
    let options = WorkspaceOptions::new(repo.identity(Some("A"), Some("a@example.com")));
    let dir = RalphDir::of(&root);
    let parts = DriverParts {
        places: Places {
            dir: dir.run(&spec.run_id),
            seal: Some(state.join("seal.jsonl")),
            spare: None,
            elsewhere: None,
        },
        cooldowns: dir.cooldowns(),
        home: dir.clone(),
        dir,
        proof_dir: state.join("proof"),
        baseline_cache: None,
        sandbox: Box::new(LocalSandbox::start(&root, LocalOptions::new(name, &vars)).unwrap()),
        workspace: Box::new(GitWorkspace::new(repo, spec.run_id.clone(), options).unwrap()),
        agents: vec![Box::new(agent)],
        custom_checks: BTreeMap::new(),
        clock: Arc::new(SystemClock::default()),
        redactor: Arc::new(Redactor::default()),
        observers: Vec::new(),
        cancel: Arc::new(CancelFlag::default()),
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
    Driver::create(spec, parts).unwrap()
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
