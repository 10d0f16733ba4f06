//! Asks a session that forgot its promise, in the same iteration: finished work needs no further session.

use crate::error::DriveError;
use crate::record::integrity;
use crate::record::recorder::Recorder;
use crate::run::Run;
use crate::steps::recover;
use crate::steps::work::priced;
use ralph_loop_domain::ports::SessionRequest;
use ralph_loop_domain::text::claim::{Claim, claim};
use ralph_loop_journal::folder::artifacts;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::event::{EventBody, PromiseAsked, SessionEnd};
use ralph_loop_protocol::money::Usd;
use std::time::Duration;

/// An answer of one line needs no more.
const TIME: Duration = Duration::from_secs(180);
const ANSWER_MAX: usize = 300;

/// Continues the iteration's session with the question, if its agent can; returns whether it promised.
pub(crate) fn ask(run: &mut Run, iteration: u32) -> Result<bool, DriveError> {
    let Some(current) = run.state.iterations.current.clone() else { return Ok(false) };
    let completed = current.session.as_ref().is_some_and(|session| session.end == SessionEnd::Completed);
    let spec = &run.ledger.state.spec;
    let left = spec.settings.budgets.max_cost.saturating_sub(run.state.spent().cost);
    let at = run.ports.agents.iter().position(|agent| *agent.name() == current.agent);
    let config = spec.settings.agent(&current.agent).cloned();
    let (Some(at), Some(config)) = (at, config) else { return Ok(false) };
    if !completed || current.outdated || left == Usd::ZERO {
        return Ok(false);
    }
    let promise = spec.settings.completion_promise.clone();
    let run_id = spec.run_id.clone();
    let cwd = spec.task.working_dir.clone().map(std::path::PathBuf::from).unwrap_or_default();
    let prompt = format!(
        "The required checks pass, but your last message lacks the line that says that the task is done. If all of \
         the task is done, answer with this line alone:\n\n<promise>{promise}</promise>\n\nIf something is left, say \
         in one sentence what. Change no files and run nothing."
    );
    let folder = run.ledger.iteration_dir(iteration)?;
    let prompt_file = folder.join("promise.md");
    artifacts::write(&prompt_file, prompt.as_bytes())?;
    let request = SessionRequest {
        run: &run_id,
        iteration,
        attempt: current.attempt,
        prompt: &prompt,
        prompt_file: &prompt_file,
        cwd: &cwd,
        model: current.model.as_deref(),
        timeout: TIME.min(run.state.time_left()),
        budget_left: Some(left),
        config: &config,
        now: run.clock.now(),
        stable: &[],
        protected: &[],
        folder: &folder,
    };
    run.ledger.check_lease()?;
    let watch = integrity::watch_files(&run.ledger);
    let log = run.ledger.open_log(&folder.join("promise.log"))?;
    let actions = run.ledger.file(&folder.join("promise.jsonl"))?;
    let agent = &*run.ports.agents[at];
    let mut recorder = Recorder::new(&mut run.ledger, log, actions, iteration).of_agent(agent);
    let report = agent.continue_session(&request, &*run.ports.sandbox, &mut recorder);
    recorder.finish()?;
    let Some(report) = report? else { return Ok(false) };
    integrity::check_files(&mut run.ledger, &watch)?;
    // Only the checked files count.
    if let Some(tree) = run.state.work.tree.clone() {
        recover::go_back(run, &tree)?;
    }
    let completed = report.end == SessionEnd::Completed;
    let promised = completed && claim(&report.final_message, &promise) == Claim::Promised;
    let said = if completed { report.final_message.as_str() } else { report.end.word() };
    let answer = match promised {
        true => String::new(),
        false => one_line(&run.redactor.text(said), ANSWER_MAX),
    };
    run.record(EventBody::PromiseAsked(PromiseAsked {
        iteration,
        agent: current.agent,
        promised,
        answer,
        usage: priced(report.usage, run.ports.helpers.pricing.as_ref()),
        duration_ms: report.duration.as_millis() as u64,
    }))?;
    Ok(promised)
}
