//! An existing plan, which `ralph plan` never replaces.

use super::{PRD, TASKS};
use crate::error::CommandError;
use crate::task_files::NewTask;
use ralph_loop_app::trust::repo_file;
use ralph_loop_task::dialect::plan::prd_tasks;
use std::io::ErrorKind;
use std::path::Path;

/// The user's requirements; `None` if there are none or only the template.
pub fn requirements(top: &Path, template: &NewTask<'_>) -> Result<Option<String>, CommandError> {
    let Some(text) = read(&top.join(PRD))? else { return Ok(None) };
    let title = text.lines().next().and_then(|line| line.strip_prefix("# ")).unwrap_or_default();
    let template = NewTask { title, ..template.clone() }.prd();
    Ok((!text.trim().is_empty() && text.trim() != template.trim()).then_some(text))
}

/// Refuses to replace stories other than the template's, or an unreadable file.
pub fn refuse_stories(top: &Path, template: &NewTask<'_>) -> Result<(), CommandError> {
    let Some(text) = read(&top.join(TASKS))?.filter(|text| !text.trim().is_empty()) else { return Ok(()) };
    let template = prd_tasks::parse_text(&template.tasks_json()?).unwrap_or_default();
    let is_free = |found: prd_tasks::TasksJson| {
        found.user_stories.is_empty() || found.user_stories == template.user_stories
    };
    if prd_tasks::parse_text(&text).is_ok_and(is_free) {
        return Ok(());
    }
    Err(CommandError::usage(format!("a plan already exists: `{TASKS}`; nothing was written"))
        .hint("`ralph archive` puts a finished one away; `--force` replaces it"))
}

fn read(path: &Path) -> Result<Option<String>, CommandError> {
    match repo_file::read_text(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(repo_file::unreadable(path, &e)),
    }
}
