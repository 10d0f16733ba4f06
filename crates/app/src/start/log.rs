//! The log of a process that drives a run, for debugging: what the engine did and how long it took.
//!
//! All crates use `tracing`. [`RunLog::install`] listens for the binary; a library leaves that to its
//! program. It writes to a bounded file in the run's record (`ralph.log`, before it `ralph.1.log`), and to
//! stderr on request. Secrets and terminal escapes are removed from every line.

use ralph_loop_domain::redact::Redactor;
use ralph_loop_protocol::display::sanitize;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

pub const FILE: &str = "ralph.log";
pub const FILE_BEFORE: &str = "ralph.1.log";
/// Size at which a new file is started.
const SIZE_MAX: u64 = 2 * 1024 * 1024;
/// Bytes buffered until the run's record is known.
const EARLY_MAX: usize = 64 * 1024;

#[derive(Clone, Default)]
pub struct RunLog(Arc<Mutex<Target>>);

#[derive(Default)]
struct Target {
    redactor: Redactor,
    folder: Option<PathBuf>,
    file: Option<File>,
    length: u64,
    early: Vec<u8>,
}

impl RunLog {
    /// Installs the process-wide listener, unless there is one. With `stderr`, lines of that level and above
    /// go there as well.
    pub fn install(redactor: Redactor, stderr: Option<Level>) -> Self {
        let log = Self(Arc::new(Mutex::new(Target { redactor, ..Target::default() })));
        let to_file = fmt::layer().with_ansi(false).with_writer(log.clone()).with_filter(ours(Level::DEBUG));
        let to_stderr = stderr.map(|level| {
            let writer = Redacting { log: log.clone() };
            fmt::layer().with_ansi(false).with_writer(writer).with_filter(ours(level))
        });
        let _ = tracing_subscriber::registry().with(to_file).with(to_stderr).try_init();
        log
    }

    /// Writes to this run's record from now on, including what is buffered.
    pub fn attach(&self, record: &Path, redactor: Redactor) {
        let mut target = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        target.redactor = redactor;
        target.folder = Some(record.to_owned());
        target.file = None;
        let early = std::mem::take(&mut target.early);
        let early: Vec<u8> =
            early.split_inclusive(|b| *b == b'\n').flat_map(|line| target.clean(line)).collect();
        target.append(early);
    }

    fn clean(&self, line: &[u8]) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clean(line)
    }
}

impl Target {
    /// Makes one event one safe line. Sanitizes before redacting: an invisible character would split a
    /// secret.
    fn clean(&self, line: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(line);
        let safe = sanitize::line(text.trim_end_matches('\n'));
        format!("{}\n", self.redactor.text(&safe)).into_bytes()
    }

    /// Ignores write errors: a full disk must not end a run.
    fn put(&mut self, line: &[u8]) {
        let line = self.clean(line);
        self.append(line);
    }

    fn append(&mut self, line: Vec<u8>) {
        let Some(folder) = self.folder.clone() else {
            let room = EARLY_MAX.saturating_sub(self.early.len());
            self.early.extend_from_slice(&line[..line.len().min(room)]);
            return;
        };
        if self.length > SIZE_MAX {
            self.file = None;
            let _ = std::fs::rename(folder.join(FILE), folder.join(FILE_BEFORE));
        }
        if self.file.is_none() {
            self.file = OpenOptions::new().create(true).append(true).open(folder.join(FILE)).ok();
            self.length =
                self.file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |meta| meta.len());
        }
        if let Some(file) = &mut self.file
            && file.write_all(&line).is_ok()
        {
            self.length += line.len() as u64;
        }
    }
}

pub struct Line(RunLog);

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).put(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for RunLog {
    type Writer = Line;
    fn make_writer(&'a self) -> Line {
        Line(self.clone())
    }
}

/// Writes redacted lines to stderr.
struct Redacting {
    log: RunLog,
}

struct StderrLine {
    log: RunLog,
}

impl Write for StderrLine {
    #[allow(clippy::disallowed_methods, reason = "the lines are safe to show")]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stderr().write_all(&self.log.clean(bytes))?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Redacting {
    type Writer = StderrLine;
    fn make_writer(&'a self) -> StderrLine {
        StderrLine { log: self.log.clone() }
    }
}

/// Only our own crates: library events may contain full URLs, unredacted.
fn ours(level: Level) -> Targets {
    Targets::new().with_target("ralph", level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_from_before_the_record_are_kept_secrets_are_not_and_the_file_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let log = RunLog::default();
        let subscriber = tracing_subscriber::registry()
            .with(fmt::layer().with_ansi(false).with_writer(log.clone()).with_filter(ours(Level::DEBUG)));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!("early");
            tracing::warn!(target: "hyper_util::client", "of a library");
            log.attach(folder.path(), Redactor::new([("TOKEN", "hunter2-hunter2")]));
            tracing::warn!(token = "hunter2-hunter2", "late");
            let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
            assert!(text.contains("early") && text.contains("WARN") && text.contains("late"), "{text}");
            assert!(!text.contains("hunter2") && !text.contains("of a library"), "{text}");
            let long = "x".repeat(10_000);
            for _ in 0..2 * SIZE_MAX / 10_000 {
                tracing::debug!("{long}");
            }
        });
        let size = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len();
        assert!(size(FILE) <= SIZE_MAX + 20_000 && size(FILE_BEFORE) <= SIZE_MAX + 20_000);
    }
}
