//! Resolves files to settings: merges the layers and fills in defaults. A run is frozen with the result.

use super::{
    AgentConfig, AgentSelection, CommandLine, Completion, ConfigFile, CriticConfig, DoctorConfig, Handover,
    Isolation, Mode, Models, OnStuck, PrConfig, RequiredProof, RoleConfig, SandboxConfig, Share, StuckConfig,
    TestsPolicy, VerifierConfig, WorkspaceConfig,
};
use crate::budget::Budgets;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::id::AgentName;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Start of the names of a task's commands that belong to no criterion.
pub(crate) const VERIFY: &str = "verify-";

impl ConfigFile {
    /// Lays `over` on top of `self`. Agents and verifiers are merged by name, so a repo may change one of the user's
    /// agents without repeating the others.
    pub fn overlaid(mut self, over: Self) -> Self {
        macro_rules! take {
            ($($key:ident),* $(,)?) => { $( if over.$key.is_some() { self.$key = over.$key; } )* };
        }
        take!(
            schema,
            version,
            agent_priority,
            agent_selection,
            required_verifiers,
            baseline,
            tests,
            mode,
            require_proof,
            completion_promise,
            completion,
            keep_best,
            checkpoint_commits,
            allow_agent_commits,
            commit_state,
            commit_author,
            commit_email,
            max_iterations,
            max_wall_time_minutes,
            max_cost_usd_estimate,
            max_tokens_total,
            max_consecutive_gutter,
            max_limit_wait_minutes,
            deadline,
            strict_budget,
            setup_commands,
            stuck_detection,
            gutter_score,
            on_stuck,
            doctor,
            critic,
            roles,
            isolation,
            allowed_hosts,
            pass_env,
            share,
            sandbox_read,
            default_cooldown_seconds,
            publish,
            remote,
            local_forge,
            overlap,
            wait_for_checks,
            ci_appear_minutes,
            ci_timeout_minutes,
            review_timeout_hours,
            poll_seconds,
            commit_template,
            notify,
            clone,
        );
        self.pr = merge_pr(self.pr, over.pr);
        self.sandbox = match (self.sandbox, over.sandbox) {
            (Some(below), Some(above)) => Some(below.overlaid(above)),
            (below, above) => above.or(below),
        };
        self.workspace = match (self.workspace, over.workspace) {
            (Some(below), Some(above)) => Some(below.overlaid(above)),
            (below, above) => above.or(below),
        };
        self.agents = merge_by(self.agents, over.agents, |a| a.name.as_str().to_owned());
        self.verifiers = merge_by(self.verifiers, over.verifiers, |v| v.name.clone());
        if let Some(more) = over.protected_paths {
            self.protected_paths.get_or_insert_default().extend(more);
        }
        if let Some(more) = over.harness {
            self.harness.get_or_insert_default().extend(more);
        }
        self
    }

    /// Lays the settings of a task on top. What the configuration requires still counts next to the task's checks: a
    /// task can add requirements, never remove them. A check of the same name that runs something else is kept under
    /// a separate name.
    pub fn with_task(mut self, mut task: Self) -> Self {
        let Some(wanted) = task.required_verifiers.take() else { return self.overlaid(task) };
        let verifiers = task.verifiers.take().unwrap_or_default();
        let own: Vec<VerifierConfig> = {
            let all = self.verifiers.clone().unwrap_or_default();
            let required = required_of(self.required_verifiers.clone(), &all);
            let counts = |own: &VerifierConfig| {
                required.contains(&own.name) || verifiers.iter().any(|verifier| is_same(verifier, own))
            };
            all.into_iter().filter(counts).collect()
        };
        // Required but undefined names are refused later, with a message.
        let undefined =
            self.required_verifiers.iter().flatten().filter(|n| !own.iter().any(|v| v.name == **n));
        let undefined: Vec<String> = undefined.cloned().collect();
        if let Some(all) = &mut self.verifiers {
            all.retain(|verifier| !own.iter().any(|o| o.name == verifier.name));
        }
        let (verifiers, kept) = beside(verifiers, own);
        let wanted: Vec<String> =
            wanted.into_iter().filter(|name| verifiers.iter().any(|one| one.name == *name)).collect();
        let mut merged = self.overlaid(Self { verifiers: Some(verifiers), ..task });
        let names = wanted.into_iter().chain(kept.iter().cloned()).chain(undefined);
        merged.required_verifiers = Some(names.fold(Vec::new(), |mut names: Vec<String>, name| {
            if !names.contains(&name) {
                names.push(name);
            }
            names
        }));
        merged.own_verifiers = kept;
        merged
    }

    /// The settings of a run, with defaults filled in.
    pub fn resolve(mut self) -> Settings {
        let handover = Handover::of(&mut self);
        let verifiers = self.verifiers.unwrap_or_default();
        let required = required_of(self.required_verifiers, &verifiers);
        let mut agents = self.agents.unwrap_or_default();
        if let Some(order) = self.agent_priority {
            let mut chosen = Vec::with_capacity(order.len());
            for name in &order {
                if let Some(at) = agents.iter().position(|a| a.name == *name) {
                    chosen.push(agents.remove(at));
                }
            }
            agents = chosen;
        }
        let defaults = Budgets::default();
        Settings {
            agents,
            agent_selection: self.agent_selection.unwrap_or_else(|| match &self.roles {
                Some(roles) if !roles.is_empty() => AgentSelection::Roles,
                _ => AgentSelection::default(),
            }),
            verifiers,
            required_verifiers: required,
            own_verifiers: self.own_verifiers,
            baseline: self.baseline.unwrap_or(true),
            tests: self.tests.unwrap_or_default(),
            mode: self.mode.unwrap_or_default(),
            require_proof: self.require_proof,
            completion_promise: self.completion_promise.unwrap_or_else(|| "COMPLETE".into()),
            completion: self.completion.unwrap_or_default(),
            keep_best: self.keep_best.unwrap_or(false),
            checkpoint_commits: self.checkpoint_commits.unwrap_or(false),
            allow_agent_commits: self.allow_agent_commits.unwrap_or(false),
            commit_state: self.commit_state.unwrap_or(false),
            commit_author: self.commit_author,
            commit_email: self.commit_email,
            budgets: Budgets {
                max_iterations: self.max_iterations.unwrap_or(defaults.max_iterations),
                max_wall_time: self
                    .max_wall_time_minutes
                    .map_or(defaults.max_wall_time, |m| Duration::from_secs_f64((m * 60.0).min(1e12))),
                max_cost: self.max_cost_usd_estimate.unwrap_or(defaults.max_cost),
                max_tokens: self.max_tokens_total.or(defaults.max_tokens),
                max_consecutive_gutter: self
                    .max_consecutive_gutter
                    .unwrap_or(defaults.max_consecutive_gutter),
                max_limit_wait: self
                    .max_limit_wait_minutes
                    .map_or(defaults.max_limit_wait, |m| Duration::from_secs_f64((m * 60.0).min(1e12))),
                deadline: self.deadline,
            },
            strict_budget: self.strict_budget.unwrap_or(false),
            protected_paths: self.protected_paths.unwrap_or_default(),
            harness: self.harness.unwrap_or_default(),
            setup_commands: self.setup_commands.unwrap_or_default(),
            setup_guessed: false,
            stuck_detection: self.stuck_detection.unwrap_or_default(),
            gutter_score: self.gutter_score.unwrap_or(0.7),
            on_stuck: self.on_stuck.unwrap_or_default(),
            doctor: self.doctor.unwrap_or_default(),
            critic: self.critic.unwrap_or_default(),
            roles: self.roles.unwrap_or_default(),
            isolation: self.isolation.unwrap_or_default(),
            sandbox: self.sandbox.unwrap_or_default(),
            allowed_hosts: self.allowed_hosts.unwrap_or_default(),
            pass_env: self.pass_env.unwrap_or_default(),
            share: self.share.unwrap_or_default(),
            sandbox_read: self.sandbox_read.unwrap_or_default(),
            workspace: self.workspace.unwrap_or_default(),
            default_cooldown: Duration::from_secs(self.default_cooldown_seconds.unwrap_or(900)),
            models: Models::default(),
            handover,
        }
    }
}

/// The names of the checks that must pass: the required ones, else `tests`, else all.
fn required_of(named: Option<Vec<String>>, verifiers: &[VerifierConfig]) -> Vec<String> {
    named.unwrap_or_else(|| {
        if verifiers.iter().any(|v| v.name == "tests") {
            vec!["tests".into()]
        } else {
            verifiers.iter().map(|v| v.name.clone()).collect()
        }
    })
}

/// Whether two checks run the same command and judge it alike.
fn is_same(a: &VerifierConfig, b: &VerifierConfig) -> bool {
    words(&a.command_argv) == words(&b.command_argv) && a.expect == b.expect
}

/// The checks of a task followed by those that the configuration requires, and the new names of the latter. Equal
/// ones of both appear once: under the id of a criterion, otherwise as configured.
pub(crate) fn beside(
    task: Vec<VerifierConfig>,
    own: Vec<VerifierConfig>,
) -> (Vec<VerifierConfig>, Vec<String>) {
    let (of_task, mut all, mut names) = (task.len(), task, Vec::new());
    for mut verifier in own {
        let taken = |name: &str, all: &[VerifierConfig]| all.iter().any(|v| v.name == name);
        if let Some(same) = all[..of_task].iter().position(|known| is_same(known, &verifier)) {
            if all[same].name.starts_with(VERIFY) && !taken(&verifier.name, &all) {
                all[same] = verifier;
            }
            names.push(all[same].name.clone());
            continue;
        }
        while taken(&verifier.name, &all) {
            verifier.name = format!("config-{}", verifier.name);
        }
        names.push(verifier.name.clone());
        all.push(verifier);
    }
    (all, names)
}

/// What a command runs, without a shell that only starts one program.
fn words(argv: &[String]) -> Vec<&str> {
    const SHELL_SIGNS: &[char] = &[
        '|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '"', '\'', '*', '?', '[', ']', '#', '~', '=', '{',
        '}', '!', '\n',
    ];
    match argv {
        [shell, flag, line]
            if matches!(shell.as_str(), "sh" | "bash" | "/bin/sh" | "/bin/bash")
                && flag == "-c"
                && !line.contains(SHELL_SIGNS) =>
        {
            line.split_whitespace().collect()
        }
        argv => argv.iter().map(String::as_str).collect(),
    }
}

/// Key by key: a task may give a title without repeating the labels of the configuration.
fn merge_pr(below: Option<PrConfig>, above: Option<PrConfig>) -> Option<PrConfig> {
    let (Some(below), Some(above)) = (&below, &above) else { return above.or(below) };
    Some(PrConfig {
        draft: above.draft.or(below.draft),
        labels: if above.labels.is_empty() { below.labels.clone() } else { above.labels.clone() },
        title_template: above.title_template.clone().or_else(|| below.title_template.clone()),
        body_template: above.body_template.clone().or_else(|| below.body_template.clone()),
        base: above.base.clone().or_else(|| below.base.clone()),
    })
}

fn merge_by<T>(below: Option<Vec<T>>, above: Option<Vec<T>>, key: impl Fn(&T) -> String) -> Option<Vec<T>> {
    match (below, above) {
        (below, None) => below,
        (None, above) => above,
        (Some(below), Some(above)) => {
            let named: Vec<String> = above.iter().map(&key).collect();
            let rest = below.into_iter().filter(|item| !named.contains(&key(item)));
            let mut merged: Vec<T> = above;
            merged.extend(rest);
            Some(merged)
        }
    }
}

/// Everything that a run is frozen with, with defaults filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The agents, in order of preference.
    pub agents: Vec<AgentConfig>,
    pub agent_selection: AgentSelection,
    pub verifiers: Vec<VerifierConfig>,
    /// Names of those that must pass.
    pub required_verifiers: Vec<String>,
    /// Names of those that the configuration requires, whatever the task says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_verifiers: Vec<String>,
    /// Whether the checks are run once before the first session. (Older versions didn't.)
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub baseline: bool,
    /// What the run may do to the original tests.
    #[serde(default, skip_serializing_if = "TestsPolicy::is_usual")]
    pub tests: TestsPolicy,
    /// What the dashboard and the API may do to the run.
    #[serde(default, skip_serializing_if = "Mode::is_usual")]
    pub mode: Mode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_proof: Option<RequiredProof>,
    /// The word inside `<promise>…</promise>`.
    pub completion_promise: String,
    pub completion: Completion,
    /// Restore the files with the best number if an iteration made it worse.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_best: bool,
    pub checkpoint_commits: bool,
    /// The agent may commit on the run's branch.
    pub allow_agent_commits: bool,
    /// Also commit `.ralph/`.
    pub commit_state: bool,
    pub commit_author: Option<String>,
    pub commit_email: Option<String>,
    pub budgets: Budgets,
    pub strict_budget: bool,
    /// Paths that must not change.
    pub protected_paths: Vec<String>,
    /// Globs that add files to the harness, or with `!` exclude some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub harness: Vec<String>,
    pub setup_commands: Vec<CommandLine>,
    /// Whether setup commands were detected from the repo's files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub setup_guessed: bool,
    pub stuck_detection: StuckConfig,
    /// Score from which the run counts as stuck.
    pub gutter_score: f64,
    /// What to do then, if nothing helps.
    pub on_stuck: OnStuck,
    #[serde(default)]
    pub doctor: DoctorConfig,
    #[serde(default)]
    pub critic: CriticConfig,
    #[serde(default)]
    pub roles: Vec<RoleConfig>,
    pub isolation: Isolation,
    #[serde(default)]
    pub sandbox: SandboxConfig,
    /// Hosts that commands may reach in addition to the default ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_hosts: Vec<String>,
    /// Variables of the user's environment that commands may see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pass_env: Vec<String>,
    /// Which of the user's settings sandboxed agent CLIs get in addition to their login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub share: Vec<Share>,
    /// More files and folders of the machine that sandboxed commands can read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandbox_read: Vec<String>,
    /// What the agent's copy of the repo holds in addition to tracked and unignored files.
    #[serde(default, skip_serializing_if = "WorkspaceConfig::is_usual")]
    pub workspace: WorkspaceConfig,
    /// Cooldown without a reset time.
    pub default_cooldown: Duration,
    #[serde(default)]
    pub models: Models,
    #[serde(default)]
    pub handover: Handover,
}

impl Settings {
    /// The verifiers that must pass, in order.
    pub fn required(&self) -> impl Iterator<Item = &VerifierConfig> {
        self.verifiers.iter().filter(|v| self.required_verifiers.contains(&v.name))
    }
    pub fn agent(&self, name: &AgentName) -> Option<&AgentConfig> {
        self.agents.iter().find(|a| a.name == *name)
    }
    /// Why these agents (all, without a name) can't take a model: one that `ralph` calls itself needs a known profile.
    pub fn unknown_model(&self, agent: Option<&AgentName>, model: &str) -> Option<(String, String)> {
        let mut meant = self.agents.iter().filter(|a| agent.is_none_or(|name| a.name == *name));
        let caller = meant.find(|a| a.kind.calls_model())?;
        self.models.get(model).is_none().then(|| {
            let name = one_line(model, 60);
            (
                format!("model profile `{name}` doesn't exist (agent `{}`)", caller.name),
                self.models.known_for(model),
            )
        })
    }
    /// An agent's cooldown if its limit has no reset time.
    pub fn cooldown_of(&self, name: &AgentName) -> Duration {
        self.agent(name)
            .and_then(|a| a.rate_limit_detection.default_cooldown_seconds)
            .map_or(self.default_cooldown, Duration::from_secs)
    }
}
