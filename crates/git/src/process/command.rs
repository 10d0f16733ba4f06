//! The only module that starts `git`: no hooks or prompts, a clean environment, a folder of the system to start in, a
//! deadline, and bounded output.
//!
//! [`Git`] works on trees. It reads only settings that the engine wrote, which name no program, so that no filter,
//! driver or helper of a repo or of the user exists for it, and it reaches no network. [`UserGit`] has the user's
//! settings and sees no files of a repo.
#![allow(clippy::disallowed_methods, reason = "this is the home of git processes")]

pub use crate::process::git_error::{GitError, GitFailure};
use crate::process::git_error::{hint_for, tail};
use crate::process::output::{OutputReader, PieceSink, ReadEnd};
use crate::process::path::outside_of_repo;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use ralph_loop_domain::repo::address;
use ralph_loop_domain::vars::Vars;
use std::any::Any;
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

/// Settings for every command. Hooks belong to a git folder, whatever its settings say. `gc`/`maintenance` off: a
/// checkpoint must never repack the user's repo.
const CONFIG: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "core.safecrlf=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.addEmbeddedRepo=false",
    "advice.detachedHead=false",
    "advice.updateSparsePath=false",
];
/// What the user's settings may not change.
const USER_CONFIG: &[&str] = &[
    "core.fsmonitor=false",
    "core.pager=cat",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "submodule.recurse=false",
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

#[derive(Debug, Clone)]
enum Config {
    User,
    /// Those that the engine wrote into the git folder.
    Folder,
    /// Those of the engine's folder `common`, in place of the repo's. It exists as long as `_kept`.
    View {
        common: PathBuf,
        network: bool,
        _kept: Arc<dyn Any + Send + Sync>,
    },
    /// None: the engine's folder could not be made.
    Broken(String),
}

#[derive(Debug, Clone)]
pub struct Git {
    vars: Vars,
    git_dir: Option<PathBuf>,
    folder: PathBuf,
    config: Config,
    timeout: Duration,
    /// Where new objects go, if not to the repo's folder.
    objects: Option<PathBuf>,
}

/// Runs git with the user's settings, for their identity, remotes and settings, and to make repos.
#[derive(Debug, Clone)]
pub struct UserGit(Git);

impl UserGit {
    /// Git on a known repo, without its files.
    pub(crate) fn in_repo(vars: &Vars, git_dir: &Path) -> Self {
        Self(Git::new(vars, Some(git_dir.to_owned()), git_dir.to_owned(), Config::User))
    }

    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self(self.0.with_timeout(timeout))
    }

    pub fn call<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> GitCall {
        self.0.call(args)
    }
}

impl Git {
    fn new(vars: &Vars, git_dir: Option<PathBuf>, folder: PathBuf, config: Config) -> Self {
        Self { vars: vars.clone(), git_dir, folder, config, timeout: DEFAULT_TIMEOUT, objects: None }
    }

    /// The user's git in a folder, from which it looks for the repo. Its processes inherit `vars`.
    pub fn in_folder(vars: &Vars, folder: impl AsRef<Path>) -> UserGit {
        let folder = folder.as_ref();
        let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        UserGit(Self::new(&outside_of_repo(vars, folder), None, absolute, Config::User))
    }

    /// Git on a repo whose settings the engine wrote.
    pub fn in_repo(vars: &Vars, git_dir: impl Into<PathBuf>, work_tree: impl Into<PathBuf>) -> Self {
        Self::new(vars, Some(git_dir.into()), work_tree.into(), Config::Folder)
    }

    /// Git on another's repo, with the settings in the engine's folder `common`, which exists as long as `kept`.
    pub(crate) fn viewing(
        vars: &Vars,
        git_dir: &Path,
        work_tree: &Path,
        (common, network): (&Path, bool),
        kept: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        let config = Config::View { common: common.to_owned(), network, _kept: kept };
        Self::new(vars, Some(git_dir.to_owned()), work_tree.to_owned(), config)
    }

    pub(crate) fn broken(vars: &Vars, why: String) -> Self {
        Self::new(vars, None, PathBuf::from("/"), Config::Broken(why))
    }

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

    /// The variables that keep the user's and the repo's settings out.
    fn own_settings(&self) -> Vec<(&'static str, OsString)> {
        let (common, network) = match &self.config {
            Config::User | Config::Broken(_) => return Vec::new(),
            Config::Folder => (None, false),
            Config::View { common, network, .. } => (Some(common), *network),
        };
        let mut own: Vec<(&str, OsString)> = vec![
            ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_CONFIG_COUNT", "0".into()),
            ("GIT_ATTR_NOSYSTEM", "1".into()),
        ];
        own.extend(common.map(|common| ("GIT_COMMON_DIR", common.clone().into_os_string())));
        if !network {
            // An object that a partial clone lacks isn't fetched, either.
            own.extend([("GIT_ALLOW_PROTOCOL", OsString::new()), ("GIT_NO_LAZY_FETCH", "1".into())]);
        }
        own
    }

    pub fn call<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> GitCall {
        let args: Vec<OsString> = args.into_iter().map(|a| a.as_ref().to_owned()).collect();
        GitCall {
            git: self.clone(),
            args,
            config: Vec::new(),
            env: Vec::new(),
            stdin: Vec::new(),
            stdin_file: None,
            in_tree: false,
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
    in_tree: bool,
    max_stdout: usize,
    accepted: &'static [i32],
}

impl GitCall {
    /// One more `-c key=value`. Never a secret: arguments are visible to every user of the machine.
    pub fn config(mut self, setting: impl Into<String>) -> Self {
        self.config.push(setting.into());
        self
    }
    /// Reads the index from within the tree: git looks there for files outside a sparse checkout.
    pub(crate) fn in_tree(mut self) -> Self {
        self.in_tree = true;
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
        if let Config::Broken(why) = &self.git.config {
            let (args, kind) = ("start".to_owned(), GitFailure::CannotStart(why.clone()));
            return Err(GitError { args, kind, stderr: String::new(), hint: None });
        }
        let mut command = Command::new(program(&self.git.vars));
        let is_user = matches!(self.git.config, Config::User);
        let settings = CONFIG.iter().chain(USER_CONFIG.iter().filter(|_| is_user)).copied();
        for setting in settings.chain(self.config.iter().map(String::as_str)) {
            command.arg("-c").arg(setting);
        }
        if self.in_tree {
            command.arg("-C").arg(&self.git.folder);
        }
        match &self.git.git_dir {
            Some(git_dir) => {
                command.arg("--git-dir").arg(git_dir).arg("--work-tree").arg(&self.git.folder);
            }
            None => drop(command.arg("-C").arg(&self.git.folder)),
        }
        // Git goes to its tree itself: a program that is found from here is never one of a tree.
        command.args(&self.args).current_dir("/").process_group(0);
        command
            .env_clear()
            .envs(self.git.vars.iter().filter(|(key, _)| !is_unwanted(key, is_user)))
            .envs(self.git.own_settings())
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
            _config: self.git.config,
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

fn is_unwanted(key: &OsStr, is_user: bool) -> bool {
    let Some(key) = key.to_str() else { return false };
    let is_kept = KEPT.contains(&key) || KEPT_PREFIXES.iter().any(|p| key.starts_with(p));
    key.starts_with("GIT_") && !(is_user && is_kept || key == "GIT_EXEC_PATH")
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
    /// Its settings exist until it ends.
    _config: Config,
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
