//! Weakened tests: what a patch does to tests so that they say less. Shown in the evidence, even where it is allowed: a
//! removed assertion may be right, but a person wants to know.

mod lines;
mod patch;
mod paths;

pub use paths::{is_snapshot, is_source, is_support, is_test_data, is_test_path, is_test_source};

use patch::{FilePatch, LineChange};
use paths::Config;
use ralph_loop_protocol::text::one_line;
pub use ralph_loop_protocol::weakened::{Finding, WeakKind, summary, summary_of};

/// Whether a finding says that failures of tests are hidden where tests are run: no proof can stand on that.
pub fn decides_failure(finding: &Finding) -> bool {
    finding.kind == WeakKind::Swallowed && paths::config(&finding.path).is_some()
}

/// Findings that are kept.
pub const FINDINGS_MAX: usize = 100;
/// Findings of one file.
const OF_FILE_MAX: usize = 20;
/// Characters of an excerpt.
const EXCERPT_MAX: usize = 120;

/// What a patch (git's, without renames) does to tests, in the order of the patch. A test that only moved is no finding.
pub fn findings(patch: &str) -> Vec<Finding> {
    let files = patch::files(patch);
    let moved = MovedLines::of(&files);
    let mut found = Vec::new();
    for file in &files {
        let room = FINDINGS_MAX.saturating_sub(found.len()).min(OF_FILE_MAX);
        let mut of_file = of_file(file, &moved);
        of_file.truncate(room);
        found.extend(of_file);
    }
    found
}

fn of_file(file: &FilePatch<'_>, moved: &MovedLines) -> Vec<Finding> {
    let mut found = FileFindings { path: &file.path, list: Vec::new() };
    if let Some(config) = paths::config(&file.path) {
        of_config(file, config, &mut found);
        return found.list;
    }
    if is_snapshot(&file.path) {
        if !file.added {
            let first = file.changes().find(|c| c.removed).or_else(|| file.changes().next());
            found.push(WeakKind::SnapshotChanged, first);
        }
        return found.list;
    }
    let by_path = is_test_path(&file.path);
    if by_path && file.deleted {
        let kept = file.changes().filter(|c| lines::is_test(c.text)).all(|c| moved.is_there(c.text));
        let any = file.changes().any(|c| lines::is_test(c.text));
        if !(any && kept) {
            found.push(WeakKind::FileRemoved, None);
        }
        return found.list;
    }
    for hunk in &file.hunks {
        if !(by_path || (file.path.ends_with(".rs") && hunk.is_rust_tests())) {
            continue;
        }
        let shell = [".sh", ".bash", ".bats"].iter().any(|end| file.path.ends_with(end));
        let asserts = if shell { lines::is_shell_assertion } else { lines::is_assertion };
        of_hunk(&hunk.changes, asserts, moved, &mut found);
    }
    found.list
}

fn of_hunk(
    changes: &[LineChange<'_>],
    asserts: fn(&str) -> bool,
    moved: &MovedLines,
    found: &mut FileFindings<'_>,
) {
    let mut new_assertions = changes.iter().filter(|c| !c.removed && asserts(c.text)).count();
    let mut new_tests = changes.iter().filter(|c| !c.removed && lines::is_test(c.text)).count();
    for change in changes {
        let text = change.text;
        if lines::is_comment(text) {
            // A commented-out line shows as a removed one.
            continue;
        }
        if !change.removed {
            if lines::is_skip(text) && !moved.was_there(text) {
                found.push(WeakKind::Skipped, Some(change));
            } else if lines::is_always_true(text) {
                found.push(WeakKind::AlwaysTrue, Some(change));
            } else if lines::swallows(text) && !moved.was_there(text) {
                found.push(WeakKind::Swallowed, Some(change));
            }
        } else if moved.is_there(text) {
            // It stands elsewhere now, or only its indentation changed.
            if asserts(text) {
                new_assertions = new_assertions.saturating_sub(1);
            } else if lines::is_test(text) {
                new_tests = new_tests.saturating_sub(1);
            }
        } else if lines::is_test(text) {
            // Another one in its place is a new name.
            if new_tests > 0 {
                new_tests -= 1;
            } else {
                found.push(WeakKind::TestRemoved, Some(change));
            }
        } else if asserts(text) && !lines::is_always_true(text) {
            let kind =
                if new_assertions > 0 { WeakKind::AssertionChanged } else { WeakKind::AssertionRemoved };
            new_assertions = new_assertions.saturating_sub(1);
            found.push(kind, Some(change));
        }
    }
}

fn of_config(file: &FilePatch<'_>, config: Config, found: &mut FileFindings<'_>) {
    if file.deleted {
        found.push(WeakKind::ConfigChanged, None);
        return;
    }
    for hunk in &file.hunks {
        for change in &hunk.changes {
            let text = change.text;
            if lines::is_comment(text) || text.trim().is_empty() {
                continue;
            }
            let decides = match config {
                Config::Whole => true,
                Config::Lines(words) => words.iter().any(|w| text.contains(w)),
                Config::Targets => change.target.is_some_and(|t| t.contains("test") || t.contains("check")),
            };
            if !change.removed && lines::swallows(text) && decides {
                found.push(WeakKind::Swallowed, Some(change));
            } else if decides && found.list.iter().all(|f| f.kind != WeakKind::ConfigChanged) {
                found.push(WeakKind::ConfigChanged, Some(change));
            }
        }
    }
}

/// Lines that a patch takes away in one place and adds in another.
struct MovedLines {
    added: std::collections::BTreeSet<String>,
    removed: std::collections::BTreeSet<String>,
}

impl MovedLines {
    fn of(files: &[FilePatch<'_>]) -> Self {
        let mut moved = Self { added: Default::default(), removed: Default::default() };
        for change in files.iter().flat_map(FilePatch::changes) {
            let set = if change.removed { &mut moved.removed } else { &mut moved.added };
            set.insert(squeezed(change.text));
        }
        moved
    }
    fn is_there(&self, text: &str) -> bool {
        self.added.contains(&squeezed(text))
    }
    fn was_there(&self, text: &str) -> bool {
        self.removed.contains(&squeezed(text))
    }
}

/// A line without its white space: reformatting changes nothing.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The findings of one file.
struct FileFindings<'a> {
    path: &'a str,
    list: Vec<Finding>,
}

impl FileFindings<'_> {
    fn push(&mut self, kind: WeakKind, change: Option<&LineChange<'_>>) {
        if self.list.len() < OF_FILE_MAX {
            self.list.push(Finding {
                path: self.path.to_owned(),
                kind,
                line: change.map(|c| c.line),
                excerpt: change.map(|c| one_line(c.text, EXCERPT_MAX)).unwrap_or_default(),
            });
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
