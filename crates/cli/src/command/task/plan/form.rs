//! The form: a plan without an agent, question by question.

use super::draft::PlanDraft;
use crate::confirm::answer;
use crate::error::CommandError;
use crate::output::Out;
use ralph_loop_app::task::project::ProjectCommands;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_task::config::{CommandLine, join_argv};
use ralph_loop_task::dialect::plan::prd_tasks::{Story, TasksJson};

/// The layers of a change, in build order.
const LAYERS: [(&str, &str); 5] = [
    ("schema", "data: tables, types, files"),
    ("logic", "what happens with it"),
    ("API", "how other code reaches it"),
    ("UI", "what users see"),
    ("integration", "everything together"),
];
/// The requested requirement sections.
const SECTIONS: [(&str, &str); 6] = [
    ("Problem", "What is the problem, and who has it?"),
    ("Non-Goals", "What is out of scope?"),
    ("Technical Design", "How is it to be built?"),
    ("Constraints", "What must hold for every story?"),
    ("Edge Cases", "Which edge cases matter?"),
    ("Risks", "What could go wrong?"),
];

/// Asks for a plan, and for requirements if there are none.
pub fn fill(
    wish: &str,
    prd: Option<String>,
    commands: &ProjectCommands,
    out: &Out,
) -> Result<PlanDraft, CommandError> {
    let project = answer("A short name for it: ", out)?.unwrap_or_else(|| one_line(wish, 60));
    let prd = match prd {
        Some(prd) => prd,
        None => requirements(&project, wish, out)?,
    };
    let found = commands.tests.first().map(|command| join_argv(&command.argv));
    let shown = found.as_deref().map(|command| format!(" (empty: `{command}`)")).unwrap_or_default();
    let verify = answer(&format!("Which command proves it?{shown} "), out)?.or(found);
    let tasks = TasksJson {
        project,
        description: one_line(wish, 200),
        verify_commands: verify.into_iter().map(|line| CommandLine::Shell(line).into()).collect(),
        user_stories: stories(out)?,
        ..TasksJson::default()
    };
    Ok(PlanDraft { prd, tasks })
}

fn requirements(project: &str, wish: &str, out: &Out) -> Result<String, CommandError> {
    let mut prd = format!("# {project}\n\n## Summary\n\n{wish}\n");
    for (title, question) in SECTIONS {
        if let Some(text) = answer(&format!("{question} (empty: none) "), out)? {
            prd.push_str(&format!("\n## {title}\n\n{text}\n"));
        }
    }
    Ok(prd)
}

fn stories(out: &Out) -> Result<Vec<Story>, CommandError> {
    let mut stories: Vec<Story> = Vec::new();
    for (layer, what) in LAYERS {
        let before: Vec<String> = stories.last().map(|story| story.id.clone()).into_iter().collect();
        while let Some(title) = answer(&format!("A story of the {layer} ({what}; empty: next layer): "), out)?
        {
            let mut criteria = Vec::new();
            while let Some(criterion) =
                answer("  done when (a command and its result, a response, a file; empty: no more): ", out)?
            {
                criteria.push(criterion);
            }
            if criteria.is_empty() {
                let keep = answer("  Without a criterion it can't be checked. Keep it anyway? [y/N] ", out)?;
                if !keep.is_some_and(|keep| ["y", "yes"].contains(&keep.to_ascii_lowercase().as_str())) {
                    continue;
                }
            }
            let id = format!("US-{:03}", stories.len() + 1);
            stories.push(Story {
                id,
                title,
                acceptance_criteria: criteria,
                depends_on: before.clone(),
                ..Story::default()
            });
        }
    }
    match stories.is_empty() {
        true => Err(CommandError::usage("a plan needs a story; nothing was written")),
        false => Ok(stories),
    }
}
