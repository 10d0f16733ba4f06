//! The task dialects: four ways to write a task, each parsed into the same [`TaskFile`].
//!
//! Parsing never opens a file: the caller passes the texts as [`TaskTexts`]. Ambiguous input is an error with its
//! position and fix; further rules are in [`crate::lint`].

pub mod adopt;
pub mod checkbox;
pub mod diagnostic;
pub mod frontmatter;
pub(crate) mod json;
mod keys;
mod metric_section;
pub mod names;
pub mod plan;
pub mod prompt_md;
pub mod ralph_json;
pub mod ralph_task_md;
mod task_file;
pub mod template;
pub mod verification;

pub use diagnostic::{Diagnostic, Findings, SafeEdit, Severity};
pub use metric_section::MetricSection;
pub use task_file::{
    Completion, Dialect, GitChoice, ModelChoice, PrChoice, Publish, SandboxChoice, TaskFile,
};

use crate::criterion::Span;

/// Largest task file. A task is a prompt: a larger file is a mistake.
pub const MAX_FILE_BYTES: usize = 4 * 1024 * 1024;

/// The texts of one task: its main file, and the others that the dialect knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskTexts {
    main: (String, String),
    others: Vec<(String, String)>,
}

impl TaskTexts {
    /// A task of one file. The name appears in messages, relative to the run's folder.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { main: (name.into(), text.into()), others: Vec::new() }
    }
    pub fn with(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.others.push((name.into(), text.into()));
        self
    }
    pub fn name(&self) -> &str {
        &self.main.0
    }
    pub fn text(&self) -> &str {
        &self.main.1
    }
    /// Name and text of another file, by the last part of its path.
    pub fn beside(&self, base_name: &str) -> Option<(&str, &str)> {
        self.others
            .iter()
            .find(|(name, _)| names::base_name(name) == base_name)
            .map(|(name, text)| (name.as_str(), text.as_str()))
    }
    fn all(&self) -> impl Iterator<Item = &(String, String)> {
        std::iter::once(&self.main).chain(&self.others)
    }
}

/// Parses a task. Warnings come from [`crate::lint::lint`].
pub fn parse(dialect: Dialect, files: &TaskTexts) -> Result<TaskFile, Vec<Diagnostic>> {
    let mut findings = Findings::of(files.name());
    let task = read_into(dialect, files, &mut findings);
    let mut found = findings.all;
    found.retain(Diagnostic::is_error);
    found.sort_by(Diagnostic::order);
    match task {
        Some(task) if found.is_empty() => Ok(task),
        _ => Err(found),
    }
}

/// Parses as much of a task as possible, without its findings.
pub fn read(dialect: Dialect, files: &TaskTexts) -> Option<TaskFile> {
    read_into(dialect, files, &mut Findings::of(files.name()))
}

/// Parses as much of a task as possible, and collects problems. `None` comes with at least one error.
pub(crate) fn read_into(dialect: Dialect, files: &TaskTexts, found: &mut Findings) -> Option<TaskFile> {
    for (name, text) in files.all() {
        if text.len() > MAX_FILE_BYTES {
            found.all.push(Diagnostic::error(
                "file-too-large",
                name,
                Span::START,
                format!("the file has {} MB; a task file has at most 4", text.len() / 1_000_000),
                "move data and logs to separate files and name them in the task",
            ));
            return None;
        }
    }
    match dialect {
        Dialect::RalphTaskMd => ralph_task_md::read(files, found),
        Dialect::RalphJson => ralph_json::read(files, found),
        Dialect::Plan => plan::prd_tasks::read(files, found),
        Dialect::PromptMd => prompt_md::read(files, found),
    }
}

/// The dialects whose main file is among `names`, paths relative to the run's folder.
pub fn detect(names: &[&str]) -> Vec<Dialect> {
    let is_there = |file: &str| names.iter().any(|name| name.trim_start_matches("./") == file);
    Dialect::ALL.into_iter().filter(|dialect| is_there(dialect.main_file())).collect()
}

/// The dialect of a file that the user named: by a known name, else by its content.
pub fn detect_text(name: &str, text: &str) -> Dialect {
    match names::base_name(name) {
        "ralph_task.md" => return Dialect::RalphTaskMd,
        "ralph.json" => return Dialect::RalphJson,
        "tasks.json" => return Dialect::Plan,
        "PROMPT.md" => return Dialect::PromptMd,
        _ => {}
    }
    let body = text.trim_start_matches('\u{feff}').trim_start();
    if body.starts_with('{') || name.ends_with(".json") {
        let is_plan = body.contains("\"userStories\"") && !body.contains("\"acceptance_criteria\"");
        return if is_plan { Dialect::Plan } else { Dialect::RalphJson };
    }
    if frontmatter::split(text).is_ok() { Dialect::RalphTaskMd } else { Dialect::PromptMd }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_found_by_name_and_named_in_a_fixed_order() {
        assert_eq!(
            detect(&["PROMPT.md", "./ralph_task.md", "src/ralph.json"]),
            [Dialect::RalphTaskMd, Dialect::PromptMd]
        );
        assert_eq!(detect(&["ralph/tasks.json", "ralph.json"]), [Dialect::RalphJson, Dialect::Plan]);
        assert!(detect(&["README.md"]).is_empty());
    }

    #[test]
    fn dialect_of_an_unknown_name_is_detected_by_content() {
        assert_eq!(detect_text("a.json", "{\"task\": \"x\"}"), Dialect::RalphJson);
        assert_eq!(detect_text("b.json", "{\"userStories\": []}"), Dialect::Plan);
        assert_eq!(detect_text("c.md", "---\ntask_id: x\n---\n# T"), Dialect::RalphTaskMd);
        assert_eq!(detect_text("d.md", "# Do this"), Dialect::PromptMd);
        assert_eq!(detect_text("sub/ralph.json", ""), Dialect::RalphJson);
    }

    #[test]
    fn a_file_of_ten_megabytes_is_refused_with_a_message() {
        for dialect in Dialect::ALL {
            let files = TaskTexts::new("big", "- [ ] x\n".repeat(1_300_000));
            let errors = parse(dialect, &files).unwrap_err();
            assert_eq!(errors[0].rule, "file-too-large");
        }
    }
}
