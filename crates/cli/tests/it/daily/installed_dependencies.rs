//! Dependencies installed in the user's folder: a sandboxed run uses them without any configuration.

use super::{RALPH, claude_says, program, ralph_in};
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use std::path::Path;

const TEST_PY: &str = "import os, sys, unittest\nimport laid_in, calc\n\nclass T(unittest.TestCase):\n    def test_x(self):\n        self.assertEqual(sys.prefix, os.path.join(os.getcwd(), '.venv'))\n        self.assertEqual(calc.x, laid_in.WANTED)\n";
const TEST_JS: &str = "const wanted = require('laid-in');\nrequire('fs').writeFileSync('node_modules/.written-by-a-check', '');\nif (require('./calc').x !== wanted) { console.error('x is wrong'); process.exit(1); }\n";

/// Runs one sentence; `None` if this machine has no sandbox.
fn run(env: &TestEnv, repo: &TestRepo<'_>) -> Option<Finished> {
    let done = ralph_in(env, &repo.dir, &["run", "--json", "Make calc.x two"]);
    if done.code == Some(4) && done.stderr.contains("sandbox") {
        ralph_loop_testkit::skip(&done.stderr);
        return None;
    }
    Some(done.exits(0))
}

/// A `claude` that does this work.
fn worker(env: &TestEnv, work: &str) {
    program(env, "claude", &format!("cat > /dev/null\n{work}\n{}", claude_says("Done.")));
}

fn journal_text(repo: &TestRepo<'_>) -> String {
    std::fs::read_to_string(repo.record(&repo.latest()).join("events.jsonl")).unwrap()
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn checks_use_the_users_virtual_environment() {
    let env = TestEnv::new(RALPH);
    // Git doesn't ignore it, but it still isn't part of the result.
    let files = [("calc.py", "x = 1\n"), ("test_calc.py", TEST_PY), (".gitignore", "__pycache__/\n")];
    let repo = TestRepo::new(&env, "home/code/repo", &files);
    let made =
        TestEnv::finish(env.command("python3", &repo.dir).args(["-m", "venv", "--without-pip", ".venv"]));
    if made.code != Some(0) {
        ralph_loop_testkit::skip("`python3 -m venv` does not work on this machine");
        return;
    }
    let libraries =
        TestEnv::finish(env.command("sh", &repo.dir).args(["-c", "echo .venv/lib/python3*/site-packages"]));
    let package = repo.dir.join(libraries.stdout.trim()).join("laid_in.py");
    write(&package, "WANTED = 2\n");
    worker(&env, "echo 'x = 2' > calc.py\necho >> .venv/pyvenv.cfg");
    let config = repo.read(".venv/pyvenv.cfg");
    let Some(done) = run(&env, &repo) else { return };
    assert_eq!(done.json()["success"], true);
    let said = journal_text(&repo);
    assert!(said.contains("the checks use what is already installed: `.venv` (read-only)"), "{said}");
    assert_eq!((repo.read("calc.py"), repo.read(".venv/pyvenv.cfg")), ("x = 2\n".into(), config));
    assert_eq!(repo.git(&["status", "--porcelain"]), " M calc.py\n?? .venv/");
}

#[test]
fn checks_use_installed_node_packages() {
    let env = TestEnv::new(RALPH);
    let files = [
        ("calc.js", "exports.x = 1\n"),
        ("check.js", TEST_JS),
        ("package.json", r#"{"name":"calc","version":"1.0.0","scripts":{"test":"node check.js"}}"#),
        (".gitignore", "node_modules/\n"),
        // The packages can't be downloaded, so nothing is installed again.
        ("package-lock.json", r#"{"name":"calc","version":"1.0.0","lockfileVersion":3,"packages":{}}"#),
    ];
    let repo = TestRepo::new(&env, "home/code/repo", &files);
    if TestEnv::finish(env.command("npm", &repo.dir).arg("--version")).code != Some(0) {
        ralph_loop_testkit::skip("`npm` does not work on this machine");
        return;
    }
    write(&repo.dir.join("node_modules/laid-in/index.js"), "module.exports = 2\n");
    worker(&env, "echo 'exports.x = 2' > calc.js");
    let Some(done) = run(&env, &repo) else { return };
    assert_eq!(done.json()["success"], true);
    let said = journal_text(&repo);
    assert!(said.contains("the checks use what is already installed: a copy of `node_modules`"), "{said}");
    assert_eq!(repo.read("calc.js"), "exports.x = 2\n");
    assert!(!repo.dir.join("node_modules/.written-by-a-check").exists());
}
