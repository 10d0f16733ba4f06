//! The only module that starts `git`: no hooks, prompts or pager, a clean environment, a deadline, and bounded
//! output. An agent may have edited `.git/config`, so everything in it that would run a program is switched off on
//! the command line, except clean/smudge filters, which LFS needs.
#![allow(clippy::disallowed_methods, reason = "this is the home of git processes")]

pub use crate::process::git_error::{GitError, GitFailure};
use crate::process::git_error::{hint_for, tail};
use crate::process::output::{OutputReader, PieceSink, ReadEnd};
use crate::process::path::outside_of_repo;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use ralph_loop_domain::repo::address;
use ralph_loop_domain::vars::Vars;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
pub const DEFAULT_MAX_STDOUT: usize = 512 * 1024 * 1024;

/// Settings for every command. `gc`/`maintenance` off: a checkpoint must never repack the user's repo.
const CONFIG: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.pager=cat",
    "core.ignoreStat=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.safecrlf=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "log.showSignature=false",
    "submodule.recurse=false",
    "advice.addEmbeddedRepo=false",
    "advice.detachedHead=false",
    "advice.updateSparsePath=false",
    "color.ui=false",
    "credential.interactive=false",
];

/// Inherited `GIT_*` variables with which the user reaches a remote or sets an identity. All others are dropped: they
/// would lead a command to another repo, index or object folder, or fill stderr with traces.
const KEPT: &[&str] = &[
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_COUNT",
    "GIT_EXEC_PATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_SSL_NO_VERIFY",
    "GIT_PROXY_COMMAND",
    "GIT_ALLOW_PROTOCOL",
];
const KEPT_PREFIXES: &[&str] = &["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_AUTHOR_", "GIT_COMMITTER_"];

/// Runs git in one folder or one repo.
#[derive(Debug, Clone)]
pub struct Git {
    vars: Vars,
    git_dir: Option<PathBuf>,
    folder: PathBuf,
    timeout: Duration,
    /// Where new objects go, if not to the repo's folder.
    objects: Option<PathBuf>,
}

impl Git {
    /// Git in a folder, from which it looks for the repo. Its processes inherit `vars`.
    pub fn in_folder(vars: &Vars, folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        Self {
            vars: outside_of_repo(vars, &folder),
            git_dir: None,
            folder,
            timeout: DEFAULT_TIMEOUT,
            objects: None,
        }
    }

    /// Git on a known repo. Naming both makes an edited `core.worktree` or `core.bare` ineffective.
    pub fn in_repo(vars: &Vars, git_dir: impl Into<PathBuf>, work_tree: impl Into<PathBuf>) -> Self {
        let git_dir = Some(git_dir.into());
        Self {
            vars: vars.clone(),
            git_dir,
            folder: work_tree.into(),
            timeout: DEFAULT_TIMEOUT,
            objects: None,
        }
    }

    /// Sets another deadline per command.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub(crate) fn with_objects(mut self, folder: PathBuf) -> Self {
        self.objects = Some(folder);
        self
    }

    pub(crate) fn with_work_tree(mut self, folder: &Path) -> Self {
        self.folder = folder.to_owned();
        self
    }

    /// Starts building a command.
    pub fn call<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> GitCall {
        let args: Vec<OsString> = args.into_iter().map(|a| a.as_ref().to_owned()).collect();
        GitCall {
            git: self.clone(),
            args,
            config: Vec::new(),
            env: Vec::new(),
            stdin: Vec::new(),
            stdin_file: None,
            max_stdout: DEFAULT_MAX_STDOUT,
            accepted: &[],
        }
    }
}

#[derive(Debug, Clone)]
#[must_use]
pub struct GitCall {
    git: Git,
    args: Vec<OsString>,
    config: Vec<String>,
    env: Vec<(OsString, OsString)>,
    stdin: Vec<u8>,
    stdin_file: Option<Arc<File>>,
    max_stdout: usize,
    accepted: &'static [i32],
}

impl GitCall {
    /// One more `-c key=value`. Never a secret: arguments are visible to every user of the machine.
    pub fn config(mut self, setting: impl Into<String>) -> Self {
        self.config.push(setting.into());
        self
    }
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((key.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }
    /// Uses another index than the user's, in the plain format that this crate reads.
    pub fn index(self, path: &Path) -> Self {
        [
            "index.version=2",
            "index.skipHash=true",
            "core.splitIndex=false",
            "index.sparse=false",
            "core.untrackedCache=false",
        ]
        .into_iter()
        .fold(self.env("GIT_INDEX_FILE", path), |call, setting| call.config(setting))
    }
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }
    pub fn stdin_file(mut self, file: File) -> Self {
        self.stdin_file = Some(Arc::new(file));
        self
    }
    pub fn max_stdout(mut self, bytes: usize) -> Self {
        self.max_stdout = bytes;
        self
    }
    /// Exit codes other than 0 that are an answer, not a failure.
    pub fn accept(mut self, codes: &'static [i32]) -> Self {
        self.accepted = codes;
        self
    }

    pub fn run(self) -> Result<Output, GitError> {
        self.spawn()?.finish()
    }

    /// Runs it and passes on its output as it comes, without a limit.
    pub fn stream(self, each: &mut dyn FnMut(&[u8])) -> Result<(), GitError> {
        self.spawn()?.finish_into(Some(each)).map(|_| ())
    }

    /// Starts it; [`RunningGit::finish`] collects the output.
    pub fn spawn(self) -> Result<RunningGit, GitError> {
        let file = self.stdin_file.as_ref().and_then(|file| file.try_clone().ok());
        let stdin = match file {
            Some(file) => Stdio::from(file),
            None if self.stdin.is_empty() => Stdio::null(),
            None => Stdio::piped(),
        };
        self.spawn_with(stdin)
    }

    /// Starts it before its input is known: it waits for [`RunningGit::feed`].
    pub fn spawn_waiting(self) -> Result<RunningGit, GitError> {
        self.spawn_with(Stdio::piped())
    }

    fn spawn_with(self, stdin: Stdio) -> Result<RunningGit, GitError> {
        let mut command = Command::new(program(&self.git.vars));
        for setting in CONFIG.iter().copied().chain(self.config.iter().map(String::as_str)) {
            command.arg("-c").arg(setting);
        }
        if let Some(git_dir) = &self.git.git_dir {
            command.arg("--git-dir").arg(git_dir).arg("--work-tree").arg(&self.git.folder);
        }
        command.args(&self.args).current_dir(&self.git.folder).process_group(0);
        command
            .env_clear()
            .envs(self.git.vars.iter().filter(|(key, _)| !is_unwanted(key)))
            .env("PATH", self.git.vars.own_path())
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            // A replacement ref would hide the real objects.
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            // Answer every prompt of git or ssh with nothing.
            .env("GIT_ASKPASS", "true")
            .env("SSH_ASKPASS", "true")
            .env("SSH_ASKPASS_REQUIRE", "force")
            .env("GCM_INTERACTIVE", "never")
            .env("GIT_LITERAL_PATHSPECS", "0")
            .envs(self.git.objects.iter().map(|folder| ("GIT_OBJECT_DIRECTORY", folder)))
            .envs(self.env.iter().map(|(k, v)| (k, v)))
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let words = self.args.iter().map(|word| word.to_string_lossy());
        let addresses: Vec<String> =
            words.clone().filter(|word| is_shown_otherwise(word)).map(Cow::into_owned).collect();
        let shown = words
            .map(|word| match is_shown_otherwise(&word) {
                true => address::scrubbed(&word, &word),
                false => word.into_owned(),
            })
            .collect::<Vec<_>>()
            .join(" ");
        STARTED.fetch_add(1, Ordering::Relaxed);
        let child = command.spawn().map_err(|error| GitError {
            kind: if error.kind() == ErrorKind::NotFound && self.git.folder.is_dir() {
                GitFailure::NotInstalled
            } else {
                GitFailure::CannotStart(error.to_string())
            },
            hint: (error.kind() == ErrorKind::NotFound && self.git.folder.is_dir())
                .then(|| "install git and make sure that it is on PATH".to_owned()),
            args: shown.clone(),
            stderr: String::new(),
        })?;
        Ok(RunningGit {
            child: Some(child),
            args: shown,
            addresses,
            stdin: self.stdin,
            max_stdout: self.max_stdout,
            accepted: self.accepted,
            started: Instant::now(),
            deadline: Instant::now() + self.git.timeout,
        })
    }
}

static STARTED: AtomicU64 = AtomicU64::new(0);

/// How many git processes this process has started, to measure the cost of a checkpoint.
pub fn processes_started() -> u64 {
    STARTED.load(Ordering::Relaxed)
}

/// The path of git, cached per `PATH`: a long one would be searched for every process.
fn program(vars: &Vars) -> OsString {
    /// More than one process's runs with different paths need; then git is looked up again.
    const KEPT_MAX: usize = 64;
    static FOUND: Mutex<Vec<(OsString, OsString)>> = Mutex::new(Vec::new());
    let path = vars.own_path();
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, program)) = found.iter().find(|(known, _)| known == path) {
        return program.clone();
    }
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let program = { folders.map(|folder| folder.join("git")) }
        .find(|file| file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0))
        .map_or_else(|| OsString::from("git"), PathBuf::into_os_string);
    if found.len() >= KEPT_MAX {
        found.clear();
    }
    found.push((path.to_owned(), program.clone()));
    program
}

/// Whether an argument is a URL that must not be shown as it is.
fn is_shown_otherwise(word: &str) -> bool {
    word.contains(['@', '?']) && address::without_login(word) != word
}

fn is_unwanted(key: &OsStr) -> bool {
    let Some(key) = key.to_str() else { return false };
    key.starts_with("GIT_") && !KEPT.contains(&key) && !KEPT_PREFIXES.iter().any(|p| key.starts_with(p))
}

/// A running git command. Dropping it ends the command.
#[derive(Debug)]
pub struct RunningGit {
    child: Option<Child>,
    args: String,
    /// The arguments that hold a login or a token.
    addresses: Vec<String>,
    stdin: Vec<u8>,
    max_stdout: usize,
    accepted: &'static [i32],
    started: Instant,
    deadline: Instant,
}

impl RunningGit {
    /// Writes a few bytes, less than a pipe holds, and closes the input.
    pub fn feed(&mut self, bytes: &[u8]) {
        if let Some(mut stdin) = self.child.as_mut().and_then(|child| child.stdin.take()) {
            // If git has already exited, `finish` reports why.
            let _ = stdin.write_all(bytes);
        }
    }

    pub fn finish(self) -> Result<Output, GitError> {
        self.finish_into(None)
    }

    fn finish_into(self, sink: PieceSink<'_>) -> Result<Output, GitError> {
        let (started, args) = (self.started, self.args.clone());
        let done = self.collect(sink);
        let took = started.elapsed();
        match &done {
            Ok(output) => tracing::debug!(git = %args, code = output.code, ?took, "git"),
            Err(error) => tracing::debug!(git = %args, %error, ?took, "git failed"),
        }
        done
    }

    fn collect(mut self, sink: PieceSink<'_>) -> Result<Output, GitError> {
        let mut pump = OutputReader::default();
        let pumped = match self.child.as_mut() {
            Some(child) => pump.run(child, &self.stdin, self.max_stdout, self.deadline, sink),
            None => Ok(ReadEnd::Eof),
        };
        let said = tail(&pump.stderr);
        let (stdout, stderr) =
            (pump.stdout, self.addresses.iter().fold(said, |said, one| address::scrubbed(&said, one)));
        match pumped {
            Ok(ReadEnd::Eof) => {}
            Ok(ReadEnd::Full) => {
                self.kill();
                return Ok(Output { code: 0, stdout, stderr, truncated: true });
            }
            Ok(ReadEnd::TimedOut) => {
                self.kill();
                return Err(self.failed(GitFailure::TimedOut, stderr));
            }
            Err(error) => {
                self.kill();
                return Err(self.failed(GitFailure::CannotStart(error.to_string()), stderr));
            }
        }
        let status = match self.child.take().map(|mut child| child.wait()) {
            Some(Ok(status)) => status,
            Some(Err(error)) => {
                return Err(self.failed(GitFailure::CannotStart(error.to_string()), stderr));
            }
            None => return Err(self.failed(GitFailure::TimedOut, stderr)),
        };
        match (status.code(), status.signal()) {
            (Some(code), _) if code == 0 || self.accepted.contains(&code) => {
                Ok(Output { code, stdout, stderr, truncated: false })
            }
            (Some(code), _) => Err(self.failed(GitFailure::Exited(code), stderr)),
            (None, signal) => Err(self.failed(GitFailure::Signaled(signal.unwrap_or(0)), stderr)),
        }
    }

    fn failed(&self, kind: GitFailure, stderr: String) -> GitError {
        let hint = hint_for(&stderr);
        GitError { args: self.args.clone(), kind, stderr, hint }
    }

    /// Ends the command and its child processes (a filter, ssh, a credential helper).
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            if let Ok(pid) = i32::try_from(child.id()) {
                let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for RunningGit {
    fn drop(&mut self) {
        self.kill();
    }
}

#[derive(Debug, Clone)]
pub struct Output {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
    pub truncated: bool,
}

impl Output {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end_matches('\n').to_owned()
    }
}
