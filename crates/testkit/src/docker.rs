//! The container engine of the tests.
#![allow(clippy::disallowed_methods, reason = "tests are a border, and start processes")]

use std::path::Path;
use std::process::Command;

/// The engine's URL; if none can run, the test is skipped with a message.
pub fn engine() -> Option<String> {
    match std::env::var("RALPH_TEST_DOCKER") {
        Ok(word) if word == "0" => {
            crate::skip("RALPH_TEST_DOCKER=0: no container engine");
            return None;
        }
        Ok(address) => return Some(address),
        Err(_) => {}
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/dockerd");
    let done = Command::new(script).arg("start").output().ok()?;
    let said = String::from_utf8_lossy(&done.stderr);
    if done.status.code() == Some(77) {
        crate::skip(said.trim());
        return None;
    }
    assert!(done.status.success(), "{said}");
    Some(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}
