//! A sandbox and a workspace without processes and files, for tests of the engine.
//!
//! Folders are maps of files; several exist side by side under their root paths ([`Sandbox::with_root`]), and
//! [`MemoryWorkspace`] keeps the history of one of them. Clones of a sandbox and workspaces over it see the same
//! state, like processes that share a disk.

mod commands;
mod diff;
mod files;
mod workspace;

pub use files::MemoryFiles;
pub use workspace::MemoryWorkspace;

use ralph_loop_domain::ports::{
    ExecEnd, ExecOutcome, ExecRequest, ExecSink, HostAccess, Sandbox, SandboxCapabilities, SandboxError,
    Stream, WriteMode,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The result of a command of a [`MemorySandbox`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryExit {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl MemoryExit {
    /// A silent exit with `code`.
    pub fn code(code: i32) -> Self {
        Self { code, ..Self::default() }
    }

    pub fn prints(text: impl Into<Vec<u8>>) -> Self {
        Self { stdout: text.into(), ..Self::default() }
    }
}

type Commands = dyn Fn(&ExecRequest, &mut MemoryFiles) -> Option<MemoryExit> + Send + Sync;

#[derive(Clone)]
pub struct MemorySandbox {
    root: PathBuf,
    state: Arc<Mutex<MemoryState>>,
    commands: Arc<Commands>,
}

#[derive(Debug, Default)]
struct MemoryState {
    folders: BTreeMap<PathBuf, MemoryFiles>,
    history: workspace::History,
}

impl MemorySandbox {
    /// A sandbox at `/workspace` with these commands; if they answer `None`, the built-in ones apply: `true`,
    /// `false`, `test -f PATH`, `cat PATH`, `grep TEXT PATH`. Any other can't be started.
    ///
    /// The closure must not use the sandbox itself; it gets the files of the command's folder.
    pub fn new(
        commands: impl Fn(&ExecRequest, &mut MemoryFiles) -> Option<MemoryExit> + Send + Sync + 'static,
    ) -> Self {
        let root = PathBuf::from("/workspace");
        let folders = BTreeMap::from([(root.clone(), MemoryFiles::default())]);
        let state = MemoryState { folders, history: workspace::History::default() };
        Self { root, state: Arc::new(Mutex::new(state)), commands: Arc::new(commands) }
    }

    /// A copy of this folder's files.
    pub fn snapshot(&self) -> MemoryFiles {
        self.files(|files| files.clone())
    }

    pub fn restore(&self, files: MemoryFiles) {
        self.files(|now| *now = files);
    }

    pub fn files<R>(&self, work: impl FnOnce(&mut MemoryFiles) -> R) -> R {
        work(lock(&self.state).folders.entry(self.root.clone()).or_default())
    }
}

impl Default for MemorySandbox {
    fn default() -> Self {
        Self::new(|_, _| None)
    }
}

impl std::fmt::Debug for MemorySandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemorySandbox").field("root", &self.root).finish_non_exhaustive()
    }
}

fn lock(state: &Mutex<MemoryState>) -> MutexGuard<'_, MemoryState> {
    // A test's panicking closure must not hide behind a poisoned lock.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sandbox for MemorySandbox {
    fn kind(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> SandboxCapabilities {
        SandboxCapabilities { surroundings: HostAccess::Own }
    }

    fn root(&self) -> &Path {
        &self.root
    }

    fn exec(&self, request: &ExecRequest, sink: &mut dyn ExecSink) -> Result<ExecOutcome, SandboxError> {
        let outcome = |end| Ok(ExecOutcome { end, duration: Duration::ZERO, survivors: 0 });
        crate::paths::names(&request.cwd)?;
        let program = request.argv.first().cloned().unwrap_or_default();
        let cannot = |reason: &str| SandboxError::CannotStart { program, reason: reason.to_owned() };
        if request.argv.is_empty() {
            return Err(cannot("the command is empty"));
        }
        if let ControlFlow::Break(cause) = sink.poll() {
            return outcome(ExecEnd::Stopped(cause));
        }
        let exit = self
            .files(|files| (self.commands)(request, files).or_else(|| commands::built_in(request, files)))
            .ok_or_else(|| cannot("there is no such program"))?;
        for (stream, bytes) in [(Stream::Stdout, &exit.stdout), (Stream::Stderr, &exit.stderr)] {
            if !bytes.is_empty() {
                sink.output(stream, bytes);
            }
        }
        match sink.poll() {
            ControlFlow::Break(cause) => outcome(ExecEnd::Stopped(cause)),
            ControlFlow::Continue(()) => outcome(ExecEnd::Exited(exit.code)),
        }
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, SandboxError> {
        let name = files::key(path)?;
        Ok(self.files(|files| files.get(&name).map(<[u8]>::to_vec)))
    }

    fn write(&self, path: &Path, bytes: &[u8], mode: WriteMode) -> Result<(), SandboxError> {
        let name = files::key(path)?;
        let refused = |reason: &str| SandboxError::File {
            verb: "write",
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        self.files(|files| {
            if name.is_empty() || files.is_folder(&name) {
                return Err(refused("it is a folder"));
            }
            if files.has_file_above(&name) {
                return Err(refused("Not a directory"));
            }
            match mode {
                WriteMode::Replace => files.set(name, bytes),
                WriteMode::Append => files.append(name, bytes),
            }
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> Result<(), SandboxError> {
        let name = files::key(path)?;
        self.files(|files| files.remove(&name));
        Ok(())
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, SandboxError> {
        let name = files::key(path)?;
        Ok(self.files(|files| files.list(&name)))
    }

    fn new_connection(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        Ok(Box::new(self.clone()))
    }

    fn with_root(&self, root: &Path) -> Result<Box<dyn Sandbox>, SandboxError> {
        lock(&self.state).folders.entry(root.to_owned()).or_default();
        Ok(Box::new(Self { root: root.to_owned(), ..self.clone() }))
    }
}
