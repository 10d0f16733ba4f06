//! Facts for the linter: which programs exist, and what the configuration says.

use super::checks::{CheckSource, TaskCheck};
use super::probe;
use crate::config::settings;
use crate::environment::Environment;
use crate::error::AppError;
use crate::read::find;
use crate::start::handover;
use crate::task::task_source::TaskSource;
use crate::trust::repo_file;
use ralph_loop_git::Repo;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_task::config::ConfigFile;
use ralph_loop_task::criterion::Span;
use ralph_loop_task::dialect::diagnostic::Lines;
use ralph_loop_task::dialect::{Dialect, TaskFile};
use ralph_loop_task::lint::{Diagnostic, programs};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Configuration facts for the linter.
#[derive(Debug, Default)]
pub struct LintConfig {
    pub verifiers: Option<Vec<String>>,
    /// Whether a budget is set.
    pub budget_set: Option<bool>,
    /// Whether a code host is known.
    pub has_forge: bool,
    /// Problems of the configuration.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the configuration for a run of this task with these checks.
pub fn configuration(env: &Environment, source: &TaskSource, checks: Option<&[TaskCheck]>) -> LintConfig {
    let top = find::top(&source.folder);
    let loaded = match settings::load(env, &top) {
        Ok(loaded) => loaded,
        Err(error) => {
            return LintConfig { diagnostics: vec![refused(&top, &error)], ..LintConfig::default() };
        }
    };
    let file = &loaded.file;
    let budget_set = file.max_iterations.is_some()
        || file.max_cost_usd_estimate.is_some()
        || file.max_tokens_total.is_some()
        || file.max_wall_time_minutes.is_some();
    let resolved = file.clone().resolve();
    let has_forge =
        Repo::discover(env.vars(), &top).is_ok_and(|repo| handover::is_known(env, &resolved, &repo));
    let mut diagnostics = Vec::new();
    let configured = checks.unwrap_or_default().iter();
    let configured = configured.filter(|check| matches!(check.source, CheckSource::Config { .. }));
    if source.dialect == Dialect::PromptMd {
        let text = repo_file::read_text(&RalphDir::of(&top).config()).unwrap_or_default();
        for verifier in configured.map(|check| &check.verifier) {
            for program in probe::missing_programs(env, verifier, &top) {
                let quoted = serde_json::to_string(&program).unwrap_or_default();
                let place = text.find(&quoted).map_or(Span::START, |at| Lines::new(&text).place(at));
                diagnostics.push(Diagnostic::warning(
                    "missing-program",
                    ".ralph/config.json",
                    place,
                    format!("`{program}` of the verifier `{}` does not exist here", verifier.name),
                    "install it, or correct `command_argv`",
                ));
            }
        }
    }
    LintConfig {
        verifiers: checks.map(|checks| checks.iter().map(|check| check.verifier.name.clone()).collect()),
        budget_set: Some(budget_set),
        has_forge,
        diagnostics,
    }
}

/// A configuration problem, located in the file if it is the repo's.
fn refused(top: &Path, error: &AppError) -> Diagnostic {
    let name = ".ralph/config.json";
    let text = repo_file::read_text(&RalphDir::of(top).config()).unwrap_or_default();
    match ConfigFile::parse(&text) {
        Err(e) if !text.is_empty() => {
            let place = Span { line: e.line.max(1), column: e.column.max(1) };
            Diagnostic::error("bad-config", name, place, e.message, e.hint)
        }
        // Otherwise it is the user's own file, named in the message.
        _ => Diagnostic::error("bad-config", name, Span::START, &error.message, error.next()),
    }
}

/// Check programs that are neither on the `PATH` nor in the repo.
pub fn missing_programs(env: &Environment, task: &TaskFile, source: &TaskSource) -> Vec<String> {
    let top = find::top(&source.folder);
    let folder = task.git.working_dir.as_ref().map_or_else(|| top.clone(), |dir| top.join(dir));
    let is_cloned = task.git.repo_url.is_some();
    programs(task)
        .into_iter()
        // Files of a repo that isn't cloned yet are unknown.
        .filter(|program| !(is_cloned && program.contains('/') && !program.starts_with('/')))
        .filter(|program| !exists(env, program, &folder))
        .collect()
}

pub(super) fn exists(env: &Environment, program: &str, folder: &Path) -> bool {
    if program.contains('/') {
        return folder.join(program).exists();
    }
    let is_program =
        |path: &Path| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    let path = env.vars().get_os("PATH").unwrap_or_default();
    std::env::split_paths(path).any(|dir| is_program(&dir.join(program)))
}
