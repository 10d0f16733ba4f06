//! A number as the goal: iterations improve it until it reaches its target. The median of five measurements counts, and
//! `keep_best` undoes changes that make it worse.
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use ralph_loop_agents::ScriptedAgent;
use ralph_loop_core::{Completion, LoopAgent};
use ralph_loop_sandbox::memory::{MemoryExit, MemorySandbox, MemoryWorkspace};
use ralph_loop_task::config::{AgentConfig, Better, MetricConfig};
use ralph_loop_task::criterion::Pattern;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

const SCRIPT: &str = r#"{"version": 1, "turns": [
    {"do": [{"write": {"path": "steps.txt", "content": "900\n"}}], "say": "A better loop."},
    {"do": [{"write": {"path": "steps.txt", "content": "1500\n"}}], "say": "A cache, which made it worse."},
    {"do": [{"write": {"path": "steps.txt", "content": "400\n"}}], "say": "Another algorithm."}]}"#;

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let temp = tempfile::tempdir()?;
    let measured = AtomicU64::new(0);
    // `bench` prints the program's time with a little noise, as real measurements do.
    let sandbox = MemorySandbox::new(move |request, files| {
        if request.argv.join(" ") != "sh -c bench" {
            return None;
        }
        let steps: u64 =
            String::from_utf8_lossy(files.get("steps.txt").unwrap_or(b"2000")).trim().parse().unwrap_or(2000);
        let trembles = measured.fetch_add(7, Ordering::Relaxed) % 5;
        Some(MemoryExit::prints(format!("took {} steps\n", steps + trembles)))
    });
    let metric =
        MetricConfig::new(Pattern::parse("took ([0-9]+) steps")?, Better::Lower).target(500.0).repeat(5);
    let agent = LoopAgent::builder()
        .workspace(MemoryWorkspace::new(&sandbox))
        .sandbox(sandbox)
        .agent(ScriptedAgent::from_json(AgentConfig::command("writer", &[]), SCRIPT)?)
        .task("Let it take at most 500 steps.")
        .repo(temp.path().join("repo"))
        .records(temp.path().join("records"))
        .completion(Completion::metric("bench", metric))
        .keep_best(true)
        .on_update(|status| {
            if let Some(best) = &status.best {
                println!("iteration {}: best {}", status.iteration, best.words());
            }
        })
        .build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let result = runtime.block_on(agent.run());
    println!("{}", result.summary);
    assert!(result.success && result.iterations == 3, "{result:?}");
    let back = agent.handle().history()?.into_iter().find(|one| one.number == 2);
    println!("the second iteration: {:?}", back.map(|one| one.verdict));
    Ok(())
}
