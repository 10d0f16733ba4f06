//! Checks the task in any format: readable, valid, and what its checks, sandbox and code host need.

use super::{Area, DoctorCheck, Status};
use crate::text::words::size;
use ralph_loop_app::Environment;
use ralph_loop_app::task::lint::lint_task;
use ralph_loop_app::task::task_source;
use ralph_loop_task::config::ConfigFile;
use ralph_loop_task::dialect::{self, Dialect, ModelChoice, TaskFile, adopt};
use ralph_loop_task::lint::template_words;
use ralph_loop_task::spec::Task;
use std::path::Path;

/// What a folder's task says.
#[derive(Debug, Default)]
pub struct FoundTask {
    /// Its settings.
    pub settings: ConfigFile,
    /// Its model profiles.
    pub models: ModelChoice,
    /// The repo it names.
    pub repo_url: Option<String>,
}

/// Checks every task of the folder or the repo's top. `plan` is the chosen plan's folder.
pub fn checks(
    env: &Environment,
    folder: &Path,
    top: &Path,
    plan: Option<&Path>,
) -> (Vec<DoctorCheck>, Option<FoundTask>) {
    if let Some(dir) = plan {
        let mut checks = Vec::new();
        let name = dir.join(Dialect::Plan.main_file().rsplit('/').next().unwrap_or_default());
        let found = one(env, folder, Dialect::Plan, &name.display().to_string(), &mut checks);
        return (checks, found);
    }
    let here = task_source::candidates(folder);
    let (place, dialects) = if here.is_empty() {
        (top.to_owned(), task_source::candidates(top))
    } else {
        (folder.to_owned(), here)
    };
    let mut checks = Vec::new();
    if dialects.is_empty() {
        let names: Vec<&str> = Dialect::ALL.into_iter().map(Dialect::main_file).collect();
        // A task file is optional: a task can be a sentence.
        let none = missing(format!("no task file found (looked for {})", names.join(", ")));
        checks.push(DoctorCheck { status: Status::Warn, ..none });
        return (checks, None);
    }
    if dialects.len() > 1 {
        let names: Vec<&str> = dialects.iter().map(|dialect| dialect.main_file()).collect();
        let check = DoctorCheck::warn(
            Area::Configuration,
            "task",
            format!("there is more than one: {}", names.join(", ")),
        );
        checks.push(check.fix(format!("name one of them: `ralph run {}`", names[0])));
    }
    let mut found = Vec::new();
    for dialect in dialects {
        found.extend(one(env, &place, dialect, dialect.main_file(), &mut checks));
    }
    // With several, the choice is unknown.
    let only = if found.len() == 1 { found.pop() } else { None };
    (checks, only)
}

fn missing(message: String) -> DoctorCheck {
    DoctorCheck::missing(Area::Configuration, "task", message).why("it describes the work").fix(
        "run `ralph run \"Fix the failing tests\"`, or write the task and its checks to PROMPT.md (`ralph init --task`, `--json-task` and `--plan` write other formats)",
    )
}

fn one(
    env: &Environment,
    place: &Path,
    dialect: Dialect,
    name: &str,
    checks: &mut Vec<DoctorCheck>,
) -> Option<FoundTask> {
    let source = match task_source::read(place, dialect, name) {
        Ok(source) => source,
        Err(error) => {
            checks.push(missing(error.message));
            return None;
        }
    };
    let text = source.files.text();
    let ok = |title: &str| {
        DoctorCheck::ok(Area::Configuration, "task", format!("{name}, {}: {title}", size(text.len() as u64)))
    };
    if dialect == Dialect::PromptMd {
        match (Task::from_prompt(text, name), template_words(text)) {
            (Ok(_), Some((line, problem))) => {
                checks.push(missing(format!("{name}:{line}: {problem}")));
                return None;
            }
            (Ok(task), None) => checks.push(ok(&task.title)),
            (Err(message), _) => {
                checks.push(missing(message));
                return None;
            }
        }
        let file = dialect::read(dialect, &source.files)?;
        return Some(FoundTask { settings: adopt::checks(&file), ..FoundTask::default() });
    }
    let report = lint_task(env, &source).report;
    for problem in report.diagnostics.iter().filter(|found| found.is_error() && found.rule != "bad-config") {
        let message = format!("{}:{}: {}", problem.file, problem.line, problem.message);
        let check = DoctorCheck::missing(Area::Configuration, "task", message);
        checks.push(check.why("a run can't start with an invalid task").fix(problem.fix.clone()));
    }
    let refused = report.refuses();
    let file: TaskFile = report.task?;
    if !refused {
        checks.push(ok(&file.title));
    }
    let (models, repo_url) = (file.model.clone(), file.git.repo_url.clone());
    let text = text.to_owned();
    let (_, settings) = adopt::adopt(file, &text);
    Some(FoundTask { settings, models, repo_url })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(folder: &Path) -> Vec<DoctorCheck> {
        checks(&Environment::new(Default::default(), "/"), folder, folder, None).0
    }

    #[test]
    fn a_task_of_any_kind_is_known_and_a_missing_one_named() {
        let top = tempfile::tempdir().unwrap();
        assert_eq!(look(top.path())[0].status, Status::Warn, "a sentence is a task, too");
        std::fs::write(top.path().join("PROMPT.md"), " \n").unwrap();
        assert_eq!(look(top.path())[0].status, Status::Missing);
        std::fs::write(top.path().join("PROMPT.md"), "# Fix it\n").unwrap();
        assert_eq!(look(top.path())[0].message, "PROMPT.md, 9 B: Fix it");
        let task =
            r#"{"task": "Make a file", "acceptance_criteria": [{"type": "file_exists", "path": "a"}]}"#;
        std::fs::write(top.path().join("ralph.json"), task).unwrap();
        let found = look(top.path());
        assert!(found[0].message.contains("more than one: ralph.json, PROMPT.md"), "{}", found[0].message);
        assert_eq!(found.iter().filter(|check| check.status == Status::Ok).count(), 2);
    }
}
