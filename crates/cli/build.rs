//! How the binary is linked.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a build script talks to cargo")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    // A large binary has tens of thousands of addresses that are set at its start. Packed they are a page or two to read instead
    // of a hundred and more, in every process of a run. Loaders know it since glibc 2.36.
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
