//! A task as `PROMPT.md`, with its checks and budgets in `.ralph/config.json`.

use super::ConvertedFile;
use super::draft::{TaskDraft, typed};
use ralph_domain::config::{Completion, VerifierConfig};
use ralph_domain::criterion::Check;
use std::path::Path;

/// Renders the prompt, and the configuration that belongs to it.
pub fn write(draft: &mut TaskDraft, to: &Path) -> ConvertedFile {
    draft.lose_task_only("PROMPT.md");
    draft.lose_repository("PROMPT.md", false);
    draft.lose_if("context_files", draft.task.context_files.first().cloned(), "name them in the text");
    let mut verifiers: Vec<VerifierConfig> = draft.task.verifiers();
    let mut accepted = draft.claims();
    for criterion in draft.task.criteria.clone() {
        match &criterion.check {
            Check::Claimed => {
                draft.lose(&criterion.id, "has no check of its own: it is only part of the text")
            }
            check if check.needs_forge() => {
                draft.lose(&criterion.id, "a verifier cannot ask the code host; `ralph.json` can");
            }
            check => {
                let said =
                    if criterion.text.is_empty() { String::new() } else { format!("{}: ", criterion.text) };
                accepted.push(format!("- {}: {said}{}", criterion.id, check.describe()));
                match check.command() {
                    Some(command) if matches!(check, Check::Command { .. }) => {
                        if !verifiers.iter().any(|v| v.command_argv == command.argv()) {
                            verifiers.push(VerifierConfig::command(criterion.id.clone(), command.argv()));
                        }
                    }
                    _ => draft.lose(&criterion.id, "only its words are kept: make it a verifier of your own"),
                }
            }
        }
        if criterion.ticked {
            draft.lose(&criterion.id, "was ticked; `PROMPT.md` keeps no ticks");
        }
    }
    let mut text = format!("# {}\n", draft.task.title);
    let mut section = |name: &str, body: String| {
        if !body.trim().is_empty() {
            text.push_str(&format!("\n## {name}\n\n{}\n", body.trim()));
        }
    };
    if draft.text.starts_with('#') {
        section("Task", format!("{}\n\n{}", draft.task.title, draft.text));
    } else {
        section("Task", if draft.text.is_empty() { draft.task.title.clone() } else { draft.text.clone() });
    }
    section("Acceptance", accepted.join("\n"));
    section("Constraints", draft.task.rules.iter().map(|rule| format!("- {rule}\n")).collect());
    section("Verification", verifiers.iter().map(|v| format!("- `{}`\n", typed(&v.command_argv))).collect());
    let mut config = draft.config();
    if !verifiers.is_empty() {
        config.required_verifiers = Some(verifiers.iter().map(|v| v.name.clone()).collect());
        config.verifiers = Some(verifiers);
    }
    if draft.task.settings.completion == Some(Completion::Checks) {
        config.completion = Some(Completion::Checks);
    }
    config.keep_best = draft.task.settings.keep_best;
    ConvertedFile { files: vec![(to.to_owned(), text)], config: Some(config) }
}
