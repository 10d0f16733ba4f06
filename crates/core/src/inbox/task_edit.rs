//! Edits of the task: checked, frozen as the next version, and written to the task file.

use crate::error::DriveError;
use crate::ledger::Ledger;
use crate::record::task_book;
use crate::run::Run;
use ralph_loop_journal::folder::{artifacts, snapshot};
use ralph_loop_protocol::event::{EventBody, SpecChanged};
use ralph_loop_protocol::id::Digest;
use ralph_loop_task::dialect::adopt::edited;
use ralph_loop_task::dialect::{Dialect, TaskTexts};
use ralph_loop_task::lint::{LintFacts, lint};

/// Rejects an edit for whatever would reject a run of that task.
pub(super) fn check_edit(ledger: &Ledger, text: &str) -> Result<(), String> {
    let spec = &ledger.state.spec;
    edited(&spec.task, text)?;
    // A plan's other files stay; the edit doesn't include them.
    if spec.task.dialect == Dialect::Plan {
        return Ok(());
    }
    let facts = LintFacts {
        verifiers: Some(spec.settings.required_verifiers.clone()),
        budget_set: Some(true),
        has_forge: spec.settings.handover.pushes(),
        ..LintFacts::default()
    };
    let report = lint(spec.task.dialect, &TaskTexts::new(&spec.task.source, text), &facts);
    match report.diagnostics.iter().find(|found| found.is_error()) {
        Some(first) => Err(format!("{}:{}: {}; {}", first.file, first.line, first.message, first.fix)),
        None => Ok(()),
    }
}

/// Freezes the edited task as the next version. The state already has the new text.
pub(crate) fn new_spec_version(ledger: &mut Ledger) -> Result<(), DriveError> {
    let version = ledger.state.spec.spec_version + 1;
    let mut spec = ledger.state.spec.clone();
    spec.spec_version = version;
    // Keeps the earlier version, so that each iteration's task can be looked up.
    let old = ledger.record_dir.path().join(format!("spec.v{}.json", version - 1));
    if !old.exists() {
        let _ = std::fs::copy(ledger.record_dir.spec(), &old);
    }
    let task = Digest::of(spec.task.text.as_bytes());
    let spec = snapshot::write_spec(ledger.journal.places(), &spec)?;
    ledger.record(EventBody::SpecChanged(SpecChanged { version, spec, task }))?;
    Ok(())
}

/// Accepts the task file that the user's edit names as its new baseline.
pub(crate) fn handle_task_edit(run: &mut Run) -> Result<(), DriveError> {
    let spec = &run.ledger.state.spec;
    if run.session.spec_version == spec.spec_version || run.state.baseline.is_none() {
        return Ok(());
    }
    let since = std::mem::replace(&mut run.session.spec_version, spec.spec_version);
    let source = spec.task.source.clone();
    let path = spec.workspace.join(&source);
    let file = std::fs::read_to_string(&path).unwrap_or_default();
    let text = match &spec.task.raw {
        // Marks survive if the new text still has the item.
        Some(raw) => task_book::marked(spec.task.dialect, raw, &run.ledger.state.work.claims),
        None => spec.task.text.clone(),
    };
    let same = |file: &str| file.replace("\r\n", "\n").trim_end() == text.replace("\r\n", "\n").trim_end();
    if !same(&file) {
        // Writes the edit to the file, unless it changed since: then an agent did it.
        if !path.is_file() || !is_as_before(run, &file, since)? {
            return Ok(());
        }
        artifacts::write_atomic(&path, text.as_bytes())?;
    }
    Ok(run.ports.workspace.accept_protected(&source)?)
}

/// Whether the task file still matches one of the versions since `since`, ignoring marks: several edits
/// may arrive in one session.
fn is_as_before(run: &mut Run, file: &str, since: u32) -> Result<bool, DriveError> {
    let spec = &run.ledger.state.spec;
    let before = |version: u32| {
        let path = run.record_dir.path().join(format!("spec.v{version}.json"));
        let spec = std::fs::read(&path).ok().and_then(|text| snapshot::parse_spec(&path, &text).ok())?;
        Some(spec.task).filter(task_book::has_book)
    };
    let books: Vec<_> = (since.max(1)..spec.spec_version).filter_map(before).collect();
    if !books.is_empty() {
        let text = run.redactor.text(file);
        return Ok(books.iter().any(|task| task_book::review(task, &text).is_ok()));
    }
    let source = spec.task.source.clone();
    Ok(!run.ports.workspace.protected_changes()?.iter().any(|c| c.path == source))
}
