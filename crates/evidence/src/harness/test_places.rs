//! Where a command line says that tests are: `unittest discover -s checks -p 'check_*.py'`, `pytest checks/`, `prove a.check`.

use super::free::PRODUCT;
use super::shell::{join, program_name};
use super::starters::started;

/// A file of tests, or a folder with those whose names match.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestPlace {
    /// The file or folder.
    pub path: String,
    /// What names in the folder must match; `None` for all of them.
    pub pattern: Option<String>,
    /// Whether only the examples in the documentation of those files are tests.
    pub examples: bool,
}

impl TestPlace {
    /// A file or a folder, whole.
    pub fn whole(path: impl Into<String>) -> Self {
        Self { path: path.into(), pattern: None, examples: false }
    }

    /// The files of a folder whose names match.
    pub fn matching(path: impl Into<String>, pattern: impl Into<String>) -> Self {
        Self { path: path.into(), pattern: Some(pattern.into()), examples: false }
    }

    /// Whether a file is a test by this.
    pub fn covers(&self, path: &str) -> bool {
        let below = match self.path.as_str() {
            "" => Some(path),
            folder if path == folder => return true,
            folder => path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')),
        };
        let name = path.rsplit('/').next().unwrap_or(path);
        below.is_some() && self.pattern.as_ref().is_none_or(|pattern| matches(pattern, name))
    }
}

/// Programs that run the tests they are given.
const RUNNERS: &[&str] = &[
    "pytest",
    "py.test",
    "prove",
    "mocha",
    "_mocha",
    "jest",
    "vitest",
    "ava",
    "tap",
    "tape",
    "jasmine",
    "rspec",
    "phpunit",
    "pest",
    "bats",
    "busted",
    "nose2",
    "nosetests",
    "behave",
    "cucumber",
    "cucumber-js",
    "robot",
    "expect",
    "runtest",
    "shellspec",
    "shunit2",
    "newman",
    "hurl",
    "k6",
    "playwright",
    "cypress",
    "lit",
    "roundup",
    "cram",
    "trial",
    "green",
    "stestr",
    "tcltest",
    "testthat",
    "karma",
    "wtr",
    "web-test-runner",
    "uvu",
    "lab",
    "qunit",
    "testcafe",
];

/// Programs whose files are what is looked at, not what looks.
const READERS: &[&str] = &[
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "cat",
    "diff",
    "cmp",
    "test",
    "[",
    "[[",
    "jq",
    "yq",
    "sed",
    "awk",
    "gawk",
    "head",
    "tail",
    "wc",
    "ls",
    "stat",
    "file",
    "sort",
    "uniq",
    "tr",
    "cut",
    "echo",
    "printf",
    "cp",
    "mv",
    "rm",
    "mkdir",
    "touch",
    "chmod",
    "ln",
    "read",
    "export",
    "set",
    "cd",
    "exit",
    "return",
    "for",
    "case",
    "while",
    "tee",
    "tar",
    "zip",
    "unzip",
    "gzip",
    "md5sum",
    "sha256sum",
    "cksum",
    "od",
    "xxd",
    "strings",
    "cc",
    "gcc",
    "clang",
    "g++",
    "clang++",
    "c++",
    "rustc",
    "javac",
    "kotlinc",
    "tsc",
    "esbuild",
    "go",
    "cargo",
    "gofmt",
    "rustfmt",
    "black",
    "ruff",
    "flake8",
    "pylint",
    "mypy",
    "pyright",
    "eslint",
    "prettier",
    "stylelint",
    "shellcheck",
    "hadolint",
    "markdownlint",
    "yamllint",
    "actionlint",
    "xmllint",
    "codespell",
    "docker",
    "git",
    "curl",
    "wget",
    "time",
    "sleep",
    "kill",
    "true",
    "false",
    "ninja",
    "cmake",
    "ctest",
    "mvn",
    "gradle",
    "tox",
    "nox",
    "bazel",
    "buck",
    "meson",
];

/// Options of test runners that take the next word.
const VALUED: &[&str] = &[
    "-k",
    "-m",
    "-n",
    "-o",
    "-W",
    "-r",
    "-t",
    "-j",
    "--maxfail",
    "--timeout",
    "--reporter",
    "-R",
    "-g",
    "--grep",
    "--tb",
    "--junitxml",
    "--cov",
    "--deselect",
    "--ignore",
    "-f",
    "--format",
];

/// The places of tests that a command, started in `folder`, names.
pub(super) fn named(words: &[String], folder: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<TestPlace> {
    let Some(program) = words.first() else { return Vec::new() };
    let name = program_name(program);
    let rest = &words[1..];
    if let Some(behind) = started(words) {
        return match behind {
            [flag, module, rest @ ..] if flag == "-m" => module_tests(module, rest, folder, read),
            rest => named(rest, folder, read),
        };
    }
    if let Some(at) = rest.iter().position(|w| w == "-m")
        && name.starts_with("py")
        && rest[..at].iter().all(|w| w.starts_with('-'))
    {
        let Some(module) = rest.get(at + 1) else { return Vec::new() };
        return module_tests(module, &rest[at + 2..], folder, read);
    }
    if matches!(name, "pytest" | "py.test") {
        return pytest(rest, folder, read);
    }
    if RUNNERS.contains(&name) || (name.starts_with("node") && rest.iter().any(|w| w == "--test")) {
        return given(rest, folder, read);
    }
    if READERS.contains(&name) || super::is_interpreter(name) || super::shell::is_assignment(program) {
        return Vec::new();
    }
    // A program that nobody knows: files that are no sources may be what it runs.
    let files = rest.iter().filter(|w| !w.starts_with('-')).filter_map(|w| join(folder, w));
    let end = |path: &str| {
        path.rsplit('/').next().and_then(|n| n.rsplit_once('.')).map_or("", |(_, end)| end).to_owned()
    };
    let runs =
        |path: &String| (!PRODUCT.contains(&end(path).as_str()) || is_testish(path)) && read(path).is_some();
    files.filter(runs).map(TestPlace::whole).collect()
}

fn module_tests(
    module: &str,
    rest: &[String],
    folder: &str,
    read: &dyn Fn(&str) -> Option<String>,
) -> Vec<TestPlace> {
    match module {
        "unittest" => unittest(rest, folder, read),
        "coverage" => match rest {
            [run, flag, module, rest @ ..] if run == "run" && flag == "-m" => {
                module_tests(module, rest, folder, read)
            }
            _ => Vec::new(),
        },
        "doctest" => {
            let examples = |place: TestPlace| TestPlace { examples: true, ..place };
            given(rest, folder, read).into_iter().map(examples).collect()
        }
        "pytest" => pytest(rest, folder, read),
        "nose2" | "nose" | "behave" | "robot" => given(rest, folder, read),
        _ => Vec::new(),
    }
}

/// What `pytest` is given; with `--doctest-modules` the examples of every module, too.
fn pytest(words: &[String], folder: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<TestPlace> {
    let mut found = given(words, folder, read);
    let plugins = words.iter().zip(words.iter().skip(1)).filter(|(flag, _)| *flag == "-p");
    found.extend(plugins.filter_map(|(_, module)| module_file(module, folder, read)));
    if words.iter().any(|word| word == "--doctest-modules") {
        found.push(TestPlace { examples: true, ..TestPlace::matching(folder, "*.py") });
    }
    found
}

fn unittest(words: &[String], folder: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<TestPlace> {
    let (mut start, mut pattern, mut names) = (None, None, Vec::new());
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-s" | "--start-directory" => start = rest.next().cloned(),
            "-p" | "--pattern" => pattern = rest.next().cloned(),
            "-t" | "--top-level-directory" | "-k" => drop(rest.next()),
            word if word.starts_with("-s") && word.len() > 2 => start = Some(word[2..].to_owned()),
            word if word.starts_with("-p") && word.len() > 2 => pattern = Some(word[2..].to_owned()),
            word if word.starts_with('-') => {}
            _ => names.push(word.clone()),
        }
    }
    if names.is_empty() || names[0] == "discover" {
        let start = start.or_else(|| names.get(1).cloned()).unwrap_or_default();
        let pattern = pattern.or_else(|| names.get(2).cloned()).unwrap_or_else(|| "test*.py".to_owned());
        let path = join(folder, &start.replace('.', if start.contains('/') { "." } else { "/" }));
        return path.map(|path| TestPlace::matching(path, pattern)).into_iter().collect();
    }
    names.iter().filter_map(|name| module_file(name, folder, read)).collect()
}

/// The file of `checks.check_part.Case.test_x`, or of a path.
fn module_file(name: &str, folder: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<TestPlace> {
    let place = |path: String| TestPlace::whole(path);
    if name.contains('/') || name.ends_with(".py") {
        return join(folder, name).map(place);
    }
    let mut parts: Vec<&str> = name.split('.').collect();
    while !parts.is_empty() {
        let path = join(folder, &parts.join("/"))?;
        if read(&format!("{path}.py")).is_some() {
            return Some(place(format!("{path}.py")));
        }
        if read(&format!("{path}/__init__.py")).is_some() {
            return Some(place(path));
        }
        parts.pop();
    }
    None
}

/// Files, folders and patterns behind a test runner.
fn given(words: &[String], folder: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<TestPlace> {
    let mut found = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if VALUED.contains(&word.as_str()) {
            // `mocha -r ./support/hooks.js`: a file that is loaded before the tests.
            let value = rest.next().filter(|value| value.contains(['/', '.']));
            let file = value.and_then(|value| join(folder, value)).filter(|path| read(path).is_some());
            found.extend(file.map(TestPlace::whole));
            continue;
        }
        // `-c checks.ini`, `--config=x.js`, `-r ./setup.js`: whatever is a file.
        let value = word.strip_prefix('-').and_then(|w| w.split_once('=')).map(|(_, value)| value.to_owned());
        let word = value.unwrap_or_else(|| word.clone());
        let word = word.split("::").next().unwrap_or_default();
        if word.starts_with('-') || word.is_empty() {
            continue;
        }
        if let Some(at) = word.find('*') {
            let base = word[..at].rsplit_once('/').map_or("", |(base, _)| base);
            let pattern = word.rsplit('/').next().unwrap_or(word).to_owned();
            found.extend(join(folder, base).map(|path| TestPlace::matching(path, pattern)));
            continue;
        }
        let Some(path) = join(folder, word) else { continue };
        if read(&path).is_some() || (!path.is_empty() && is_testish(&path)) {
            found.push(TestPlace::whole(path));
        }
    }
    found
}

fn is_testish(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    ["test", "check", "spec", "verif", "e2e", "accept", "integration", "qa"]
        .iter()
        .any(|word| name.contains(word))
}

/// Whether a name matches a pattern with `*` and `?`.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    p = at + 1;
                    n = from + 1;
                    star = Some((at, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_say_where_tests_are() {
        let files = ["checks/check_part.py", "lib.check", "part.txt", "app.py", "checks.ini"];
        let read = |path: &str| files.contains(&path).then(String::new);
        let told = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let places = named(&words, "", &read).into_iter();
            places
                .map(|p| format!("{} {}", p.path, p.pattern.unwrap_or_default()).trim().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(told("python3 -m unittest discover -s checks -p check_*.py"), ["checks check_*.py"]);
        assert_eq!(told("python3 -m unittest"), ["test*.py"]);
        assert_eq!(told("python3 -m unittest checks.check_part.P.test_p"), ["checks/check_part.py"]);
        assert_eq!(told("pytest -q -k x checks/ src"), ["checks"]);
        assert_eq!(
            told("uv run pytest -c checks.ini checks/check_part.py::P"),
            ["checks.ini", "checks/check_part.py"]
        );
        assert_eq!(told("prove lib.check"), ["lib.check"]);
        assert_eq!(told("mychecker lib.check app.py"), ["lib.check"]);
        assert_eq!(told("npx mocha checks/*.js"), ["checks *.js"]);
        assert_eq!(told("node --test checks/"), ["checks"]);
        assert_eq!(told("grep -q right part.txt"), [""; 0]);
        let place = TestPlace::matching("checks", "check_*.py");
        assert!(
            place.covers("checks/sub/check_a.py")
                && !place.covers("checks/a.py")
                && !place.covers("b/check_a.py")
        );
    }
}
