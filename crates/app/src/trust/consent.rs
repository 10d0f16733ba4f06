//! Everything a run of a repo requests, and whether the user has allowed it: with `ralph trust`, for one run,
//! or by naming the hash of exactly this set in `RALPH_TRUST`.

use crate::agents::agent_settings;
use crate::agents::isolation;
use crate::config::model_access;
use crate::config::models::{LoadedModels, REPO_FILES};
use crate::config::settings;
use crate::config::settings::LoadedSettings;
use crate::environment::{DATABASE, DEFAULT_PROVIDER, Environment, MissingVariable};
use crate::error::AppError;
use crate::request::{NotifyRequest, RunRequest, TaskInput, Workplace};
use crate::trust::screen::{PUBLISH, loader_asks};
use crate::trust::store::{StoreError, TrustStore};
use crate::trust::{self, Ask, PrivilegeKind, quoted};
use ralph_loop_agents::{Route, presets};
use ralph_loop_protocol::display::text::count;
use ralph_loop_protocol::id::Digest;
use ralph_loop_sandbox::isolation::key_variables;
use ralph_loop_task::config::{
    AgentConfig, AgentKind, ConfigFile, Isolation, ProviderName, Publish, SLACK_VARIABLE, SandboxConfig,
};
use ralph_loop_task::dialect::ModelChoice;
use std::collections::BTreeSet;
use std::path::Path;

/// Allows one set, for CI. Read only from the real environment, never from a `.env`.
const VARIABLE: &str = "RALPH_TRUST";

/// The parts of a task file that can request permissions.
#[derive(Debug, Clone, Copy)]
pub struct TaskPrivileges<'a> {
    pub source: &'a str,
    pub settings: &'a ConfigFile,
    pub models: &'a ModelChoice,
    /// Whether it says itself what to publish. The default of a task format publishes only if that is allowed, and
    /// never keeps a run from starting.
    pub asks_to_publish: bool,
}

#[derive(Debug, Clone)]
pub struct TrustRequest {
    store: TrustStore,
    asks: Vec<Ask>,
    sources: Vec<String>,
    /// Requests from the user's own configuration: allowed, but checked again when a program starts.
    own: Vec<Digest>,
    variables: Vec<MissingVariable>,
    /// Requests of the same files under other conditions: unsandboxed runs and servers.
    elsewhere: Vec<Ask>,
}

#[derive(Debug, Clone)]
pub struct Difference {
    /// Requested and not allowed.
    pub new: Vec<Ask>,
    /// Requested and allowed.
    pub known: Vec<Ask>,
    /// Allowed to these files earlier, no longer requested.
    pub gone: Vec<Ask>,
}

impl Difference {
    /// Lines with `+` for new and `-` for gone.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.new.iter().map(|ask| format!("+ {}", ask.shown())).collect();
        lines.extend(self.gone.iter().map(|ask| format!("- {} no longer", ask.shown())));
        if !self.known.is_empty() {
            lines.push(format!("  {} already allowed", count(self.known.len(), "thing")));
        }
        lines
    }
}

impl TrustRequest {
    pub(crate) fn of(store: TrustStore, asks: Vec<Ask>) -> Self {
        let sources = asks.iter().map(|ask| ask.source.clone()).collect();
        Self { store, asks, sources, own: Vec::new(), variables: Vec::new(), elsewhere: Vec::new() }
    }

    /// Includes what the files request under every way to start a run or a server.
    #[must_use]
    pub fn for_any_isolation(mut self) -> Self {
        self.asks.append(&mut self.elsewhere);
        self.asks.sort();
        self.asks.dedup_by(|a, b| a.digest == b.digest);
        self
    }

    pub fn asks(&self) -> &[Ask] {
        &self.asks
    }

    /// Identifies exactly this set.
    pub fn hash(&self) -> Digest {
        trust::hash(&self.asks)
    }

    /// Whether `RALPH_TRUST` names this set. It may name several: one before another repo is fetched, one
    /// after.
    pub fn is_in_variable(&self, env: &Environment) -> bool {
        let (named, own) = (env.vars().filled(VARIABLE).unwrap_or_default(), self.hash());
        named.split([',', ' ']).any(|one| one.trim() == own.as_str())
    }

    /// Where approvals are kept.
    pub fn store(&self) -> &TrustStore {
        &self.store
    }

    /// Compares the requests with what was allowed.
    pub fn difference(&self) -> Result<Difference, AppError> {
        let allowed = self.store.allowed()?;
        let is_allowed = |ask: &Ask| allowed.iter().any(|old| old.digest == ask.digest);
        let (known, new) = self.asks.iter().cloned().partition(is_allowed);
        let still = |old: &Ask| self.asks.iter().chain(&self.elsewhere).any(|ask| ask.digest == old.digest);
        let gone = allowed.iter().filter(|old| self.sources.contains(&old.source) && !still(old));
        Ok(Difference { new, known, gone: gone.cloned().collect() })
    }

    /// Allows everything permanently. Approvals for unsandboxed runs and for servers last as long as they are
    /// requested.
    pub fn allow(&self) -> Result<(), AppError> {
        let allowed = self.store.allowed()?;
        let kept = self.elsewhere.iter().filter(|ask| allowed.iter().any(|old| old.digest == ask.digest));
        let all: Vec<Ask> = self.asks.iter().chain(kept).cloned().collect();
        Ok(self.store.allow(&all, &self.sources)?)
    }

    /// Allows the requests of one file that was just written on the user's behalf.
    pub fn allow_file(&self, file: &str) -> Result<(), AppError> {
        let of_file: Vec<Ask> = self.asks.iter().filter(|ask| ask.source == file).cloned().collect();
        match of_file.is_empty() {
            true => Ok(()),
            false => Ok(self.store.allow(&of_file, &[file.to_owned()])?),
        }
    }

    /// Returns what the run is allowed, or an error if approval is missing; `yes` allows everything for this
    /// run.
    pub(crate) fn settle(&self, env: &Environment, yes: bool) -> Result<Vec<Digest>, AppError> {
        // A run needs no shown settings, so an unreadable store counts as empty.
        let kept = self.store.allowed().unwrap_or_default();
        let shown = kept.into_iter().filter(|ask| ask.kind == PrivilegeKind::Settings);
        let shown: Vec<Digest> = shown.map(|ask| ask.digest).collect();
        let asked = self.asks.iter().map(|ask| ask.digest.clone());
        let all = || asked.chain(self.own.clone()).chain(shown).collect();
        if self.asks.is_empty() || yes || self.is_in_variable(env) {
            return Ok(all());
        }
        let difference = self.difference()?;
        match difference.new.is_empty() {
            true => Ok(all()),
            false => Err(refusal(&difference, &self.hash(), env.vars().is_filled(VARIABLE))),
        }
    }

    /// The environment with what this run is allowed.
    pub(crate) fn allowed_in(&self, env: &Environment, allowed: &[Digest]) -> Environment {
        env.with_allowed(&self.variables).granting(allowed.iter().cloned())
    }
}

fn refusal(difference: &Difference, hash: &Digest, other: bool) -> AppError {
    let things = count(difference.new.len(), "thing");
    let mut cause = vec!["This repository asks for:".to_owned()];
    cause.extend(difference.lines());
    if other {
        cause.push(format!("{VARIABLE} is set, but names another set of things"));
    }
    AppError::needs_person(format!("this repository asks for {things} that only you can allow"))
        .cause(cause.join("\n"))
        .hint(format!(
            "`ralph trust` shows and allows that once, `ralph run --yes` for one run; in CI set {VARIABLE}={hash}"
        ))
}

impl From<StoreError> for AppError {
    fn from(error: StoreError) -> Self {
        Self::environment(error.to_string())
            .hint("nothing was changed; make that file readable, or move it away and allow again with `ralph trust`")
    }
}

/// Input for gathering requests: the run request, the configuration files and the task.
pub(crate) struct TrustScan<'a> {
    pub env: &'a Environment,
    pub top: &'a Path,
    pub request: &'a RunRequest,
    pub loaded: &'a LoadedSettings,
    pub models: &'a LoadedModels,
    pub task: Option<TaskPrivileges<'a>>,
    /// The sessions' working folder, below the top.
    pub working_dir: Option<&'a str>,
}

impl TrustScan<'_> {
    /// Gathers every request. The files must have been read with everything granted.
    pub fn asked(&self) -> Result<TrustRequest, AppError> {
        let store = TrustStore::of(&self.env.state_home()?, self.top);
        let agents = self.agents();
        let mut asks = self.loaded.asks.clone();
        asks.extend(self.models.asks.iter().map(|(_, ask)| ask.clone()));
        if let Some(task) = &self.task {
            let (open, mut settings) = (self.env.trusting_all(), task.settings.clone());
            asks.extend(settings::screened(&open, self.top, &self.loaded.user, task.source, &mut settings));
        }
        asks.extend(self.pushed_to());
        let own = self.programs(&agents, &mut asks);
        asks.extend(self.image(&agents));
        let (here, mut elsewhere) = self.agent_settings(&agents);
        asks.extend(here);
        elsewhere.extend(self.loaders(&agents));
        if self.is_unsandboxed() {
            asks.append(&mut elsewhere);
        }
        elsewhere.extend(self.unasked_publishing(&mut asks));
        let of_server = self.env.asked_variables().iter().filter(|one| one.name == DATABASE);
        elsewhere.extend(of_server.map(|one| one.ask.clone()));
        let used = self.used_variables(&agents);
        let variables: Vec<MissingVariable> =
            self.env.asked_variables().iter().filter(|one| used.contains(&one.name)).cloned().collect();
        asks.extend(variables.iter().map(|one| one.ask.clone()));
        asks.sort();
        asks.dedup_by(|a, b| a.digest == b.digest);
        let mut sources: Vec<String> = [".ralph/config.json", ".env"].map(str::to_owned).into();
        sources.extend(REPO_FILES.map(str::to_owned));
        sources.extend(self.task.iter().map(|task| task.source.to_owned()));
        sources.extend(asks.iter().map(|ask| ask.source.clone()));
        Ok(TrustRequest { store, asks, sources, own, variables, elsewhere })
    }

    /// Takes requests to publish out of `asks` that don't matter: all of them if the user decided, the task's if that
    /// was settled, and a task format's default, which is returned.
    fn unasked_publishing(&self, asks: &mut Vec<Ask>) -> Vec<Ask> {
        let decided = self.request.publish.is_some() || matches!(self.request.task, TaskInput::Issue(_));
        let settled = self.request.publish_settled;
        let task = self.task.filter(|task| settled || !task.asks_to_publish).map(|task| task.source);
        let is_moot =
            |ask: &mut Ask| ask.setting == PUBLISH && (decided || Some(ask.source.as_str()) == task);
        let found: Vec<Ask> = asks.extract_if(.., is_moot).collect();
        if decided || settled { Vec::new() } else { found }
    }

    /// Pushing results to the repo that this repo's task named.
    fn pushed_to(&self) -> Option<Ask> {
        let (source, naming) = (self.request.named_by.as_deref()?, self.request.named_in.as_deref()?);
        let Workplace::Clone { from, .. } = &self.request.place else { return None };
        let by_task = self.task.as_ref().and_then(|task| task.settings.publish);
        let known = self.request.publish.or(by_task).or(self.loaded.user.publish);
        // Requests known before the fetch were settled then.
        let is_settled = known.is_some_and(|publish| publish != Publish::None);
        (self.publishes() && !is_settled).then(|| push_ask(source, naming, from))
    }

    fn agents(&self) -> Vec<AgentConfig> {
        let file = &self.loaded.file;
        let mut agents = file.agents.clone().unwrap_or_default();
        if agents.is_empty() {
            agents = settings::detected_agents(self.env, self.top);
        }
        if agents.is_empty() {
            agents.extend(model_access::default_agent(self.env, self.models));
        }
        let named: Vec<&str> = match self.request.overrides.agents.as_slice() {
            [] => file.agent_priority.iter().flatten().map(|name| name.as_str()).collect(),
            named => named.iter().map(String::as_str).collect(),
        };
        agents.retain(|agent| named.is_empty() || named.contains(&agent.name.as_str()));
        agents
    }

    /// Programs of known agents that are files of the repo, unless the user's own configuration names them.
    fn programs(&self, agents: &[AgentConfig], asks: &mut Vec<Ask>) -> Vec<Digest> {
        let programs = settings::programs(self.env, self.top);
        let mut own = Vec::new();
        let users = |agent: &AgentConfig| {
            let by_place = agent.command_argv.first().is_some_and(|program| program.contains('/'));
            let same = |other: &AgentConfig| other.command_argv.first() == agent.command_argv.first();
            by_place && self.loaded.user.agents.iter().flatten().any(same)
        };
        for agent in agents.iter().filter(|agent| agent.kind == AgentKind::Cli) {
            let Some(ask) = programs.known(&agent.command_argv).and_then(|found| found.ask) else { continue };
            match users(agent) {
                true => own.push(ask.digest),
                false => asks.push(ask),
            }
        }
        own
    }

    /// Whether commands run on this machine without a sandbox.
    fn is_unsandboxed(&self) -> bool {
        let wanted = self.request.isolation.or(self.loaded.user_isolation);
        wanted == Some(Isolation::None) && !self.sandbox().provider().is_elsewhere()
    }

    /// Agent variables that make programs load other code (`LD_PRELOAD` and similar), which need approval
    /// without a sandbox.
    fn loaders(&self, agents: &[AgentConfig]) -> Vec<Ask> {
        let own =
            |agent: &AgentConfig| self.loaded.user.agents.iter().flatten().find(|own| own.name == agent.name);
        agents.iter().flat_map(|agent| loader_asks(".ralph/config.json", agent, own(agent))).collect()
    }

    /// Settings of known agents in the repo that sessions would see: in this run, and in one without a
    /// sandbox.
    fn agent_settings(&self, agents: &[AgentConfig]) -> (Vec<Ask>, Vec<Ask>) {
        let below = Path::new(self.working_dir.unwrap_or_default());
        let of = |covered: bool| -> Vec<Ask> {
            let names = agents.iter().filter_map(known);
            names.flat_map(|name| agent_settings::open_asks(self.top, below, name, covered)).collect()
        };
        let (links, open) = (of(true), of(false));
        if links.is_empty() && open.is_empty() {
            return Default::default();
        }
        match self.is_covered() {
            true => (links, open),
            false => (open, Vec::new()),
        }
    }

    /// Whether the sandbox hides agent settings from sessions.
    fn is_covered(&self) -> bool {
        let repo = self.loaded.repo_isolation.filter(|wanted| *wanted != Isolation::None);
        let wanted = self.request.isolation.or(self.loaded.user_isolation).or(repo).unwrap_or_default();
        let here = !self.sandbox().provider().is_elsewhere();
        here && isolation::resolve(self.env, wanted).is_ok_and(|found| found == Isolation::Bwrap)
    }

    fn sandbox(&self) -> SandboxConfig {
        let file = self.loaded.file.sandbox.clone().unwrap_or_default();
        let mut chosen = match self.task.as_ref().and_then(|task| task.settings.sandbox.clone()) {
            Some(task) => file.overlaid(task),
            None => file,
        };
        if let Some(provider) = self.request.provider {
            chosen.provider = Some(provider);
        } else if self.request.isolation.is_some() {
            chosen.provider = Some(ProviderName::Local);
        } else if chosen.provider.is_none() {
            let named = self.env.vars().filled(DEFAULT_PROVIDER);
            chosen.provider = named.and_then(|name| ProviderName::parse(&name).ok());
        }
        chosen
    }

    /// The repo's image, if a known agent would start from it with its keys.
    fn image(&self, agents: &[AgentConfig]) -> Vec<Ask> {
        let chosen = self.sandbox();
        let Some(name) = agents.iter().find_map(known).filter(|_| chosen.provider().is_elsewhere()) else {
            return Vec::new();
        };
        let user = self.loaded.user.sandbox.clone().unwrap_or_default();
        let of_task =
            self.task.as_ref().and_then(|task| Some((task.source, task.settings.sandbox.as_ref()?)));
        let named = [
            (
                "sandbox.image",
                chosen.image,
                user.image,
                of_task.is_some_and(|(_, task)| task.image.is_some()),
            ),
            ("sandbox.snapshot", chosen.snapshot, user.snapshot, false),
        ];
        let asked = named.into_iter().filter(|(_, image, own, _)| image.is_some() && image != own);
        let asked = asked.filter_map(|(key, image, _, by_task)| {
            let image = image?;
            let text = format!("{} as the sandbox, whose `{name}` is given your keys", quoted(&image));
            let source = of_task.filter(|_| by_task).map_or(".ralph/config.json", |(source, _)| source);
            Some(Ask::new(PrivilegeKind::Program, source, key, &image, text))
        });
        asked.collect()
    }

    /// Variables that this run would use, so that a URL or key in them matters.
    fn used_variables(&self, agents: &[AgentConfig]) -> BTreeSet<String> {
        let mut used: BTreeSet<String> = BTreeSet::new();
        for name in agents.iter().filter_map(known) {
            used.extend(key_variables(name).iter().map(|&name| name.to_owned()));
        }
        for profile in self.profiles(agents) {
            let Some(profile) = self.models.models.get(&profile) else { continue };
            // The URL may itself be waiting for approval.
            let somewhere = |_: &str| Some("https://server.invalid".to_owned());
            let Ok(route) = Route::of(&profile, &somewhere) else { continue };
            let asked = |name: &String| self.env.asked_variables().iter().any(|one| one.name == *name);
            let has_key = |name: &String| self.env.vars().is_filled(name) || asked(name);
            if route.key_vars.is_empty() || route.key_vars.iter().any(has_key) {
                used.extend(route.provider.base_vars.iter().map(|&name| name.to_owned()));
                used.extend(route.key_vars);
            }
        }
        let mut begin: Vec<&str> = match self.sandbox().provider() {
            ProviderName::Daytona => vec!["DAYTONA_"],
            ProviderName::E2b => vec!["E2B_"],
            ProviderName::Vercel => vec!["VERCEL_"],
            ProviderName::Local | ProviderName::Docker | ProviderName::Sbx => Vec::new(),
        };
        if self.publishes() {
            begin.push("GITHUB_");
        }
        if self.request.provider.is_none() && self.request.isolation.is_none() {
            used.insert(DEFAULT_PROVIDER.to_owned());
        }
        let asked = self.env.asked_variables().iter().map(|one| one.name.clone());
        used.extend(asked.filter(|name| begin.iter().any(|begin| name.starts_with(begin))));
        let notify_off = self.request.notify.contains(&NotifyRequest::Off);
        if self.loaded.user.notify.is_none() && !notify_off {
            used.insert(SLACK_VARIABLE.to_owned());
        }
        used
    }

    /// Model profiles that may be called.
    fn profiles(&self, agents: &[AgentConfig]) -> Vec<String> {
        let models = &self.models.models;
        let mut names: Vec<Option<String>> = Vec::new();
        let choice = self.task.map(|task| task.models.clone()).unwrap_or_default();
        if agents.iter().any(|agent| agent.kind.calls_model()) {
            names.extend([choice.default_profile, choice.fallback_profile, models.fallback.clone()]);
            names.push(self.request.overrides.model.clone());
        }
        for agent in agents.iter().filter(|agent| agent.kind.calls_model()) {
            names.push(Some(model_access::profile_name(agent, models).to_owned()));
            names.push(agent.fallback_profile.clone());
        }
        let file = &self.loaded.file;
        let tagged = |tag: &str| models.tagged(tag).map(|profile| profile.name);
        let doctor = file.doctor.as_ref().and_then(|doctor| doctor.profile.clone());
        let critic = file.critic.as_ref().and_then(|critic| critic.profile.clone());
        names.extend([doctor.or_else(|| tagged("doctor")), critic.or_else(|| tagged("critic"))]);
        names.into_iter().flatten().collect()
    }

    fn publishes(&self) -> bool {
        let by_task = self.task.as_ref().and_then(|task| task.settings.publish);
        let wanted = self.request.publish.or(by_task).or(self.loaded.file.publish);
        let by_issue = matches!(self.request.task, TaskInput::Issue(_));
        by_issue || wanted.is_some_and(|publish| publish != Publish::None)
    }
}

/// Approval to push results to the URL that another repo's task named.
pub(crate) fn push_ask(source: &str, naming: &Path, url: &str) -> Ask {
    let text = format!("results to be pushed to {}", quoted(&ralph_loop_git::checkout::shown(url)));
    // Stored per naming repo, because what one repo's task was allowed says nothing about another's.
    let content = format!("{url}\0{}", trust::identity(naming).display());
    Ask::new(PrivilegeKind::Push, source, "repo_url", &content, text)
}

/// The known agent behind a configured one.
fn known(agent: &AgentConfig) -> Option<&'static str> {
    presets::preset_of(&agent.command_argv).filter(|_| agent.kind == AgentKind::Cli)
}
