//! Prepare: start snapshot, marker for hooks, link to the current iterations.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::proof::surroundings;
use crate::step::checks::baseline_checks::BaselineEnd;
use ralph_loop_domain::secret_name::{FileSecrecy, file_secrecy};
use ralph_loop_protocol::event::EventBody;
use ralph_loop_safe_fs::SafeDir;
use ralph_loop_task::spec::RunSpec;

impl Driver {
    pub(crate) fn prepare(&mut self) -> Result<(), DriveError> {
        self.ctx.boundary("prepare.before");
        self.show();
        let protected = protected_patterns(&self.ctx.state.spec);
        let baseline = self.workspace.begin(&protected)?;
        self.ctx.boundary("prepare.snapshot");
        for path in baseline.left_out.clone() {
            // Files that look secret are reported where they are hidden from the agent.
            if file_secrecy(std::path::Path::new(&path)) == FileSecrecy::Open {
                self.ctx.notice(format!(
                    "`{path}` is too large for the snapshot: it is left alone and cannot be restored"
                ))?;
            }
        }
        let surroundings = self.sealed_surroundings();
        let checks = match self.check_baseline(&baseline)? {
            BaselineEnd::Known(checks) => checks,
            BaselineEnd::Stopped => return Ok(()),
        };
        self.ctx.boundary("prepare.kept");
        self.ctx.record(EventBody::Prepared { baseline, surroundings, checks })?;
        self.ctx.flush()?;
        self.ctx.boundary("prepare.after");
        Ok(())
    }

    /// Fingerprints of what checks depend on outside the workspace, at any path where they see it.
    pub(crate) fn fingerprints(&self) -> surroundings::Fingerprints {
        let spec = &self.ctx.state.spec;
        surroundings::fingerprints(&self.ctx.vars, &spec.settings, [&spec.workspace, self.sandbox.root()])
    }

    /// Links the record and `iterations` into `.ralph/`; a session may have removed them.
    pub(crate) fn show(&self) {
        self.ctx.show_record();
        let target =
            std::path::Path::new("runs").join(self.ctx.state.spec.run_id.as_str()).join("iterations");
        for dir in [&self.ctx.home, &self.ctx.dir] {
            let _ = dir.link("iterations", &target);
        }
    }

    /// Writes `.ralph/active.json`, which tells a session's hooks that they belong to this loop.
    pub(crate) fn write_marker(&self, iteration: u32, attempt: u32) -> Result<(), DriveError> {
        let state = &self.ctx.state;
        let plan = crate::record::plan_progress::path(&state.spec.task).map(|progress| {
            let top = SafeDir::open(&state.spec.workspace);
            let bytes = top.and_then(|top| top.facts(&progress)).map_or(0, |facts| facts.length);
            serde_json::json!({ "tasks": state.spec.task.source, "progress": progress, "progress_bytes": bytes })
        });
        let marker = serde_json::json!({
            "timestamp": self.ctx.clock.now(),
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
        self.ctx.files.show(&self.ctx.dir, "active.json", &text)?;
        Ok(())
    }

    pub(crate) fn clear_marker(&self) {
        let _ = self.ctx.dir.remove("active.json");
    }
}

/// Protected paths: those you named, and the task.
pub(crate) fn protected_patterns(spec: &RunSpec) -> Vec<String> {
    let mut patterns = spec.settings.protected_paths.clone();
    patterns.push(spec.task.source.clone());
    let mut seen = std::collections::BTreeSet::new();
    patterns.retain(|p| !p.is_empty() && seen.insert(p.clone()));
    patterns
}
