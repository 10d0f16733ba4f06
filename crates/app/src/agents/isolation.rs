//! The sandbox of a run: its kind, and what the chosen agents need from this machine.

use crate::agents::agent_settings;
use crate::config::settings;
use crate::environment::Environment;
use crate::error::AppError;
use ralph_loop_agents::key_proxy::KeyProxy;
use ralph_loop_agents::presets;
use ralph_loop_core::Refusals;
use ralph_loop_domain::repo::installed::{InstalledFolder, InstalledUse};
use ralph_loop_git::Repo;
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_safe_fs::SafeDir;
use ralph_loop_sandbox::egress::{
    EgressKind, EgressPolicy, EgressRefusal, Endpoint, HostRule, InsideServer, defaults,
};
use ralph_loop_sandbox::isolation::{self, AgentLogin, Covers, GitAccess, IsolationReport};
use ralph_loop_sandbox::{GitIdentity, IsolationSpec, LocalIsolation};
use ralph_loop_task::config::{AgentKind, Isolation, Settings};
use ralph_loop_task::spec::{RunSpec, WorkspaceKind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Resolves `auto`; fails if the requested isolation isn't available, never picks a weaker one.
pub fn resolve(env: &Environment, asked: Isolation) -> Result<Isolation, AppError> {
    if asked == Isolation::None {
        return Ok(Isolation::None);
    }
    match choose(&isolation::detect(env.vars()), asked, IsolationSpec::new("/"))? {
        LocalIsolation::Bwrap(_) => Ok(Isolation::Bwrap),
        LocalIsolation::Landlock(_) => Ok(Isolation::Landlock),
        LocalIsolation::None => Ok(Isolation::None),
    }
}

fn choose(
    report: &IsolationReport,
    asked: Isolation,
    spec: IsolationSpec,
) -> Result<LocalIsolation, AppError> {
    report.choose(asked, spec).map_err(|why| {
        AppError::environment("this machine cannot sandbox the agent as requested").cause(why).hint(
            "run `ralph doctor` to see the fix; if you trust the agent and the repo, pass `--isolation none`",
        )
    })
}

/// What a run's agents need in any sandbox.
#[derive(Default)]
pub struct SandboxNeeds {
    /// Servers named in settings or variables.
    pub endpoints: Vec<Endpoint>,
    /// Key variables by agent program: full path on this machine, name elsewhere.
    pub keys: BTreeMap<String, Vec<String>>,
    /// Agent logins, by program.
    logins: BTreeMap<String, AgentLogin>,
    /// Repo paths that sessions find empty, by program.
    covers: BTreeMap<String, Covers>,
    /// What sessions get instead of variables, by program, and the server for it.
    instead: BTreeMap<String, Vec<(String, String)>>,
    key_proxy: KeyProxy,
    /// Additional hosts.
    allow: Vec<HostRule>,
}

/// Where sessions find the key proxy. A user's server at this port is one that they can't reach then.
const KEY_PROXY_PORT: u16 = 3129;

impl SandboxNeeds {
    /// Hosts in the format of a provider's allowlist.
    pub fn hosts(&self, workspace: &Path) -> Vec<String> {
        let rules = defaults::rules(workspace);
        let mut hosts: Vec<String> = rules.iter().chain(&self.allow).map(HostRule::to_string).collect();
        hosts.extend(self.endpoints.iter().filter(|e| !e.is_local()).map(|e| e.host.clone()));
        hosts.sort();
        hosts.dedup();
        hosts
    }
}

pub fn needs(env: &Environment, spec: &RunSpec) -> SandboxNeeds {
    needs_of(env, (&spec.origin, spec.task.working_dir.as_deref()), &spec.settings)
}

/// For agents with these settings in the repo at `top`, working in `below`.
fn needs_of(env: &Environment, (top, below): (&Path, Option<&str>), settings: &Settings) -> SandboxNeeds {
    let mut needs =
        SandboxNeeds { key_proxy: KeyProxy::new(&|name| env.vars().get(name)), ..SandboxNeeds::default() };
    let programs = settings::programs(env, top);
    let grants = env.grants(top);
    let elsewhere = settings.sandbox.provider().is_elsewhere();
    for agent in settings.agents.iter().filter(|agent| agent.kind == AgentKind::Cli) {
        needs.endpoints.extend(agent.env.values().filter_map(|value| endpoint(value)));
        let Some(name) = presets::preset_of(&agent.command_argv) else { continue };
        let started = match elsewhere {
            true => agent.command_argv.first().cloned(),
            false => programs.known(&agent.command_argv).map(|found| found.path.display().to_string()),
        };
        let Some(started) = started else { continue };
        let below = Path::new(below.unwrap_or_default());
        needs.covers.insert(started.clone(), agent_settings::covers(top, below, name, &grants));
        let home = env.vars().home().unwrap_or(Path::new("/nonexistent"));
        needs.logins.insert(started.clone(), AgentLogin::of(name, home, &settings.share));
        let keys = isolation::key_variables(name);
        let mut names: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        needs.endpoints.extend(keys.iter().filter_map(|key| endpoint(&env.vars().get(key)?)));
        for text in own_settings(env, name, keys) {
            // The user's settings may name another server and another key variable.
            let urls = values(&text, &["base_url", "baseURL", "baseUrl"]);
            needs.endpoints.extend(urls.filter_map(|url| endpoint(&url)));
            names.extend(values(&text, &["env_key"]));
        }
        if !elsewhere && !agent.env.keys().any(|name| names.contains(name)) {
            let address = format!("http://127.0.0.1:{KEY_PROXY_PORT}");
            let instead = needs.key_proxy.take(name, &address, |key| env.vars().get(key));
            needs.instead.insert(started.clone(), instead);
        }
        needs.keys.insert(started, names);
    }
    for host in &settings.allowed_hosts {
        match allowed(host) {
            Ok(AllowedHost::Rule(rule)) => needs.allow.push(rule),
            Ok(AllowedHost::Server(server)) => needs.endpoints.push(server),
            // Rejected before the run began.
            Err(_) => {}
        }
    }
    needs
}

enum AllowedHost {
    Rule(HostRule),
    /// A local or private server, with its port.
    Server(Endpoint),
}

fn allowed(text: &str) -> Result<AllowedHost, String> {
    let server = || {
        let (host, port) = text.rsplit_once(':')?;
        let local = host == "localhost" || host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
        let port = port.parse().ok().filter(|port| *port > 0)?;
        local.then(|| Endpoint { host: host.to_owned(), port })
    };
    match server() {
        Some(server) => Ok(AllowedHost::Server(server)),
        None => HostRule::parse(text).map(|rule| AllowedHost::Rule(rule.named_by_user())),
    }
}

/// The policy of these hosts alone.
pub fn named_hosts(hosts: &[String]) -> EgressPolicy {
    let mut policy = EgressPolicy::new(Vec::new(), Vec::new());
    for host in hosts {
        match allowed(host) {
            Ok(AllowedHost::Rule(rule)) => policy.allow.push(rule),
            Ok(AllowedHost::Server(server)) => policy.endpoints.push(server),
            Err(_) => {}
        }
    }
    policy
}

/// Rejects invalid hosts and variable names.
pub fn check(settings: &Settings) -> Result<(), AppError> {
    for host in &settings.allowed_hosts {
        allowed(host).map_err(|why| {
            AppError::usage(why).hint("for example `example.org`, `*.example.org` or `localhost:11434`")
        })?;
    }
    let bad =
        |name: &&String| name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match settings.pass_env.iter().find(bad) {
        Some(name) => Err(AppError::usage(format!("`{name}` in `pass_env` isn't a valid variable name"))
            .hint("name the variable only; its value is taken from your environment")),
        None => Ok(()),
    }
}

/// The network policy of a run's commands; refusals are recorded.
pub fn policy(env: &Environment, spec: &RunSpec, refusals: &Refusals) -> EgressPolicy {
    policy_of(needs(env, spec), &spec.workspace, refusals)
}

fn policy_of(needs: SandboxNeeds, workspace: &Path, refusals: &Refusals) -> EgressPolicy {
    let mut rules = defaults::rules(workspace);
    rules.extend(needs.allow);
    let mut policy = EgressPolicy::new(rules, needs.endpoints);
    if !needs.key_proxy.is_empty() {
        let keys = needs.key_proxy;
        policy.inside =
            Some(InsideServer { port: KEY_PROXY_PORT, serve: Arc::new(move |client| keys.serve(client)) });
    }
    let refusals = refusals.clone();
    policy.on_refusal = Some(Arc::new(move |refusal: &EgressRefusal| {
        let EgressRefusal { kind, host, port, reason, allow } = refusal;
        match kind {
            EgressKind::Refused => match allow {
                Some(rule) => {
                    refusals.add(host, *port, &format!("{reason}; `--allow-host {rule}` allows it"))
                }
                None => refusals.add(host, *port, reason),
            },
            EgressKind::Unresolved => refusals.note(&format!("no connection to {host}:{port}: {reason}")),
            EgressKind::Private => {
                refusals.note(&format!("{host}:{port} is reached, because you allowed it by name: {reason}"));
            }
        }
    }));
    policy
}

/// Gives agents what they need.
fn provide(isolation: &mut IsolationSpec, mut needs: SandboxNeeds, workspace: &Path, refusals: &Refusals) {
    isolation.logins = std::mem::take(&mut needs.logins);
    isolation.keys = std::mem::take(&mut needs.keys);
    isolation.instead = std::mem::take(&mut needs.instead);
    isolation.covers = std::mem::take(&mut needs.covers);
    isolation.egress = Some(policy_of(needs, workspace, refusals));
}

/// The user's git identity inside a sandbox; `None` if none is set.
pub fn identity(repo: &Repo) -> Option<GitIdentity> {
    let (name, email) = repo.user_identity();
    Some(GitIdentity { name: name?, email: email? })
}

/// What the repo contributes to its sandbox.
#[derive(Debug, Default)]
pub struct RepoInside {
    /// Object folders that the agent's git borrows from.
    pub objects: Vec<PathBuf>,
    /// The committer.
    pub identity: Option<GitIdentity>,
}

/// Path at which sandboxed commands see the agent's tree: that of the user's repo, if the tree has its own
/// git folder. A worktree's git folder names the worktree's path.
fn workspace_at(spec: &RunSpec) -> Option<PathBuf> {
    let own_git = spec.hands_back() || matches!(spec.place, WorkspaceKind::Clone { .. });
    own_git.then(|| spec.origin.clone())
}

/// The sandbox of a run. `shown` and what the checks use of `installed` are readable inside.
pub fn of_run(
    env: &Environment,
    home: &StateHome,
    spec: &RunSpec,
    refusals: &Refusals,
    shown: Vec<PathBuf>,
    repo: RepoInside,
    installed: &[InstalledFolder],
) -> Result<LocalIsolation, AppError> {
    if spec.settings.isolation == Isolation::None {
        return Ok(LocalIsolation::None);
    }
    let mut isolation = IsolationSpec::new(home.path().join("fences").join(spec.run_id.as_str()));
    isolation.hidden = vec![home.path().to_owned()];
    if spec.settings.allow_agent_commits {
        isolation.git = GitAccess::Commit;
    }
    // A checkout made for the run isn't the user's folder.
    isolation.workspace_at = workspace_at(spec).filter(|at| !at.starts_with(home.path()));
    isolation.objects = repo.objects;
    isolation.identity = repo.identity;
    isolation.programs = known_programs(env, &spec.origin, &spec.settings);
    isolation.read_only = named_programs(&spec.settings, isolation.workspace_at.as_deref());
    isolation.read_only.extend(shown);
    isolation.read_only.extend(sandbox_read(env, &spec.settings));
    let outside = installed.iter().filter(|folder| folder.usage == InstalledUse::Outside);
    isolation.read_only.extend(outside.map(|folder| folder.from.clone()));
    isolation.environments = installed.iter().flat_map(|folder| folder.environments.clone()).collect();
    isolation.lent = left_out(spec, installed);
    // Session hooks start this program.
    isolation.read_only.extend(crate::agents::hooks::program(env, spec));
    isolation.pass_env.clone_from(&spec.settings.pass_env);
    provide(&mut isolation, needs(env, spec), &spec.workspace, refusals);
    choose(&isolation::detect(env.vars()), spec.settings.isolation, isolation)
}

/// Paths left out of the agent's copy for their size: sandboxed commands read the user's own.
fn left_out(spec: &RunSpec, installed: &[InstalledFolder]) -> Vec<PathBuf> {
    let is_empty = |at: &str| {
        let top = SafeDir::open(&spec.workspace);
        top.and_then(|top| top.entries(at, 1)).is_ok_and(|entries| entries.is_empty())
    };
    let lacks = |folder: &&InstalledFolder| {
        folder.usage != InstalledUse::Outside
            && (!spec.workspace.join(&folder.at).exists() || is_empty(&folder.at))
    };
    let copied = spec.place == WorkspaceKind::InPlace && spec.hands_back();
    installed.iter().filter(|_| copied).filter(lacks).map(|folder| folder.from.clone()).collect()
}

/// A sandbox for trying a repo's commands without a run: usual hosts, no keys, no logins. `folder` holds its
/// files; `programs` can be started in it. `None` if the user's configuration turns it off.
pub fn for_trying(
    env: &Environment,
    top: &Path,
    folder: PathBuf,
    programs: Vec<PathBuf>,
) -> Result<LocalIsolation, AppError> {
    if settings::load(env, top)?.user_isolation == Some(Isolation::None) {
        return Ok(LocalIsolation::None);
    }
    let mut isolation = IsolationSpec::new(folder);
    isolation.hidden = vec![env.state_home()?.path().to_owned()];
    isolation.read_only = programs;
    isolation.egress = Some(EgressPolicy::new(defaults::rules(top), Vec::new()));
    choose(&isolation::detect(env.vars()), Isolation::Auto, isolation)
}

/// The sandbox of these settings' agents over another folder, to try them with their logins, keys and hosts.
/// `folder` holds its files.
pub fn for_agents(
    env: &Environment,
    top: &Path,
    folder: PathBuf,
    settings: &Settings,
    refusals: &Refusals,
) -> Result<LocalIsolation, AppError> {
    if settings.isolation == Isolation::None {
        return Ok(LocalIsolation::None);
    }
    let mut isolation = IsolationSpec::new(folder);
    isolation.hidden = vec![env.state_home()?.path().to_owned()];
    isolation.programs = known_programs(env, top, settings);
    isolation.read_only = named_programs(settings, None);
    isolation.read_only.extend(sandbox_read(env, settings));
    isolation.pass_env.clone_from(&settings.pass_env);
    provide(&mut isolation, needs_of(env, (top, None), settings), top, refusals);
    choose(&isolation::detect(env.vars()), settings.isolation, isolation)
}

/// What the user lets sandboxed commands read.
fn sandbox_read<'a>(env: &'a Environment, settings: &'a Settings) -> impl Iterator<Item = PathBuf> + 'a {
    let home = env.vars().home().unwrap_or(Path::new("/"));
    let full = |path: &String| match path.strip_prefix("~/") {
        Some(below) => home.join(below),
        None => PathBuf::from(path),
    };
    settings.sandbox_read.iter().map(full)
}

/// Agents and verifiers named by path. One inside the user's repo belongs to the agent if its tree is mounted
/// there.
fn named_programs(settings: &Settings, workspace_at: Option<&Path>) -> Vec<PathBuf> {
    let agents = settings.agents.iter().filter_map(|agent| agent.command_argv.first());
    let verifiers = settings.verifiers.iter().filter_map(|verifier| verifier.command_argv.first());
    let own = |path: &Path| workspace_at.is_some_and(|at| path.starts_with(at));
    let absolute = agents.chain(verifiers).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute.filter(|path| !own(path)).collect()
}

/// Programs of known agents, which get keys.
fn known_programs(env: &Environment, top: &Path, settings: &Settings) -> Vec<PathBuf> {
    let here = settings::programs(env, top);
    let known = settings.agents.iter().filter_map(|agent| here.known(&agent.command_argv));
    known.map(|found| found.path).collect()
}

/// An agent's own settings: in the user's home, and in variables.
fn own_settings(env: &Environment, name: &str, keys: &[&str]) -> Vec<String> {
    let home = env.vars().get_os("HOME").map(PathBuf::from).unwrap_or_default();
    let files = isolation::auth_files(name).into_iter().filter(|file| !file.is_login);
    let files = files.filter_map(|file| std::fs::read_to_string(home.join(file.path)).ok());
    files.chain(keys.iter().filter_map(|key| env.vars().get(key))).collect()
}

/// Variables for keys that an agent's own settings name.
pub fn own_key_variables(env: &Environment, name: &str) -> Vec<String> {
    own_settings(env, name, &[]).iter().flat_map(|text| values(text, &["env_key"])).collect()
}

/// A top-level value of an agent's own TOML settings.
pub(crate) fn own_value(env: &Environment, name: &str, key: &str) -> Option<String> {
    own_settings(env, name, &[]).iter().find_map(|text| top_value(text, key))
}

fn top_value(toml: &str, key: &str) -> Option<String> {
    let mut lines = toml.lines().map(str::trim).take_while(|line| !line.starts_with('['));
    let value = lines.find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='))?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    value.get(1..)?.split(quote).next().map(str::to_owned)
}

/// Quoted values of these keys in TOML or JSON.
fn values<'a>(text: &'a str, keys: &'a [&str]) -> impl Iterator<Item = String> + 'a {
    keys.iter().flat_map(move |key| {
        text.match_indices(key).filter_map(move |(at, _)| {
            let rest = text.get(at + key.len()..)?.trim_start_matches(['"', '\'', ' ']);
            let value = rest.strip_prefix([':', '='])?.trim_start();
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            value.get(1..)?.split(quote).next().map(str::to_owned)
        })
    })
}

/// The server of a URL such as `http://localhost:4000/v1`.
fn endpoint(url: &str) -> Option<Endpoint> {
    let (scheme, rest) = url.trim().split_once("://")?;
    let usual = match scheme.to_ascii_lowercase().as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let authority = rest.split(['/', '\\', '?', '#']).next()?.rsplit('@').next()?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (authority, usual),
    };
    (!host.is_empty()).then(|| Endpoint { host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_may_name_a_server_and_a_key() {
        let text = "[x]\nbase_url = \"http://localhost:1/v1\"\nenv_key='MY_KEY'\n{\"baseURL\": \"https://b.org\"} base_url";
        let read = |keys: &'static [&str]| values(text, keys).collect::<Vec<_>>();
        assert_eq!(read(&["base_url", "baseURL"]), ["http://localhost:1/v1", "https://b.org"]);
        assert_eq!(read(&["env_key"]), ["MY_KEY"]);
    }

    #[test]
    fn own_model_is_the_top_level_one() {
        let text = "# model = \"no\"\nmodel_provider = \"mine\"\nmodel = 'gpt-5' # mine\n[profiles.x]\nmodel = \"other\"\n";
        assert_eq!(top_value(text, "model").as_deref(), Some("gpt-5"));
        assert_eq!(top_value("[profiles.x]\nmodel = \"other\"\n", "model"), None);
    }

    #[test]
    fn servers_are_read_from_urls() {
        let read = |url| endpoint(url).map(|e| (e.host, e.port));
        assert_eq!(read("http://localhost:4000/v1"), Some(("localhost".into(), 4000)));
        assert_eq!(read("https://user:x@gateway.example.org"), Some(("gateway.example.org".into(), 443)));
        assert_eq!(read("http://[::1]:8080"), Some(("[::1]".into(), 8080)));
        assert_eq!(read("a plain value"), None);
        assert_eq!(read("file:///etc/passwd"), None);
    }
}
