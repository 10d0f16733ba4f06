//! Patches and line counts between two trees, from one process.

use crate::error::{Error, Result};
use crate::objects::oid::oid;
use crate::process::command::{Git, GitError, RunningGit};
use ralph_loop_protocol::event::FileChange;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

pub(crate) const PATCH_MAX: usize = 4 * 1024 * 1024;

/// An external diff or a text converter is a program that an agent can choose. Submodule and color settings change
/// the format.
const PLAIN: &[&str] = &[
    "diff-tree",
    "-r",
    "-z",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--submodule=short",
];

#[derive(Debug)]
pub(crate) struct DiffInProgress(RunningGit);

#[derive(Debug, Default)]
pub(crate) struct Diff {
    pub(crate) counts: HashMap<Vec<u8>, (Option<u64>, Option<u64>)>,
    pub(crate) patch: Vec<u8>,
    pub(crate) truncated: bool,
}

/// A git that waits for the two trees, so that it starts up while another git still reads the files.
#[derive(Debug)]
pub(crate) struct DiffReady(RunningGit);

pub(crate) fn prepare(git: &Git) -> Result<DiffReady, GitError> {
    let args = PLAIN.iter().copied().chain(["--stdin", "--numstat", "-p"]);
    git.call(args).max_stdout(PATCH_MAX).spawn_waiting().map(DiffReady)
}

impl DiffReady {
    pub(crate) fn start(mut self, from: &str, to: &str) -> DiffInProgress {
        self.0.feed(format!("{from} {to}\n").as_bytes());
        DiffInProgress(self.0)
    }
}

impl DiffInProgress {
    pub(crate) fn finish(self) -> Result<Diff, GitError> {
        let output = self.0.finish()?;
        let mut diff = Diff { truncated: output.truncated, ..Diff::default() };
        // `cat-file` repeats the line it was given.
        let after = output.stdout.iter().position(|b| *b == b'\n').map_or(0, |end| end + 1);
        let rest = diff.take_counts(output.stdout.get(after..).unwrap_or_default());
        diff.patch = rest.to_vec();
        Ok(diff)
    }
}

impl Diff {
    fn take_counts<'a>(&mut self, mut bytes: &'a [u8]) -> &'a [u8] {
        while let Some(end) = bytes.iter().position(|b| *b == 0) {
            let (record, rest) = (&bytes[..end], &bytes[end + 1..]);
            if record.is_empty() {
                return rest;
            }
            let mut parts = record.splitn(3, |b| *b == b'\t');
            if let (Some(added), Some(removed), Some(path)) = (parts.next(), parts.next(), parts.next()) {
                let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse().ok();
                self.counts.insert(path.to_owned(), (number(added), number(removed)));
            }
            bytes = rest;
        }
        &[]
    }

    pub(crate) fn fill(&self, files: &mut [(Vec<u8>, FileChange)]) {
        for (path, change) in files {
            if let Some((added, removed)) = self.counts.get(path) {
                (change.added, change.removed) = (*added, *removed);
            }
        }
    }
}

pub(crate) fn patch(git: &Git, from: &str, to: &str, max: usize) -> Result<Vec<u8>> {
    let (from, to) = (checked(from)?, checked(to)?);
    let args = PLAIN.iter().copied().filter(|a| *a != "-z").chain(["-p", from, to]);
    Ok(git.call(args).max_stdout(max).run()?.stdout)
}

pub(crate) fn changes(git: &Git, from: &str, to: &str) -> Result<Vec<FileChange>> {
    let (from, to) = (checked(from)?, checked(to)?);
    type Known = (String, String, Vec<FileChange>);
    const KNOWN_MAX: usize = 4;
    // What two ids name never changes, and every step of a run asks for the same few.
    static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, _, files)) =
        known().iter().find(|known| (known.0.as_str(), known.1.as_str()) == (from, to))
    {
        return Ok(files.clone());
    }
    let args = PLAIN.iter().copied().chain(["--raw", "--numstat", "--abbrev=64", from, to]);
    let output = git.call(args).run()?;
    let mut files = Vec::new();
    let mut rest = output.stdout.as_slice();
    while rest.first() == Some(&b':') {
        let (head, after) = cut(rest);
        let (path, after) = cut(after);
        rest = after;
        files.push((path.to_owned(), raw_change(head, path)));
    }
    let mut diff = Diff::default();
    diff.take_counts(rest);
    diff.fill(&mut files);
    let files: Vec<FileChange> = files.into_iter().map(|(_, change)| change).collect();
    if [from, to].iter().all(|name| oid(name).is_ok()) {
        let mut known = known();
        known.truncate(KNOWN_MAX - 1);
        known.insert(0, (from.to_owned(), to.to_owned(), files.clone()));
    }
    Ok(files)
}

/// `:100644 100755 <old id> <new id> M`.
fn raw_change(head: &[u8], path: &[u8]) -> FileChange {
    let head = String::from_utf8_lossy(head);
    let words: Vec<&str> = head.split(' ').collect();
    let status = words.get(4).and_then(|w| w.chars().next()).unwrap_or('M');
    FileChange {
        path: crate::snapshot::entry::text(path),
        status,
        added: None,
        removed: None,
        blob: words.get(3).filter(|_| status != 'D').map(|id| (*id).to_owned()),
    }
}

fn cut(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|b| *b == 0) {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[]),
    }
}

/// Refuses names that git would read as an option.
fn checked(name: &str) -> Result<&str> {
    if name.is_empty() || name.starts_with('-') {
        return Err(Error::refused(format!("`{name}` names no tree or commit"), ""));
    }
    Ok(name)
}
pub(crate) fn file_at(git: &Git, commit: &str, path: &str) -> Result<Option<Vec<u8>>> {
    let name = format!("{commit}:{path}");
    let output = git.call(["cat-file", "blob", &name]).max_stdout(16 * 1024 * 1024).accept(&[128]).run()?;
    Ok((output.code == 0).then_some(output.stdout))
}

/// The first files in the folder that no commit will hold: ignored ones, whole folders as one entry.
pub(crate) fn unrecorded(git: &Git) -> Result<Vec<String>> {
    const MOST: usize = 300;
    let args = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
    let output = git.call(args).max_stdout(8 * 1024 * 1024).run()?;
    let paths = output.stdout.split(|b| *b == 0).filter(|p| !p.is_empty());
    let paths = paths.map(|p| String::from_utf8_lossy(p).into_owned());
    Ok(paths.filter(|p| !p.starts_with(".ralph/")).take(MOST).collect())
}

#[derive(Debug)]
pub(crate) struct LastPatch {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) truncated: bool,
}

impl LastPatch {
    /// Whether this is the patch between the two trees, as far as `max` bytes show it.
    pub(crate) fn answers(&self, from: &str, to: &str, max: usize) -> bool {
        self.from == from && self.to == to && (!self.truncated || max <= self.bytes.len())
    }
}
