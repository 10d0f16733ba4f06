//! A temporary folder with a sandbox over it, for commands that only try something.

use crate::error::CommandError;
use ralph_app::Environment;
use ralph_sandbox::{LocalOptions, LocalSandbox};
use std::path::PathBuf;

/// The folder; it is removed when dropped.
#[derive(Debug)]
struct TempFolder(PathBuf);

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A sandbox over a temporary folder.
#[derive(Debug)]
pub struct Scratch {
    /// The sandbox. It goes before its folder does.
    pub sandbox: LocalSandbox,
    _folder: TempFolder,
}

impl Scratch {
    /// A fresh one; `purpose` becomes part of its name and marks its processes.
    pub fn new(env: &Environment, purpose: &str) -> Result<Self, CommandError> {
        let path = env.vars().temp_dir().join(format!("ralph-{purpose}-{}", std::process::id()));
        // Never a folder that somebody else has put there.
        std::fs::create_dir(&path).map_err(|e| {
            CommandError::environment(format!("cannot make the temporary folder `{}`: {e}", path.display()))
                .hint("free some space there, or set TMPDIR to a folder that you may write to")
        })?;
        let folder = TempFolder(path);
        let sandbox = LocalSandbox::start(
            &folder.0,
            LocalOptions::new(format!("{purpose}-{}", std::process::id()), env.vars()),
        )?;
        Ok(Self { sandbox, _folder: folder })
    }
}
