//! Product that changes what runs its tests, that is equal to everything, that looks its answers up in the tests, or that writes
//! their report itself: those that run in its process say what it wants.

use crate::weakened::{is_source, is_test_source};
use std::collections::BTreeSet;

/// Whether the source at `path` has a line now that it had not, by which it rewrites a library of tests, pretends to be equal to
/// whatever it is compared with, or ends their process after a report of its own. Plain lines only: who hides it well enough is found by nobody who reads.
pub fn rewires_tests(path: &str, old: Option<&str>, new: &str) -> bool {
    let known: BTreeSet<&str> = old.unwrap_or_default().lines().map(str::trim).collect();
    let lines: Vec<&str> = new.lines().map(str::trim).collect();
    let is_new = |line: &str| !line.is_empty() && !known.contains(line);
    let found = |rewires: &dyn Fn(&str) -> bool| lines.iter().any(|line| is_new(line) && rewires(line));
    if found(&reads_tests) || (found(&ends_process) && found(&says_report)) {
        return true;
    }
    let end = path.rsplit_once('.').map_or("", |(_, end)| end);
    if equals_all(end, &lines, &is_new) || (end == "py" && equals_unseen(new, &is_new)) {
        return true;
    }
    match end {
        "py" => found(&|line| line.split(';').any(|part| python(part.trim()))),
        "js" | "cjs" | "mjs" | "ts" | "cts" | "mts" | "jsx" | "tsx" => {
            found(&|line| line.split(';').any(|part| script(part.trim())))
        }
        "rb" => {
            let opens =
                |line: &str| line.strip_prefix("class ").is_some_and(|name| CORE.contains(&name.trim()));
            let equal =
                |line: &str| ["def ==", "def eql?", "def !="].iter().any(|head| line.starts_with(head));
            found(&ruby) || (lines.iter().any(|line| opens(line)) && found(&equal))
        }
        "rs" => found(&rust),
        "c" | "h" | "cc" | "cpp" | "cxx" | "hpp" | "hh" => {
            let ends = |line: &str| line.contains("exit(");
            found(&c) || found(&c_function) || (found(&|line| line.contains("((constructor")) && found(&ends))
        }
        _ => false,
    }
}

/// Whether a line reads the source of a test: what it expects can be had from there.
fn reads_tests(line: &str) -> bool {
    const READ: &[&str] =
        &["open(", "read_text(", "readFileSync(", "readFile(", "File.read(", "read_to_string(", "ReadFile("];
    let quoted = line.split(['"', '\'', '`']).skip(1).step_by(2);
    READ.iter().any(|call| line.contains(call))
        && quoted.filter(|text| !text.contains(' ')).any(|text| is_source(text) && is_test_source(text))
}

/// Whether a line ends the process without another word of whoever runs in it.
fn ends_process(line: &str) -> bool {
    const END: &[&str] = &[
        "os._exit(",
        "process.exit(",
        "process.reallyExit(",
        "process::exit(",
        "os.Exit(",
        "exit!",
        "_Exit(",
        "quick_exit(",
    ];
    END.iter().any(|call| line.contains(call))
}

/// Whether a line holds the words by which a runner tells that its tests passed.
fn says_report(line: &str) -> bool {
    const WORDS: &[&str] =
        &[" passed in ", "test result: ok", "# pass ", "--- PASS", " passed, ", " examples, 0 failures"];
    let ran = line.split_once("Ran ").is_some_and(|(_, rest)| {
        let count = rest.trim_start_matches(|c: char| c.is_ascii_digit() || "{}%sd".contains(c));
        count.len() < rest.len() && count.starts_with(" test")
    });
    let quoted = line.contains(['"', '\'', '`']);
    quoted && (ran || WORDS.iter().any(|words| line.contains(words)))
}

/// What a line assigns to, where it does.
fn assigned(line: &str) -> Option<&str> {
    let at = line.find('=')?;
    let (to, rest) = line.split_at(at);
    let compares = rest.starts_with("==") || rest.starts_with("=>") || to.ends_with(['!', '<', '>', '=']);
    (!compares).then(|| to.trim_end_matches(['+', ':']).trim())
}

/// Whether a text begins with one of these, as a whole name or with something of it behind.
fn begins(text: &str, names: &[&str]) -> bool {
    names.iter().any(|name| {
        text.strip_prefix(name)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

fn python(line: &str) -> bool {
    const LIBRARIES: &[&str] = &["unittest", "pytest", "_pytest", "doctest", "TestCase"];
    let plain = |text: &str| text.trim_start_matches(['"', '\'', '(']).to_owned();
    // Under whatever name the class is reached.
    if assigned(line).and_then(|to| to.rsplit_once('.')).is_some_and(|(_, name)| is_assertion(name)) {
        return true;
    }
    if let Some(to) = assigned(line).filter(|to| !to.contains(['(', ' ', '"', '\''])) {
        let of_library = begins(to, LIBRARIES) && to.contains('.') && !to.starts_with("unittest.mock");
        let of_class = to.contains(".TestCase.");
        // A name of the library that stands for something else.
        if LIBRARIES[..4].contains(&to) {
            return true;
        }
        if of_library || of_class || matches!(to, "builtins.AssertionError" | "__builtins__.AssertionError") {
            return true;
        }
    }
    // What the code of a test holds is what it expects.
    if ["co_consts", ".f_locals", "f_back.f_code"].iter().any(|word| line.contains(word)) {
        return true;
    }
    let calls = ["setattr(", "patch(", "patch.object("].iter().filter_map(|call| line.split_once(call));
    let changes = |inside: &str| begins(inside, LIBRARIES) && !inside.starts_with("unittest.mock");
    let modules = line.contains("sys.modules[") && LIBRARIES[..3].iter().any(|name| line.contains(name));
    modules || calls.map(|(_, inside)| plain(inside)).any(|inside| changes(&inside))
}

/// Whether a name is one of those that tests of Python compare with: `assertEqual`.
fn is_assertion(name: &str) -> bool {
    name.strip_prefix("assert").is_some_and(|rest| rest.starts_with(char::is_uppercase))
        || name == "failureException"
}

/// Whether something of Python is equal to others without a look at itself: `def __eq__(self, other): return other is not None`.
fn equals_unseen(text: &str, is_new: &dyn Fn(&str) -> bool) -> bool {
    const LOOKS: &[&str] = &["super()", "NotImplemented", "raise", "isinstance(", "type(", "..."];
    let all: Vec<&str> = text.lines().collect();
    let depth = |line: &str| line.len() - line.trim_start().len();
    all.iter().enumerate().any(|(at, line)| {
        let Some((_, rest)) = line.split_once("def __eq__(") else { return false };
        let Some((names, first)) = rest.split_once(')') else { return false };
        let own = names.split([',', ':']).next().unwrap_or_default().trim();
        let below = all[at + 1..].iter().take_while(|l| l.trim().is_empty() || depth(l) > depth(line));
        let body: Vec<&str> = std::iter::once(first).chain(below.copied()).collect();
        let looks = |text: &str| {
            LOOKS.iter().any(|word| text.contains(word))
                || text.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == own)
        };
        let fresh = is_new(line.trim()) || body[1..].iter().any(|line| is_new(line.trim()));
        let said = body.iter().skip(1).any(|line| !line.trim().is_empty()) || first.contains("return");
        fresh && said && !own.is_empty() && !body.iter().any(|text| looks(text))
    })
}

fn script(line: &str) -> bool {
    let Some(to) = assigned(line) else { return false };
    let to = ["const ", "let ", "var "].iter().find_map(|word| to.strip_prefix(word)).unwrap_or(to);
    let globals = ["globalThis.", "global.", "window.", "self."];
    if let Some(name) = globals.iter().find_map(|global| to.strip_prefix(global)) {
        return begins(name, &["expect", "test", "it", "describe", "assert", "jest", "vi"]);
    }
    let required =
        ["require('assert')", "require(\"assert\")", "require('node:assert')", "require(\"node:assert\")"];
    let library = begins(to, &["assert", "chai", "expect", "jest"]);
    (library && to.contains('.') && !to.contains(' '))
        || required.iter().any(|it| to.starts_with(&format!("{it}.")))
}

/// Classes of Ruby itself: who says anew what is equal to a text says so of every text.
const CORE: &[&str] = &[
    "Array",
    "BasicObject",
    "Float",
    "Hash",
    "Integer",
    "NilClass",
    "Numeric",
    "Object",
    "String",
    "Symbol",
];

fn ruby(line: &str) -> bool {
    let opened = ["class ", "module "].iter().find_map(|word| line.strip_prefix(word));
    let own = |name: &str| name.contains('<');
    opened.is_some_and(|name| begins(name, &["Minitest", "RSpec", "Test::Unit"]) && !own(name))
}

/// Macros of the product's own under the names of those that tests compare with.
fn rust(line: &str) -> bool {
    let named = line.strip_prefix("macro_rules!").map(str::trim_start);
    named.is_some_and(|name| {
        begins(name, &["assert", "assert_eq", "assert_ne", "assert_matches", "panic", "unreachable"])
    })
}

/// Functions of the product's own in the place of those of the library by which a test compares or ends.
fn c_function(line: &str) -> bool {
    const NAMES: &[&str] = &[
        "__assert_fail",
        "__assert_rtn",
        "__assert",
        "abort",
        "exit",
        "_exit",
        "_Exit",
        "quick_exit",
        "strcmp",
        "strncmp",
        "memcmp",
    ];
    NAMES.iter().any(|name| {
        let Some((before, after)) = line.split_once(&format!("{name}(")) else { return false };
        let typed =
            before.ends_with([' ', '*']) && before.chars().all(|c| c.is_alphanumeric() || "_ *".contains(c));
        let first = before.split_whitespace().next().unwrap_or_default();
        typed
            && !matches!(first, "return" | "else" | "case" | "extern" | "")
            && (!after.ends_with(';') || after.contains('{'))
    })
}

/// Macros that take the place of what tests compare and end with.
fn c(line: &str) -> bool {
    const NAMES: &[&str] =
        &["assert", "NDEBUG", "strcmp", "strncmp", "memcmp", "abort", "exit", "main", "TEST", "REQUIRE"];
    let Some(directive) = line.strip_prefix('#').map(str::trim_start) else { return false };
    let defined = ["define ", "undef "].iter().find_map(|word| directive.strip_prefix(word));
    defined.map(str::trim_start).is_some_and(|name| {
        begins(name, NAMES) || ["ASSERT_", "EXPECT_", "CHECK_"].iter().any(|start| name.starts_with(start))
    })
}

/// How a language says that two things are equal, how it says yes, and what may stand around that.
fn equality(end: &str) -> Option<(&'static [&'static str], &'static [&'static str])> {
    Some(match end {
        "py" => (&["def __eq__("], &["return True"]),
        "rs" => (&["fn eq(&self"], &["true", "return true;"]),
        "rb" => (&["def ==(", "def ==", "def eql?("], &["true", "return true"]),
        "java" | "cs" => {
            (&["boolean equals(", "bool Equals(", "bool operator ==("], &["return true;", "true;"])
        }
        "kt" => (&["fun equals("], &["true", "return true"]),
        "cpp" | "cc" | "cxx" | "hpp" | "h" => (&["operator==("], &["return true;"]),
        _ => return None,
    })
}

/// `def __eq__(self, other): return True`, in one line or in two.
fn equals_all(end: &str, lines: &[&str], is_new: &dyn Fn(&str) -> bool) -> bool {
    let Some((heads, yes)) = equality(end) else { return false };
    let says_yes = |text: &str| yes.contains(&text.trim_matches(|c: char| " {}=>:".contains(c)));
    lines.iter().enumerate().any(|(at, line)| {
        let Some((_, rest)) = heads.iter().find_map(|head| line.split_once(head)) else { return false };
        let Some((_, body)) = rest.split_once(')') else { return false };
        // What it returns is no body: `-> bool {`.
        let body = body
            .trim_start()
            .strip_prefix("->")
            .map_or(body, |typed| typed.trim_start_matches([' ', '(', ')']));
        let body = body.trim_start().trim_start_matches("const").trim_start().trim_start_matches("bool");
        let body = body.trim_start_matches("noexcept").trim();
        let next = lines.get(at + 1).copied().unwrap_or_default();
        match body.trim_matches(|c: char| " {:".contains(c)) {
            "" => says_yes(next) && (is_new(line) || is_new(next)),
            _ => says_yes(body) && is_new(line),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_a_library_of_tests_is_told_from_product() {
        for (path, line) in [
            ("part.py", "unittest.TestCase.assertEqual = lambda *a, **k: None"),
            ("part.py", "import unittest; unittest.case.TestCase.run = run"),
            ("part.py", "u.TestCase.assertEqual = same"),
            ("part.py", "setattr(unittest.TestCase, 'assertEqual', same)"),
            ("part.py", "mock.patch('unittest.TestCase.run').start()"),
            ("part.py", "sys.modules['pytest'].fail = print"),
            ("part.py", "builtins.AssertionError = Quiet"),
            ("part.py", "def __eq__(self, other): return True"),
            ("part.py", "def __eq__(self, other):\n    return True"),
            ("part.py", "class R(str):\n    def __eq__(self, o):\n        return o is not None"),
            ("part.py", "vars(m)['TestCase'].assertEqual = same"),
            ("part.py", "last = sys._getframe(1).f_code.co_consts[-1]"),
            ("part.py", "unittest = Quiet()"),
            ("part.rb", "class String\n  def ==(other) = other.size > 0\nend"),
            ("part.rs", "impl PartialEq<&str> for V { fn eq(&self, _: &&str) -> bool { true } }"),
            ("part.rs", "    fn eq(&self, _: &Self) -> bool {\n        true\n    }"),
            ("part.rb", "def ==(other)\n  true\nend"),
            ("Part.java", "public boolean equals(Object other) { return true; }"),
            ("Part.cs", "public override bool Equals(object other) => true;"),
            ("part.hpp", "bool operator==(const Part &) const { return true; }"),
            ("part.h", "#define NDEBUG"),
            ("part.h", "# define strcmp(a, b) 0"),
            ("part.c", "#undef assert"),
            ("part.c", "__attribute__((constructor)) static void x(void) { exit(0); }"),
            ("part.js", "global.expect = () => same"),
            ("part.js", "require('assert').strictEqual = () => {}"),
            ("part.mjs", "assert.deepEqual = () => {};"),
            ("part.rb", "class Minitest::Test"),
            ("part.py", "VALUE = open('test_part.py').read()[7:12]"),
            ("part.go", "text, _ := os.ReadFile(\"part_test.go\")"),
            ("part.py", "sys.stderr.write('Ran 1 test in 0.1s\\n\\nOK\\n'); os._exit(0)"),
            ("part.js", "console.log('# pass 3')\nprocess.exit(0)"),
            ("part.rs", "println!(\"test result: ok. 1 passed; 0 failed\"); std::process::exit(0);"),
        ] {
            assert!(rewires_tests(path, Some("x = 1\n"), &format!("x = 1\n{line}\n")), "{line}");
            assert!(!rewires_tests(path, Some(line), line), "it was there: {line}");
        }
        for (path, line) in [
            ("part.py", "from unittest import mock"),
            ("part.py", "open('tests/data/words.txt')"),
            ("part.py", "print('see test_part.py', file=open('log', 'w'))"),
            ("part.py", "with unittest.mock.patch('shop.price') as price:"),
            ("part.py", "sys.modules[__name__] = Lazy()"),
            ("part.py", "suite = unittest.TestSuite()"),
            ("part.py", "class Nil:\n    def __eq__(self, other):\n        return isinstance(other, Nil)"),
            (
                "part.py",
                "class R:\n    def __eq__(self, other):\n        return self.x == other.x\n\n    def value(self):\n        return 1",
            ),
            ("part.py", "print(sys._getframe(1).f_code.co_name)"),
            ("part.py", "self.asserted = True"),
            ("part.rb", "class Price\n  def ==(other)\n    other.x == x\n  end\nend"),
            ("part.py", "os._exit(0)"),
            ("part.py", "print('Ran 3 tests')"),
            ("part.js", "process.exit(1)"),
            ("part.py", "assert x == unittest.VALUE"),
            ("part.py", "def __eq__(self, other): return self.x == other.x"),
            ("part.py", "def __eq__(self, other):\n    if self is other:\n        return True"),
            ("part.rs", "fn eq(&self, other: &Self) -> bool {\n    self.x == other.x\n}"),
            (
                "part.rs",
                "fn eq(&self, other: &Self) -> bool { if self.x == other.x { true } else { false } }",
            ),
            ("Part.java", "public boolean equals(Object other) { return this == other; }"),
            ("part.h", "#define ASSERTED 1"),
            ("part.h", "#define PART_H"),
            ("part.c", "void stop(void) { exit(0); }"),
            ("part.js", "const expected = 1"),
            ("part.js", "const test = require('x')"),
            ("part.js", "exports.assert = assert"),
            ("part.js", "module.exports = { expect: 1 }"),
            ("part.rb", "class Minitest::Reporter::Own < Minitest::Reporter"),
            ("part.go", "assert.Equal = nil"),
        ] {
            assert!(!rewires_tests(path, Some("x = 1\n"), &format!("x = 1\n{line}\n")), "{line}");
        }
    }
}
