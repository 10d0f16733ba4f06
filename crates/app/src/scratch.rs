//! A temporary folder with a sandbox over it, for whoever only tries or asks something.

use crate::environment::Environment;
use crate::error::AppError;
use crate::isolation;
use ralph_loop_core::Refusals;
use ralph_loop_sandbox::{LocalOptions, LocalSandbox};
use ralph_loop_task::config::Settings;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The folder; it is removed when dropped.
#[derive(Debug)]
struct TempFolder(PathBuf);

impl TempFolder {
    fn new(env: &Environment, purpose: &str) -> Result<Self, AppError> {
        let path = env.vars().temp_dir().join(format!("ralph-{purpose}-{}", number()));
        // Never a folder that somebody else has put there, nor one that others can look into.
        std::fs::DirBuilder::new().mode(0o700).create(&path).map_err(|e| {
            AppError::environment(format!("cannot make the temporary folder `{}`: {e}", path.display()))
                .hint("free some space there, or set TMPDIR to a folder that you may write to")
        })?;
        Ok(Self(path))
    }
}

/// A name that no other folder of this process has: several agents may be asked at once.
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

/// A sandbox over a temporary folder, or for trying.
#[derive(Debug)]
pub struct Scratch {
    /// The sandbox. It goes before its folder does.
    pub sandbox: LocalSandbox,
    _folders: Vec<TempFolder>,
}

impl Scratch {
    /// A fresh one; `purpose` becomes part of its name and marks its processes. What is started there has the rights of the user.
    pub fn new(env: &Environment, purpose: &str) -> Result<Self, AppError> {
        let folder = TempFolder::new(env, purpose)?;
        let sandbox = LocalSandbox::start(&folder.0, options(env, purpose))?;
        Ok(Self { sandbox, _folders: vec![folder] })
    }

    /// The same, sandboxed as the agents of these settings would be in a run in the repo at `top`.
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

    /// A sandbox over the repo at `top` itself, for its own commands.
    pub fn over_repo(env: &Environment, purpose: &str, top: &Path) -> Result<Self, AppError> {
        let own = TempFolder::new(env, &format!("{purpose}-own"))?;
        let mut options = options(env, purpose);
        options.isolation = isolation::for_trying(env, top, own.0.clone(), Vec::new())?;
        Ok(Self { sandbox: LocalSandbox::start(top, options)?, _folders: vec![own] })
    }
}
