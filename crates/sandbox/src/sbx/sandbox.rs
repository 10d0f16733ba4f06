//! One of our microVMs.

use super::tool::{Host, Tool};
use crate::paths;
use crate::shell::files::Files;
use crate::shell::output::HeldOutput;
use crate::shell::tree::{self, ProcessScope};
use crate::shell::{HELPER, MARK, ScriptOutput, Shell, new_mark, wrap};
use ralph_loop_domain::ports::{
    ExecOutcome, ExecRequest, ExecSink, HostAccess, ManagedSandbox, Preview, Sandbox, SandboxCapabilities,
    SandboxError, Stdin, Stream, WriteMode,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads the command's variables, `$1` bytes, from standard input and then runs the command. They aren't passed to
/// the tool, because it runs on this machine, and a variable can make a program load foreign code or use a foreign
/// service; as arguments they would appear in every process list.
const TAKE_VARIABLES: &str =
    r#"v=$(dd bs=1 count="$1" 2>/dev/null) || exit 126; shift; eval "$v"; unset v; exec "$@""#;

#[derive(Debug, Clone)]
pub struct SbxSandbox {
    pub(super) host: Arc<Host>,
    pub(super) name: String,
    pub(super) root: PathBuf,
    pub(super) env: Vec<(String, String)>,
}

impl SbxSandbox {
    /// The tool's arguments for a command inside.
    fn exec_words(&self, mark: &str, user: Option<&str>, stdin: bool) -> Vec<String> {
        let mut words = vec!["exec".to_owned()];
        if stdin {
            words.push("-i".to_owned());
        }
        if let Some(user) = user {
            words.extend(["-u".to_owned(), user.to_owned()]);
        }
        words.extend(["-e".to_owned(), format!("{MARK}={mark}"), self.name.clone()]);
        words
    }

    fn script_as(
        &self,
        user: Option<&str>,
        script: &str,
        args: &[&str],
        stdin: &[u8],
    ) -> Result<ScriptOutput, SandboxError> {
        let mut words = self.exec_words(HELPER, user, !stdin.is_empty());
        words.extend(["sh", "-c", script, "sh"].map(String::from));
        words.extend(args.iter().map(|arg| (*arg).to_owned()));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.host.call(&words, stdin)
    }

    fn files<R>(&self, work: impl FnOnce(Files<'_>) -> R) -> R {
        work(Files { shell: self, root: &self.root })
    }

    /// Runs a setup script that must succeed.
    pub(super) fn set_up(&self, script: &str) -> Result<(), SandboxError> {
        let answer = self.script(script, &[], b"")?;
        if answer.code == 0 {
            return Ok(());
        }
        Err(SandboxError::Broken(format!("the set-up of `{}` failed: {}", self.name, answer.complaint())))
    }
}

impl Shell for SbxSandbox {
    fn script(&self, script: &str, args: &[&str], stdin: &[u8]) -> Result<ScriptOutput, SandboxError> {
        self.script_as(None, script, args, stdin)
    }
}

/// A shell with the rights to end what a command started as another user.
struct AsRoot<'a>(&'a SbxSandbox);

impl Shell for AsRoot<'_> {
    fn script(&self, script: &str, args: &[&str], stdin: &[u8]) -> Result<ScriptOutput, SandboxError> {
        self.0.script_as(Some("root"), script, args, stdin)
    }
}

fn input(stdin: &Stdin) -> Result<Vec<u8>, SandboxError> {
    match stdin {
        Stdin::Empty => Ok(Vec::new()),
        Stdin::Bytes(bytes) => Ok(bytes.clone()),
        Stdin::File(path) => std::fs::read(path).map_err(|error| SandboxError::File {
            verb: "open",
            path: path.clone(),
            reason: error.to_string(),
        }),
    }
}

/// Variables as a shell sets them. Leaves out names that aren't valid in a shell: none passes them on.
fn shell_text(env: &[(String, String)]) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let plain = |name: &str| {
        !name.starts_with(|first: char| first.is_ascii_digit())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    let lines = env.iter().filter(|(name, _)| plain(name));
    lines.map(|(name, value)| format!("export {name}={}\n", quoted(value))).collect::<String>() + ":"
}

impl Sandbox for SbxSandbox {
    fn kind(&self) -> &'static str {
        "sbx"
    }

    fn capabilities(&self) -> SandboxCapabilities {
        SandboxCapabilities { surroundings: HostAccess::Own }
    }

    fn root(&self) -> &Path {
        &self.root
    }

    fn exec(&self, request: &ExecRequest, sink: &mut dyn ExecSink) -> Result<ExecOutcome, SandboxError> {
        let mark = new_mark();
        let inner = wrap::argv(&self.root, request, &mark)?;
        let mut env: Vec<(String, String)> = self.env.clone();
        env.retain(|(name, _)| !request.env.iter().any(|(other, _)| other == name));
        env.extend(request.env.iter().filter(|(name, _)| name != MARK).cloned());
        let variables = shell_text(&env);
        let mut argv = self.host.tool.words();
        argv.extend(self.exec_words(&mark, None, true));
        argv.extend(["sh", "-c", TAKE_VARIABLES, "sh"].map(String::from));
        argv.push(variables.len().to_string());
        argv.extend(inner);
        let stdin = Stdin::Bytes([variables.into_bytes(), input(&request.stdin)?].concat());
        let outer = ExecRequest { argv, cwd: PathBuf::new(), env: Vec::new(), stdin, ..request.clone() };
        // Some versions of the tool merge both streams.
        let mut output = HeldOutput::new(sink, &mark, true);
        let outcome = self.host.local.exec(&outer, &mut output)?;
        // Orphans may be the machine's own; only those with the mark are the command's.
        let survivors = tree::kill(&AsRoot(self), ProcessScope::Command { mark: &mark, alone: false })?;
        if let Some(error) = wrap::refused(request, &mark, &output.held) {
            return Err(error);
        }
        output.release(Stream::Stderr);
        Ok(ExecOutcome { survivors: if outcome.end.code().is_some() { survivors } else { 0 }, ..outcome })
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, SandboxError> {
        self.files(|files| files.read(path))
    }
    fn write(&self, path: &Path, bytes: &[u8], mode: WriteMode) -> Result<(), SandboxError> {
        self.files(|files| files.write(path, bytes, mode))
    }
    fn remove(&self, path: &Path) -> Result<(), SandboxError> {
        self.files(|files| files.remove(path))
    }
    fn list(&self, path: &Path) -> Result<Vec<String>, SandboxError> {
        self.files(|files| files.list(path))
    }

    fn new_connection(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        let local = self.host.local.own_lane()?;
        let host = Arc::new(Host { tool: self.host.tool.clone(), local });
        Ok(Box::new(Self { host, ..self.clone() }))
    }

    /// A running machine may keep showing cached files; the next command restarts it.
    fn folder_edited(&self) -> Result<(), SandboxError> {
        self.stop()
    }

    fn with_root(&self, root: &Path) -> Result<Box<dyn Sandbox>, SandboxError> {
        // Only the workspace is shared with this machine, so only a folder in it can be another root.
        let inside =
            root.strip_prefix(&self.root).map_err(|_| SandboxError::OutsideWorkspace(root.to_owned()))?;
        paths::names(inside)?;
        Ok(Box::new(Self { root: root.to_owned(), ..self.clone() }))
    }
}

impl ManagedSandbox for SbxSandbox {
    fn id(&self) -> &str {
        &self.name
    }
    fn start(&self) -> Result<(), SandboxError> {
        // A command starts it.
        self.set_up("true")
    }
    fn stop(&self) -> Result<(), SandboxError> {
        self.host.must(&["stop", &self.name]).map(drop)
    }
    fn destroy(&self) -> Result<(), SandboxError> {
        super::destroy(&self.host, &self.name)
    }
    fn preview(&self, port: u16) -> Result<Preview, SandboxError> {
        let published = || -> Result<Option<String>, SandboxError> {
            let all = self.host.list()?;
            let own = all.into_iter().find(|machine| machine.name == self.name);
            Ok(own.and_then(|machine| {
                machine
                    .ports
                    .into_iter()
                    .find(|(inside, _)| *inside == u64::from(port))
                    .map(|(_, address)| address)
            }))
        };
        let address = match published()? {
            Some(address) => Some(address),
            None if matches!(self.host.tool, Tool::Sbx(_)) => {
                self.host.must(&["ports", &self.name, "--publish", &port.to_string()])?;
                published()?
            }
            None => None,
        };
        match address {
            Some(address) => Ok(Preview { url: format!("http://{address}"), headers: BTreeMap::new() }),
            None => Err(SandboxError::Broken(format!("port {port} of `{}` cannot be published", self.name))),
        }
    }
    fn make_dir(&self, path: &Path) -> Result<(), SandboxError> {
        self.files(|files| files.make_dir(path))
    }
    fn exists(&self, path: &Path) -> Result<bool, SandboxError> {
        self.files(|files| files.exists(path))
    }
    fn set_mode(&self, path: &Path, mode: u32) -> Result<(), SandboxError> {
        self.files(|files| files.set_mode(path, mode))
    }
}
