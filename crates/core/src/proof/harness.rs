//! Whether what decides the result is as it was at the start: scripts, definitions, tests and their configuration, and files
//! that the runners of the checks were seen to open. Says what forbids a pass, and what lowers its level.

use crate::proof::findings::HarnessFindings;
use ralph_domain::config::VerifierConfig;
use ralph_domain::event::{CheckResult, FileChange};
use ralph_domain::ports::{ExecTrace, TraceKind};
use ralph_domain::protect::covers;
use ralph_domain::text::one_line;
use ralph_evidence::harness::{self, Reach, Role, Via};
use ralph_evidence::weakened::is_test_source;
use std::collections::{BTreeMap, BTreeSet};

/// The text of a file, by its path.
pub(crate) type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What is judged.
pub(crate) struct HarnessFacts<'a> {
    /// The checks that decide.
    pub verifiers: Vec<&'a VerifierConfig>,
    /// The folder that they run in.
    pub folder: &'a str,
    /// What was asked for, in words.
    pub task: &'a str,
    /// What the run changed, from the start to the commit.
    pub changes: &'a [FileChange],
    /// Files of the start.
    pub start: Read<'a>,
    /// Files of the commit.
    pub now: Read<'a>,
    /// What is compared as a protected path anyway.
    pub protected: &'a [String],
    /// Tests of the start that are still there.
    pub tests: Vec<String>,
    /// The commands that prepare for the checks.
    pub setup: Vec<Vec<String>>,
    /// What the checks were seen to do at the start, and now.
    pub traces: [&'a ExecTrace; 2],
}

/// What the checks lead to, in a tree.
fn reach_of(facts: &HarnessFacts<'_>, read: Read<'_>) -> Vec<(String, Reach)> {
    let commands = facts.verifiers.iter().filter(|v| !v.command_argv.is_empty());
    commands.map(|v| (v.name.clone(), harness::reach(&v.command_argv, facts.folder, read))).collect()
}

/// The scripts that must stay as they are, by what the commands `argvs` lead to in a tree.
pub(crate) fn fixed_scripts<'a>(
    argvs: impl Iterator<Item = &'a [String]>,
    folder: &str,
    task: &str,
    read: Read<'_>,
) -> Vec<String> {
    let mut found = BTreeSet::new();
    for argv in argvs {
        for (path, via) in harness::reach(argv, folder, read).scripts {
            if via == Via::Command || (via == Via::Definition && !is_open(&path, task)) {
                found.insert(path);
            }
        }
    }
    found.into_iter().collect()
}

/// Whether a script that a definition leads to may change: a test that is no mere list of commands, or what the task asks for.
fn is_open(path: &str, task: &str) -> bool {
    let shell = [".sh", ".bash", ".bats", ".mk"].iter().any(|end| path.ends_with(end));
    (is_test_source(path) && !shell) || harness::asks_to_change(task, path)
}

/// Compares the start with now.
pub(crate) fn judge(facts: &HarnessFacts<'_>) -> HarnessFindings {
    let mut found = HarnessFindings::default();
    let changed: BTreeMap<&str, char> = facts.changes.iter().map(|c| (c.path.as_str(), c.status)).collect();
    definitions(facts, &mut found);
    scripts(facts, &changed, &mut found);
    let reach: Vec<Reach> = reach_of(facts, facts.start).into_iter().map(|(_, reach)| reach).collect();
    parts(facts, &reach, &mut found);
    opened(facts, &reach, &changed, &mut found);
    found
}

fn definitions(facts: &HarnessFacts<'_>, found: &mut HarnessFindings) {
    let (start, now) = (reach_of(facts, facts.start), reach_of(facts, facts.now));
    for ((name, before), (_, after)) in start.iter().zip(&now) {
        for changed in harness::redefined(before, after) {
            let key = &changed.definition.key;
            if changed.extended || harness::asks_to_change(facts.task, &changed.file) {
                let what = match changed.extended {
                    true => format!("{name} runs it, and the run added to it"),
                    false => format!("{name} runs it, and the run changed it, as the task asks for"),
                };
                found.lower_test(&changed.file, Some(key), what);
                continue;
            }
            let back = match changed.before.is_empty() {
                true => "take it out".to_owned(),
                false => format!("bring back `{}`", one_line(&changed.before, 200)),
            };
            let file = &changed.file;
            found.failed.push(format!("`{key}` in {file}, which {name} runs, is not what it was: {back}"));
        }
    }
}

fn scripts(facts: &HarnessFacts<'_>, changed: &BTreeMap<&str, char>, found: &mut HarnessFindings) {
    for (name, reach) in reach_of(facts, facts.start) {
        for (path, via) in &reach.scripts {
            if !changed.contains_key(path.as_str()) || covers(facts.protected, path) {
                continue;
            }
            match via {
                Via::Command | Via::Definition if is_open(path, facts.task) => {
                    found.lower_test(path, None, format!("{name} runs it, and the run changed it"));
                }
                Via::Command | Via::Definition => {
                    found.failed.push(format!("{path}, which {name} runs, was changed: bring it back"));
                }
                // What a script runs may be the very work.
                Via::Script | Via::Output if is_product(facts, path, *via == Via::Output) => {}
                Via::Script | Via::Output => {
                    found.lower(path, None, format!("a script of {name} runs it, and the run changed it"))
                }
            }
        }
    }
}

/// Whether a file that a script of a check runs or reads is what is checked: the task speaks of it, the script reads what it
/// prints, or the script stands in a folder of its own and this elsewhere. What serves checks by its name never is, unless the
/// task speaks of it.
fn is_product(facts: &HarnessFacts<'_>, path: &str, captured: bool) -> bool {
    if harness::names(facts.task, path) {
        return true;
    }
    if harness::is_helper(path) {
        return false;
    }
    let scripts = check_scripts(facts);
    let folder = |path: &str| path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
    let apart = |script: &String| {
        let own = folder(script);
        !own.is_empty() && !path.starts_with(&format!("{own}/"))
    };
    captured || (!scripts.is_empty() && scripts.iter().all(apart))
}

/// The scripts that the checks run, without any other script between.
fn check_scripts(facts: &HarnessFacts<'_>) -> Vec<String> {
    let named = reach_of(facts, facts.start).into_iter().flat_map(|(_, reach)| reach.scripts);
    let named = named.filter(|(_, via)| *via <= Via::Definition).map(|(path, _)| path);
    let seen = facts.traces.iter().flat_map(|trace| &trace.steps);
    let seen = seen.filter(|s| s.kind == TraceKind::Ran && s.scripts == 0).map(|s| s.path.clone());
    let all: BTreeSet<String> = named.chain(seen).collect();
    all.into_iter().filter(|path| (facts.start)(path).is_some()).collect()
}

/// Folders from which what runs the checks is loaded before anything else.
fn module_folders(facts: &HarnessFacts<'_>) -> BTreeSet<String> {
    let folder = |path: &String| path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
    let own = ["", "src", "lib", "python", facts.folder.trim_end_matches('/')].map(str::to_owned);
    let tests = facts.tests.iter().map(folder);
    own.into_iter().chain(tests).chain(check_scripts(facts).iter().map(folder)).collect()
}

/// Whether a file is run by what prepares for the checks.
fn prepares(facts: &HarnessFacts<'_>, path: &str) -> bool {
    let runs =
        |words: &[&str]| facts.setup.iter().flatten().any(|w| words.iter().any(|word| w.contains(word)));
    match path.rsplit('/').next().unwrap_or(path) {
        "setup.py" => runs(&["pip", "setup.py", "uv", "poetry", "pdm", "hatch"]),
        "build.rs" => runs(&["cargo"]),
        "binding.gyp" => runs(&["npm", "yarn", "pnpm"]),
        _ => false,
    }
}

/// What a changed file is to the checks by its place, where its name says nothing.
fn part_by_place(
    facts: &HarnessFacts<'_>,
    reach: &[Reach],
    folders: &BTreeSet<String>,
    change: &FileChange,
) -> Option<Role> {
    let path = change.path.as_str();
    if reach.iter().flat_map(|reach| &reach.tests).any(|place| place.covers(path)) {
        return Some(Role::Test);
    }
    let stem = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.split('.').next().unwrap_or(name).to_owned()
    };
    // A module that is found before one of the tests.
    let package =
        path.rsplit_once('/').filter(|(_, name)| *name == "__init__.py").map(|(folder, _)| stem(folder));
    let module = package.unwrap_or_else(|| stem(path));
    let source = [".py", ".js", ".ts", ".mjs", ".cjs", ".rb"].iter().any(|end| path.ends_with(end));
    let replaces_test = change.status == 'A'
        && source
        && !matches!(module.as_str(), "__init__" | "index" | "mod" | "main" | "setup")
        && facts.tests.iter().any(|test| stem(test) == module);
    let decides = harness::shadows(path, folders) || prepares(facts, path) || replaces_test;
    decides.then_some(Role::Configuration)
}

fn parts(facts: &HarnessFacts<'_>, reach: &[Reach], found: &mut HarnessFindings) {
    let mut new_tests = Vec::new();
    let folders = module_folders(facts);
    let changed: Vec<&str> = facts.changes.iter().map(|c| c.path.as_str()).collect();
    for path in harness::beside_scripts(
        &check_scripts(facts),
        facts.folder.trim_end_matches('/'),
        &changed,
        facts.start,
    ) {
        if !covers(facts.protected, &path) && !harness::names(facts.task, &path) {
            found.lower(&path, None, "a script of the checks uses it, and the run changed it");
        }
    }
    for change in facts.changes {
        let path = change.path.as_str();
        // Most files decide nothing by their name; only those that do are read.
        if covers(facts.protected, path) {
            continue;
        }
        let by_name = !harness::changed_parts(path, Some(""), Some("[x]")).is_empty() || is_keyed(path);
        let old = if change.status == 'A' || !by_name { None } else { (facts.start)(path) };
        let new = if change.status == 'D' || !by_name { None } else { (facts.now)(path) };
        let parts =
            if by_name { harness::changed_parts(path, old.as_deref(), new.as_deref()) } else { Vec::new() };
        if parts.is_empty() {
            match part_by_place(facts, reach, &folders, change) {
                Some(Role::Test) if change.status == 'A' => new_tests.push(path.to_owned()),
                Some(Role::Test) => {
                    found.tests_touched = true;
                    found.lower_test(path, None, "a test that the checks name, changed by the run");
                }
                // What prepares for the checks is no part of them.
                Some(_) if prepares(facts, path) => {
                    found.lower(path, None, "it runs before the checks, and the run wrote it");
                }
                Some(_) => {
                    let what = "it stands where what runs the checks looks first, and the run wrote it";
                    found.lower_test(path, None, what);
                }
                None => {}
            }
        }
        for part in parts {
            let key = part.key.as_deref();
            let gone = new.is_none();
            match part.role {
                Role::Test if part.added => new_tests.push(path.to_owned()),
                Role::Test => {
                    found.tests_touched = true;
                    found.lower_test(
                        path,
                        key,
                        if gone { "a test, removed by the run" } else { "a test, changed by the run" },
                    );
                }
                Role::Replacement if !harness::asks_to_change(facts.task, path) => {
                    found.failed.push(format!(
                        "{path} puts something else in the place of what runs the checks, or forges what they say: take it back"
                    ));
                }
                Role::Configuration | Role::Replacement => {
                    found.tests_touched = true;
                    let how = if part.added {
                        "added"
                    } else if gone {
                        "removed"
                    } else {
                        "changed"
                    };
                    found.lower_test(path, key, format!("it configures tests, {how} by the run"));
                }
            }
        }
    }
    if !new_tests.is_empty() && facts.tests.is_empty() {
        found.tests_touched = true;
        for path in new_tests {
            found.lower(&path, None, "a test of the run's own; the start had none");
            found.first_tests.insert(path);
        }
    } else {
        found.new_tests.extend(new_tests);
    }
}

fn is_keyed(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    [
        "package.json",
        "Cargo.toml",
        "pyproject.toml",
        "setup.cfg",
        "CMakeLists.txt",
        "pom.xml",
        "build.gradle",
        "build.gradle.kts",
        "Rakefile",
    ]
    .contains(&name)
        || (name.starts_with("requirements") && name.ends_with(".txt"))
        || name.ends_with(".rs")
}

/// What watching adds: files that the names say nothing of.
fn opened(
    facts: &HarnessFacts<'_>,
    reach: &[Reach],
    changed: &BTreeMap<&str, char>,
    found: &mut HarnessFindings,
) {
    let [before, now] = facts.traces;
    // A makefile is judged by the targets that are used; one that only watching found is judged as a whole.
    let judged: BTreeSet<&str> = reach
        .iter()
        .flat_map(|r| r.definitions.values())
        .flat_map(|d| d.keys())
        .map(String::as_str)
        .collect();
    let unjudged = |path: &str| is_makefile(path) && !judged.contains(path);
    if reach.iter().any(|reach| reach.any_makefile) {
        for path in changed.keys().filter(|path| unjudged(path)) {
            found.lower(path, None, "the checks may run its targets, and the run changed it");
        }
    }
    let told: BTreeSet<String> = found.changes.iter().map(|c| c.path.clone()).collect();
    let captured: BTreeSet<&str> = reach
        .iter()
        .flat_map(|reach| &reach.scripts)
        .filter(|(_, via)| **via == Via::Output)
        .map(|(path, _)| path.as_str())
        .collect();
    for step in before.steps.union(&now.steps) {
        let path = step.path.as_str();
        let Some(status) = changed.get(path) else { continue };
        if covers(facts.protected, path) || told.contains(path) {
            continue;
        }
        match (step.kind, step.scripts) {
            (TraceKind::Wrote, _) => {}
            (TraceKind::Ran, 0)
                if *status != 'A' && !is_open(path, facts.task) && !harness::is_free(path) =>
            {
                found.failed.push(format!("{path}, which a check runs, was changed: bring it back"));
            }
            (TraceKind::Ran, 0) if *status == 'A' && !is_test_source(path) => {
                found.lower(path, None, "the checks run it, and it came with the run");
            }
            _ if unjudged(path) => {
                found.lower(path, None, "the checks run its targets, and the run changed it");
            }
            _ if harness::is_free(path) || harness::asks_to_change(facts.task, path) => {}
            (TraceKind::Read, 1..)
                if is_product(facts, path, captured.contains(path) || is_read_by_name(facts, path)) => {}
            (TraceKind::Ran, 1..) if is_product(facts, path, captured.contains(path)) => {}
            _ => found.lower(path, None, "what runs the checks opens it, and the run changed it"),
        }
    }
    let ran = |trace: &ExecTrace| -> BTreeSet<String> {
        let steps = trace.steps.iter().filter(|s| s.kind == TraceKind::Ran && s.scripts == 0);
        steps.map(|s| s.path.clone()).collect()
    };
    if !now.steps.is_empty() {
        for path in ran(before).difference(&ran(now)).filter(|path| (facts.start)(path).is_some()) {
            found.lower(path, None, "the checks ran it at the start, and run it no more");
        }
    }
}

fn is_makefile(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(name, "GNUmakefile" | "makefile" | "Makefile" | "justfile" | "Justfile" | ".justfile")
}

/// Whether a script of the checks reads the file under its name, and does not run it as a part of itself.
fn is_read_by_name(facts: &HarnessFacts<'_>, path: &str) -> bool {
    let sourced = reach_of(facts, facts.start).iter().any(|(_, reach)| reach.scripts.contains_key(path));
    let texts = check_scripts(facts).into_iter().filter_map(|script| (facts.start)(&script));
    !sourced && texts.into_iter().any(|text| harness::names(&text, path))
}

/// What the numbers of tests say against a pass: `before` is how the checks ended at the start.
pub(crate) fn counts(
    verifiers: &[&VerifierConfig],
    before: &[CheckResult],
    now: &[CheckResult],
    explained: bool,
    found: &mut HarnessFindings,
) {
    for result in now.iter().filter(|result| result.passed) {
        let name = &result.name;
        let ran = result.tests.map(|tests| tests.executed());
        let first = before.iter().find(|b| b.name == *name).and_then(|b| b.tests).map_or(0, |t| t.executed());
        let reports = verifiers.iter().any(|v| v.name == *name && harness::always_reports(&v.command_argv));
        match ran {
            None if first > 0 => found
                .failed
                .push(format!("{name}: it ended without a report of its tests; at the start it ran {first}")),
            None if reports => {
                found
                    .failed
                    .push(format!("{name}: it ended without the report that its runner always makes"));
            }
            Some(ran) if ran < first && explained => {
                found.lower_test(name, None, format!("it ran {ran} tests; at the start it ran {first}"));
            }
            Some(ran) if ran < first => found.failed.push(format!(
                "{name}: it ran {ran} of the {first} tests that it ran at the start, and no test was changed"
            )),
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "harness_tests.rs"]
mod tests;
