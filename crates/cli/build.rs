//! How the binary is linked.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a build script talks to cargo")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    // A large binary has tens of thousands of addresses of its own tables. Where it may lie anywhere they are set at every start,
    // and 600 kB of each process are its own: twice that for a run, whose guard is the same binary. At one place they stand in the
    // file and all processes share them. Stack, heap and libraries lie elsewhere each time all the same.
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
