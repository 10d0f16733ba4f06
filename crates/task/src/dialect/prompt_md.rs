//! `PROMPT.md`: a task in plain text. The commands of its Verification section must pass, next to the verifiers of
//! `.ralph/config.json`, which also sets budgets.

use super::TaskTexts;
use super::diagnostic::Findings;
use super::task_file::{Completion, Dialect, TaskFile, verify_name};
use super::verification;
use crate::command_line::CommandLine;
use crate::criterion::Span;
use crate::spec::Task;

pub(crate) fn read(files: &TaskTexts, found: &mut Findings) -> Option<TaskFile> {
    match Task::from_prompt(files.text(), files.name()) {
        Ok(task) => {
            let mut read = TaskFile::new(Dialect::PromptMd, files.name(), &task.title, task.text);
            read.completion = Completion::Promise;
            for (at, (command, place)) in verification::commands(files.text()).into_iter().enumerate() {
                read.keys.insert(verify_name(at), place);
                read.global_verify.push(CommandLine::Shell(command).into());
            }
            Some(read)
        }
        Err(message) => {
            found.error("empty-task", Span::START, message, "describe the task");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::parse;

    #[test]
    fn prompt_text_is_kept_unchanged() {
        let text = "\u{feff}# Fix the router\r\n\r\nText";
        let task = parse(Dialect::PromptMd, &TaskTexts::new("PROMPT.md", text)).unwrap();
        let before = Task::from_prompt(text, "PROMPT.md").unwrap();
        assert_eq!((task.title, task.goal, task.source), (before.title, before.text, before.source));
        assert_eq!(task.completion, Completion::Promise);
        assert_eq!(
            parse(Dialect::PromptMd, &TaskTexts::new("PROMPT.md", " \n")).unwrap_err()[0].rule,
            "empty-task"
        );
    }
}
