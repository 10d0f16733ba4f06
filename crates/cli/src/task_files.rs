//! Files of a new task, from templates filled with the project's commands.

use crate::error::CommandError;
use jiff::Timestamp;
use ralph_loop_app::task::project::{ProjectCommand, ProjectCommands};
use ralph_loop_app::task::task_templates::{TaskTemplate, fill};
use ralph_loop_task::config::{CommandLine, join_argv};
use ralph_loop_task::dialect::Dialect;
use ralph_loop_task::dialect::names;
use ralph_loop_task::dialect::plan::prd_tasks::TasksJson;
use ralph_loop_task::dialect::ralph_json::{Entry, RalphJson};

const TASK: &str = include_str!("templates/ralph_task.md");
const JSON: &str = include_str!("templates/ralph.json");
const PROMPT: &str = include_str!("templates/PROMPT.md");
const PRD: &str = include_str!("../plugin/templates/prd.md");
const TASKS: &str = include_str!("../plugin/templates/tasks.json");
const PROGRESS: &str = include_str!("../plugin/templates/progress.txt");
const PLAN_PROMPT: &str = include_str!("../plugin/templates/prompt.md");

/// Placeholder for a test command. It fails, so that nothing passes by accident.
pub const NO_TESTS: &str = "echo 'your test command' >&2; exit 1";

/// Default title.
pub const UNNAMED: &str = "New task";

/// Values for a new task.
#[derive(Debug, Clone)]
pub struct NewTask<'a> {
    /// Display name.
    pub title: &'a str,
    /// The base branch, if known.
    pub base_branch: Option<&'a str>,
    /// The project's commands.
    pub commands: &'a ProjectCommands,
    /// Creation time.
    pub now: Timestamp,
}

/// The files of a task in this format, with paths relative to the repo's top.
pub fn files(dialect: Dialect, task: &NewTask<'_>) -> Result<Vec<(&'static str, String)>, CommandError> {
    Ok(match dialect {
        Dialect::RalphTaskMd => vec![("ralph_task.md", task.ralph_task_md())],
        Dialect::RalphJson => vec![("ralph.json", task.ralph_json()?)],
        Dialect::Plan => vec![
            ("ralph/prd.md", task.prd()),
            ("ralph/tasks.json", task.tasks_json()?),
            ("ralph/progress.txt", task.progress()),
            ("ralph/prompt.md", task.plan_prompt()),
        ],
        Dialect::PromptMd => vec![("PROMPT.md", task.prompt_md())],
    })
}

/// A task file from this template.
pub fn templated(template: &TaskTemplate, task: &NewTask<'_>) -> Vec<(&'static str, String)> {
    let title = (task.title != UNNAMED).then_some(task.title);
    vec![(template.dialect.main_file(), template.text(title, &task.test()))]
}

impl NewTask<'_> {
    /// An id from the title, if that is valid in paths.
    fn id(&self) -> String {
        let slug = names::slug(self.title);
        match self.title != UNNAMED && names::is_usable_id(&slug) {
            true => slug,
            false => names::derived_id(self.title),
        }
    }

    fn slug(&self) -> String {
        if self.title == UNNAMED { self.id() } else { names::slug(self.title) }
    }

    /// The test command as a shell line.
    fn test(&self) -> String {
        self.commands.tests.first().map_or_else(|| NO_TESTS.to_owned(), line)
    }

    /// Description and command of each check, tests first.
    fn checks(&self) -> Vec<(&'static str, String)> {
        let mut out = vec![("The whole test suite passes", self.test())];
        out.extend(self.commands.lints.first().map(|c| ("The linter finds no problems", line(c))));
        out.extend(self.commands.typechecks.first().map(|c| ("The types check", line(c))));
        out
    }

    fn ralph_task_md(&self) -> String {
        let checks = self.checks();
        let mut verify = String::new();
        if checks.len() > 1 {
            verify.push_str("verify_commands:\n");
            for (_, command) in checks.iter().skip(1) {
                verify.push_str(&format!("  - {}\n", quoted(command)));
            }
        }
        let boxes: Vec<String> = checks
            .iter()
            .enumerate()
            .map(|(at, (text, command))| format!("- [ ] M2.{} {text}\n  - verify: `{command}`", at + 1))
            .collect();
        let base = self.base_branch.map(quoted).unwrap_or_default();
        let mut template = TASK.to_owned();
        if self.base_branch.is_none() {
            template = template.replace("base_branch: %%base_branch%%\n", "");
        }
        if self.title == UNNAMED {
            // The id names the branch until the task has a title.
            template = template.replace("target_branch_slug: %%slug%%\n", "");
        }
        fill(
            &template,
            &[
                ("task_id", &self.id()),
                ("base_branch", &base),
                ("slug", &quoted(&self.slug())),
                ("test_command", &quoted(&self.test())),
                ("verify_commands", &verify),
                ("title", self.title),
                ("quality_boxes", &boxes.join("\n")),
            ],
        )
    }

    fn ralph_json(&self) -> Result<String, CommandError> {
        let base = inside_quotes(self.base_branch.unwrap_or_default());
        let text = fill(
            JSON,
            &[
                ("title", &inside_quotes(self.title)),
                ("task_id", &self.id()),
                ("base_branch", &base),
                ("slug", &inside_quotes(&self.slug())),
            ],
        );
        let mut task: RalphJson = serde_json::from_str(&text).map_err(|e| broken("ralph.json", &e))?;
        if self.base_branch.is_none() {
            task.repository = None;
        }
        task.acceptance_criteria = self
            .checks()
            .into_iter()
            .map(|(text, command)| Entry {
                kind: "command_succeeds".into(),
                description: Some(text.into()),
                command: Some(CommandLine::Shell(command)),
                ..Entry::default()
            })
            .collect();
        pretty("ralph.json", &task)
    }

    fn prompt_md(&self) -> String {
        let commands: Vec<String> = self.checks().iter().map(|(_, c)| format!("- `{c}`")).collect();
        let accepted: Vec<String> = self
            .checks()
            .iter()
            .map(|(text, command)| format!("- {text}: `{command}` exits with 0."))
            .collect();
        fill(
            PROMPT,
            &[
                ("title", self.title),
                ("acceptance", &accepted.join("\n")),
                ("verification", &commands.join("\n")),
            ],
        )
    }

    /// The PRD to fill in.
    pub fn prd(&self) -> String {
        fill(PRD, &[("title", self.title)])
    }

    /// The empty list of stories.
    pub fn tasks_json(&self) -> Result<String, CommandError> {
        let text =
            fill(TASKS, &[("title", &inside_quotes(self.title)), ("slug", &inside_quotes(&self.slug()))]);
        let mut tasks: TasksJson = serde_json::from_str(&text).map_err(|e| broken("tasks.json", &e))?;
        tasks.verify_commands =
            self.checks().into_iter().map(|(_, c)| CommandLine::Shell(c).into()).collect();
        pretty("tasks.json", &tasks)
    }

    /// The empty log.
    pub fn progress(&self) -> String {
        let now = self.now.round(jiff::Unit::Second).unwrap_or(self.now);
        fill(PROGRESS, &[("date", &now.to_string()), ("title", self.title)])
    }

    /// The prompt of every iteration.
    pub fn plan_prompt(&self) -> String {
        fill(PLAN_PROMPT, &[("title", self.title)])
    }
}

fn line(command: &ProjectCommand) -> String {
    join_argv(&command.argv)
}

/// A text as a JSON string, which is also valid YAML.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".into())
}

fn inside_quotes(text: &str) -> String {
    let quoted = quoted(text);
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

/// A value as pretty JSON for a file.
pub fn pretty(name: &str, value: &impl serde::Serialize) -> Result<String, CommandError> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(|e| broken(name, &e))
}

fn broken(name: &str, error: &serde_json::Error) -> CommandError {
    CommandError::environment(format!("cannot make `{name}` from its template: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_task::dialect::{TaskTexts, parse};

    fn new_task(commands: &ProjectCommands) -> NewTask<'_> {
        let now = "2026-11-15T12:00:00.5Z".parse().unwrap();
        NewTask { title: "Keep \"%%id%%\" in order: all", base_branch: Some("main"), commands, now }
    }

    #[test]
    fn every_template_can_be_read_whatever_the_title_and_the_commands() {
        let command = |words: &[&str]| ProjectCommand {
            argv: words.iter().map(|w| (*w).to_owned()).collect(),
            source: "x".into(),
        };
        let full = ProjectCommands {
            tests: vec![command(&["cargo", "test"])],
            lints: vec![command(&["make", "lint it"])],
            typechecks: vec![command(&["mypy", "."])],
        };
        for commands in [&full, &ProjectCommands::default()] {
            for dialect in Dialect::ALL {
                let files = files(dialect, &new_task(commands)).unwrap();
                let main = files.iter().find(|(name, _)| *name == dialect.main_file()).unwrap();
                let mut read = TaskTexts::new(main.0, &main.1);
                for (name, text) in files.iter().filter(|(name, _)| *name != main.0) {
                    read = read.with(*name, text);
                }
                let task = parse(dialect, &read).unwrap_or_else(|found| panic!("{dialect:?}: {found:#?}"));
                for (name, text) in &files {
                    assert_eq!(
                        text.matches("%%").count(),
                        2 * text.matches("%%id%%").count(),
                        "{name}:\n{text}"
                    );
                    assert!(text.ends_with('\n'), "{name}");
                }
                if dialect != Dialect::PromptMd {
                    assert!(task.is_checkable(), "{dialect:?}");
                }
            }
        }
        let progress = new_task(&full).progress();
        assert!(progress.contains("Started: 2026-11-15T12:00:01Z\n"), "{progress}");
    }
}
