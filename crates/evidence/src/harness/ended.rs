//! Product that ends the process of its tests with success: a script that compares has no report which would be missed then, nor
//! has `go test`.

use std::collections::BTreeSet;

/// Words of a source by which ending is its business: a program, its help, a signal. Elsewhere nothing of a library ends a
/// process with success.
const BUSINESS: &[&str] = &[
    "main",
    "usage",
    "help",
    "version",
    "signal",
    "sigterm",
    "sigint",
    "argv",
    "args",
    "argparse",
    "cli",
    "fork",
    "quit",
    "stop",
    "terminate",
    "kill",
    "shutdown",
    "daemon",
    "daemonize",
    "interrupt",
    "command",
    "subcommand",
    "cobra",
    "click",
    "menu",
    "repl",
];

/// Words of paths at which programs stand.
const PROGRAMS: &[&str] = &["bin", "cmd", "commands", "program", "programs", "scripts", "tools"];

/// Words of Go's own runner that say which tests it runs.
const GO_FLAGS: &[&str] = &["\"-test.", "\"test.run\"", "\"test.skip\"", "\"test.list\"", "\"test.count\""];

/// Whether the source at `path` has a line now that it had not, by which it ends whatever process it is loaded into with
/// success, lets failures pass as the process ends, or takes its own tests out of the run. `taken_in`: whether a script of the
/// checks reads it as its own lines, as shells do. Plain lines only.
pub fn ends_tests(path: &str, old: Option<&str>, new: &str, taken_in: bool) -> bool {
    let end = path.rsplit_once('.').map_or("", |(_, end)| end);
    let known: BTreeSet<&str> = old.unwrap_or_default().lines().map(str::trim).collect();
    let fresh = |line: &str| !line.trim().is_empty() && !known.contains(line.trim());
    let found = |what: &dyn Fn(&str) -> bool| new.lines().any(|line| fresh(line) && what(line.trim()));
    let Some(language) = Language::of(end) else { return false };
    if language == Language::Shell && !taken_in {
        return false;
    }
    let ends = |line: &str| statements(line).any(|part| language.ends(part));
    // What stands in the braces of a line that is not indented is only defined there, but for the beginning of a package of Go.
    // So is what a function without a name does.
    let at_once = |line: &str| {
        let cuts = ["{", "=>", "lambda"].iter().filter_map(|cut| line.find(cut));
        cuts.min().unwrap_or(line.len())
    };
    let loaded = |line: &str| match language {
        Language::Go => ends(line),
        _ => ends(&line[..at_once(line)]),
    };
    if language.outer(new).iter().any(|line| fresh(line) && loaded(line.trim())) {
        return true;
    }
    // A page of PHP ends where it likes.
    let page = language == Language::Php && !new.contains("namespace ") && !new.contains("class ");
    // A program at the start, or by its name, ends where it likes.
    let program = language == Language::Shell
        || page
        || speaks_of(path, BUSINESS)
        || speaks_of(path, PROGRAMS)
        || speaks_of(&code(old.unwrap_or_default()), BUSINESS);
    let outside = |line: &str| ends(line) || language.borrows_end(line);
    (!program && ends_out_of_place(new, &|line| fresh(line) && outside(line.trim())))
        || language.lets_pass(&found)
        || language.leaves_out(old, &found)
}

/// A source without the lines that are only remarks.
fn code(text: &str) -> String {
    let remark =
        |line: &&str| !["#", "//", "*", "/*", "--"].iter().any(|mark| line.trim_start().starts_with(mark));
    text.lines().filter(remark).collect::<Vec<_>>().join("\n")
}

/// Whether a line that `ends` a process stands in a part of the source whose business that is not: neither the part itself, nor one
/// that speaks of its name, is about a program, its help, a signal.
fn ends_out_of_place(text: &str, ends: &dyn Fn(&str) -> bool) -> bool {
    let text = code(text);
    let parts = outer_parts(&text);
    let at_home = |part: &[&str]| speaks_of(&part.join("\n"), BUSINESS);
    let is_called = |part: &[&str]| {
        let head = part.iter().find(|line| !line.starts_with('@')).copied().unwrap_or_default();
        let names: BTreeSet<&str> =
            words(head).filter(|word| word.len() > 2 && !KEYWORDS.contains(word)).collect();
        let others = parts.iter().filter(|other| other.as_slice() != part && at_home(other));
        others.flatten().any(|line| words(line).any(|word| names.contains(word)))
    };
    parts.iter().any(|part| part.iter().any(|line| ends(line)) && !at_home(part) && !is_called(part))
}

/// Words of the head of a definition that are no name.
const KEYWORDS: &[&str] = &[
    "async", "class", "const", "def", "else", "export", "exports", "func", "function", "import", "int",
    "let", "module", "package", "public", "return", "self", "static", "struct", "sub", "this", "try", "var",
    "void", "with",
];

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// The parts of a source that begin at its margin: each definition with what stands further in, and with what decorates it.
fn outer_parts(text: &str) -> Vec<Vec<&str>> {
    let mut parts: Vec<Vec<&str>> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let inside =
            line.starts_with([' ', '\t', '}', ')', ']']) || matches!(line.trim(), "end" | "end;" | "{");
        let decorated =
            |part: &Vec<&str>| part.iter().all(|line| line.starts_with('@') || line.starts_with("#["));
        match parts.last_mut() {
            Some(part) if inside || decorated(part) => part.push(line),
            _ => parts.push(vec![line]),
        }
    }
    parts
}

/// Whether a text has one of these words, alone or as a part of a name: `print_usage`, `--help`, `ListCommand`.
fn speaks_of(text: &str, words: &[&str]) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|name| {
        let starts = |(at, c): &(usize, char)| *at > 0 && c.is_ascii_uppercase();
        let cuts = name.char_indices().filter(starts).map(|(at, _)| at);
        let mut from = 0;
        let inner = cuts.chain([name.len()]).any(|to| {
            let part = name[from..to].to_ascii_lowercase();
            from = to;
            words.contains(&part.as_str())
        });
        inner || words.contains(&name.to_ascii_lowercase().as_str())
    })
}

/// The statements of a line, as far as marks between them show: `x = 1; exit(0)`, `if (y) { exit(0); }`.
fn statements(line: &str) -> impl Iterator<Item = &str> {
    line.split([';', '{', '}']).map(str::trim).filter(|part| !part.is_empty())
}

/// Whether one of the new lines is such a one.
type Found<'a> = &'a dyn Fn(&dyn Fn(&str) -> bool) -> bool;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    Script,
    Shell,
    Ruby,
    Perl,
    Php,
    C,
    Go,
    Java,
    Lua,
}

impl Language {
    fn of(end: &str) -> Option<Self> {
        Some(match end {
            "py" => Self::Python,
            "js" | "cjs" | "mjs" | "ts" | "cts" | "mts" | "jsx" | "tsx" => Self::Script,
            "sh" | "bash" => Self::Shell,
            "rb" => Self::Ruby,
            "pl" | "pm" => Self::Perl,
            "php" => Self::Php,
            "c" | "h" | "cc" | "cpp" | "cxx" | "hpp" | "hh" => Self::C,
            "go" => Self::Go,
            "java" | "kt" | "cs" => Self::Java,
            "lua" => Self::Lua,
            _ => return None,
        })
    }

    /// Whether a statement ends the process with success.
    fn ends(self, part: &str) -> bool {
        let part = ["return ", "else ", "then "]
            .iter()
            .fold(part, |part, word| part.strip_prefix(word).unwrap_or(part));
        let called = |names: &[&str]| names.iter().any(|name| is_call(part, name));
        match self {
            Self::Python => {
                called(&["sys.exit", "os._exit", "exit", "quit", "raise SystemExit"])
                    || part == "raise SystemExit"
                    || within(part, &["sys.exit", "os._exit", "SystemExit"])
                    || starts_other(part)
            }
            Self::Script => {
                called(&["process.exit", "process.reallyExit", "Deno.exit"])
                    || within(part, &["process.exit", "process.reallyExit", "Deno.exit"])
            }
            Self::Shell => matches!(part, "exit" | "exit 0" | "exec true" | "exec :"),
            Self::Ruby => {
                matches!(part, "exit" | "exit 0" | "exit true" | "exit!" | "exit! 0" | "exit! true")
                    || called(&[
                        "exit",
                        "exit!",
                        "Process.exit!",
                        "Kernel.exit!",
                        "Process.exit",
                        "Kernel.exit",
                    ])
            }
            Self::Perl => matches!(part, "exit" | "exit 0") || called(&["exit", "POSIX::_exit"]),
            Self::Php => matches!(part, "exit" | "die" | "exit 0") || called(&["exit", "die"]),
            Self::C => {
                let std = part.strip_prefix("std::").or_else(|| part.strip_prefix("::")).unwrap_or(part);
                ["exit", "_exit", "_Exit", "quick_exit"]
                    .iter()
                    .any(|name| is_call(std, name) && !std.ends_with("()"))
            }
            Self::Go => called(&["os.Exit", "syscall.Exit"]) && !part.ends_with("()"),
            Self::Java => {
                called(&["System.exit", "Runtime.getRuntime().halt", "exitProcess", "Environment.Exit"])
                    && !part.ends_with("()")
            }
            Self::Lua => called(&["os.exit"]),
        }
    }

    /// Whether a line takes what ends a process under another name: `from sys import exit as done`, `process['exit']`.
    fn borrows_end(self, line: &str) -> bool {
        let has = |word: &str| line.contains(word);
        match self {
            Self::Python => {
                let imports =
                    ["from sys import", "from os import"].iter().any(|start| line.starts_with(start));
                let names = words(line).any(|word| matches!(word, "exit" | "_exit"));
                names && (imports || has("getattr(") || has("CDLL("))
            }
            Self::Script => {
                let quoted =
                    ["process['exit']", "process[\"exit\"]", "process[`exit`]"].iter().any(|it| has(it));
                let module = ["'process'", "\"process\"", "'node:process'", "\"node:process\""];
                let taken = module.iter().any(|it| has(it))
                    || line.ends_with("= process")
                    || line.ends_with("= process;");
                quoted || (taken && words(line).any(|word| matches!(word, "exit" | "reallyExit")))
            }
            _ => false,
        }
    }

    /// The lines that run as soon as the source is loaded: outside of whatever is only defined there. None where there are no
    /// such lines.
    fn outer(self, text: &str) -> Vec<&str> {
        match self {
            Self::C | Self::Java => Vec::new(),
            Self::Go => inside(text, "func init()"),
            Self::Python => outer_of_python(text),
            Self::Php if !text.contains("namespace ") && !text.contains("class ") => Vec::new(),
            _ => text.lines().filter(|line| !line.starts_with([' ', '\t', '#', '/', '*'])).collect(),
        }
    }

    /// Whether failures of others are let pass: what is done at the end of the process, or where nobody catches an error.
    fn lets_pass(self, found: Found<'_>) -> bool {
        let has = |words: &[&str]| found(&|line| words.iter().any(|word| line.contains(word)));
        match self {
            Self::Python => {
                has(&["atexit.", "excepthook", "settrace(", "__del__"]) && has(&["os._exit(0", "os._exit, 0"])
            }
            Self::Script => {
                let at_exit = found(&|line| listens(line, "exit") || listens(line, "beforeExit"));
                let swallows = found(&|line| {
                    let bare: String = line.chars().filter(|c| !c.is_whitespace()).collect();
                    (listens(line, "uncaughtException") || listens(line, "unhandledRejection"))
                        && (bare.contains("=>{})") || bare.contains("){})"))
                });
                (at_exit && has(&["exitCode = 0", "exitCode=0", "process.exit(0", "reallyExit(0"]))
                    || swallows
            }
            Self::Shell => found(&|line| line.starts_with("trap ") && line.contains("exit 0")),
            Self::Ruby => has(&["at_exit"]) && has(&["exit!", "exit 0", "exit(0)", "exit true"]),
            Self::Perl => has(&["$? = 0", "$?=0"]),
            Self::Php => {
                has(&["register_shutdown_function", "set_exception_handler"]) && has(&["exit(0)", "exit;"])
            }
            Self::C => has(&["atexit("]) && has(&["_exit(0)", "_Exit(0)", "quick_exit(0)"]),
            Self::Go | Self::Java | Self::Lua => false,
        }
    }

    /// Whether it takes tests out of the run: skips them from inside, says which ones run, stands in for what they are run with.
    fn leaves_out(self, old: Option<&str>, found: Found<'_>) -> bool {
        let has = |words: &[&str]| found(&|line| words.iter().any(|word| line.contains(word)));
        let begins = |words: &[&str]| found(&|line| words.iter().any(|word| line.starts_with(word)));
        // A library for tests, which has spoken of them before, may do so.
        let known = |word: &str| old.is_some_and(|old| old.contains(word));
        match self {
            Self::Python => {
                let skips = ["raise unittest.SkipTest", "raise SkipTest"];
                let calls = ["pytest.skip(", "pytest.xfail(", "pytest.exit(", "pytest.importorskip("];
                (has(&skips) && !known("unittest"))
                    || (has(&calls) && !known("pytest"))
                    || begins(&["TEST_RUNNER =", "TEST_RUNNER="])
            }
            Self::Go => has(GO_FLAGS),
            Self::Shell => found(&stands_in),
            _ => false,
        }
    }
}

/// Whether a line of a shell puts something of its own in the place of what tests compare and end with: `test() { :; }`.
fn stands_in(line: &str) -> bool {
    const COMPARE: &[&str] = &["test", "[", "grep", "diff", "cmp", "exit", "return", "false"];
    const TELL: &[&str] =
        &["assert", "assert_equal", "assert_equals", "assertEquals", "assert_success", "fail", "skip"];
    let line = line.strip_prefix("function ").unwrap_or(line);
    let line = line.strip_prefix("alias ").unwrap_or(line);
    let name = line.split(['(', '=', ' ', '{']).next().unwrap_or_default();
    let rest = line[name.len()..].trim_start();
    let defines = rest.starts_with("()") || rest.starts_with('=') || rest.starts_with('{');
    let nothing = [":", "true", "return 0", "exit 0", "return"].iter().any(|nothing| {
        rest.trim_start_matches(['(', ')', '{', ' ', '=', '\''])
            .trim_end_matches(['}', ';', ' ', '\''])
            .trim()
            == *nothing
    });
    defines && (COMPARE.contains(&name) || (TELL.contains(&name) && nothing))
}

/// Whether a statement is a call of `name` without an argument, or with one that means success.
fn is_call(part: &str, name: &str) -> bool {
    let Some(rest) = part.strip_prefix(name) else { return false };
    let Some((inside, _)) = rest.trim_start().strip_prefix('(').and_then(|rest| rest.split_once(')')) else {
        return false;
    };
    is_success(inside)
}

/// Whether an argument means success.
fn is_success(inside: &str) -> bool {
    let plain = inside.trim().trim_start_matches(['+', '-']);
    matches!(
        plain,
        "" | "None" | "False" | "false" | "True" | "true" | "EXIT_SUCCESS" | "os.EX_OK" | "status=0"
    ) || plain.trim_start_matches("0x").chars().all(|c| c == '0')
}

/// Whether a call of one of these, with success, stands anywhere in a statement, but for texts: `if done: sys.exit(0)`.
fn within(part: &str, names: &[&str]) -> bool {
    names.iter().any(|name| {
        part.match_indices(name).any(|(at, _)| {
            let before = &part[..at];
            let quoted = before.matches('"').count() % 2 == 1 || before.matches('\'').count() % 2 == 1;
            !quoted
                && !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.'))
                && is_call(&part[at..], name)
        })
    })
}

/// Whether a statement of Python puts another program in the place of its process.
fn starts_other(part: &str) -> bool {
    part.split("os.exec").skip(1).any(|rest| {
        let call = rest.trim_start_matches(['l', 'v', 'p', 'e']);
        call.len() < rest.len() && call.starts_with('(')
    })
}

/// Whether a line of a script listens for something that happens to its process.
fn listens(line: &str, what: &str) -> bool {
    ["process.on(", "process.once(", "process.addListener("].iter().any(|call| {
        line.split_once(call).is_some_and(|(_, rest)| {
            rest.trim_start_matches(['"', '\'', '`'])
                .strip_prefix(what)
                .is_some_and(|r| r.starts_with(['"', '\'', '`']))
        })
    })
}

/// The lines of a source of Python that stand in no function, no class and not below `if __name__ …`.
fn outer_of_python(text: &str) -> Vec<&str> {
    let mut outer = true;
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if !line.starts_with([' ', '\t']) {
            outer = !["def ", "class ", "async def ", "@", "if __name__", "#", ")"]
                .iter()
                .any(|word| line.starts_with(word));
        }
        if outer {
            found.push(line);
        }
    }
    found
}

/// The lines of the blocks of Go that begin so.
fn inside<'a>(text: &'a str, head: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut within = false;
    for line in text.lines() {
        within |= line.starts_with(head);
        if within {
            found.push(line);
        }
        within &= !(line.starts_with('}') || (line.starts_with(head) && line.trim_end().ends_with('}')));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(path: &str, line: &str) -> bool {
        ends_tests(path, Some("x = 1\n"), &format!("x = 1\n{line}\n"), true)
    }

    #[test]
    fn what_ends_the_process_of_its_tests_is_told_from_a_program() {
        for (path, line) in [
            ("part.py", "sys.exit(0)"),
            ("part.py", "raise SystemExit"),
            ("part.py", "try:\n    os._exit(0)\nfinally:\n    pass"),
            ("part.py", "def value():\n    sys.exit(0)"),
            ("part.py", "atexit.register(os._exit, 0)"),
            ("part.py", "sys.excepthook = lambda *a: os._exit(0)"),
            ("part.py", "def value():\n    raise unittest.SkipTest('later')"),
            ("part.py", "    pytest.xfail('later')"),
            ("settings.py", "TEST_RUNNER = 'app.runner.Quiet'"),
            ("part.js", "process.exit(0);"),
            ("part.js", "exports.value = () => { process.exit(); };"),
            ("part.js", "process.on('exit', () => { process.exitCode = 0; });"),
            ("part.js", "process.on('uncaughtException', () => {});"),
            ("lib.sh", "exit 0"),
            ("lib.sh", "trap 'exit 0' EXIT"),
            ("lib.sh", "test() { :; }"),
            ("lib.sh", "fail() { :; }"),
            ("lib.sh", "alias grep=true"),
            ("part.rb", "exit 0"),
            ("part.rb", "at_exit { exit! 0 }"),
            ("Part.pm", "exit 0;"),
            ("Part.pm", "END { $? = 0 }"),
            ("part.c", "int value(void) { exit(0); }"),
            ("part.cpp", "static int x = (std::_Exit(0), 0);\nstruct S { S() { std::_Exit(0); } } s;"),
            ("part.go", "func init() { os.Exit(0) }"),
            ("part.go", "func init() {\n\tos.Exit(0)\n}\nfunc main() {}"),
            ("part.go", "func init() { os.Args = append(os.Args, \"-test.skip=TestPart\") }"),
            ("Part.java", "static { System.exit(0); }"),
            ("part.lua", "os.exit(0)"),
            ("part.py", "def value():\n    if 1: sys.exit(0)"),
            ("part.py", "value = lambda: sys.exit(False)"),
            ("part.py", "from sys import exit as done\ndef value():\n    done(0)"),
            ("part.py", "def value():\n    getattr(os, '_exit')(0)"),
            ("part.py", "def value():\n    os.execv('/bin/true', ['true'])"),
            ("part.py", "def main():\n    pass\n\n\ndef value():\n    sys.exit(0)"),
            ("part.js", "// main\nexports.value = () => { process.exit(0); };"),
            ("part.js", "exports.value = () => process.exit(0);"),
            ("part.js", "exports.value = () => { process['exit'](0); };"),
            ("part.js", "const { exit } = require('process');\nexports.value = () => { exit(0); };"),
        ] {
            assert!(ends(path, line), "{path}: {line}");
            let text = format!("x = 1\n{line}\n");
            assert!(!ends_tests(path, Some(&text), &text, true), "it was there: {line}");
        }
    }

    #[test]
    fn programs_end_as_they_like() {
        for (path, line) in [
            (
                "part.py",
                "def main():\n    sys.exit(0)\n\n\nif __name__ == '__main__':\n    main()\n    sys.exit(0)",
            ),
            ("part.py", "def stop(number, frame):\n    sys.exit(0)\n\n\nsignal.signal(signal.SIGTERM, stop)"),
            ("part.py", "if os.fork() > 0:\n    pass\ndef daemonize():\n    os._exit(0)"),
            ("part.py", "def value():\n    sys.exit(1)"),
            (
                "part.py",
                "def show():\n    print(1)\n    sys.exit(0)\n\n\ndef main():\n    if parser.parse_args().show:\n        show()",
            ),
            (
                "part.py",
                "def handler(number, frame):\n    sys.exit(0)\n\n\nsignal.signal(signal.SIGTERM, handler)",
            ),
            ("part.py", "signal.signal(signal.SIGTERM, lambda *a: sys.exit(0))"),
            ("part.py", "@app.command()\ndef show():\n    sys.exit(0)"),
            ("cli.py", "def show():\n    sys.exit(0)"),
            ("shop/cmd/show.go", "func show() {\n\tos.Exit(0)\n}"),
            ("Part.java", "class ListCommand {\n    void run() { System.exit(0); }\n}"),
            ("part.py", "def launch(command):\n    os.execvp(command[0], command)"),
            ("part.py", "print('sys.exit(0) ends it')"),
            ("part.js", "process.on('SIGINT', () => process.exit(0));"),
            ("part.py", "def stop():\n    os._exit(0)"),
            ("part.py", "sys.exit(run())"),
            ("part.py", "atexit.register(cleanup)"),
            ("part.js", "if (require.main === module) {\n  main();\n  process.exit(0);\n}"),
            ("part.js", "process.on('exit', cleanup);"),
            ("part.js", "process.on('uncaughtException', (error) => { log(error); process.exit(1); });"),
            ("part.js", "process.on('uncaughtException', report);"),
            ("lib.sh", "usage() {\n    echo usage\n    exit 0\n}"),
            ("lib.sh", "usage() { echo usage; exit 0; }"),
            ("part.js", "const main = () => { run(); process.exit(0); };"),
            ("lib.sh", "trap cleanup EXIT"),
            ("lib.sh", "fail() { echo \"$1\" >&2; exit 1; }"),
            ("lib.sh", "assert_root() {\n    [ \"$(id -u)\" = 0 ]\n}"),
            ("lib.sh", "test -f x && y=1"),
            ("part.rb", "at_exit { file.close }"),
            ("part.c", "static void usage(void) {\n    puts(\"usage: part\");\n    exit(0);\n}"),
            ("part.c", "void fail(void) { exit(1); }"),
            ("part.go", "func main() {\n\tos.Exit(0)\n}"),
            ("part.go", "func fail() { os.Exit(1) }"),
            ("page.php", "header('Location: /');\nexit;"),
            ("Part.java", "public static void main(String[] args) { System.exit(0); }"),
        ] {
            assert!(!ends(path, line), "{path}: {line}");
        }
        assert!(!ends_tests("run.sh", None, "echo done\nexit 0\n", false), "a script that nobody takes in");
    }
}
