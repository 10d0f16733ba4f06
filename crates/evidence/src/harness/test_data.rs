//! What serves tests by its name and stands elsewhere than tests do: `checks/want.json`, `golden_output.txt`, `checks/compare.py`.

/// Words of names of what serves tests, and is not what they test.
const WORDS: &[&str] = &[
    "approved",
    "assert",
    "assertion",
    "assertions",
    "asserts",
    "baseline",
    "baselines",
    "check",
    "checks",
    "expect",
    "expectation",
    "expectations",
    "expected",
    "fake",
    "fakes",
    "fixture",
    "fixtures",
    "golden",
    "goldens",
    "harness",
    "helper",
    "helpers",
    "mock",
    "mocks",
    "oracle",
    "reference",
    "references",
    "snapshot",
    "snapshots",
    "stub",
    "stubs",
    "test",
    "tests",
    "truth",
    "want",
    "wanted",
];

/// Whether a path says by one of its words that it serves tests: `checks/cases.csv`, `want.json`, not `checkout.py`.
pub fn serves_tests(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    path.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| WORDS.contains(&word))
}

/// Whether `text` names the file `path`: by its name, by its module, or by the folder that it stands in, as a word of its own.
pub fn is_named_in(text: &str, path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.split('.').next().unwrap_or(name);
    let last = folder.rsplit('/').next().unwrap_or(folder);
    has_word(text, name) || has_import(text, stem) || is_quoted(text, last)
}

/// Whether a source names the module `path`, or the file by its name: somebody else needs it, too.
pub fn is_used_in(text: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    has_word(text, name) || has_import(text, name.split('.').next().unwrap_or(name))
}

/// Ends of names of data; a name without one is data, too.
const DATA: &[&str] = &[
    "json", "jsonl", "ndjson", "csv", "tsv", "txt", "yaml", "yml", "xml", "dat", "bin", "out", "in", "hex",
    "b64", "gz", "vec", "case", "cases",
];

/// Whether a path is data by its name, whatever it is for.
pub fn is_data(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((stem, end)) => !stem.is_empty() && DATA.contains(&end.to_ascii_lowercase().as_str()),
        None => path.contains('/'),
    }
}

/// Whether `text` reads the data `path`: under its name, or as one of the files of its folder.
pub fn reads_data(text: &str, path: &str) -> bool {
    const LISTS: &[&str] =
        &["glob", "listdir", "scandir", "iterdir", "readdir", "walk", "Path(", "join(", "Join("];
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let last = folder.rsplit('/').next().unwrap_or(folder);
    let starts = |line: &str, at: usize| line[..at].ends_with(['"', '\'', '`', '/']);
    let by_folder = |line: &str| {
        let lists = LISTS.iter().any(|word| line.contains(word));
        line.match_indices(last).any(|(at, _)| {
            let rest = &line[at + last.len()..];
            starts(line, at) && (rest.starts_with('/') || (lists && rest.starts_with(['"', '\'', '`'])))
        })
    };
    has_word(text, name) || (!last.is_empty() && text.lines().any(by_folder))
}

/// Whether `text` names the file by its path from the top, or from a folder near it: `'fixtures/lamps.txt'`.
pub fn names_path(text: &str, path: &str) -> bool {
    text.match_indices(path).any(|(at, _)| {
        text[..at].ends_with(['"', '\'', '`', '/']) && !text[at + path.len()..].starts_with(is_part)
    })
}

/// Whether a test, the source `own` with this text, starts programs or belongs to the package that it tests without importing it.
pub fn is_of_package_or_starts(own: &str, text: &str) -> bool {
    const STARTS: &[&str] = &[
        "subprocess",
        "check_output",
        "spawn",
        "execFile",
        "exec(",
        "execSync",
        "system(",
        "popen",
        "open(",
    ];
    let end = own.rsplit('.').next().unwrap_or_default();
    matches!(end, "go" | "rs" | "java" | "kt" | "scala" | "cs" | "swift" | "c" | "cc" | "cpp")
        || STARTS.iter().any(|word| text.contains(word))
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

fn has_word(text: &str, word: &str) -> bool {
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            !text[..at].ends_with(|c: char| is_part(c) || c == '.')
                && !text[at + word.len()..].starts_with(is_part)
        })
}

/// A module in a line that takes something in: `import part`, `from . import part`, `require('./part')`, `mod part;`.
fn has_import(text: &str, module: &str) -> bool {
    const TAKES: &[&str] = &["import", "require", "from", "include", "use ", "mod ", "load", "source"];
    let takes = |line: &&str| TAKES.iter().any(|word| line.contains(word));
    !module.is_empty()
        && text.lines().filter(takes).any(|line| {
            line.match_indices(module).any(|(at, _)| {
                !line[..at].ends_with(is_part) && !line[at + module.len()..].starts_with(is_part)
            })
        })
}

/// A folder that is named in a text of a program: `'checks'`, `"checks/"`, `'a/checks/*.json'`.
fn is_quoted(text: &str, folder: &str) -> bool {
    !folder.is_empty()
        && text.match_indices(folder).any(|(at, _)| {
            text[..at].ends_with(['"', '\'', '`', '/'])
                && text[at + folder.len()..].starts_with(['"', '\'', '`', '/'])
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_serve_tests_are_told_from_those_that_only_look_alike() {
        for path in [
            "checks/want.json",
            "golden_output.txt",
            "data/expected.csv",
            "checks/compare.py",
            "test-helpers.js",
        ] {
            assert!(serves_tests(path), "{path}");
        }
        for path in [
            "checkout.py",
            "src/latest.json",
            "special.yaml",
            "contest/a.py",
            "data.json",
            "src/reference_counting.rs",
        ] {
            assert_eq!(serves_tests(path), path.contains("reference"), "{path}");
        }
    }

    #[test]
    fn files_are_named_by_their_name_their_module_or_their_folder() {
        for text in [
            "open('checks/want.json')",
            "Path(\"want.json\")",
            "glob('checks/*.json')",
            "os.listdir('checks')",
        ] {
            assert!(is_named_in(text, "checks/want.json"), "{text}");
        }
        assert!(is_named_in("from checks.compare import same", "checks/compare.py"));
        assert!(is_named_in("const same = require('../checks/compare');", "checks/compare.js"));
        for text in ["unwant.json", "want.jsonl2", "the checks pass", "wantmore"] {
            assert!(!is_named_in(text, "checks/want.json"), "{text}");
        }
        assert!(
            !is_used_in("x = compare(a, b)", "checks/compare.py")
                && is_used_in("import compare", "checks/compare.py")
        );
    }

    #[test]
    fn data_is_read_by_its_name_or_its_folder() {
        assert!(is_data("cases/all.json") && is_data("vectors/aes.txt") && is_data("data/words"));
        assert!(!is_data("part.py") && !is_data("README.md") && !is_data(".env") && !is_data("LICENSE"));
        for text in [
            "open('cases/all.json')",
            "glob.glob('cases/*.json')",
            "os.listdir('cases')",
            "Path(\"cases\") / name",
        ] {
            assert!(reads_data(text, "cases/all.json"), "{text}");
        }
        for text in ["found['cases']", "all_cases/x", "# cases", "small.json"] {
            assert!(!reads_data(text, "cases/all.json"), "{text}");
        }
        assert!(names_path("open('fixtures/lamps.txt')", "fixtures/lamps.txt"));
        assert!(!names_path("process.env", ".env") && !names_path("lamps.txt", "fixtures/lamps.txt"));
    }
}
