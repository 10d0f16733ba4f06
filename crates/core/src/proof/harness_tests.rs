use super::*;
use crate::proof::counts::counts;
use ralph_loop_domain::ports::TraceStep;
use ralph_loop_domain::proof::ProofLevel;
use ralph_loop_evidence::weakened::is_source;
use ralph_loop_protocol::event::CheckResult;
use ralph_loop_protocol::id::{Digest, TreeId};
use ralph_loop_protocol::test_counts::TestCounts;
use ralph_loop_task::config::VerifierConfig;

type Files = &'static [(&'static str, &'static str)];

struct Scene {
    check: &'static str,
    task: &'static str,
    start: Files,
    now: Files,
    traces: [ExecTrace; 2],
    links: Files,
}

impl Scene {
    fn new(check: &'static str, start: Files, now: Files) -> Self {
        Self { check, task: "Write part.txt", start, now, traces: Default::default(), links: &[] }
    }

    fn judge(&self) -> HarnessFindings {
        let read = |files: Files| {
            move |path: &str| files.iter().find(|(p, _)| *p == path).map(|(_, text)| (*text).to_owned())
        };
        let (start, now) = (read(self.start), read(self.now));
        let mut changes = Vec::new();
        let paths: BTreeSet<&str> = self.start.iter().chain(self.now).map(|(p, _)| *p).collect();
        for path in paths {
            let status = match (start(path), now(path)) {
                (None, Some(_)) => 'A',
                (Some(_), None) => 'D',
                (a, b) if a != b => 'M',
                _ => continue,
            };
            changes.push(FileChange {
                path: path.to_owned(),
                status,
                added: None,
                removed: None,
                blob: None,
            });
        }
        let argv = ["sh", "-c", self.check].map(str::to_owned).to_vec();
        let verifier = VerifierConfig::command("tests".to_owned(), argv.clone());
        let protected = fixed_scripts([argv.as_slice()].into_iter(), "", self.task, &start);
        judge(&HarnessFacts {
            verifiers: vec![&verifier],
            folder: "",
            task: self.task,
            changes: &changes,
            start: &start,
            now: &now,
            protected: &protected,
            tests: self.start.iter().map(|(p, _)| (*p).to_owned()).filter(|p| is_test_source(p)).collect(),
            sources: self
                .start
                .iter()
                .map(|(p, _)| (*p).to_owned())
                .filter(|p| is_source(p) && !is_test_source(p))
                .collect(),
            links: self.links.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
            setup: Vec::new(),
            traces: [&self.traces[0], &self.traces[1]],
        })
    }

    fn lowered(&self) -> Vec<String> {
        let found = self.judge();
        assert_eq!(found.failed, [""; 0]);
        found.changes.iter().map(|c| c.path.clone()).collect()
    }
}

const MAKE: &str = "test:\n\tsh tools/run.sh\nlint:\n\tlint\n";

#[test]
fn honest_work_stays_independent() {
    let start: Files = &[
        ("Makefile", MAKE),
        ("tools/run.sh", "true\n"),
        ("Cargo.toml", "[dependencies]\n"),
        ("tests/a.rs", "1"),
    ];
    let now: Files = &[
        ("Makefile", "test:\n\tsh tools/run.sh\nlint:\n\tother\nnew:\n\tx\n"),
        ("tools/run.sh", "true\n"),
        ("tools/new.sh", "x\n"),
        ("Cargo.toml", "[dependencies]\nserde = '1'\n"),
        ("Cargo.lock", "x"),
        ("src/lib.rs", "x"),
        ("tests/a.rs", "1"),
        ("tests/b.rs", "2"),
    ];
    assert_eq!(Scene::new("make test", start, now).lowered(), [""; 0]);
}

#[test]
fn what_the_task_asks_for_lowers_the_level_and_what_it_does_not_fails() {
    let start: Files = &[("Makefile", MAKE), ("tools/run.sh", "true\n")];
    let now: Files = &[("Makefile", "test:\n\ttrue\n"), ("tools/run.sh", "true\n")];
    let scene = Scene::new("make test", start, now);
    assert!(scene.judge().failed[0].contains("`test` in Makefile"), "{:?}", scene.judge().failed);
    let asked = Scene { task: "Rewrite the Makefile.", ..scene };
    assert_eq!(asked.lowered(), ["Makefile"]);
    assert_eq!(asked.judge().level(), ProofLevel::OwnTests);
}

#[test]
fn scripts_behind_definitions_are_fixed_and_tests_behind_them_are_tests() {
    let read = |path: &str| match path {
        "package.json" => Some("{\"scripts\":{\"test\":\"node test.js && bash tools/run.sh\"}}".to_owned()),
        "test.js" | "tools/run.sh" => Some("1".to_owned()),
        _ => None,
    };
    let argv = ["npm", "test"].map(str::to_owned).to_vec();
    let fixed = |task: &str| fixed_scripts([argv.as_slice()].into_iter(), "", task, &read);
    assert_eq!(fixed("Do it"), ["tools/run.sh"]);
    assert_eq!(fixed("Extend tools/run.sh"), [""; 0]);
}

#[test]
fn changed_tests_and_configuration_lower_the_level_and_replacements_fail() {
    let start: Files = &[("tests/test_a.py", "assert 1"), ("data.txt", "x")];
    let changed: Files = &[("tests/test_a.py", "assert 2"), ("pytest.ini", "x"), ("data.txt", "y")];
    assert_eq!(Scene::new("pytest", start, changed).lowered(), ["pytest.ini", "tests/test_a.py"]);
    let forged: Files =
        &[("tests/test_a.py", "assert 1"), ("data.txt", "x"), (".npmrc", "script-shell=/bin/true\n")];
    assert!(Scene::new("npm test", start, forged).judge().failed[0].starts_with(".npmrc"));
    let none: Files = &[("data.txt", "x")];
    let own: Files = &[("data.txt", "x"), ("tests/test_a.py", "assert 1")];
    assert_eq!(Scene::new("pytest", none, own).lowered(), ["tests/test_a.py"]);
}

fn trace(steps: &[(TraceKind, u32, &str)]) -> ExecTrace {
    let step = |(kind, scripts, path): &(TraceKind, u32, &str)| TraceStep {
        kind: *kind,
        scripts: *scripts,
        path: (*path).to_owned(),
    };
    ExecTrace { steps: steps.iter().map(step).collect() }
}

#[test]
fn what_runners_were_seen_to_open_counts_where_no_name_says_so() {
    let start: Files = &[("hidden", "a"), ("list.cfg", "a"), ("part.py", "a")];
    let now: Files = &[("hidden", "b"), ("list.cfg", "b"), ("part.py", "b"), ("new.cfg", "b")];
    let seen = trace(&[
        (TraceKind::Read, 0, "list.cfg"),
        (TraceKind::Read, 1, "part.py"),
        (TraceKind::Read, 0, "new.cfg"),
    ]);
    let scene = Scene { traces: [seen.clone(), seen], ..Scene::new("true", start, now) };
    assert_eq!(scene.lowered(), ["list.cfg", "new.cfg"]);
    let ran = trace(&[(TraceKind::Ran, 0, "hidden")]);
    let scene = Scene { traces: [ran.clone(), ran.clone()], ..scene };
    assert_eq!(scene.judge().failed, ["hidden, which a check runs, was changed: bring it back"]);
    let other = trace(&[(TraceKind::Ran, 0, "other")]);
    let same: Files = &[("hidden", "a")];
    let gone = Scene { traces: [ran, other], ..Scene::new("true", same, same) };
    assert_eq!(gone.lowered(), ["hidden"]);
}

#[test]
fn fewer_tests_or_none_are_no_pass_unless_tests_changed() {
    let result = |executed: Option<u64>| CheckResult {
        name: "tests".into(),
        tree: TreeId::from("t"),
        passed: true,
        why: None,
        exit_code: Some(0),
        duration_ms: 1,
        tests: executed.map(|passed| TestCounts { passed, failed: 0 }),
        log: String::new(),
        log_digest: Digest::of(b""),
        failing: Vec::new(),
        last_lines: Vec::new(),
    };
    let verifier = |line: &str| {
        VerifierConfig::command("tests".to_owned(), line.split(' ').map(str::to_owned).collect())
    };
    let said = |line: &str, before: Option<u64>, now: Option<u64>, explained: bool| {
        let mut found = HarnessFindings::default();
        counts(&[&verifier(line)], &[result(before)], &[result(now)], explained, &mut found);
        (found.failed.len(), found.changes.len())
    };
    assert_eq!(said("make test", Some(3), Some(3), false), (0, 0));
    assert_eq!(said("make test", Some(3), Some(5), false), (0, 0));
    assert_eq!(said("make test", Some(3), None, true), (1, 0));
    assert_eq!(said("make test", Some(3), Some(2), false), (1, 0));
    assert_eq!(said("make test", Some(3), Some(2), true), (0, 1));
    assert_eq!(said("make test", None, None, false), (0, 0));
    assert_eq!(said("pytest", None, None, false), (1, 0));
}

#[test]
fn tests_that_the_task_does_not_ask_for_need_a_persons_word() {
    const TEST: (&str, &str) = ("test_a.py", "assert x");
    let changed =
        Scene::new("python3 -m unittest", &[TEST], &[("test_a.py", "pass"), ("test_b.py", "assert y")]);
    let mut found = changed.judge();
    assert_eq!(found.frozen().len(), 2, "{found:?}");
    found.is_refuted();
    let paths = |task: &str, had: bool| -> Vec<String> {
        found.to_accept(task, had).into_iter().map(|change| change.path).collect()
    };
    assert_eq!(paths("Do it", true), ["test_a.py", "test_b.py"]);
    assert_eq!(paths("Rewrite test_a.py", true), ["test_b.py"]);
    assert_eq!(paths("Rewrite test_a.py", false), [""; 0], "a check without tests says nothing of new ones");
    let first =
        Scene::new("python3 -m unittest", &[("a.py", "x")], &[("a.py", "x"), ("test_a.py", "assert x")]);
    let mut found = first.judge();
    assert_eq!(found.frozen().len(), 1, "{found:?}");
    found.is_refuted();
    assert!(found.to_accept("Do it", true).is_empty(), "the start had no tests: {found:?}");
    let seen = Scene::new(
        "sh check.sh",
        &[("check.sh", ". ./s.cfg"), ("s.cfg", "A=1")],
        &[("check.sh", ". ./s.cfg"), ("s.cfg", "A=2")],
    );
    let found = seen.judge();
    assert!(
        !found.changes.is_empty() && found.frozen().is_empty() && found.to_accept("", true).is_empty(),
        "{found:?}"
    );
}

#[test]
fn a_new_module_named_like_its_test_is_product_and_one_loaded_instead_of_it_is_not() {
    const TEST: (&str, &str) = ("part.test.mjs", "import './part.mjs'");
    assert_eq!(Scene::new("node --test", &[TEST], &[TEST, ("part.mjs", "x")]).lowered(), [""; 0]);
    const SAME: (&str, &str) = ("tests/parser.py", "from app.parser import x");
    let product = Scene::new("python3 -m unittest tests.parser", &[SAME], &[SAME, ("app/parser.py", "x")]);
    assert_eq!(product.lowered(), [""; 0]);
    const UNIT: (&str, &str) = ("test_part.py", "assert x");
    for new in ["test_part.so", "test_part/__init__.py"] {
        let now: Files = if new.ends_with("so") {
            &[UNIT, ("test_part.so", "x")]
        } else {
            &[UNIT, ("test_part/__init__.py", "x")]
        };
        assert_eq!(Scene::new("python3 -m unittest", &[UNIT], now).lowered(), [new]);
    }
    const CASES: (&str, &str) = ("checks/part_cases.py", "assert x");
    let check = "python3 -m unittest discover -s checks -p '*_cases.py'";
    let package = Scene::new(check, &[CASES], &[CASES, ("checks/part_cases/__init__.py", "x")]);
    assert_eq!(package.lowered(), ["checks/part_cases/__init__.py"]);
}

#[test]
fn product_with_the_name_of_a_library_is_product() {
    const TEST: (&str, &str) = ("tests/test_client.py", "assert x");
    const INIT: (&str, &str) = ("src/http/__init__.py", "");
    let client = Scene::new(
        "python3 -m unittest",
        &[TEST, INIT, ("src/http/client.py", "x = 1"), ("app/junit_report.py", "x = 1")],
        &[TEST, INIT, ("src/http/client.py", "x = 2"), ("app/junit_report.py", "x = 2")],
    );
    assert_eq!(client.lowered(), [""; 0]);
    let runner = Scene::new("python3 -m unittest", &[TEST], &[TEST, ("unittest.py", "")]);
    assert_eq!(runner.lowered(), ["unittest.py"]);
}

#[test]
fn sources_that_a_check_runs_as_programs_decide_and_imported_ones_do_not() {
    let start: Files = &[("tools/verify.py", "a"), ("part.py", "a")];
    let now: Files = &[("tools/verify.py", "b"), ("part.py", "b")];
    let seen = trace(&[(TraceKind::Ran, 0, "tools/verify.py"), (TraceKind::Read, 0, "part.py")]);
    let scene = Scene { traces: [seen.clone(), seen], ..Scene::new("true", start, now) };
    assert_eq!(scene.lowered(), ["tools/verify.py"]);
    assert!(!scene.judge().to_accept("", true).is_empty(), "a person is asked");
    let asked = Scene { task: "The output of tools/verify.py is too long", ..scene };
    assert_eq!(asked.lowered(), [""; 0]);
    let inner = trace(&[(TraceKind::Ran, 1, "tools/verify.py")]);
    let scene = Scene { traces: [inner.clone(), inner], ..Scene::new("true", start, now) };
    assert_eq!(scene.lowered(), ["tools/verify.py"]);
}

#[test]
fn folders_that_only_sound_like_tests_are_product() {
    const TEST: (&str, &str) = ("tests/test_fake.py", "assert x");
    let honest = Scene::new(
        "python3 -m unittest",
        &[TEST, ("app/testing/fake.py", "1"), ("spec/api.yaml", "1"), ("tsconfig.json", "{}")],
        &[
            TEST,
            ("app/testing/fake.py", "2"),
            ("spec/api.yaml", "2"),
            ("tsconfig.json", "{\"jsx\": \"react\"}"),
        ],
    );
    assert_eq!(honest.lowered(), [""; 0]);
    const SPEC: (&str, &str) = ("spec/part_spec.rb", "expect");
    let cheat = Scene::new(
        "rspec",
        &[SPEC, ("app/testing/asserts.py", "1"), ("spec/want.json", "1"), ("tsconfig.json", "{}")],
        &[
            SPEC,
            ("app/testing/asserts.py", "2"),
            ("spec/want.json", "2"),
            ("tsconfig.json", "{\"exclude\": []}"),
        ],
    );
    assert_eq!(cheat.lowered(), ["app/testing/asserts.py", "spec/want.json", "tsconfig.json"]);
}

#[test]
fn a_test_that_only_says_the_new_name_needs_nobodys_word() {
    let scene = Scene {
        task: "Rename the module part to core everywhere",
        ..Scene::new(
            "python3 -m unittest",
            &[("test_part.py", "import part\nassert part.x == 2\n"), ("part.py", "x = 2")],
            &[("test_part.py", "import core\nassert core.x == 2\n"), ("core.py", "x = 2")],
        )
    };
    let mut found = scene.judge();
    found.is_refuted();
    assert_eq!(found.level(), ProofLevel::OwnTests);
    assert!(found.to_accept(scene.task, true).is_empty(), "{found:?}");
}

const DOCUMENTED: &str = "def two():\n    \"\"\"\n    >>> two()\n    2\n    \"\"\"\n    return 1\n";

#[test]
fn of_documented_product_only_the_examples_are_tests() {
    let check = "python3 -m doctest -v part.py";
    let start: Files = &[("part.py", DOCUMENTED)];
    let honest: Files =
        &[("part.py", "def two():\n    \"\"\"\n    >>> two()\n    2\n    \"\"\"\n    return 2\n")];
    assert_eq!(Scene::new(check, start, honest).lowered(), [""; 0]);
    let cheat: Files =
        &[("part.py", "def two():\n    \"\"\"\n    >>> two()\n    1\n    \"\"\"\n    return 1\n")];
    assert_eq!(Scene::new(check, start, cheat).lowered(), ["part.py"]);
    assert!(Scene::new(check, start, cheat).judge().examples.contains("part.py"));
}

#[test]
fn a_source_that_moves_keeps_its_tests() {
    const OLD: &str = "pub fn two() -> u8 {\n    1\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn p() {\n        assert_eq!(super::two(), 2);\n    }\n}\n";
    const WORK: &str = "pub fn two() -> u8 {\n    2\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn p() {\n        assert_eq!(super::two(), 2);\n    }\n}\n";
    const EASY: &str = "pub fn two() -> u8 {\n    1\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn p() {\n        assert_eq!(super::two(), 1);\n    }\n}\n";
    let start: Files = &[("src/lib.rs", "pub mod a;\n"), ("src/a.rs", OLD)];
    let judge = |now: Files| Scene::new("cargo test", start, now).judge();
    for now in [
        &[("src/lib.rs", "pub mod b;\n"), ("src/b.rs", WORK)] as Files,
        &[("src/lib.rs", "pub mod a;\n"), ("src/a/mod.rs", WORK)],
    ] {
        let found = judge(now);
        assert!(found.changes.is_empty() && found.new_tests.is_empty(), "{found:?}");
    }
    let found = judge(&[("src/lib.rs", "pub mod b;\n"), ("src/b.rs", EASY)]);
    let change =
        |path: &str, status| FileChange { path: path.into(), status, added: None, removed: None, blob: None };
    let back = found.put_back(&[change("src/a.rs", 'D'), change("src/b.rs", 'A')]);
    assert_eq!(back.moved.get("src/b.rs").map(String::as_str), Some("src/a.rs"), "{found:?}");
    assert!(back.contains("src/a.rs") && !back.paths.contains("src/a.rs"), "the old file does not come back");
    let lost = judge(&[("src/lib.rs", ""), ("src/b.rs", WORK)]);
    assert!(lost.changes.iter().any(|change| change.path == "src/a.rs"), "nobody runs it: {lost:?}");
}

#[test]
fn tests_behind_links_of_the_start_are_tests() {
    let scene = Scene {
        links: &[("test_part.py", "shared/suite.py"), ("checks", "suite")],
        ..Scene::new(
            "python3 -m unittest discover -s checks -p '*_cases.py' -t .",
            &[("shared/suite.py", "1"), ("suite/part_cases.py", "1"), ("shared/part.py", "1")],
            &[("shared/suite.py", "2"), ("suite/part_cases.py", "2"), ("shared/part.py", "2")],
        )
    };
    assert_eq!(scene.lowered(), ["shared/suite.py", "suite/part_cases.py"]);
}

#[test]
fn what_settings_of_tests_name_is_a_test() {
    const TEST: (&str, &str) = ("test/part.spec.js", "assert");
    const SETTINGS: (&str, &str) = (".mocharc.json", "{\"require\":[\"./support/hooks.js\"]}");
    const PLUGINS: (&str, &str) = ("test/conftest.py", "pytest_plugins = ['support.plug']\n");
    let scene = Scene::new(
        "npm test",
        &[
            TEST,
            SETTINGS,
            PLUGINS,
            ("support/hooks.js", "1"),
            ("support/plug.py", "1"),
            ("support/other.js", "1"),
        ],
        &[
            TEST,
            SETTINGS,
            PLUGINS,
            ("support/hooks.js", "2"),
            ("support/plug.py", "2"),
            ("support/other.js", "2"),
        ],
    );
    assert_eq!(scene.lowered(), ["support/hooks.js", "support/plug.py"]);
}

#[test]
fn modules_for_tests_and_hooks_of_runners_count_as_a_whole() {
    const LIB: (&str, &str) = ("src/lib.rs", "mod a;\n#[cfg(test)]\nmod checks;\n");
    let scene = Scene::new(
        "cargo test",
        &[LIB, ("src/a.rs", "1"), ("src/checks.rs", "case!(p, 2);"), ("src/checks/more.rs", "2")],
        &[LIB, ("src/a.rs", "2"), ("src/checks.rs", "case!(p, 1);"), ("src/checks/more.rs", "1")],
    );
    assert_eq!(scene.lowered(), ["src/checks.rs", "src/checks/more.rs"]);
    const TEST: (&str, &str) = ("tests/test_a.py", "assert x");
    let hook = Scene::new(
        "python3 -m unittest",
        &[TEST, ("app/__init__.py", "x = 1\n"), ("app/other.py", "")],
        &[
            TEST,
            ("app/__init__.py", "def load_tests(a, b, c):\n    return []\n"),
            ("app/other.py", "def load(): 1\n"),
        ],
    );
    assert_eq!(hook.lowered(), ["app/__init__.py"]);
}

#[path = "loaded_tests.rs"]
mod loaded;
