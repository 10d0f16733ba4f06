//! Prepare: start snapshot, marker for hooks, link to the current iterations.

use crate::error::DriveError;
use crate::run::Run;
use crate::steps::checks::baseline_checks::{self, BaselineEnd};
use crate::steps::checks::{installed, missing_programs};
use ralph_loop_domain::ports::Baseline;
use ralph_loop_domain::secret_name::{FileSecrecy, file_secrecy};
use ralph_loop_protocol::event::EventBody;
use ralph_loop_safe_fs::SafeDir;
use ralph_loop_task::spec::RunSpec;

pub(crate) fn prepare(run: &mut Run) -> Result<(), DriveError> {
    run.boundary("prepare.before");
    let baseline = match run.state.baseline.clone() {
        // What its checks lacked may be installed now.
        Some(known) => known,
        None => take_snapshot(run)?,
    };
    let surroundings = installed::sealed_surroundings(run);
    if let BaselineEnd::Known(checks) = baseline_checks::check_baseline(run, &baseline)? {
        run.boundary("prepare.kept");
        run.record(EventBody::Prepared { baseline, surroundings, checks })?;
        run.flush()?;
        run.boundary("prepare.after");
    }
    if run.ledger.ends_now() || run.state.spending.totals.sessions > 0 {
        return Ok(());
    }
    let setup = installed::missing_setup_hint(run)?;
    match missing_programs::report_start_faults(run, setup.as_deref())? {
        true => Ok(()),
        false => baseline_checks::report_setup_hint(run, setup),
    }
}

/// Takes the start snapshot.
fn take_snapshot(run: &mut Run) -> Result<Baseline, DriveError> {
    link_record(run);
    let protected = protected_patterns(&run.ledger.state.spec);
    let baseline = run.ports.workspace.begin(&protected)?;
    run.boundary("prepare.snapshot");
    for path in &baseline.left_out {
        // Files that look secret are reported where they are hidden from the agent.
        if file_secrecy(std::path::Path::new(path)) == FileSecrecy::Open {
            run.notice(format!(
                "`{path}` is too large for the snapshot: it is left alone and cannot be restored"
            ))?;
        }
    }
    Ok(baseline)
}

/// Links the record and `iterations` into `.ralph/`; a session may have removed them.
pub(crate) fn link_record(run: &Run) {
    run.ledger.show_record();
    let target = std::path::Path::new("runs").join(run.state.spec.run_id.as_str()).join("iterations");
    for dir in [&run.ledger.home, &run.ledger.dir] {
        let _ = dir.link("iterations", &target);
    }
}

/// Writes `.ralph/active.json`, which tells a session's hooks that they belong to this loop.
pub(crate) fn write_marker(run: &Run, iteration: u32, attempt: u32) -> Result<(), DriveError> {
    let state = &run.ledger.state;
    let plan = crate::record::plan_progress::path(&state.spec.task).map(|progress| {
        let top = SafeDir::open(&state.spec.workspace);
        let bytes = top.and_then(|top| top.facts(&progress)).map_or(0, |facts| facts.length);
        serde_json::json!({ "tasks": state.spec.task.source, "progress": progress, "progress_bytes": bytes })
    });
    let marker = serde_json::json!({
        "timestamp": run.clock.now(),
        "pid": std::process::id(),
        "began": ralph_loop_journal::lock::began(std::process::id()),
        "pid_namespace": ralph_loop_journal::lock::pid_namespace(),
        "run_id": state.spec.run_id,
        "iteration": iteration,
        "attempt": attempt,
        "commits": state.spec.settings.allow_agent_commits,
        "plan": plan,
        "max_iterations": state.spec.settings.budgets.max_iterations,
        "mode": "autonomous",
    });
    let text = serde_json::to_vec(&marker).unwrap_or_default();
    run.ledger.dir.write("active.json", &text)?;
    Ok(())
}

pub(crate) fn clear_marker(run: &Run) {
    let _ = run.dir.remove("active.json");
}

/// Protected paths: those you named, and the task.
pub(crate) fn protected_patterns(spec: &RunSpec) -> Vec<String> {
    let mut patterns = spec.settings.protected_paths.clone();
    patterns.push(spec.task.source.clone());
    let mut seen = std::collections::BTreeSet::new();
    patterns.retain(|p| !p.is_empty() && seen.insert(p.clone()));
    patterns
}
