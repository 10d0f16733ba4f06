//! An async closure decides when the task is done: here, when a file has three lines and a command agrees.
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use ralph_loop_agents::ScriptedAgent;
use ralph_loop_core::{Completion, LoopAgent};
use ralph_loop_sandbox::memory::{MemorySandbox, MemoryWorkspace};
use ralph_loop_task::config::AgentConfig;
use std::error::Error;

const SCRIPT: &str = r#"{"version": 1, "turns": [
    {"do": [{"write": {"path": "list.txt", "content": "one\n"}}], "say": "A beginning."},
    {"do": [{"write": {"path": "list.txt", "content": "one\ntwo\nthree\n"}}], "say": "All three."}]}"#;

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let temp = tempfile::tempdir()?;
    let sandbox = MemorySandbox::default();
    let agent = LoopAgent::builder()
        .workspace(MemoryWorkspace::new(&sandbox))
        .sandbox(sandbox)
        .agent(ScriptedAgent::from_json(AgentConfig::command("writer", &[]), SCRIPT)?)
        .task("Write three lines into list.txt.")
        .repo(temp.path().join("repo"))
        .records(temp.path().join("records"))
        .completion(Completion::check("three lines", |place| async move {
            let text = place.read("list.txt").await?.unwrap_or_default();
            let lines = text.iter().filter(|byte| **byte == b'\n').count();
            if lines < 3 {
                return Err(format!("list.txt has {lines} of 3 lines"));
            }
            let found = place.exec(&["grep", "three", "list.txt"]).await?;
            if found.success() { Ok(()) } else { Err("`three` is missing".to_owned()) }
        }))
        .build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let result = runtime.block_on(agent.run());
    println!("{}", result.summary);
    assert!(result.success && result.iterations == 2, "{result:?}");
    Ok(())
}
