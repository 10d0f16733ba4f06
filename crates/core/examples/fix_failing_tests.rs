//! An agent works in a real repo, sandbox and git history until the tests pass.
//!
//! This agent is a script, so that the example runs offline. Use `ralph_loop_agents::CliAgent` for an installed CLI, or
//! `ralph_loop_agents::ToolsAgent` for a model.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example prints and reads its environment"
)]

use ralph_loop_agents::ScriptedAgent;
use ralph_loop_core::{Completion, Limits, LoopAgent};
use ralph_loop_domain::vars::Vars;
use ralph_loop_git::{GitWorkspace, Repo, WorkspaceOptions};
use ralph_loop_protocol::id::RunId;
use ralph_loop_sandbox::{LocalOptions, LocalSandbox};
use ralph_loop_task::config::AgentConfig;
use std::error::Error;
use std::path::Path;
use std::process::Command;

const SCRIPT: &str = r#"{"version": 1, "turns": [
    {"do": [{"write": {"path": "sum.sh", "content": "echo $(($1 + $2 + 1))\n"}}], "say": "It adds."},
    {"do": [{"write": {"path": "sum.sh", "content": "echo $(($1 + $2))\n"}}], "say": "Off by one, fixed."}]}"#;

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    // A local sandbox starts this program again as its guard.
    ralph_loop_sandbox::init();
    let temp = tempfile::tempdir()?;
    let repo = temp.path().join("repo");
    make_repo(&repo)?;
    let vars: Vars = std::env::vars_os().collect();
    let git = Repo::discover(&vars, &repo)?;
    let run = RunId::new("example");
    let options = WorkspaceOptions::new(git.identity(Some("Example"), Some("example@example.com")));
    let agent = LoopAgent::builder()
        .run_id(run.clone())
        .workspace(GitWorkspace::new(git, run.clone(), options)?)
        .sandbox(LocalSandbox::start(&repo, LocalOptions::new(run.as_str(), &vars))?)
        .agent(ScriptedAgent::from_json(AgentConfig::command("writer", &[]), SCRIPT)?)
        .task("# Let `sum.sh` add\n\n`sh test.sh` shows whether it does.")
        .repo(&repo)
        .records(temp.path().join("records"))
        .completion(Completion::command("sh test.sh"))
        .limits(Limits::default().max_iterations(5))
        .vars(vars)
        .build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let result = runtime.block_on(agent.run());
    println!("{}: {}", if result.success { "proven" } else { "not proven" }, result.summary);
    println!("{}", result.diff);
    assert!(result.success && result.iterations == 2, "{result:?}");
    Ok(())
}

fn make_repo(repo: &Path) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir(repo)?;
    std::fs::write(repo.join("sum.sh"), "echo \"$1\"\n")?;
    std::fs::write(repo.join("test.sh"), "[ \"$(sh sum.sh 2 3)\" = 5 ] && [ \"$(sh sum.sh 4 4)\" = 8 ]\n")?;
    for args in [
        &["init", "-q", "-b", "main"][..],
        &["add", "."],
        &["-c", "user.name=Example", "-c", "user.email=example@example.com", "commit", "-q", "-m", "start"],
    ] {
        if !Command::new("git").arg("-C").arg(repo).args(args).status()?.success() {
            return Err(format!("git {args:?} failed").into());
        }
    }
    Ok(())
}
