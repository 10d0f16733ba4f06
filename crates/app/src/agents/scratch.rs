//! A temporary folder with a sandbox, for probes and questions.

use crate::agents::isolation;
use crate::environment::Environment;
use crate::error::AppError;
use ralph_loop_core::Refusals;
use ralph_loop_sandbox::{LocalOptions, LocalSandbox};
use ralph_loop_task::config::Settings;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Removed when dropped.
#[derive(Debug)]
struct TempFolder(PathBuf);

impl TempFolder {
    fn new(env: &Environment, purpose: &str) -> Result<Self, AppError> {
        let path = env.vars().temp_dir().join(format!("ralph-{purpose}-{}", number()));
        // Never an existing folder, and private to the user.
        std::fs::DirBuilder::new().mode(0o700).create(&path).map_err(|e| {
            AppError::environment(format!("cannot make the temporary folder `{}`: {e}", path.display()))
                .hint("free some space there, or set TMPDIR to a folder that you may write to")
        })?;
        Ok(Self(path))
    }
}

/// Unique in this process: several agents may be asked at once.
fn number() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn options(env: &Environment, purpose: &str) -> LocalOptions {
    let mut options = LocalOptions::new(format!("{purpose}-{}", number()), env.vars());
    if let Some(program) = env.helper_program() {
        options.guard_exe = Some(program.to_owned());
    }
    options
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A sandbox over a temporary folder.
#[derive(Debug)]
pub struct Scratch {
    /// Dropped before its folder.
    pub sandbox: LocalSandbox,
    _folders: Vec<TempFolder>,
}

impl Scratch {
    /// A new one; `purpose` names it and marks its processes. Commands have the user's rights.
    pub fn new(env: &Environment, purpose: &str) -> Result<Self, AppError> {
        let folder = TempFolder::new(env, purpose)?;
        let sandbox = LocalSandbox::start(&folder.0, options(env, purpose))?;
        Ok(Self { sandbox, _folders: vec![folder] })
    }

    /// Like [`Self::new`], sandboxed like these settings' agents in the repo at `top`.
    pub fn for_agents(
        env: &Environment,
        purpose: &str,
        top: &Path,
        settings: &Settings,
        refusals: &Refusals,
    ) -> Result<Self, AppError> {
        let (folder, own) =
            (TempFolder::new(env, purpose)?, TempFolder::new(env, &format!("{purpose}-own"))?);
        let mut options = options(env, purpose);
        options.isolation = isolation::for_agents(env, top, own.0.clone(), settings, refusals)?;
        let sandbox = LocalSandbox::start(&folder.0, options)?;
        Ok(Self { sandbox, _folders: vec![folder, own] })
    }

    /// A sandbox over the repo at `top`, for its own commands.
    pub fn over_repo(env: &Environment, purpose: &str, top: &Path) -> Result<Self, AppError> {
        let own = TempFolder::new(env, &format!("{purpose}-own"))?;
        let mut options = options(env, purpose);
        options.isolation = isolation::for_trying(env, top, own.0.clone(), Vec::new())?;
        Ok(Self { sandbox: LocalSandbox::start(top, options)?, _folders: vec![own] })
    }
}
