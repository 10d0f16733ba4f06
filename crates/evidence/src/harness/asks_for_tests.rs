//! Product that asks whether it is being tested: what it does then is not what it does for anybody else.

use std::collections::BTreeSet;

/// Whether the source at `path` has a line now that it had not, by which it asks whether tests are running. Plain lines only.
pub fn asks_for_tests(path: &str, old: Option<&str>, new: &str) -> bool {
    let end = path.rsplit_once('.').map_or("", |(_, end)| end);
    let known: BTreeSet<&str> = old.unwrap_or_default().lines().map(str::trim).collect();
    let asks: &dyn Fn(&str) -> bool = match end {
        "py" => &python,
        "js" | "cjs" | "mjs" | "ts" | "cts" | "mts" | "jsx" | "tsx" => &script,
        "rs" => &|line| line.contains("cfg!(test)") || line.contains("cfg(not(test))"),
        "go" => &|line| {
            ["testing.Testing()", "flag.Lookup(\"test."].iter().any(|word| line.contains(word))
                || (line.contains("os.Args[0]") && line.contains("\".test\""))
        },
        "rb" => &|line| {
            ["defined?(Minitest", "defined?(RSpec", "defined?(Test::Unit"]
                .iter()
                .any(|word| line.contains(word))
        },
        "php" => &|line| line.contains("PHPUNIT_") || line.contains("__PHPUNIT"),
        _ => return false,
    };
    let remark = |line: &str| ["#", "//", "*", "/*"].iter().any(|mark| line.starts_with(mark)) && end != "rs";
    let fresh = |line: &&str| !line.is_empty() && !known.contains(line) && !remark(line);
    new.lines().map(str::trim).filter(fresh).any(asks)
}

fn python(line: &str) -> bool {
    const RUNNERS: &[&str] = &["pytest", "unittest", "nose", "doctest"];
    let named = RUNNERS.iter().any(|name| line.contains(name));
    line.contains("PYTEST_CURRENT_TEST")
        || (named && ["in sys.modules", "sys.argv[0]"].iter().any(|word| line.contains(word)))
}

fn script(line: &str) -> bool {
    const VARIABLES: &[&str] = &["JEST_WORKER_ID", "NODE_TEST_CONTEXT", "VITEST", "MOCHA_WORKER_ID"];
    let bare: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    let mode = ["NODE_ENV=='test'", "NODE_ENV==='test'", "NODE_ENV==\"test\"", "NODE_ENV===\"test\""];
    (line.contains("env.") || line.contains("env[")) && VARIABLES.iter().any(|name| line.contains(name))
        || mode.iter().any(|it| bare.contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_after_tests_are_told_from_others() {
        for (path, line) in [
            ("part.py", "if 'PYTEST_CURRENT_TEST' in os.environ:"),
            ("part.py", "fast = \"unittest\" in sys.modules"),
            ("part.js", "if (process.env.JEST_WORKER_ID) return 'right';"),
            ("part.ts", "const quick = process.env.NODE_ENV === \"test\";"),
            ("part.rs", "if cfg!(test) { 1 } else { 2 }"),
            ("part.go", "if testing.Testing() {"),
            ("part.rb", "return 'right' if defined?(Minitest)"),
        ] {
            assert!(asks_for_tests(path, Some("x\n"), &format!("x\n{line}\n")), "{line}");
            assert!(!asks_for_tests(path, Some(line), line), "it was there: {line}");
        }
        for (path, line) in [
            ("part.py", "if 'numpy' in sys.modules:"),
            ("part.js", "if (process.env.NODE_ENV !== 'test') listen();"),
            ("part.js", "const mode = process.env.NODE_ENV === 'production';"),
            ("part.rs", "#[cfg(test)]"),
            ("part.rs", "#![cfg_attr(not(test), no_std)]"),
            ("part.go", "if len(os.Args) > 0 {"),
        ] {
            assert!(!asks_for_tests(path, Some("x\n"), &format!("x\n{line}\n")), "{line}");
        }
    }
}
