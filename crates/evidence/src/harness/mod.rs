//! What decides the result of a check: the scripts that its command leads to, the definitions that it uses (targets of a
//! makefile, scripts of a package), tests and their configuration. Whoever edits those edits the check.
//!
//! Everything here goes by names and keys, so it holds wherever a check runs; what watching a check adds is decided
//! elsewhere.

mod asked;
mod asks_for_tests;
mod beside;
mod build_files;
mod cmake;
mod compared;
mod composer;
mod doc_examples;
mod ended;
mod free;
mod gemfile;
mod go_files;
mod gradle;
mod hooks;
mod inline;
mod loaded_first;
mod local_packages;
mod lock_sources;
mod make;
mod make_targets;
mod maven;
mod module_paths;
mod named_files;
mod package_json;
mod packages;
mod parts;
mod plain_settings;
mod put_back;
mod rake;
mod redefined;
mod renamed;
mod rewires;
mod setup_files;
mod shadow;
mod shell;
mod starters;
mod test_data;
mod test_places;
mod toml_files;
mod tools;
mod ts_config;

pub use asked::{asks_to_change, names};
pub use asks_for_tests::asks_for_tests;
pub use beside::{beside_scripts, is_helper};
pub use doc_examples::with_examples_of;
pub use ended::ends_tests;
pub use free::is_free;
pub use hooks::hooks_into_tests;
pub use inline::{has_inline_tests, have_same_tests, test_modules};
pub use loaded_first::is_loaded_before;
pub use module_paths::looked_in;
pub use package_json::redirected_imports;
pub use parts::{Part, Role, changed_examples, changed_parts, is_keyed};
pub use plain_settings::{changes_setting, is_plain_setting, reads_setting};
pub use put_back::as_at_start;
pub use redefined::{Redefined, redefined};
pub use renamed::is_renamed;
pub use rewires::rewires_tests;
pub use setup_files::{SETTINGS, loaded_files, python_folders, setup_files};
pub use shadow::{compiled_from, shadows, takes_runners_place};
pub use test_data::{
    is_data, is_named_in, is_of_package_or_starts, is_used_in, names_path, reads_data, serves_tests,
};
pub use test_places::TestPlace;

use shell::{Simple, behind, commands, is_shell, join, program_name};
use std::collections::{BTreeMap, BTreeSet};

/// Steps from a command to a script, at most.
const DEPTH: u32 = 10;
/// Commands that are looked at, in all.
const COMMANDS: u32 = 2000;

/// By which way a check leads to a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Via {
    /// Its own command names it.
    Command,
    /// A target or a script of a package that it runs names it.
    Definition,
    /// A script names it.
    Script,
    /// Somebody compares what it prints: a script that runs it, or the command itself.
    Output,
}

/// A definition that a check uses, wherever it stands: in which folder, and its key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Definition {
    /// The folder, and what kind of file it is looked for in.
    pub scope: String,
    /// The target, script, variable or section.
    pub key: String,
}

/// What a check leads to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// Scripts, by the shortest way.
    pub scripts: BTreeMap<String, Via>,
    /// Definitions, each with the files that say it and what they say. Without any where none does (yet).
    pub definitions: BTreeMap<Definition, BTreeMap<String, String>>,
    /// Where its command lines say that tests are.
    pub tests: BTreeSet<TestPlace>,
    /// Whether it leads to makefiles in folders that only a run of it knows.
    pub any_makefile: bool,
    /// Folders in which its command lines tell interpreters to look for modules.
    pub module_folders: BTreeSet<String>,
    /// Targets of makefiles that make no file and do not say so: one of that name would keep them from being run.
    pub open_targets: BTreeSet<String>,
    /// Targets of makefiles, and no file of the start: one of that name is taken for what would be made.
    pub made_targets: BTreeSet<String>,
}

/// What the command `argv`, started in `folder`, leads to in a tree whose files `read` gives.
pub fn reach(argv: &[String], folder: &str, read: &dyn Fn(&str) -> Option<String>) -> Reach {
    let mut walk = Walk {
        read,
        reach: Reach::default(),
        seen: BTreeSet::new(),
        left: COMMANDS,
        python_path: Vec::new(),
    };
    walk.command(argv, folder, Via::Command, 0);
    walk.reach
}

struct Walk<'a> {
    read: &'a dyn Fn(&str) -> Option<String>,
    reach: Reach,
    seen: BTreeSet<String>,
    left: u32,
    /// Folders that Python was told to look in.
    python_path: Vec<String>,
}

impl Walk<'_> {
    fn lines(&mut self, text: &str, folder: &str, via: Via, depth: u32) {
        let all = commands(text, folder);
        let mut loops: Vec<&Simple> = Vec::new();
        for (at, simple) in all.iter().enumerate() {
            let via = match via {
                Via::Script if simple.captured => Via::Output,
                Via::Command | Via::Definition if compared::is_compared(text, &all, at) => Via::Output,
                via => via,
            };
            if simple.words.first().is_some_and(|word| word == "for") {
                loops.push(simple);
                continue;
            }
            let before = at.checked_sub(1).and_then(|at| all.get(at)).filter(|before| before.piped);
            self.fed(before, simple, via, depth);
            self.looped(&loops, simple);
            self.command(&simple.words, &simple.folder, via, depth);
        }
    }

    /// What a shell or an interpreter runs because it reads it: `cat x | sh`, `python3 - < x`, `find … | xargs python3`.
    fn fed(&mut self, before: Option<&Simple>, simple: &Simple, via: Via, depth: u32) {
        let (words, folder) = behind(&simple.words, &simple.folder);
        for file in simple.inputs.iter().filter(|file| named_files::is_fed_a_check(&words, file)) {
            self.script(file, &folder, via, depth);
        }
        if !named_files::runs_its_input(&words) {
            return;
        }
        for file in &simple.inputs {
            self.script(file, &folder, via, depth);
        }
        let Some(before) = before else { return };
        if simple.words.first().is_some_and(|word| program_name(word) == "xargs") {
            self.reach.tests.extend(named_files::listed(&before.words, &before.folder));
            return;
        }
        for file in before.words.iter().skip(1).chain(&before.inputs).filter(|word| !word.starts_with('-')) {
            self.script(file, &before.folder, via, depth);
        }
    }

    /// What a loop over files runs: `for f in tools/*.py; do python3 $f; done`.
    fn looped(&mut self, loops: &[&Simple], simple: &Simple) {
        let (words, _) = behind(&simple.words, &simple.folder);
        for over in loops {
            let [_, variable, _, patterns @ ..] = over.words.as_slice() else { continue };
            if named_files::runs_variable(&words, variable) {
                let places = patterns.iter().filter_map(|p| named_files::of_pattern(p, &over.folder));
                self.reach.tests.extend(places);
            }
        }
    }

    fn command(&mut self, words: &[String], folder: &str, via: Via, depth: u32) {
        if depth > DEPTH || self.left == 0 {
            return;
        }
        self.left -= 1;
        self.python_path.extend(named_files::python_path(words, folder));
        self.reach.module_folders.extend(named_files::module_folders(words, folder));
        let (words, folder) = behind(words, folder);
        let Some(program) = words.first() else { return };
        let own = program.contains('/') && join(&folder, program).is_some_and(|p| (self.read)(&p).is_some());
        if own {
            return self.script(program, &folder, via, depth);
        }
        let name = program_name(program);
        if let Some(inner) = starters::started(&words) {
            let python =
                ["python3".to_owned()].into_iter().filter(|_| inner.first().is_some_and(|w| w == "-m"));
            let inner: Vec<String> = python.chain(inner.iter().cloned()).collect();
            self.command(&inner, &folder, via, depth + 1);
        }
        if matches!(name, "bun" | "deno")
            && let Some(file) = words[1..].iter().find(|word| !word.starts_with('-') && word.contains('.'))
        {
            self.script(file, &folder, via, depth);
        }
        match name {
            _ if is_shell(program) => self.shell(&words, &folder, via, depth),
            "." | "source" => self.first_script(&words, &folder, via, depth),
            "make" | "gmake" => self.make(&words, &folder, depth),
            "just" => self.just(&words, &folder, depth),
            "rake" => self.rake(&folder, depth),
            "npm" | "pnpm" | "yarn" | "bun" | "run-s" | "run-p" | "npm-run-all" => {
                self.package(name, &words, &folder, depth);
            }
            _ if is_interpreter(name) => {
                self.reach.tests.extend(test_places::named(&words, &folder, self.read));
                self.interpreted(&words, &folder, via, depth);
            }
            "cargo" => self.cargo(&words, &folder, depth),
            _ => self.tool(name, &words, &folder, via, depth),
        }
    }

    /// Any other program: tests, scripts and expectations that it is given.
    fn tool(&mut self, name: &str, words: &[String], folder: &str, via: Via, depth: u32) {
        let there = |path: &str| (self.read)(path).is_some();
        let expectations = named_files::expectations(name, &words[1..], folder, &there);
        self.reach.tests.extend(expectations);
        self.reach.tests.extend(test_places::named(words, folder, self.read));
        for file in named_files::scripts(name, &words[1..]) {
            self.script(&file, folder, via, depth);
        }
    }

    fn shell(&mut self, words: &[String], folder: &str, via: Via, depth: u32) {
        let mut rest = words[1..].iter();
        while let Some(word) = rest.next() {
            if word.starts_with('-') && !word.starts_with("--") && word.ends_with('c') {
                if let Some(line) = rest.next() {
                    self.lines(line, folder, via, depth + 1);
                }
                return;
            }
            match word.as_str() {
                "-o" | "+o" | "-O" | "--rcfile" | "--init-file" => drop(rest.next()),
                word if word.starts_with(['-', '+']) => {}
                script => return self.script(script, folder, via, depth),
            }
        }
    }

    fn first_script(&mut self, words: &[String], folder: &str, via: Via, depth: u32) {
        if let Some(script) = words.get(1) {
            self.script(script, folder, via, depth);
        }
    }

    /// `python3 -u tools/check.py`, `python3 -m tools.check`, `node -r ./setup.js x.js`.
    fn interpreted(&mut self, words: &[String], folder: &str, via: Via, depth: u32) {
        let mut rest = words[1..].iter();
        while let Some(word) = rest.next() {
            match word.as_str() {
                "-c" | "-e" | "--eval" | "-p" | "--print" => return,
                "-m" => {
                    let module = rest.next().map(|m| m.replace('.', "/")).unwrap_or_default();
                    for base in [vec![folder.to_owned()], self.python_path.clone()].concat() {
                        for file in [format!("{module}.py"), format!("{module}/__main__.py")] {
                            self.script(&file, &base, via, depth);
                        }
                    }
                    return;
                }
                "-r" | "--require" | "--import" | "--loader" => {
                    if let Some(file) = rest.next() {
                        self.script(file, folder, via, depth);
                    }
                }
                "-W" | "-X" => drop(rest.next()),
                word if word.starts_with('-') => {}
                script => return self.script(script, folder, via, depth),
            }
        }
    }

    fn script(&mut self, path: &str, folder: &str, via: Via, depth: u32) {
        let Some(path) = join(folder, path) else { return };
        let Some(text) = (self.read)(&path) else { return };
        let known = self.reach.scripts.get(&path).copied();
        if known.is_none_or(|known| via < known) {
            self.reach.scripts.insert(path.clone(), via);
        }
        let first = text.lines().next().unwrap_or_default();
        let is_shell_script = match first.strip_prefix("#!") {
            Some(line) => line.split(['/', ' ']).any(is_shell),
            None => {
                !text.contains('\0')
                    && ![".py", ".js", ".mjs", ".ts", ".rb", ".pl"].iter().any(|e| path.ends_with(e))
            }
        };
        if is_shell_script && self.seen.insert(format!("script {path}")) {
            // What a program prints that a script reads, its own scripts print, too.
            let inner = if via == Via::Output { Via::Output } else { Via::Script };
            self.lines(&text, folder, inner, depth + 1);
        }
    }

    fn define(&mut self, scope: &str, key: &str, file: &str, text: Option<String>) {
        let id = Definition { scope: scope.to_owned(), key: key.to_owned() };
        let places = self.reach.definitions.entry(id).or_default();
        if let Some(text) = text {
            places.insert(file.to_owned(), text);
        }
    }
}

fn is_interpreter(name: &str) -> bool {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    matches!(
        name,
        "python"
            | "pypy"
            | "node"
            | "nodejs"
            | "ruby"
            | "perl"
            | "deno"
            | "php"
            | "lua"
            | "Rscript"
            | "tsx"
            | "ts-node"
    )
}

/// Whether a command always says how many tests it ran: a pass of it without that is none.
pub fn always_reports(argv: &[String]) -> bool {
    let simple = match argv {
        [shell, flag, line] if is_shell(shell) && flag.starts_with('-') && flag.ends_with('c') => {
            if line.contains(['|', '>', '`', '$']) {
                return false;
            }
            commands(line, "")
        }
        _ => vec![Simple {
            words: argv.to_vec(),
            folder: String::new(),
            swallowed: false,
            captured: false,
            piped: false,
            inputs: Vec::new(),
            outputs: Vec::new(),
        }],
    };
    let [one] = simple.as_slice() else { return false };
    let (words, _) = behind(&one.words, "");
    let has = |flag: &str| words.iter().any(|w| w == flag);
    let quiet = [
        "-qq",
        "-qqq",
        "--no-summary",
        "--collect-only",
        "--co",
        "--help",
        "--version",
        "--no-run",
        "--list",
    ];
    if quiet.iter().any(|flag| has(flag))
        || words.iter().filter(|w| *w == "-q" || *w == "--quiet").count() > 1
    {
        return false;
    }
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    match texts.as_slice() {
        [program, ..] if matches!(program_name(program), "pytest" | "py.test") => true,
        [python, "-m", "pytest" | "unittest", ..] if is_interpreter(program_name(python)) => true,
        ["cargo", "test" | "t", ..] => true,
        ["cargo", "nextest", "run", ..] => true,
        ["node", "--test", ..] => true,
        _ => false,
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
