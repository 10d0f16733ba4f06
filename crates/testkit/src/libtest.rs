//! The part of libtest that `cargo test` and `cargo nextest` need, for test programs with their own `main`.
#![allow(clippy::print_stdout, reason = "this is the harness of its tests")]
#![allow(clippy::disallowed_methods, reason = "a harness reads its own arguments")]

use std::process::ExitCode;

pub type Test<'a> = (&'a str, fn());

/// Lists these tests, or runs those that the arguments name.
pub fn run(tables: &[&[Test<'_>]]) -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    let tests = || tables.iter().copied().flatten();
    if has("--list") {
        // No test is ignored.
        for (name, _) in tests().filter(|_| !has("--ignored")) {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    for (name, test) in tests() {
        let fits = |want: &&String| if has("--exact") { want == name } else { name.contains(want.as_str()) };
        if wanted.is_empty() || wanted.iter().any(fits) {
            test();
            println!("test {name} ... ok");
        }
    }
    ExitCode::SUCCESS
}
