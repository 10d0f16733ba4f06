//! A Postgres server for one test, ended with it.
#![allow(clippy::disallowed_methods, reason = "tests are a border, and start processes")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Debug)]
pub struct Postgres {
    folder: PathBuf,
    pub url: String,
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres")
}

fn folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("ralph-pg-{}-{number}", std::process::id()))
}

impl Postgres {
    /// Starts a server; if that isn't possible, the test is skipped with a message.
    pub fn start() -> Option<Self> {
        let folder = folder();
        let done = Command::new(script()).arg("start").arg(&folder).output().ok()?;
        if !done.status.success() {
            crate::skip(&format!("no Postgres here: {}", String::from_utf8_lossy(&done.stderr).trim()));
            return None;
        }
        let url = String::from_utf8_lossy(&done.stdout).trim().to_owned();
        Some(Self { folder, url })
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join(".s.PGSQL.5432")
    }

    /// Starts a synchronous standby, which has every committed transaction.
    pub fn standby(&self) -> Self {
        let folder = folder();
        let mut command = Command::new(script());
        let done = command.arg("standby").arg(&folder).arg(&self.folder).output().ok();
        let done = done.filter(|done| done.status.success());
        let said = done.map(|done| String::from_utf8_lossy(&done.stdout).trim().to_owned());
        let url = said.unwrap_or_default();
        assert!(!url.is_empty(), "the standby did not come up");
        Self { folder, url }
    }

    pub fn crash(&self) {
        let _ = Command::new(script()).arg("crash").arg(&self.folder).status();
    }

    /// Makes a standby the primary.
    pub fn promote(&self) {
        let done = Command::new(script()).arg("promote").arg(&self.folder).status();
        assert!(done.is_ok_and(|status| status.success()), "the standby did not become the primary");
    }

    /// Kills it like a crash, and restarts it.
    pub fn restart(&self) {
        let done = Command::new(script()).arg("restart").arg(&self.folder).status();
        assert!(done.is_ok_and(|status| status.success()), "Postgres did not come up again");
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = Command::new(script()).arg("stop").arg(&self.folder).output();
    }
}
