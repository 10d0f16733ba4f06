//! Whether what decides the result is as it was at the start: scripts, definitions, tests and their configuration, and files
//! that the runners of the checks were seen to open. Says what forbids a pass, and what lowers its level.

use crate::proof::by_content::{Content, by_content};
use crate::proof::findings::HarnessFindings;
pub(crate) use crate::proof::harness_facts::{HarnessFacts, Read};
use crate::proof::harness_facts::{check_scripts, compared_scripts, reach_of};
use crate::proof::ignored;
use crate::proof::places::{Places, prepares};
use crate::proof::plain_settings;
use crate::proof::planted;
use crate::proof::read_by_tests;
use crate::proof::relinked;
use crate::proof::renamed_tests::renamed_tests;
use ralph_loop_domain::ports::{ExecTrace, TraceKind};
use ralph_loop_domain::protect::covers;
use ralph_loop_evidence::harness::{self, Part, Reach, Role, Via};
use ralph_loop_evidence::weakened::is_test_source;
use ralph_loop_protocol::event::FileChange;
use ralph_loop_protocol::text::one_line;
use std::collections::{BTreeMap, BTreeSet};

/// What is told of a test that says a new name, and nothing else.
const RENAMED: &str = "a test, in which only names changed that the task asks to change";

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
    relinked::judge(facts, &mut found);
    let reach: Vec<Reach> = reach_of(facts, facts.start).into_iter().map(|(_, reach)| reach).collect();
    let places = Places::new(facts, &reach);
    parts(facts, &places, &mut found);
    opened(facts, &reach, &changed, &mut found);
    planted::judge(facts, &places, &mut found);
    ignored::judge(facts, &mut found);
    read_by_tests::judge(facts, &reach, &mut found);
    plain_settings::judge(facts, &mut found);
    found
}

fn definitions(facts: &HarnessFacts<'_>, found: &mut HarnessFindings) {
    let (start, now) = (reach_of(facts, facts.start), reach_of(facts, facts.now));
    for ((name, before), (_, after)) in start.iter().zip(&now) {
        found.judged.extend(before.definitions.values().flat_map(|places| places.keys().cloned()));
        for changed in harness::redefined(before, after) {
            if is_list_of_what_is_there(facts, &changed) {
                continue;
            }
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

/// Whether a list of sources in a makefile lost only such as are gone: they were renamed, or taken in by others.
fn is_list_of_what_is_there(facts: &HarnessFacts<'_>, changed: &harness::Redefined) -> bool {
    let folder = changed.definition.scope.rsplit(" in ").next().filter(|folder| *folder != ".");
    let path = |source: &String| folder.map_or(source.clone(), |folder| format!("{folder}/{source}"));
    !changed.unlisted.is_empty() && changed.unlisted.iter().all(|source| (facts.now)(&path(source)).is_none())
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

/// Whether a file that a script of a check runs or reads is what is checked: the task speaks of it, the check or the script
/// compares what it prints, or the script stands in a folder of its own and this elsewhere. What serves checks by its name never
/// is, unless the task speaks of it.
fn is_product(facts: &HarnessFacts<'_>, path: &str, captured: bool) -> bool {
    if harness::names(facts.task, path) {
        return true;
    }
    if harness::is_helper(path) {
        return false;
    }
    let scripts = check_scripts(facts);
    // Where the checks run nothing of the repo but what they compare, all of it is what is checked.
    let only_compared = scripts.is_empty() && !compared_scripts(facts).is_empty();
    let folder = |path: &str| path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
    let apart = |script: &String| {
        let own = folder(script);
        !own.is_empty() && !path.starts_with(&format!("{own}/"))
    };
    captured || only_compared || (!scripts.is_empty() && scripts.iter().all(apart))
}

fn parts(facts: &HarnessFacts<'_>, places: &Places<'_>, found: &mut HarnessFindings) {
    let mut new_tests = Vec::new();
    // Whether the start had tests that stand in the product itself.
    let mut had_inline = false;
    let changed: Vec<&str> = facts.changes.iter().map(|c| c.path.as_str()).collect();
    let renamed = renamed_tests(facts);
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
        if covers(facts.protected, path) || places.moved.values().any(|from| from == path) {
            continue;
        }
        if renamed.contains(path) {
            found.tests_touched = true;
            found.lower(path, None, RENAMED);
            continue;
        }
        let file = ChangedFile::read(facts, places, change);
        had_inline |= file.old.as_deref().is_some_and(harness::has_inline_tests) || file.had_examples();
        if file.parts.is_empty() {
            match file.role {
                Some(Role::Test) if change.status == 'A' => new_tests.push(path.to_owned()),
                Some(Role::Test) => {
                    found.tests_touched = true;
                    let what = match places.is_loaded(path) {
                        true => "what sets tests up loads it, and the run changed it",
                        false => "a test that the checks name, changed by the run",
                    };
                    found.lower_test(path, None, what);
                }
                // What prepares for the checks is no part of them.
                Some(_) if prepares(facts, path) => {
                    found.lower(path, None, "it runs before the checks, and the run wrote it");
                }
                Some(_) => {
                    let how = if change.status == 'A' { "added" } else { "changed" };
                    let what = format!("it stands where what runs the checks looks first, {how} by the run");
                    found.lower_test(path, None, what);
                }
                None => {}
            }
            continue;
        }
        if file.whole {
            found.whole.insert(path.to_owned());
        } else if file.examples {
            found.examples.insert(path.to_owned());
        }
        if let Some(from) = places.moved.get(path) {
            found.moved.insert(path.to_owned(), from.clone());
        }
        for part in &file.parts {
            if part.role == Role::Test && part.added {
                new_tests.push(path.to_owned());
            } else {
                tell_part(facts, &file, part, found);
            }
        }
    }
    if !new_tests.is_empty() && facts.tests.is_empty() && !had_inline {
        found.tests_touched = true;
        for path in new_tests {
            found.lower(&path, None, "a test of the run's own; the start had none");
            found.first_tests.insert(path);
        }
    } else {
        found.new_tests.extend(new_tests);
    }
}

/// What changed of a part that decides.
fn tell_part(facts: &HarnessFacts<'_>, file: &ChangedFile<'_>, part: &Part, found: &mut HarnessFindings) {
    // One that decides by its content is there, and was read for that alone.
    let gone = file.new.is_none() && file.content.is_none();
    let (path, key) = (file.path, part.key.as_deref());
    match part.role {
        Role::Test => {
            found.tests_touched = true;
            let renamed = file.old.as_deref().zip(file.new.as_deref());
            if renamed.is_some_and(|(old, new)| harness::is_renamed(facts.task, old, new)) {
                found.lower(path, key, RENAMED);
                return;
            }
            let what = if gone { "a test, removed by the run" } else { "a test, changed by the run" };
            found.lower_test(path, key, what);
        }
        Role::Replacement if !harness::asks_to_change(facts.task, path) => {
            let cure = if part.added { "take it out" } else { "bring it back" };
            found.failed.push(format!(
                "{path} puts something else in the place of what runs the checks, or forges what they say: {cure}"
            ));
        }
        Role::Configuration if file.content == Some(Content::Asks) => {
            found.lower(path, key, "its new lines ask whether tests are running");
        }
        Role::Configuration | Role::Replacement => {
            found.tests_touched |= file.content != Some(Content::Ends);
            let how = match (part.added, gone) {
                (true, _) => "added",
                (false, true) => "removed",
                (false, false) => "changed",
            };
            let what = match file.content {
                Some(_) => {
                    format!("its new lines end, skip or rewrite the tests that load it, {how} by the run")
                }
                None => format!("it configures tests, {how} by the run"),
            };
            found.lower_test(path, key, what);
        }
    }
}

/// A changed file, as far as it decides.
struct ChangedFile<'a> {
    path: &'a str,
    old: Option<String>,
    new: Option<String>,
    parts: Vec<Part>,
    /// What it is by its place, where its name says nothing.
    role: Option<Role>,
    /// Whether its parts are examples in its documentation.
    examples: bool,
    /// Whether all of it decides, though its name says that only some keys do.
    whole: bool,
    /// What it is by its content, where that is what decides.
    content: Option<Content>,
}

/// Whether nothing but its place says that a file decides.
fn is_by_place(parts: &[Part]) -> bool {
    parts.iter().all(|part| part.key.is_none() && part.role != Role::Replacement)
}

impl<'a> ChangedFile<'a> {
    fn read(facts: &HarnessFacts<'_>, places: &Places<'_>, change: &'a FileChange) -> Self {
        let path = change.path.as_str();
        let from = places.moved.get(path);
        let mut file = Self {
            path,
            old: None,
            new: None,
            parts: Vec::new(),
            role: None,
            examples: false,
            whole: false,
            content: None,
        };
        for name in places.names_of(path) {
            let examples = places.has_examples(&name);
            // Most files decide nothing by their name; only those that do are read.
            let by_name = !harness::changed_parts(&name, Some(""), Some("[x]")).is_empty()
                || harness::is_keyed(&name)
                || examples;
            if by_name {
                let before = from.map_or(path, String::as_str);
                let is_new = change.status == 'A' && from.is_none();
                file.old = if is_new { None } else { (facts.start)(before) };
                file.new = if change.status == 'D' { None } else { (facts.now)(path) };
                let (old, new) = (file.old.as_deref(), file.new.as_deref());
                file.parts = match examples {
                    true => harness::changed_examples(old, new),
                    false => harness::changed_parts(&name, old, new),
                };
                file.examples = examples;
                let folder = path.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
                let missed = |needed: &String| (facts.now)(&format!("{folder}{needed}")).is_some();
                file.parts.retain(|part| part.needs.as_ref().is_none_or(missed));
                if places.is_tested_support(path)
                    || (is_by_place(&file.parts) && places.is_product_data(path))
                {
                    file.parts.clear();
                }
            }
            if let Some(content) = by_content(facts, &name, change) {
                let role = content.role();
                file.parts = vec![Part { key: None, role, added: change.status == 'A', needs: None }];
                file.whole = true;
                file.content = Some(content);
            }
            if file.parts.is_empty() {
                file.role = places.role(&name, change.status);
            }
            if !file.parts.is_empty() || file.role.is_some() {
                break;
            }
        }
        file
    }

    /// Whether there were examples that are tests.
    fn had_examples(&self) -> bool {
        self.examples && !harness::changed_examples(self.old.as_deref(), None).is_empty()
    }
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
    let captured = compared_scripts(facts);
    for step in before.steps.union(&now.steps) {
        let path = step.path.as_str();
        let Some(status) = changed.get(path) else { continue };
        // A script that a check runs is fixed, whatever else is told of it.
        let is_compared = captured.contains(path) && is_product(facts, path, true);
        let fixed = (step.kind, step.scripts) == (TraceKind::Ran, 0)
            && *status != 'A'
            && !is_compared
            && !harness::is_free(path)
            && !is_open(path, facts.task);
        if covers(facts.protected, path) || (told.contains(path) && !fixed) {
            continue;
        }
        match (step.kind, step.scripts) {
            (TraceKind::Wrote | TraceKind::Planted, _) => {}
            (TraceKind::Ran, _) if is_compared => {}
            // A source that an interpreter is given as its program decides, too; the checks of the start say how.
            (TraceKind::Ran, 0) if *status != 'A' && harness::is_free(path) => {
                if !is_test_source(path) && !harness::names(facts.task, path) {
                    found.lower_test(path, None, "the checks run it, and the run changed it");
                }
            }
            _ if fixed => {
                found.failed.push(format!("{path}, which a check runs, was changed: bring it back"));
            }
            (TraceKind::Ran, 0) if *status == 'A' && !is_test_source(path) => {
                found.lower(path, None, "the checks run it, and it came with the run");
            }
            _ if unjudged(path) => {
                found.lower(path, None, "the checks run its targets, and the run changed it");
            }
            _ if harness::asks_to_change(facts.task, path) => {}
            (TraceKind::Ran, _) if is_test_source(path) => {}
            (TraceKind::Read, _) if harness::is_free(path) => {}
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
    let scripts = check_scripts(facts).into_iter().chain(compared_scripts(facts));
    let texts = scripts.filter_map(|script| (facts.start)(&script));
    !sourced && texts.into_iter().any(|text| harness::names(&text, path))
}

#[cfg(test)]
#[path = "harness_tests.rs"]
mod tests;
