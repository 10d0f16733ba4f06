//! A task as its file says it, whatever the dialect: goal, criteria, commands, budgets, git, sandbox and model choices.

use crate::command_line::CommandLine;
pub use crate::config::Publish;
use crate::config::{ConfigFile, VerifierConfig};
use crate::criterion::{Check, Criterion, Span};
use crate::dialect::metric_section::MetricSection;
use crate::dialect::prd_tasks::Story;
use crate::dialect::template::{self, Vars};
pub use crate::spec::Dialect;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What starts the final checks. The engine's own checks decide in every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// The promise.
    Promise,
    /// The promise, or every story marked as passing.
    Claim,
    /// Nothing: the checks run after every iteration.
    Checks,
}

/// Where the code comes from and where the result goes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GitChoice {
    /// What is cloned; `None` works on the folder of the run.
    pub repo_url: Option<String>,
    /// What the work starts from; may be another branch of ralph.
    pub base_branch: Option<String>,
    /// The branch of the run, possibly with names still to be filled in.
    pub branch: Option<String>,
    /// Folder below the workspace that the agent is kept to.
    pub working_dir: Option<String>,
    /// Author name of commits.
    pub commit_author: Option<String>,
    /// Author mail address of commits.
    pub commit_email: Option<String>,
    /// Whether the file asks for a pull request.
    pub create_pr: Option<bool>,
    /// What the dialect publishes by default; `None` leaves it to flags and config.
    pub publish: Option<Publish>,
}

/// How the pull request looks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PrChoice {
    /// Opened as a draft.
    pub draft: Option<bool>,
    /// Its labels.
    pub labels: Vec<String>,
    /// Its title, a template.
    pub title_template: Option<String>,
    /// Its text, a template.
    pub body_template: Option<String>,
}

/// Where the agent works.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SandboxChoice {
    /// `local`, `docker`, `sbx`, `daytona`, `e2b` or `vercel`.
    pub provider: Option<String>,
    /// Image to start from.
    pub image: Option<String>,
    /// Processors.
    pub vcpu: Option<f64>,
    /// Memory.
    pub memory_gib: Option<f64>,
    /// Disk.
    pub disk_gib: Option<f64>,
}

/// Which model profiles the task asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ModelChoice {
    /// The profile to work with.
    pub default_profile: Option<String>,
    /// The profile to switch to when the run circles.
    pub fallback_profile: Option<String>,
}

/// A task as its file says it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskFile {
    /// How it was written.
    pub dialect: Dialect,
    /// The main file as the caller named it.
    pub source: String,
    /// A short name for people.
    pub title: String,
    /// The text given to agents.
    pub goal: String,
    /// Stable id, safe in paths and branch names.
    pub task_id: String,
    /// The ticket that the file names.
    pub ticket_id: Option<String>,
    /// One line: what `{{task_summary}}` stands for.
    pub summary: String,
    /// The title as part of a branch name.
    pub slug: String,
    /// What makes it done.
    pub criteria: Vec<Criterion>,
    /// The stories of a plan; each is a criterion too.
    pub stories: Vec<Story>,
    /// Commands that must pass besides those of single criteria.
    pub global_verify: Vec<CommandLine>,
    /// The one gate of the whole task.
    pub test_command: Option<CommandLine>,
    /// The number that is the goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<MetricSection>,
    /// What maps on configuration keys: budgets, protected paths, set-up commands, author.
    pub settings: ConfigFile,
    /// What starts the final checks.
    pub completion: Completion,
    /// Repository and branch.
    pub git: GitChoice,
    /// Pull request.
    pub pr: PrChoice,
    /// Sandbox.
    pub sandbox: SandboxChoice,
    /// Model profiles.
    pub model: ModelChoice,
    /// Files shown to the agent, relative to the workspace.
    pub context_files: Vec<String>,
    /// Standing rules, given to every session.
    pub rules: Vec<String>,
    /// Where the keys of the file stand, by name (`pr.draft` for nested ones).
    #[serde(skip)]
    pub keys: BTreeMap<String, Span>,
}

impl TaskFile {
    /// A task with nothing but a name and a text.
    pub(crate) fn new(dialect: Dialect, source: &str, title: &str, goal: String) -> Self {
        Self {
            dialect,
            source: source.to_owned(),
            title: title.to_owned(),
            goal,
            task_id: super::names::derived_id(title),
            ticket_id: None,
            summary: ralph_loop_protocol::text::one_line(title, 72),
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

    /// What templates can be filled with before the run starts.
    pub fn vars(&self) -> Vars {
        Vars::new()
            .with("task_id", &self.task_id)
            .with("task_summary", &self.summary)
            .with("summary", &self.summary)
            // A task without a ticket is known by its own id.
            .with("ticket_id", self.ticket_id.as_ref().unwrap_or(&self.task_id))
    }

    /// The same with `vars` filled into goal, title, branch and pull request. Commands stay as they are written: the
    /// shell has braces of its own.
    pub fn filled(mut self, vars: &Vars) -> Self {
        let fill = |text: &mut String| *text = template::fill(text, vars);
        fill(&mut self.goal);
        fill(&mut self.title);
        let texts = [&mut self.git.branch, &mut self.pr.title_template];
        texts.into_iter().flatten().for_each(fill);
        // The text of the pull request tells what was done, which the agent says later.
        let vars = vars.clone().without("summary");
        if let Some(body) = &mut self.pr.body_template {
            *body = template::fill(body, &vars);
        }
        self
    }

    /// The commands of the whole task as verifiers: `tests` for the test command, `verify-1` and so on for the rest,
    /// `metric` for the number that is the goal. A command that is named twice is run once.
    pub fn verifiers(&self) -> Vec<VerifierConfig> {
        let mut seen: Vec<&CommandLine> = Vec::new();
        let mut out = Vec::new();
        let named = self.test_command.iter().map(|command| ("tests".to_owned(), command));
        let rest = self.global_verify.iter().enumerate().map(|(at, c)| (format!("verify-{}", at + 1), c));
        for (name, command) in named.chain(rest) {
            if seen.contains(&command) {
                continue;
            }
            seen.push(command);
            out.push(VerifierConfig::command(name, command.argv()));
        }
        out.extend(self.metric.iter().map(MetricSection::verifier));
        out
    }

    /// Every command that the task has run as a check, each with its place, in the order of the file.
    pub fn commands(&self) -> Vec<(&CommandLine, Span)> {
        let key = |name: &str| self.keys.get(name).copied().unwrap_or_default();
        let mut out: Vec<(&CommandLine, Span)> = Vec::new();
        out.extend(self.test_command.iter().map(|c| (c, key("test_command"))));
        let verify = if self.dialect == Dialect::Plan { "verifyCommands" } else { "verify_commands" };
        out.extend(self.global_verify.iter().map(|c| (c, key(verify))));
        out.extend(self.metric.iter().map(|metric| (&metric.command, key("metric"))));
        out.extend(self.criteria.iter().filter_map(|c| Some((c.check.command()?, c.place))));
        out
    }

    /// Whether anything the engine can check itself says when the task is done.
    pub fn is_checkable(&self) -> bool {
        self.test_command.is_some()
            || !self.global_verify.is_empty()
            || self.criteria.iter().any(|c| c.check.is_own())
    }

    /// Whether a criterion can only be evaluated where a code host answers.
    pub fn needs_forge(&self) -> bool {
        self.criteria.iter().any(|c| matches!(c.check, Check::PrChecksPass | Check::PrApproved))
    }
}
