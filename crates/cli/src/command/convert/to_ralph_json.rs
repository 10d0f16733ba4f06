//! A task as `ralph.json`.

use super::ConvertedFile;
use super::draft::TaskDraft;
use crate::error::CommandError;
use crate::task_files::pretty;
use ralph_domain::config::CommandLine;
use ralph_domain::criterion::Check;
use ralph_domain::dialect::ralph_json::{BudgetSection, Entry, GitSection, RalphJson, Repository};
use ralph_domain::dialect::{Dialect, Publish, names};
use std::path::Path;

/// Renders the file.
pub fn write(draft: &mut TaskDraft, to: &Path) -> Result<ConvertedFile, CommandError> {
    draft.lose_task_only("ralph.json");
    draft.lose_if(
        "max_consecutive_gutter",
        draft.task.settings.max_consecutive_gutter,
        "set it in `.ralph/config.json`",
    );
    let entries = entries(draft);
    let task = &draft.task;
    let is_own_branch = task.git.branch.as_ref() != Some(&names::branch(&task.task_id, &task.slug));
    // An id that the file itself gives becomes the ticket: `ralph.json` takes its task id from there.
    let ticket =
        task.ticket_id.clone().or_else(|| task.keys.contains_key("task_id").then(|| task.task_id.clone()));
    let wants_pr = task.git.publish == Some(Publish::Pr) || task.git.create_pr == Some(true);
    let repository = Repository {
        url: task.git.repo_url.clone(),
        branch: task.git.base_branch.clone(),
        working_dir: task.git.working_dir.clone(),
    };
    let git = GitSection {
        feature_branch: task
            .git
            .branch
            .clone()
            .filter(|_| is_own_branch || task.dialect == Dialect::RalphTaskMd),
        commit_author: task.git.commit_author.clone(),
        commit_email: task.git.commit_email.clone(),
        create_pr: wants_pr.then_some(true),
        pr_title: task.pr.title_template.clone(),
        pr_body_template: task.pr.body_template.clone(),
    };
    let budget = BudgetSection {
        max_tokens: task.settings.max_tokens_total,
        max_cost_usd: task.settings.max_cost_usd_estimate,
        max_wall_time_minutes: task.settings.max_wall_time_minutes,
    };
    let file = RalphJson {
        version: Some(2),
        task: text(draft),
        ticket_id: ticket,
        repository: (repository != Repository::default()).then_some(repository),
        git: (git != GitSection::default()).then_some(git),
        acceptance_criteria: entries,
        max_iterations: task.settings.max_iterations,
        budget: (budget != BudgetSection::default()).then_some(budget),
        context_files: task.context_files.clone(),
        rules: task.rules.clone(),
        setup_commands: task.settings.setup_commands.clone().unwrap_or_default(),
        protected_paths: draft.own_protected_paths(),
        tests: task.settings.tests,
        require_proof: task.settings.require_proof,
        ..RalphJson::default()
    };
    Ok(ConvertedFile { files: vec![(to.to_owned(), pretty("ralph.json", &file)?)], config: None })
}

fn text(draft: &TaskDraft) -> String {
    let mut text = draft.task.title.clone();
    if !draft.text.is_empty() {
        text.push_str(&format!("\n\n{}", draft.text));
    }
    let claims = draft.claims();
    if !claims.is_empty() {
        text.push_str(&format!("\n\nWhat must be true at the end:\n{}", claims.join("\n")));
    }
    text
}

fn entries(draft: &mut TaskDraft) -> Vec<Entry> {
    let mut out: Vec<Entry> = Vec::new();
    for criterion in draft.task.criteria.clone() {
        let mut entry = Entry {
            id: Some(criterion.id.clone()),
            description: Some(criterion.text.clone()).filter(|text| !text.is_empty()),
            ..Entry::default()
        };
        let kind = match criterion.check {
            Check::Command { command } => {
                entry.command = Some(command);
                "command_succeeds"
            }
            Check::CommandOutput { command, pattern } => {
                entry.command = Some(command);
                entry.pattern = Some(pattern.as_str().to_owned());
                "command_output"
            }
            Check::FileExists { path } => {
                entry.path = Some(path);
                "file_exists"
            }
            Check::FileContains { path, pattern } => {
                entry.path = Some(path);
                entry.pattern = Some(pattern.as_str().to_owned());
                "file_contains"
            }
            Check::PrChecksPass => "pr_checks_pass",
            Check::PrApproved => "pr_approved",
            Check::Claimed => {
                draft.lose(criterion.id, "has no check of its own: it is part of the task's text");
                continue;
            }
        };
        if criterion.ticked {
            draft.lose(criterion.id, "was ticked; `ralph.json` keeps no ticks");
        }
        entry.kind = kind.into();
        out.push(entry);
    }
    for command in draft.commands() {
        let is_there =
            |entry: &Entry| entry.kind == "command_succeeds" && entry.command.as_ref() == Some(&command);
        if !out.iter().any(is_there) {
            out.push(command_entry(command));
        }
    }
    out
}

fn command_entry(command: CommandLine) -> Entry {
    let description = Some(format!("`{}` passes", command.display()));
    Entry { kind: "command_succeeds".into(), description, command: Some(command), ..Entry::default() }
}
