//! Reports what the environment lacks: missing programs before the first session, and errors in check output
//! after each.

use crate::error::DriveError;
use crate::record::log_tail::read_tail;
use crate::run::Run;
use crate::steps::checks::installed;
use ralph_loop_domain::ports::{ExecEnd, ExecRequest, ExecSink, HostAccess, StopCause, Stream};
use ralph_loop_domain::state::RunState;
use ralph_loop_proof::report::environment::{fault, missing_program};
use ralph_loop_task::config::{Isolation, VerifierConfig};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

const OUTPUT_MAX: u64 = 64 * 1024;
const LOOK_TIMEOUT: Duration = Duration::from_secs(20);

/// Reports missing programs of required checks and setup, with the command that installs each, and whether there are
/// any.
fn report_missing_programs(run: &mut Run) -> Result<bool, DriveError> {
    let mut reported = false;
    let settings = &run.ledger.state.spec.settings;
    let setup = settings.setup_commands.iter().map(|command| ("setup".to_owned(), command.argv()));
    let checks = settings.required().map(|v| (v.name.clone(), v.command_argv.clone()));
    let wanted: Vec<(String, String)> =
        setup.chain(checks).filter_map(|(name, argv)| Some((name, program(&argv)?))).collect();
    let mut known = BTreeSet::new();
    for (name, program) in wanted {
        if !known.insert(program.clone()) || run.ledger.ends_now() {
            continue;
        }
        let look = "command -v \"$1\" >/dev/null 2>&1 || exit 127";
        let argv = ["sh", "-c", look, "sh", &program].map(str::to_owned).to_vec();
        let request = ExecRequest { timeout: Some(LOOK_TIMEOUT), ..ExecRequest::new(argv) };
        let missing = run
            .ports
            .sandbox
            .exec(&request, &mut SilentSink)
            .is_ok_and(|outcome| outcome.end == ExecEnd::Exited(127));
        if missing && !is_created_by_task(&run.ledger.state, &program) {
            let missing = missing_program(&program);
            run.notice(format!("warning: {name} cannot pass here yet: {}", missing.sentence()))?;
            reported = true;
        }
    }
    Ok(reported)
}

/// The first environment fault that a required check shows on the current tree.
pub(crate) fn fault_of(state: &RunState, run_dir: &Path) -> Option<String> {
    let required = &state.spec.settings.required_verifiers;
    let failing = state
        .work
        .checks
        .values()
        .filter(|r| !r.passed && required.contains(&r.name) && Some(&r.tree) == state.work.tree.as_ref());
    failing
        .filter_map(|result| {
            let output = read_tail(&run_dir.join(&result.log), OUTPUT_MAX);
            let found = fault(result.exit_code, &output, &|name| is_created_by_task(state, name))?;
            Some(format!("{}: {}", result.name, found.sentence()))
        })
        .next()
}

/// Whether the task mentions the name or the repo contains it, so that the work is missing, not the
/// environment.
pub(crate) fn is_created_by_task(state: &RunState, name: &str) -> bool {
    let task = &state.spec.task;
    let word = |text: &str| {
        text.match_indices(name).any(|(at, _)| {
            let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
            !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part)
        })
    };
    let below = state.spec.workspace.join(task.working_dir.clone().unwrap_or_default());
    let exists = |end: &str| {
        ["", "src/", "lib/"].iter().any(|folder| below.join(format!("{folder}{name}{end}")).exists())
    };
    word(&task.text)
        || task.criteria.iter().any(|c| word(&c.text))
        || ["", ".py", ".js", ".ts"].iter().any(|end| exists(end))
}

/// The program a command starts from the `PATH`; for a shell line, the first word that isn't a builtin.
pub(crate) fn program(argv: &[String]) -> Option<String> {
    const BUILTINS: &[&str] = &[
        "cd", "test", "[", "set", "export", ".", "source", "if", "for", "while", "!", "exit", "true",
        "false", "echo", "(",
    ];
    let first = match argv {
        [shell, flag, line, ..] if shell.ends_with("sh") && flag.starts_with('-') && flag.ends_with('c') => {
            line.split_whitespace().find(|word| !word.contains('='))?.to_owned()
        }
        [first, ..] => first.clone(),
        [] => return None,
    };
    let plain = first.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '+'));
    (plain && !BUILTINS.contains(&first.as_str())).then_some(first)
}

struct SilentSink;

impl ExecSink for SilentSink {
    fn output(&mut self, _: Stream, _: &[u8]) {}
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

/// Reports once why the checks can't pass, with the fix, and whether it found something. Rejects nothing, because fixing
/// that may be the task.
pub(crate) fn report_start_faults(run: &mut Run, setup: Option<&str>) -> Result<bool, DriveError> {
    if setup.is_none() && report_missing_programs(run)? {
        return Ok(true);
    }
    let Some(message) = check_fault(run, setup) else { return Ok(false) };
    run.notice(format!("warning: {message}"))?;
    Ok(true)
}

/// A required check that can't start in a sandbox where nothing can be installed.
fn check_fault(run: &Run, setup: Option<&str>) -> Option<String> {
    let state = &run.ledger.state;
    let settings = &state.spec.settings;
    let can_install = settings.isolation == Isolation::None
        || run.ports.sandbox.capabilities().surroundings == HostAccess::Own;
    let checks = state.baseline_checks.as_ref().filter(|_| !can_install)?;
    for verifier in settings.required() {
        let failing = checks.results.iter().find(|result| result.name == verifier.name && !result.passed);
        let Some(result) = failing else { continue };
        let output = read_tail(&run.ledger.record_dir.path().join(&result.log), OUTPUT_MAX);
        let Some(lack) = lack(state, verifier, result.exit_code, &output) else { continue };
        let name = &verifier.name;
        if let Some(hint) = setup {
            return Some(format!("{name}: {hint}"));
        }
        let with = installed::with_installed(run);
        return Some(format!("{name} cannot run on the original files{with}: {lack}"));
    }
    None
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
    fault(exit_code, &said.join("\n"), &|name| is_created_by_task(state, name)).map(|found| found.sentence())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_a_command_is_what_the_path_must_have() {
        let of = |argv: &[&str]| program(&argv.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["pytest", "-q"]).as_deref(), Some("pytest"));
        assert_eq!(of(&["sh", "-c", "A=1 pytest -q"]).as_deref(), Some("pytest"));
        assert_eq!(of(&["bash", "-lc", "cd x && make"]), None);
        assert_eq!(of(&["./run.sh"]), None);
        assert_eq!(of(&[]), None);
    }
}
