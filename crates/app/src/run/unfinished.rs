//! Finds an unfinished run of the same task and settings, which a restart continues.

use super::latest_run_in;
use crate::error::AppError;
use crate::read::find;
use crate::request::{RunRequest, Unfinished, Workplace};
use crate::start::locks;
use ralph_loop_git::Repo;
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_journal::folder::snapshot;
use ralph_loop_protocol::id::RunId;
use ralph_loop_task::config::Settings;
use ralph_loop_task::spec::{Task, WorkspaceKind};

/// The unfinished run that this request continues.
pub(super) fn of(
    home: &StateHome,
    request: &RunRequest,
    origin: &Repo,
    task: &Task,
    settings: &Settings,
) -> Result<Option<RunId>, AppError> {
    if request.unfinished == Unfinished::StartAnew || request.place != Workplace::InPlace {
        return Ok(None);
    }
    if locks::holder(home, &origin.top).is_some_and(|h| ralph_loop_journal::lock::is_alive(h.pid)) {
        // Taking the lock reports the holder. (The guard of a dead holder may still be cleaning up; that isn't
        // another run.)
        return Ok(None);
    }
    let Some(entry) = latest_run_in(home, &origin.top, None) else { return Ok(None) };
    let id = entry.run_id.clone();
    let Ok(state) = snapshot::load(&entry.run_dir()) else { return Ok(None) };
    if state.result.finished.is_some() || (state.baseline.is_some() && !has_start(origin, &id)) {
        return Ok(None);
    }
    let mut before = state.spec.settings.clone();
    before.handover.branch = None;
    // Limits may change at any time.
    before.budgets = settings.budgets;
    if ralph_loop_core::is_same_task(&state.spec.task, task) && before == *settings {
        return Ok(Some(id));
    }
    // No session worked for it yet: the request probably corrects its command.
    if state.iterations.count == 0 && state.iterations.current.is_none() {
        return Ok(None);
    }
    Err(AppError::usage(format!("run {id} in this folder is not finished, and its task or settings differ"))
        .hint(format!("run `ralph resume {id}` to continue it, `ralph cancel {id}` to end it, or add `--new` to start another")))
}

/// A stopped, unfinished run of the same task in a worktree or clone, which the user may have meant to
/// continue.
pub(crate) fn beside(home: &StateHome, request: &RunRequest, origin: &Repo, task: &Task) -> Option<RunId> {
    if request.unfinished == Unfinished::StartAnew || request.place == Workplace::InPlace {
        return None;
    }
    find::runs_of(home, &origin.top)
        .into_iter()
        .rev()
        .take(20)
        .find(|entry| {
            let is_driven = ralph_loop_journal::lock::holder(&entry.run_dir().lock()).is_some();
            !is_driven
                && snapshot::load(&entry.run_dir()).is_ok_and(|state| {
                    state.result.finished.is_none()
                        && state.spec.place != WorkspaceKind::InPlace
                        && ralph_loop_core::is_same_task(&state.spec.task, task)
                })
        })
        .map(|entry| entry.run_id)
}

/// Whether this is still the repo the run started in, not another one at the same path.
fn has_start(origin: &Repo, run: &RunId) -> bool {
    let name = format!("refs/ralph/{run}/start^{{tree}}");
    let found = origin.git().call(["rev-parse", "--quiet", "--verify", &name]).accept(&[1, 128]).run();
    found.is_ok_and(|output| output.code == 0)
}
