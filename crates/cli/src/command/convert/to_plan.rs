//! A task as a plan: `tasks.json` with `prd.md`, `progress.txt` and `prompt.md` beside it.

use super::ConvertedFile;
use super::draft::TaskDraft;
use crate::error::CommandError;
use crate::task_files::{NewTask, pretty};
use ralph_app::project::ProjectCommands;
use ralph_core::clock::SystemClock;
use ralph_domain::criterion::Check;
use ralph_domain::dialect::prd_tasks::{Story, TasksJson};
use ralph_domain::dialect::{Dialect, template};
use ralph_domain::ports::Clock as _;
use std::path::Path;

/// Renders the four files.
pub fn write(draft: &mut TaskDraft, to: &Path, folder: &Path) -> Result<ConvertedFile, CommandError> {
    draft.lose_task_only("tasks.json");
    let task = &draft.task;
    let branch = task.clone().filled(&task.vars()).git.branch.unwrap_or_default();
    let has_branch = template::open_names(&branch).is_empty();
    draft.lose_repository("tasks.json", has_branch);
    draft.lose_if("context_files", draft.task.context_files.first().cloned(), "name them in `prd.md`");
    let mut verify = draft.commands();
    let is_empty = verify.is_empty();
    let stories = stories(draft, is_empty);
    if is_empty {
        // A plan that nothing checks is refused: then every check of a criterion is one of the whole plan.
        verify = draft.task.criteria.iter().filter_map(|c| c.check.command().cloned()).collect();
        verify.dedup();
    }
    let task = &draft.task;
    let tasks = TasksJson {
        project: task.title.clone(),
        branch_name: if has_branch { branch } else { String::new() },
        description: task.summary.clone(),
        verify_commands: verify,
        user_stories: stories,
        ..TasksJson::default()
    };
    let mut prd = format!("# {}\n\n{}\n", task.title, draft.text);
    if !task.rules.is_empty() {
        let rules: Vec<String> = task.rules.iter().map(|rule| format!("- {rule}")).collect();
        prd.push_str(&format!("\n## Constraints\n\n{}\n", rules.join("\n")));
    }
    let commands = ProjectCommands::default();
    let new = NewTask {
        title: &task.title,
        base_branch: None,
        commands: &commands,
        now: SystemClock::default().now(),
    };
    let shown = to.parent().filter(|p| !p.as_os_str().is_empty()).map(|p| p.display().to_string());
    let prompt = match shown.as_deref() {
        Some("ralph") | None => new.plan_prompt(),
        Some(other) => new.plan_prompt().replace("`ralph/", &format!("`{other}/")),
    };
    let beside = |name: &str| to.with_file_name(name);
    let mut files = vec![(to.to_owned(), pretty("tasks.json", &tasks)?), (beside("prd.md"), prd)];
    // A log or a prompt that is there belongs to somebody's work; a plan can use it.
    for (name, text) in [("progress.txt", new.progress()), ("prompt.md", prompt)] {
        if !folder.join(beside(name)).exists() {
            files.push((beside(name), text));
        }
    }
    Ok(ConvertedFile { files, config: Some(draft.config()) })
}

fn stories(draft: &mut TaskDraft, checks_are_global: bool) -> Vec<Story> {
    let mut out = Vec::new();
    for criterion in draft.task.criteria.clone() {
        if criterion.check.needs_forge() {
            draft.lose(criterion.id, "a plan cannot ask the code host; `ralph.json` can");
            continue;
        }
        if criterion.check.is_own() && !(checks_are_global && criterion.check.command().is_some()) {
            draft.lose(
                &criterion.id,
                "its own check is an acceptance criterion in words now; only `verifyCommands` are run",
            );
        }
        let priority = i64::try_from(out.len() + 1).ok();
        let accepted = match &criterion.check {
            Check::Claimed => criterion.text.clone(),
            check => check.describe(),
        };
        out.push(Story {
            title: if criterion.text.trim().is_empty() {
                criterion.check.describe()
            } else {
                criterion.text.clone()
            },
            id: criterion.id,
            acceptance_criteria: vec![accepted],
            priority,
            passes: criterion.ticked,
            notes: if criterion.ticked { "ticked before the conversion".into() } else { String::new() },
            ..Story::default()
        });
    }
    if out.is_empty() {
        draft.lose("userStories", "the task has no criteria of its own: split it into stories");
        out.push(Story {
            id: "US-001".into(),
            title: draft.task.title.clone(),
            acceptance_criteria: vec!["Every verify command passes".into()],
            priority: Some(1),
            ..Story::default()
        });
    }
    debug_assert!(draft.task.dialect != Dialect::Plan, "a plan is not converted to a plan");
    out
}
