use super::*;

/// Findings as lines, for snapshots.
fn said(patch: &str) -> String {
    findings(patch)
        .iter()
        .map(|f| {
            let line = f.line.map_or_else(|| "-".to_owned(), |n| n.to_string());
            format!("{}:{line} {:?} {}", f.path, f.kind, f.excerpt)
        })
        .collect::<Vec<_>>()
        .join("\n")
}

/// A patch of one file with one hunk that starts at line 10.
fn patch(path: &str, heading: &str, body: &str) -> String {
    let old = body.lines().filter(|l| !l.starts_with('+')).count();
    let new = body.lines().filter(|l| !l.starts_with('-')).count();
    format!(
        "diff --git a/{path} b/{path}\nindex 1111111..2222222 100644\n--- a/{path}\n+++ b/{path}\n@@ -10,{old} +10,{new} @@{heading}\n{body}\n"
    )
}

#[test]
fn python_assertions_skips_and_tests() {
    let body = " def test_sum():\n-    assert add(1, 2) == 3\n-    assert add(2, 2) == 4\n+    assert True\n \n+@pytest.mark.skip(\"later\")\n def test_other():\n     pass\n-def test_gone():\n-    self.assertEqual(a, b)";
    insta::assert_snapshot!(said(&patch("tests/test_calc.py", "", body)), @r###"
    tests/test_calc.py:11 AssertionChanged assert add(1, 2) == 3
    tests/test_calc.py:12 AssertionRemoved assert add(2, 2) == 4
    tests/test_calc.py:11 AlwaysTrue assert True
    tests/test_calc.py:13 Skipped @pytest.mark.skip("later")
    tests/test_calc.py:16 TestRemoved def test_gone():
    tests/test_calc.py:17 AssertionRemoved self.assertEqual(a, b)
    "###);
}

#[test]
fn rust_inline_tests_and_test_files() {
    let body = "     #[test]\n+    #[ignore]\n     fn sums() {\n-        assert_eq!(add(1, 2), 3);\n+        assert_eq!(add(1, 2), 4);\n     }\n-    #[test]\n-    fn gone() {}";
    insta::assert_snapshot!(said(&patch("src/lib.rs", " mod tests {", body)), @r###"
    src/lib.rs:11 Skipped #[ignore]
    src/lib.rs:12 AssertionChanged assert_eq!(add(1, 2), 3);
    src/lib.rs:14 TestRemoved #[test]
    "###);
    let source = " fn add(a: u32) {\n-    assert!(a < 3);\n }";
    assert_eq!(said(&patch("src/lib.rs", " impl Adder {", source)), "", "an assertion of the code itself");
}

#[test]
fn javascript_typescript_and_go() {
    let js = " describe('x', () => {\n-  it('adds', () => {\n+  it.skip('adds', () => {\n-    expect(add(1, 2)).toBe(3);\n   });\n+  it.only('one', () => {});\n+  expect(true).toBe(true);\n });";
    insta::assert_snapshot!(said(&patch("web/src/add.spec.ts", "", js)), @r###"
    web/src/add.spec.ts:11 TestRemoved it('adds', () => {
    web/src/add.spec.ts:11 Skipped it.skip('adds', () => {
    web/src/add.spec.ts:12 AssertionChanged expect(add(1, 2)).toBe(3);
    web/src/add.spec.ts:13 Skipped it.only('one', () => {});
    web/src/add.spec.ts:14 AlwaysTrue expect(true).toBe(true);
    "###);
    let go = " func TestAdd(t *testing.T) {\n+\tt.Skip(\"flaky\")\n-\tif got != 3 {\n-\t\tt.Errorf(\"got %d\", got)\n-\t}\n }";
    insta::assert_snapshot!(said(&patch("calc/add_test.go", "", go)), @r###"
    calc/add_test.go:11 Skipped t.Skip("flaky")
    calc/add_test.go:12 AssertionRemoved t.Errorf("got %d", got)
    "###);
}

#[test]
fn java_ruby_php_csharp_elixir_and_cpp() {
    let one = |path: &str, body: &str| said(&patch(path, "", body));
    insta::assert_snapshot!(one("src/test/java/AddTest.java", "+    @Disabled\n     @Test\n-        assertEquals(3, add(1, 2));"), @r###"
    src/test/java/AddTest.java:10 Skipped @Disabled
    src/test/java/AddTest.java:11 AssertionRemoved assertEquals(3, add(1, 2));
    "###);
    insta::assert_snapshot!(one("spec/add_spec.rb", "-  it \"adds\" do\n+  xit \"adds\" do\n-    expect(add(1, 2)).to eq(3)"), @r###"
    spec/add_spec.rb:10 TestRemoved it "adds" do
    spec/add_spec.rb:10 Skipped xit "adds" do
    spec/add_spec.rb:11 AssertionRemoved expect(add(1, 2)).to eq(3)
    "###);
    insta::assert_snapshot!(one("tests/AddTest.php", "+        $this->markTestSkipped('x');\n-        $this->assertSame(3, add(1, 2));"), @r###"
    tests/AddTest.php:10 Skipped $this->markTestSkipped('x');
    tests/AddTest.php:10 AssertionRemoved $this->assertSame(3, add(1, 2));
    "###);
    insta::assert_snapshot!(one("Calc.Tests/AddTests.cs", "-    [Fact]\n+    [Fact(Skip = \"slow\")]"), @"Calc.Tests/AddTests.cs:10 Skipped [Fact(Skip = \"slow\")]");
    insta::assert_snapshot!(one("test/add_test.exs", "+  @tag :skip\n-    assert add(1, 2) == 3"), @r###"
    test/add_test.exs:10 Skipped @tag :skip
    test/add_test.exs:10 AssertionRemoved assert add(1, 2) == 3
    "###);
    insta::assert_snapshot!(one("tests/add_test.cpp", "-  EXPECT_EQ(add(1, 2), 3);\n+  GTEST_SKIP();"), @r###"
    tests/add_test.cpp:10 AssertionRemoved EXPECT_EQ(add(1, 2), 3);
    tests/add_test.cpp:10 Skipped GTEST_SKIP();
    "###);
}

#[test]
fn shell() {
    insta::assert_snapshot!(said(&patch("tests/part.sh", "", " set -e\n-grep -q right part.txt\n+true")), @"tests/part.sh:11 AssertionRemoved grep -q right part.txt");
}

#[test]
fn snapshots_and_configurations() {
    let mut all = patch("src/__snapshots__/a.test.js.snap", "", " exports[`a`] = `\n-3\n+4\n `;");
    all += &patch("tests/ui/a.stderr", "", "-error\n+warning");
    all += &patch("conftest.py", "", "+def pytest_sessionfinish(session):\n+    session.exitstatus = 0");
    all += &patch(
        "pyproject.toml",
        "",
        " [tool.pytest.ini_options]\n-addopts = \"-ra\"\n+addopts = \"-k not_slow\"\n+name = 1",
    );
    all += &patch(
        "package.json",
        "",
        " \"scripts\": {\n-    \"test\": \"jest\",\n+    \"test\": \"jest || true\",\n+    \"build\": \"x\"",
    );
    all +=
        &patch("Makefile", "", " build:\n+\tcc\n test: build\n-\t./run\n+\t./run || true\n lint:\n+\tlint");
    all += &patch("jest.config.js", "", "+  testPathIgnorePatterns: ['add'],");
    all += &patch("Cargo.toml", "", " [[test]]\n+test = false\n+serde = \"1\"");
    insta::assert_snapshot!(said(&all), @r###"
    src/__snapshots__/a.test.js.snap:11 SnapshotChanged 3
    tests/ui/a.stderr:10 SnapshotChanged error
    conftest.py:10 ConfigChanged def pytest_sessionfinish(session):
    conftest.py:11 Swallowed session.exitstatus = 0
    pyproject.toml:11 ConfigChanged addopts = "-ra"
    package.json:11 ConfigChanged "test": "jest",
    package.json:11 Swallowed "test": "jest || true",
    Makefile:12 ConfigChanged ./run
    Makefile:13 Swallowed ./run || true
    jest.config.js:10 ConfigChanged testPathIgnorePatterns: ['add'],
    Cargo.toml:11 ConfigChanged test = false
    "###);
}

#[test]
fn a_removed_file_is_one_finding_and_a_moved_one_is_none() {
    let removed = "diff --git a/tests/test_a.py b/tests/test_a.py\ndeleted file mode 100644\nindex 1111111..0000000\n--- a/tests/test_a.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-def test_a():\n-    assert x\n";
    assert_eq!(said(removed), "tests/test_a.py:- FileRemoved ");
    let added = "diff --git a/tests/unit/test_a.py b/tests/unit/test_a.py\nnew file mode 100644\nindex 0000000..1111111\n--- /dev/null\n+++ b/tests/unit/test_a.py\n@@ -0,0 +1,2 @@\n+def test_a():\n+    assert x\n";
    assert_eq!(said(&format!("{removed}{added}")), "");
}

#[test]
fn honest_work_is_no_finding() {
    let new_tests =
        patch("tests/test_a.py", "", " def test_a():\n     assert x\n+def test_b():\n+    assert y == 2");
    let indented = patch("tests/test_b.py", "", "-assert x == 1\n+    assert x == 1");
    let code = patch("src/assert.py", "", "-    assert x\n+    raise ValueError");
    let renamed = patch("tests/test_c.py", "", "-def test_old():\n+def test_new():\n     assert x");
    let docs = patch("README.md", "", "-assert that it works\n+skip this");
    let scripts = patch("package.json", "", "-    \"build\": \"a\"\n+    \"build\": \"b || true\"");
    for one in [&new_tests, &indented, &code, &renamed, &docs, &scripts] {
        assert_eq!(said(one), "", "{one}");
    }
    assert_eq!(said("no patch at all\n@@ -1 +1 @@\n-assert x"), "");
}

#[test]
fn paths_of_many_ecosystems_are_known() {
    for yes in [
        "tests/a.rs",
        "pkg/test_x.py",
        "pkg/x_test.py",
        "calc/add_test.go",
        "a/b.spec.ts",
        "a/b.test.jsx",
        "src/__tests__/x.js",
        "src/test/java/a/FooTest.java",
        "FooTest.kt",
        "spec/models/user_spec.rb",
        "test/add_test.exs",
        "Calc.Tests/AddTests.cs",
        "t/basic.t",
        "tests/run.bats",
        "test/widget_test.dart",
        "e2e/login.cy.ts",
        "features/login.feature",
        "Tests/AddTests.swift",
        "policy/allow_test.rego",
        "Part.Tests.ps1",
        "main.tftest.hcl",
        "src/Counter.t.sol",
        "spec/part_spec.cr",
        "suites/login.robot",
    ] {
        assert!(is_test_path(yes), "{yes}");
    }
    for no in [
        "src/contest.py",
        "src/latest.js",
        "docs/tests.md",
        "tests/data.csv",
        "src/attest.rs",
        "testimony.go",
        "t/x.py",
        "modules/main.hcl",
        "lib/part.cr",
    ] {
        assert!(!is_test_path(no), "{no}");
    }
    assert!(is_snapshot("src/__snapshots__/a.snap") && is_snapshot("tests/snapshots/x.txt"));
}

#[test]
fn findings_and_excerpts_are_bounded() {
    let body = format!("-    assert x == \"{}\"\n", "y".repeat(5000)).repeat(30);
    let many: String = (0..50).map(|n| patch(&format!("tests/test_{n}.py"), "", body.trim_end())).collect();
    let found = findings(&many);
    assert_eq!(found.len(), FINDINGS_MAX);
    assert!(found.iter().all(|f| f.excerpt.chars().count() <= EXCERPT_MAX));
    assert_eq!(summary(&found[..1]), "1 change to tests needs a look");
    assert_eq!(summary(&found[..2]), "2 changes to tests need a look");
}

#[test]
fn a_line_that_looks_like_a_header_inside_a_hunk_is_a_line() {
    let body = "---- a/evil\n-assert x\n+++ b/evil.py";
    assert_eq!(said(&patch("tests/test_a.py", "", body)), "tests/test_a.py:11 AssertionRemoved assert x");
}
