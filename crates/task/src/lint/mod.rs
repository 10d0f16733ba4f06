//! The linter: one set of rules for every surface, so that a bad task is refused before it costs money.
//!
//! Errors refuse a run; warnings point out common reasons for failure. Every finding has a position and a fix as
//! text, and a safe edit ([`apply_fixes`]) if one is right whatever the author meant.

mod facts;
mod fix;
mod prompt_sections;
mod required;
mod untouched;
mod wording;

pub use crate::dialect::diagnostic::{Diagnostic, Findings, SafeEdit, Severity};
pub use facts::{passing_already, programs, programs_of};
pub use fix::apply_fixes;
pub use prompt_sections::{PromptSections, prompt_sections};
pub use untouched::{Placeholder, fix as template_fix, placeholders, template_words};

use crate::criterion::Span;
use crate::dialect::{self, Dialect, TaskFile, TaskTexts};

/// What only the caller can find out on its machine. Unknown facts aren't judged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LintFacts {
    /// Programs of [`programs`] that don't exist here.
    pub missing_programs: Vec<String>,
    /// Names of the checks that must pass, from the task, the configuration and the repo.
    pub verifiers: Option<Vec<String>>,
    pub budget_set: Option<bool>,
    pub has_forge: bool,
}

/// All findings, and the task as far as it could be parsed.
#[derive(Debug, Clone, PartialEq)]
pub struct LintReport {
    /// The findings, in file order.
    pub diagnostics: Vec<Diagnostic>,
    pub task: Option<TaskFile>,
}

impl LintReport {
    /// Whether a run of this task is refused.
    pub fn refuses(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

pub fn lint(dialect: Dialect, files: &TaskTexts, facts: &LintFacts) -> LintReport {
    let mut found = Findings::of(files.name());
    let task = dialect::read_into(dialect, files, &mut found);
    if let Some(task) = &task {
        required::check(task, files, facts, &mut found);
        wording::check(task, &mut found);
        facts::check(task, facts, &mut found);
        untouched::check(dialect, files, &mut found);
        if dialect == Dialect::PromptMd {
            prompt_sections::check(files, &mut found);
        }
    }
    let mut diagnostics = found.all;
    diagnostics.sort_by(Diagnostic::order);
    diagnostics.dedup();
    LintReport { diagnostics, task }
}

/// The finding for a task file that does not exist.
pub fn missing_file(dialect: Dialect, name: &str) -> Diagnostic {
    let flag = match dialect {
        Dialect::RalphTaskMd => "--task",
        Dialect::RalphJson => "--json-task",
        Dialect::Plan => "--plan",
        Dialect::PromptMd => "--prompt",
    };
    Diagnostic::error(
        "missing-file",
        name,
        Span::START,
        format!("`{name}` doesn't exist"),
        format!("`ralph init {flag}` writes one to fill in"),
    )
}
