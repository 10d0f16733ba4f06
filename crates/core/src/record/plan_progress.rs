//! A plan's `progress.txt`: a curated top that sessions keep short, and append-only entries below a line.

use crate::error::DriveError;
use crate::ledger::Ledger;
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::JournalError;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_protocol::event::EventBody;
use ralph_loop_safe_fs::{Links, SafeDir};
use ralph_loop_task::dialect::Dialect;
use ralph_loop_task::spec::Task;
use std::collections::BTreeSet;
use std::path::Path;

/// Bytes that are read.
const FILE_MAX: u64 = 8 * 1024 * 1024;

/// Its path in the workspace; `None` for tasks without one.
pub(crate) fn path(task: &Task) -> Option<String> {
    (task.dialect == Dialect::Plan)
        .then(|| Path::new(&task.source).with_file_name("progress.txt").display().to_string())
}

/// Its text; `None` for tasks without one.
pub(crate) fn read(state: &RunState) -> Option<String> {
    let path = path(&state.spec.task)?;
    let top = SafeDir::open(&state.spec.workspace).ok()?;
    Some(top.read_text(&path, Links::Inside, FILE_MAX).unwrap_or_default())
}

/// The curated top including the separator, and the entries below. Without a separator everything is entries.
pub(crate) fn parts(text: &str) -> (&str, &str) {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        let line = line.trim_end();
        if line.len() >= 3 && line.bytes().all(|byte| byte == b'-') {
            return text.split_at(at);
        }
    }
    ("", text)
}

/// Restores entries of `before` that `now` lost, keeping the new top and new entries. `None` if nothing was
/// lost.
fn restored(before: &str, now: &str) -> Option<String> {
    let (_, old) = parts(before);
    let (top, new) = parts(now);
    if old.trim().is_empty() || new.trim_start().starts_with(old.trim()) {
        return None;
    }
    let known: BTreeSet<&str> = old.lines().map(str::trim).collect();
    let top = if top.is_empty() { parts(before).0 } else { top };
    let added: Vec<&str> =
        new.lines().filter(|line| line.trim().is_empty() || !known.contains(line.trim())).collect();
    let added = added.join("\n");
    let mut text = format!("{top}{}\n", old.trim_end());
    if !added.trim().is_empty() {
        text.push_str(&format!("\n{}\n", added.trim()));
    }
    Some(text)
}

/// Restores entries that a session removed or changed; its version is kept in the record.
pub(crate) fn check_plan_progress(ledger: &mut Ledger, before: Option<&str>) -> Result<(), DriveError> {
    let (Some(before), Some(now)) = (before, read(&ledger.state)) else { return Ok(()) };
    let Some(text) = restored(before, &now) else { return Ok(()) };
    let Some(path) = path(&ledger.state.spec.task) else { return Ok(()) };
    let aside = ledger.record_dir.path().join("progress.txt.edited");
    artifacts::write_atomic(&aside, &ledger.redactor.bytes(now.as_bytes()))?;
    let top = &ledger.state.spec.workspace;
    let written = SafeDir::open(top).and_then(|top| top.write(&path, text.as_bytes()));
    written.map_err(|e| JournalError::file("write", &top.join(&path), e))?;
    ledger.error_entry(
        &format!("`{path}` may only grow below its first line of dashes"),
        "entries of earlier sessions were changed or removed; they are back",
    );
    let what = format!(
        "the entries of `{path}`, which may only grow; what was written over them is kept as `{}`",
        aside.display()
    );
    ledger.record(EventBody::Restored { what }).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# Progress\n\n## Patterns\n- one\n\n---\n## US-001\n- done\n- learnt: x\n";

    #[test]
    fn the_top_may_change_and_entries_only_grow() {
        assert_eq!(restored(FILE, FILE), None);
        assert_eq!(restored(FILE, &format!("{FILE}\n## US-002\n- more\n").replace("- one", "- two")), None);
        let rewritten = FILE.replace("- learnt: x\n", "- learnt: y\n");
        assert_eq!(restored(FILE, &rewritten).unwrap(), format!("{FILE}\n- learnt: y\n"));
        let emptied = "# Progress\n\n## Patterns\n- better\n\n---\n## US-002\n- new\n";
        let back = restored(FILE, emptied).unwrap();
        assert_eq!(back, format!("{}\n## US-002\n- new\n", FILE.replace("- one", "- better")));
        assert_eq!(restored(FILE, "").unwrap(), FILE);
        assert_eq!(restored("# Progress\n---\n", "# Other\n"), None);
    }
}
