//! The plan: `tasks.json` with its stories, plus `prd.md` (protected), `prompt.md` (the prompt of each iteration) and
//! `progress.txt`. A story's `passes` is a claim.

use super::plan_order::cycles;
use crate::criterion::{Check, Criterion, Span, VerifyCommand};
use crate::dialect::diagnostic::{Findings, Lines};
use crate::dialect::json;
use crate::dialect::json::{Node, ObjectShape};
use crate::dialect::ralph_task_md::check_verify;
use crate::dialect::task_file::{Completion, Dialect, TaskFile};
use crate::dialect::{TaskTexts, names};
use ralph_loop_protocol::display::text::{head, nearest, one_line};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `tasks.json` as written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TasksJson {
    /// Editor hint; ignored.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Name of the project or feature.
    #[serde(default)]
    pub project: String,
    /// The branch of the run.
    #[serde(default)]
    pub branch_name: String,
    /// The plan in one sentence.
    #[serde(default)]
    pub description: String,
    /// Commands that must pass for every story. Agents may not change them.
    #[serde(default)]
    pub verify_commands: Vec<VerifyCommand>,
    /// The stories, each small enough for one session.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub user_stories: Vec<Story>,
}

/// A story, small enough for one iteration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(inline, transform = crate::schema_parts::story_needs))]
pub struct Story {
    /// Unique, for example `US-001`.
    #[cfg_attr(
        feature = "schema",
        schemars(regex(pattern = "^[A-Za-z0-9_][A-Za-z0-9._-]*$"), length(max = 64))
    )]
    pub id: String,
    /// A few words.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub title: String,
    /// A few sentences.
    #[serde(default)]
    pub description: String,
    /// What must be true when it is done. Agents may move them to another story, not remove them.
    #[serde(default)]
    pub acceptance_criteria: Vec<String>,
    /// Smaller comes first; without one, last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// Whether the agent says that it is done. A claim: the engine checks it.
    #[serde(default)]
    pub passes: bool,
    /// Notes for later sessions.
    #[serde(default)]
    pub notes: String,
    /// Ids of stories that must pass first.
    #[serde(default)]
    pub depends_on: Vec<String>,
}

fn shape() -> ObjectShape {
    ObjectShape::of::<TasksJson>().with("userStories", ObjectShape::of::<Story>())
}

/// Parses `tasks.json` alone, for comparisons; the error is the first problem.
pub fn parse_text(text: &str) -> Result<TasksJson, String> {
    let mut found = Findings::of("tasks.json");
    match json::read::<TasksJson>(text, &shape(), &Lines::new(text), &mut found) {
        Some(document) => Ok(document.value),
        None => {
            Err(found.all.first().map_or_else(String::new, |d| format!("line {}: {}", d.line, d.message)))
        }
    }
}

pub(crate) fn read(files: &TaskTexts, found: &mut Findings) -> Option<TaskFile> {
    let text = files.text();
    let lines = Lines::new(text);
    let document = json::read::<TasksJson>(text, &shape(), &lines, found)?;
    let (tasks, root) = (document.value, document.root);
    let keys = json::key_places(&root, &lines);
    let at = |key: &str| keys.get(key).copied().unwrap_or_default();

    let nodes = root.get("userStories").map(Node::items).unwrap_or_default();
    let places: Vec<Span> = nodes.iter().map(|node| lines.place(node.range.start)).collect();
    if tasks.user_stories.is_empty() {
        found.error(
            "no-stories",
            at("userStories"),
            "the plan has no story",
            "add at least one to `userStories`",
        );
    }
    for command in &tasks.verify_commands {
        check_verify(command, "verifyCommands", at("verifyCommands"), found);
    }
    if !tasks.branch_name.is_empty()
        && let Some(problem) = names::branch_problem(&tasks.branch_name)
    {
        found.error(
            "bad-branch",
            at("branchName"),
            format!("invalid branch name `{}`: {problem}", one_line(&tasks.branch_name, 80)),
            "for example `ralph/sign-in`",
        );
    }
    for (story, node) in tasks.user_stories.iter().zip(nodes) {
        check_story(story, node, &lines, found);
    }
    check_links(&tasks.user_stories, &places, found);
    Some(task(tasks, &places, keys, files))
}

fn task(tasks: TasksJson, places: &[Span], keys: BTreeMap<String, Span>, files: &TaskTexts) -> TaskFile {
    let title = [tasks.project.as_str(), tasks.description.as_str(), tasks.branch_name.as_str()]
        .into_iter()
        .map(str::trim)
        .find(|text| !text.is_empty())
        .unwrap_or("plan");
    let title = one_line(title, 80);
    let prompt = files.beside("prompt.md").map(|(_, text)| text).filter(|text| !text.trim().is_empty());
    let goal = match prompt {
        Some(prompt) => prompt.trim_start_matches('\u{feff}').replace("\r\n", "\n").trim().to_owned(),
        None => format!("# {title}\n\n{}", tasks.description.trim()).trim().to_owned(),
    };
    let mut task = TaskFile::new(Dialect::Plan, files.name(), &title, goal);
    task.keys = keys;
    task.completion = Completion::Claim;
    if !tasks.description.trim().is_empty() {
        task.summary = one_line(&tasks.description, 72);
    }
    task.git.branch = Some(if tasks.branch_name.is_empty() {
        names::branch(&task.task_id, &task.slug)
    } else {
        tasks.branch_name
    });
    // Agents may edit `tasks.json`; their changes are compared story by story.
    let folder = files.name().strip_suffix(names::base_name(files.name())).unwrap_or_default();
    task.settings.protected_paths = Some(vec![format!("{folder}prd.md"), format!("{folder}prompt.md")]);
    task.context_files = files.beside("prd.md").map(|(name, _)| name.to_owned()).into_iter().collect();
    task.global_verify = tasks.verify_commands;
    task.criteria = tasks
        .user_stories
        .iter()
        .enumerate()
        .map(|(at, story)| Criterion {
            id: story.id.clone(),
            text: story.title.clone(),
            milestone: None,
            check: Check::Claimed,
            ticked: story.passes,
            place: places.get(at).copied().unwrap_or_default(),
        })
        .collect();
    task.stories = tasks.user_stories;
    task
}

fn check_story(story: &Story, node: &Node, lines: &Lines<'_>, found: &mut Findings) {
    let place = lines.place(node.range.start);
    let of = |key: &str| node.get(key).map_or(place, |value| lines.place(value.range.start));
    if !names::is_usable_id(&story.id) {
        found.error(
            "bad-id",
            of("id"),
            format!("the id `{}` is not usable", one_line(&story.id, 60)),
            "use letters, digits, `-`, `_` and `.`, for example `US-001`",
        );
    }
    if story.title.trim().is_empty() {
        found.error(
            "empty-title",
            of("title"),
            format!("the story `{}` has no title", story.id),
            "describe in a few words what it adds",
        );
    }
    if let (None, Some(last)) = (node.get("passes"), node.members().last()) {
        let end = last.value.range.end;
        found
            .error(
                "missing-passes",
                place,
                format!("the story `{}` has no `passes`", story.id),
                "add `\"passes\": false`",
            )
            .set_edit(end..end, ", \"passes\": false");
    }
    if story.passes && story.notes.trim().is_empty() {
        found.warning(
            "passes-without-notes",
            of("passes"),
            format!("the story `{}` is marked as passing with empty `notes`", story.id),
            "write what was done, or set `passes` to false",
        );
    }
    if story.acceptance_criteria.iter().all(|criterion| criterion.trim().is_empty()) {
        found.warning(
            "no-acceptance-criteria",
            of("acceptanceCriteria"),
            format!("the story `{}` does not say when it is done", story.id),
            "add `acceptanceCriteria` that can be checked",
        );
    }
}

fn check_links(stories: &[Story], places: &[Span], found: &mut Findings) {
    let place = |at: usize| places.get(at).copied().unwrap_or_default();
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, story) in stories.iter().enumerate() {
        match first.get(story.id.as_str()) {
            Some(earlier) => {
                let line = place(*earlier).line;
                let message = format!("the id `{}` is used twice; the first is in line {line}", story.id);
                found.error("duplicate-id", place(at), message, "give each story a unique id");
            }
            None => {
                first.insert(&story.id, at);
            }
        }
    }
    for (at, story) in stories.iter().enumerate() {
        for needed in story.depends_on.iter().filter(|id| !first.contains_key(id.as_str())) {
            // Suggestions only for short lists: the search is linear in the ids.
            let near =
                (stories.len() <= 500).then(|| nearest(head(needed, 64), first.keys().copied())).flatten();
            let fix = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "name a story of this file, or remove it".into(),
            };
            found.error(
                "unknown-dependency",
                place(at),
                format!("`{}` depends on `{}`, which doesn't exist", story.id, one_line(needed, 60)),
                fix,
            );
        }
    }
    for way in cycles(stories) {
        let at = way.first().and_then(|id| first.get(id.as_str())).copied().unwrap_or(0);
        found.error(
            "dependency-cycle",
            place(at),
            format!("the dependencies go in a circle: {}", one_line(&way.join(" → "), 400)),
            "remove one of these `dependsOn`",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::parse;

    const TASKS: &str = include_str!("../testdata/tasks.json");

    fn rules(text: &str) -> Vec<&'static str> {
        let mut found = Findings::of("ralph/tasks.json");
        read(&TaskTexts::new("ralph/tasks.json", text), &mut found);
        found.all.into_iter().map(|d| d.rule).collect()
    }

    fn story(rest: &str) -> String {
        format!(
            "{{\"userStories\": [{{\"id\": \"a\", \"title\": \"t\", \"acceptanceCriteria\": [\"x\"], {rest}}}]}}"
        )
    }

    #[test]
    fn a_whole_plan_is_read() {
        let files = TaskTexts::new("ralph/tasks.json", TASKS)
            .with("ralph/prd.md", "# PRD")
            .with("ralph/prompt.md", "Iteration $RALPH_ITERATION of {{max_iterations}}.\r\n");
        let task = parse(Dialect::Plan, &files).unwrap();
        assert_eq!(task.title, "shop");
        assert_eq!(task.git.branch.as_deref(), Some("ralph/json-output"));
        assert_eq!(task.goal, "Iteration $RALPH_ITERATION of {{max_iterations}}.");
        assert_eq!(task.settings.protected_paths.as_deref().unwrap(), ["ralph/prd.md", "ralph/prompt.md"]);
        assert_eq!(task.context_files, ["ralph/prd.md"]);
        assert_eq!(task.completion, Completion::Claim);
        let claims: Vec<_> = task.criteria.iter().map(|c| (c.id.as_str(), c.ticked)).collect();
        assert_eq!(claims, [("US-001", true), ("US-002", false), ("US-003", false)]);
        assert_eq!(task.verifiers().len(), 2);
        assert_eq!(task.stories[1].depends_on, ["US-001"]);
    }

    #[test]
    fn without_a_prompt_the_description_is_the_goal() {
        let task = parse(Dialect::Plan, &TaskTexts::new("tasks.json", TASKS)).unwrap();
        assert_eq!(task.goal, "# shop\n\nEvery command can print JSON.");
        assert_eq!(task.settings.protected_paths.as_deref().unwrap(), ["prd.md", "prompt.md"]);
    }

    #[test]
    fn every_rule_of_a_story_is_kept() {
        for (rest, rule) in [
            ("\"passes\": true", "passes-without-notes"),
            ("\"priority\": 1", "missing-passes"),
            ("\"passes\": false, \"title\": \"u\"", "duplicate-key"),
            ("\"passes\": false, \"pases\": 1", "unknown-key"),
            ("\"passes\": \"no\"", "wrong-type"),
            ("\"passes\": false, \"dependsOn\": [\"b\"]", "unknown-dependency"),
            ("\"passes\": false, \"dependsOn\": [\"a\"]", "dependency-cycle"),
        ] {
            assert_eq!(rules(&story(rest)), [rule], "{rest}");
        }
        assert_eq!(rules("{\"userStories\": []}"), ["no-stories"]);
        assert_eq!(rules("{\"userStories\": [], \"branchName\": \"a b\"}"), ["no-stories", "bad-branch"]);
        let bare = "{\"userStories\": [{\"id\": \"\", \"passes\": false}]}";
        assert_eq!(rules(bare), ["bad-id", "empty-title", "no-acceptance-criteria"]);
        let twice = TASKS.replace("US-002\"", "US-001\"");
        assert!(rules(&twice).contains(&"duplicate-id"));
    }

    #[test]
    fn cycle_is_reported() {
        let text = TASKS.replace("\"dependsOn\": []", "\"dependsOn\": [\"US-002\"]");
        let errors = parse(Dialect::Plan, &TaskTexts::new("tasks.json", text)).unwrap_err();
        assert_eq!(errors[0].message, "the dependencies go in a circle: US-001 → US-002 → US-001");
    }
}
