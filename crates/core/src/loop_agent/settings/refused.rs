//! Rejects invalid runs: duplicate names, conditions that always hold, limits that leave no room.

use super::builder::LoopAgentBuilder;
use super::options::{BuildError, Completion};
use ralph_loop_protocol::money::Usd;
use ralph_loop_task::config::{AgentKind, Expect, Publish};
use ralph_loop_task::dialect::names;
use std::collections::BTreeSet;

impl LoopAgentBuilder {
    /// Validates a new run.
    pub(in crate::loop_agent) fn check(&self) -> Result<(), BuildError> {
        self.check_names()?;
        self.check_prompt()?;
        self.completion.iter().try_for_each(check_condition)?;
        self.check_numbers()?;
        self.check_limits()?;
        self.check_handover()?;
        match self.stuck.fault() {
            Some(fault) => Err(BuildError::new(
                "the stuck detection cannot be used",
                fault,
                "start from `StuckConfig::default()`",
            )),
            None => Ok(()),
        }
    }

    fn check_names(&self) -> Result<(), BuildError> {
        if self.completion.is_empty() {
            return Err(BuildError::missing("completion", "nothing would show that the work is done"));
        }
        let twice = |names: Vec<&str>| {
            let mut seen = BTreeSet::new();
            names.into_iter().find(|name| !seen.insert(*name)).map(str::to_owned)
        };
        if let Some(name) = twice(self.completion.iter().map(|one| one.verifier.name.as_str()).collect()) {
            return Err(BuildError::new(
                format!("two conditions are called `{name}`"),
                "their results would be ambiguous",
                "give one of them another name with `.named(…)`",
            ));
        }
        if let Some(name) = twice(self.agents.iter().map(|(_, agent)| agent.name().as_str()).collect()) {
            return Err(BuildError::new(
                format!("two agents are called `{name}`"),
                "the journal could not tell them apart",
                "give one of them another name",
            ));
        }
        Ok(())
    }

    fn check_prompt(&self) -> Result<(), BuildError> {
        let by_contract = self
            .agents
            .iter()
            .find(|(config, agent)| agent.config().unwrap_or(config).kind == AgentKind::Actions);
        match by_contract.filter(|_| self.system_prompt.is_some()) {
            Some((_, agent)) => Err(BuildError::new(
                format!(
                    "`system_prompt` would take the place of what tells `{}` how to answer",
                    agent.name()
                ),
                "its actions could not be read any more",
                "give its own `AgentConfig` a `system_prompt`: that leaves the contract where it is",
            )),
            None => Ok(()),
        }
    }

    fn check_numbers(&self) -> Result<(), BuildError> {
        let metrics = || self.completion.iter().map(|one| one.verifier.metric.as_ref());
        if self.keep_best && metrics().all(|metric| metric.is_none()) {
            return Err(BuildError::new(
                "`keep_best` is on, but nothing is measured",
                "there is no number that could be the best",
                "call `.completion(Completion::metric(…))`",
            ));
        }
        let open = |metric: Option<&ralph_loop_task::config::MetricConfig>| {
            metric.is_some_and(|metric| metric.target.is_none())
        };
        if !self.needs_promise && metrics().all(open) {
            return Err(BuildError::new(
                "a number is measured, but nothing says how much is enough",
                "the run would end after its first session, whatever the number is",
                "give the metric a `.target(…)`, or call `.needs_promise(true)` or a further `.completion(…)`",
            ));
        }
        Ok(())
    }

    fn check_limits(&self) -> Result<(), BuildError> {
        let limits = self.limits.unwrap_or_default();
        let no_tokens = limits.max_tokens == Some(0) || limits.max_tokens_per_iteration == Some(0);
        if limits.max_iterations == 0 || limits.timeout.is_zero() || no_tokens {
            return Err(BuildError::new(
                "the limits leave no room for a single session",
                "nothing could be done",
                "give at least one iteration, some time and some tokens",
            ));
        }
        if limits.max_cost < Usd::ZERO {
            return Err(BuildError::new(
                "`max_cost` is less than nothing, or no number",
                "the run would end before its first session",
                "pass an amount in dollars; `f64::INFINITY` means no limit",
            ));
        }
        Ok(())
    }

    fn check_handover(&self) -> Result<(), BuildError> {
        let (hosted, elsewhere) = (self.forge.is_some(), self.forge.is_some() || self.push_to.is_some());
        let missing = match self.publish.unwrap_or(Publish::None) {
            Publish::Pr if !hosted => Some((
                "a pull request is requested, but there is no code host",
                "call `.forge(…)`, or `.publish(Publish::Push)`",
            )),
            Publish::Push if !elsewhere => Some((
                "a push is requested, but there is nowhere to push to",
                "call `.push_to(…)` or `.forge(…)`",
            )),
            Publish::Pr | Publish::Push if self.branch.is_none() => Some((
                "the work is to be pushed, but its branch has no name",
                "call `.branch(…)`, and give `WorkspaceOptions::branch` the same",
            )),
            _ => None,
        };
        if let Some((what, fix)) = missing {
            return Err(BuildError::new(what, "the work would be proven and then go nowhere", fix));
        }
        match self.branch.as_deref().and_then(names::branch_problem) {
            Some(problem) => {
                Err(BuildError::new("the branch cannot be made", problem, "give it another name"))
            }
            None => Ok(()),
        }
    }
}

/// Rejects conditions that can't be checked or always hold.
fn check_condition(one: &Completion) -> Result<(), BuildError> {
    let (name, verifier) = (&one.verifier.name, &one.verifier);
    if name.trim().is_empty() {
        return Err(BuildError::new(
            "a condition has no name",
            "its result couldn't be reported",
            "give it one with `.named(…)`",
        ));
    }
    let path = match &verifier.expect {
        Some(Expect::FileExists { path } | Expect::FileContains { path, .. }) => Some(path.as_str()),
        _ => None,
    };
    if let Some(problem) = path.and_then(names::path_problem) {
        return Err(BuildError::new(
            format!("the file of the condition `{name}` cannot be part of the work"),
            problem,
            "name it from the top of the repo, as `docs/DONE.md`",
        ));
    }
    let is_command = path.is_none() && verifier.expect != Some(Expect::Custom);
    let argv = &verifier.command_argv;
    let empty_line = matches!(argv.as_slice(), [shell, flag, line] if shell == "sh" && flag == "-c" && line.trim().is_empty());
    if is_command && (argv.first().is_none_or(|program| program.is_empty()) || empty_line) {
        return Err(BuildError::new(
            format!("the condition `{name}` has no command"),
            "it would always hold, or never",
            "name the command that shows that the work is done",
        ));
    }
    let target = verifier.metric.as_ref().and_then(|metric| metric.target);
    if target.is_some_and(|target| !target.is_finite()) {
        return Err(BuildError::new(
            format!("the target of `{name}` isn't a number"),
            "no measurement could reach it",
            "set the number to reach",
        ));
    }
    Ok(())
}
