//! The program outside of the workspace (`scripts/package --outside` builds it from the packages alone), in short: the same code,
//! built with the workspace; and the example with a sandbox of this machine.
//!
//! They play the guard of their own sandboxes, so this has its own `main`, which speaks as much of libtest as `cargo test` and
//! `cargo nextest` ask for.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program of its own, which fails by panicking"
)]

#[path = "../examples/fix_failing_tests.rs"]
mod fix_failing_tests;
#[path = "../../testkit/outside/src/main.rs"]
mod outside;

const TESTS: [(&str, fn()); 2] = [
    ("a_program_outside_brings_its_own_sandbox_and_runs_two_agents", outside::main),
    ("fix_failing_tests_plays_to_its_end", || fix_failing_tests::main().expect("it plays to its end")),
];

fn main() {
    // Where this program plays the guard, it does not come back.
    ralph_sandbox::init();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if has("--list") {
        for (name, _) in TESTS.iter().filter(|_| !has("--ignored")) {
            println!("{name}: test");
        }
        return;
    }
    let wanted: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    for (name, test) in TESTS {
        if wanted.is_empty() || wanted.iter().any(|want| name.contains(want.as_str())) {
            test();
            println!("test {name} ... ok");
        }
    }
}
