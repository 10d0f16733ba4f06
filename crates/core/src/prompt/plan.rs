//! A plan's part of a prompt: the next story, and what earlier sessions learned.

use super::PART_MAX;
use crate::record::plan_progress;
use ralph_loop_domain::state::RunState;
use ralph_loop_protocol::display::text::{head, one_line, tail};
use ralph_loop_safe_fs::{Links, SafeDir};
use ralph_loop_task::dialect::Dialect;
use ralph_loop_task::dialect::plan::plan_order;
use ralph_loop_task::dialect::plan::plan_order::Due;
use ralph_loop_task::dialect::plan::prd_tasks;
use ralph_loop_task::dialect::plan::prd_tasks::Story;
use std::fmt::Write as _;

const TASKS_MAX: u64 = 16 * 1024 * 1024;
const TEXT_MAX: usize = 4 * 1024;
const CRITERIA_MAX: usize = 50;

/// The plan's next story; empty for other tasks.
pub(super) fn next_story(state: &RunState) -> String {
    let task = &state.spec.task;
    if task.dialect != Dialect::Plan {
        return String::new();
    }
    let read = SafeDir::open(&state.spec.workspace)
        .and_then(|top| top.read_text(&task.source, Links::Inside, TASKS_MAX));
    let text = match read {
        Ok(text) => text,
        Err(error) => return format!("`{}` can't be read: {error}. Restore it first.", task.source),
    };
    let tasks = match prd_tasks::parse_text(&text) {
        Ok(tasks) => tasks,
        Err(problem) => return format!("`{}` can't be read: {problem}. Fix it first.", task.source),
    };
    let stories = &tasks.user_stories;
    let done = stories.iter().filter(|story| story.passes).count();
    let mut out = format!("{done} of {} stories pass.\n\n", stories.len());
    match plan_order::due(stories) {
        Due::Story(story) => describe(&mut out, story),
        Due::Blocked(ids) => {
            let _ = writeln!(
                out,
                "Every open story depends on one that doesn't pass: {}. Start with the one you can finish.",
                ids.iter()
                    .take(20)
                    .map(|id| format!("`{}`", one_line(id, 64)))
                    .collect::<Vec<_>>()
                    .join(", ")
            );
        }
        Due::Nothing => out.push_str("Every story passes. Run the checks.\n"),
    }
    out
}

fn describe(out: &mut String, story: &Story) {
    let _ = writeln!(out, "**{}: {}**", one_line(&story.id, 64), one_line(&story.title, 200));
    if !story.description.trim().is_empty() {
        let _ = writeln!(out, "\n{}", head(story.description.trim(), TEXT_MAX));
    }
    if !story.acceptance_criteria.is_empty() {
        out.push_str("\nAcceptance criteria:\n");
        for criterion in story.acceptance_criteria.iter().take(CRITERIA_MAX) {
            let _ = writeln!(out, "- {}", one_line(criterion, 500));
        }
    }
    if !story.notes.trim().is_empty() {
        let _ = writeln!(out, "\nNotes: {}", head(story.notes.trim(), TEXT_MAX));
    }
}

/// A plan's `progress.txt`: its curated top and the last entries; `None` for other tasks.
pub(super) fn progress(state: &RunState) -> Option<String> {
    let text = plan_progress::read(state)?;
    if text.len() <= PART_MAX {
        return Some(text);
    }
    let (top, entries) = plan_progress::parts(&text);
    let top = head(top.trim_end(), PART_MAX / 3);
    let left = PART_MAX - top.len();
    let last = tail(entries, left);
    // From the start of a line.
    let last = last.split_once('\n').map_or(last, |(_, rest)| rest);
    Some(format!("{top}\n\n[older entries left out; the file has them]\n\n{last}"))
}
