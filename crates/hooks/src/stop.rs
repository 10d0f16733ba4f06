//! The stop gate: a session of a loop does not end with a broken plan, without a word for the next one, or with work that it
//! was to commit. It blocks a few times at most, and never twice for the same reason: the engine looks at the result anyway.

use crate::input::HookInput;
use crate::marker::{self, MarkedPlan, Marker};
use crate::project::Project;
use crate::reply::Reply;
use crate::{Surroundings, memory};
use ralph_loop_protocol::text::one_line;
use ralph_loop_safe_fs::{Links, SafeDir};
use ralph_loop_task::dialect::prd_tasks::{self, TasksJson};
use std::collections::BTreeSet;

/// Times in a row that a session is kept from ending. The CLI has a cap of its own, at which it throws the answer away.
const BLOCKS_MAX: u32 = 3;
const TASKS_MAX: u64 = 4 * 1024 * 1024;
/// Files that a message names.
const NAMED_MAX: usize = 5;

/// Whether a session may end.
pub(crate) fn answer(input: &HookInput, project: &Project, around: &Surroundings) -> Reply {
    let Some(marker) = marker::of_session(project, around) else { return Reply::pass() };
    let mut known = memory::recall(input, around);
    if !input.stop_hook_active {
        known.blocks = 0;
        known.reason.clear();
    }
    let Some(reason) = unfinished(&marker, project, around) else {
        if known.blocks > 0 {
            known.blocks = 0;
            known.reason.clear();
            memory::remember(input, around, &known);
        }
        return Reply::pass();
    };
    // One block is left to the CLI's own cap.
    let cap = around.vars.get("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP").and_then(|text| text.parse::<u32>().ok());
    let most = cap.filter(|cap| *cap > 0).map_or(BLOCKS_MAX, |cap| BLOCKS_MAX.min(cap.saturating_sub(1)));
    if known.blocks >= most || known.reason == reason {
        return Reply::warn(&format!("the session ends although: {reason}"));
    }
    known.blocks += 1;
    known.reason.clone_from(&reason);
    // Who cannot remember could block for ever.
    match memory::remember(input, around, &known) {
        true => Reply::block(&reason),
        false => Reply::warn(&format!("the session ends although: {reason}")),
    }
}

/// What is left to do, in words.
fn unfinished(marker: &Marker, project: &Project, around: &Surroundings) -> Option<String> {
    if let Some(plan) = &marker.plan {
        let top = SafeDir::open(&project.top).ok()?;
        if let Some(problem) = plan_problem(plan, &top) {
            return Some(problem);
        }
        if progress_missing(plan, &top) {
            return Some(format!(
                "`{}` has no entry of this session. Append one: the story, what was done, results of the checks, what was learnt.",
                plan.progress
            ));
        }
    }
    if marker.commits { uncommitted(project, around) } else { None }
}

/// What is wrong with the plan: the story and the field.
fn plan_problem(plan: &MarkedPlan, top: &SafeDir) -> Option<String> {
    let text = match top.read_text(&plan.tasks, Links::Inside, TASKS_MAX) {
        Ok(text) => text,
        Err(error) => return Some(format!("`{}` cannot be read: {error}. Bring it back.", plan.tasks)),
    };
    match prd_tasks::parse_text(&text) {
        Err(problem) => {
            Some(format!("`{}` is not a plan any more: {}. Mend it.", plan.tasks, one_line(&problem, 400)))
        }
        Ok(tasks) => story_problem(&tasks).map(|problem| format!("`{}`: {problem}", plan.tasks)),
    }
}

fn story_problem(tasks: &TasksJson) -> Option<String> {
    let mut seen = BTreeSet::new();
    for (number, story) in tasks.user_stories.iter().enumerate() {
        let id = one_line(&story.id, 64);
        if story.id.trim().is_empty() {
            return Some(format!("story {} has no `id`. Give it one that no other story has.", number + 1));
        }
        if !seen.insert(story.id.as_str()) {
            return Some(format!("two stories have the `id` {id}. Give one of them another."));
        }
        if story.title.trim().is_empty() {
            return Some(format!("story {id} has no `title`. Write it in a few words."));
        }
        if story.passes && story.notes.trim().is_empty() {
            return Some(format!(
                "story {id} has `passes: true` and empty `notes`. Say in `notes` what was done and how it was checked."
            ));
        }
        if let Some(unknown) =
            story.depends_on.iter().find(|id| !tasks.user_stories.iter().any(|one| one.id == **id))
        {
            return Some(format!(
                "`dependsOn` of story {id} names {}, which is no story. Correct it.",
                one_line(unknown, 64)
            ));
        }
    }
    None
}

fn progress_missing(plan: &MarkedPlan, top: &SafeDir) -> bool {
    match top.facts(&plan.progress) {
        Ok(facts) => facts.length <= plan.progress_bytes && plan.progress_bytes > 0,
        Err(_) => plan.progress_bytes > 0,
    }
}

/// The files that the session was to commit. What is ralph's own does not count.
fn uncommitted(project: &Project, around: &Surroundings) -> Option<String> {
    let repo = ralph_loop_git::Repo::discover(&around.vars, &project.top).ok()?;
    let out = repo.git().call(["status", "--porcelain", "-z", "--untracked-files=normal"]).run().ok()?;
    let text = out.text();
    let files: Vec<String> = text
        .split('\0')
        .filter_map(|entry| entry.get(3..))
        .filter(|file| !file.starts_with(".ralph/") && !file.is_empty())
        .map(|file| one_line(file, 120))
        .collect();
    if files.is_empty() {
        return None;
    }
    let mut named: Vec<String> = files.iter().take(NAMED_MAX).map(|file| format!("`{file}`")).collect();
    if files.len() > NAMED_MAX {
        named.push(format!("{} more", files.len() - NAMED_MAX));
    }
    Some(format!(
        "There are uncommitted changes: {}. Commit what belongs to the story as `feat: [US-xxx] - Title of the story`, and remove what does not.",
        named.join(", ")
    ))
}
