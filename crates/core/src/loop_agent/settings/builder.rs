//! Builds and validates a [`LoopAgent`] before anything is created.

use super::frozen::{check_records, check_workspace};
use super::options::{BuildError, Completion, ContextFile, Limits};
use super::source::PortSource;
use crate::clock::SystemClock;
use crate::handle::RalphStatus;
use crate::help::{Helpers, StuckContext};
use crate::loop_agent::LoopAgent;
use crate::loop_agent::agent::RuledAgent;
use crate::loop_agent::callbacks::Callbacks;
use crate::loop_agent::check::{Advisor, advice_fn};
use crate::ports::Refusals;
use crate::ports::RunPorts;
use ralph_loop_domain::ports::{Agent, Clock, Forge, GitRemote, Notifier, Sandbox, SandboxKeeper, Workspace};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::vars::Vars;
use ralph_loop_journal::folder::layout::{RalphDir, StateHome};
use ralph_loop_journal::journal::RunPaths;
use ralph_loop_protocol::event::Event;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::outcome::RunError;
use ralph_loop_task::config::{AgentConfig, PrConfig, Publish, StuckConfig};
use ralph_loop_task::spec::RunSpec;
use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Builds a [`LoopAgent`].
///
/// Required are [`sandbox`](Self::sandbox), [`workspace`](Self::workspace), [`agent`](Self::agent),
/// [`task`](Self::task), [`repo`](Self::repo), [`records`](Self::records) and at least one
/// [`completion`](Self::completion). Other defaults:
///
/// | | default |
/// |---|---|
/// | [`limits`](Self::limits) | 50 iterations, $10, 4 hours, 100,000 tokens per iteration |
/// | [`baseline`](Self::baseline) | the checks run once before the first session |
/// | [`needs_promise`](Self::needs_promise) | no: the run ends when every condition holds |
/// | [`branch`](Self::branch) | none: iterations are kept on an internal ref |
/// | [`publish`](Self::publish) | nothing is pushed |
/// | [`stuck_detection`](Self::stuck_detection) | on, three iterations make a pattern |
/// | [`keep_best`](Self::keep_best) | no |
/// | [`system_prompt`](Self::system_prompt) | the agent's own |
#[derive(Default)]
pub struct LoopAgentBuilder {
    pub(in crate::loop_agent) sandbox: Option<Box<dyn Sandbox>>,
    pub(in crate::loop_agent) workspace: Option<Box<dyn Workspace>>,
    pub(in crate::loop_agent) agents: Vec<(AgentConfig, Box<dyn Agent>)>,
    pub(in crate::loop_agent) task: Option<String>,
    pub(in crate::loop_agent) repo: Option<PathBuf>,
    pub(in crate::loop_agent) records: Option<PathBuf>,
    pub(in crate::loop_agent) resume: Option<RunId>,
    pub(in crate::loop_agent) run_id: Option<RunId>,
    /// `None` for the defaults.
    pub(in crate::loop_agent) limits: Option<Limits>,
    pub(in crate::loop_agent) completion: Vec<Completion>,
    pub(in crate::loop_agent) rules: Vec<String>,
    pub(in crate::loop_agent) context: Vec<ContextFile>,
    pub(in crate::loop_agent) system_prompt: Option<String>,
    pub(in crate::loop_agent) model: Option<String>,
    pub(in crate::loop_agent) no_baseline: bool,
    pub(in crate::loop_agent) needs_promise: bool,
    pub(in crate::loop_agent) keep_best: bool,
    pub(in crate::loop_agent) protect: Vec<String>,
    pub(in crate::loop_agent) branch: Option<String>,
    pub(in crate::loop_agent) commit_template: Option<String>,
    pub(in crate::loop_agent) publish: Option<Publish>,
    pub(in crate::loop_agent) pr: PrConfig,
    pub(in crate::loop_agent) stuck: StuckConfig,
    pub(in crate::loop_agent) forge: Option<Box<dyn Forge>>,
    pub(in crate::loop_agent) push_to: Option<GitRemote>,
    pub(in crate::loop_agent) notifiers: Vec<Box<dyn Notifier>>,
    pub(in crate::loop_agent) keeper: Option<Box<dyn SandboxKeeper>>,
    pub(in crate::loop_agent) helpers: Helpers,
    pub(in crate::loop_agent) redactor: Option<Arc<Redactor>>,
    pub(in crate::loop_agent) clock: Option<Arc<dyn Clock>>,
    pub(in crate::loop_agent) vars: Vars,
    pub(in crate::loop_agent) callbacks: Callbacks,
    pub(in crate::loop_agent) advisor: Advisor,
}

impl std::fmt::Debug for LoopAgentBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoopAgentBuilder")
            .field("repo", &self.repo)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Generates simple setters.
macro_rules! keeps {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ty => |$this:ident, $value:ident| $keep:expr;)+) => {
        impl LoopAgentBuilder {
            $($(#[doc = $doc])+
            #[must_use]
            pub fn $name(mut self, $value: $kind) -> Self {
                let $this = &mut self;
                $keep;
                self
            })+
        }
    };
}

keeps! {
    /// Where the agent's files are and commands run.
    sandbox: impl Sandbox + 'static => |this, sandbox| this.sandbox = Some(Box::new(sandbox));
    /// The history of those files: `ralph_loop_git::GitWorkspace`, or `ralph_loop_sandbox::MemoryWorkspace`
    /// in tests.
    workspace: impl Workspace + 'static => |this, workspace| this.workspace = Some(Box::new(workspace));
    /// An agent, with its own configuration or the defaults. Several take turns in the order added.
    agent: impl Agent + 'static => |this, agent| {
        let plain = || AgentConfig::command(agent.name().as_str(), &[agent.name().as_str()]);
        let config = agent.config().cloned().unwrap_or_else(plain);
        this.agents.push((config, Box::new(agent)));
    };
    /// The task as Markdown; the first line is its title.
    task: impl Into<String> => |this, task| this.task = Some(task.into());
    /// The local folder of the run: the sandbox's files, if the sandbox keeps them on this machine.
    repo: impl Into<PathBuf> => |this, repo| this.repo = Some(repo.into());
    /// The folder for run records: journal, prompts, logs, proof. Agents must not be able to write there.
    records: impl Into<PathBuf> => |this, records| this.records = Some(records.into());
    /// Resumes a run of an earlier process with its frozen task and settings.
    resume: RunId => |this, run| this.resume = Some(run);
    /// Sets the new run's id, instead of the workspace's or a generated one.
    run_id: RunId => |this, run| this.run_id = Some(run);
    /// The hard limits.
    limits: Limits => |this, limits| this.limits = Some(limits);
    /// Adds a condition for success; all must hold.
    completion: Completion => |this, completion| this.completion.push(completion);
    /// Adds a standing rule for every session.
    rule: impl Into<String> => |this, rule| this.rules.push(rule.into());
    /// Adds a text for every session; 50 kB in total.
    context: ContextFile => |this, context| this.context.push(context);
    /// Replaces the agent's own text before every task.
    system_prompt: impl Into<String> => |this, prompt| this.system_prompt = Some(prompt.into());
    /// The model for every agent that takes one.
    model: impl Into<String> => |this, model| this.model = Some(model.into());
    /// Whether the checks run once before the first session, to record the original results.
    baseline: bool => |this, baseline| this.no_baseline = !baseline;
    /// Whether the final check waits until a session claims to be done.
    needs_promise: bool => |this, needs| this.needs_promise = needs;
    /// Whether to restore the files with the best metric after an iteration made it worse.
    keep_best: bool => |this, keep| this.keep_best = keep;
    /// Protects a path from changes.
    protect: impl Into<String> => |this, path| this.protect.push(path.into());
    /// The branch for iteration commits; the workspace must use it too.
    branch: impl Into<String> => |this, branch| this.branch = Some(branch.into());
    /// Template for iteration commit messages (`{{iteration}}`, `{{summary}}`).
    commit_template: impl Into<String> => |this, template| this.commit_template = Some(template.into());
    /// What to do with the proven work.
    publish: Publish => |this, publish| this.publish = Some(publish);
    /// Template for the pull request title.
    pr_title: impl Into<String> => |this, title| this.pr.title_template = Some(title.into());
    /// Template for the pull request body; the evidence follows it.
    pr_body: impl Into<String> => |this, body| this.pr.body_template = Some(body.into());
    /// The code host.
    forge: impl Forge + 'static => |this, forge| this.forge = Some(Box::new(forge));
    /// Push target without a code host.
    push_to: GitRemote => |this, remote| this.push_to = Some(remote);
    /// Adds a notifier.
    notifier: impl Notifier + 'static => |this, notifier| this.notifiers.push(Box::new(notifier));
    /// Manages a sandbox that outlives a command.
    keeper: impl SandboxKeeper + 'static => |this, keeper| this.keeper = Some(Box::new(keeper));
    /// When a run counts as stuck.
    stuck_detection: StuckConfig => |this, stuck| this.stuck = stuck;
    /// Models of the doctor and the critic, and prices.
    helpers: Helpers => |this, helpers| this.helpers = helpers;
    /// Knows the secrets to redact from everything written.
    redactor: Redactor => |this, redactor| this.redactor = Some(Arc::new(redactor));
    /// Replaces the system clock.
    clock: Arc<dyn Clock> => |this, clock| this.clock = Some(clock);
    /// Variables for finding the programs of checks; empty by default.
    vars: Vars => |this, vars| this.vars = vars;
    /// See [`LoopAgent::on_stuck_timeout`].
    on_stuck_timeout: Duration => |this, timeout| this.advisor.timeout = timeout;
    /// See [`LoopAgent::on_event`].
    on_event: impl Fn(&Event) + Send + Sync + 'static => |this, call| this.callbacks.event.push(Arc::new(call));
    /// See [`LoopAgent::on_token`].
    on_token: impl Fn(&str) + Send + Sync + 'static => |this, call| this.callbacks.token.push(Arc::new(call));
    /// See [`LoopAgent::on_update`].
    on_update: impl Fn(&RalphStatus) + Send + Sync + 'static => |this, call| this.callbacks.update.push(Arc::new(call));
    /// See [`LoopAgent::on_complete`].
    on_complete: impl Fn(&crate::loop_agent::LoopResult) + Send + Sync + 'static => |this, call| this.callbacks.complete.push(Arc::new(call));
    /// See [`LoopAgent::on_error`].
    on_error: impl Fn(&RunError) + Send + Sync + 'static => |this, call| this.callbacks.error.push(Arc::new(call));
}

impl LoopAgentBuilder {
    /// Adds an agent with another configuration than its own: kind, timeouts, model.
    #[must_use]
    pub fn agent_with(mut self, config: AgentConfig, agent: impl Agent + 'static) -> Self {
        self.agents.push((config, Box::new(agent)));
        self
    }

    /// See [`LoopAgent::on_stuck`].
    #[must_use]
    pub fn on_stuck<F, Fut>(mut self, advise: F) -> Self
    where
        F: Fn(StuckContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<String>> + Send + 'static,
    {
        self.advisor.advise = Some(advice_fn(advise));
        self
    }

    /// Returns the agent, or what is missing or invalid. Creates nothing.
    pub fn build(mut self) -> Result<LoopAgent, BuildError> {
        let sandbox = self
            .sandbox
            .take()
            .ok_or_else(|| BuildError::missing("sandbox", "commands must run somewhere"))?;
        let repo =
            self.repo.take().ok_or_else(|| BuildError::missing("repo", "a run belongs to a folder"))?;
        let records = self.records.take().ok_or_else(|| {
            BuildError::missing("records", "a run without a record cannot be proven or resumed")
        })?;
        let whole = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let (repo, records) = (whole(repo), whole(records));
        check_records(&records, &*sandbox)?;
        if self.agents.is_empty() {
            return Err(BuildError::missing("agent", "an agent does the work"));
        }
        let workspace = self.workspace.take();
        let workspace = workspace
            .ok_or_else(|| BuildError::missing("workspace", "what changes must be recorded somewhere"))?;
        let clock = self.clock.take().unwrap_or_else(|| Arc::new(SystemClock::default()));
        let home = StateHome::at(&records);
        let (spec, exists) = match self.resume.take() {
            Some(run) => (self.resumed(&home, &run)?, true),
            None => (self.new_spec(&repo, &*workspace, clock.now())?, false),
        };
        check_workspace(&spec, &*workspace)?;
        let checks = std::mem::take(&mut self.completion);
        let checks = checks.into_iter().filter_map(Completion::own_check).collect();
        let (callbacks, advisor) = (std::mem::take(&mut self.callbacks), std::mem::take(&mut self.advisor));
        let record = home.record(&spec.run_id);
        let ports = self.ports(&spec, &home, (sandbox, workspace), clock);
        let source = PortSource { spec, home, ports: Some(ports), exists, run: None };
        let agent = LoopAgent::of(Box::new(source), Some(record), checks);
        *agent.shared.callbacks() = callbacks;
        *agent.shared.advisor() = advisor;
        Ok(agent)
    }

    fn ports(
        mut self,
        spec: &RunSpec,
        home: &StateHome,
        (sandbox, workspace): (Box<dyn Sandbox>, Box<dyn Workspace>),
        clock: Arc<dyn Clock>,
    ) -> RunPorts {
        let (run, dir) = (&spec.run_id, RalphDir::of(&spec.workspace));
        let prompt = self.system_prompt.take();
        let ruled = self.agents.into_iter().map(|(_, agent)| -> Box<dyn Agent> {
            // The frozen configuration: a resumed run keeps its own.
            let config = spec.settings.agent(agent.name());
            let max_tokens = config.and_then(|config| config.max_tokens_per_iteration);
            Box::new(RuledAgent { agent, system_prompt: prompt.clone(), max_tokens })
        });
        RunPorts {
            home: dir.clone(),
            dir,
            cooldowns: home.folder_cooldowns(spec.home()),
            places: RunPaths { dir: home.record(run), seal: Some(home.seal(run)), elsewhere: None },
            proof_dir: home.path().join("proofs").join(run.as_str()),
            baseline_cache: None,
            sandbox,
            workspace,
            installed: Vec::new(),
            agents: ruled.collect(),
            custom_checks: BTreeMap::new(),
            clock,
            vars: self.vars,
            redactor: self.redactor.unwrap_or_default(),
            observers: Vec::new(),
            cancel: Arc::default(),
            helpers: self.helpers,
            refusals: Refusals::default(),
            forge: self.forge,
            push_to: self.push_to,
            notifiers: self.notifiers,
            keeper: self.keeper,
            machine: None,
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }
    }
}
