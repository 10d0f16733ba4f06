//! Adds, lists and removes a repo's guardrails, with or without a run.

use crate::environment::Environment;
use crate::error::AppError;
use crate::read::find;
use crate::start::state_files;
use ralph_loop_domain::repo::guardrail;
use ralph_loop_domain::repo::guardrail::Rule;
use ralph_loop_git::Repo;
use ralph_loop_journal::folder::layout::{RalphDir, StateHome};
use ralph_loop_journal::folder::{artifacts, snapshot};
use std::path::Path;

/// In `.ralph/`.
const FILE: &str = "guardrails.md";
const FILE_MAX: u64 = 16 * 1024 * 1024;

pub fn list(folder: &Path) -> Vec<Rule> {
    guardrail::rules(&RalphDir::of(&find::top(folder)).read_text(FILE, FILE_MAX))
}

pub fn add(env: &Environment, folder: &Path, text: &str) -> Result<(), AppError> {
    let top = find::top(folder);
    let dir = RalphDir::of(&top);
    if let Ok(repo) = Repo::discover(env.vars(), &top) {
        repo.exclude_ralph_dir()?;
    }
    state_files::write_missing(&dir)?;
    let before = dir.read_text(FILE, FILE_MAX);
    let rule = guardrail::written(text.trim(), 0, &env.actor());
    let rule = env.redactor(&top).text(&rule).into_owned();
    Ok(dir.write(FILE, format!("{}\n\n{rule}\n", before.trim_end()).as_bytes())?)
}

/// Removes rules by list number or by part of the name, and returns them.
pub fn remove(env: &Environment, folder: &Path, names: &[String]) -> Result<Vec<Rule>, AppError> {
    let top = find::top(folder);
    let dir = RalphDir::of(&top);
    let text = dir.read_text(FILE, FILE_MAX);
    let rules = guardrail::rules(&text);
    let mut gone: Vec<Rule> = Vec::new();
    for name in names {
        let rule = named(&rules, name)?;
        if !gone.contains(rule) {
            gone.push(rule.clone());
        }
    }
    // Active runs first: they restore rules that disappear from the file.
    notify_runs(&env.state_home()?, &top, &gone)?;
    let left = guardrail::without(&text, |rule| gone.contains(rule));
    dir.write(FILE, left.as_bytes())?;
    Ok(gone)
}

fn named<'a>(rules: &'a [Rule], name: &str) -> Result<&'a Rule, AppError> {
    if let Ok(number) = name.parse::<usize>() {
        return number.checked_sub(1).and_then(|at| rules.get(at)).ok_or_else(|| {
            AppError::usage(format!("guardrail {number} doesn't exist"))
                .hint("`ralph guardrail list` shows them with their numbers")
        });
    }
    let wanted = name.to_lowercase();
    let found: Vec<&Rule> = rules.iter().filter(|rule| rule.text.to_lowercase().contains(&wanted)).collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(AppError::usage(format!("no guardrail contains `{name}`"))
            .hint("`ralph guardrail list` shows them with their numbers")),
        several => Err(AppError::usage(format!("{} guardrails say `{name}`", several.len()))
            .hint("name one by its number in `ralph guardrail list`")),
    }
}

fn notify_runs(home: &StateHome, top: &Path, gone: &[Rule]) -> Result<(), AppError> {
    for entry in find::runs_of(home, top) {
        let record = entry.run_dir();
        let over = snapshot::load(&record)
            .map_or(true, |state| state.result.finished.as_ref().is_some_and(|end| !end.reason.is_budget()));
        if over {
            continue;
        }
        let path = record.removed_guardrails();
        let mut text = std::fs::read_to_string(&path).unwrap_or_default();
        for rule in gone {
            text.push_str(rule.digest().as_str());
            text.push('\n');
        }
        artifacts::write_atomic(&path, text.as_bytes())?;
    }
    Ok(())
}
