//! The hunks of a patch, and a file without one of them.

use crate::harness::rust_inline;
use ralph_loop_safe_fs::{Links, SafeDir};
use std::io;

/// Larger files aren't reverted.
const FILE_MAX: u64 = 16 * 1024 * 1024;
/// Bytes of a hunk's first changed line that are shown.
const TEXT_MAX: usize = 160;

/// One hunk: what the commit made of some lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    pub path: String,
    /// Its first changed line in the new file.
    pub line: usize,
    /// The number of added and removed lines.
    pub lines: usize,
    /// The first changed line, with `+` or `-`.
    pub text: String,
    file: FileEnd,
    /// Where it starts in the new file, from 0.
    start: usize,
    old: Vec<Vec<u8>>,
    new: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileEnd {
    Added,
    Deleted,
    Changed,
}

/// The hunks of a patch in git's format. Binary files and paths that git quotes have none.
pub fn of_patch(patch: &[u8]) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let (mut path, mut file) = (None, FileEnd::Changed);
    // Lines that the hunk still has: of the old file, of the new one.
    let mut left = (0, 0);
    let mut last = b' ';
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        let (mark, rest) = (line.first().copied().unwrap_or(b'\n'), line.get(1..).unwrap_or_default());
        if left == (0, 0) && mark != b'\\' {
            let text = String::from_utf8_lossy(line);
            let text = text.trim_end_matches('\n');
            if text.starts_with("diff --git ") {
                (path, file) = (None, FileEnd::Changed);
            } else if let Some(name) = text.strip_prefix("--- ") {
                match name_of(name, "a/") {
                    Some(name) => path = Some(name),
                    None if name == "/dev/null" => file = FileEnd::Added,
                    None => {}
                }
            } else if let Some(name) = text.strip_prefix("+++ ") {
                match name_of(name, "b/") {
                    Some(name) => path = Some(name),
                    None if name == "/dev/null" => file = FileEnd::Deleted,
                    None => path = None,
                }
            } else if let (Some(path), Some((old, start, new))) = (&path, header(text)) {
                left = (old, new);
                let start = if new == 0 { start } else { start.saturating_sub(1) };
                let (line, lines, text) = (start + 1, 0, String::new());
                let (old, new) = (Vec::new(), Vec::new());
                hunks.push(Hunk { path: path.clone(), line, lines, text, file, start, old, new });
            }
            continue;
        }
        let Some(hunk) = hunks.last_mut() else { continue };
        match mark {
            b'+' | b'-' => {
                if hunk.lines == 0 {
                    hunk.line = hunk.start + hunk.new.len() + 1;
                    let shown = String::from_utf8_lossy(line);
                    hunk.text = ralph_loop_protocol::display::text::one_line(&shown, TEXT_MAX);
                }
                hunk.lines += 1;
                match mark {
                    b'+' => (hunk.new.push(rest.to_owned()), left.1 = left.1.saturating_sub(1)),
                    _ => (hunk.old.push(rest.to_owned()), left.0 = left.0.saturating_sub(1)),
                };
            }
            b'\\' => hunk.cut_newline(last),
            _ => {
                hunk.old.push(rest.to_owned());
                hunk.new.push(rest.to_owned());
                left = (left.0.saturating_sub(1), left.1.saturating_sub(1));
            }
        }
        last = mark;
    }
    hunks
}

/// A path as the header of a file names it, unless git quotes it.
fn name_of(name: &str, side: &str) -> Option<String> {
    Some(name.strip_prefix(side)?.trim_end_matches('\t').to_owned())
}

/// `@@ -1,2 +3,4 @@`: lines of the old file, start in the new one, lines of the new one.
fn header(text: &str) -> Option<(usize, usize, usize)> {
    let (old, rest) = text.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |text: &str| -> Option<(usize, usize)> {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let ((_, old), (start, new)) = (range(old)?, range(new)?);
    Some((old, start, new))
}

impl Hunk {
    /// The last line has no line break.
    fn cut_newline(&mut self, mark: u8) {
        let cut = |lines: &mut Vec<Vec<u8>>| {
            if let Some(line) = lines.last_mut().filter(|line| line.last() == Some(&b'\n')) {
                line.pop();
            }
        };
        if mark != b'+' {
            cut(&mut self.old);
        }
        if mark != b'-' {
            cut(&mut self.new);
        }
    }

    /// The file without this hunk; `None` if the file isn't what the patch made.
    fn reverted(&self, now: &[u8]) -> Option<Vec<u8>> {
        let lines: Vec<&[u8]> = now.split_inclusive(|byte| *byte == b'\n').collect();
        let end = self.start + self.new.len();
        if lines.get(self.start..end)? != self.new {
            return None;
        }
        let old = self.old.iter().map(Vec::as_slice);
        let all = lines[..self.start].iter().copied().chain(old).chain(lines[end..].iter().copied());
        Some(all.collect::<Vec<_>>().concat())
    }

    /// Whether the hunk changes only inline tests of this Rust source.
    pub fn is_only_tests(&self, now: &str) -> bool {
        let product = |text: &str| rust_inline::with_tests_of(None, text);
        let before = self.reverted(now.as_bytes()).and_then(|bytes| String::from_utf8(bytes).ok());
        self.path.ends_with(".rs") && before.is_some_and(|before| product(&before) == product(now))
    }

    /// Takes the hunk out of a checkout of the commit. `false` if that isn't possible.
    pub fn revert_in(&self, folder: &SafeDir) -> io::Result<bool> {
        match self.file {
            FileEnd::Added => folder.remove(&self.path)?,
            FileEnd::Deleted => folder.write_new(&self.path, &self.old.concat())?,
            FileEnd::Changed => {
                let now = folder.read(&self.path, Links::Refused, FILE_MAX)?;
                let Some(before) = self.reverted(&now) else { return Ok(false) };
                folder.replace(&self.path, &before)?;
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "diff --git a/calc.py b/calc.py\nindex 1..2 100644\n--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,3 @@\n a\n-b\n+B\n+C\n@@ -9 +10,0 @@ def f():\n--- x\ndiff --git a/new file.py b/new file.py\nnew file mode 100644\n--- /dev/null\n+++ b/new file.py\t\n@@ -0,0 +1 @@\n+++ y\n\\ No newline at end of file\n";

    #[test]
    fn a_patch_is_read_hunk_by_hunk() {
        let hunks = of_patch(PATCH.as_bytes());
        let shown: Vec<_> = hunks
            .iter()
            .map(|h| format!("{}:{} {} {:?} {}", h.path, h.line, h.lines, h.file, h.text))
            .collect();
        assert_eq!(
            shown,
            ["calc.py:2 3 Changed -b", "calc.py:11 1 Changed --- x", "new file.py:1 1 Added +++ y"]
        );
        assert_eq!(hunks[2].new, [b"++ y".to_vec()]);
    }

    #[test]
    fn a_reverted_hunk_leaves_the_others() {
        let hunks = of_patch(PATCH.as_bytes());
        let now = "a\nB\nC\n4\n5\n6\n7\n8\n9\n10\n";
        assert_eq!(hunks[0].reverted(now.as_bytes()).unwrap(), b"a\nb\n4\n5\n6\n7\n8\n9\n10\n");
        assert_eq!(hunks[1].reverted(now.as_bytes()).unwrap(), b"a\nB\nC\n4\n5\n6\n7\n8\n9\n10\n-- x\n");
        assert_eq!(hunks[0].reverted(b"other\n"), None);
    }

    #[test]
    fn hunks_of_inline_tests_are_no_product() {
        let patch = "diff --git a/l.rs b/l.rs\n--- a/l.rs\n+++ b/l.rs\n@@ -3 +3 @@\n-fn t() { a() }\n+fn t() { b() }\n";
        let now = "fn a() {}\n#[test]\nfn t() { b() }\n";
        let hunks = of_patch(patch.as_bytes());
        assert!(hunks[0].is_only_tests(now));
        let product =
            "diff --git a/l.rs b/l.rs\n--- a/l.rs\n+++ b/l.rs\n@@ -1 +1 @@\n-fn c() {}\n+fn a() {}\n";
        assert!(!of_patch(product.as_bytes())[0].is_only_tests(now));
    }
}
