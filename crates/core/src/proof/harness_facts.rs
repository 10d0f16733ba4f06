//! What is judged where the start is compared with now: the checks, the changes, and what was seen.

use ralph_loop_domain::ports::{ExecTrace, TraceKind};
use ralph_loop_evidence::harness::{self, Reach, Via};
use ralph_loop_protocol::event::FileChange;
use ralph_loop_task::config::VerifierConfig;
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
    /// Other sources of the start that are still there.
    pub sources: Vec<String>,
    /// Links of the start that are still there, each with what it leads to inside the repo.
    pub links: BTreeMap<String, String>,
    /// The commands that prepare for the checks.
    pub setup: Vec<Vec<String>>,
    /// What the checks were seen to do at the start, and now.
    pub traces: [&'a ExecTrace; 2],
}

/// What the checks lead to, in a tree.
pub(super) fn reach_of(facts: &HarnessFacts<'_>, read: Read<'_>) -> Vec<(String, Reach)> {
    let commands = facts.verifiers.iter().filter(|v| !v.command_argv.is_empty());
    commands.map(|v| (v.name.clone(), harness::reach(&v.command_argv, facts.folder, read))).collect()
}

/// The scripts that the checks lead to: those that they go by, each with the way to it, and those of which they, or their scripts,
/// compare what they print. What one check compares and another one goes by is gone by.
fn scripts_of(facts: &HarnessFacts<'_>) -> (BTreeMap<String, Via>, BTreeSet<String>) {
    let (mut run, mut compared) = (BTreeMap::new(), BTreeSet::new());
    for (path, via) in reach_of(facts, facts.start).into_iter().flat_map(|(_, reach)| reach.scripts) {
        match via {
            Via::Output => drop(compared.insert(path)),
            via => {
                let known = run.entry(path).or_insert(via);
                *known = via.min(*known);
            }
        }
    }
    compared.retain(|path| !run.contains_key(path));
    (run, compared)
}

/// Scripts of which the checks, or their scripts, compare what they print.
pub(super) fn compared_scripts(facts: &HarnessFacts<'_>) -> BTreeSet<String> {
    scripts_of(facts).1
}

/// The scripts that the checks run, without any other script between.
pub(super) fn check_scripts(facts: &HarnessFacts<'_>) -> Vec<String> {
    let (run, compared) = scripts_of(facts);
    let named = run.into_iter().filter(|(_, via)| *via <= Via::Definition).map(|(path, _)| path);
    let seen = facts.traces.iter().flat_map(|trace| &trace.steps);
    let seen = seen.filter(|s| s.kind == TraceKind::Ran && s.scripts == 0).map(|s| s.path.clone());
    let all: BTreeSet<String> = named.chain(seen).filter(|path| !compared.contains(path)).collect();
    all.into_iter().filter(|path| (facts.start)(path).is_some()).collect()
}
