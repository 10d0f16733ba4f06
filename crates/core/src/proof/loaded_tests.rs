//! What is loaded by what runs the tests, read by tests, or only looks like it.

use super::{Files, Scene};
use crate::proof::harness::fixed_scripts;
use ralph_loop_domain::ports::{ExecTrace, TraceKind, TraceStep};

const TEST: (&str, &str) =
    ("part.test.js", "const p = require('./part');\ntest('p', () => expect(p.value).toBe('right'));\n");

#[test]
fn what_settings_of_tests_import_counts_and_what_the_product_uses_too_does_not() {
    const JEST: (&str, &str) = ("jest.config.js", "module.exports = require('./config/base');\n");
    const BASE: (&str, &str) =
        ("config/base.js", "const paths = require('./paths');\nmodule.exports = {};\n");
    let start: Files = &[TEST, JEST, BASE, ("config/paths.js", "1"), ("part.js", "1")];
    let changed = Scene::new(
        "jest",
        start,
        &[TEST, JEST, ("config/base.js", "2"), ("config/paths.js", "2"), ("part.js", "2")],
    );
    assert_eq!(changed.lowered(), ["config/base.js", "config/paths.js"]);
    const APP: (&str, &str) = ("app.js", "require('./config/paths');\n");
    let shared = Scene::new(
        "jest",
        &[TEST, JEST, BASE, APP, ("config/paths.js", "1"), ("part.js", "1")],
        &[TEST, JEST, BASE, APP, ("config/paths.js", "2"), ("part.js", "2")],
    );
    assert_eq!(shared.lowered(), [""; 0]);
}

#[test]
fn what_a_runner_is_told_to_load_counts() {
    for (settings, text, file) in [
        (
            "jest.config.js",
            "module.exports = { transform: {'js$': '<rootDir>/build/x.js'} };\n",
            "build/x.js",
        ),
        (".mocharc.json", "{\"ui\":\"./build/x.js\"}\n", "build/x.js"),
        ("vitest.config.mjs", "import base from './build/x.js';\nexport default base;\n", "build/x.js"),
        ("build.gradle", "apply from: 'gradle/verify.gradle'\n", "gradle/verify.gradle"),
    ] {
        let start = [TEST, ("part.js", "1"), (settings, text), (file, "1")];
        let now = [TEST, ("part.js", "2"), (settings, text), (file, "2")];
        let scene = Scene::new("jest", Vec::leak(start.to_vec()), Vec::leak(now.to_vec()));
        assert_eq!(scene.lowered(), [file], "{settings}");
    }
}

#[test]
fn a_hook_in_any_form_counts() {
    const CONF: (&str, &str) = ("tests/conftest.py", "from tooling.fix import *\n");
    const UNIT: (&str, &str) = ("tests/test_a.py", "import part\n");
    let hook = "X = 1\npytest_pyfunc_call = lambda pyfuncitem: True\n";
    let scene = Scene::new(
        "pytest",
        &[CONF, UNIT, ("tooling/fix.py", "X = 1\n"), ("part.py", "1")],
        Vec::leak(vec![CONF, UNIT, ("tooling/fix.py", hook), ("part.py", "2")]),
    );
    assert_eq!(scene.lowered(), ["tooling/fix.py"]);
}

#[test]
fn modules_in_the_place_of_a_libraries_count_in_every_folder_that_is_looked_in() {
    const TEST: (&str, &str) = ("tests/test_part.py", "import part\n");
    for (check, new) in [
        ("PYTHONPATH=app python3 -m unittest -q tests.test_part", "app/unittest.py"),
        ("python3 -m unittest -q", "_weakrefset.py"),
        ("ruby -Iext test/test_part.rb", "ext/mutex_m.rb"),
        ("prove -l t", "lib/Scalar/Util.pm"),
    ] {
        let scene = Scene::new(check, &[TEST], Vec::leak(vec![TEST, (new, "1")]));
        assert_eq!(scene.lowered(), [new], "{check}");
    }
    let honest: Files =
        &[TEST, ("app/part.py", "1"), ("ext/part.rb", "1"), ("lib/Part.pm", "1"), ("app/http.py", "1")];
    assert_eq!(Scene::new("python3 -m unittest -q", &[TEST], honest).lowered(), [""; 0]);
}

#[test]
fn a_module_of_go_that_takes_tests_out_counts() {
    const TEST: (&str, &str) = ("b/b_test.go", "package b\n");
    let scene = Scene::new(
        "go test ./...",
        &[TEST],
        &[TEST, ("b/go.mod", "module x/b\n"), ("c/go.mod", "module x/c\n")],
    );
    assert_eq!(scene.lowered(), ["b/go.mod"]);
}

const READS: (&str, &str) =
    ("test_part.py", "import json\nimport part\nWANT = json.load(open('cases/all.json'))\n");

#[test]
fn data_that_only_a_test_reads_is_an_expectation() {
    let start: Files = &[READS, ("cases/all.json", "1"), ("part.py", "1")];
    let now: Files = &[READS, ("cases/all.json", "2"), ("part.py", "2")];
    assert_eq!(Scene::new("python3 -m unittest", start, now).lowered(), ["cases/all.json"]);
    let asked = Scene { task: "Correct cases/all.json", ..Scene::new("python3 -m unittest", start, now) };
    assert_eq!(asked.lowered(), [""; 0]);
    // The product reads it, too.
    const PART: (&str, &str) = ("part.py", "open('cases/all.json')\n");
    let shared = Scene::new(
        "python3 -m unittest",
        &[READS, ("cases/all.json", "1"), PART],
        &[READS, ("cases/all.json", "2"), PART],
    );
    assert_eq!(shared.lowered(), [""; 0]);
    // A test that uses nothing else tests the data.
    const OF_DATA: (&str, &str) = ("test_data.py", "import json\njson.load(open('data/lands.json'))\n");
    let data = Scene::new(
        "python3 -m unittest",
        &[OF_DATA, ("data/lands.json", "1"), ("part.py", "1")],
        &[OF_DATA, ("data/lands.json", "2"), ("part.py", "1")],
    );
    assert_eq!(data.lowered(), [""; 0]);
}

#[test]
fn a_name_of_a_package_that_only_tests_use_is_not_led_elsewhere() {
    const NODE: (&str, &str) =
        ("test/a.test.js", "const eq = require('#eq');\nconst p = require('../part');\n");
    const BEFORE: &str = "{\"imports\":{\"#eq\":\"./support/eq.js\",\"#db\":\"./db.js\"}}";
    const AFTER: &str = "{\"imports\":{\"#eq\":\"./lib.js\",\"#db\":\"./data/db.js\"}}";
    const PART: (&str, &str) = ("part.js", "require('#db');\n");
    let scene = Scene::new(
        "node --test",
        &[NODE, PART, ("package.json", BEFORE)],
        &[NODE, PART, ("package.json", AFTER)],
    );
    let keys: Vec<_> = scene.judge().changes.into_iter().filter_map(|change| change.key).collect();
    assert_eq!(keys, ["imports/#eq"]);
}

#[test]
fn product_that_sounds_like_tests_is_product() {
    const SITE: (&str, &str) = ("test_site.py", "import unittest\nimport testimonials, app\n");
    const APP: (&str, &str) = ("app.py", "open('fixtures/lamps.txt')\nopen('.app/mode')\n");
    let start: Files = &[
        SITE,
        APP,
        ("testimonials.py", "def count(): return 1\n"),
        ("fixtures/lamps.txt", "1"),
        (".app/mode", "1"),
    ];
    let now: Files = &[
        SITE,
        APP,
        ("testimonials.py", "def count(): return 2\n"),
        ("fixtures/lamps.txt", "2"),
        (".app/mode", "2"),
    ];
    assert_eq!(Scene::new("python3 -m unittest", start, now).lowered(), [""; 0]);
    // The module that reads the data has itself a name like a test's.
    const LAMPS: (&str, &str) = ("testimonials.py", "open('fixtures/lamps.txt')\n");
    let own = Scene::new(
        "python3 -m unittest",
        &[SITE, LAMPS, ("fixtures/lamps.txt", "1")],
        &[SITE, LAMPS, ("fixtures/lamps.txt", "2")],
    );
    assert_eq!(own.lowered(), [""; 0]);
    // A test that has the name of no test, and data that a test reads.
    const TESTS: (&str, &str) = ("test_site.py", "import app\nopen('fixtures/lamps.txt')\n");
    let start: Files = &[
        TESTS,
        APP,
        ("testing.py", "class A(unittest.TestCase): 1\n"),
        ("fixtures/lamps.txt", "1"),
        (".cargo/config.toml", "1"),
    ];
    let now: Files = &[
        TESTS,
        APP,
        ("testing.py", "class A(unittest.TestCase): 2\n"),
        ("fixtures/lamps.txt", "2"),
        (".cargo/config.toml", "2"),
    ];
    let lowered = Scene::new("python3 -m unittest", start, now).lowered();
    assert_eq!(lowered, [".cargo/config.toml", "fixtures/lamps.txt", "testing.py"]);
}

#[test]
fn a_module_that_is_all_that_tests_use_is_what_they_test() {
    const TEST: (&str, &str) = ("test_c.py", "import unittest\nfrom shop.checks import fee\n");
    let start: Files = &[TEST, ("shop/__init__.py", ""), ("shop/checks.py", "1")];
    let now: Files = &[TEST, ("shop/__init__.py", ""), ("shop/checks.py", "2")];
    assert_eq!(Scene::new("python3 -m unittest", start, now).lowered(), [""; 0]);
    const BOTH: (&str, &str) = ("test_c.py", "import part\nfrom shop.checks import same\n");
    let start: Files = &[BOTH, ("part.py", "1"), ("shop/checks.py", "1")];
    let now: Files = &[BOTH, ("part.py", "1"), ("shop/checks.py", "2")];
    assert_eq!(Scene::new("python3 -m unittest", start, now).lowered(), ["shop/checks.py"]);
}

#[test]
fn what_a_variable_of_make_is_read_from_counts_and_so_do_files_of_rake() {
    const MAKE: (&str, &str) =
        ("Makefile", "WORD=$(shell cat VERSION)\ntest:\n\tgrep -q \"$(WORD)\" part.txt\n");
    let scene = Scene::new(
        "make -s test",
        &[MAKE, ("VERSION", "right"), ("NOTES", "1")],
        &[MAKE, ("VERSION", "wrong"), ("NOTES", "2")],
    );
    assert_eq!(scene.lowered(), ["VERSION"]);
    const RAKE: (&str, &str) = ("Rakefile", "task :test do\n  sh 'ruby tools/check.rb'\nend\n");
    let rake = Scene::new(
        "rake test",
        &[RAKE, ("a_test.rb", "1")],
        &[RAKE, ("a_test.rb", "1"), ("rakefile", "x"), ("rakelib/a.rake", "x")],
    );
    assert_eq!(rake.lowered(), ["rakefile", "rakelib/a.rake"]);
}

#[test]
fn what_came_while_the_checks_ran_counts_where_a_runner_looks_first() {
    const TEST: (&str, &str) = ("test_part.py", "import part\n");
    let files: Files = &[TEST, ("part.py", "1")];
    let seen = |steps: &[(TraceKind, &str)]| {
        let step = |(kind, path): &(TraceKind, &str)| TraceStep {
            kind: *kind,
            scripts: 0,
            path: (*path).to_owned(),
        };
        ExecTrace { steps: steps.iter().map(step).collect() }
    };
    let now = [
        (TraceKind::Wrote, "unittest.py"),
        (TraceKind::Wrote, "gen/part.py"),
        (TraceKind::Wrote, "made.py"),
        (TraceKind::Planted, "__pycache__/test_part.cpython-312.pyc"),
        (TraceKind::Planted, "__pycache__/part.cpython-312.pyc"),
        (TraceKind::Planted, "node_modules/jest"),
        (TraceKind::Planted, "node_modules/@prisma/client"),
        (TraceKind::Planted, "~/.local/bin/pytest"),
    ];
    let scene = Scene {
        traces: [ExecTrace::default(), seen(&now)],
        ..Scene::new("python3 -m unittest -q", files, files)
    };
    let told =
        ["__pycache__/test_part.cpython-312.pyc", "node_modules/jest", "unittest.py", "~/.local/bin/pytest"];
    assert_eq!(scene.lowered(), told);
    let as_ever =
        Scene { traces: [seen(&now), seen(&now)], ..Scene::new("python3 -m unittest -q", files, files) };
    assert_eq!(as_ever.lowered(), [""; 0]);
}

#[test]
fn a_script_whose_output_the_check_compares_is_product_and_one_it_goes_by_is_not() {
    let start: Files =
        &[("app.sh", "cat words.txt\n"), ("words.txt", "1"), ("run.sh", "1"), ("want.cfg", "1")];
    let now: Files =
        &[("app.sh", "cat words.txt;\n"), ("words.txt", "2"), ("run.sh", "1"), ("want.cfg", "1")];
    let ran = |path: &str| TraceStep { kind: TraceKind::Ran, scripts: 0, path: path.to_owned() };
    let read = |path: &str| TraceStep { kind: TraceKind::Read, scripts: 1, path: path.to_owned() };
    for check in ["[ \"$(./app.sh)\" = right ]", "./app.sh | grep -q right", "./app.sh > x; diff x words.txt"]
    {
        let trace = ExecTrace { steps: [ran("app.sh"), read("words.txt")].into() };
        let scene = Scene { traces: [trace.clone(), trace], ..Scene::new(check, start, now) };
        let found = scene.judge();
        let changed: Vec<&str> =
            found.changes.iter().map(|c| c.path.as_str()).filter(|p| *p == "app.sh").collect();
        assert_eq!((found.failed, changed), (Vec::<String>::new(), Vec::new()), "{check}");
    }
    let other: Files = &[("app.sh", "1"), ("words.txt", "1"), ("run.sh", "2"), ("want.cfg", "1")];
    for check in ["./run.sh", "sh run.sh && true", "[ \"$(./run.sh)\" = ok ]", "./run.sh | grep -q passed"] {
        let protected = fixed_scripts(
            [["sh", "-c", check].map(str::to_owned).as_slice()].into_iter(),
            "",
            "",
            &|path: &str| other.iter().find(|(p, _)| *p == path).map(|(_, text)| (*text).to_owned()),
        );
        assert_eq!(protected, ["run.sh"], "{check}");
    }
}
