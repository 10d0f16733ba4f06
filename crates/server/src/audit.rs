//! The audit log: who did what, when, from where. One JSON line each in an append-only file.

use crate::home::ServerHome;
use jiff::Timestamp;
use ralph_loop_protocol::display::text::one_line;
use serde::{Deserialize, Serialize};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::sync::Mutex;

/// Size at which the file replaces the previous one.
const FILE_MAX: u64 = 32 * 1024 * 1024;
/// Bytes read for a page, from the end.
const READ_MAX: u64 = 4 * 1024 * 1024;
const DETAIL_MAX: usize = 400;

/// One recorded action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditEntry {
    /// Who did it.
    pub at: Timestamp,
    /// What was done, in one word.
    pub who: String,
    /// What, in one word.
    pub action: String,
    /// To which run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// More about it; never a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Client address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

#[derive(Debug)]
pub struct Audit {
    home: ServerHome,
    writing: Mutex<()>,
}

impl Audit {
    pub fn new(home: &ServerHome) -> Self {
        Self { home: home.clone(), writing: Mutex::new(()) }
    }

    fn path(&self) -> PathBuf {
        self.home.file("audit.jsonl")
    }

    /// Appends an entry. Callers must refuse the action if this fails.
    pub fn note(&self, mut entry: AuditEntry) -> std::io::Result<()> {
        let _alone = self.writing.lock().unwrap_or_else(|e| e.into_inner());
        let path = self.path();
        if std::fs::metadata(&path).is_ok_and(|meta| meta.len() > FILE_MAX) {
            std::fs::rename(&path, self.home.file("audit.1.jsonl"))?;
        }
        entry.detail = entry.detail.map(|detail| one_line(&detail, DETAIL_MAX));
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        self.home.append(&path)?.write_all(&line)
    }

    /// The latest entries, newest first; only those before `before`, if given.
    pub fn latest(&self, most: usize, before: Option<Timestamp>) -> Vec<AuditEntry> {
        let Ok(mut file) = std::fs::File::open(self.path()) else { return Vec::new() };
        let length = file.metadata().map_or(0, |meta| meta.len());
        let mut bytes = Vec::new();
        let read = file
            .seek(SeekFrom::Start(length.saturating_sub(READ_MAX)))
            .and_then(|_| file.take(READ_MAX).read_to_end(&mut bytes));
        if read.is_err() {
            return Vec::new();
        }
        let lines = bytes.split(|b| *b == b'\n').rev();
        lines
            .filter_map(|line| serde_json::from_slice::<AuditEntry>(line).ok())
            .filter(|entry| before.is_none_or(|before| entry.at < before))
            .take(most)
            .collect()
    }
}
