//! Checks that the list of variables contains every name in the code that looks like one.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use ralph_loop_app::variables::{is_known, of_dotenv};
use regex_lite::Regex;
use std::path::{Path, PathBuf};

/// Words of the same form that aren't variables, or that no code reads.
const OTHERS: &[&str] = &[
    // Names from other programs.
    "CHANGES_REQUESTED",
    "CHERRY_PICK_HEAD",
    "EXIT_SUCCESS",
    "GH_TOKEN",
    "GITHUB_APP",
    "GIT_AUTHOR_IDENT",
    "GTEST_SKIP",
    "IMAGE_SAFETY",
    "MAX_ITERATIONS",
    "MAX_TOKENS",
    "MERGE_HEAD",
    "OUT_DIR",
    "PROHIBITED_CONTENT",
    "RATE_LIMITED",
    "REVERT_HEAD",
    "SYS_ADMIN",
    "SCREAMING_SNAKE_CASE",
    "NO_CI",
    "OUTPUT_OPTION",
    "TARGET_ARCH",
    // Error codes.
    "AUTH_FAILED",
    "BROWSER_FAILED",
    "CLONE_FAILED",
    "GIT_PUSH_FAILED",
    "INVALID_INPUT",
    "ITERATION_FAILED",
    "MAX_COST",
    "NEEDS_HUMAN",
    "PROCESS_FAILED",
    "SANDBOX_INIT_FAILED",
    "STORAGE_FAILED",
    // Agents read these themselves, from a repo's files.
    "ANTHROPIC_BEDROCK_BASE_URL",
    "ANTHROPIC_VERTEX_BASE_URL",
    "CLAUDE_CODE_DISABLE",
    "CLAUDE_CODE_MAX",
    "GEMINI_MODEL",
    "GOOGLE_VERTEX_BASE_URL",
    "MAX_THINKING_TOKENS",
    "OPENCODE_DISABLE",
    // Names that mark a value as secret.
    "API_KEY",
    "DATABASE_URL",
    "MYSQL_PWD",
    // These load code into a program: need approval, never read.
    "DYLD_INSERT_LIBRARIES",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LD_AUDIT",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    // These make a program run a command: followed by the guard, never read.
    "APP_ENV",
    "CARGO_TARGET",
    "CVS_RSH",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
    "IFS",
    "KUBE_EDITOR",
    "MIX_ENV",
    "NODE_ENV",
    "PROMPT_COMMAND",
    "RACK_ENV",
    "RAILS_ENV",
    "RSYNC_RSH",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "SUDO_ASKPASS",
    "SVN_EDITOR",
    "SVN_SSH",
    "SYSTEMD_EDITOR",
    "TAR_OPTIONS",
    // Parts of names that mark a secret for the guard.
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "SIGNING_KEY",
    // From this build, and from an escape test.
    "CARGO_PKG_VERSION",
    "RALPH_BUILD_COMMIT",
    "BAIT_TOKEN",
];

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.to_str().is_some_and(|name| name.ends_with(".rs") && !name.ends_with("tests.rs")) {
            files.push(path);
        }
    }
}

#[test]
fn every_variable_in_the_code_is_listed() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&crates).unwrap().flatten() {
        // Tests and test tools have their own variables.
        if entry.file_name() != "testkit" {
            sources(&entry.path().join("src"), &mut files);
        }
    }
    assert!(files.len() > 300, "the sources were not found");
    let words = Regex::new(r#""([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)_?""#).unwrap();
    let reads = Regex::new(r#"\.(?:get|get_os|filled|is_filled)\("([A-Z][A-Z0-9_]*)"\)"#).unwrap();
    let mut wrong = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let named = words.captures_iter(line).chain(reads.captures_iter(line));
            for name in named.map(|found| found.get(1).unwrap().as_str()) {
                let read_of_map = name == "HEAD";
                if !is_known(name)
                    && !is_known(&format!("{name}_"))
                    && !OTHERS.contains(&name)
                    && !read_of_map
                {
                    wrong.push(format!("{name} in {}", file.display()));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "variables that crates/app/src/variables.rs does not name:\n  {}",
        wrong.join("\n  ")
    );
}

#[test]
fn the_example_dotenv_names_the_allowed_variables() {
    let text = include_str!("../../../.env.example");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let names: Vec<&str> = lines.map(|line| line.split_once('=').unwrap().0).collect();
    assert!(names.len() >= 12, "{names:?}");
    assert_eq!(names.iter().find(|name| of_dotenv(name).is_none()), None);
}
