//! Sends a run's events to another thread through a channel, and sends a hint while it runs.
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use ralph_loop_agents::ScriptedAgent;
use ralph_loop_core::{Completion, LoopAgent};
use ralph_loop_protocol::describe::describe;
use ralph_loop_sandbox::memory::{MemorySandbox, MemoryWorkspace};
use ralph_loop_task::config::AgentConfig;
use std::error::Error;
use std::sync::mpsc;

const SCRIPT: &str = r#"{"version": 1, "turns": [
    {"do": [{"write": {"path": "a.txt", "content": "a\n"}}], "say": "One of two."},
    {"do": [{"write": {"path": "DONE.md", "content": "done\n"}}], "say": "Both."}]}"#;

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let temp = tempfile::tempdir()?;
    let sandbox = MemorySandbox::default();
    let (tell, told) = mpsc::channel::<String>();
    let updates = tell.clone();
    let agent = LoopAgent::builder()
        .workspace(MemoryWorkspace::new(&sandbox))
        .sandbox(sandbox)
        .agent(ScriptedAgent::from_json(AgentConfig::command("writer", &[]), SCRIPT)?)
        .task("Write DONE.md.")
        .repo(temp.path().join("repo"))
        .records(temp.path().join("records"))
        .completion(Completion::file("DONE.md"))
        .on_event(move |event| {
            if let Some((_, sentence)) = describe(event) {
                let _ = tell.send(sentence);
            }
        })
        .on_update(move |status| {
            let _ =
                updates.send(format!("iteration {}, {}, {:?}", status.iteration, status.cost, status.state));
        })
        .build()?;
    agent.handle().nudge("Two files, and the second is DONE.md.")?;
    // The agent has the channel's other end, so dropping it closes the channel.
    let monitor = std::thread::spawn(move || told.into_iter().inspect(|line| println!("{line}")).count());
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let result = runtime.block_on(agent.run());
    assert!(result.success, "{result:?}");
    for iteration in agent.handle().history()? {
        println!("{}: {:?}", iteration.number, iteration.files_modified);
    }
    drop(agent);
    assert!(monitor.join().is_ok_and(|lines| lines > 5));
    Ok(())
}
