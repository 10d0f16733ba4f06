//! Outputs of test runners of five ecosystems, with what differs from run to run: times, addresses, temporary folders, and
//! the order of tests that run in parallel.

use super::rng::Rng;
use std::fmt::Write as _;

/// Where a trajectory plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ecosystem {
    /// cargo test, or nextest.
    Rust,
    /// pytest.
    Python,
    /// go test.
    Go,
    /// jest, or vitest.
    Js,
    /// Maven Surefire.
    Java,
}

impl Ecosystem {
    /// All five.
    pub const ALL: [Self; 5] = [Self::Rust, Self::Python, Self::Go, Self::Js, Self::Java];

    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::Go => "go",
            Self::Js => "js",
            Self::Java => "java",
        }
    }
    /// The path of a source file.
    pub fn source(self, stem: &str) -> String {
        match self {
            Self::Rust => format!("src/{stem}.rs"),
            Self::Python => format!("app/{stem}.py"),
            Self::Go => format!("pkg/{stem}/{stem}.go"),
            Self::Js => format!("src/{stem}.ts"),
            Self::Java => format!("src/main/java/app/{stem}.java"),
        }
    }
    /// The path of a test file.
    pub fn test(self, stem: &str) -> String {
        match self {
            Self::Rust => format!("tests/{stem}.rs"),
            Self::Python => format!("tests/test_{stem}.py"),
            Self::Go => format!("pkg/{stem}/{stem}_test.go"),
            Self::Js => format!("src/{stem}.test.ts"),
            Self::Java => format!("src/test/java/app/{stem}Test.java"),
        }
    }
    /// A lock file.
    pub fn lock(self) -> &'static str {
        match self {
            Self::Rust => "Cargo.lock",
            Self::Python => "poetry.lock",
            Self::Go => "go.sum",
            Self::Js => "package-lock.json",
            Self::Java => "generated/Api.java",
        }
    }
    /// How a comment begins.
    pub fn comment(self) -> &'static str {
        if self == Self::Python { "# " } else { "// " }
    }
    /// What the verifier runs.
    pub fn command(self) -> &'static str {
        match self {
            Self::Rust => "cargo test",
            Self::Python => "pytest",
            Self::Go => "go test ./...",
            Self::Js => "npm test",
            Self::Java => "mvn test",
        }
    }
}

/// A failing test with what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failing {
    /// Its name.
    pub name: String,
    /// What it says.
    pub says: String,
}

/// What a verifier prints.
#[derive(Debug, Clone)]
pub enum Check {
    /// Tests ran.
    Tests {
        /// Names of those that pass.
        passed: Vec<String>,
        /// Those that do not.
        failed: Vec<Failing>,
    },
    /// The build broke before any test: file and message.
    Broken(Vec<(String, String)>),
    /// A linter counted problems: file and message, and how many in all.
    Lint(Vec<(String, String)>, usize),
    /// Words of a program that nobody knows, and whether it passed.
    Plain(String, bool),
}

impl Check {
    /// Whether it passes.
    pub fn passes(&self) -> bool {
        match self {
            Self::Tests { failed, .. } => failed.is_empty(),
            Self::Broken(_) => false,
            Self::Lint(_, count) => *count == 0,
            Self::Plain(_, passed) => *passed,
        }
    }

    /// The output of one run.
    pub fn print(&self, eco: Ecosystem, other: bool, rng: &mut Rng) -> String {
        match self {
            Self::Tests { passed, failed } => match (eco, other) {
                (Ecosystem::Rust, false) => cargo(passed, failed, rng),
                (Ecosystem::Rust, true) => nextest(passed, failed, rng),
                (Ecosystem::Python, _) => pytest(passed, failed, rng),
                (Ecosystem::Go, _) => go(passed, failed, rng),
                (Ecosystem::Js, false) => jest(passed, failed, rng),
                (Ecosystem::Js, true) => vitest(passed, failed, rng),
                (Ecosystem::Java, _) => surefire(passed, failed, rng),
            },
            Self::Broken(errors) => {
                let mut out = format!("{} Building in /tmp/build-{}\n", clock(rng), rng.hex(8));
                for (file, says) in errors {
                    let _ = writeln!(
                        out,
                        "error: {says}\n  --> {file}:{}:{}",
                        rng.between(1, 400),
                        rng.between(1, 60)
                    );
                }
                let _ =
                    writeln!(out, "error: could not compile `app` due to {} previous errors", errors.len());
                out
            }
            Self::Lint(found, count) => {
                let mut out = String::new();
                for (file, says) in found.iter().take(12) {
                    let _ =
                        writeln!(out, "{file}:{}:{} error {says}", rng.between(1, 400), rng.between(1, 60));
                }
                let _ = writeln!(out, "\n✖ {count} problems ({count} errors, 0 warnings)");
                out
            }
            Self::Plain(words, _) => format!("[{}] {words} (took {} ms)\n", clock(rng), rng.between(3, 900)),
        }
    }
}

fn clock(rng: &mut Rng) -> String {
    format!(
        "2026-11-15T{:02}:{:02}:{:02}.{:03}Z",
        rng.below(24),
        rng.below(60),
        rng.below(60),
        rng.below(1000)
    )
}

fn cargo(passed: &[String], failed: &[Failing], rng: &mut Rng) -> String {
    let mut out = String::new();
    if rng.chance(60) {
        let _ = writeln!(out, "   Compiling app v0.1.0 (/tmp/work-{}/app)", rng.hex(6));
    }
    let _ = writeln!(
        out,
        "    Finished `test` profile [unoptimized + debuginfo] target(s) in {}.{:02}s",
        rng.below(9),
        rng.below(100)
    );
    let _ = writeln!(out, "     Running unittests src/lib.rs (target/debug/deps/app-{})\n", rng.hex(16));
    let _ = writeln!(out, "running {} tests", passed.len() + failed.len());
    let mut lines: Vec<String> = passed.iter().map(|n| format!("test {n} ... ok")).collect();
    lines.extend(failed.iter().map(|f| format!("test {} ... FAILED", f.name)));
    rng.shuffle(&mut lines);
    let _ = writeln!(out, "{}", lines.join("\n"));
    if !failed.is_empty() {
        out.push_str("\nfailures:\n");
    }
    for f in failed {
        let _ = writeln!(
            out,
            "\n---- {} stdout ----\nthread '{}' ({}) panicked at /tmp/work-{}/app/src/lib.rs:{}:9:\n{}\nnote: run with `RUST_BACKTRACE=1`",
            f.name,
            f.name,
            rng.between(1000, 99999),
            rng.hex(6),
            rng.between(10, 400),
            f.says
        );
    }
    let word = if failed.is_empty() { "ok" } else { "FAILED" };
    let _ = writeln!(
        out,
        "\ntest result: {word}. {} passed; {} failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.{:02}s",
        passed.len(),
        failed.len(),
        rng.below(100)
    );
    out
}

fn nextest(passed: &[String], failed: &[Failing], rng: &mut Rng) -> String {
    let mut out = format!(" Nextest run ID {}-{}-{}\n", rng.hex(8), rng.hex(4), rng.hex(12));
    let mut lines: Vec<String> =
        passed.iter().map(|n| format!("        PASS [   0.{:03}s] app {n}", rng.below(1000))).collect();
    lines.extend(failed.iter().map(|f| {
        format!("        FAIL [   0.{:03}s] app {}\n  stderr ───\n    {}", rng.below(1000), f.name, f.says)
    }));
    rng.shuffle(&mut lines);
    let _ = writeln!(out, "{}", lines.join("\n"));
    let _ = writeln!(
        out,
        "     Summary [   0.{:03}s] {} tests run: {} passed, {} failed, 0 skipped",
        rng.below(1000),
        passed.len() + failed.len(),
        passed.len(),
        failed.len()
    );
    out
}

fn pytest(passed: &[String], failed: &[Failing], rng: &mut Rng) -> String {
    let mut out =
        String::from("============================= test session starts ==============================\n");
    let _ = writeln!(
        out,
        "rootdir: /tmp/pytest-of-u/pytest-{}\ncollected {} items\n",
        rng.below(99),
        passed.len() + failed.len()
    );
    for f in failed {
        let _ = writeln!(
            out,
            "___ {} ___\n\n>       {}\nE       <app.Object object at 0x7f{}>\n\ntests/test_app.py:{}: AssertionError",
            f.name,
            f.says,
            rng.hex(10),
            rng.between(4, 400)
        );
    }
    out.push_str("=========================== short test summary info ============================\n");
    for f in failed {
        let _ = writeln!(out, "FAILED tests/test_app.py::{} - {}", f.name, f.says);
    }
    let mut words = Vec::new();
    if !failed.is_empty() {
        words.push(format!("{} failed", failed.len()));
    }
    if !passed.is_empty() {
        words.push(format!("{} passed", passed.len()));
    }
    let _ =
        writeln!(out, "========= {} in {}.{:02}s =========", words.join(", "), rng.below(9), rng.below(100));
    out
}

fn go(passed: &[String], failed: &[Failing], rng: &mut Rng) -> String {
    let mut out = String::new();
    for name in passed {
        let _ = writeln!(out, "=== RUN   {name}\n--- PASS: {name} (0.0{}s)", rng.below(10));
    }
    for f in failed {
        let _ = writeln!(
            out,
            "=== RUN   {}\n    app_test.go:{}: {}\n--- FAIL: {} (0.{:02}s)",
            f.name,
            rng.between(9, 300),
            f.says,
            f.name,
            rng.below(100)
        );
    }
    match failed.is_empty() {
        true => out.push_str(&format!("PASS\nok  \texample.com/app\t0.{:03}s\n", rng.below(1000))),
        false => out.push_str(&format!("FAIL\nFAIL\texample.com/app\t0.{:03}s\n", rng.below(1000))),
    }
    out
}

fn jest(passed: &[String], failed: &[Failing], rng: &mut Rng) -> String {
    let mut out =
        String::from(if failed.is_empty() { "PASS src/app.test.ts\n" } else { "FAIL src/app.test.ts\n" });
    for name in passed {
        let _ = writeln!(out, "    ✓ {name} ({} ms)", rng.between(1, 40));
    }
    for f in failed {
        let _ = writeln!(out, "    ✕ {} ({} ms)", f.name, rng.between(1, 40));
    }
    for f in failed {
        let _ = writeln!(
            out,
            "\n  ● app › {}\n\n    {}\n\n      at Object.<anonymous> (/tmp/jest_{}/src/app.test.ts:{}:7)",
            f.name,
            f.says,
            rng.hex(4),
            rng.between(4, 300)
        );
    }
    let fails = if failed.is_empty() { String::new() } else { format!("{} failed, ", failed.len()) };
    let _ = writeln!(
        out,
        "\nTests:       {fails}{} passed, {} total\nTime:        {}.{:03} s",
        passed.len(),
        passed.len() + failed.len(),
        rng.below(9),
        rng.below(1000)
    );
    out
}

fn vitest(passed: &[String], failed: &[Failing], rng: &mut Rng) -> String {
    let mut out = format!(" RUN  v3.0.{} /tmp/vitest-{}\n\n", rng.below(9), rng.hex(6));
    for f in failed {
        let _ = writeln!(
            out,
            " FAIL  src/app.test.ts > app > {}\nAssertionError: {}\n ❯ src/app.test.ts:{}:{}",
            f.name,
            f.says,
            rng.between(4, 300),
            rng.between(2, 40)
        );
    }
    let fails = if failed.is_empty() { String::new() } else { format!("{} failed | ", failed.len()) };
    let _ = writeln!(
        out,
        "\n      Tests  {fails}{} passed ({})\n   Start at  {:02}:{:02}:{:02}\n   Duration  {}ms",
        passed.len(),
        passed.len() + failed.len(),
        rng.below(24),
        rng.below(60),
        rng.below(60),
        rng.between(90, 900)
    );
    out
}

fn surefire(passed: &[String], failed: &[Failing], rng: &mut Rng) -> String {
    let mut out = String::from("[INFO] Running app.AppTest\n");
    let all = passed.len() + failed.len();
    let _ = writeln!(
        out,
        "[INFO] Tests run: {all}, Failures: {}, Errors: 0, Skipped: 0, Time elapsed: 0.{:03} s - in app.AppTest",
        failed.len(),
        rng.below(1000)
    );
    for f in failed {
        let _ = writeln!(
            out,
            "[ERROR] app.AppTest.{}  Time elapsed: 0.{:03} s  <<< FAILURE!\norg.opentest4j.AssertionFailedError: {}",
            f.name,
            rng.below(1000),
            f.says
        );
    }
    if !failed.is_empty() {
        out.push_str("[ERROR] Failures:\n");
    }
    for f in failed {
        let _ = writeln!(out, "[ERROR]   AppTest.{}:{} {}", f.name, rng.between(9, 300), f.says);
    }
    let sign = if failed.is_empty() { "INFO" } else { "ERROR" };
    let _ = writeln!(
        out,
        "[{sign}] Tests run: {all}, Failures: {}, Errors: 0, Skipped: 0\n[INFO] Finished at: {}",
        failed.len(),
        clock(rng)
    );
    out
}
