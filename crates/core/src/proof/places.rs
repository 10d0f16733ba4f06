//! What a changed file is to the checks by its place: tests that a command names, what is found before a runner or a test,
//! names that links give it, sources that moved with their tests.

use crate::proof::harness_facts::{HarnessFacts, check_scripts};
use ralph_loop_evidence::harness::{self, Reach, Role, TestPlace};
use ralph_loop_evidence::weakened::{is_snapshot, is_source, is_support, is_test_data, is_test_path};
use ralph_loop_protocol::event::FileChange;
use std::collections::{BTreeMap, BTreeSet};

/// Lines that two sources must share to be one that moved, of a hundred.
const ALIKE: usize = 50;
/// Modules between a source and the top of its crate that are looked at.
const DEPTH: usize = 8;
/// Folders in which settings of tests are looked for, at most.
const FOLDERS_MAX: usize = 40;
/// Folders of tools, whose settings decide whoever names them.
const TOOLS: &[&str] = &[
    ".bundle",
    ".cargo",
    ".config",
    ".git",
    ".gradle",
    ".husky",
    ".jest",
    ".mvn",
    ".nx",
    ".pnpm",
    ".storybook",
    ".tox",
    ".venv",
    ".yarn",
    ".moon",
    ".vscode-test",
];
/// Modules that settings of tests load, at most.
const LOADED_MAX: usize = 100;
/// Sources that are looked through for the name of one, at most.
const SOURCES_MAX: usize = 2000;
/// Tests that are looked through for folders of modules, at most.
const TESTS_MAX: usize = 300;
/// Sources that are compared with each other, at most.
const MOVED_MAX: usize = 40;

/// Where files stand that count.
pub(super) struct Places<'a> {
    facts: &'a HarnessFacts<'a>,
    tests: BTreeSet<TestPlace>,
    folders: BTreeSet<String>,
    /// Targets of makefiles that a file of that name would keep from being run.
    open_targets: BTreeSet<String>,
    /// Targets of makefiles that a file of that name is taken for.
    made_targets: BTreeSet<String>,
    /// Modules that settings of tests load in turn.
    loaded: BTreeSet<String>,
    /// Sources that moved with their tests: from where, by where they are.
    pub(super) moved: BTreeMap<String, String>,
}

impl<'a> Places<'a> {
    pub(super) fn new(facts: &'a HarnessFacts<'a>, reach: &[Reach]) -> Self {
        let named = reach.iter().flat_map(|reach| reach.tests.iter().cloned());
        let set_up = SetUp::read(facts);
        let mut folders = module_folders(facts);
        folders.extend(set_up.module_folders);
        folders.extend(reach.iter().flat_map(|reach| reach.module_folders.iter().cloned()));
        let tests = named.chain(set_up.files.into_iter().map(TestPlace::whole)).collect();
        let open_targets = reach.iter().flat_map(|reach| reach.open_targets.iter().cloned()).collect();
        let made_targets = reach.iter().flat_map(|reach| reach.made_targets.iter().cloned()).collect();
        let (loaded, moved) = (set_up.loaded, moved(facts));
        Self { facts, tests, folders, open_targets, made_targets, loaded, moved }
    }

    /// Whether settings of tests load a module, at first hand or not, and nothing else of the start does.
    pub(super) fn is_loaded(&self, path: &str) -> bool {
        self.loaded.contains(path)
            && !self.is_used(path, &|own| self.loaded.contains(own) || is_settings(own))
    }

    /// Whether a source or a test of the start uses the module or the file `path`; not one that `passed_over` knows.
    fn is_used(&self, path: &str, passed_over: &dyn Fn(&str) -> bool) -> bool {
        let all = self.facts.sources.iter().chain(&self.facts.tests);
        let others = all.filter(|own| *own != path && !passed_over(own)).take(SOURCES_MAX);
        others.filter_map(|own| as_at_start(self.facts, own)).any(|text| harness::is_used_in(&text, path))
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
        let covers = |place: &TestPlace| {
            place.covers(name) && (place.pattern.is_none() || !self.only_looks_like_a_test(name, status))
        };
        if whole.clone().any(covers) || self.is_data_of_specs(name) || self.is_loaded(name) {
            return Some(Role::Test);
        }
        let there = |path: &str| (self.facts.start)(path).is_some();
        let new = status == 'A';
        let decides = harness::shadows(name, new, &self.folders, &there)
            || prepares(self.facts, name)
            || (new
                && (self.replaces_test(name, &there)
                    || self.hides(name)
                    || self.takes_tests_out(name)
                    || self.made_targets.contains(name)
                    || self.is_open_target(name)));
        decides.then_some(Role::Configuration)
    }

    /// Whether a new file has the name of a target of the checks, or makes a folder of that name: make takes it for done.
    pub(super) fn is_open_target(&self, path: &str) -> bool {
        let old = self.facts.tests.iter().chain(&self.facts.sources);
        self.open_targets.iter().any(|target| {
            let inside = format!("{target}/");
            path == target || (path.starts_with(&inside) && !old.clone().any(|old| old.starts_with(&inside)))
        })
    }

    /// Whether a file that came while the checks ran has the name of a target that checks, by its name; others may build it.
    pub(super) fn is_open_check(&self, path: &str) -> bool {
        self.open_targets.contains(path) && harness::is_helper(path)
    }

    /// Whether a file that came while the checks ran is found before what runs them.
    pub(super) fn takes_runners_place(&self, path: &str) -> bool {
        harness::takes_runners_place(path, &self.folders, &|path| (self.facts.start)(path).is_some())
    }

    /// Whether a module of the start that a pattern of tests finds (`testimonials.py` by `test*.py`) defines none, and is used
    /// by others.
    fn only_looks_like_a_test(&self, path: &str, status: char) -> bool {
        let plain = status != 'A' && path.ends_with(".py") && !is_test_path(path);
        let text = if plain { as_at_start(self.facts, path) } else { None };
        text.is_some_and(|text| !defines_tests(&text)) && self.is_used(path, &|_| false)
    }

    /// Whether data in a place that sounds like one for tests or settings is the product's: a source names its path, and no test
    /// reads it.
    pub(super) fn is_product_data(&self, path: &str) -> bool {
        let parts: Vec<&str> = path.split('/').collect();
        let (name, folders) = parts.split_last().unwrap_or((&"", &[]));
        let fixtures = folders.contains(&"fixtures")
            && !is_test_data(
                &parts.iter().map(|p| if *p == "fixtures" { "x" } else { *p }).collect::<Vec<_>>().join("/"),
            );
        let dotted = folders.iter().any(|folder| folder.starts_with('.') && !TOOLS.contains(folder))
            && !name.starts_with('.')
            && !name.ends_with("rc");
        if !(fixtures || dotted) || is_source(path) || is_snapshot(path) {
            return false;
        }
        let says =
            |own: &&String, how: &dyn Fn(&str) -> bool| as_at_start(self.facts, own).is_some_and(|t| how(&t));
        self.facts
            .sources
            .iter()
            .take(SOURCES_MAX)
            .any(|own| says(&own, &|text| harness::names_path(text, path)))
            && !self.facts.tests.iter().any(|own| says(&own, &|text| harness::is_named_in(text, path)))
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

    /// Whether a new module has the name of one of the start that tests or scripts of the checks take in, in another of the folders
    /// that are looked in: it may be found first.
    fn hides(&self, path: &str) -> bool {
        let split = |path: &str| {
            path.rsplit_once('/').map_or((String::new(), path.to_owned()), |(f, n)| (f.into(), n.into()))
        };
        let (folder, name): (String, String) = split(path);
        let loaded = [".py", ".rb", ".pm", ".pl", ".lua"].iter().any(|end| name.ends_with(end));
        if !loaded || name.starts_with("__") || !self.folders.contains(&folder) {
            return false;
        }
        let alike = |own: &&String| {
            let (other, same) = split(own);
            same == name && other != folder && self.folders.contains(&other)
        };
        let Some(hidden) = self.facts.sources.iter().find(alike) else { return false };
        let scripts = check_scripts(self.facts);
        let mut users = self.facts.tests.iter().take(TESTS_MAX).chain(&scripts);
        users.any(|own| as_at_start(self.facts, own).is_some_and(|text| harness::is_used_in(&text, hidden)))
    }

    /// Whether a new `go.mod` makes a module of its own of a folder with tests of the start: those of the module above no longer run.
    fn takes_tests_out(&self, path: &str) -> bool {
        let Some(folder) = path.strip_suffix("go.mod").filter(|folder| folder.ends_with('/')) else {
            return false;
        };
        self.facts.tests.iter().any(|test| test.starts_with(folder) && test.ends_with("_test.go"))
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
    let looked_in = facts.tests.iter().take(TESTS_MAX).flat_map(|test| {
        let text = as_at_start(facts, test).unwrap_or_default();
        harness::looked_in(test, &text).into_iter().collect::<Vec<_>>()
    });
    let by_scripts = check_scripts(facts).into_iter().flat_map(|script| {
        let text = as_at_start(facts, &script).unwrap_or_default();
        harness::looked_in(&script, &text).into_iter().collect::<Vec<_>>()
    });
    let tests = tests.chain(looked_in).chain(by_scripts);
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

/// Whether a source of Python defines tests.
pub(super) fn defines_tests(text: &str) -> bool {
    ["TestCase", "def test_", "def test(", "load_tests", "doctest"].iter().any(|word| text.contains(word))
}

/// A file as it was at the start. What the run left alone is read from the checkout.
fn as_at_start(facts: &HarnessFacts<'_>, path: &str) -> Option<String> {
    match facts.changes.iter().any(|change| change.path == path) {
        true => (facts.start)(path),
        false => (facts.now)(path),
    }
}

fn is_settings(path: &str) -> bool {
    harness::SETTINGS.contains(&path.rsplit('/').next().unwrap_or(path))
}

/// What settings of tests name, as they were at the start.
#[derive(Default)]
struct SetUp {
    /// Files that are loaded before the tests.
    files: BTreeSet<String>,
    /// Modules that the settings, and those files, load in turn.
    loaded: BTreeSet<String>,
    /// Folders in which modules are looked for.
    module_folders: BTreeSet<String>,
}

impl SetUp {
    fn read(facts: &HarnessFacts<'_>) -> Self {
        let mut folders = BTreeSet::from([String::new(), facts.folder.trim_end_matches('/').to_owned()]);
        for test in &facts.tests {
            let mut folder = test.as_str();
            while let Some((above, _)) = folder.rsplit_once('/').filter(|_| folders.len() < FOLDERS_MAX) {
                folders.insert(above.to_owned());
                folder = above;
            }
        }
        let there = |path: &str| as_at_start(facts, path).is_some();
        let (mut found, mut open) = (Self::default(), Vec::new());
        for folder in folders {
            for name in harness::SETTINGS {
                let path = if folder.is_empty() { (*name).to_owned() } else { format!("{folder}/{name}") };
                let Some(text) = as_at_start(facts, &path) else { continue };
                let files = harness::setup_files(&path, &text, &there);
                open.extend(files.iter().cloned());
                found.files.extend(files);
                found.module_folders.extend(harness::python_folders(&path, &text));
                let loaded = harness::loaded_files(&path, &text, &there);
                open.extend(loaded.iter().cloned());
                found.loaded.extend(loaded);
            }
        }
        let mut seen = BTreeSet::new();
        while let Some(path) = open.pop() {
            if seen.len() >= LOADED_MAX || !seen.insert(path.clone()) {
                continue;
            }
            let Some(text) = as_at_start(facts, &path) else { continue };
            let more = harness::loaded_files(&path, &text, &there);
            open.extend(more.iter().cloned());
            found.loaded.extend(more);
        }
        found
    }
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
