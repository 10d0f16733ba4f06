//! What decides the result of a check: the scripts that its command leads to, the definitions that it uses (targets of a
//! makefile, scripts of a package), tests and their configuration. Whoever edits those edits the check.
//!
//! Everything here goes by names and keys, so it holds wherever a check runs; what watching a check adds is decided
//! elsewhere.

mod asked;
mod beside;
mod inline;
mod make;
mod parts;
mod put_back;
mod redefined;
mod shadow;
mod shell;
mod test_places;

pub use asked::{asks_to_change, names};
pub use beside::{beside_scripts, is_helper};
pub use parts::{Part, Role, changed_parts, is_free};
pub use put_back::as_at_start;
pub use redefined::{Redefined, redefined};
pub use shadow::shadows;
pub use test_places::TestPlace;

use make::{MAKEFILES, Makefile};
use serde_json::Value;
use shell::{behind, commands, is_assignment, is_shell, join, program_name};
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
    /// A script runs it and reads what it prints.
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
}

/// What the command `argv`, started in `folder`, leads to in a tree whose files `read` gives.
pub fn reach(argv: &[String], folder: &str, read: &dyn Fn(&str) -> Option<String>) -> Reach {
    let mut walk = Walk { read, reach: Reach::default(), seen: BTreeSet::new(), left: COMMANDS };
    walk.command(argv, folder, Via::Command, 0);
    walk.reach
}

struct Walk<'a> {
    read: &'a dyn Fn(&str) -> Option<String>,
    reach: Reach,
    seen: BTreeSet<String>,
    left: u32,
}

impl Walk<'_> {
    fn lines(&mut self, text: &str, folder: &str, via: Via, depth: u32) {
        for simple in commands(text, folder) {
            let via = if via == Via::Script && simple.captured { Via::Output } else { via };
            self.command(&simple.words, &simple.folder, via, depth);
        }
    }

    fn command(&mut self, words: &[String], folder: &str, via: Via, depth: u32) {
        if depth > DEPTH || self.left == 0 {
            return;
        }
        self.left -= 1;
        let (words, folder) = behind(words, folder);
        let Some(program) = words.first() else { return };
        let own = program.contains('/') && join(&folder, program).is_some_and(|p| (self.read)(&p).is_some());
        if own {
            return self.script(program, &folder, via, depth);
        }
        let name = program_name(program);
        match name {
            _ if is_shell(program) => self.shell(&words, &folder, via, depth),
            "." | "source" => self.first_script(&words, &folder, via, depth),
            "make" | "gmake" => self.make(&words, &folder, depth),
            "just" => self.just(&words, &folder, depth),
            "npm" | "pnpm" | "yarn" | "bun" | "run-s" | "run-p" | "npm-run-all" => {
                self.package(name, &words, &folder, depth);
            }
            _ if is_interpreter(name) => {
                self.reach.tests.extend(test_places::named(&words, &folder, self.read));
                self.interpreted(&words, &folder, via, depth);
            }
            _ => self.reach.tests.extend(test_places::named(&words, &folder, self.read)),
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
                    for file in [format!("{module}.py"), format!("{module}/__main__.py")] {
                        self.script(&file, folder, via, depth);
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

    fn make(&mut self, words: &[String], folder: &str, depth: u32) {
        let (mut folder, mut named, mut targets) = (folder.to_owned(), None, Vec::new());
        let mut rest = words[1..].iter().peekable();
        while let Some(word) = rest.next() {
            match word.as_str() {
                "-C" | "--directory" => {
                    let to = rest.next();
                    self.reach.any_makefile |= to.is_some_and(|to| to.contains(['$', '*', '`']));
                    folder = to.and_then(|to| join(&folder, to)).unwrap_or(folder);
                }
                "-f" | "--file" | "--makefile" => named = rest.next().cloned(),
                "-j" | "--jobs" | "-l" if rest.peek().is_some_and(|n| n.parse::<f64>().is_ok()) => {
                    rest.next();
                }
                word if word.starts_with("-C") => folder = join(&folder, &word[2..]).unwrap_or(folder),
                word if word.starts_with("-f") => named = Some(word[2..].to_owned()),
                word if word.starts_with('-') || is_assignment(word) => {}
                target => targets.push(target.to_owned()),
            }
        }
        let file = match named {
            Some(named) => join(&folder, &named),
            None => MAKEFILES.iter().filter_map(|n| join(&folder, n)).find(|p| (self.read)(p).is_some()),
        };
        if let Some(file) = file {
            self.makefile(&file, &folder, targets, depth, "make", &|text| text.to_owned());
        }
    }

    fn just(&mut self, words: &[String], folder: &str, depth: u32) {
        let names = ["justfile", "Justfile", ".justfile"];
        let file = names.iter().filter_map(|n| join(folder, n)).find(|p| (self.read)(p).is_some());
        let target = words[1..].iter().find(|w| !w.starts_with('-')).cloned();
        // A recipe of `just` is indented in any way.
        let tabbed = |text: &str| {
            let line = |l: &str| match l.starts_with([' ', '\t']) {
                true => format!("\t{}", l.trim_start().trim_start_matches('@')),
                false => l.to_owned(),
            };
            text.lines().map(line).collect::<Vec<_>>().join("\n")
        };
        if let Some(file) = file {
            self.makefile(&file, folder, target.into_iter().collect(), depth, "just", &tabbed);
        }
    }

    /// The targets of a makefile with all that they need, each under its key.
    fn makefile(
        &mut self,
        file: &str,
        folder: &str,
        targets: Vec<String>,
        depth: u32,
        kind: &str,
        shape: &dyn Fn(&str) -> String,
    ) {
        let files = self.with_includes(file, folder, shape);
        let all: Vec<&str> = files.iter().map(|(_, text, _)| text.as_str()).collect();
        let whole = Makefile::parse(&all.join("\n"));
        let scope = format!("{kind} in {}", if folder.is_empty() { "." } else { folder });
        for (path, _, made) in &files {
            let settings = Some(made.settings.join("\n")).filter(|text| !text.is_empty());
            self.define(&scope, "settings of all targets", path, settings);
        }
        let mut open = if targets.is_empty() { whole.first_target().into_iter().collect() } else { targets };
        while let Some(name) = open.pop() {
            if !self.seen.insert(format!("{scope} {file} {name}")) {
                continue;
            }
            let Some(target) = whole.target(&name) else { continue };
            for (path, _, made) in &files {
                self.define(&scope, &name, path, made.target(&name).map(|t| t.text));
                for variable in &target.variables {
                    self.define(&scope, variable, path, made.variable(variable));
                }
            }
            for line in &target.lines {
                let line = line.trim_start_matches(['@', '-', '+', ' ']);
                self.lines(line, folder, Via::Definition, depth + 1);
            }
            open.extend(target.needs);
        }
    }

    /// A makefile and what it includes, in order.
    fn with_includes(
        &self,
        file: &str,
        folder: &str,
        shape: &dyn Fn(&str) -> String,
    ) -> Vec<(String, String, Makefile)> {
        let (mut files, mut open): (Vec<(String, String, Makefile)>, _) = (Vec::new(), vec![file.to_owned()]);
        while let Some(path) = open.pop() {
            if files.len() >= 64 || files.iter().any(|(known, ..)| *known == path) {
                continue;
            }
            let Some(text) = (self.read)(&path) else { continue };
            let text = shape(&text);
            let made = Makefile::parse(&text);
            open.extend(made.includes.iter().rev().filter_map(|i| join(folder, i)));
            files.push((path, text, made));
        }
        files
    }

    /// Scripts of a `package.json`, with what runs before and after them.
    fn package(&mut self, program: &str, words: &[String], folder: &str, depth: u32) {
        let mut folder = folder.to_owned();
        let mut named: Vec<&str> = Vec::new();
        let mut rest = words[1..].iter();
        while let Some(word) = rest.next() {
            match word.as_str() {
                "--prefix" | "-C" | "--dir" | "--cwd" => {
                    folder = rest.next().and_then(|to| join(&folder, to)).unwrap_or(folder);
                }
                "--" => break,
                word if word.starts_with('-') => {}
                word => named.push(word),
            }
        }
        let names: Vec<&str> = match (program, named.as_slice()) {
            ("run-s" | "run-p" | "npm-run-all", names) => names.to_vec(),
            (_, ["run" | "run-script", name, ..]) => vec![name],
            ("npm", ["t" | "tst" | "test", ..]) => vec!["test"],
            ("bun", _) | (_, []) => return,
            (_, [name, ..]) => vec![name],
        };
        let Some(file) = join(&folder, "package.json") else { return };
        let package: Value =
            (self.read)(&file).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let scope = format!("package.json in {}", if folder.is_empty() { "." } else { &folder });
        for name in names {
            for key in [format!("pre{name}"), name.to_owned(), format!("post{name}")] {
                if !self.seen.insert(format!("{scope} {key}")) {
                    continue;
                }
                let script = package["scripts"][&key].as_str().map(str::to_owned);
                self.define(&scope, &key, &file, script.clone());
                if let Some(line) = script {
                    self.lines(&line, &folder, Via::Definition, depth + 1);
                }
            }
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
        _ => vec![shell::Simple {
            words: argv.to_vec(),
            folder: String::new(),
            swallowed: false,
            captured: false,
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
