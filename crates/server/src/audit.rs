//! The audit log: who did what, when, from where. One JSON line each in a file that only grows; each line has the digest of the
//! one before, so that a changed, missing or added line is noticed.

use crate::home::ServerHome;
use jiff::Timestamp;
use ralph_loop_app::{AppError, Environment};
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::id::Digest;
use serde::{Deserialize, Serialize};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Bytes read for a page, from the end.
const READ_MAX: u64 = 4 * 1024 * 1024;
const DETAIL_MAX: usize = 400;
/// No line is as long.
const LINE_MAX: u64 = 64 * 1024;

/// One recorded action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditEntry {
    /// When it was done.
    pub at: Timestamp,
    /// Who did it.
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
    /// SHA-256 of the line before; none on the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Digest>,
}

#[derive(Debug)]
pub struct Audit {
    home: ServerHome,
    /// The digest of the last entry, once one was read or written.
    last: Mutex<Option<Digest>>,
}

fn path(home: &ServerHome) -> PathBuf {
    home.file("audit.jsonl")
}

impl Audit {
    pub fn new(home: &ServerHome) -> Self {
        Self { home: home.clone(), last: Mutex::new(None) }
    }

    /// Appends an entry. Callers must refuse the action if this fails.
    pub fn note(&self, mut entry: AuditEntry) -> std::io::Result<()> {
        let mut last = self.last.lock().unwrap_or_else(|e| e.into_inner());
        let mut file = self.home.append(&path(&self.home))?;
        let mut line = Vec::new();
        if last.is_none() {
            let end = last_line(&path(&self.home))?;
            if end.is_torn {
                line.push(b'\n');
            }
            *last = end.digest;
        }
        entry.detail = entry.detail.map(|detail| one_line(&detail, DETAIL_MAX));
        entry.previous.clone_from(&last);
        let text = serde_json::to_vec(&entry)?;
        line.extend_from_slice(&text);
        line.push(b'\n');
        match file.write_all(&line) {
            Ok(()) => *last = Some(Digest::of(&text)),
            Err(error) => {
                // Part of it may be there.
                *last = None;
                return Err(error);
            }
        }
        Ok(())
    }

    /// The latest entries, newest first; only those before `before`, if given.
    pub fn latest(&self, most: usize, before: Option<Timestamp>) -> Vec<AuditEntry> {
        let Ok(bytes) = tail(&path(&self.home), READ_MAX) else { return Vec::new() };
        let lines = bytes.split(|b| *b == b'\n').rev();
        lines
            .filter_map(|line| serde_json::from_slice::<AuditEntry>(line).ok())
            .filter(|entry| before.is_none_or(|before| entry.at < before))
            .take(most)
            .collect()
    }
}

/// The end of a log.
struct End {
    digest: Option<Digest>,
    /// The last line was cut off while it was written.
    is_torn: bool,
}

fn tail(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn last_line(path: &Path) -> std::io::Result<End> {
    let bytes = tail(path, LINE_MAX)?;
    let is_torn = bytes.last().is_some_and(|last| *last != b'\n');
    let is_entry = |line: &&[u8]| serde_json::from_slice::<AuditEntry>(line).is_ok();
    let line = bytes.rsplit(|b| *b == b'\n').find(is_entry);
    Ok(End { digest: line.map(Digest::of), is_torn })
}

/// A log whose lines follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Lines that are chained.
    pub entries: u64,
    /// Lines from before the log was chained.
    pub unchained: u64,
    /// The digest of the newest line. Kept elsewhere, it shows whether lines at the end were removed.
    pub newest: Option<Digest>,
    /// Whether a line has the digest that was asked for.
    pub has_digest: bool,
}

/// Verifies the audit log of the server on this machine; `digest` is one that it had earlier.
pub fn verify_audit(env: &Environment, digest: Option<&str>) -> Result<Verified, AppError> {
    let path = path(&ServerHome::make(&env.state_home()?)?);
    let failed = |e: std::io::Error| {
        AppError::environment(format!("cannot read the audit log `{}`", path.display()))
            .cause(e.to_string())
            .hint("`ralph serve` writes it; run this as the same user, with the same XDG_STATE_HOME")
    };
    verify(&mut BufReader::new(std::fs::File::open(&path).map_err(failed)?), digest).map_err(failed)?.map_err(
        |line| {
            AppError::environment(format!("the audit log `{}` was changed", path.display()))
                .cause(format!("line {line} doesn't follow the line before it"))
                .hint("compare the log with your last backup of it")
        },
    )
}

/// Reads a log; the number of the first line that doesn't fit.
fn verify(
    log: &mut BufReader<impl std::io::Read>,
    digest: Option<&str>,
) -> std::io::Result<Result<Verified, u64>> {
    let mut found = Verified { entries: 0, unchained: 0, newest: None, has_digest: false };
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if log.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        match serde_json::from_slice::<AuditEntry>(text).map(|entry| entry.previous) {
            Ok(None) if found.entries > 0 => return Ok(Err(number)),
            Ok(None) => found.unchained += 1,
            Ok(previous) if previous != found.newest => return Ok(Err(number)),
            Ok(_) => found.entries += 1,
            // A line that a crash cut off says nothing; the chain continues behind it.
            Err(_) => continue,
        }
        let own = Digest::of(text);
        found.has_digest |= digest == Some(own.as_str());
        found.newest = Some(own);
    }
    Ok(Ok(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_journal::folder::layout::StateHome;

    fn check(text: &str, digest: Option<&str>) -> Result<Verified, u64> {
        verify(&mut BufReader::new(text.as_bytes()), digest).unwrap()
    }

    #[test]
    fn a_changed_missing_or_added_line_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let home = ServerHome::make(&StateHome::from_env(folder.path().to_str(), None).unwrap()).unwrap();
        let note = |audit: &Audit, action: &str| {
            let at = Timestamp::UNIX_EPOCH;
            let (who, action) = ("ana".to_owned(), action.to_owned());
            audit
                .note(AuditEntry { at, who, action, run: None, detail: None, from: None, previous: None })
                .unwrap();
        };
        let old = "{\"at\":\"2026-01-01T00:00:00Z\",\"who\":\"ana\",\"action\":\"login\"}\n";
        std::fs::write(path(&home), old).unwrap();
        let audit = Audit::new(&home);
        note(&audit, "one");
        note(&audit, "two");
        // The server ends in the middle of a line, and starts again.
        home.append(&path(&home)).unwrap().write_all(b"{\"at\":\"20").unwrap();
        let audit = Audit::new(&home);
        note(&audit, "three");
        note(&audit, "four");
        let text = std::fs::read_to_string(path(&home)).unwrap();
        let whole = check(&text, None).unwrap();
        assert_eq!((whole.entries, whole.unchained), (4, 1));
        let lines: Vec<&str> = text.lines().collect();
        let newest = Digest::of(lines.last().unwrap().as_bytes());
        assert_eq!(whole.newest.as_ref(), Some(&newest));
        let join = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        assert_eq!(check(&text.replace("two", "tvo"), None), Err(5), "changed");
        assert_eq!(check(&join(&[&lines[..2], &lines[3..]].concat()), None), Err(4), "missing");
        assert_eq!(check(&join(&[&lines[..2], &lines[1..]].concat()), None), Err(3), "added");
        assert_eq!(check(&format!("{text}{old}"), None), Err(7), "added without a digest");
        let cut = join(&lines[..5]);
        assert!(!check(&cut, Some(newest.as_str())).unwrap().has_digest, "its end is gone");
        assert!(check(&text, Some(newest.as_str())).unwrap().has_digest);
        assert_eq!(audit.latest(2, None).first().unwrap().action, "four");
    }
}
