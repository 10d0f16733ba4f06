//! Prepare: the start snapshot, the marker for hooks, the link to the current run's iterations.

use crate::driver::Driver;
use crate::error::DriveError;
use ralph_domain::event::EventBody;
use ralph_domain::protect::CI_FILES;
use ralph_domain::spec::RunSpec;
use ralph_journal::artifacts;

impl Driver {
    pub(crate) fn prepare(&mut self) -> Result<(), DriveError> {
        self.ctx.boundary("prepare.before");
        self.link_iterations();
        let protected = protected_patterns(&self.ctx.state.spec);
        let baseline = self.workspace.begin(&protected)?;
        self.ctx.boundary("prepare.snapshot");
        for path in baseline.left_out.clone() {
            self.ctx.notice(format!(
                "`{path}` is too large for the snapshot: it is left alone and cannot be restored"
            ))?;
        }
        self.ctx.record(EventBody::Prepared { baseline })?;
        self.ctx.flush()?;
        self.ctx.boundary("prepare.after");
        Ok(())
    }

    /// `.ralph/iterations` leads to the current run's.
    fn link_iterations(&self) {
        let link = self.ctx.dir.join("iterations");
        let target =
            std::path::Path::new("runs").join(self.ctx.state.spec.run_id.as_str()).join("iterations");
        if std::fs::read_link(&link).is_ok_and(|found| found == target) {
            return;
        }
        let _ = std::fs::remove_file(&link);
        let _ = std::os::unix::fs::symlink(target, link);
    }

    /// `.ralph/active.json`: tells hooks inside a session that a loop is active.
    pub(crate) fn write_marker(&self) -> Result<(), DriveError> {
        let state = &self.ctx.state;
        let marker = serde_json::json!({
            "timestamp": self.ctx.clock.now(),
            "pid": std::process::id(),
            "run_id": state.spec.run_id,
            "max_iterations": state.spec.settings.budgets.max_iterations,
            "mode": "autonomous",
        });
        artifacts::write_atomic(&self.ctx.dir.active(), &serde_json::to_vec(&marker).unwrap_or_default())?;
        Ok(())
    }

    pub(crate) fn clear_marker(&self) {
        let _ = std::fs::remove_file(self.ctx.dir.active());
    }
}

/// What must stay as it is: what the user named, the task, the configuration, the scripts that verifiers run, CI files.
pub(crate) fn protected_patterns(spec: &RunSpec) -> Vec<String> {
    let mut patterns = spec.settings.protected_paths.clone();
    patterns.push(spec.task.source.clone());
    for verifier in &spec.settings.verifiers {
        for word in verifier.command_argv.iter().flat_map(|arg| arg.split_whitespace()) {
            let word = word.trim_start_matches("./").trim_matches(['\'', '"', ';']);
            let is_file = !word.is_empty()
                && !word.starts_with('-')
                && !word.starts_with('/')
                && spec.workspace.join(word).is_file();
            if is_file {
                patterns.push(word.to_owned());
            }
        }
    }
    patterns.extend(CI_FILES.iter().map(|p| (*p).to_owned()));
    let mut seen = std::collections::BTreeSet::new();
    patterns.retain(|p| !p.is_empty() && seen.insert(p.clone()));
    patterns
}
