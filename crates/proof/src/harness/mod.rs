//! The harness: the files that decide a check besides the product.
//!
//! Three sources: one published list of globs, files that script runners executed or read while the checks ran on the original
//! tree, and globs of the configuration. Nothing here reads code to find out what it does.

pub mod manifest;
pub mod restore;
pub mod rust_inline;

use ralph_loop_protocol::event::FileChange;
use ralph_loop_protocol::proof::level::{HarnessChange, HarnessSource};
use std::collections::BTreeSet;

/// The published list, as `ralph harness` prints it.
pub const GLOBS: &str = include_str!("globs.txt");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glob {
    pub pattern: &'static str,
    /// Why files of that name decide a check.
    pub reason: &'static str,
}

pub fn globs() -> impl Iterator<Item = Glob> {
    GLOBS.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let (pattern, reason) = line.split_once(' ')?;
        Some(Glob { pattern, reason: reason.trim() })
    })
}

#[derive(Debug, Clone, Default)]
pub struct Harness {
    /// Globs from the configuration; a leading `!` excludes files.
    pub config: Vec<String>,
    /// Files that script runners executed or read while the checks ran on the original tree.
    pub watched: BTreeSet<String>,
    /// The task's text: a file it names may change.
    pub task: String,
}

/// Why a file belongs to the harness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match<'a> {
    /// Where the rule comes from.
    pub source: HarnessSource,
    pub rule: &'a str,
    /// Why, for readers.
    pub reason: &'a str,
}

impl Harness {
    /// Why a file decides checks; `None` if it's product.
    pub fn matched(&self, path: &str) -> Option<Match<'_>> {
        let (out, more): (Vec<&String>, Vec<&String>) =
            self.config.iter().partition(|glob| glob.starts_with('!'));
        if out.iter().any(|glob| covers(&glob[1..], path)) {
            return None;
        }
        if let Some(glob) = more.into_iter().find(|glob| covers(glob, path)) {
            return Some(Match {
                source: HarnessSource::Config,
                rule: glob,
                reason: "named in the configuration",
            });
        }
        if let Some(glob) = globs().find(|glob| covers(glob.pattern, path)) {
            return Some(Match { source: HarnessSource::Glob, rule: glob.pattern, reason: glob.reason });
        }
        let reason = "a script that the checks ran or read";
        self.watched.contains(path).then_some(Match {
            source: HarnessSource::Watched,
            rule: "watched",
            reason,
        })
    }

    /// Harness changes among a run's changes, without pure dependency edits. `old` and `new` read the two
    /// versions of a file.
    pub fn changes(
        &self,
        changes: &[FileChange],
        old: &dyn Fn(&str) -> Option<String>,
        new: &dyn Fn(&str) -> Option<String>,
    ) -> Vec<HarnessChange> {
        changes.iter().filter_map(|change| self.change(change, old, new)).collect()
    }

    fn change(
        &self,
        change: &FileChange,
        old: &dyn Fn(&str) -> Option<String>,
        new: &dyn Fn(&str) -> Option<String>,
    ) -> Option<HarnessChange> {
        let path = change.path.as_str();
        let how = match change.status {
            'A' => "added",
            'D' => "deleted",
            _ => "changed",
        };
        let (source, what) = match self.matched(path) {
            Some(found) => {
                let both = (change.status != 'A').then(|| old(path).zip(new(path))).flatten();
                if both.is_some_and(|(old, new)| manifest::is_dependency_edit(path, &old, &new)) {
                    return None;
                }
                (found.source, format!("{how}: {}", found.reason))
            }
            None if path.ends_with(".rs") && change.status != 'D' => {
                let before = old(path).filter(|_| change.status != 'A');
                if !rust_inline::tests_differ(before.as_deref(), &new(path)?) {
                    return None;
                }
                (HarnessSource::InlineTests, format!("inline tests {how}"))
            }
            None => return None,
        };
        let named = is_named(&self.task, path);
        Some(HarnessChange { path: path.to_owned(), added: change.status == 'A', source, named, what })
    }
}

/// Whether a glob covers a path; a glob without `/` matches the name of the file or of a folder above it.
pub fn covers(glob: &str, path: &str) -> bool {
    let glob = glob.trim_start_matches("./").trim_end_matches('/');
    if glob.is_empty() {
        return false;
    }
    if glob.contains('/') {
        let below = path.strip_prefix(glob).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        return below || fast_glob::glob_match(glob, path);
    }
    path.split('/').any(|name| fast_glob::glob_match(glob, name))
}

/// Whether a text names a file: by its path or its name, as a whole word.
pub fn is_named(text: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    [path, name].iter().any(|wanted| {
        text.match_indices(wanted).any(|(at, _)| {
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
            let (before, after) = (&text[..at], &text[at + wanted.len()..]);
            // `a.py.bak` and `xa.py` are other files, but a final dot ends a sentence.
            let longer = after.starts_with(is_part)
                || after.strip_prefix('.').is_some_and(|rest| rest.starts_with(is_part));
            !before.ends_with(is_part) && !before.ends_with('.') && !longer
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_short_and_plain() {
        let all: Vec<Glob> = globs().collect();
        assert!(all.len() <= 60 && GLOBS.len() <= 3000, "{} globs, {} bytes", all.len(), GLOBS.len());
        assert!(all.iter().all(|glob| !glob.reason.is_empty() && !glob.pattern.contains('{')));
    }

    #[test]
    fn globs_tell_the_harness_from_the_product() {
        let harness = Harness::default();
        for path in [
            "tests/a.py",
            "pkg/test_a.py",
            "a.test.ts",
            "spec/a_spec.rb",
            "a/b_test.go",
            "src/test/java/ATest.java",
            ".github/workflows/ci.yml",
            ".ralph/config.json",
            "conftest.py",
            "sitecustomize.py",
            "jest.config.js",
            "pytest.ini",
            "Makefile",
            "GNUmakefile",
            "rules.mk",
            "build.rs",
            "web/tsconfig.json",
            "types/a.d.ts",
            "__tests__/a.js",
            "tests.py",
            "test.sh",
            "check.sh",
            "a/fixtures/x.json",
            "test_data/a",
            "crates/testkit/src/lib.rs",
            "checks/a.sh",
            "src/ATests.java",
            "test-utils/a.js",
        ] {
            assert!(harness.matched(path).is_some(), "{path}");
        }
        for path in [
            "src/a.py",
            "latest.py",
            "contest.js",
            "attestation/a.go",
            "README.md",
            "docs/spectrum.md",
            "poetry.lock",
            "Cargo.lock",
            "requirements.txt",
            "src/main.rs",
            "app.sh",
            "checkout.py",
            "package-lock.json",
            "go.sum",
        ] {
            assert_eq!(harness.matched(path), None, "{path}");
        }
    }

    #[test]
    fn configuration_adds_and_takes_out() {
        let harness = Harness {
            config: vec!["tools/**".into(), "!tests/tool.py".into()],
            watched: ["app.sh".to_owned()].into(),
            task: "Fix app.sh, and a/calc.py.".into(),
        };
        assert_eq!(harness.matched("tools/a/b.py").map(|m| m.source), Some(HarnessSource::Config));
        assert_eq!(harness.matched("app.sh").map(|m| m.source), Some(HarnessSource::Watched));
        assert_eq!(harness.matched("tests/tool.py"), None);
    }

    #[test]
    fn the_task_names_files_by_path_or_name() {
        for (text, path, named) in [
            ("Fix app.sh.", "app.sh", true),
            ("Fix app.sh, please", "bin/app.sh", true),
            ("Fix bin/app.sh", "bin/app.sh", true),
            ("Fix myapp.sh", "app.sh", false),
            ("Fix app.sh.bak", "app.sh", false),
            ("Fix the app", "app.sh", false),
        ] {
            assert_eq!(is_named(text, path), named, "{text}");
        }
    }
}
