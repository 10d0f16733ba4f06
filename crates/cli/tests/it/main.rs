//! Tests of the binary `ralph`, in one program, so that it's linked once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it tried"
)]

mod action;
mod alarms;
mod archive;
mod bad_input;
mod boundary;
mod branching;
mod broken_places;
mod completion;
mod control;
mod daily;
mod deploy;
mod detach;
mod dialects;
mod elsewhere;
mod embedded;
mod escapes;
mod examples;
mod fleet;
mod fuzz;
mod handover;
mod handover_torture;
mod in_place;
mod limits;
mod log;
mod mcp;
mod model_agents;
mod models;
mod neighbours;
mod neighbours_torture;
mod notify;
mod older;
mod output_safety;
mod partial_clones;
mod placing;
mod plan;
mod proof;
mod prove;
mod real_agents;
mod real_story;
mod run_loop;
mod sandbox;
mod sandboxed_browser;
mod schemas;
mod secrets;
mod serve;
mod tasks;
mod terminal_ui;
mod tools;
mod torture;
mod trust;
mod version;

/// The program under test.
const RALPH: &str = env!("CARGO_BIN_EXE_ralph");
