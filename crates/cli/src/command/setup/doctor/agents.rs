//! Checks agents: installed versions, keys or logins, and whether the configured ones exist. Keys are named,
//! never shown; login files are never opened.

use super::{Area, DoctorCheck, Status};
use crate::text::words::home_path;
use ralph_loop_agents::{Route, presets};
use ralph_loop_app::agents::isolation;
use ralph_loop_app::agents::scratch::Scratch;
use ralph_loop_app::config::settings::LoadedSettings;
use ralph_loop_app::config::{model_access, models, settings};
use ralph_loop_app::{AppError, Environment};
use ralph_loop_core::Refusals;
use ralph_loop_domain::ports::{ExecEnd, ExecRequest, ExecSink, Sandbox as _, StopCause, Stream};
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::id::AgentName;
use ralph_loop_task::config::{AgentConfig, AgentKind, ConfigFile, Isolation};
use ralph_loop_task::dialect::ModelChoice;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Length limit for the output of `--version`.
const SAID_MAX: usize = 120;
/// Timeout for `--version`.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Key variables of a CLI, and its login file below the home folder.
fn credentials(name: &str) -> (&'static [&'static str], &'static str) {
    match name {
        "claude" => (
            &["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"],
            ".claude/.credentials.json",
        ),
        "codex" => (&["OPENAI_API_KEY", "CODEX_API_KEY"], ".codex/auth.json"),
        "opencode" => (
            &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"],
            ".local/share/opencode/auth.json",
        ),
        "qwen" => (&["OPENAI_API_KEY", "DASHSCOPE_API_KEY"], ".qwen/settings.json"),
        _ => (&["GEMINI_API_KEY", "GOOGLE_API_KEY"], ".gemini/oauth_creds.json"),
    }
}

pub fn checks(env: &Environment, top: &Path, file: &ConfigFile, asked: &ModelChoice) -> Vec<DoctorCheck> {
    let path = env.path();
    let configured = file.agents.as_deref().unwrap_or_default();
    let mut checks = Vec::new();
    let mut usable = 0;
    let programs = settings::programs(env, top);
    let found: Vec<_> = presets::NAMES.map(|name| (name, programs.outside(name))).into();
    let trial = Trial { env, top, loaded: settings::load(env, top).ok(), path: programs.guarded_path() };
    // Some take seconds to print their version, so all run in parallel, each in its own sandbox.
    let versions: Vec<Option<(DoctorCheck, bool)>> = std::thread::scope(|scope| {
        let asked: Vec<_> = found
            .iter()
            .map(|(name, program)| {
                let (trial, program) = (&trial, program.as_deref()?);
                Some(scope.spawn(move || trial.installed(name, program)))
            })
            .collect();
        asked.into_iter().map(|thread| thread?.join().ok()).collect()
    });
    for ((name, _), version) in found.iter().zip(versions) {
        match version {
            Some((check, starts)) => {
                checks.push(check);
                let own = isolation::own_key_variables(env, name);
                checks.push(login(name, &own, &|key| env.vars().is_filled(key), env.vars().home()));
                usable += usize::from(starts);
            }
            None => {
                let check = DoctorCheck::warn(Area::Agents, *name, "not installed");
                checks.push(check.fix(presets::install_hint(name).unwrap_or_default()));
            }
        }
    }
    let takes_part =
        |agent: &&AgentConfig| file.agent_priority.as_ref().is_none_or(|order| order.contains(&agent.name));
    for agent in configured {
        let check = command_of(env, agent, top, &path);
        checks.push(match check.status {
            // Agents that don't take part may be missing.
            Status::Missing if !takes_part(&agent) => {
                let message =
                    format!("{}; it takes no part: `agent_priority` does not name it", check.message);
                DoctorCheck { status: Status::Warn, message, why: None, ..check }
            }
            _ => check,
        });
    }
    // A known agent needs no entry; whether it is installed is reported above.
    let known = |name: &AgentName| {
        configured.iter().any(|a| a.name == *name) || presets::NAMES.contains(&name.as_str())
    };
    for unknown in file.agent_priority.iter().flatten().filter(|name| !known(name)) {
        checks.push(
            DoctorCheck::missing(
                Area::Agents,
                "agent_priority",
                format!("names the unknown agent `{unknown}`"),
            )
            .fix("define it under `agents`, or take it out"),
        );
    }
    let calls = configured.iter().filter(takes_part).any(|agent| agent.kind.calls_model());
    checks.extend(profiles(env, top, asked, calls));
    let by_model =
        || models::load(env, top).ok().and_then(|loaded| model_access::default_agent(env, &loaded));
    // Each missing configured agent is reported separately.
    if usable == 0 && configured.is_empty() && by_model().is_none() {
        checks.push(
            DoctorCheck::missing(Area::Agents, "an agent", "none can work here")
                .why("an agent does the work")
                .fix("install claude, codex, gemini, opencode or qwen; or set the key of a model (`ralph models` names it); or name any command: `ralph init --profile command`. `ralph demo` needs none"),
        );
    }
    checks
}

/// Model profiles the task asks for; their keys matter if an agent `calls` a model.
fn profiles(env: &Environment, top: &Path, asked: &ModelChoice, calls: bool) -> Vec<DoctorCheck> {
    let Ok(loaded) = models::load(env, top) else { return Vec::new() };
    let named = [&asked.default_profile, &asked.fallback_profile].into_iter().flatten();
    let missing = named.filter_map(|name| {
        let check =
            |message: String| DoctorCheck::missing(Area::Agents, format!("model profile {name}"), message);
        match loaded.models.get(name) {
            None => Some(
                check("the task asks for it, but there is none of that name".into())
                    .fix("`ralph models` shows the profiles"),
            ),
            Some(profile) if calls && !model_access::has_key(env, &profile) => {
                let keys = Route::of(&profile, &|_: &str| None)
                    .map(|route| route.key_vars.join(" or "))
                    .unwrap_or_default();
                Some(
                    check(format!("the task asks for it, and its key is not set: {keys}"))
                        .fix(format!("set {keys}, in the environment or in `.env`")),
                )
            }
            Some(_) => None,
        }
    });
    missing.collect()
}

/// Starts installed agents as a run would.
struct Trial<'a> {
    env: &'a Environment,
    top: &'a Path,
    loaded: Option<LoadedSettings>,
    path: String,
}

/// How `--version` ended, and its output.
struct Tried {
    end: Result<ExecEnd, String>,
    said: String,
}

impl Tried {
    fn starts(&self) -> bool {
        self.end == Ok(ExecEnd::Exited(0))
    }

    fn cause(&self) -> &str {
        match &self.end {
            Err(error) => error,
            Ok(_) => &self.said,
        }
    }
}

impl Trial<'_> {
    /// The agent's version in the sandbox, and whether it starts there.
    fn installed(&self, name: &str, program: &Path) -> (DoctorCheck, bool) {
        let place = home_path(program);
        let isolation = self.isolation();
        let tried = self.version(name, program, isolation);
        let warn = |message: String| DoctorCheck::warn(Area::Agents, name, message);
        if tried.starts() {
            let check = match presets::too_old(name, &tried.said) {
                Some((message, fix)) => warn(format!("{place}, {message}")).fix(fix),
                None => {
                    let version = if tried.said.is_empty() { "no version" } else { &tried.said };
                    DoctorCheck::ok(Area::Agents, name, format!("{place}, {version}"))
                }
            };
            return (check, true);
        }
        if tried.end == Ok(ExecEnd::TimedOut) {
            let check = warn(format!("{place} didn't print its version within {} s", TIMEOUT.as_secs()));
            return (check.fix(format!("run `{name} --version` by hand to see why")), true);
        }
        let cause = tried.cause();
        let check = if isolation != Isolation::None && self.version(name, program, Isolation::None).starts() {
            warn(format!("{place} does not start in the sandbox ({cause})"))
                .why("it starts outside the sandbox, but runs work inside")
                .fix("report it with `ralph bug-report`; `ralph run --isolation none` runs it with all your rights, for repos you trust")
        } else if cause.contains("node") {
            warn(format!("{place} does not start: {cause}"))
                .why("it needs Node.js, and finds it through PATH")
                .fix("install Node.js 20 or newer, or add its folder to PATH")
        } else {
            warn(format!("{place} does not start: {cause}"))
                .fix(presets::install_hint(name).unwrap_or_default())
        };
        (check, false)
    }

    /// A run's isolation. If this machine has none, another check reports it.
    fn isolation(&self) -> Isolation {
        let asked = self.loaded.as_ref().and_then(|loaded| loaded.user_isolation).unwrap_or_default();
        isolation::resolve(self.env, asked).unwrap_or(Isolation::None)
    }

    fn version(&self, name: &str, program: &Path, isolation: Isolation) -> Tried {
        let mut sink = Output::default();
        let end = self.run(name, program, isolation, &mut sink).map_err(|error| error.message);
        let text = String::from_utf8_lossy(&sink.bytes);
        let line = match end {
            Ok(ExecEnd::Exited(0)) => version_line(&text),
            _ => text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or(""),
        };
        Tried { end, said: one_line(line, SAID_MAX) }
    }

    fn run(
        &self,
        name: &str,
        program: &Path,
        isolation: Isolation,
        sink: &mut Output,
    ) -> Result<ExecEnd, AppError> {
        let program = program.display().to_string();
        let agent = AgentConfig::command(name, &[&program, "--version"]);
        let settings = match &self.loaded {
            Some(loaded) => loaded.alone(&agent, Some(isolation)),
            None => {
                let agents = Some(vec![agent.clone()]);
                ConfigFile { agents, isolation: Some(isolation), ..ConfigFile::default() }.resolve()
            }
        };
        let purpose = format!("doctor-{name}");
        let scratch = Scratch::for_agents(self.env, &purpose, self.top, &settings, &Refusals::default())?;
        let mut request = ExecRequest::new(agent.command_argv);
        request.timeout = Some(TIMEOUT);
        request.env = vec![("PATH".to_owned(), self.path.clone())];
        Ok(scratch.sandbox.exec(&request, sink)?.end)
    }
}

/// The version line; warnings may precede it.
fn version_line(output: &str) -> &str {
    let mut lines = output.lines().map(str::trim).filter(|line| !line.is_empty());
    let tells = |line: &&str| {
        let upper = line.to_uppercase();
        !upper.starts_with("WARN")
            && !upper.starts_with("(NODE:")
            && line.contains(|c: char| c.is_ascii_digit())
    };
    lines.clone().find(tells).or_else(|| lines.next()).unwrap_or("")
}

/// Names the CLI's key or login; `own` are key variables that its own settings name.
fn login(name: &str, own: &[String], is_set: &dyn Fn(&str) -> bool, home: Option<&Path>) -> DoctorCheck {
    let (keys, file) = credentials(name);
    let keys: Vec<&str> = own.iter().map(String::as_str).chain(keys.iter().copied()).collect();
    let what = format!("{name} login");
    if let Some(key) = keys.iter().find(|key| is_set(key)) {
        return DoctorCheck::ok(Area::Agents, what, format!("{key} is set"));
    }
    if home.is_some_and(|h| h.join(file).is_file()) {
        return DoctorCheck::ok(Area::Agents, what, format!("~/{file} is there"));
    }
    DoctorCheck::warn(
        Area::Agents,
        what,
        format!("no key in the environment ({}) and no ~/{file}", keys.join(", ")),
    )
    .why("a login in the system keychain isn't visible here; run `ralph probe` to test the agent")
    .fix(presets::login_hint(name).unwrap_or_default())
}

fn command_of(env: &Environment, agent: &AgentConfig, top: &Path, path: &str) -> DoctorCheck {
    let what = format!("configured: {}", agent.name);
    if agent.kind == AgentKind::Scripted {
        let script = agent.script.clone().unwrap_or_default();
        return match top.join(&script).is_file() {
            true => DoctorCheck::ok(Area::Agents, what, format!("plays the script {script}")),
            false => DoctorCheck::missing(Area::Agents, what, format!("the script `{script}` doesn't exist"))
                .fix("correct `script` in the configuration"),
        };
    }
    if agent.kind.calls_model() {
        return model_of(env, agent, what, top);
    }
    let program = agent.command_argv.first().map_or("", String::as_str);
    match locate(program, top, path) {
        Some(found) => DoctorCheck::ok(Area::Agents, what, home_path(&found)),
        None => {
            let install = presets::preset_of(&agent.command_argv).and_then(presets::install_hint);
            DoctorCheck::missing(Area::Agents, what, format!("the command `{program}` does not exist"))
                .why("a run can't start without its agent's command")
                .fix(install.unwrap_or("install it, or correct `command_argv` in the configuration"))
        }
    }
}

/// Profile, server and key of an agent without a command.
fn model_of(env: &Environment, agent: &AgentConfig, what: String, top: &Path) -> DoctorCheck {
    let loaded = match models::load(env, top) {
        Ok(loaded) => loaded,
        Err(error) => return DoctorCheck::missing(Area::Agents, what, error.message).fix("fix that file"),
    };
    let name = model_access::profile_name(agent, &loaded.models);
    let Some(profile) = loaded.models.get(name) else {
        return DoctorCheck::missing(Area::Agents, what, format!("model profile `{name}` doesn't exist"))
            .fix("`ralph models` shows the profiles");
    };
    let route = match Route::of(&profile, &env.lookup()) {
        Ok(route) => route,
        Err(error) => {
            let fix = error.hint.clone().unwrap_or_else(|| "`ralph models` shows the profiles".into());
            return DoctorCheck::missing(Area::Agents, what, error.to_string()).fix(fix);
        }
    };
    let model = format!("{} at {}", profile.litellm_model, route.server());
    match model_access::has_key(env, &profile) {
        true => DoctorCheck::ok(Area::Agents, what, model),
        false => {
            let keys = route.key_vars.join(" or ");
            DoctorCheck::missing(Area::Agents, what, format!("{model}: {keys} is not set"))
                .why("a run does not start while an agent's model has no key")
                .fix(format!(
                    "set {keys}, in the environment or in `.env`; or choose another profile (`ralph models`)"
                ))
        }
    }
}

/// A command's program: a path below the top, or a name on the `PATH`.
pub fn locate(program: &str, top: &Path, path: &str) -> Option<PathBuf> {
    if program.contains('/') {
        let file = top.join(program);
        return file.is_file().then_some(file);
    }
    presets::find_program(program, path)
}

/// The start of a command's output.
#[derive(Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
}

impl ExecSink for Output {
    fn output(&mut self, _stream: Stream, bytes: &[u8]) {
        let room = 4096usize.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::setup::doctor::Status;

    #[test]
    fn a_warning_is_no_version() {
        let said = "WARNING: proceeding, even though we could not update PATH: 1\ncodex-cli 0.98.0\n";
        assert_eq!(version_line(said), "codex-cli 0.98.0");
        assert_eq!(version_line("sh: node: not found"), "sh: node: not found");
        assert_eq!(version_line(""), "");
    }

    #[test]
    fn keys_are_named_and_logins_are_seen_without_being_opened() {
        let home = tempfile::tempdir().unwrap();
        let none = |_: &str| false;
        let check = login("codex", &[], &none, Some(home.path()));
        assert_eq!(check.status, Status::Warn);
        assert!(check.message.contains("OPENAI_API_KEY") && check.fix.unwrap().contains("codex login"));
        std::fs::create_dir(home.path().join(".codex")).unwrap();
        std::fs::write(home.path().join(".codex/auth.json"), "not to be read").unwrap();
        assert_eq!(login("codex", &[], &none, Some(home.path())).message, "~/.codex/auth.json is there");
        assert_eq!(
            login("claude", &[], &|key| key == "ANTHROPIC_API_KEY", None).message,
            "ANTHROPIC_API_KEY is set"
        );
        let own = ["MY_KEY".to_owned()];
        assert_eq!(login("codex", &own, &|key| key == "MY_KEY", None).message, "MY_KEY is set");
    }

    #[test]
    fn a_configured_command_that_is_not_there_is_missing_with_its_mend() {
        let top = tempfile::tempdir().unwrap();
        let nothing = Environment::new(Default::default(), "/");
        let check = command_of(&nothing, &AgentConfig::command("fast", &["codex", "exec"]), top.path(), "");
        assert_eq!(check.status, Status::Missing);
        assert_eq!(check.fix.as_deref(), Some("npm install -g @openai/codex"));
        std::fs::write(top.path().join("agent.sh"), "").unwrap();
        let own = command_of(&nothing, &AgentConfig::command("own", &["./agent.sh"]), top.path(), "");
        assert_eq!(own.status, Status::Ok);
    }
}
