//! Comments that switch a tool off for a line: known ones, and any that a run appends to a line of code which stays the
//! same. A run that adds some reaches at most `own tests`, because a reviewer must read them.

use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::proof::Suppression;

/// The comments searched for.
pub const COMMENTS: [&str; 15] = [
    "# noqa",
    "# type: ignore",
    "# pylint: disable",
    "# pragma: no cover",
    "# mypy: ",
    "# rubocop:disable",
    "eslint-disable",
    "@ts-ignore",
    "@ts-expect-error",
    "@ts-nocheck",
    "istanbul ignore",
    "#[allow(",
    "//nolint",
    "@SuppressWarnings",
    "shellcheck disable",
];

/// What begins a comment at the end of a line.
const MARKS: [&str; 5] = ["#", "//", "/*", "--", "<!--"];

/// Suppressions listed.
const LISTED_MAX: usize = 50;

/// The suppression comments in the added lines of a unified diff.
pub fn added(patch: &str) -> Vec<Suppression> {
    let (mut found, mut path, mut number, mut in_hunk) = (Vec::new(), String::new(), 0, false);
    let mut removed: Vec<&str> = Vec::new();
    for line in patch.lines() {
        if let Some(rest) = line.strip_prefix("@@ ") {
            let start = rest.split('+').nth(1).and_then(|range| range.split([',', ' ']).next());
            number = start.and_then(|start| start.parse::<u64>().ok()).unwrap_or(1);
            in_hunk = true;
            removed.clear();
        } else if line.starts_with("diff --git ") {
            path = line.rsplit(" b/").next().unwrap_or_default().trim_matches('"').to_owned();
            in_hunk = false;
        } else if in_hunk && let Some(text) = line.strip_prefix('+') {
            let prose = [".md", ".txt", ".rst", ".adoc"].iter().any(|end| path.ends_with(end));
            let suppresses = COMMENTS.iter().any(|comment| text.contains(comment))
                || removed.iter().any(|line| only_adds_comment(line, text));
            if !prose && found.len() < LISTED_MAX && suppresses {
                found.push(Suppression {
                    path: path.clone(),
                    line: number,
                    text: one_line(text.trim(), 160),
                });
            }
            number += 1;
        } else if in_hunk && let Some(text) = line.strip_prefix('-') {
            removed.push(text);
        } else if in_hunk && line.starts_with(' ') {
            number += 1;
            removed.clear();
        }
    }
    found
}

fn only_adds_comment(old: &str, new: &str) -> bool {
    let code = old.trim_end();
    let added = new.strip_prefix(code).filter(|rest| rest.starts_with(char::is_whitespace));
    !code.trim().is_empty()
        && added.is_some_and(|rest| MARKS.iter().any(|mark| rest.trim().starts_with(mark)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_added_comments_only() {
        let patch = "diff --git a/b.py b/b.py\n@@ -1,3 +1,3 @@\n-except:\n-x = 1\n-\n+except:  # nolint\n+x = 2  # two\n+# why\ndiff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +3,3 @@\n x\n-import os  # noqa\n+import sys  # noqa: F401\n+y\ndiff --git a/README.md b/README.md\n@@ -1 +1 @@\n+Use `# noqa`.\n";
        let found = added(patch);
        let found: Vec<(&str, u64)> = found.iter().map(|one| (one.path.as_str(), one.line)).collect();
        assert_eq!(found, [("b.py", 1), ("a.py", 4)]);
    }
}
