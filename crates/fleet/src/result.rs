//! A run's result so far, as plain files in its record, for servers: they have no repo of the run.

use crate::error::FleetError;
use ralph_loop_domain::redact::Redactor;
use ralph_loop_git::{Repo, RunCommits};
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::folder::layout::RunDir;
use ralph_loop_protocol::event::FileChange;
use ralph_loop_protocol::id::{CommitId, RunId};
use ralph_loop_safe_fs::SafeDir;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The folder in the record.
pub const FOLDER: &str = "result";
const CHANGES: &str = "result/changes.json";
const PATCH: &str = "result/changes.patch";
const FILES: &str = "result/files";
/// Bytes of the patch, of one file, and of all.
const PATCH_MAX: usize = 2 * 1024 * 1024;
const FILE_MAX: usize = 2 * 1024 * 1024;
const ALL_MAX: usize = 32 * 1024 * 1024;

/// What changed from the start to the latest state.
#[derive(Debug, Serialize, Deserialize)]
pub struct ResultSoFar {
    /// The commit at the start.
    pub from: CommitId,
    /// The latest commit.
    pub to: CommitId,
    /// The changed files.
    pub files: Vec<FileChange>,
    /// The patch, for display.
    #[serde(skip)]
    pub patch: String,
    /// Whether it is cut.
    pub cut: bool,
}

impl ResultSoFar {
    /// Reads it from a record.
    pub fn read(record: &RunDir) -> Option<Self> {
        let most = 4 * PATCH_MAX as u64;
        let read = |name: &str| ralph_loop_safe_fs::read_plain(record.path().join(name), most).ok();
        let found: Self = serde_json::from_slice(&read(CHANGES)?).ok()?;
        Some(Self { patch: String::from_utf8_lossy(&read(PATCH)?).into_owned(), ..found })
    }

    /// The folder with the changed files.
    pub fn folder(record: &RunDir) -> PathBuf {
        record.path().join(FILES)
    }
}

/// Writes the result into the record, without secrets.
pub(crate) fn write(repo: &Repo, run: &RunId, record: &Path, redactor: &Redactor) -> Result<(), FleetError> {
    let failed =
        |why: &dyn std::fmt::Display| FleetError::Store(format!("the result can't be written: {why}"));
    let Some(work) = RunCommits::read(repo, run).map_err(|e| failed(&e))? else { return Ok(()) };
    let files = work.files(repo).map_err(|e| failed(&e))?;
    let (patch, cut) = work.patch(repo, PATCH_MAX).map_err(|e| failed(&e))?;
    let patch = redactor.text(&String::from_utf8_lossy(&patch)).into_owned();
    let folder = record.join(FILES);
    ralph_loop_safe_fs::remove_tree(&folder).map_err(|e| failed(&e))?;
    std::fs::create_dir_all(&folder).map_err(|e| failed(&e))?;
    let dir = SafeDir::open(&folder).map_err(|e| failed(&e))?;
    let there = files.iter().filter(|file| file.status != 'D').map(|file| file.path.as_str());
    for (path, text) in texts(repo, work.work.as_str(), there)? {
        // A name that can't be written here isn't shown.
        let _ = dir.write(path, redactor.text(&text).as_bytes());
    }
    artifacts::write_atomic(&record.join(PATCH), patch.as_bytes()).map_err(|e| failed(&e))?;
    let found = ResultSoFar { from: work.start, to: work.work, files, patch: String::new(), cut };
    let text = serde_json::to_vec(&found).map_err(|e| failed(&e))?;
    artifacts::write_atomic(&record.join(CHANGES), &text).map_err(|e| failed(&e))
}

/// The texts among these files of a commit, with one process.
fn texts<'a>(
    repo: &Repo,
    commit: &str,
    paths: impl Iterator<Item = &'a str>,
) -> Result<Vec<(&'a str, String)>, FleetError> {
    let paths: Vec<&str> = paths.filter(|path| !path.contains('\n')).collect();
    let wanted: String = paths.iter().map(|path| format!("{commit}:{path}\n")).collect();
    let call = repo.git().call(["cat-file", "--batch"]).stdin(wanted.into_bytes()).max_stdout(ALL_MAX);
    let answer = call.run().map_err(|e| FleetError::Store(format!("the result can't be read: {e}")))?.stdout;
    let (mut rest, mut found) = (answer.as_slice(), Vec::new());
    for path in paths {
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { break };
        let (head, after) = rest.split_at(end + 1);
        rest = after;
        let head = String::from_utf8_lossy(head);
        let Some(size) = head.trim_end().rsplit(' ').next().and_then(|size| size.parse::<usize>().ok())
        else {
            // `missing`
            continue;
        };
        let Some((bytes, after)) = rest.split_at_checked(size) else { break };
        rest = after.get(1..).unwrap_or_default();
        if size <= FILE_MAX
            && head.split(' ').nth(1) == Some("blob")
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            found.push((path, text.to_owned()));
        }
    }
    Ok(found)
}
