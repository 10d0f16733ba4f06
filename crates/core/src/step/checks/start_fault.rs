//! Reports faults of the original tree's checks that no session can fix.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::record::log_tail::read_tail;
use crate::step::checks::environment::is_work;
use ralph_loop_domain::ports::HostAccess;
use ralph_loop_domain::repo::setup;
use ralph_loop_domain::state::RunState;
use ralph_loop_proof::report::environment::fault;
use ralph_loop_safe_fs::{Links, SafeDir};
use ralph_loop_task::config::{Isolation, VerifierConfig};

const OUTPUT_MAX: u64 = 64 * 1024;
impl Driver {
    /// Reports why the checks can't pass, with the fix. Rejects nothing, because fixing that may be the task.
    pub(crate) fn report_start_faults(&mut self) -> Result<(), DriveError> {
        if self.ctx.ends_now() || self.ctx.state.spending.totals.sessions > 0 {
            return Ok(());
        }
        self.check_fault()?.map_or(Ok(()), |message| self.ctx.notice(format!("warning: {message}")))
    }

    /// A required check that can't start in a sandbox where nothing can be installed.
    fn check_fault(&self) -> Result<Option<String>, DriveError> {
        let state = &self.ctx.state;
        let settings = &state.spec.settings;
        let can_install = settings.isolation == Isolation::None
            || self.sandbox.capabilities().surroundings == HostAccess::Own;
        let Some(checks) = state.baseline_checks.as_ref().filter(|_| !can_install) else { return Ok(None) };
        for verifier in settings.required() {
            let failing = checks.results.iter().find(|result| result.name == verifier.name && !result.passed);
            let Some(result) = failing else { continue };
            let output = read_tail(&self.ctx.run.path().join(&result.log), OUTPUT_MAX);
            let Some(lack) = lack(state, verifier, result.exit_code, &output) else { continue };
            let name = &verifier.name;
            if let Some(hint) = self.missing_setup_hint()? {
                return Ok(Some(format!("{name}: {hint}")));
            }
            let with = self.with_installed();
            return Ok(Some(format!("{name} cannot run on the original files{with}: {lack}")));
        }
        Ok(None)
    }

    /// A setup command with the project's test extra.
    pub(crate) fn with_test_extra(&self, command: &str) -> String {
        let top = SafeDir::open(&self.ctx.state.spec.workspace);
        let project = top.and_then(|top| top.read_text("pyproject.toml", Links::Inside, OUTPUT_MAX));
        setup::with_test_extra(command, &project.unwrap_or_default())
    }
}

/// What a check lacks apart from the work. A traceback doesn't count: a missing import may be what the task
/// asks for.
fn lack(state: &RunState, verifier: &VerifierConfig, exit_code: Option<i32>, output: &str) -> Option<String> {
    let own = verifier.command_argv.first().filter(|program| {
        program.contains('/') && !program.starts_with('/') && state.spec.workspace.join(program).exists()
    });
    if let Some(program) = own.filter(|_| exit_code == Some(127)) {
        return Some(format!(
            "`{program}` is in your folder, but git does not hold it, and the final check runs in a clean checkout; name in `setup_commands` what makes it, and start a new run (`--new`)"
        ));
    }
    if exit_code == Some(126) {
        return None;
    }
    let said: Vec<&str> = output.lines().filter(|line| !line.contains("Error")).collect();
    fault(exit_code, &said.join("\n"), &|name| is_work(state, name)).map(|found| found.sentence())
}
