//! The stop gate: keeps a session of a loop from ending with a broken plan, without a progress entry, or with
//! uncommitted work.
//!
//! It blocks a few times at most, and never twice for the same reason: the engine checks the result anyway.

use crate::input::HookInput;
use crate::marker::{self, MarkedPlan, Marker};
use crate::project::Project;
use crate::reply::Reply;
use crate::{HookContext, memory};
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_safe_fs::{Links, SafeDir};
use ralph_loop_task::dialect::plan::prd_tasks;
use ralph_loop_task::dialect::plan::prd_tasks::TasksJson;
use serde_json::Value;
use std::collections::BTreeSet;

/// Blocks in a row. The CLI has its own limit, at which it drops the answer.
const BLOCKS_MAX: u32 = 3;
const TASKS_MAX: u64 = 4 * 1024 * 1024;
const NAMED_MAX: usize = 5;

pub(crate) fn answer(input: &HookInput, project: &Project, context: &HookContext) -> Reply {
    let Some(marker) = marker::of_session(project, context) else { return Reply::pass() };
    let mut known = memory::recall(input, context);
    if !input.stop_hook_active {
        known.blocks = 0;
        known.reason.clear();
    }
    let Some(reason) = unfinished(&marker, project, context) else {
        if known.blocks > 0 {
            known.blocks = 0;
            known.reason.clear();
            memory::remember(input, context, &known);
        }
        return Reply::pass();
    };
    // One block is left to the CLI's limit.
    let cap = context.vars.get("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP").and_then(|text| text.parse::<u32>().ok());
    let most = cap.filter(|cap| *cap > 0).map_or(BLOCKS_MAX, |cap| BLOCKS_MAX.min(cap.saturating_sub(1)));
    if known.blocks >= most || known.reason == reason {
        return Reply::warn(&format!("the session ends although: {reason}"));
    }
    known.blocks += 1;
    known.reason.clone_from(&reason);
    // Without memory it could block forever.
    match memory::remember(input, context, &known) {
        true => Reply::block(&reason),
        false => Reply::warn(&format!("the session ends although: {reason}")),
    }
}

fn unfinished(marker: &Marker, project: &Project, context: &HookContext) -> Option<String> {
    if let Some(plan) = &marker.plan {
        let top = SafeDir::open(&project.top).ok()?;
        if let Some(problem) = plan_problem(plan, &top) {
            return Some(problem);
        }
        if progress_missing(plan, &top) {
            return Some(format!(
                "`{}` has no entry of this session. Append one: the story, what you did, the results of the checks, what you learned.",
                plan.progress
            ));
        }
    }
    if marker.commits { uncommitted(project, context) } else { None }
}

/// What is wrong with the plan, with the field's name.
fn plan_problem(plan: &MarkedPlan, top: &SafeDir) -> Option<String> {
    let text = match top.read_text(&plan.tasks, Links::Inside, TASKS_MAX) {
        Ok(text) => text,
        Err(error) => return Some(format!("`{}` can't be read: {error}. Restore it.", plan.tasks)),
    };
    let found = match prd_tasks::parse_text(&text) {
        Err(problem) => Some(one_line(&problem, 400)),
        Ok(tasks) => {
            let written = serde_json::from_str(&text).unwrap_or_default();
            missing_field(&written).or_else(|| story_problem(&tasks))
        }
    };
    found.map(|problem| format!("`{}` isn't a valid plan: {problem}. Fix it.", plan.tasks))
}

fn missing_field(plan: &Value) -> Option<String> {
    let filled = |value: &Value| match value {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(list) => !list.is_empty(),
        value => !value.is_null(),
    };
    let missing =
        |object: &Value, names: &[&'static str]| names.iter().copied().find(|name| !filled(&object[*name]));
    if let Some(name) = missing(plan, &["project", "branchName", "description", "userStories"]) {
        return Some(format!("`{name}` is missing or empty"));
    }
    plan["userStories"].as_array()?.iter().enumerate().find_map(|(number, story)| {
        let name = missing(story, &["id", "title", "acceptanceCriteria", "priority", "passes"])?;
        let id = story["id"].as_str().filter(|id| !id.trim().is_empty());
        let which = id.map_or_else(|| format!("{}", number + 1), |id| one_line(id, 64));
        Some(format!("story {which} has no `{name}`"))
    })
}

/// What is wrong with the stories: ids, claims without notes, dependencies.
fn story_problem(tasks: &TasksJson) -> Option<String> {
    let mut seen = BTreeSet::new();
    tasks.user_stories.iter().find_map(|story| {
        let id = one_line(&story.id, 64);
        if !is_story_id(&story.id) {
            return Some(format!("`id` {id} isn't letters, digits, `.`, `_` and `-`, at most 64"));
        }
        if !seen.insert(story.id.as_str()) {
            return Some(format!("two stories have the `id` {id}"));
        }
        if story.passes && story.notes.trim().is_empty() {
            return Some(format!(
                "story {id} has `passes: true` and empty `notes`; they say what was done and how it was checked"
            ));
        }
        if story.depends_on.contains(&story.id) {
            return Some(format!("`dependsOn` of story {id} names the story itself"));
        }
        let unknown = story.depends_on.iter().find(|id| !tasks.user_stories.iter().any(|one| one.id == **id))?;
        Some(format!("`dependsOn` of story {id} names {}, which isn't a story", one_line(unknown, 64)))
    })
}

fn is_story_id(id: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    id.len() <= 64 && id.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && id.chars().all(inner)
}

fn progress_missing(plan: &MarkedPlan, top: &SafeDir) -> bool {
    match top.facts(&plan.progress) {
        Ok(facts) => facts.length <= plan.progress_bytes && plan.progress_bytes > 0,
        Err(_) => plan.progress_bytes > 0,
    }
}

/// The files that the session should commit, except `ralph`'s own.
fn uncommitted(project: &Project, context: &HookContext) -> Option<String> {
    let repo = ralph_loop_git::Repo::discover(&context.vars, &project.top).ok()?;
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
        "There are uncommitted changes: {}. Commit what belongs to the story as `feat: [US-xxx] - Title of the story`, and remove the rest.",
        named.join(", ")
    ))
}
