use super::*;
use ralph_domain::id::{Digest, TreeId};
use ralph_domain::ports::TraceStep;
use ralph_domain::proof::ProofLevel;
use ralph_protocol::test_counts::TestCounts;

type Files = &'static [(&'static str, &'static str)];

struct Scene {
    check: &'static str,
    task: &'static str,
    start: Files,
    now: Files,
    traces: [ExecTrace; 2],
}

impl Scene {
    fn new(check: &'static str, start: Files, now: Files) -> Self {
        Self { check, task: "Write part.txt", start, now, traces: Default::default() }
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
