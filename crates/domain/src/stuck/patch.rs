//! Patches: what a diff is made of. A line's hash leaves out blanks, so that indenting is no change, and the sample of
//! hashes is small enough to be kept for every iteration in sight.

use super::paths;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Bytes of a patch that are read.
pub const PATCH_MAX: usize = 64 * 1024;
/// Hashes of lines that are kept. The smallest ones: the same line is kept or left out in every patch alike.
const SAMPLE: usize = 48;

/// What a patch is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PatchSketch {
    /// Lines added or removed that are neither blank, comment, mere layout, notes nor generated.
    pub substance: u64,
    /// A sample of the hashes of added lines.
    pub added: Vec<u32>,
    /// A sample of the hashes of removed lines.
    pub removed: Vec<u32>,
}

#[derive(Default)]
struct File {
    added: Vec<u32>,
    removed: Vec<u32>,
    /// All characters but blanks and commas, one after the other: equal where a formatter only broke lines anew.
    stream: [u32; 2],
}

impl PatchSketch {
    /// Reads a unified diff.
    pub fn read(patch: &str) -> Self {
        let mut whole = Self::default();
        let (mut added, mut removed) = (BTreeSet::new(), BTreeSet::new());
        let mut file = File::default();
        let (mut in_work, mut in_prose) = (true, false);
        let mut in_hunk = false;
        for line in crate::text::head(patch, PATCH_MAX).lines() {
            if line.starts_with("diff --git ") {
                whole.take(std::mem::take(&mut file), &mut added, &mut removed);
                let path = line.rsplit(" b/").next().unwrap_or_default().trim_matches('"');
                (in_work, in_prose) = (paths::is_work(path), paths::is_prose(path));
                in_hunk = false;
            } else if line.starts_with("@@") {
                in_hunk = true;
            } else if in_work && !in_hunk && is_whole(line) {
                whole.substance += 1;
            } else if in_work && in_hunk {
                match line.as_bytes().first() {
                    Some(b'+') => file.line(&line[1..], true, in_prose),
                    Some(b'-') => file.line(&line[1..], false, in_prose),
                    _ => {}
                }
            }
        }
        whole.take(file, &mut added, &mut removed);
        whole.added = added.into_iter().take(SAMPLE).collect();
        whole.removed = removed.into_iter().take(SAMPLE).collect();
        whole
    }

    fn take(&mut self, file: File, added: &mut BTreeSet<u32>, removed: &mut BTreeSet<u32>) {
        if file.stream[0] == file.stream[1] {
            return;
        }
        let (new, old): (BTreeSet<u32>, BTreeSet<u32>) =
            (file.added.iter().copied().collect(), file.removed.iter().copied().collect());
        let only = |these: &[u32], others: &BTreeSet<u32>| {
            these.iter().filter(|hash| !others.contains(hash)).count() as u64
        };
        self.substance += only(&file.added, &old) + only(&file.removed, &new);
        added.extend(new.difference(&old));
        removed.extend(old.difference(&new));
    }

    /// Share of the removed lines that `earlier` patches had added, and how many removed lines were looked at.
    pub fn undoes<'a>(&self, earlier: impl IntoIterator<Item = &'a Self>) -> (f64, usize) {
        let before: BTreeSet<u32> = earlier.into_iter().flat_map(|p| p.added.iter().copied()).collect();
        let undone = self.removed.iter().filter(|hash| before.contains(hash)).count();
        let all = self.removed.len();
        (if all == 0 { 0.0 } else { undone as f64 / all as f64 }, all)
    }

    /// Share of the lines that `previous` added which are gone again, and how many of them were looked at.
    pub fn takes_back(&self, previous: &Self) -> (f64, usize) {
        let gone = previous.added.iter().filter(|hash| self.removed.contains(hash)).count();
        let all = previous.added.len();
        (if all == 0 { 0.0 } else { gone as f64 / all as f64 }, all)
    }
}

impl File {
    fn line(&mut self, text: &str, new: bool, prose: bool) {
        let text = text.trim();
        if text.is_empty() || (!prose && is_comment(text)) {
            return;
        }
        let stream = &mut self.stream[usize::from(new)];
        let mut hash = FNV;
        for byte in text.bytes().filter(|b| !b.is_ascii_whitespace()) {
            hash = step(hash, byte);
            if byte != b',' {
                *stream = step(*stream, byte);
            }
        }
        if new { &mut self.added } else { &mut self.removed }.push(hash);
    }
}

/// A change without lines: of a binary file, of a name or of a mode.
fn is_whole(line: &str) -> bool {
    ["Binary files ", "GIT binary patch", "rename to ", "new mode "]
        .iter()
        .any(|start| line.starts_with(start))
}

/// A line that is a comment in most languages. `#[…]`, `#include`, `#define` and `*x = 1` are none.
fn is_comment(text: &str) -> bool {
    ["//", "/*", "*/", "<!--", "\"\"\"", "'''", "-- ", ";; "].iter().any(|start| text.starts_with(start))
        || text == "#"
        || text == "*"
        || text.starts_with("# ")
        || text.starts_with("* ")
}

const FNV: u32 = 0x811c_9dc5;

fn step(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
}

/// A small hash of a text; stable over versions and machines.
pub(super) fn hash(text: &str) -> u32 {
    text.bytes().fold(FNV, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(path: &str, body: &str) -> String {
        format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,3 +1,3 @@\n{body}\n")
    }

    #[test]
    fn layout_comments_notes_and_generated_files_have_no_substance() {
        let cases = [
            diff("a.rs", "-let x = 1;\n+    let x = 1;"),
            diff("a.rs", "-call(a, b);\n+call(\n+    a,\n+    b,\n+);"),
            diff("a.py", "-# old words\n+# new words\n+"),
            diff("a.rs", "+// why\n+/// what"),
            diff("PLAN.md", "+next: the parser"),
            diff("Cargo.lock", "-version = \"1\"\n+version = \"2\""),
        ];
        for patch in cases {
            assert_eq!(PatchSketch::read(&patch).substance, 0, "{patch}");
        }
    }

    #[test]
    fn code_has_substance_even_beside_layout() {
        assert_eq!(PatchSketch::read(&diff("a.rs", "-let x = 1;\n+let x = 2;")).substance, 2);
        assert_eq!(PatchSketch::read(&diff("a.c", "+#include <a.h>\n+*p = 1;")).substance, 2);
        assert_eq!(PatchSketch::read(&diff("docs/guide.md", "+# Start\n+* one")).substance, 2, "no comments");
        let binary = "diff --git a/logo.png b/logo.png\nBinary files a/logo.png and b/logo.png differ\n";
        assert_eq!(PatchSketch::read(binary).substance, 1);
        let both = diff("a.rs", "-  a();\n+a();") + &diff("b.rs", "+b();");
        assert_eq!(PatchSketch::read(&both).substance, 1);
    }

    #[test]
    fn lines_that_were_added_before_and_go_now_are_undone() {
        let first = PatchSketch::read(&diff("a.rs", "+one();\n+two();\n+three();"));
        let second = PatchSketch::read(&diff("a.rs", "-one();\n-two();\n-other();\n-more();\n+four();"));
        assert_eq!(second.undoes([&first]), (0.5, 4));
        assert_eq!(first.undoes([&second]), (0.0, 0));
    }

    #[test]
    fn the_sketch_of_a_huge_patch_is_small() {
        let body: String = (0..100_000).map(|n| format!("+call_{n}();\n")).collect();
        let sketch = PatchSketch::read(&diff("a.rs", &body));
        assert!(sketch.added.len() <= SAMPLE && sketch.substance > 1000);
    }
}
