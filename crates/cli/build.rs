//! How the binary is linked.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a build script talks to cargo")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    // A position-independent binary relocates tens of thousands of table addresses at every start, and each process then
    // has 600 kB of private memory; a run has twice that, because its guard is the same binary. At a fixed address they are
    // in the file and shared by all processes. Stack, heap and libraries are still randomized.
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
