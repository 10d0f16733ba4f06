//! What a line of a test does, in the words of many languages and runners. Rough on purpose: a finding is shown to a
//! person and decides nothing.

/// Whether a line asserts something.
pub(super) fn is_assertion(line: &str) -> bool {
    let line = line.trim_start();
    if line.starts_with("import ") || line.starts_with("from ") || line.starts_with("use ") {
        return false;
    }
    const ANYWHERE: &[&str] = &[
        "expect(",
        "expect {",
        ".should",
        "pytest.raises",
        "pytest.warns",
        "t.Error",
        "t.Fatal",
        "t.Fail",
        "EXPECT_",
        "ASSERT_",
        "REQUIRE(",
        "CHECK(",
        "XCTAssert",
        "refute",
        "must_equal",
        "wont_",
        ".verify(",
        "toMatchSnapshot",
        "is_deeply",
        "is-equal",
        "(is (",
        "require.",
        "assert.",
        "Assert.",
        "assertThat",
        "snapshot!(",
    ];
    if ANYWHERE.iter().any(|w| line.contains(w)) {
        return !line.contains("require.resolve") && !line.contains("= require");
    }
    // `assert`, `assert_eq!`, `self.assertEqual`, `debug_assert!`, `$this->assertSame`.
    line.match_indices("assert").any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric())
    }) || line.starts_with("verify(")
}

/// Whether a line of a shell script asserts something.
pub(super) fn is_shell_assertion(line: &str) -> bool {
    const BEGINNINGS: &[&str] =
        &["grep ", "test ", "[ ", "[[ ", "diff ", "cmp ", "! grep", "exit 1", "run ", "assert"];
    let line = line.trim_start();
    BEGINNINGS.iter().any(|b| line.starts_with(b)) || line.contains("| grep -q") || line.contains("|| exit 1")
}

/// Whether a line begins a test.
pub(super) fn is_test(line: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "def test_",
        "async def test_",
        "class Test",
        "#[test]",
        "#[tokio::test",
        "#[rstest",
        "#[test_case",
        "it(",
        "it.each",
        "test(",
        "test.each",
        "describe(",
        "context(",
        "func Test",
        "func Benchmark",
        "func test",
        "@Test",
        "@ParameterizedTest",
        "[Fact",
        "[Test",
        "[Theory",
        "it \"",
        "it '",
        "specify ",
        "describe \"",
        "context \"",
        "test \"",
        "test '",
        "public function test",
        "function test",
        "TEST(",
        "TEST_F(",
        "TEST_P(",
        "TEST_CASE(",
        "SECTION(",
        "@test ",
        "testWidgets(",
        "Scenario:",
        "(deftest ",
        "testthat(",
    ];
    let line = line.trim_start();
    BEGINNINGS.iter().any(|b| line.starts_with(b))
}

/// Whether a line takes a test out of the run, lets it fail, or lets only others run.
pub(super) fn is_skip(line: &str) -> bool {
    const ANYWHERE: &[&str] = &[
        "mark.skip",
        "mark.xfail",
        "pytest.skip",
        "pytest.xfail",
        "pytest.importorskip",
        "unittest.skip",
        "skipTest(",
        "expectedFailure",
        "@skip",
        ".skip(",
        ".skip.",
        ".skipIf(",
        ".only(",
        ".only.",
        ".todo(",
        ".fixme(",
        ".fails(",
        "t.Skip",
        "b.Skip",
        "testing.Short()",
        "#[ignore",
        "#[should_panic",
        "#[cfg(any())]",
        "#[cfg(FALSE)]",
        "@Disabled",
        "@Ignore",
        "[Ignore",
        "Skip =",
        "Skip=",
        "markTestSkipped",
        "markTestIncomplete",
        "@tag :skip",
        "@tag skip:",
        "XCTSkip",
        "GTEST_SKIP",
        "DISABLED_",
        "Assume.",
        "assumeTrue(",
        "assumeFalse(",
        "skip: true",
        "pending(",
        "pending \"",
        "collect_ignore",
        "__test__ = False",
        "test.fail(",
    ];
    const BEGINNINGS: &[&str] = &[
        "xit(",
        "xit \"",
        "xtest(",
        "xdescribe",
        "xcontext",
        "xspecify",
        "fit(",
        "fdescribe(",
        "fcontext",
        "skip(",
        "skip \"",
        "skip '",
        "skip\n",
        "pending",
    ];
    let bare = line.trim_start();
    ANYWHERE.iter().any(|w| line.contains(w))
        || BEGINNINGS.iter().any(|w| bare.starts_with(w))
        || bare == "skip"
}

/// Whether an assertion holds whatever the code does.
pub(super) fn is_always_true(line: &str) -> bool {
    let bare: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    let bare = bare.to_ascii_lowercase();
    const WHOLE: &[&str] = &["asserttrue", "assert1", "assertnotfalse", "assert1==1"];
    const ANYWHERE: &[&str] = &[
        "assert!(true",
        "assert(true",
        "assert_eq!(1,1",
        "assert_eq!(true,true",
        "expect(true).",
        "expect(1).tobe(1)",
        "expect(1).toequal(1)",
        "asserttrue(true",
        "assert.true(true",
        "assert.istrue(true",
        "assert.ok(true",
        "assert.equal(1,1",
        "assert.true(t,true",
        "assertequals(1,1",
        "assertequal(1,1",
        "assertfalse(false",
        "assert(1==1",
        "expect_true(true",
        "assert_true(true",
        "refutefalse",
        "assert.equal(t,1,1",
    ];
    let statement = bare.split(['#', ';', ',']).next().unwrap_or(&bare);
    WHOLE.contains(&statement) || ANYWHERE.iter().any(|w| bare.contains(w))
}

/// Whether a line turns a failure into a success.
pub(super) fn swallows(line: &str) -> bool {
    let line = line.trim();
    const ANYWHERE: &[&str] = &[
        "|| true",
        "||true",
        "|| :",
        "|| exit 0",
        "; true\"",
        "set +e",
        "; exit 0",
        "|| echo",
        "os._exit(0",
        "sys.exit(0",
        "process.exit(0",
        "--passWithNoTests",
        "--exit-zero",
        "exitstatus = 0",
        "exitstatus=0",
    ];
    ANYWHERE.iter().any(|w| line.contains(w))
        || line == "exit 0"
        || line.ends_with("; true")
        || line.starts_with("-@")
}

/// Whether a line is a comment and nothing else.
pub(super) fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    let attribute = line.starts_with("#[") || line.starts_with("#!");
    (line.starts_with('#') && !attribute)
        || ["//", "/*", "* ", "*/", "--", ";;", "<!--"].iter().any(|c| line.starts_with(c))
}
