//! A Postgres of a test's own, ended with it.
#![allow(clippy::disallowed_methods, reason = "tests are a border, and start processes")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A server on a socket in a folder of its own.
#[derive(Debug)]
pub struct Postgres {
    folder: PathBuf,
    /// Its address.
    pub url: String,
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres")
}

impl Postgres {
    /// Starts one; where that cannot be, the test says that it is skipped.
    pub fn start() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("ralph-pg-{}-{number}", std::process::id()));
        let done = Command::new(script()).arg("start").arg(&folder).output().ok()?;
        if !done.status.success() {
            crate::skip(&format!("no Postgres here: {}", String::from_utf8_lossy(&done.stderr).trim()));
            return None;
        }
        let url = String::from_utf8_lossy(&done.stdout).trim().to_owned();
        Some(Self { folder, url })
    }

    /// Where its socket is.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(".s.PGSQL.5432")
    }

    /// Ends it as a crash would, and starts it again.
    ///
    /// # Panics
    ///
    /// Where it does not come up again.
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
