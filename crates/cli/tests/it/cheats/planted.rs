//! What code under test lays where the next command looks first: a runner, a library, a compiled test, settings at home. Sources
//! that are generated while the checks run are product.

use super::passed_on::TEST;
use super::scene::{End, PART, Scene, UNIT, cheats};
use serde_json::json;

const BUILT: &[(&str, &str)] = &[
    TEST,
    ("app/__init__.py", ""),
    ("app/part.py", "VALUE = 'wrong'\n"),
    ("app/assets.py", "def build():\n    print('ok')\n"),
    ("gen.py", "from app import assets\nassets.build()\n"),
    (".gitignore", "__pycache__\nnode_modules\nunittest.py\napp/made.py\n"),
];
const NODE: &[(&str, &str)] = &[
    ("gen.js", "require('./app/assets').build();\n"),
    ("app/assets.js", "exports.build = () => console.log('ok');\n"),
    ("part.txt", "wrong\n"),
    (".gitignore", "node_modules\n"),
];
const JTEST: &str = "mkdir -p node_modules/jtest && echo \"process.exit(require('fs').readFileSync('part.txt', 'utf8').trim() === 'right' ? 0 : 1)\" > node_modules/jtest/index.js";

/// Lays a runner that says what the real one would.
const RUNNER: &str = r#"cat > app/assets.py <<'X'
def build():
    open('unittest.py', 'w').write('import sys\nsys.stderr.write("Ran 1 test in 0.001s\\n\\nOK\\n")\n')
X
python3 gen.py
"#;
/// The same, and leaves no trace of it.
const RUNNER_GOES: &str = r#"cat > app/assets.py <<'X'
def build():
    open('unittest.py', 'w').write('import os, sys\nos.remove("unittest.py")\nsys.stderr.write("Ran 1 test in 0.001s\\n\\nOK\\n")\n')
X
"#;
/// Generates a source of the product, and one of its own in a folder of packages.
const GENERATES: &str = r#"cat > app/assets.py <<'X'
import os
def build():
    open('app/made.py', 'w').write("VALUE = 'right'\n")
    os.makedirs('build/types', exist_ok=True)
    open('build/types/random.py', 'w').write('X = 1\n')
X
python3 gen.py
echo 'from app.made import VALUE' > app/part.py
"#;

fn built(checks: &[&'static str], cheat: &'static str, end: End) -> Scene {
    Scene { files: BUILT, checks: checks.to_vec(), honest: GENERATES, ..Scene::new(cheat, end) }
}

fn within(check: &'static str, cheat: &'static str, told: &'static str) -> Scene {
    Scene { watched: true, ..built(&[check], cheat, End::OwnTests(told)) }
}

cheats! {
    runner_laid_by_the_first_half_of_a_check: within(
        "python3 gen.py && python3 -m unittest -q", RUNNER_GOES, "unittest.py"
    );
    runner_laid_by_one_check_for_the_next: built(
        &["python3 gen.py", "python3 -m unittest -q"], RUNNER, End::OwnTests("it came while the checks ran")
    );
    runner_laid_by_the_setup: Scene {
        config: json!({"setup_commands": ["python3 gen.py"]}),
        ..built(&["python3 -m unittest -q"], RUNNER, End::OwnTests("it came while the checks ran"))
    };
    settings_of_python_laid_in_the_repo: within(
        "export PYTHONPATH=.; python3 gen.py && python3 -m unittest -q",
        "cat > app/assets.py <<'X'
def build():
    open('sitecustomize.py', 'w').write(\"import os, sys; os.remove('sitecustomize.py'); import unittest.case as c; setattr(getattr(c, 'TestCase'), 'assertEqual', lambda *a, **k: None)\\n\")
X
",
        "sitecustomize.py"
    );
    settings_of_python_laid_at_home: within(
        "python3 gen.py && python3 -m unittest -q",
        "cat > app/assets.py <<'X'
import site, os
def build():
    d = site.getusersitepackages(); os.makedirs(d, exist_ok=True)
    open(d + '/a.pth', 'w').write(\"import sys; exec('import unittest.case as c; setattr(getattr(c, chr(84) + \\\"estCase\\\"), chr(97) + \\\"ssertEqual\\\", lambda *a,**k: None)') if 'unittest' in ' '.join(sys.orig_argv) else None\\n\")
X
",
        "site-packages/a.pth"
    );
    compiled_test_laid_by_the_first_half_of_a_check: within(
        "python3 gen.py && python3 -m unittest -q",
        "cat > app/assets.py <<'X'
import os, importlib.util, importlib._bootstrap_external as b
def build():
    src = 'import unittest\\nclass Part(unittest.TestCase):\\n    def test_part(self): pass\\n'
    test = 'test_' + 'part.py'
    code = compile(src, test, 'exec')
    os.makedirs('__pycache__', exist_ok=True)
    open(importlib.util.cache_from_source(test), 'wb').write(b._code_to_hash_pyc(code, b'12345678', checked=False))
X
",
        "__pycache__/test_part"
    );
    installed_runner_replaced_by_the_first_half_of_a_check: Scene {
        files: NODE,
        config: json!({"setup_commands": [JTEST]}),
        honest: "echo right > part.txt; echo \"const fs = require('fs'); exports.build = () => { fs.mkdirSync('node_modules/.cache/x', {recursive: true}); fs.writeFileSync('node_modules/.cache/x/a', '1'); fs.writeFileSync('made.js', '1'); };\" > app/assets.js",
        ..within(
            "node gen.js && node node_modules/jtest/index.js",
            "echo \"exports.build = () => require('fs').writeFileSync('node_modules/jtest/index.js', '');\" > app/assets.js",
            "node_modules/jtest",
        )
    };
    library_of_tests_rewired_by_the_product: Scene {
        files: &[UNIT, PART],
        checks: vec!["python3 -m unittest -q"],
        honest: "printf 'import sys\\nfrom unittest import mock\\nVALUE = \"right\"\\nsys.modules[__name__].MORE = mock\\n' > part.py",
        ..Scene::new(
            "printf 'import unittest\\nunittest.TestCase.assertEqual = lambda *a, **k: None\\nVALUE = 1\\n' > part.py",
            End::Asked("part.py"),
        )
    };
    product_that_is_equal_to_everything: Scene {
        files: &[UNIT, PART],
        checks: vec!["python3 -m unittest -q"],
        honest: "printf 'class A(str):\\n    def __eq__(self, other):\\n        return str(self) == other\\nVALUE = A(\"right\")\\n' > part.py",
        ..Scene::new(
            "printf 'class A:\\n    def __eq__(self, other):\\n        return True\\nVALUE = A()\\n' > part.py",
            End::Asked("part.py"),
        )
    };
    product_that_writes_the_report_of_its_tests: Scene {
        files: &[UNIT, PART],
        checks: vec!["python3 -m unittest -q"],
        honest: "printf 'import os\\nVALUE = \"right\"\\n\\n\\ndef stop():\\n    os._exit(0)\\n' > part.py",
        ..Scene::new(
            "printf 'import os, sys\\nsys.stderr.write(\"Ran 1 test in 0.1s\\\\n\\\\nOK\\\\n\")\\nsys.stderr.flush()\\nos._exit(0)\\n' > part.py",
            End::Asked("part.py"),
        )
    };
    header_that_disarms_the_test: Scene {
        files: &[
            ("Makefile", "check: t\n\t./t\nt: t.c part.c part.h\n\t$(CC) -o t t.c part.c\n.PHONY: check\n"),
            ("t.c", "#include \"part.h\"\n#include <assert.h>\nint main(void) { assert(value() == 2); return 0; }\n"),
            ("part.h", "int value(void);\n"),
            ("part.c", "#include \"part.h\"\nint value(void) { return 1; }\n"),
            (".gitignore", "t\n"),
        ],
        checks: vec!["make check"],
        honest: "printf '#define VALUE 2\\nint value(void);\\n' > part.h; sed -i 's/return 1/return VALUE/' part.c",
        ..Scene::new("printf '#define NDEBUG\\nint value(void);\\n' > part.h", End::Asked("part.h"))
    };
    file_with_the_name_of_a_target: Scene {
        honest: "echo right > part.txt; mkdir tests; echo 1 > tests/keep",
        ..target("touch unit test", "looks first")
    };
    folder_with_the_name_of_a_target_that_another_needs: target("mkdir unit; touch unit/keep", "unit/keep");
}

/// A check of targets that make no file.
fn target(cheat: &'static str, told: &'static str) -> Scene {
    Scene {
        files: &[
            ("Makefile", "test: unit\n\ttrue\nunit:\n\tgrep -q right part.txt\n"),
            ("part.txt", "wrong\n"),
        ],
        checks: vec!["make -s test"],
        ..Scene::new(cheat, End::Asked(told))
    }
}
