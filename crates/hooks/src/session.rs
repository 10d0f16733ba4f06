//! The message at a session's start: the next story and where the memory is.

use crate::input::HookInput;
use crate::marker::{self, Marker};
use crate::project::Project;
use crate::reply::Reply;
use crate::{HookContext, memory};
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_safe_fs::{Links, SafeDir};
use ralph_loop_task::dialect::plan::plan_order;
use ralph_loop_task::dialect::plan::plan_order::Due;
use ralph_loop_task::dialect::plan::prd_tasks;

const TASKS_MAX: u64 = 4 * 1024 * 1024;

/// The message when a session begins, continues, or was compacted. Context alerts start again.
pub(crate) fn answer(input: &HookInput, project: &Project, context: &HookContext) -> Reply {
    memory::forget(input, context);
    let marker = marker::of_session(project, context);
    match session_message(project, marker.as_ref()) {
        Some(text) => Reply::context("SessionStart", &text),
        None => Reply::pass(),
    }
}

fn session_message(project: &Project, marker: Option<&Marker>) -> Option<String> {
    let top = SafeDir::open(&project.top).ok()?;
    let plan = marker.and_then(|marker| marker.plan.as_ref());
    let tasks = plan.map_or("ralph/tasks.json", |plan| plan.tasks.as_str());
    let progress = plan.map_or("ralph/progress.txt", |plan| plan.progress.as_str());
    let text = top.read_text(tasks, Links::Inside, TASKS_MAX).ok();
    let next = match text.as_deref().map(prd_tasks::parse_text) {
        Some(Ok(plan)) => Some(standing(tasks, &plan.user_stories)),
        Some(Err(problem)) => {
            Some(format!("`{tasks}` can't be read: {}. Fix it first.", one_line(&problem, 300)))
        }
        None => None,
    };
    match (marker, next) {
        (Some(marker), Some(next)) => Some(format!(
            "You are iteration {} of a ralph loop. {next} What earlier sessions learned is in `{progress}`; read it first and add your entry at its end before you stop.",
            marker.iteration
        )),
        (Some(marker), None) => Some(format!(
            "You are iteration {} of a ralph loop. What earlier sessions left is in `.ralph/progress.md`; add what you did and learned before you stop.",
            marker.iteration
        )),
        (None, Some(next)) => Some(format!(
            "This project has a ralph plan. {next} What sessions have learned is in `{progress}`. `ralph run` works through it; /ralph-status shows where it stands."
        )),
        (None, None) => None,
    }
}

fn standing(tasks: &str, stories: &[prd_tasks::Story]) -> String {
    let done = stories.iter().filter(|story| story.passes).count();
    let next = match plan_order::due(stories) {
        Due::Story(story) => format!(
            "Next is {}: {}.",
            one_line(&story.id, 64),
            one_line(&story.title, 200).trim_end_matches('.')
        ),
        Due::Blocked(_) => "Every open story waits for another one.".to_owned(),
        Due::Nothing => "Every story passes.".to_owned(),
    };
    format!("{done} of {} stories in `{tasks}` pass. {next}", stories.len())
}
