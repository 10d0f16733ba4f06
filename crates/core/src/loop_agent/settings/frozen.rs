//! Freezes and validates a caller's settings as a run definition.

use super::builder::LoopAgentBuilder;
use super::options::{BuildError, ContextFile};
use super::source::spec_of;
use crate::run_id;
use ralph_loop_domain::ports::{Agent, Sandbox, Workspace};
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_protocol::id::RunId;
use ralph_loop_task::budget::Budgets;
use ralph_loop_task::config::{
    self, AgentConfig, ConfigFile, Publish, Settings, StuckConfig, VerifierConfig,
};
use ralph_loop_task::spec::{RunSpec, Task, WorkspaceKind};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Size limit of all context.
const CONTEXT_MAX: usize = 50 * 1024;

impl LoopAgentBuilder {
    /// The spec of a resumed run, whose frozen settings can't be set again.
    pub(in crate::loop_agent) fn resumed(
        &self,
        home: &StateHome,
        run: &RunId,
    ) -> Result<RunSpec, BuildError> {
        let said = [
            ("task", self.task.is_some()),
            ("run_id", self.run_id.is_some()),
            ("limits", self.limits.is_some()),
            ("rule", !self.rules.is_empty()),
            ("context", !self.context.is_empty()),
            ("needs_promise", self.needs_promise),
            ("keep_best", self.keep_best),
            ("protect", !self.protect.is_empty()),
            ("branch", self.branch.is_some()),
            ("commit_template", self.commit_template.is_some()),
            ("publish", self.publish.is_some()),
            ("model", self.model.is_some()),
            ("baseline", self.no_baseline),
            ("pr_title", self.pr.title_template.is_some()),
            ("pr_body", self.pr.body_template.is_some()),
            ("stuck_detection", self.stuck != StuckConfig::default()),
        ];
        if let Some((what, _)) = said.into_iter().find(|(_, said)| *said) {
            return Err(BuildError::new(
                format!("`{what}` is given for run {run}, which exists already"),
                "a run keeps the task and the settings that it began with",
                "leave it out; `handle().send(…)` edits the task and `handle().set_limits(…)` the limits of a run",
            ));
        }
        let spec = spec_of(&home.record(run)).map_err(|error| {
            BuildError::new(
                format!("run {run} cannot be taken up"),
                error.to_string(),
                "give the `records` folder that it was made in",
            )
        })?;
        let given: BTreeSet<&str> = self.agents.iter().map(|(_, agent)| agent.name().as_str()).collect();
        if let Some(missing) = spec.settings.agents.iter().find(|a| !given.contains(a.name.as_str())) {
            return Err(BuildError::new(
                format!("agent `{}` of run {run} is missing", missing.name),
                "a run continues with the agents it started with",
                format!("call `.agent(…)` with an agent named `{}`", missing.name),
            ));
        }
        let known: BTreeSet<&str> = self.completion.iter().map(|c| c.verifier.name.as_str()).collect();
        let custom = |v: &&VerifierConfig| v.expect == Some(config::Expect::Custom);
        if let Some(check) =
            spec.settings.verifiers.iter().filter(custom).find(|v| !known.contains(v.name.as_str()))
        {
            return Err(BuildError::new(
                format!("the check `{}` of run {run} is missing", check.name),
                "it is a closure, and no file keeps those",
                format!("call `.completion(Completion::check(\"{}\", …))`", check.name),
            ));
        }
        Ok(spec)
    }

    pub(in crate::loop_agent) fn new_spec(
        &mut self,
        repo: &Path,
        workspace: &dyn Workspace,
        now: jiff::Timestamp,
    ) -> Result<RunSpec, BuildError> {
        let text = self.task.take().ok_or_else(|| BuildError::missing("task", "describe the task"))?;
        let recorded = || workspace.records_for().map(|of| of.run.clone());
        let run_id = match self.run_id.take().or_else(recorded) {
            Some(id) => RunId::parse(id.as_str()).map_err(|why| {
                BuildError::new("the run's id cannot be used", why, "use letters, digits, `-` and `_`")
            })?,
            None => run_id::new(now),
        };
        Ok(RunSpec {
            version: ralph_loop_task::spec::VERSION,
            spec_version: 1,
            run_id,
            created_at: now,
            task: self.task_of(&text)?,
            settings: self.settings()?,
            place: WorkspaceKind::InPlace,
            workspace: repo.to_owned(),
            origin: repo.to_owned(),
            handed_to: None,
            branch: self.branch.clone(),
            config_digest: None,
            forked_from: None,
            unproven_runs: Vec::new(),
        })
    }

    fn task_of(&self, text: &str) -> Result<Task, BuildError> {
        let size: usize = self.context.iter().map(|one| one.content.len()).sum();
        if size > CONTEXT_MAX {
            return Err(BuildError::new(
                format!("the context has {} kB", size.div_ceil(1024)),
                format!("it is part of every prompt, and {} kB are as much as helps", CONTEXT_MAX / 1024),
                "put large files into the repo and name them in the task",
            ));
        }
        let mut whole = text.trim_end().to_owned();
        for ContextFile { name, content } in &self.context {
            whole.push_str(&format!(
                "\n\n## Context: {}\n\n{}",
                ralph_loop_protocol::display::text::one_line(name, 120),
                content.trim_end()
            ));
        }
        whole.push('\n');
        let task = Task::from_prompt(text, "the task").and_then(|_| Task::from_prompt(&whole, "the task"));
        let mut task = task.map_err(|why| {
            BuildError::new("the task is empty", why, "say what is to be done, and how it is checked")
        })?;
        task.rules.clone_from(&self.rules);
        Ok(task)
    }

    fn settings(&self) -> Result<Settings, BuildError> {
        self.check()?;
        let verifiers: Vec<VerifierConfig> = self.completion.iter().map(|one| one.verifier.clone()).collect();
        let targets = verifiers.iter().any(|v| v.metric.as_ref().is_some_and(|m| m.target.is_some()));
        let agents: Vec<AgentConfig> =
            self.agents.iter().map(|(config, agent)| self.agent_config(config, &**agent)).collect();
        let required = verifiers.iter().map(|v| v.name.clone()).collect();
        let limits = self.limits.unwrap_or_default();
        let mut settings = ConfigFile {
            agents: Some(agents),
            verifiers: Some(verifiers),
            required_verifiers: Some(required),
            baseline: Some(!self.no_baseline),
            keep_best: Some(self.keep_best),
            protected_paths: Some(self.protect.clone()),
            publish: Some(self.publish.unwrap_or(Publish::None)),
            pr: Some(self.pr.clone()),
            commit_template: self.commit_template.clone(),
            checkpoint_commits: Some(self.branch.is_some()),
            stuck_detection: Some(self.stuck),
            ..ConfigFile::default()
        }
        .resolve();
        settings.completion = match (self.needs_promise, targets) {
            (true, _) => config::Completion::Promise,
            (false, true) => config::Completion::Metric,
            (false, false) => config::Completion::Checks,
        };
        // What is pushed has its local name.
        settings.handover.branch.clone_from(&self.branch);
        settings.budgets = Budgets {
            max_iterations: limits.max_iterations,
            max_wall_time: limits.timeout,
            max_cost: limits.max_cost,
            max_tokens: limits.max_tokens,
            ..settings.budgets
        };
        Ok(settings)
    }

    fn agent_config(&self, config: &AgentConfig, agent: &dyn Agent) -> AgentConfig {
        let tokens =
            config.max_tokens_per_iteration.or(self.limits.unwrap_or_default().max_tokens_per_iteration);
        AgentConfig {
            name: agent.name().clone(),
            model: self.model.clone().or_else(|| config.model.clone()),
            max_tokens_per_iteration: tokens,
            ..config.clone()
        }
    }
}

/// Rejects a records folder that the agent could write to.
pub(in crate::loop_agent) fn check_records(records: &Path, sandbox: &dyn Sandbox) -> Result<(), BuildError> {
    match sandbox.host_root() {
        Some(root) if settled(records).starts_with(settled(root)) => Err(BuildError::new(
            format!("the records are in `{}`, where the agent works", root.display()),
            "an agent could rewrite its run's record",
            "pass a folder outside it, for example one in the user's state folder",
        )),
        _ => Ok(()),
    }
}

/// Rejects a workspace of another run or branch: the commits that a result names wouldn't be in it.
pub(in crate::loop_agent) fn check_workspace(
    spec: &RunSpec,
    workspace: &dyn Workspace,
) -> Result<(), BuildError> {
    let Some(of) = workspace.records_for() else { return Ok(()) };
    if *of.run != spec.run_id {
        return Err(BuildError::new(
            format!("the workspace records run {}, and this is run {}", of.run, spec.run_id),
            "the refs that a result names would hold nothing",
            "give both the same id; `.run_id(…)` may be left out for a new run",
        ));
    }
    if of.branch != spec.branch.as_deref() {
        let words =
            |branch: Option<&str>| branch.map_or_else(|| "none".to_owned(), |name| format!("`{name}`"));
        return Err(BuildError::new(
            format!(
                "the branch of the workspace is {}, and that of the run {}",
                words(of.branch),
                words(spec.branch.as_deref())
            ),
            "iterations would be committed elsewhere than the result says",
            "give `WorkspaceOptions::branch` and `.branch(…)` the same name",
        ));
    }
    Ok(())
}

/// Canonicalizes a path whose last parts may not exist yet.
fn settled(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for there in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (there.canonicalize(), path.strip_prefix(there)) {
            return real.join(rest);
        }
    }
    path
}
