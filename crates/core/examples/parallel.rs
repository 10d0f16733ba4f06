//! Several agents in one process, each in its own folder, on one current-thread runtime.
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use ralph_loop_agents::ScriptedAgent;
use ralph_loop_core::{Completion, LoopAgent};
use ralph_loop_sandbox::memory::{MemorySandbox, MemoryWorkspace};
use ralph_loop_task::config::AgentConfig;
use std::error::Error;
use std::path::Path;

fn agent(folder: &Path, name: &str) -> Result<LoopAgent, Box<dyn Error>> {
    let script = format!(
        r#"{{"version": 1, "turns": [{{"do": [{{"write": {{"path": "{name}.md", "content": "{name}\n"}}}}], "say": "Done."}}]}}"#
    );
    let sandbox = MemorySandbox::default();
    Ok(LoopAgent::builder()
        .workspace(MemoryWorkspace::new(&sandbox))
        .sandbox(sandbox)
        .agent(ScriptedAgent::from_json(AgentConfig::command("writer", &[]), &script)?)
        .task(format!("Write {name}.md."))
        .repo(folder.join(name))
        .records(folder.join("records"))
        .completion(Completion::file(format!("{name}.md")))
        .build()?)
}

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let temp = tempfile::tempdir()?;
    let agents = ["left", "middle", "right"].map(|name| agent(temp.path(), name));
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let results = runtime.block_on(async {
        // The futures are `Send`, so a runtime with several threads can distribute them.
        let runs: Vec<_> = agents.into_iter().map(|agent| Ok(tokio::spawn(agent?.run()))).collect();
        let runs: Result<Vec<_>, Box<dyn Error>> = runs.into_iter().collect();
        let mut results = Vec::new();
        for run in runs? {
            results.push(run.await?);
        }
        Ok::<_, Box<dyn Error>>(results)
    })?;
    for result in &results {
        println!("{:?}: {}", result.run_id, result.summary);
        assert!(result.success, "{result:?}");
    }
    Ok(())
}
