//! Chooses and creates a run's sandbox on another machine.

use crate::agents::isolation;
use crate::config::providers::ConfiguredProvider;
use crate::config::settings::LoadedSettings;
use crate::environment::Environment;
use crate::error::AppError;
use crate::request::RunRequest;
use ralph_loop_agents::presets;
use ralph_loop_core::{CancelToken, Refusals};
use ralph_loop_domain::ports::{
    ExecEnd, ExecRequest, ExecSink, Loopback, Sandbox, SandboxError, SandboxKeeper, SandboxProvider,
    SandboxSpec, SharedDir, StopCause, Stream,
};
use ralph_loop_domain::secret_name::{is_engine_secret, is_secret_name};
use ralph_loop_git::Repo;
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_sandbox::docker::{DockerOptions, DockerProvider, ProxySocket};
use ralph_loop_sandbox::egress::{Egress, EgressPolicy};
use ralph_loop_sandbox::hosted::{
    HostedKeeper, HostedOptions, HostedSandbox, Ignored, Logins, ProviderFactory,
};
use ralph_loop_sandbox::isolation::GitAccess;
use ralph_loop_sandbox::sbx::{SbxOptions, SbxProvider};
use ralph_loop_task::config::{AgentKind, ProviderName, SandboxConfig, Share};
use ralph_loop_task::spec::RunSpec;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Polling interval for cancellation.
const CANCEL_POLL: Duration = Duration::from_millis(100);

/// Where a run's commands run: flag, task, configuration, `RALPH_DEFAULT_PROVIDER`, this machine.
pub fn choose(
    env: &Environment,
    request: &RunRequest,
    loaded: &LoadedSettings,
    task: Option<&SandboxConfig>,
) -> Result<SandboxConfig, AppError> {
    let mut chosen = loaded.file.sandbox.clone().unwrap_or_default();
    if let Some(task) = task {
        chosen = chosen.overlaid(task.clone());
    }
    if let Some(own) = &request.sandbox {
        chosen = chosen.overlaid(own.clone());
    }
    if let Some(name) = request.provider {
        if request.isolation.is_some() && name.is_elsewhere() {
            return Err(AppError::usage(format!(
                "`--isolation` is for this machine, and `--provider {}` is somewhere else",
                name.as_str()
            ))
            .hint("leave one of them out"));
        }
        chosen.provider = Some(name);
    } else if request.isolation.is_some() {
        // Choosing local isolation implies this machine.
        chosen.provider = Some(ProviderName::Local);
    } else if chosen.provider.is_none()
        && let Some(name) = env.vars().filled("RALPH_DEFAULT_PROVIDER")
    {
        let known = ProviderName::parse(&name);
        chosen.provider = Some(known.map_err(|why| {
            AppError::usage(format!("RALPH_DEFAULT_PROVIDER: {why}")).hint("correct it, or take it out")
        })?);
    }
    if request.keep_sandbox {
        chosen.keep = Some(true);
    }
    if chosen.provider().is_elsewhere() {
        // Fails before anything is created if something is missing.
        ConfiguredProvider::find(env, chosen.provider())?;
    }
    Ok(chosen)
}

/// A sandbox and its keeper.
pub type SandboxAndKeeper = (Box<dyn Sandbox>, Box<dyn SandboxKeeper>);

/// A run's sandbox; `None` if it works on this machine. The agent's copy, and clean checkouts of it, read the object
/// folders `borrowed`.
pub fn of_run(
    env: &Environment,
    home: &StateHome,
    spec: &RunSpec,
    (repo, borrowed): (&Repo, &[PathBuf]),
    refusals: &Refusals,
    cancel: &CancelToken,
) -> Result<Option<SandboxAndKeeper>, AppError> {
    let config = &spec.settings.sandbox;
    let Some(configured) = ConfiguredProvider::find(env, config.provider())? else { return Ok(None) };
    let needs = isolation::needs(env, spec);
    let mut asked = SandboxSpec::of_run(spec.run_id.clone());
    asked.image.clone_from(&config.image);
    asked.snapshot.clone_from(&config.snapshot);
    asked.resources = config.resources();
    asked.volumes = config.volumes.clone().into_iter().collect();
    let borrowed = borrowed.to_vec();
    let maker: Box<dyn ProviderFactory> = match configured {
        ConfiguredProvider::Docker(options) => {
            Box::new(ContainerFactory::new(env, home, spec, *options, (refusals, borrowed))?)
        }
        ConfiguredProvider::Sbx(options) => {
            asked.allowed_hosts = needs.hosts(&spec.workspace);
            Box::new(MicroVmFactory { options, shown: RecordMount::new(home, spec), borrowed })
        }
        cloud => {
            asked.allowed_hosts = needs.hosts(&spec.workspace);
            Box::new(CloudFactory(cloud))
        }
    };
    let (keys, pass) = (needs.keys.clone(), spec.settings.pass_env.clone());
    let vars = env.vars().clone();
    let options = HostedOptions {
        spec: asked,
        maker,
        pull_every: Duration::from_secs(60),
        keep: config.keep.unwrap_or(false),
        hourly: config.hourly_usd,
        variables: Arc::new(move |argv| {
            let own = argv.first().and_then(|program| keys.get(program));
            let names: BTreeSet<&String> = own.into_iter().flatten().chain(&pass).collect();
            let found = names.into_iter().filter_map(|name| Some((name.clone(), vars.get(name)?)));
            found.filter(|(name, value)| !is_engine_secret(name, value)).collect()
        }),
        logins: logins(env, config.provider(), needs.keys, spec.settings.share.clone()),
        identity: isolation::identity(repo),
        ignored: ignored_by(repo),
        record: Some(home.record(&spec.run_id).path().to_owned()),
    };
    let name = config.provider().as_str();
    let (sandbox, keeper) = made(spec.workspace.clone(), options, name, cancel)?;
    if let Err(error) = check_programs(spec, &sandbox) {
        // Nothing has happened in it yet.
        keeper.dismiss(ralph_loop_domain::ports::Dismissal::Safe);
        return Err(error);
    }
    Ok(Some((Box::new(sandbox), Box::new(keeper))))
}

/// Creates the sandbox on another thread, so that the user can leave while a provider doesn't answer. A
/// sandbox created late carries the run's name and appears in `ralph sandbox list`.
fn made(
    workspace: PathBuf,
    options: HostedOptions,
    name: &str,
    cancel: &CancelToken,
) -> Result<(HostedSandbox, HostedKeeper), AppError> {
    let (tell, answer) = mpsc::channel();
    std::thread::spawn(move || tell.send(HostedSandbox::start(&workspace, options)));
    let failed = |why: String| {
        AppError::environment(format!("the sandbox of {name} could not be made"))
            .cause(why)
            .hint("fix what the message names; `--provider local` works on this machine")
    };
    loop {
        match answer.recv_timeout(CANCEL_POLL) {
            Ok(made) => return made.map_err(|error| failed(error.to_string())),
            Err(RecvTimeoutError::Disconnected) => return Err(failed("its thread ended early".to_owned())),
            Err(RecvTimeoutError::Timeout) if cancel.get().is_some() => {
                return Err(AppError::stopped(format!(
                    "{name} was still making the sandbox; nothing was started"
                ))
                .hint("`ralph sandbox list` shows whether it made one all the same"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Login files of agents. A cloud machine gets them only if the agent's key isn't in the environment.
fn logins(
    env: &Environment,
    provider: ProviderName,
    keys: BTreeMap<String, Vec<String>>,
    share: Vec<Share>,
) -> Logins {
    let here = matches!(provider, ProviderName::Docker | ProviderName::Sbx);
    let vars = env.vars().clone();
    let has_key = move |keys: &[String]| {
        let secret = |key: &&String| is_secret_name(key);
        keys.iter().filter(secret).any(|key| vars.get_os(key).is_some())
    };
    let home = env.vars().get_os("HOME").map(PathBuf::from).unwrap_or_default();
    let below = home.clone();
    Logins {
        home,
        // Only for exactly the agent's command: another program of the same name gets none.
        files: Arc::new(move |argv| {
            let own = argv.first().and_then(|program| keys.get(program));
            match (own, presets::preset_of(argv)) {
                (Some(keys), Some(name)) if here || !has_key(keys) => {
                    ralph_loop_sandbox::isolation::files_of(name, &below, &share)
                }
                _ => Vec::new(),
            }
        }),
    }
}

/// Agents and verifiers must exist in the sandbox, not here.
fn check_programs(spec: &RunSpec, sandbox: &dyn Sandbox) -> Result<(), AppError> {
    let provider = spec.settings.sandbox.provider().as_str();
    let agents = spec.settings.agents.iter().filter(|agent| agent.kind == AgentKind::Cli);
    let agents =
        agents.filter_map(|agent| Some((agent.command_argv.first()?, format!("agent `{}`", agent.name))));
    let verifiers = spec.settings.verifiers.iter();
    let verifiers =
        verifiers.filter_map(|one| Some((one.command_argv.first()?, format!("verifier `{}`", one.name))));
    for (program, whose) in agents.chain(verifiers) {
        let words = ["sh", "-c", "command -v \"$1\" >/dev/null", "sh", program.as_str()];
        let mut request = ExecRequest::new(words.map(String::from).to_vec());
        request.timeout = Some(Duration::from_secs(60));
        let outcome = sandbox.exec(&request, &mut NoOutput).map_err(|error| {
            AppError::environment(format!("the sandbox of {provider} does not work")).cause(error.to_string())
        })?;
        if outcome.end == ExecEnd::Exited(0) {
            continue;
        }
        let install = presets::preset_of(std::slice::from_ref(program)).and_then(presets::install_hint);
        return Err(AppError::environment(format!(
            "the command `{program}` of {whose} is not in the sandbox of {provider}"
        ))
        .hint(match install {
            Some(how) => format!("choose an image that has it with `sandbox_image` or `sandbox.image`; in its Dockerfile: {how}"),
            None => "choose an image that has it, with `sandbox_image` in the task or `sandbox.image` in the configuration".to_owned(),
        }));
    }
    Ok(())
}

struct NoOutput;

impl ExecSink for NoOutput {
    fn output(&mut self, _: Stream, _: &[u8]) {}
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

/// What git ignores in the workspace, whether or not it exists here.
fn ignored_by(repo: &Repo) -> Ignored {
    let git = repo.git().clone();
    Arc::new(move |paths| {
        let stdin: Vec<u8> = paths.iter().flat_map(|path| format!("{path}\0").into_bytes()).collect();
        let call = git.call(["check-ignore", "--stdin", "-z"]).stdin(stdin).accept(&[0, 1]);
        match call.run() {
            Ok(output) => {
                let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
                names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
            }
            Err(_) => BTreeSet::new(),
        }
    })
}

/// Containers over local folders, with the egress proxy as the only way out.
struct ContainerFactory {
    options: DockerOptions,
    git: GitAccess,
    shown: RecordMount,
    /// Read-only object folders.
    borrowed: Vec<PathBuf>,
    policy: EgressPolicy,
    program: Option<PathBuf>,
    /// Local files of the run's containers.
    folder: PathBuf,
    /// One proxy per container until the run ends, so that none knows another's ports.
    proxies: Mutex<BTreeMap<PathBuf, Egress>>,
}

impl ContainerFactory {
    fn new(
        env: &Environment,
        home: &StateHome,
        spec: &RunSpec,
        options: DockerOptions,
        (refusals, borrowed): (&Refusals, Vec<PathBuf>),
    ) -> Result<Self, AppError> {
        let git = if spec.settings.allow_agent_commits { GitAccess::Commit } else { GitAccess::ReadOnly };
        let made = Self {
            options,
            git,
            shown: RecordMount::new(home, spec),
            borrowed,
            policy: isolation::policy(env, spec, refusals),
            program: env.program().map(Path::to_owned),
            folder: home.path().join("fences").join(spec.run_id.as_str()),
            proxies: Mutex::default(),
        };
        let failed = |error: std::io::Error| {
            let place = made.folder.display();
            AppError::environment(format!("can't create the sandbox folder `{place}`: {error}"))
        };
        std::fs::create_dir_all(made.exchange_folder()).map_err(failed)?;
        Ok(made)
    }

    /// Where the workspace's container and this process exchange files.
    fn exchange_folder(&self) -> PathBuf {
        self.folder.join("exchange")
    }

    /// Calls `work` with the proxy of the container over `folder`, starting it if needed.
    fn with_proxy<R>(&self, folder: &Path, work: impl FnOnce(&Egress) -> R) -> Result<R, SandboxError> {
        let mut all = self.proxies.lock().unwrap_or_else(PoisonError::into_inner);
        let next = all.len();
        if !all.contains_key(folder) {
            // The workspace's comes first, so that the container of a killed run finds it at the same path.
            let name = if next == 0 { "egress".to_owned() } else { format!("egress-{next}") };
            let place = self.folder.join(name);
            let started = std::fs::create_dir_all(&place)
                .and_then(|()| Egress::start(self.policy.clone(), &place, false));
            let started = started.map_err(|error| {
                SandboxError::Broken(format!("can't start the proxy in `{}`: {error}", place.display()))
            })?;
            all.insert(folder.to_owned(), started);
        }
        let proxy = all.get(folder).ok_or_else(|| SandboxError::Broken("no proxy".to_owned()))?;
        Ok(work(proxy))
    }
}

impl ProviderFactory for ContainerFactory {
    fn provider(&self, folder: &Path) -> Result<Box<dyn SandboxProvider>, SandboxError> {
        let mut options = self.options.clone();
        let program = self.program.clone();
        options.proxy = Some(self.with_proxy(folder, |egress| {
            ProxySocket::new(egress.socket(), &egress.local_ports(), program)
        })?);
        options.workspace = Some(folder.to_owned());
        options.mounts = ralph_loop_sandbox::isolation::git_mounts(folder, self.git);
        options.mounts.extend(self.shown.beside(folder).map(|path| (path, false)));
        options.mounts.extend(self.exchange(folder).map(|exchange| (exchange.outside, true)));
        options
            .mounts
            .extend(self.borrowed.iter().filter(|path| path.is_dir()).map(|path| (path.clone(), false)));
        let provider = DockerProvider::new(options);
        provider.ping()?;
        Ok(Box::new(provider))
    }
    fn mounts(&self) -> bool {
        true
    }
    /// A folder at the same path on both sides; `None` for a clean checkout.
    fn exchange(&self, folder: &Path) -> Option<SharedDir> {
        let place = self.exchange_folder();
        self.shown.is_workspace(folder).then(|| SharedDir {
            outside: place.clone(),
            inside: place,
            sockets: true,
            loopback: Loopback::OfSandbox,
        })
    }
    fn host_address(&self, folder: &Path, port: u16) -> Result<Option<String>, SandboxError> {
        let shown = self.with_proxy(folder, |egress| egress.shown_at(port))?;
        let address =
            shown.map_err(|error| SandboxError::Broken(format!("can't forward port {port}: {error}")))?;
        Ok(Some(format!("http://{address}")))
    }
    fn tidy(&self, folder: &Path) -> Result<(), SandboxError> {
        ralph_loop_sandbox::isolation::tidy_git(folder)
    }
}

/// The run's record, which the agent may read next to its workspace.
struct RecordMount {
    workspace: PathBuf,
    record: PathBuf,
}

impl RecordMount {
    fn new(home: &StateHome, spec: &RunSpec) -> Self {
        Self { workspace: spec.workspace.clone(), record: home.record(&spec.run_id).path().to_owned() }
    }

    /// Whether `folder` is the agent's workspace.
    fn is_workspace(&self, folder: &Path) -> bool {
        folder.canonicalize().ok() == self.workspace.canonicalize().ok()
    }

    /// What a sandbox over `folder` sees of it: nothing outside the workspace.
    fn beside(&self, folder: &Path) -> Option<PathBuf> {
        (self.is_workspace(folder) && self.record.is_dir()).then(|| self.record.clone())
    }
}

/// MicroVMs over local folders.
struct MicroVmFactory {
    options: SbxOptions,
    shown: RecordMount,
    /// Read-only object folders.
    borrowed: Vec<PathBuf>,
}

impl ProviderFactory for MicroVmFactory {
    fn provider(&self, folder: &Path) -> Result<Box<dyn SandboxProvider>, SandboxError> {
        let borrowed = self.borrowed.iter().filter(|path| path.is_dir()).cloned();
        let shown = self.shown.beside(folder).into_iter().chain(borrowed).collect();
        let options = SbxOptions { workspace: Some(folder.to_owned()), shown, ..self.options.clone() };
        Ok(Box::new(SbxProvider::new(options)))
    }
    fn mounts(&self) -> bool {
        true
    }
    fn tidy(&self, folder: &Path) -> Result<(), SandboxError> {
        ralph_loop_sandbox::isolation::tidy_git(folder)
    }
}

/// Cloud machines with copies.
struct CloudFactory(ConfiguredProvider);

impl ProviderFactory for CloudFactory {
    fn provider(&self, _: &Path) -> Result<Box<dyn SandboxProvider>, SandboxError> {
        Ok(self.0.clone().provider())
    }
    fn mounts(&self) -> bool {
        false
    }
}
