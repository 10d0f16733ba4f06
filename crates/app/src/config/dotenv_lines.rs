//! Tracks which variables of a repo's `.env` appeared during a run. What an agent wrote isn't the user's
//! word, so it needs approval like the rest of the repo.
//!
//! One file per repo in the user's state folder, `dotenv/<repo>.json`: digests of variables that appeared
//! during runs, and those present when unfinished runs began. A killed run therefore leaves nothing that
//! counts as the user's.

use crate::trust::identity;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_protocol::id::Digest;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// More lines than a real `.env` has.
const LINES_MAX: usize = 10_000;

#[derive(Debug, Default, Serialize, Deserialize)]
struct LinesFile {
    /// Appeared during a run.
    made: BTreeSet<Digest>,
    /// Present when a run began, by run.
    open: BTreeMap<String, BTreeSet<Digest>>,
}

impl LinesFile {
    fn came_in_a_run(&self, line: &Digest) -> bool {
        self.made.contains(line) || self.open.values().any(|start| !start.contains(line))
    }
}

#[derive(Debug, Clone)]
pub(crate) struct DotenvLines {
    path: PathBuf,
}

impl DotenvLines {
    pub(crate) fn of(home: &StateHome, top: &Path) -> Self {
        let name = Digest::of(identity(top).as_os_str().as_bytes());
        Self { path: home.path().join("dotenv").join(format!("{name}.json")) }
    }

    /// Whether a variable with this value appeared during a run.
    pub(crate) fn judge(&self) -> impl Fn(&str, &str) -> bool + use<> {
        let file = self.read();
        move |name, value| file.came_in_a_run(&digest(name, value))
    }

    /// Registers a starting or resuming run. Variables that appeared since other unfinished runs began count
    /// as theirs.
    fn begin(&self, run: &str, now: &BTreeSet<Digest>) -> BTreeSet<Digest> {
        let _lock = self.lock();
        let mut file = self.read();
        let start = file.open.get(run).cloned().unwrap_or_else(|| now.clone());
        let came: Vec<Digest> = now.iter().filter(|line| file.came_in_a_run(line)).cloned().collect();
        file.made.extend(came);
        file.open = BTreeMap::from([(run.to_owned(), start.clone())]);
        self.write(&file);
        start
    }

    fn end(&self, run: &str, start: &BTreeSet<Digest>, now: &BTreeSet<Digest>) {
        let _lock = self.lock();
        let mut file = self.read();
        file.made.extend(now.difference(start).cloned());
        // Forgets removed lines, so that the file doesn't grow.
        file.made.retain(|line| now.contains(line));
        file.open.remove(run);
        self.write(&file);
    }

    fn read(&self) -> LinesFile {
        std::fs::read(&self.path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    fn write(&self, file: &LinesFile) {
        let written = serde_json::to_vec(file).map(|text| artifacts::write_atomic(&self.path, &text));
        if !matches!(written, Ok(Ok(()))) {
            tracing::warn!(path = %self.path.display(), "can't store what was added to `.env` during this run");
        }
    }

    fn lock(&self) -> Option<nix::fcntl::Flock<File>> {
        let folder = self.path.parent()?;
        DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
        let path = self.path.with_extension("lock");
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path).ok()?;
        nix::fcntl::Flock::lock(file, nix::fcntl::FlockArg::LockExclusive).ok()
    }
}

fn digest(name: &str, value: &str) -> Digest {
    Digest::of(format!("{name}\0{value}").as_bytes())
}

fn digests(pairs: &[(String, String)]) -> BTreeSet<Digest> {
    pairs.iter().take(LINES_MAX).map(|(name, value)| digest(name, value)).collect()
}

#[derive(Debug)]
pub(crate) struct DotenvWatch {
    lines: DotenvLines,
    run: String,
    start: BTreeSet<Digest>,
}

impl DotenvWatch {
    /// Starts watching, with the present variables.
    pub(crate) fn begin(home: &StateHome, top: &Path, run: &str, pairs: &[(String, String)]) -> Self {
        let lines = DotenvLines::of(home, top);
        let start = lines.begin(run, &digests(pairs));
        Self { lines, run: run.to_owned(), start }
    }

    pub(crate) fn end(self, pairs: &[(String, String)]) {
        self.lines.end(&self.run, &self.start, &digests(pairs));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_added_during_a_run_are_recorded() {
        let place = tempfile::tempdir().unwrap();
        let home = StateHome::at(&place.path().join("state"));
        let pairs = |names: &[&str]| -> Vec<(String, String)> {
            names.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect()
        };
        let came = |name: &str| DotenvLines::of(&home, place.path()).judge()(name, "x");
        assert!(!came("A"), "before any run");
        let watch = DotenvWatch::begin(&home, place.path(), "r1", &pairs(&["A"]));
        assert!(came("B") && !came("A"), "during a run the author of a line is unknown");
        watch.end(&pairs(&["A", "B"]));
        assert!(came("B") && !came("A") && !came("C"), "C is written by the user, afterwards");
        // Killed without `end`: the next run still attributes the new variables to it.
        let _killed = DotenvWatch::begin(&home, place.path(), "r2", &pairs(&["A", "B", "C"]));
        assert!(came("D"));
        let watch = DotenvWatch::begin(&home, place.path(), "r3", &pairs(&["A", "B", "C", "D"]));
        watch.end(&pairs(&["A", "B", "C", "D"]));
        assert!(came("D") && came("B") && !came("C") && !came("A"));
    }
}
