//! A task between two dialects: what it says, its prose, and what gets lost on the way.

use super::markdown;
use crate::error::CommandError;
use ralph_app::task_source::TaskSource;
use ralph_app::{Environment, find, settings};
use ralph_domain::config::{CommandLine, ConfigFile};
use ralph_domain::criterion::{Check, Criterion, Span};
use ralph_domain::dialect::{Dialect, MetricSection, TaskFile, prd_tasks};
use ralph_domain::text::one_line;
use serde::Serialize;

/// Something that the other dialect cannot say, or says differently.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ConversionLoss {
    /// The key or the id.
    pub field: String,
    /// What becomes of it.
    pub reason: String,
}

/// A task on its way.
#[derive(Debug)]
pub struct TaskDraft {
    /// What it says.
    pub task: TaskFile,
    /// Its prose, without the title, the criteria and the rules.
    pub text: String,
    /// What gets lost.
    pub lost: Vec<ConversionLoss>,
}

impl TaskDraft {
    /// Takes a task that was read. Verifiers and budgets of dialects without their own come from the configuration.
    pub fn new(env: &Environment, mut task: TaskFile, source: &TaskSource) -> Result<Self, CommandError> {
        let text = match task.dialect {
            Dialect::Plan => match source.files.beside("prd.md") {
                Some((_, prd)) if !prd.trim().is_empty() => prd.replace("\r\n", "\n"),
                _ => prd_tasks::parse_text(source.files.text()).map(|t| t.description).unwrap_or_default(),
            },
            _ => task.goal.clone(),
        };
        let text = markdown::without_title(&text, &task.title);
        let text = match task.dialect {
            Dialect::RalphTaskMd => {
                markdown::without_sections(&text, &["success criteria", "constraints", "definition of done"])
            }
            _ => text,
        };
        if matches!(task.dialect, Dialect::Plan | Dialect::PromptMd) {
            configured(env, &mut task, source)?;
        }
        let text = match task.dialect {
            Dialect::PromptMd => accepted(&mut task, text),
            _ => text,
        };
        if task.dialect == Dialect::Plan {
            // The requirements are part of the text now.
            task.context_files.clear();
        }
        let mut draft = Self { task, text, lost: Vec::new() };
        if draft.task.dialect == Dialect::Plan {
            draft.stories_are_flat();
        }
        Ok(draft)
    }

    /// Notes that something gets lost.
    pub fn lose(&mut self, field: impl Into<String>, reason: impl Into<String>) {
        self.lost.push(ConversionLoss { field: field.into(), reason: reason.into() });
    }

    /// Notes a field that has a value and no place.
    pub fn lose_if<T>(&mut self, field: &str, value: Option<T>, reason: &str) {
        if value.is_some() {
            self.lose(field, reason);
        }
    }

    fn stories_are_flat(&mut self) {
        let stories = &self.task.stories;
        let has_order = stories.iter().any(|s| !s.depends_on.is_empty());
        let has_notes = stories.iter().any(|s| !s.notes.trim().is_empty());
        if has_order {
            self.lose("dependsOn", "only a plan has an order of its own; the order of the list stays");
        }
        if has_notes {
            self.lose("notes", "only a plan keeps notes of its stories");
        }
    }

    /// What only `ralph_task.md` can say.
    pub fn lose_task_only(&mut self, target: &str) {
        let (pr, sandbox, model) = (self.task.pr.clone(), self.task.sandbox.clone(), self.task.model.clone());
        let none = format!("`{target}` has no such key");
        self.lose_if("pr.draft", pr.draft, &none);
        self.lose_if("pr.labels", pr.labels.first(), &none);
        self.lose_if("sandbox_provider", sandbox.provider, &none);
        self.lose_if("sandbox_image", sandbox.image, &none);
        self.lose_if("sandbox_resources", sandbox.vcpu.or(sandbox.memory_gib).or(sandbox.disk_gib), &none);
        self.lose_if("model_profile_default", model.default_profile, &none);
        self.lose_if("model_profile_fallback", model.fallback_profile, &none);
        if target != "PROMPT.md" {
            let there = "make it a verifier of `.ralph/config.json`, with `metric` and `keep_best`";
            self.lose_if("metric", self.task.metric.clone(), there);
        }
        if self.task.criteria.iter().any(|c| c.milestone.is_some()) {
            self.lose("milestones", format!("`{target}` has no milestones; the ids keep their numbers"));
        }
    }

    /// What a dialect without a repository, a branch and a pull request cannot say.
    pub fn lose_repository(&mut self, target: &str, keeps_branch: bool) {
        let (git, pr) = (self.task.git.clone(), self.task.pr.clone());
        let is_written = ["target_branch_prefix", "target_branch_slug", "git.feature_branch", "branchName"]
            .iter()
            .any(|key| self.task.keys.contains_key(*key));
        self.lose_if("repo_url", git.repo_url, "name it when the run starts: `ralph run --clone URL`");
        self.lose_if("base_branch", git.base_branch, "the run starts from the branch that is checked out");
        self.lose_if("working_dir", git.working_dir, &format!("`{target}` works on the whole repository"));
        if is_written && !keeps_branch {
            self.lose("branch", "name it when the run starts: `ralph run --branch NAME`");
        }
        self.lose_if("pr title", pr.title_template, &format!("`{target}` opens no pull request by itself"));
        self.lose_if("pr body", pr.body_template, &format!("`{target}` opens no pull request by itself"));
        let ticket = self.task.ticket_id.clone();
        self.lose_if("ticket_id", ticket, &format!("`{target}` has no such key"));
    }

    /// The part of the task that `.ralph/config.json` holds for dialects without settings of their own.
    pub fn config(&self) -> ConfigFile {
        let said = &self.task.settings;
        let own: Vec<String> = self.own_protected_paths();
        ConfigFile {
            version: Some(1),
            max_iterations: said.max_iterations,
            max_wall_time_minutes: said.max_wall_time_minutes,
            max_cost_usd_estimate: said.max_cost_usd_estimate,
            max_tokens_total: said.max_tokens_total,
            max_consecutive_gutter: said.max_consecutive_gutter,
            setup_commands: said.setup_commands.clone(),
            tests: said.tests,
            require_proof: said.require_proof,
            commit_author: said.commit_author.clone(),
            commit_email: said.commit_email.clone(),
            protected_paths: (!own.is_empty()).then_some(own),
            ..ConfigFile::default()
        }
    }

    /// Protected paths beside those that every task of its dialect protects.
    pub fn own_protected_paths(&self) -> Vec<String> {
        let source = self.task.source.as_str();
        let is_side = |path: &str| {
            self.task.dialect == Dialect::Plan && (path.ends_with("prd.md") || path.ends_with("prompt.md"))
        };
        let all = self.task.settings.protected_paths.iter().flatten();
        all.filter(|path| *path != source && !is_side(path)).cloned().collect()
    }

    /// Names what would have gone into a configuration that is there already.
    pub fn keep_out_of_config(&mut self, config: &ConfigFile, there: &ConfigFile) {
        let value = serde_json::to_value(config).unwrap_or_default();
        let there = serde_json::to_value(there).unwrap_or_default();
        let said = value.as_object().into_iter().flatten().filter(|(key, _)| *key != "version");
        for (key, value) in said.filter(|(key, value)| there.get(key) != Some(value)) {
            let said = one_line(&value.to_string(), 200);
            self.lose(key, format!("belongs into `.ralph/config.json`, which was left as it is: {said}"));
        }
    }

    /// Every command of the whole task, each once.
    pub fn commands(&self) -> Vec<CommandLine> {
        let mut out: Vec<CommandLine> = Vec::new();
        for command in self.task.test_command.iter().chain(&self.task.global_verify) {
            if !out.contains(command) {
                out.push(command.clone());
            }
        }
        out
    }

    /// The criteria that have no check of their own, with what their stories say, as a list.
    pub fn claims(&self) -> Vec<String> {
        let claimed = self.task.criteria.iter().filter(|c| c.check == Check::Claimed);
        claimed
            .map(|criterion| {
                let mut line = format!("- {}: {}", criterion.id, criterion.text);
                if let Some(story) = self.task.stories.iter().find(|s| s.id == criterion.id) {
                    if !story.description.trim().is_empty() {
                        line.push_str(&format!(". {}", one_line(&story.description, 400)));
                    }
                    for accepted in &story.acceptance_criteria {
                        line.push_str(&format!("\n  - {}", one_line(accepted, 400)));
                    }
                }
                line
            })
            .collect()
    }
}

/// Verifiers and budgets of the configuration that a run of this task would take.
fn configured(env: &Environment, task: &mut TaskFile, source: &TaskSource) -> Result<(), CommandError> {
    let loaded = settings::load(env, &find::top(&source.folder))?.file;
    let said = &mut task.settings;
    said.max_iterations = said.max_iterations.or(loaded.max_iterations);
    said.max_wall_time_minutes = said.max_wall_time_minutes.or(loaded.max_wall_time_minutes);
    said.max_cost_usd_estimate = said.max_cost_usd_estimate.or(loaded.max_cost_usd_estimate);
    said.max_tokens_total = said.max_tokens_total.or(loaded.max_tokens_total);
    said.max_consecutive_gutter = said.max_consecutive_gutter.or(loaded.max_consecutive_gutter);
    said.setup_commands = loaded.setup_commands.clone();
    if task.dialect == Dialect::PromptMd {
        let resolved = loaded.resolve();
        let required = resolved.verifiers.iter().filter(|v| resolved.required_verifiers.contains(&v.name));
        let commands: Vec<_> =
            required.filter(|v| !v.command_argv.is_empty()).map(|v| (v, shell(&v.command_argv))).collect();
        // A dialect that knows no numbers keeps the command at least.
        let mut lines = commands.iter().map(|(_, line)| line.clone());
        task.test_command = lines.next();
        task.global_verify = lines.collect();
        let measured = commands.iter().find_map(|(verifier, line)| MetricSection::of(verifier, line.clone()));
        task.settings.keep_best = measured.as_ref().map(|_| resolved.keep_best);
        task.metric = measured;
    }
    Ok(())
}

/// What a prompt lists as its acceptance becomes criteria; the text without it.
fn accepted(task: &mut TaskFile, text: String) -> String {
    const HEADINGS: &[&str] =
        &["acceptance", "acceptance criteria", "success criteria", "definition of done", "done when"];
    let items = markdown::items_of(&text, HEADINGS);
    if items.is_empty() {
        return text;
    }
    task.criteria = items
        .into_iter()
        .enumerate()
        .map(|(at, text)| Criterion {
            id: format!("M1.{}", at + 1),
            text,
            milestone: None,
            check: Check::Claimed,
            ticked: false,
            place: Span::START,
        })
        .collect();
    markdown::without_sections(&text, HEADINGS)
}

/// A verifier's command as a person would type it.
pub fn typed(argv: &[String]) -> String {
    shell(argv).display()
}

/// `sh -c LINE` as the line itself.
fn shell(argv: &[String]) -> CommandLine {
    match argv {
        [sh, flag, line] if sh == "sh" && flag == "-c" => CommandLine::Shell(line.clone()),
        _ => CommandLine::Argv(argv.to_vec()),
    }
}
