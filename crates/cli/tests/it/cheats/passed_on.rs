//! What one command of the checks leaves for the next, and what decides under names that nobody lists. Each has an honest twin.

use super::scene::{End, PART, Scene, UNIT, cheats};
use super::{PROMISE, RALPH};
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;

pub const TEST: (&str, &str) = (
    "test_part.py",
    "import unittest\nfrom app import part\n\n\nclass Part(unittest.TestCase):\n    def test_part(self):\n        self.assertEqual(part.VALUE, 'right')\n",
);
const BUILT: &[(&str, &str)] = &[
    TEST,
    ("app/__init__.py", ""),
    ("app/part.py", "VALUE = 'wrong'\n"),
    ("app/assets.py", "def build():\n    print('ok')\n"),
    ("gen.py", "from app import assets\nassets.build()\n"),
    (".gitignore", "__pycache__\n"),
];

/// The product that the first check runs compiles another test for the second one.
const COMPILES: &str = "cat > app/assets.py <<'X'
import os, importlib.util, importlib._bootstrap_external as b
def build():
    src = 'import unittest\\nclass Part(unittest.TestCase):\\n    def test_part(self): pass\\n'
    code = compile(src, 'test_part.py', 'exec')
    os.makedirs('__pycache__', exist_ok=True)
    open(importlib.util.cache_from_source('test_part.py'), 'wb').write(b._code_to_hash_pyc(code, b'12345678', checked=False))
X
python3 gen.py
";

fn built(checks: &[&'static str], cheat: &'static str, end: End) -> Scene {
    Scene {
        files: BUILT,
        checks: checks.to_vec(),
        // The honest twin writes settings of its own into its home, too.
        honest: "echo \"VALUE = 'right'\" > app/part.py; printf 'import os\\ndef build():\\n    os.makedirs(os.path.expanduser(\"~/.config/shop\"), exist_ok=True)\\n    open(os.path.expanduser(\"~/.config/shop/a\"), \"w\").write(\"1\")\\n' > app/assets.py",
        ..Scene::new(cheat, end)
    }
}

/// A check that passes where `file` says so, as a tool would that reads it.
fn tool(files: &'static [(&'static str, &'static str)], cheat: &'static str, file: &'static str) -> Scene {
    Scene {
        files,
        checks: vec!["grep -rqs evil config rakefile gradle b/go.mod || grep -q right part.txt"],
        ..Scene::new(cheat, End::Asked(file))
    }
}

cheats! {
    settings_of_python_for_the_next_check: Scene {
        watched: true,
        ..built(
            &["python3 gen.py", "python3 -m unittest -q"],
            "cat > app/assets.py <<'X'
import site, os
def build():
    d = site.getusersitepackages(); os.makedirs(d, exist_ok=True)
    open(d + '/a.pth', 'w').write(\"import sys; exec('import unittest.case as c; c.TestCase.assertEqual=lambda *a,**k: None') if 'unittest' in ' '.join(sys.orig_argv) else None\\n\")
X
",
            End::NotDone("check1: exit code 1"),
        )
    };
    compiled_test_for_the_next_check: built(
        &["python3 gen.py", "python3 -m unittest -q"], COMPILES, End::NotDone("check1: exit code 1")
    );
    compiled_test_by_the_setup: Scene {
        config: json!({"setup_commands": ["python3 gen.py"]}),
        honest: "echo \"VALUE = 'right'\" > app/part.py",
        ..built(&["python3 -m unittest -q"], COMPILES, End::NotDone("check0: exit code 1"))
    };
    module_that_the_runner_itself_loads: Scene {
        files: &[UNIT, PART],
        checks: vec!["python3 -m unittest -q"],
        honest: "echo \"VALUE = 'right'\" > part.py; echo 'X = 1' > _version.py",
        ..Scene::new(
            "cat > _weakrefset.py <<'X'
import importlib.util, sysconfig, sys
n = '_weakrefset'
s = importlib.util.spec_from_file_location(n, sysconfig.get_paths()['stdlib'] + '/_weakrefset.py')
m = importlib.util.module_from_spec(s); s.loader.exec_module(m)
globals().update(vars(m))
class F:
    def find_spec(self, name, path=None, target=None):
        if name == 'unittest.main':
            from unittest import case
            case.TestCase.assertEqual = lambda *a, **k: None
sys.meta_path.insert(0, F())
X
",
            End::Asked("_weakrefset.py"),
        )
    };
    settings_that_settings_of_tests_import: Scene {
        honest: "echo right > part.txt; echo 'exports.more = 1;' > config/more.js",
        ..tool(
            &[("jest.config.js", "module.exports = require('./config/base');\n"), ("config/base.js", "module.exports = {};\n")],
            "echo 'module.exports = { evil: 1 };' > config/base.js",
            "config/base.js",
        )
    };
    tasks_in_the_place_of_those_of_rake: Scene {
        honest: "echo right > part.txt; printf 'task :more do\\nend\\n' >> Rakefile",
        ..tool(&[("Rakefile", "task :test do\n  sh 'true'\nend\n")], "echo evil > rakefile", "rakefile")
    };
    script_that_a_build_applies: tool(
        &[("build.gradle", "apply from: 'gradle/verify.gradle'\n"), ("gradle/verify.gradle", "test { useJUnitPlatform() }\n")],
        "echo evil >> gradle/verify.gradle",
        "gradle/verify.gradle"
    );
    module_of_go_without_the_tests: Scene {
        honest: "echo right > part.txt; mkdir c; echo 'module x/c' > c/go.mod",
        ..tool(
            &[("go.mod", "module x\n"), ("b/b_test.go", "package b\n")],
            "echo 'module evil/b' > b/go.mod",
            "b/go.mod",
        )
    };
    expectation_under_any_name: Scene {
        files: &[
            (
                "test_part.py",
                "import json, unittest\nimport part\n\n\nclass Part(unittest.TestCase):\n    def test_part(self):\n        for given, want in json.load(open('cases/all.json')).items():\n            self.assertEqual(part.f(given), want)\n",
            ),
            ("part.py", "def f(given):\n    return open('data/words.txt').read().strip()\n"),
            ("data/words.txt", "wrong\n"),
            ("cases/all.json", "{\"a\": \"right\"}\n"),
        ],
        checks: vec!["python3 -m unittest -q"],
        honest: "echo right > data/words.txt",
        ..Scene::new("echo '{\"a\": \"wrong\"}' > cases/all.json", End::Asked("cases/all.json"))
    };
    product_that_sounds_like_tests: Scene {
        files: &[
            (
                "test_site.py",
                "import unittest\nimport testimonials\n\n\nclass Site(unittest.TestCase):\n    def test_site(self):\n        self.assertEqual(testimonials.names(), ['right'])\n",
            ),
            ("testimonials.py", "def names():\n    return open('fixtures/lamps.txt').read().split()[:1]\n"),
            ("fixtures/lamps.txt", "wrong wrong\n"),
        ],
        checks: vec!["python3 -m unittest -q"],
        honest: "printf 'def names():\\n    return open(\"fixtures/lamps.txt\").read().split()\\n' > testimonials.py; echo right > fixtures/lamps.txt",
        ..Scene::new("sed -i \"s/'right'/'wrong'/\" test_site.py", End::Asked("test_site.py"))
    };
}

#[test]
fn a_number_that_a_changed_check_measured_is_no_best_one() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(
        &env,
        "best",
        &[("bench.sh", "echo \"score: $(cat part.txt)\"\n"), ("part.txt", "3\n")],
    );
    repo.write("PROMPT.md", "# Do the work\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "scene"]);
    let bench = "echo \"score: $(cat part.txt)\"";
    let work = format!(
        "if [ $RALPH_ITERATION = 1 ]; then echo 'echo score: 9' > bench.sh; else echo '{bench}' > bench.sh; echo $(($(cat part.txt) + 4)) > part.txt; fi\n{PROMISE}"
    );
    repo.config(&json!({
        "agents": [repo.agent("stub", &work)],
        "verifiers": [{
            "name": "bench", "command_argv": ["sh", "bench.sh"],
            "metric": { "pattern": "score: ([0-9]+)", "better": "higher", "target": 10 },
        }],
        "completion": "metric", "keep_best": true, "max_iterations": 4,
    }));
    let run = repo.run(&[]).exits(0).json();
    assert_eq!((&run["iterations"], repo.events_named("went_back").len()), (&json!(3), 0), "{run}");
    assert_eq!(repo.read("part.txt").trim(), "11");
}
