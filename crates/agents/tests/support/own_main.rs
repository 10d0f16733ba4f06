//! The `main` of a test program that is its own guard: as much of libtest as `cargo test` and `cargo nextest` ask for.
#![allow(clippy::print_stdout, reason = "this is the harness of its tests")]

use std::process::ExitCode;

/// Lists these tests, or runs those that are asked for.
pub fn main(tests: &[(&str, fn())]) -> ExitCode {
    // The guard of a local sandbox is this program, too.
    ralph_loop_sandbox::init();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if has("--list") {
        // None of them is ignored.
        for (name, _) in tests.iter().filter(|_| !has("--ignored")) {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    for (name, test) in tests {
        let fits = |want: &&String| if has("--exact") { want == name } else { name.contains(want.as_str()) };
        if wanted.is_empty() || wanted.iter().any(fits) {
            test();
            println!("test {name} ... ok");
        }
    }
    ExitCode::SUCCESS
}
