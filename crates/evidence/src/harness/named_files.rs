//! Files that decide because a command names them to an ordinary tool: programs of `awk` and `sed`, words of `grep`, what
//! `diff` compares with, sources of a program that checks.

use super::beside::is_helper;
use super::shell::{is_assignment, is_shell, program_name};
use super::test_places::TestPlace;
use super::{is_interpreter, shell::join};

/// Whether a file exists at the start, by its path.
type There<'a> = &'a dyn Fn(&str) -> bool;

/// Scripts that a tool is given: `awk -f rules.awk`, `go run tools/verify.go`.
pub(super) fn scripts(name: &str, rest: &[String]) -> Vec<String> {
    let own = |file: &&String| file.contains('.') && serves_checks(file);
    match name {
        "awk" | "gawk" | "mawk" | "nawk" | "sed" | "gsed" => values(rest, 'f', "--file"),
        "jq" => values(rest, 'f', "--from-file"),
        "java" => rest.iter().filter(|w| w.ends_with(".java")).filter(own).take(1).cloned().collect(),
        "go" if rest.first().is_some_and(|w| w == "run") => {
            rest[1..].iter().filter(|w| w.ends_with(".go")).filter(own).cloned().collect()
        }
        _ => Vec::new(),
    }
}

/// Expectations and sources of checks that a tool is given.
pub(super) fn expectations(name: &str, rest: &[String], folder: &str, there: There<'_>) -> Vec<TestPlace> {
    let path = |word: &String| join(folder, word).filter(|path| there(path));
    let found: Vec<String> = match name {
        "grep" | "egrep" | "fgrep" | "rg" | "ggrep" => {
            values(rest, 'f', "--file").iter().filter_map(path).collect()
        }
        "diff" | "cmp" | "colordiff" | "comm" => {
            let files: Vec<&String> = rest.iter().filter(|w| *w == "-" || !w.starts_with('-')).collect();
            let [first, second] = files.as_slice() else { return Vec::new() };
            [path(first), path(second)].into_iter().flatten().filter(|path| is_expectation(path)).collect()
        }
        // A program of the repo that checks: `go run ./tools/verify`.
        "go" if rest.first().is_some_and(|word| word == "run") => {
            let folders = rest[1..].iter().filter(|w| w.contains('/') && !w.ends_with(".go"));
            let folders = folders.filter_map(|word| join(folder, word)).filter(|path| serves_checks(path));
            folders.filter(|path| there(&format!("{path}/main.go"))).collect()
        }
        "cc" | "gcc" | "clang" | "c++" | "g++" | "clang++" | "tcc" | "rustc" | "javac" | "kotlinc"
        | "ghc" => {
            let sources = rest.iter().filter(|w| !w.starts_with('-') && w.contains('.'));
            sources.filter_map(path).filter(|path| serves_checks(path)).collect()
        }
        _ => Vec::new(),
    };
    found.into_iter().map(TestPlace::whole).collect()
}

/// Whether a file that something is compared with says what is wanted, by its name: what is compared may be the work.
fn is_expectation(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let words =
        ["expect", "want", "golden", "reference", "fixture", "baseline", "check", "correct", "solution"];
    words.iter().any(|word| name.contains(word))
}

/// Whether a source is one of a check, by its name or its folder.
fn serves_checks(path: &str) -> bool {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let tools = ["tools", "scripts", "ci", "hack", "checks", "build-tools"];
    is_helper(path) || folder.split('/').any(|part| tools.contains(&part))
}

/// The values of an option: `-f x`, `-fx`, `--file x`, `--file=x`.
fn values(rest: &[String], short: char, long: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        let attached = word.strip_prefix(long).and_then(|value| value.strip_prefix('='));
        if let Some(value) = attached {
            found.push(value.to_owned());
        } else if word == long {
            found.extend(words.next().cloned());
        } else if let Some(flags) = word.strip_prefix('-').filter(|flags| !flags.starts_with('-'))
            && let Some(at) = flags.find(short)
            && flags[..at].chars().all(|c| c.is_ascii_alphabetic())
        {
            match &flags[at + 1..] {
                "" => found.extend(words.next().cloned()),
                value => found.push(value.to_owned()),
            }
        }
    }
    found
}

/// Databases and calculators, which do what they read.
const STATEMENTS: &[&str] = &["sqlite3", "psql", "mysql", "mariadb", "duckdb", "bc", "dc"];

/// Whether a command does what the file `input` says that it reads: statements of a check for a database.
pub(super) fn is_fed_a_check(words: &[String], input: &str) -> bool {
    words.first().is_some_and(|program| STATEMENTS.contains(&program_name(program))) && serves_checks(input)
}

/// Whether a command runs what it reads: a shell or an interpreter without a script of its own.
pub(super) fn runs_its_input(words: &[String]) -> bool {
    let Some(program) = words.first() else { return false };
    let name = program_name(program);
    let known = is_shell(program) || is_interpreter(name);
    known
        && words[1..].iter().all(|w| {
            matches!(w.as_str(), "-" | "-s" | "/dev/stdin")
                || (w.starts_with('-')
                    && !matches!(w.as_str(), "-c" | "-e" | "-m" | "-p" | "--test" | "--eval"))
        })
}

/// Whether a command runs the file that a variable of a loop stands for.
pub(super) fn runs_variable(words: &[String], variable: &str) -> bool {
    let stands = |word: &String| {
        let word = word.trim_start_matches("./");
        word == format!("${variable}") || word == format!("${{{variable}}}")
    };
    let Some(program) = words.first() else { return false };
    stands(program)
        || ((is_shell(program)
            || is_interpreter(program_name(program))
            || matches!(program.as_str(), "." | "source"))
            && words[1..].iter().find(|w| !w.starts_with('-')).is_some_and(stands))
}

/// The places that a pattern of names stands for: `tools/*.py`.
pub(super) fn of_pattern(pattern: &str, folder: &str) -> Option<TestPlace> {
    let Some(at) = pattern.find('*') else {
        return join(folder, pattern).map(TestPlace::whole);
    };
    let base = pattern[..at].rsplit_once('/').map_or("", |(base, _)| base);
    let name = pattern.rsplit('/').next().unwrap_or(pattern);
    join(folder, base).map(|path| TestPlace::matching(path, name))
}

/// The places that a command lists: `find tools -name '*.py'`, `ls tools/*.py`.
pub(super) fn listed(words: &[String], folder: &str) -> Vec<TestPlace> {
    let rest = words.get(1..).unwrap_or_default();
    match words.first().map(|program| program_name(program)) {
        Some("find") => {
            let folders: Vec<&String> = rest.iter().take_while(|w| !w.starts_with(['-', '(', '!'])).collect();
            let at = rest.iter().position(|w| matches!(w.as_str(), "-name" | "-iname" | "-path"));
            let pattern = at.and_then(|at| rest.get(at + 1)).map_or("*", String::as_str);
            let pattern = pattern.rsplit('/').next().unwrap_or(pattern);
            let top = vec![String::new()];
            let folders: Vec<String> =
                if folders.is_empty() { top } else { folders.into_iter().cloned().collect() };
            folders.iter().filter_map(|f| join(folder, f)).map(|f| TestPlace::matching(f, pattern)).collect()
        }
        Some("ls" | "echo" | "printf") => {
            let named = rest.iter().filter(|w| !w.starts_with('-') && w.contains(['*', '/', '.']));
            named.filter_map(|w| of_pattern(w, folder)).collect()
        }
        _ => Vec::new(),
    }
}

/// Folders that a command line makes Python look in first.
pub(super) fn python_path(words: &[String], folder: &str) -> Vec<String> {
    let set = words.iter().filter(|w| is_assignment(w)).filter_map(|w| w.strip_prefix("PYTHONPATH="));
    set.flat_map(|value| value.split(':')).filter(|p| !p.is_empty()).filter_map(|p| join(folder, p)).collect()
}

/// Folders in which a command line tells an interpreter to look for modules: `PYTHONPATH=app`, `ruby -Ilib`, `prove -l`.
pub(super) fn module_folders(words: &[String], folder: &str) -> Vec<String> {
    const VARIABLES: &[&str] = &["PYTHONPATH=", "RUBYLIB=", "PERL5LIB="];
    let value = |word: &String| VARIABLES.iter().find_map(|name| word.strip_prefix(name)).map(str::to_owned);
    let mut found: Vec<String> = words.iter().filter_map(value).collect();
    let runs = |names: &[&str]| words.iter().any(|word| names.contains(&program_name(word)));
    if runs(&["ruby", "jruby", "perl", "prove", "rspec", "rake"]) {
        found.extend(values(words, 'I', "--include"));
    }
    let lib =
        runs(&["rspec", "rake"]) || (runs(&["prove"]) && words.iter().any(|w| w == "-l" || w == "--lib"));
    found.extend(lib.then(|| "lib".to_owned()));
    let folders = found.iter().flat_map(|value| value.split(':')).filter(|path| !path.is_empty());
    folders.filter_map(|path| join(folder, path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn tools_are_given_programs_and_expectations() {
        assert_eq!(scripts("awk", &words("-f rules/main.awk part.txt")), ["rules/main.awk"]);
        assert_eq!(scripts("sed", &words("-nfx.sed part.txt")), ["x.sed"]);
        assert_eq!(scripts("go", &words("run tools/verify.go")), ["tools/verify.go"]);
        assert_eq!(scripts("go", &words("run main.go")), [""; 0]);
        let there = |path: &str| ["words", "want.txt", "part.txt", "tools/check.c", "main.c"].contains(&path);
        let told = |line: &str| -> Vec<String> {
            let all = words(line);
            expectations(&all[0], &all[1..], "", &there).into_iter().map(|place| place.path).collect()
        };
        assert_eq!(told("grep -q -f words part.txt"), ["words"]);
        assert_eq!(told("grep -qf words part.txt"), ["words"]);
        assert_eq!(told("grep -q right part.txt"), [""; 0]);
        assert_eq!(told("diff - part.txt"), [""; 0]);
        assert_eq!(told("diff - want.txt"), ["want.txt"]);
        assert_eq!(told("diff part.txt want.txt"), ["want.txt"]);
        assert_eq!(told("cc -o chk tools/check.c"), ["tools/check.c"]);
        assert_eq!(told("cc -o app main.c"), [""; 0]);
    }

    #[test]
    fn what_a_command_reads_or_loops_over_is_run() {
        assert!(runs_its_input(&words("python3 -")) && runs_its_input(&words("sh")));
        assert!(!runs_its_input(&words("python3 x.py")) && !runs_its_input(&words("python3 -m unittest")));
        assert!(runs_variable(&words("python3 -u $f"), "f") && runs_variable(&words("./$f"), "f"));
        assert!(!runs_variable(&words("grep x $f"), "f") && !runs_variable(&words("python3 x.py $f"), "f"));
        assert_eq!(listed(&words("find tools -name *.py"), ""), [TestPlace::matching("tools", "*.py")]);
        assert_eq!(python_path(&words("PYTHONPATH=tools:/x python3 -m verify"), ""), ["tools"]);
        assert_eq!(module_folders(&words("PYTHONPATH=app python3 -m unittest"), ""), ["app"]);
        assert_eq!(module_folders(&words("ruby -Ilib -I test:more a.rb"), ""), ["lib", "test", "more"]);
        assert_eq!(module_folders(&words("prove -l t"), "sub"), ["sub/lib"]);
        assert_eq!(module_folders(&words("gcc -Iinclude a.c"), ""), [""; 0]);
    }
}
