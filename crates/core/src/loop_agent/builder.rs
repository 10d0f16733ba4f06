//! From what a caller says to an agent that can be awaited: everything that does not fit is refused here, before anything is made.

use super::agent::RuledAgent;
use super::check::{Advisor, advice_fn};
use super::frozen::{check_records, check_workspace};
use super::options::{BuildError, Completion, ContextFile, Limits};
use super::source::PortSource;
use super::{LoopAgent, callbacks::Callbacks};
use crate::clock::SystemClock;
use crate::driver::DriverParts;
use crate::handle::RalphStatus;
use crate::help::{Helpers, StuckContext};
use crate::refusals::Refusals;
use ralph_loop_domain::ports::{Agent, Clock, Forge, GitRemote, Notifier, Sandbox, SandboxKeeper, Workspace};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::vars::Vars;
use ralph_loop_journal::journal::Places;
use ralph_loop_journal::layout::{RalphDir, StateHome};
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
/// Required are [`sandbox`](Self::sandbox), [`workspace`](Self::workspace), [`agent`](Self::agent), [`task`](Self::task),
/// [`repo`](Self::repo), [`records`](Self::records) and at least one [`completion`](Self::completion). Defaults of the rest:
///
/// | | default |
/// |---|---|
/// | [`limits`](Self::limits) | 50 iterations, $10, 4 hours, 100,000 tokens per iteration |
/// | [`baseline`](Self::baseline) | the checks run once before the first session |
/// | [`needs_promise`](Self::needs_promise) | no: the run ends when everything holds |
/// | [`branch`](Self::branch) | none: iterations are kept on a ref of the engine's own |
/// | [`publish`](Self::publish) | nothing is pushed |
/// | [`stuck_detection`](Self::stuck_detection) | on, three iterations make a pattern |
/// | [`keep_best`](Self::keep_best) | no |
/// | [`system_prompt`](Self::system_prompt) | the agent's own |
#[derive(Default)]
pub struct LoopAgentBuilder {
    pub(super) sandbox: Option<Box<dyn Sandbox>>,
    pub(super) workspace: Option<Box<dyn Workspace>>,
    pub(super) agents: Vec<(AgentConfig, Box<dyn Agent>)>,
    pub(super) task: Option<String>,
    pub(super) repo: Option<PathBuf>,
    pub(super) records: Option<PathBuf>,
    pub(super) resume: Option<RunId>,
    pub(super) run_id: Option<RunId>,
    /// The defaults where nothing is said.
    pub(super) limits: Option<Limits>,
    pub(super) completion: Vec<Completion>,
    pub(super) rules: Vec<String>,
    pub(super) context: Vec<ContextFile>,
    pub(super) system_prompt: Option<String>,
    pub(super) model: Option<String>,
    pub(super) no_baseline: bool,
    pub(super) needs_promise: bool,
    pub(super) keep_best: bool,
    pub(super) protect: Vec<String>,
    pub(super) branch: Option<String>,
    pub(super) commit_template: Option<String>,
    pub(super) publish: Option<Publish>,
    pub(super) pr: PrConfig,
    pub(super) stuck: StuckConfig,
    pub(super) forge: Option<Box<dyn Forge>>,
    pub(super) push_to: Option<GitRemote>,
    pub(super) notifiers: Vec<Box<dyn Notifier>>,
    pub(super) keeper: Option<Box<dyn SandboxKeeper>>,
    pub(super) helpers: Helpers,
    pub(super) redactor: Option<Arc<Redactor>>,
    pub(super) clock: Option<Arc<dyn Clock>>,
    pub(super) vars: Vars,
    pub(super) callbacks: Callbacks,
    pub(super) advisor: Advisor,
}

impl std::fmt::Debug for LoopAgentBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoopAgentBuilder")
            .field("repo", &self.repo)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Setters that only keep what they are given.
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
    /// Where the agent's files live and commands run.
    sandbox: impl Sandbox + 'static => |this, sandbox| this.sandbox = Some(Box::new(sandbox));
    /// The history of those files: `ralph_loop_git::GitWorkspace`, or `ralph_loop_sandbox::MemoryWorkspace` in tests.
    workspace: impl Workspace + 'static => |this, workspace| this.workspace = Some(Box::new(workspace));
    /// Who works, with its own configuration where it has one, else with every default. Several take turns, in the order in which
    /// they are given.
    agent: impl Agent + 'static => |this, agent| {
        let plain = || AgentConfig::command(agent.name().as_str(), &[agent.name().as_str()]);
        let config = agent.config().cloned().unwrap_or_else(plain);
        this.agents.push((config, Box::new(agent)));
    };
    /// What is to be done, in words: Markdown, the first line is its title.
    task: impl Into<String> => |this, task| this.task = Some(task.into());
    /// The folder on this machine that the run belongs to: where the sandbox's files are, for sandboxes that have them here.
    repo: impl Into<PathBuf> => |this, repo| this.repo = Some(repo.into());
    /// The folder for the records of runs: journal, prompts, logs, proof. No agent may be able to write there.
    records: impl Into<PathBuf> => |this, records| this.records = Some(records.into());
    /// Goes on with a run of an earlier process, which has its task and settings already.
    resume: RunId => |this, run| this.resume = Some(run);
    /// The id of the new run, instead of the one that the workspace records, or one made of the time.
    run_id: RunId => |this, run| this.run_id = Some(run);
    /// The hard stops.
    limits: Limits => |this, limits| this.limits = Some(limits);
    /// One condition that makes the run done; several must all hold.
    completion: Completion => |this, completion| this.completion.push(completion);
    /// A standing rule, given to every session.
    rule: impl Into<String> => |this, rule| this.rules.push(rule.into());
    /// A text that every session is given beside the task; 50 kB over all.
    context: ContextFile => |this, context| this.context.push(context);
    /// Stands before every task in the place of the agent's own words.
    system_prompt: impl Into<String> => |this, prompt| this.system_prompt = Some(prompt.into());
    /// The model for every agent that takes one.
    model: impl Into<String> => |this, model| this.model = Some(model.into());
    /// Whether the checks run once before the first session, so that what they said of the start is known.
    baseline: bool => |this, baseline| this.no_baseline = !baseline;
    /// Whether the final check waits until a session promises that everything is done.
    needs_promise: bool => |this, needs| this.needs_promise = needs;
    /// Whether the files with the best number come back where an iteration made it worse.
    keep_best: bool => |this, keep| this.keep_best = keep;
    /// A path that must not change.
    protect: impl Into<String> => |this, path| this.protect.push(path.into());
    /// The branch that each iteration is committed on; the workspace must know it, too.
    branch: impl Into<String> => |this, branch| this.branch = Some(branch.into());
    /// The message of each iteration's commit, a template (`{{iteration}}`, `{{summary}}`).
    commit_template: impl Into<String> => |this, template| this.commit_template = Some(template.into());
    /// What becomes of the proven work.
    publish: Publish => |this, publish| this.publish = Some(publish);
    /// The title of the pull request, a template.
    pr_title: impl Into<String> => |this, title| this.pr.title_template = Some(title.into());
    /// The text of the pull request, a template; the evidence follows it.
    pr_body: impl Into<String> => |this, body| this.pr.body_template = Some(body.into());
    /// The code host.
    forge: impl Forge + 'static => |this, forge| this.forge = Some(Box::new(forge));
    /// Where branches are pushed to without a code host.
    push_to: GitRemote => |this, remote| this.push_to = Some(remote);
    /// Who tells people.
    notifier: impl Notifier + 'static => |this, notifier| this.notifiers.push(Box::new(notifier));
    /// Who looks after the sandbox, where that has a life of its own.
    keeper: impl SandboxKeeper + 'static => |this, keeper| this.keeper = Some(Box::new(keeper));
    /// When a run counts as stuck.
    stuck_detection: StuckConfig => |this, stuck| this.stuck = stuck;
    /// Who may be called for help: the doctor's and the critic's model, prices.
    helpers: Helpers => |this, helpers| this.helpers = helpers;
    /// Knows the secrets that nothing written of the run may hold.
    redactor: Redactor => |this, redactor| this.redactor = Some(Arc::new(redactor));
    /// Another clock than this machine's.
    clock: Arc<dyn Clock> => |this, clock| this.clock = Some(clock);
    /// The variables by which checks find programs; none unless told.
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
    on_complete: impl Fn(&super::LoopResult) + Send + Sync + 'static => |this, call| this.callbacks.complete.push(Arc::new(call));
    /// See [`LoopAgent::on_error`].
    on_error: impl Fn(&RunError) + Send + Sync + 'static => |this, call| this.callbacks.error.push(Arc::new(call));
}

impl LoopAgentBuilder {
    /// Who works, with another configuration than its own: kind, time-outs, model.
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

    /// The agent, or what is missing or does not fit. Nothing is made yet.
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
        let parts = self.parts(&spec, &home, (sandbox, workspace), clock);
        let source = PortSource { spec, home, parts: Some(parts), exists, driver: None };
        let agent = LoopAgent::of(Box::new(source), Some(record), checks);
        *agent.shared.callbacks() = callbacks;
        *agent.shared.advisor() = advisor;
        Ok(agent)
    }

    fn parts(
        mut self,
        spec: &RunSpec,
        home: &StateHome,
        (sandbox, workspace): (Box<dyn Sandbox>, Box<dyn Workspace>),
        clock: Arc<dyn Clock>,
    ) -> DriverParts {
        let (run, dir) = (&spec.run_id, RalphDir::of(&spec.workspace));
        let prompt = self.system_prompt.take();
        let ruled = self.agents.into_iter().map(|(_, agent)| -> Box<dyn Agent> {
            // As the run is frozen: one that goes on keeps what it began with.
            let config = spec.settings.agent(agent.name());
            let max_tokens = config.and_then(|config| config.max_tokens_per_iteration);
            Box::new(RuledAgent { agent, system_prompt: prompt.clone(), max_tokens })
        });
        DriverParts {
            home: dir.clone(),
            dir,
            cooldowns: home.folder_cooldowns(spec.home()),
            places: Places {
                dir: home.record(run),
                seal: Some(home.seal(run)),
                spare: None,
                elsewhere: None,
            },
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
