//! The commands of `debug` mode: the run's own checks and its logs. Each check runs in the run's sandbox.

use crate::agents::installed;
use crate::agents::isolation;
use crate::agents::isolation::RepoInside;
use crate::config::model_access;
use crate::environment::Environment;
use crate::error::AppError;
use crate::read::facts::RunSnapshot;
use crate::task::project::{ProjectCommand, project_commands};
use crate::trust::repo_file;
use crate::wiring;
use ralph_loop_core::Refusals;
use ralph_loop_domain::ports::{ExecEnd, ExecRequest, ExecSink, Sandbox as _, StopCause, Stream};
use ralph_loop_git::Repo;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_protocol::id::RunId;
use ralph_loop_sandbox::{LocalOptions, LocalSandbox};
use ralph_loop_task::config::{ProviderName, Settings, VerifierConfig};
use serde::Serialize;
use std::ops::ControlFlow;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(600);
/// Bytes kept from the end of the output.
const KEPT: usize = 256 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DebugCommand {
    RerunTests,
    Lint,
    Typecheck,
    Logs,
}

impl DebugCommand {
    pub const WORDS: &[&str] = &["rerun_tests", "lint", "typecheck", "logs"];

    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "rerun_tests" => Some(Self::RerunTests),
            "lint" => Some(Self::Lint),
            "typecheck" => Some(Self::Typecheck),
            "logs" => Some(Self::Logs),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DebugResult {
    /// As one line.
    pub command: String,
    /// `None` if it was killed or didn't start.
    pub exit_code: Option<i32>,
    /// End of the output, redacted.
    pub output: String,
}

pub fn run(
    env: &Environment,
    reading: &RunSnapshot,
    command: DebugCommand,
) -> Result<Vec<DebugResult>, AppError> {
    let settings = &reading.state.spec.settings;
    if !settings.mode.runs_commands() {
        return Err(AppError::usage(format!("the mode of this run is {}", settings.mode.as_str()))
            .hint("`mode: debug` in the task or the configuration, or `ralph run --mode debug`, allows the listed commands"));
    }
    let top = if reading.state.spec.workspace.is_dir() {
        &reading.state.spec.workspace
    } else {
        reading.state.spec.home()
    };
    let known = || project_commands(top);
    let lines = match command {
        DebugCommand::Logs => return Ok(logs(env, reading)),
        DebugCommand::RerunTests => own_checks(settings, |v| settings.required_verifiers.contains(&v.name)),
        DebugCommand::Lint => named_checks(settings, "lint", &known().lints),
        DebugCommand::Typecheck => named_checks(settings, "typecheck", &known().typechecks),
    };
    if lines.is_empty() {
        let names: Vec<&str> = settings.verifiers.iter().map(|v| v.name.as_str()).collect();
        return Err(AppError::usage("no check of this run does that")
            .cause(format!("debug mode runs the run's own checks only: {}", names.join(", ")))
            .hint(
                "name one `lint` or `typecheck` under `verifiers` in `.ralph/config.json`, for the next run",
            ));
    }
    in_sandbox(env, reading, &lines)
}

/// The commands of the run's checks that `wanted` selects, each once.
fn own_checks(settings: &Settings, wanted: impl Fn(&VerifierConfig) -> bool) -> Vec<Vec<String>> {
    let mut lines: Vec<Vec<String>> = Vec::new();
    // Hidden checks have no command to show.
    let visible = settings.verifiers.iter().filter(|v| !v.command_argv.is_empty() && wanted(v));
    for verifier in visible {
        if !lines.contains(&verifier.command_argv) {
            lines.push(verifier.command_argv.clone());
        }
    }
    lines
}

/// The run's checks of that name, or those that are a command which the project names for it.
fn named_checks(settings: &Settings, name: &str, known: &[ProjectCommand]) -> Vec<Vec<String>> {
    own_checks(settings, |v| {
        let line = v.command_line();
        v.name == name || known.iter().any(|command| command.command_line() == line)
    })
}

fn in_sandbox(
    env: &Environment,
    reading: &RunSnapshot,
    lines: &[Vec<String>],
) -> Result<Vec<DebugResult>, AppError> {
    // A separate fence, because the run's own may be in use.
    let mut spec = reading.state.spec.clone();
    spec.run_id = RunId::new(format!("{}-debug", spec.run_id));
    let spec = &spec;
    if spec.settings.sandbox.provider() != ProviderName::Local {
        return Err(AppError::usage("commands are run in sandboxes of this machine only")
            .hint("the checks of each iteration are in its artifacts"));
    }
    let home = env.state_home()?;
    let env = &env.with_dotenv(&spec.origin)?;
    let repo = Repo::discover(env.vars(), spec.home())?;
    let copied = spec.hands_back() && spec.workspace.is_dir();
    let folder = if copied { &spec.workspace } else { spec.home() };
    let mut options = LocalOptions::new(spec.run_id.as_str(), env.vars());
    if let Some(program) = env.helper_program() {
        options.guard_exe = Some(program.to_owned());
    }
    options.env_remove = model_access::own_keys(env, &spec.settings);
    let objects = wiring::lent_objects(&home, &reading.state.spec, &repo, copied);
    let inside = RepoInside { objects, identity: isolation::identity(&repo) };
    let shown = vec![reading.entry.run_dir().path().to_owned()];
    options.isolation = isolation::of_run(
        env,
        &home,
        spec,
        &Refusals::default(),
        shown,
        inside,
        &installed::of_run(env, spec),
    )?;
    let sandbox = LocalSandbox::start(folder, options)?;
    let redactor = env.redactor(&spec.origin);
    let mut results = Vec::new();
    for argv in lines {
        let mut request = ExecRequest::new(argv.clone());
        request.timeout = Some(TIMEOUT);
        if let Some(below) = &spec.task.working_dir {
            request.cwd = below.into();
        }
        let mut heard = Heard::default();
        let outcome = sandbox.exec(&request, &mut heard);
        let (exit_code, said) = match outcome {
            Ok(outcome) => (
                outcome.end.code(),
                match outcome.end {
                    ExecEnd::TimedOut => "\n(ended after 10 minutes)",
                    _ => "",
                },
            ),
            Err(error) => {
                heard.0.extend_from_slice(error.to_string().as_bytes());
                (None, "")
            }
        };
        let output = format!("{}{said}", redactor.text(&String::from_utf8_lossy(&heard.0)));
        results.push(DebugResult { command: typed(argv), exit_code, output });
    }
    drop(sandbox);
    let _ = ralph_loop_safe_fs::remove_tree(home.path().join("fences").join(spec.run_id.as_str()));
    Ok(results)
}

fn logs(env: &Environment, reading: &RunSnapshot) -> Vec<DebugResult> {
    let redactor = env.redactor(&reading.entry.origin);
    let dir = reading.entry.run_dir();
    let home = RalphDir::of(reading.state.spec.home());
    // Not the engine's own log lines.
    let paths = [("activity.log", home.join("activity.log")), ("errors.log", dir.errors())];
    let end = |bytes: Vec<u8>| bytes[bytes.len().saturating_sub(KEPT / 4)..].to_vec();
    let read = paths.into_iter().filter_map(|(name, path)| Some((name, repo_file::read_record(&path).ok()?)));
    read.map(|(name, bytes)| DebugResult {
        command: name.to_owned(),
        exit_code: None,
        output: redactor.text(&String::from_utf8_lossy(&end(bytes))).into_owned(),
    })
    .collect()
}

/// A command as typed in a shell.
fn typed(argv: &[String]) -> String {
    match argv {
        [sh, c, line] if sh == "sh" && c == "-c" => line.clone(),
        argv => ralph_loop_task::config::join_argv(argv),
    }
}

/// Keeps the end of a command's output.
#[derive(Default)]
struct Heard(Vec<u8>);

impl ExecSink for Heard {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        if self.0.len() > 2 * KEPT {
            self.0.drain(..self.0.len() - KEPT);
        }
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}
