//! Whether what decides the result is as it was at the start: scripts, definitions, tests and their configuration, and files
//! that the runners of the checks were seen to open. Says what forbids a pass, and what lowers its level.

use ralph_domain::config::VerifierConfig;
use ralph_domain::event::{CheckResult, FileChange};
use ralph_domain::ports::{ExecTrace, TraceKind};
use ralph_domain::proof::{HarnessChange, ProofLevel};
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
    /// Whether the start had tests that are still there.
    pub had_tests: bool,
    /// What the checks were seen to do at the start, and now.
    pub traces: [&'a ExecTrace; 2],
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct HarnessFindings {
    /// Why it is not done.
    pub failed: Vec<String>,
    /// What lowers the level.
    pub changes: BTreeSet<HarnessChange>,
    /// Whether tests or their configuration changed, so that another number of tests is no wonder.
    pub tests_touched: bool,
    /// Whether only new tests stand where the start had none.
    pub only_new_tests: bool,
}

impl HarnessFindings {
    fn lower(&mut self, path: &str, key: Option<&str>, what: impl Into<String>) {
        let (path, key) = (path.to_owned(), key.map(str::to_owned));
        self.changes.insert(HarnessChange { path, key, what: what.into() });
    }

    /// Who decided what a pass means.
    pub(crate) fn level(&self) -> ProofLevel {
        match self.changes.is_empty() {
            true => ProofLevel::Independent,
            false => ProofLevel::OwnTests,
        }
    }
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
    parts(facts, &mut found);
    opened(facts, &changed, &mut found);
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
                found.lower(&changed.file, Some(key), what);
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
                    found.lower(path, None, format!("{name} runs it, and the run changed it"));
                }
                Via::Command | Via::Definition => {
                    found.failed.push(format!("{path}, which {name} runs, was changed: bring it back"));
                }
                // What a script runs may be the very work.
                Via::Script if harness::asks_to_change(facts.task, path) => {}
                Via::Script => {
                    found.lower(path, None, format!("a script of {name} runs it, and the run changed it"))
                }
            }
        }
    }
}

fn parts(facts: &HarnessFacts<'_>, found: &mut HarnessFindings) {
    let mut new_tests = Vec::new();
    for change in facts.changes {
        let path = change.path.as_str();
        // Most files decide nothing by their name; only those that do are read.
        if harness::changed_parts(path, Some(""), Some("[x]")).is_empty() && !is_keyed(path) {
            continue;
        }
        let old = if change.status == 'A' { None } else { (facts.start)(path) };
        let new = if change.status == 'D' { None } else { (facts.now)(path) };
        for part in harness::changed_parts(path, old.as_deref(), new.as_deref()) {
            let key = part.key.as_deref();
            let gone = new.is_none();
            match part.role {
                Role::Test if part.added => new_tests.push(path.to_owned()),
                Role::Test => {
                    found.tests_touched = true;
                    found.lower(
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
                    found.lower(path, key, format!("it configures tests, {how} by the run"));
                }
            }
        }
    }
    if !new_tests.is_empty() && !facts.had_tests {
        found.only_new_tests = true;
        found.tests_touched = true;
        for path in new_tests {
            found.lower(&path, None, "a test of the run's own; the start had none");
        }
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
}

/// What watching adds: files that the names say nothing of.
fn opened(facts: &HarnessFacts<'_>, changed: &BTreeMap<&str, char>, found: &mut HarnessFindings) {
    let [before, now] = facts.traces;
    let told: BTreeSet<String> = found.changes.iter().map(|c| c.path.clone()).collect();
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
            _ if harness::is_free(path) || harness::asks_to_change(facts.task, path) => {}
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
                found.lower(name, None, format!("it ran {ran} tests; at the start it ran {first}"));
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
