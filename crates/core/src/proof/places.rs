//! What a changed file is to the checks by its place: tests that a command names, what is found before a runner or a test,
//! names that links give it, sources that moved with their tests.

use crate::proof::harness_facts::{HarnessFacts, check_scripts};
use ralph_domain::event::FileChange;
use ralph_evidence::harness::{self, Reach, Role, TestPlace};
use ralph_evidence::weakened::{is_support, is_test_path};
use std::collections::{BTreeMap, BTreeSet};

/// Lines that two sources must share to be one that moved, of a hundred.
const ALIKE: usize = 50;
/// Modules between a source and the top of its crate that are looked at.
const DEPTH: usize = 8;
/// Folders in which settings of tests are looked for, at most.
const FOLDERS_MAX: usize = 40;
/// Sources that are compared with each other, at most.
const MOVED_MAX: usize = 40;

/// Where files stand that count.
pub(super) struct Places<'a> {
    facts: &'a HarnessFacts<'a>,
    tests: BTreeSet<TestPlace>,
    folders: BTreeSet<String>,
    /// Sources that moved with their tests: from where, by where they are.
    pub(super) moved: BTreeMap<String, String>,
}

impl<'a> Places<'a> {
    pub(super) fn new(facts: &'a HarnessFacts<'a>, reach: &[Reach]) -> Self {
        let named = reach.iter().flat_map(|reach| reach.tests.iter().cloned());
        let tests = named.chain(setup_files(facts)).collect();
        Self { facts, tests, folders: module_folders(facts), moved: moved(facts) }
    }

    /// The names of a file: its own, and those that links of the start give it.
    pub(super) fn names_of(&self, path: &str) -> Vec<String> {
        let by_link = |(link, to): (&String, &String)| {
            let rest = path.strip_prefix(to.as_str())?;
            (rest.is_empty() || rest.starts_with('/')).then(|| format!("{link}{rest}"))
        };
        let linked = self.facts.links.iter().filter_map(by_link);
        std::iter::once(path.to_owned()).chain(linked).collect()
    }

    /// Whether only the examples in the documentation of a file are tests.
    pub(super) fn has_examples(&self, path: &str) -> bool {
        let covers =
            |examples: bool| self.tests.iter().any(|place| place.examples == examples && place.covers(path));
        covers(true) && !covers(false)
    }

    /// Whether a file in a folder of helpers for tests is what is tested: a test of the start has its name.
    pub(super) fn is_tested_support(&self, path: &str) -> bool {
        let stem = |path: &str| {
            let name = path.rsplit('/').next().unwrap_or(path);
            name.split('.').next().unwrap_or(name).to_ascii_lowercase()
        };
        let own = stem(path);
        let of_it = |test: &String| {
            let test = stem(test);
            [
                format!("test_{own}"),
                format!("{own}_test"),
                format!("{own}_spec"),
                format!("{own}test"),
                own.clone(),
            ]
            .contains(&test)
        };
        is_support(path)
            && self.facts.tests.iter().any(|test| test != path && !is_support(test) && of_it(test))
    }

    /// What a changed file is to the checks by this name, where the name itself says nothing.
    pub(super) fn role(&self, name: &str, status: char) -> Option<Role> {
        let whole = self.tests.iter().filter(|place| !place.examples);
        if whole.clone().any(|place| place.covers(name)) || self.is_data_of_specs(name) {
            return Some(Role::Test);
        }
        let there = |path: &str| (self.facts.start)(path).is_some();
        let new = status == 'A';
        let decides = harness::shadows(name, new, &self.folders, &there)
            || prepares(self.facts, name)
            || (new && self.replaces_test(name, &there));
        decides.then_some(Role::Configuration)
    }

    /// Whether a new file is loaded in the place of a test of the start.
    fn replaces_test(&self, path: &str, there: &dyn Fn(&str) -> bool) -> bool {
        let named = self.tests.iter().filter(|place| place.pattern.is_none()).map(|place| &place.path);
        let mut known = self.facts.tests.iter().chain(named);
        if known.any(|test| harness::is_loaded_before(path, test, there)) {
            return true;
        }
        // Tests that a command finds by a pattern: `checks/part_cases/__init__.py` beside `checks/part_cases.py`.
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let stem = path.split('.').next().unwrap_or(path);
        [format!("{folder}.py"), format!("{stem}.py")].iter().any(|test| {
            let found = self.tests.iter().any(|place| place.pattern.is_some() && place.covers(test));
            found && harness::is_loaded_before(path, test, there) && there(test)
        })
    }

    /// Data below a folder `spec` that holds tests; elsewhere such a folder describes an interface.
    fn is_data_of_specs(&self, path: &str) -> bool {
        let Some(at) = format!("/{path}").find("/spec/") else { return false };
        let folder = &path[..at + "spec/".len()];
        self.facts.tests.iter().any(|test| test.starts_with(folder) && is_test_path(test))
    }
}

/// Folders from which what runs the checks is loaded before anything else.
fn module_folders(facts: &HarnessFacts<'_>) -> BTreeSet<String> {
    let folder = |path: &String| path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
    // A folder that is a package itself is nowhere looked in, unless a script or a test stands in it.
    let package =
        |folder: &&str| !folder.is_empty() && (facts.start)(&format!("{folder}/__init__.py")).is_some();
    let own = ["", "src", "lib", "python", facts.folder.trim_end_matches('/')];
    let own = own.into_iter().filter(|folder| !package(folder)).map(str::to_owned);
    let tests = facts.tests.iter().map(folder);
    own.chain(tests).chain(check_scripts(facts).iter().map(folder)).collect()
}

/// Whether a file is run by what prepares for the checks.
pub(super) fn prepares(facts: &HarnessFacts<'_>, path: &str) -> bool {
    let runs =
        |words: &[&str]| facts.setup.iter().flatten().any(|w| words.iter().any(|word| w.contains(word)));
    match path.rsplit('/').next().unwrap_or(path) {
        "setup.py" => runs(&["pip", "setup.py", "uv", "poetry", "pdm", "hatch"]),
        "build.rs" => runs(&["cargo"]),
        "binding.gyp" => runs(&["npm", "yarn", "pnpm"]),
        _ => false,
    }
}

/// What settings of tests name, as they were at the start.
fn setup_files(facts: &HarnessFacts<'_>) -> BTreeSet<TestPlace> {
    let changed: BTreeSet<&str> = facts.changes.iter().map(|change| change.path.as_str()).collect();
    // What the run left alone is as it was, and read from the checkout.
    let read = |path: &str| if changed.contains(path) { (facts.start)(path) } else { (facts.now)(path) };
    let mut folders = BTreeSet::from([String::new(), facts.folder.trim_end_matches('/').to_owned()]);
    for test in &facts.tests {
        let mut folder = test.as_str();
        while let Some((above, _)) = folder.rsplit_once('/').filter(|_| folders.len() < FOLDERS_MAX) {
            folders.insert(above.to_owned());
            folder = above;
        }
    }
    let mut found = BTreeSet::new();
    for folder in folders {
        for name in harness::SETTINGS {
            let path = if folder.is_empty() { (*name).to_owned() } else { format!("{folder}/{name}") };
            let Some(text) = read(&path) else { continue };
            let files = harness::setup_files(&path, &text, &|path| read(path).is_some());
            found.extend(files.into_iter().map(TestPlace::whole));
        }
    }
    found
}

/// Sources of Rust that moved with the tests in them: from where, by where they are.
fn moved(facts: &HarnessFacts<'_>) -> BTreeMap<String, String> {
    let of = |status: char| {
        let rust = move |change: &&FileChange| change.status == status && change.path.ends_with(".rs");
        facts.changes.iter().filter(rust).map(|change| change.path.as_str()).take(MOVED_MAX)
    };
    let mut found = BTreeMap::new();
    for old in of('D') {
        let Some(before) = (facts.start)(old).filter(|text| harness::has_inline_tests(text)) else {
            continue;
        };
        let alike = |path: &&str| {
            let now = (facts.now)(path).unwrap_or_default();
            harness::have_same_tests(&before, &now)
                && share_of_lines(&before, &now) >= ALIKE
                && is_declared(facts, path)
        };
        if let Some(new) = of('A').filter(|path| !found.contains_key(*path)).find(alike) {
            found.insert(new.to_owned(), old.to_owned());
        }
    }
    found
}

/// How many of a hundred lines of `old` stand in `new`.
fn share_of_lines(old: &str, new: &str) -> usize {
    let lines = |text: &str| -> BTreeSet<String> {
        text.lines().map(|line| line.trim().to_owned()).filter(|line| line.len() > 1).collect()
    };
    let (old, new) = (lines(old), lines(new));
    old.intersection(&new).count() * 100 / old.len().max(1)
}

/// The sources that may declare the module which a source of Rust is, and its name.
fn above(path: &str) -> (Vec<String>, &str) {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (folder, module) = match name.trim_end_matches(".rs") {
        "mod" => folder.rsplit_once('/').unwrap_or(("", folder)),
        stem => (folder, stem),
    };
    let files = ["lib.rs", "main.rs", "mod.rs"].map(|file| format!("{folder}/{file}"));
    let files = files.into_iter().chain([format!("{folder}.rs")]);
    (files.map(|file| file.trim_start_matches('/').to_owned()).filter(|file| file != path).collect(), module)
}

/// Whether a source of Rust is a module for tests alone, or below one, as the files that `read` gives say.
pub(super) fn is_test_module(read: &dyn Fn(&str) -> Option<String>, path: &str) -> bool {
    let mut path = path.to_owned();
    for _ in 0..DEPTH {
        let (files, module) = above(&path);
        let Some((file, text)) = files.into_iter().find_map(|file| read(&file).map(|text| (file, text)))
        else {
            return false;
        };
        if harness::test_modules(&text).iter().any(|name| name == module) {
            return true;
        }
        if file.ends_with("/lib.rs") || file.ends_with("/main.rs") {
            return false;
        }
        path = file;
    }
    false
}

/// Whether a source of Rust is part of its crate: the module above it says so.
fn is_declared(facts: &HarnessFacts<'_>, path: &str) -> bool {
    let (files, module) = above(path);
    let says = |text: String| {
        let mut lines = text.lines().map(str::trim);
        lines.any(|line| line.ends_with(&format!("mod {module};")) && !line.starts_with("//"))
    };
    files.iter().filter_map(|file| (facts.now)(file)).any(says)
}
