//! Runs the vendors' SDKs against our fakes, to show that the fakes are accurate.
#![allow(clippy::disallowed_methods, reason = "starts node")]

use ralph_loop_testkit::fake_daytona::FakeDaytona;
use ralph_loop_testkit::fake_e2b::FakeE2b;
use ralph_loop_testkit::fake_vercel::FakeVercel;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a script of `sdks/` with these variables; `None`, with a message, if that is impossible.
fn run(script: &str, variables: &[(&str, &str)]) -> Option<()> {
    if std::env::var("RALPH_VENDOR_SDKS").is_ok_and(|v| v == "0") {
        ralph_loop_testkit::skip("the vendors' SDKs: RALPH_VENDOR_SDKS=0");
        return None;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let installed =
        Command::new(here.join("../../scripts/prism")).arg("--sdks").stderr(Stdio::inherit()).output();
    let Some(installed) = installed.ok().filter(|output| output.status.success()) else {
        ralph_loop_testkit::skip("the vendors' SDKs cannot be installed here");
        return None;
    };
    let output = Command::new("node")
        .arg(here.join("tests/sdks").join(script))
        .env("SDKS", String::from_utf8(installed.stdout).unwrap().trim())
        .envs(variables.iter().copied())
        .env_remove("HTTP_PROXY")
        .env_remove("HTTPS_PROXY")
        .env_remove("http_proxy")
        .env_remove("https_proxy")
        .output()
        .unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && text.contains("the SDK is content"),
        "{script}: {}\n{text}",
        output.status
    );
    Some(())
}

#[test]
fn daytona() {
    let fake = FakeDaytona::start().unwrap();
    let variables = [
        ("FAKE_URL", fake.url()),
        ("FAKE_KEY", fake.key().to_owned()),
        ("DAYTONA_USE_DEPRECATED_POLLING", "true".into()),
    ];
    run("daytona.mjs", &variables.each_ref().map(|(name, value)| (*name, value.as_str())));
}

#[test]
fn e2b() {
    let fake = FakeE2b::start().unwrap();
    let variables = [
        ("E2B_API_URL", fake.url()),
        ("E2B_SANDBOX_URL", fake.url()),
        ("E2B_API_KEY", fake.key().to_owned()),
    ];
    run("e2b.mjs", &variables.each_ref().map(|(name, value)| (*name, value.as_str())));
}

#[test]
fn vercel() {
    let fake = FakeVercel::start().unwrap();
    let variables = [
        ("FAKE_URL", fake.url()),
        ("FAKE_TOKEN", fake.token().to_owned()),
        ("FAKE_TEAM", FakeVercel::TEAM.to_owned()),
        ("FAKE_PROJECT", FakeVercel::PROJECT.to_owned()),
    ];
    run("vercel.mjs", &variables.each_ref().map(|(name, value)| (*name, value.as_str())));
}
