//! Patch sketches. A line's hash ignores blanks, so that indenting isn't a change, and the sample of hashes is small
//! enough to keep for every iteration in the window.

use super::paths;
pub use ralph_loop_protocol::stuck::PatchSketch;
use std::collections::BTreeSet;

/// Bytes of a patch that are read.
pub const PATCH_MAX: usize = 64 * 1024;
/// How many line hashes are kept: the smallest, so that the same line is always kept or always left out.
const SAMPLE: usize = 48;

#[derive(Default)]
struct File {
    added: Vec<u32>,
    removed: Vec<u32>,
    /// All characters except blanks and commas: equal if a formatter only moved line breaks.
    stream: [u32; 2],
}

pub fn sketch(patch: &str) -> PatchSketch {
    let mut whole = PatchSketch::default();
    let (mut added, mut removed) = (BTreeSet::new(), BTreeSet::new());
    let mut file = File::default();
    let (mut in_work, mut in_prose) = (true, false);
    let mut in_hunk = false;
    for line in ralph_loop_protocol::display::text::head(patch, PATCH_MAX).lines() {
        if line.starts_with("diff --git ") {
            whole.substance += std::mem::take(&mut file).close(&mut added, &mut removed);
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
    whole.substance += file.close(&mut added, &mut removed);
    whole.added = added.into_iter().take(SAMPLE).collect();
    whole.removed = removed.into_iter().take(SAMPLE).collect();
    whole
}

/// Share of the lines removed by `patch` that `earlier` patches had added, and how many removed lines were
/// considered.
pub fn undoes<'a>(patch: &PatchSketch, earlier: impl IntoIterator<Item = &'a PatchSketch>) -> (f64, usize) {
    let before: BTreeSet<u32> = earlier.into_iter().flat_map(|p| p.added.iter().copied()).collect();
    let undone = patch.removed.iter().filter(|hash| before.contains(hash)).count();
    let all = patch.removed.len();
    (if all == 0 { 0.0 } else { undone as f64 / all as f64 }, all)
}

impl File {
    /// What the file adds to its patch, and its lines of substance.
    fn close(self, added: &mut BTreeSet<u32>, removed: &mut BTreeSet<u32>) -> u64 {
        if self.stream[0] == self.stream[1] {
            return 0;
        }
        let (new, old): (BTreeSet<u32>, BTreeSet<u32>) =
            (self.added.iter().copied().collect(), self.removed.iter().copied().collect());
        let only = |these: &[u32], others: &BTreeSet<u32>| {
            these.iter().filter(|hash| !others.contains(hash)).count() as u64
        };
        added.extend(new.difference(&old));
        removed.extend(old.difference(&new));
        only(&self.added, &old) + only(&self.removed, &new)
    }

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

/// A change without lines: of a binary file, a name or a mode.
fn is_whole(line: &str) -> bool {
    ["Binary files ", "GIT binary patch", "rename to ", "new mode "]
        .iter()
        .any(|start| line.starts_with(start))
}

/// A comment line in most languages. `#[…]`, `#include`, `#define` and `*x = 1` aren't.
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
pub(in crate::stuck) fn hash(text: &str) -> u32 {
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
            assert_eq!(sketch(&patch).substance, 0, "{patch}");
        }
    }

    #[test]
    fn code_has_substance_even_with_layout_changes() {
        assert_eq!(sketch(&diff("a.rs", "-let x = 1;\n+let x = 2;")).substance, 2);
        assert_eq!(sketch(&diff("a.c", "+#include <a.h>\n+*p = 1;")).substance, 2);
        assert_eq!(sketch(&diff("docs/guide.md", "+# Start\n+* one")).substance, 2, "no comments");
        let binary = "diff --git a/logo.png b/logo.png\nBinary files a/logo.png and b/logo.png differ\n";
        assert_eq!(sketch(binary).substance, 1);
        let both = diff("a.rs", "-  a();\n+a();") + &diff("b.rs", "+b();");
        assert_eq!(sketch(&both).substance, 1);
    }

    #[test]
    fn lines_that_were_added_before_and_go_now_are_undone() {
        let first = sketch(&diff("a.rs", "+one();\n+two();\n+three();"));
        let second = sketch(&diff("a.rs", "-one();\n-two();\n-other();\n-more();\n+four();"));
        assert_eq!(undoes(&second, [&first]), (0.5, 4));
        assert_eq!(undoes(&first, [&second]), (0.0, 0));
    }

    #[test]
    fn the_sketch_of_a_huge_patch_is_small() {
        let body: String = (0..100_000).map(|n| format!("+call_{n}();\n")).collect();
        let sketch = super::sketch(&diff("a.rs", &body));
        assert!(sketch.added.len() <= SAMPLE && sketch.substance > 1000);
    }
}
