//! A plan before it is written.

use crate::error::CommandError;
use ralph_loop_protocol::display::text::{count, one_line};
use ralph_loop_task::dialect::names;
use ralph_loop_task::dialect::plan::prd_tasks::TasksJson;

#[derive(Debug, Clone, Default)]
pub struct PlanDraft {
    /// The text of `prd.md`.
    pub prd: String,
    pub tasks: TasksJson,
}

impl PlanDraft {
    /// Fills derived fields: nothing passes, ascending priorities, a branch name.
    pub fn settle(&mut self) {
        let tasks = &mut self.tasks;
        if tasks.branch_name.trim().is_empty() {
            tasks.branch_name = format!("ralph/{}", names::slug(&tasks.project));
        }
        for (number, story) in tasks.user_stories.iter_mut().enumerate() {
            story.passes = false;
            story.notes.clear();
            if story.id.trim().is_empty() {
                story.id = format!("US-{:03}", number + 1);
            }
            story.priority.get_or_insert(number as i64 + 1);
        }
    }

    /// The text of `tasks.json`.
    pub fn tasks_json(&self) -> Result<String, CommandError> {
        let text = serde_json::to_string_pretty(&self.tasks);
        Ok(text.map_err(|e| CommandError::environment(format!("the plan cannot be written: {e}")))? + "\n")
    }

    /// The plan for display.
    pub fn lines(&self) -> Vec<String> {
        let tasks = &self.tasks;
        let mut lines =
            vec![format!("{}: {}", one_line(&tasks.project, 80), one_line(&tasks.description, 300))];
        let commands: Vec<String> =
            tasks.verify_commands.iter().map(|command| one_line(&command.display(), 120)).collect();
        lines.push(format!(
            "proven by: {}",
            if commands.is_empty() { "nothing yet".to_owned() } else { commands.join(", ") }
        ));
        lines.push(String::new());
        for story in &tasks.user_stories {
            let after = if story.depends_on.is_empty() {
                String::new()
            } else {
                format!(" (after {})", one_line(&story.depends_on.join(", "), 120))
            };
            lines.push(format!("{}  {}{after}", one_line(&story.id, 64), one_line(&story.title, 160)));
            lines.extend(
                story
                    .acceptance_criteria
                    .iter()
                    .map(|criterion| format!("        - {}", one_line(criterion, 300))),
            );
        }
        lines.push(String::new());
        lines.push(count(tasks.user_stories.len(), "story").replace("storys", "stories"));
        lines
    }
}
