//! Architecture tests: allowed dependencies between crates, maximum file lengths, and documentation that covers the code.
#![allow(clippy::disallowed_methods, reason = "asks cargo for the crates of the workspace")]

mod attacks;
mod cycles;
mod file_calls;
mod path_lookups;

use ralph_loop_task::config::{AgentConfig, ConfigFile, VerifierConfig};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Maximum number of source files in a folder.
const FILES_MAX: usize = 15;
/// Folders that may have more until they are grouped.
const FULL_FOLDERS: [&str; 1] = ["crates/fleet/src"];
/// Maximum number of lines in a source file before its tests.
const LINES_MAX: usize = 800;
/// Files that may be longer. Keep it empty: split long files instead.
const LONG_FILES: &[&str] = &[];

/// One crate: the workspace crates that it may use, and those that only its tests may use.
struct Row {
    name: &'static str,
    uses: &'static [&'static str],
    tests_use: &'static [&'static str],
}

/// Crates depend only downward. `app` passes backends to `core`, so `core` depends on none of them.
/// `tui` and `server` never depend on each other; no crate depends on `cli`.
const ROWS: &[Row] = &[
    Row { name: "protocol", uses: &[], tests_use: &[] },
    Row { name: "safe-fs", uses: &[], tests_use: &[] },
    Row { name: "task", uses: &["protocol"], tests_use: &[] },
    Row { name: "proof", uses: &["task", "protocol", "safe-fs"], tests_use: &[] },
    Row { name: "domain", uses: &["task", "protocol"], tests_use: &[] },
    Row { name: "http", uses: &["domain", "task", "protocol"], tests_use: &[] },
    Row { name: "git", uses: &["domain", "task", "protocol", "safe-fs"], tests_use: &["testkit"] },
    Row {
        name: "journal",
        uses: &["git", "domain", "task", "proof", "protocol", "safe-fs"],
        tests_use: &["testkit"],
    },
    Row {
        name: "sandbox",
        uses: &["http", "git", "domain", "task", "proof", "protocol", "safe-fs"],
        tests_use: &["testkit"],
    },
    Row {
        name: "agents",
        uses: &["http", "git", "domain", "task", "proof", "protocol"],
        tests_use: &["sandbox", "testkit"],
    },
    Row { name: "providers", uses: &["http", "domain", "task", "protocol"], tests_use: &["testkit"] },
    Row { name: "notify", uses: &["http", "domain", "task", "protocol"], tests_use: &["testkit"] },
    Row {
        name: "forge",
        uses: &["http", "git", "domain", "task", "proof", "protocol"],
        tests_use: &["testkit"],
    },
    Row {
        name: "core",
        uses: &["journal", "git", "domain", "task", "proof", "protocol", "safe-fs"],
        tests_use: &["agents", "sandbox", "testkit"],
    },
    Row {
        name: "app",
        uses: &[
            "core",
            "journal",
            "git",
            "sandbox",
            "agents",
            "providers",
            "forge",
            "notify",
            "domain",
            "task",
            "proof",
            "protocol",
            "safe-fs",
        ],
        tests_use: &["testkit"],
    },
    Row { name: "hooks", uses: &["git", "domain", "task", "protocol", "safe-fs"], tests_use: &["testkit"] },
    Row {
        name: "mcp",
        uses: &["app", "core", "journal", "git", "domain", "task", "proof", "protocol"],
        tests_use: &["testkit"],
    },
    Row {
        name: "fleet",
        uses: &[
            "app", "core", "journal", "git", "http", "sandbox", "domain", "task", "proof", "protocol",
            "safe-fs",
        ],
        tests_use: &["testkit"],
    },
    Row {
        name: "server",
        uses: &[
            "fleet", "mcp", "app", "core", "journal", "git", "http", "domain", "task", "proof", "protocol",
            "safe-fs",
        ],
        tests_use: &["testkit"],
    },
    Row {
        name: "tui",
        uses: &["app", "core", "journal", "git", "http", "domain", "task", "proof", "protocol"],
        tests_use: &["testkit"],
    },
    Row {
        name: "cli",
        uses: &[
            "fleet",
            "hooks",
            "mcp",
            "server",
            "tui",
            "app",
            "core",
            "journal",
            "git",
            "sandbox",
            "agents",
            "providers",
            "forge",
            "notify",
            "domain",
            "task",
            "proof",
            "protocol",
            "safe-fs",
        ],
        tests_use: &["testkit"],
    },
    Row {
        name: "testkit",
        uses: &[
            "fleet",
            "app",
            "hooks",
            "server",
            "core",
            "journal",
            "git",
            "sandbox",
            "agents",
            "providers",
            "forge",
            "notify",
            "domain",
            "task",
            "proof",
            "protocol",
            "safe-fs",
        ],
        tests_use: &[],
    },
];

/// Crates of data and decisions.
const PURE: &[&str] = &["protocol", "task", "proof", "domain"];

/// Crates that start processes, run tasks, open sockets, read clocks or draw: pure crates must not use them.
const NOT_IN_PURE: &str = "tokio async-std smol futures rayon nix libc rustix duct subprocess signal-hook ctrlc reqwest hyper \
    ureq curl git2 gix getrandom rand chrono time tempfile walkdir notify dirs clap crossterm ratatui \
    axum sqlx rusqlite tracing";

/// A crate's manifest.
struct Crate {
    /// Without the common prefix.
    name: String,
    manifest: PathBuf,
    /// All shipped dependencies: normal and build.
    uses: BTreeSet<String>,
    tests_use: BTreeSet<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace has a root")
}

/// The crates of the workspace.
fn crates() -> Vec<Crate> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    packages.iter().map(read).collect()
}

fn read(package: &Value) -> Crate {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let mut found = Crate {
        name: short(&text(&package["name"])),
        manifest: PathBuf::from(text(&package["manifest_path"])),
        uses: BTreeSet::new(),
        tests_use: BTreeSet::new(),
    };
    for dependency in package["dependencies"].as_array().expect("a list of dependencies") {
        let name = text(&dependency["name"]);
        let of_tests = dependency["kind"] == "dev";
        if of_tests { &mut found.tests_use } else { &mut found.uses }.insert(name);
    }
    found
}

fn short(package: &str) -> String {
    package.strip_prefix("ralph-loop-").unwrap_or(package).to_owned()
}

/// The workspace crates among `names`, without the common prefix.
fn ours(names: &BTreeSet<String>) -> impl Iterator<Item = &str> {
    names.iter().filter_map(|name| name.strip_prefix("ralph-loop-"))
}

fn row(name: &str) -> &'static Row {
    ROWS.iter()
        .find(|row| row.name == name)
        .unwrap_or_else(|| panic!("crate `{name}` has no row in ROWS: add one"))
}

#[track_caller]
fn assert_none(wrong: &[String], rule: &str) {
    assert!(wrong.is_empty(), "{rule}\n  {}", wrong.join("\n  "));
}

#[test]
fn crates_depend_only_downward() {
    let mut wrong = Vec::new();
    for found in crates() {
        let row = row(&found.name);
        wrong.extend(
            ours(&found.uses)
                .filter(|used| !row.uses.contains(used))
                .map(|used| format!("{} -> {used}", found.name)),
        );
    }
    assert_none(&wrong, "arrows that the design does not have:");
}

#[test]
fn test_dependencies_follow_the_table() {
    let mut wrong = Vec::new();
    for found in crates() {
        let row = row(&found.name);
        let allowed = |used: &&str| row.uses.contains(used) || row.tests_use.contains(used);
        wrong.extend(
            ours(&found.tests_use)
                .filter(|used| !allowed(used))
                .map(|used| format!("tests of {} -> {used}", found.name)),
        );
    }
    assert_none(&wrong, "arrows of tests that the design does not have:");
}

#[test]
fn crate_table_has_no_cycle() {
    let uses: BTreeMap<&str, &[&str]> = ROWS.iter().map(|row| (row.name, row.uses)).collect();
    for row in ROWS {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&str> = row.uses.to_vec();
        while let Some(next) = open.pop() {
            assert_ne!(next, row.name, "`{}` reaches itself", row.name);
            if seen.insert(next) {
                open.extend(uses.get(next).copied().unwrap_or_default());
            }
        }
    }
}

#[test]
fn pure_crates_do_no_io_and_have_no_runtime() {
    let mut wrong = Vec::new();
    for found in crates().iter().filter(|found| PURE.contains(&found.name.as_str())) {
        let acts = found.uses.iter().filter(|used| NOT_IN_PURE.split_whitespace().any(|not| not == *used));
        wrong.extend(acts.map(|used| format!("{} -> {used}", found.name)));
    }
    assert_none(&wrong, "these crates say and decide, they do not act; they must not depend on:");
}

#[test]
fn every_crate_uses_the_workspace_lints() {
    let mut wrong = Vec::new();
    for found in crates() {
        let manifest = std::fs::read_to_string(&found.manifest).expect("a manifest can be read");
        let lints = manifest.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
        let keeps = lints
            .take_while(|line| !line.starts_with('['))
            .any(|line| line.replace(' ', "") == "workspace=true");
        if !keeps {
            wrong.push(found.name);
        }
    }
    assert_none(&wrong, "crates without `[lints] workspace = true`:");
}

/// `doctest = false` saves rustdoc's start for each crate without examples, and must not hide any.
#[test]
fn only_crates_without_examples_skip_doc_tests() {
    let mut wrong = Vec::new();
    for found in crates() {
        let manifest = std::fs::read_to_string(&found.manifest).expect("a manifest can be read");
        let mut files = Vec::new();
        collect(&found.manifest.parent().expect("a manifest has a folder").join("src"), &mut files);
        let examples = files
            .iter()
            .filter(|file| has_example(&std::fs::read_to_string(file).expect("a source file can be read")));
        if manifest.contains("doctest = false") && examples.count() > 0 {
            wrong.push(found.name);
        }
    }
    assert_none(&wrong, "crates with examples in doc comments, and `doctest = false`:");
}

/// Whether a doc comment opens a fence that rustdoc runs.
fn has_example(text: &str) -> bool {
    let mut open = false;
    text.lines().map(str::trim_start).any(|line| {
        let fence = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(tag) = fence.and_then(|rest| rest.trim().strip_prefix("```")) else { return false };
        open = !open;
        open && matches!(tag, "" | "rust" | "no_run" | "should_panic" | "compile_fail")
    })
}

#[test]
fn source_files_stay_short() {
    let root = root();
    let mut files = Vec::new();
    for found in crates() {
        collect(found.manifest.parent().expect("a manifest has a folder"), &mut files);
    }
    let mut wrong = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a source file can be read");
        let lines = lines_before_tests(&text);
        let name = file.strip_prefix(&root).unwrap_or(file).display().to_string();
        if lines > LINES_MAX && !LONG_FILES.contains(&name.as_str()) {
            wrong.push(format!("{name}: {lines} lines"));
        }
    }
    wrong.sort();
    assert_none(
        &wrong,
        &format!("files with more than {LINES_MAX} lines before their tests; each is two files:"),
    );
}

/// Checks that no folder has too many files to see which belong together.
#[test]
fn no_folder_is_too_full() {
    let root = root();
    let mut files = Vec::new();
    for found in crates() {
        collect(found.manifest.parent().expect("a manifest has a folder"), &mut files);
    }
    let mut folders = BTreeMap::<String, usize>::new();
    for file in &files {
        let folder = file.parent().and_then(|folder| folder.strip_prefix(&root).ok());
        *folders
            .entry(folder.map_or_else(String::new, |folder| folder.display().to_string()))
            .or_default() += 1;
    }
    let wrong: Vec<String> = folders
        .into_iter()
        .filter(|(folder, count)| *count > FILES_MAX && !FULL_FOLDERS.contains(&folder.as_str()))
        .map(|(folder, count)| format!("{folder}: {count} files"))
        .collect();
    assert_none(
        &wrong,
        &format!("folders with more than {FILES_MAX} source files; group what belongs together:"),
    );
}

/// Code shared by commands is in a module next to them: a command that imports another would create a cycle.
#[test]
fn no_command_imports_another() {
    let folder = root().join("crates/cli/src");
    let mut files = Vec::new();
    collect(&folder, &mut files);
    let mut wrong = Vec::new();
    for file in &files {
        let name = file.strip_prefix(&folder).unwrap_or(file).to_path_buf();
        let mut parts = name.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
        // The tree of arguments and the match over it name every command.
        let own = match (parts.next().as_deref(), parts.next(), parts.next()) {
            (Some("args.rs" | "dispatch.rs"), ..) | (Some("command"), _, None) => continue,
            (Some("command"), Some(group), Some(own)) => format!("{group}::{}", own.trim_end_matches(".rs")),
            _ => String::new(),
        };
        let text = std::fs::read_to_string(file).expect("a source file can be read");
        for (number, line) in text.lines().enumerate() {
            let named = line.split("crate::command::").skip(1).map(|rest| {
                let mut names =
                    rest.split(|c: char| c != '_' && !c.is_alphanumeric()).filter(|name| !name.is_empty());
                format!("{}::{}", names.next().unwrap_or_default(), names.next().unwrap_or_default())
            });
            wrong.extend(
                named
                    .filter(|command| *command != own)
                    .map(|command| format!("{}:{} -> {command}", name.display(), number + 1)),
            );
        }
    }
    assert_none(
        &wrong,
        "only `args.rs` and `command/mod.rs` may import a command; move shared code to a module next to the commands:",
    );
}

/// Rust files below `folder`, except files with only tests.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder can be read").flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            if !["tests", "target"].iter().any(|skip| name == *skip) {
                collect(&path, files);
            }
        } else if path.extension().is_some_and(|e| e == "rs") && name != "tests.rs" {
            files.push(path);
        }
    }
}

/// Counts lines before the test module. An attribute on another item (a test-only helper) doesn't end the count.
fn lines_before_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_test_module = |at: usize| {
        lines[at] == "#[cfg(test)]"
            && lines[at + 1..]
                .iter()
                .find(|line| !line.starts_with("#["))
                .is_some_and(|line| line.starts_with("mod "))
    };
    (0..lines.len()).find(|at| is_test_module(*at)).unwrap_or(lines.len())
}

#[test]
fn line_count_stops_only_at_a_test_module() {
    assert_eq!(lines_before_tests("fn a() {}\n#[cfg(test)]\nfn b() {}\n"), 3);
    assert_eq!(lines_before_tests("fn a() {}\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n}\n"), 1);
}

#[test]
fn the_documentation_names_every_configuration_key() {
    let agent = AgentConfig {
        model: Some("m".into()),
        model_argv: vec!["--model".into()],
        env: BTreeMap::from([("A".into(), "b".into())]),
        script: Some("s".into()),
        ..AgentConfig::command("a", &["a"])
    };
    let verifier: VerifierConfig = serde_json::from_str(r#"{"name":"tests","command_argv":["true"]}"#)
        .expect("the two required keys are enough");
    let keys_of = |value: Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    // The message about an unknown key names all others.
    let known = serde_json::from_str::<ConfigFile>(r#"{"-": 0}"#).expect_err("`-` is refused").to_string();
    let mut keys: Vec<String> = known.split('`').skip(3).step_by(2).map(str::to_owned).collect();
    assert!(keys.len() > 40, "{known}");
    keys.extend(keys_of(serde_json::to_value(&agent).expect("an agent can be written")));
    keys.extend(keys_of(serde_json::to_value(&verifier).expect("a verifier can be written")));
    let text =
        std::fs::read_to_string(root().join("docs/reference/config.md")).expect("the reference can be read");
    let wrong: Vec<String> = keys.into_iter().filter(|key| !text.contains(&format!("`{key}`"))).collect();
    assert_none(&wrong, "keys that docs/reference/config.md does not name:");
}
