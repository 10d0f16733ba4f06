//! The content of a task file in any dialect: goal, criteria, commands, budgets, git, sandbox and model choices.

use crate::command_line::CommandLine;
pub use crate::config::Publish;
use crate::config::settings::VERIFY;
use crate::config::{ConfigFile, Expect, VerifierConfig};
use crate::criterion::{Check, Criterion, Span, VerifyCommand};
use crate::dialect::metric_section::MetricSection;
use crate::dialect::plan::prd_tasks::Story;
use crate::dialect::template::{self, Vars};
pub use crate::spec::Dialect;
use ralph_loop_protocol::display::text::one_line;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What starts the final checks. The engine's checks always decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    Promise,
    /// The promise, or every story marked as passing.
    Claim,
    /// Nothing: the checks run after every iteration.
    Checks,
}

/// Where the code comes from and where the result goes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GitChoice {
    /// The repo to clone; `None` works in the run's folder.
    pub repo_url: Option<String>,
    /// The branch to start from; may be another branch of `ralph`.
    pub base_branch: Option<String>,
    pub branch: Option<String>,
    pub working_dir: Option<String>,
    pub commit_author: Option<String>,
    pub commit_email: Option<String>,
    pub create_pr: Option<bool>,
    /// What the dialect publishes by default; `None` leaves it to flags and config.
    pub publish: Option<Publish>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PrChoice {
    pub draft: Option<bool>,
    pub labels: Vec<String>,
    pub title_template: Option<String>,
    pub body_template: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SandboxChoice {
    /// `local`, `docker`, `sbx`, `daytona`, `e2b` or `vercel`.
    pub provider: Option<String>,
    pub image: Option<String>,
    pub vcpu: Option<f64>,
    pub memory_gib: Option<f64>,
    pub disk_gib: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ModelChoice {
    pub default_profile: Option<String>,
    /// The profile to switch to when the run is stuck.
    pub fallback_profile: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskFile {
    pub dialect: Dialect,
    pub source: String,
    pub title: String,
    pub goal: String,
    /// Stable id, safe in paths and branch names.
    pub task_id: String,
    pub ticket_id: Option<String>,
    /// One line: the value of `{{task_summary}}`.
    pub summary: String,
    pub slug: String,
    pub criteria: Vec<Criterion>,
    /// The stories of a plan; each is also a criterion.
    pub stories: Vec<Story>,
    /// Commands that must pass in addition to those of criteria.
    pub global_verify: Vec<VerifyCommand>,
    pub test_command: Option<CommandLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<MetricSection>,
    /// What corresponds to configuration keys: budgets, protected paths, setup commands, author.
    pub settings: ConfigFile,
    pub completion: Completion,
    pub git: GitChoice,
    pub pr: PrChoice,
    pub sandbox: SandboxChoice,
    pub model: ModelChoice,
    /// Files shown to the agent, relative to the workspace.
    pub context_files: Vec<String>,
    pub rules: Vec<String>,
    /// The positions of the file's keys, by name (`pr.draft` for nested ones).
    #[serde(skip)]
    pub keys: BTreeMap<String, Span>,
}

/// The verifier name of a command of the whole task.
pub(crate) fn verify_name(at: usize) -> String {
    format!("{VERIFY}{}", at + 1)
}

impl TaskFile {
    /// A task with only a name and a text.
    pub(crate) fn new(dialect: Dialect, source: &str, title: &str, goal: String) -> Self {
        Self {
            dialect,
            source: source.to_owned(),
            title: title.to_owned(),
            goal,
            task_id: super::names::derived_id(title),
            ticket_id: None,
            summary: one_line(title, 72),
            slug: super::names::slug(title),
            criteria: Vec::new(),
            stories: Vec::new(),
            global_verify: Vec::new(),
            test_command: None,
            metric: None,
            settings: ConfigFile { protected_paths: Some(vec![source.to_owned()]), ..ConfigFile::default() },
            completion: Completion::Checks,
            git: GitChoice::default(),
            pr: PrChoice::default(),
            sandbox: SandboxChoice::default(),
            model: ModelChoice::default(),
            context_files: Vec::new(),
            rules: Vec::new(),
            keys: BTreeMap::new(),
        }
    }

    /// The template values known before the run starts.
    pub fn vars(&self) -> Vars {
        Vars::new()
            .with("task_id", &self.task_id)
            .with("task_summary", &self.summary)
            .with("summary", &self.summary)
            // A task without a ticket uses its id.
            .with("ticket_id", self.ticket_id.as_ref().unwrap_or(&self.task_id))
    }

    /// Fills `vars` into goal, title, branch and pull request. Commands stay as written: the shell uses braces
    /// itself.
    pub fn filled(mut self, vars: &Vars) -> Self {
        let fill = |text: &mut String| *text = template::fill(text, vars);
        fill(&mut self.goal);
        fill(&mut self.title);
        let texts = [&mut self.git.branch, &mut self.pr.title_template];
        texts.into_iter().flatten().for_each(fill);
        // The pull request's text needs the agent's summary, which comes later.
        let vars = vars.clone().without("summary");
        if let Some(body) = &mut self.pr.body_template {
            *body = template::fill(body, &vars);
        }
        self
    }

    /// The commands of the whole task as verifiers: `tests` for the test command, `verify-1` and so on for the rest,
    /// `metric` for the numeric goal. Equal commands run once.
    pub fn verifiers(&self) -> Vec<VerifierConfig> {
        let mut out: Vec<VerifierConfig> = Vec::new();
        let named = self.test_command.iter().map(|command| ("tests".to_owned(), command, None));
        let rest = self.global_verify.iter().enumerate().map(|(at, verify)| {
            (verify_name(at), verify.command(), verify.output().ok().flatten().map(Expect::Output))
        });
        for (name, command, expect) in named.chain(rest) {
            let argv = command.argv();
            if !out.iter().any(|known| known.command_argv == argv && known.expect == expect) {
                out.push(VerifierConfig { expect, ..VerifierConfig::command(name, argv) });
            }
        }
        out.extend(self.metric.iter().map(MetricSection::verifier));
        out
    }

    /// Every command that the task runs as a check, with its position, in file order.
    pub fn commands(&self) -> Vec<(&CommandLine, Span)> {
        let key = |name: &str| self.keys.get(name).copied().unwrap_or_default();
        let mut out: Vec<(&CommandLine, Span)> = Vec::new();
        out.extend(self.test_command.iter().map(|c| (c, key("test_command"))));
        let verify = if self.dialect == Dialect::Plan { "verifyCommands" } else { "verify_commands" };
        out.extend(self.global_verify.iter().enumerate().map(|(at, c)| {
            (c.command(), self.keys.get(&verify_name(at)).copied().unwrap_or_else(|| key(verify)))
        }));
        out.extend(self.metric.iter().map(|metric| (&metric.command, key("metric"))));
        out.extend(self.criteria.iter().filter_map(|c| Some((c.check.command()?, c.place))));
        out
    }

    /// The positions of its verifiers, by name.
    pub fn check_places(&self) -> BTreeMap<String, Span> {
        let key = |name: &str| self.keys.get(name).copied();
        let place = |name: &str| match name {
            "tests" => key("test_command"),
            name => key(name).or_else(|| key("verify_commands")).or_else(|| key("verifyCommands")),
        };
        let whole = self.verifiers().into_iter().map(|verifier| {
            let place = place(&verifier.name).unwrap_or_default();
            (verifier.name, place)
        });
        let criteria = self.criteria.iter().map(|criterion| (criterion.id.clone(), criterion.place));
        whole.chain(criteria).collect()
    }

    /// Whether the engine itself can check when the task is done.
    pub fn is_checkable(&self) -> bool {
        self.test_command.is_some()
            || !self.global_verify.is_empty()
            || self.criteria.iter().any(|c| c.check.is_own())
    }

    /// Whether a criterion can only be evaluated by a code host.
    pub fn needs_forge(&self) -> bool {
        self.criteria.iter().any(|c| matches!(c.check, Check::PrChecksPass | Check::PrApproved))
    }
}
