//! Failing test names and problem counts in the formats of common runners. Names show progress while counts
//! stay the same.

const NAMES_MAX: usize = 24;
/// Some names are absolute paths.
const NAME_MAX: usize = 300;
/// Bytes searched for summaries at the end of an output.
const SUMMARY_MAX: usize = 16 * 1024;

pub fn failing_tests(output: &str) -> Vec<String> {
    let mut names = std::collections::BTreeSet::new();
    for line in output.lines() {
        if let Some(name) = name_in(line.trim()) {
            names.insert(ralph_loop_protocol::display::text::head(name.trim(), NAME_MAX).to_owned());
        }
        if names.len() >= NAMES_MAX {
            break;
        }
    }
    names.into_iter().collect()
}

fn name_in(line: &str) -> Option<&str> {
    // cargo: `test a::b ... FAILED`
    if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
        return Some(name);
    }
    // nextest: `FAIL [   0.012s] krate a::b`, vitest: `FAIL  src/a.test.ts > b`, jest: `FAIL src/a.test.js` (a file, no test)
    if let Some(rest) = line.strip_prefix("FAIL [") {
        return rest.split_once("] ").map(|(_, name)| name);
    }
    if let Some(rest) = line.strip_prefix("FAIL  ") {
        return rest.contains(" > ").then_some(rest);
    }
    // pytest: `FAILED tests/test_a.py::test_b - assert 1 == 2`
    if let Some(rest) = line.strip_prefix("FAILED ").filter(|rest| rest.contains("::")) {
        return Some(rest.split(" - ").next().unwrap_or(rest));
    }
    // unittest: `FAIL: test_b (test_a.Case.test_b)`, `ERROR: test_b (test_a.Case)`
    if let Some(rest) = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: ")) {
        let (name, place) = rest.strip_suffix(')')?.split_once(" (")?;
        let is_name = |text: &str| text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
        return (is_name(name) && is_name(place)).then(|| if place.ends_with(name) { place } else { rest });
    }
    // TAP: `not ok 3 - name`
    if let Some(rest) = line.strip_prefix("not ok ") {
        let name = rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches([' ', '-']);
        let (name, note) = name.split_once(" # ").unwrap_or((name, ""));
        let expected = note.starts_with("TODO") || note.starts_with("SKIP");
        return (!name.is_empty() && !expected).then_some(name);
    }
    // go: `--- FAIL: TestA (0.00s)`
    if let Some(rest) = line.strip_prefix("--- FAIL: ") {
        return rest.split(' ').next();
    }
    // doctest: `File "docs/a.md", line 7, in a.md`, after a line of stars
    if let Some((file, place)) = line.strip_prefix("File \"").and_then(|rest| rest.split_once("\", line ")) {
        let (_, name) = place.split_once(", in ")?;
        let shown = if file.starts_with('/') { file.rsplit('/').next().unwrap_or(file) } else { file };
        // A traceback names a function.
        return name.contains('.').then_some(shown);
    }
    // jest: `● suite › name`
    if let Some(rest) = line.strip_prefix("● ").filter(|rest| rest.contains(" › ")) {
        return Some(rest);
    }
    // surefire: `[ERROR] CalcTest.adds:12 expected`, `[ERROR] adds(CalcTest)  Time elapsed: … <<< FAILURE!`
    let rest = line.strip_prefix("[ERROR] ")?.trim_start();
    let word = rest.split([' ', ':']).next()?;
    let is_test = rest.ends_with("<<< FAILURE!") || rest.ends_with("<<< ERROR!");
    let is_place = rest[word.len()..].starts_with(':') && word.contains('.') && !word.contains('/');
    (is_test || is_place).then_some(word)
}

/// Problems counted by a compiler or linter in its last summary: `Found 12 errors`, `✖ 12 problems`, `due to
/// 3 previous errors`.
pub fn problems(output: &str) -> Option<u64> {
    const WORDS: [&str; 9] = [
        "errors",
        "error",
        "problems",
        "problem",
        "violations",
        "previous",
        "warnings",
        "issues",
        "offenses",
    ];
    let mut found = None;
    for line in summary(output) {
        let starts = line.contains("Found ")
            || line.contains("✖ ")
            || line.contains("due to ")
            || line.contains("generated ")
            || line.contains(" detected");
        if !starts {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let pair = words.windows(2).find_map(|pair| {
            let number: u64 = pair[0].parse().ok()?;
            WORDS.contains(&pair[1].trim_matches(|c: char| !c.is_alphabetic())).then_some(number)
        });
        found = pair.or(found);
    }
    found
}

/// The first reported distance of a measurement from its limit, in thousandths: `coverage 71.2 % is below the
/// required 80 %`, `p99 312 ms exceeds the limit of 200 ms`.
pub fn gap(output: &str) -> Option<u64> {
    const WORDS: [&str; 8] =
        ["limit", "budget", "threshold", "required", "exceeds", "at least", "at most", "target of"];
    summary(output).find_map(|line| {
        let line = line.to_ascii_lowercase();
        let at = WORDS.iter().filter_map(|word| line.find(word)).min()?;
        let (before, after) = (numbers(&line[..at]), numbers(&line[at..]));
        let (a, b) = match (before.last(), after.as_slice()) {
            (Some(measured), [limit, ..]) => (*measured, *limit),
            (None, [limit, measured, ..]) => (*measured, *limit),
            _ => return None,
        };
        Some(((a - b).abs() * 1000.0).min(1e15) as u64)
    })
}

/// Short lines with a number, at the end of the output.
fn summary(output: &str) -> impl Iterator<Item = &str> {
    let lines = ralph_loop_protocol::display::text::tail(output, SUMMARY_MAX).lines();
    lines.filter(|line| line.len() <= 300 && line.bytes().any(|b| b.is_ascii_digit()))
}

/// Numbers alone or before a unit, but not times of day or versions.
fn numbers(line: &str) -> Vec<f64> {
    line.split(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | ':' | '-' | '_' | '/')))
        .filter_map(|word| {
            let end = word.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(word.len());
            let unit = &word[end..];
            let plain = end > 0 && unit.len() <= 3 && unit.chars().all(char::is_alphabetic);
            plain.then(|| word[..end].trim_end_matches('.').parse().ok()).flatten()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_runner_names_its_failures() {
        let cases: &[(&str, &[&str])] = &[
            ("test a::b ... FAILED\ntest a::c ... ok\n", &["a::b"]),
            ("        FAIL [   0.012s] krate a::b\n", &["krate a::b"]),
            ("FAILED tests/test_a.py::test_b - assert 1 == 2\n", &["tests/test_a.py::test_b"]),
            ("--- FAIL: TestB (0.00s)\n    --- FAIL: TestB/sub (0.00s)\n", &["TestB", "TestB/sub"]),
            ("FAIL src/a.test.js\n  ● sum › adds\n", &["sum › adds"]),
            (" FAIL  src/a.test.ts > sum > adds\n", &["src/a.test.ts > sum > adds"]),
            ("[ERROR]   CalcTest.adds:12 expected: <3> but was: <4>\n", &["CalcTest.adds"]),
            ("[ERROR] adds(CalcTest)  Time elapsed: 0.01 s  <<< FAILURE!\n", &["adds(CalcTest)"]),
            (
                "FAIL: test_x (test_calc.T.test_x)\nERROR: test_y (test_calc.T)\n",
                &["test_calc.T.test_x", "test_y (test_calc.T)"],
            ),
            (
                "File \"docs/a.md\", line 7, in a.md\nFile \"/w/b.py\", line 3, in b.add\n",
                &["b.py", "docs/a.md"],
            ),
            ("  File \"/w/b.py\", line 3, in add\n", &[]),
            ("FAIL: could not open (a b)\n", &[]),
            ("ok 1 - a\nnot ok 2 - adds two\nnot ok 3 - later # TODO\n", &["adds two"]),
            ("[ERROR] Failed to execute goal x:y\n", &[]),
        ];
        for (output, want) in cases {
            assert_eq!(failing_tests(output), *want, "{output}");
        }
    }

    #[test]
    fn compilers_and_linters_count_their_problems() {
        assert_eq!(problems("Found 12 errors in 3 files.\n"), Some(12));
        assert_eq!(problems("✖ 7 problems (7 errors, 0 warnings)\n"), Some(7));
        assert_eq!(problems("error: could not compile `a` due to 3 previous errors\n"), Some(3));
        assert_eq!(problems("nothing here\n5 errors\n"), None);
    }

    #[test]
    fn the_way_to_a_limit_is_measured() {
        assert_eq!(gap("coverage 71.5 % is below the required 80 %\n"), Some(8500));
        assert_eq!(gap("[12:00:01] p99 312ms exceeds the limit of 200ms (took 17 ms)\n"), Some(112_000));
        assert_eq!(gap("Required test coverage of 80% not reached. Total coverage: 71.5%\n"), Some(8500));
        assert_eq!(gap("expected 3 but was 4\n"), None);
        assert_eq!(gap("rate limit of the api\n"), None);
    }
}
