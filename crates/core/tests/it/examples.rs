//! Runs each of the library's examples to its end. (`fix_failing_tests` is also the guard of its sandbox, so it is
//! played in `outside.rs`.)
#![allow(dead_code, reason = "programs, and tests that fail by panicking")]

#[path = "../../examples/custom_completion.rs"]
mod custom_completion;
#[path = "../../examples/custom_tool.rs"]
mod custom_tool;
#[path = "../../examples/monitor.rs"]
mod monitor;
#[path = "../../examples/optimise.rs"]
mod optimise;
#[path = "../../examples/own_sandbox.rs"]
mod own_sandbox;
#[path = "../../examples/parallel.rs"]
mod parallel;

#[test]
fn custom_completion_plays_to_its_end() {
    custom_completion::main().unwrap();
}

#[test]
fn custom_tool_plays_to_its_end() {
    custom_tool::main().unwrap();
}

#[test]
fn monitor_plays_to_its_end() {
    monitor::main().unwrap();
}

#[test]
fn optimise_plays_to_its_end() {
    optimise::main().unwrap();
}

#[test]
fn own_sandbox_plays_to_its_end() {
    own_sandbox::main().unwrap();
}

#[test]
fn parallel_plays_to_its_end() {
    parallel::main().unwrap();
}
