//! The program outside of the workspace (`scripts/package --outside` builds it from the packages alone), in short: the same code,
//! built with the workspace.
//!
//! It plays the guard of its own sandboxes, so it has its own `main`, which speaks as much of libtest as `cargo test` and
//! `cargo nextest` ask for.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program of its own, which fails by panicking"
)]

#[path = "../../testkit/outside/src/main.rs"]
mod outside;

const NAME: &str = "a_program_outside_brings_its_own_sandbox_and_runs_two_agents";

fn main() {
    // Where this program plays the guard, it does not come back.
    ralph_sandbox::init();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if has("--list") {
        if !has("--ignored") {
            println!("{NAME}: test");
        }
        return;
    }
    let wanted: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    if wanted.is_empty() || wanted.iter().any(|want| NAME.contains(want.as_str())) {
        outside::main();
        println!("test {NAME} ... ok");
    }
}
