use super::*;
use proptest::prelude::*;

const FILE: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";

fn patched(file: &str, patch: &str) -> Result<String, String> {
    match apply(Path::new("src/a.txt"), patch, Some(file.as_bytes())) {
        Ok(Patched::Content(bytes, _)) => Ok(String::from_utf8(bytes).unwrap()),
        Ok(Patched::Removed) => Ok("(removed)".into()),
        Err(error) => Err(error.to_string()),
    }
}

const HEAD: &str = "--- a/src/a.txt\n+++ b/src/a.txt\n";

#[test]
fn diffs_that_apply() {
    let cases: &[(&str, &str, &str, &str)] = &[
        (
            "plain",
            FILE,
            "@@ -2,3 +2,3 @@\n two\n-three\n+3\n four\n",
            "one\ntwo\n3\nfour\nfive\nsix\nseven\n",
        ),
        (
            "numbers far off",
            FILE,
            "@@ -40,3 +44,3 @@\n two\n-three\n+3\n four\n",
            "one\ntwo\n3\nfour\nfive\nsix\nseven\n",
        ),
        (
            "counts wrong",
            FILE,
            "@@ -2,9 +2,1 @@\n two\n-three\n+3\n four\n",
            "one\ntwo\n3\nfour\nfive\nsix\nseven\n",
        ),
        ("no numbers", FILE, "@@ ... @@\n two\n-three\n+3\n", "one\ntwo\n3\nfour\nfive\nsix\nseven\n"),
        ("bare @@", FILE, "@@\n-seven\n+7\n", "one\ntwo\nthree\nfour\nfive\nsix\n7\n"),
        (
            "a title after the numbers",
            FILE,
            "@@ -1,2 +1,2 @@ fn x() {\n-one\n+1\n two\n",
            "1\ntwo\nthree\nfour\nfive\nsix\nseven\n",
        ),
        (
            "two hunks",
            FILE,
            "@@ -1,2 +1,1 @@\n-one\n two\n@@ -6,2 +5,3 @@\n six\n seven\n+eight\n",
            "two\nthree\nfour\nfive\nsix\nseven\neight\n",
        ),
        (
            "two hunks, second number off",
            FILE,
            "@@ -1,1 +1,2 @@\n one\n+1.5\n@@ -1,1 +1,1 @@\n-six\n+6\n",
            "one\n1.5\ntwo\nthree\nfour\nfive\n6\nseven\n",
        ),
        ("one line, no count", "x\n", "@@ -1 +1 @@\n-x\n+y\n", "y\n"),
        ("lost space of blank context", "a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "a\n\nc\n"),
        ("blank context at the end, counted", "a\n\n", "@@ -1,2 +1,2 @@\n-a\n+b\n\n", "b\n\n"),
        (
            "blank lines after the diff",
            FILE,
            "@@ -1,1 +1,1 @@\n-one\n+1\n\n\n",
            "1\ntwo\nthree\nfour\nfive\nsix\nseven\n",
        ),
        (
            "the number chooses between two places",
            "x\ny\nx\ny\n",
            "@@ -3,1 +3,1 @@\n-x\n+z\n",
            "x\ny\nz\ny\n",
        ),
        ("no newline stays", "a\nb", "@@ -1,2 +1,2 @@\n-a\n+1\n b\n\\ No newline at end of file\n", "1\nb"),
        ("no newline stays, not said", "a\nb", "@@ -1,2 +1,2 @@\n-a\n+1\n b\n", "1\nb"),
        ("newline added", "a\nb", "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+b\n", "a\nb\n"),
        ("newline taken", "a\nb\n", "@@ -2 +2 @@\n-b\n+b\n\\ No newline at end of file\n", "a\nb"),
        ("line after an open end", "a", "@@ -1 +1,2 @@\n a\n+b\n", "a\nb\n"),
        (
            "crlf file, lf diff",
            "a\r\nb\r\nc\r\n",
            "@@ -1,3 +1,4 @@\n a\n-b\n+B\n+BB\n c\n",
            "a\r\nB\r\nBB\r\nc\r\n",
        ),
        ("crlf file without an end", "a\r\nb", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n", "A\r\nb"),
        ("crlf file, crlf in the lines", "a\r\nb\r\n", "@@ -1,2 +1,2 @@\n-a\r\n+A\r\n b\r\n", "A\r\nb\r\n"),
        ("mixed ends, verbatim", "a\r\nb\n", "@@ -1,2 +1,2 @@\n a\r\n-b\n+c\n", "a\r\nc\n"),
        ("from LF to CRLF on purpose", "a\nb\n", "@@ -1,1 +1,1 @@\n-a\n+a\r\n b\n", "a\r\nb\n"),
        (
            "a removed line that looks like a header",
            "-- x\n++ y\n",
            "@@ -1,2 +1,1 @@\n--- x\n-++ y\n+z\n",
            "z\n",
        ),
        ("all lines go, the file stays", "a\n", "@@ -1 +0,0 @@\n-a\n", ""),
        ("into an empty file", "", "@@ -0,0 +1,2 @@\n+a\n+b\n", "a\nb\n"),
    ];
    for (name, file, hunks, after) in cases {
        assert_eq!(patched(file, &format!("{HEAD}{hunks}")).as_deref(), Ok(*after), "{name}");
        // A diff without names is accepted as well: the action names the file.
        assert_eq!(patched(file, hunks).as_deref(), Ok(*after), "{name}, without names");
    }
    let crlf = format!("{HEAD}@@ -1,2 +1,2 @@\n a\n-b\n+c\n").replace('\n', "\r\n");
    assert_eq!(patched("a\nb\n", &crlf).as_deref(), Ok("a\nc\n"), "a diff in CRLF, a file in LF");
}

#[test]
fn diffs_that_are_refused() {
    let cases: &[(&str, &str, &str)] = &[
        (
            "@@ -2,3 +2,3 @@\n two\n-tree\n+3\n four\n",
            FILE,
            "hunk 1 does not fit: line 3 of the file is `three`, the hunk has `tree`",
        ),
        (
            "@@ -2,2 +2,2 @@\n two \n-three\n+3\n",
            FILE,
            "hunk 1 does not fit: its first old line `two ` is not where it should be",
        ),
        (
            "@@ -1,1 +1,1 @@\n-One\n+1\n",
            FILE,
            "hunk 1 does not fit: its first old line `One` is not where it should be",
        ),
        (
            "@@ -6,3 +6,3 @@\n six\n seven\n-eight\n+8\n",
            FILE,
            "hunk 1 does not fit: the file ends before `eight`",
        ),
        (
            "@@ -9,1 +9,1 @@\n-x\n+z\n",
            "x\ny\nx\n",
            "hunk 1 does not fit: its old lines match at line 1 and again at line 3, and its line number fits neither; add lines around it",
        ),
        (
            "@@ -3,0 +4,1 @@\n+new\n",
            FILE,
            "hunk 1 does not fit: it has no old line, so its position is unclear; add lines around it",
        ),
        (
            "@@ -0,0 +1,1 @@\n+new\n",
            FILE,
            "hunk 1 does not fit: it has no old line, so its position is unclear; add lines around it",
        ),
        (
            "@@ -6 +6 @@\n-six\n+6\n@@ -1 +1 @@\n-one\n+1\n",
            FILE,
            "hunk 2 does not fit: its old lines come before those of the previous hunk; put hunks in the file's order",
        ),
        (
            "@@ -1,2 +1,2 @@\n one\n-two\n+2\n@@ -2,2 +2,2 @@\n two\n-three\n+3\n",
            FILE,
            "hunk 2 does not fit: its old lines come before those of the previous hunk; put hunks in the file's order",
        ),
        ("@@ -1,2 +1,2 @@\n one\n two\n", FILE, "hunk 1 does not fit: it changes nothing"),
        (
            "@@ -7 +7 @@\n-seven\n\\ No newline at end of file\n+7\n",
            FILE,
            "hunk 1 does not fit: it says that the file has no newline at its end, which is not so",
        ),
        (
            "@@ -1 +1 @@\n-one\n+1\n\\ No newline at end of file\n",
            FILE,
            "hunk 1 does not fit: it takes the newline from a line that is not the file's last",
        ),
        ("@@ -1,x +1 @@\n-one\n+1\n", FILE, "line 3 of the patch: expected `@@ -line,count +line,count @@`"),
        (
            "@@ -1,3 +1,3 @@\n-one\n+1\ntwo\n",
            FILE,
            "line 6 of the patch: a line of a hunk begins with ` `, `-`, `+` or `\\`",
        ),
        ("", FILE, "the patch has no hunk: expected a unified diff with `@@` lines"),
        (
            "@@ -1 +1 @@\n-one\n+1\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-a\n+b\n",
            FILE,
            "line 6 of the patch: a second file begins; one action patches one file",
        ),
        (
            "@@ -1 +1 @@\n-one\n+1\ndiff --git a/x b/x\n",
            FILE,
            "line 6 of the patch: a second file begins; one action patches one file",
        ),
        (
            "@@ -1,2 +1,2 @@\n\ttwo\n-x\n+y\n",
            FILE,
            "line 4 of the patch: a line of a hunk begins with ` `, `-`, `+` or `\\`",
        ),
        (
            "@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
            "a\r\nb\n",
            "hunk 1 does not fit: its first old line `a` is not where it should be",
        ),
        (
            "@@ -500,2 +500,2 @@\n nothing\n-like\n+this\n",
            "",
            "hunk 1 does not fit: the file has 0 lines, the hunk names line 500",
        ),
    ];
    for (hunks, file, message) in cases {
        assert_eq!(patched(file, &format!("{HEAD}{hunks}")), Err((*message).to_owned()), "{hunks}");
    }
}

#[test]
fn headers_that_are_refused() {
    let hunk = "@@ -1 +1 @@\n-one\n+1\n";
    for (head, word) in [
        ("--- a/src/b.txt\n+++ b/src/b.txt\n", "about `a/src/b.txt`"),
        ("--- a/src/a.txt\n+++ b/../src/a.txt\n", "about `b/../src/a.txt`"),
        ("--- /src/a.txt\n+++ /src/a.txt\n", "about `/src/a.txt`"),
        ("--- a/src/a.txt\n+++ b/src/a.txt2\n", "about `b/src/a.txt2`"),
        ("--- a/src/a.txt\n", "expected one `---` and one `+++`"),
        ("--- /dev/null\n+++ /dev/null\n", "expected one `---` and one `+++`"),
        ("rename from src/a.txt\nrename to b\n", "cannot rename"),
        ("old mode 100644\nnew mode 100755\n", "cannot change a file's mode"),
        ("GIT binary patch\n", "binary"),
        ("*** Begin Patch\n*** Update File: src/a.txt\n", "not a unified diff"),
        ("Here is the patch:\n", "expected the header"),
        ("```diff\n", "expected the header"),
    ] {
        let error = patched(FILE, &format!("{head}{hunk}")).unwrap_err();
        assert!(error.contains(word), "{head}: {error}");
    }
    for head in [
        "diff --git a/src/a.txt b/src/a.txt\nindex 123..456 100644\n--- a/src/a.txt\n+++ b/src/a.txt\n",
        "--- src/a.txt\t2026-01-01 00:00:00\n+++ src/a.txt\t2026-01-01 00:00:01\n",
        "--- \"a/src/a.txt\"\n+++ \"b/src/a.txt\"\n",
        "--- ./src/a.txt\n+++ ./src/a.txt\n",
    ] {
        assert!(patched(FILE, &format!("{head}{hunk}")).is_ok(), "{head}");
    }
}

#[test]
fn files_are_made_and_removed() {
    let path = Path::new("a");
    let new = "--- /dev/null\n+++ b/a\n@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\n";
    assert_eq!(apply(path, new, None), Ok(Patched::Content(b"x\ny".to_vec(), 1)));
    assert_eq!(apply(path, new, Some(b"")), Ok(Patched::Content(b"x\ny".to_vec(), 1)));
    assert_eq!(apply(path, new, Some(b"z")), Err(PatchError::Exists("a".into())));
    let named = "--- a/a\n+++ b/a\n@@ -0,0 +1 @@\n+x\n";
    assert_eq!(apply(path, named, None), Ok(Patched::Content(b"x\n".to_vec(), 1)));
    let edit = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n";
    assert_eq!(apply(path, edit, None), Err(PatchError::Missing("a".into())));
    assert_eq!(apply(path, "@@\n+x\n", None), Err(PatchError::Missing("a".into())));
    let gone = "--- a/a\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n";
    assert_eq!(apply(path, gone, Some(b"x\ny\n")), Ok(Patched::Removed));
    assert_eq!(apply(path, gone, Some(b"x\ny\nz\n")), Err(PatchError::NotAllRemoved("a".into())));
}

#[test]
fn binary_bytes_stay_unchanged() {
    let patch = "@@ -2 +2 @@\n-b\n+c\n";
    let file = b"\xff\xfe\nb\n\x80".as_slice();
    assert_eq!(
        apply(Path::new("a"), patch, Some(file)),
        Ok(Patched::Content(b"\xff\xfe\nc\n\x80".to_vec(), 1))
    );
}

#[test]
fn a_large_file_of_equal_lines_takes_no_time() {
    let file = "\n".repeat(400_000);
    let patch = format!("@@ -900000 +1 @@\n{}-x\n+y\n", " \n".repeat(200_000));
    assert!(patched(&file, &patch).unwrap_err().starts_with("hunk 1 does not fit"));
}

/// The simplest diff of two lists of lines: one hunk with everything.
fn whole_diff(old: &[String], new: &[String]) -> String {
    let mut diff = format!("@@ -1,{} +1,{} @@\n", old.len(), new.len());
    old.iter().for_each(|line| diff.push_str(&format!("-{line}\n")));
    new.iter().for_each(|line| diff.push_str(&format!("+{line}\n")));
    diff
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

proptest! {
    #[test]
    fn any_text_never_panics(patch in "(?s)[-+ @\\\\\na-c/0-9,]{0,200}", file in "[a-c\n\r]{0,60}") {
        let _ = apply(Path::new("a"), &patch, Some(file.as_bytes()));
        let _ = apply(Path::new("a"), &patch, None);
    }

    #[test]
    fn a_diff_of_the_whole_file_gives_the_new_file(
        old in prop::collection::vec("[a-c]{0,3}", 1..8),
        new in prop::collection::vec("[a-c]{0,3}", 1..8),
    ) {
        prop_assert_eq!(patched(&joined(&old), &whole_diff(&old, &new)), Ok(joined(&new)));
    }

    #[test]
    fn lines_outside_hunks_stay(
        before in prop::collection::vec("[a-c]{1,2}", 0..6),
        after in prop::collection::vec("[a-c]{1,2}", 0..6),
        at in 0usize..20,
    ) {
        let file = format!("{}needle\n{}", joined(&before), joined(&after));
        let patch = format!("@@ -{at},1 +1,1 @@\n-needle\n+thread\n");
        prop_assert_eq!(patched(&file, &patch), Ok(format!("{}thread\n{}", joined(&before), joined(&after))));
    }
}
