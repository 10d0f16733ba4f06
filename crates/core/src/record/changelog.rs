//! Writes changelogs: one entry per iteration in `.ralph/changelog/<agent>.md` and `global.md`.

use crate::error::DriveError;
use crate::ledger::Ledger;
use ralph_loop_domain::state::Current;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_protocol::display::text::{count, duration};
use ralph_loop_protocol::event::Verdict;
use std::fmt::Write as _;
use std::time::Duration;

pub(crate) fn append(ledger: &Ledger, current: &Current, verdict: Verdict) -> Result<(), DriveError> {
    let state = &ledger.state;
    let run = &state.spec.run_id;
    let n = current.iteration;
    let heading = format!("## {run} · iteration {n} · {}", current.agent);
    let mut entry = format!("{heading}\n\n");
    let session = current.session.as_ref();
    let _ = writeln!(entry, "- status: {}", verdict.words());
    if let Some(session) = session {
        let reason = session.end.reason().map_or_else(String::new, |r| format!(" ({r})"));
        let _ = writeln!(
            entry,
            "- session: {}{reason}, {}",
            session.end.word(),
            duration(Duration::from_millis(session.duration_ms))
        );
        if !session.message.is_empty() {
            let _ = writeln!(entry, "- said: {}", session.message);
        }
        let _ = writeln!(entry, "- cost: {}", session.usage.spent().with_basis());
    }
    let _ = writeln!(entry, "- prompt: {}", current.prompt.short());
    let baseline = state.baseline.as_ref();
    let branch = state
        .spec
        .branch
        .as_deref()
        .or_else(|| baseline.and_then(|b| b.branch.as_deref()))
        .unwrap_or("detached HEAD");
    let dirty = baseline.map_or(0, |b| b.dirty_total);
    let _ = writeln!(entry, "- branch: {branch}{}", if dirty > 0 { " (with changes of yours)" } else { "" });
    if let Some(change) = &current.change {
        let commit = change.commit.as_ref().map_or_else(|| "no commit".to_owned(), |c| c.short().to_owned());
        let _ = writeln!(
            entry,
            "- files: {}, +{} −{} ({commit})",
            count(change.files, "file"),
            change.added,
            change.removed
        );
        for (path, _) in change.contents.iter().take(10) {
            let _ = writeln!(entry, "  - {path}");
        }
    }
    for name in &current.checked {
        if let Some(result) = state.work.checks.get(name) {
            let verdict = if result.passed { "passed" } else { result.why.as_deref().unwrap_or("failed") };
            let _ = writeln!(entry, "- {name}: {verdict} ([log](../runs/{run}/{}))", result.log);
        }
    }
    let _ = writeln!(entry, "- logs: [iteration](../runs/{run}/iterations/{n}/)\n");
    let entry = ledger.redact_for_display(&entry);
    for file in [format!("changelog/{}.md", current.agent), "changelog/global.md".into()] {
        // After a restart, the same iteration may be judged again.
        if ends_with_entry(&ledger.home, &file, &heading) {
            continue;
        }
        ledger.home.append(&file, &entry)?;
    }
    Ok(())
}

fn ends_with_entry(dir: &RalphDir, file: &str, heading: &str) -> bool {
    let (_, tail) = dir.read_end(file, 4096);
    tail.lines().rfind(|line| line.starts_with("## ")).is_some_and(|last| last == heading)
}
