//! Daily use of the real binary: from one sentence to a change in the user's own checkout, and the cleanup.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

mod apply;
mod clean;
mod edge_cases;
mod first_run;
mod installed_dependencies;
mod linked_agents;
mod memory;
mod merging;
mod next_commands;
mod onboarding;
mod pitfalls;
mod plans;
mod progress;
mod resume;
mod workspaces;

use crate::RALPH;
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use std::path::Path;

/// The output of a `claude` that ends with this text.
fn claude_says(words: &str) -> String {
    let text = serde_json::to_string(&format!("{words}\n\n<promise>COMPLETE</promise>")).unwrap();
    format!(
        "cat <<'END'\n{{\"type\":\"assistant\",\"message\":{{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":{text}}}]}}}}\n{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":{text},\"total_cost_usd\":0.02,\"modelUsage\":{{\"opus\":{{\"inputTokens\":10,\"outputTokens\":5,\"costBasis\":\"list\"}}}},\"usage\":{{\"input_tokens\":10,\"output_tokens\":5}}}}\nEND\n"
    )
}

/// Adds a program to the test machine's `PATH`.
fn program(env: &TestEnv, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let bin = env.path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs `ralph` with only the system's programs and those of [`program`].
fn ralph_in(env: &TestEnv, folder: &Path, args: &[&str]) -> Finished {
    TestEnv::finish(env.ralph_command(folder, args).env("PATH", path(env)))
}

fn path(env: &TestEnv) -> String {
    format!("{}:/usr/bin:/bin", env.path("bin").display())
}

/// A repo whose unittest expects `calc.x` to be 2.
fn calc(env: &TestEnv) -> TestRepo<'_> {
    let test = "import unittest, calc\nclass T(unittest.TestCase):\n    def test_x(self):\n        self.assertEqual(calc.x, 2)\n";
    let files = [("calc.py", "x = 1\n"), ("test_calc.py", test), (".gitignore", "__pycache__/\n")];
    TestRepo::new(env, "repo", &files)
}

/// A `claude` that fixes the test of [`calc`] and adds a file.
fn capable_claude(env: &TestEnv) {
    let says = claude_says("Set `calc.x` to two. The test expected that.");
    program(
        env,
        "claude",
        &format!("cat > prompt.seen\nrm prompt.seen\necho 'x = 2' > calc.py\necho new > added.txt\n{says}"),
    );
}
