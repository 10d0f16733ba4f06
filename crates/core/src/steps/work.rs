//! Work: one fresh agent session, from prompt to report.

use crate::error::DriveError;
use crate::prompt;
use crate::record::recorder::Recorder;
use crate::record::{guardrails, integrity, resources, task_book};
use crate::run::Run;
use crate::steps::checks::workspace_setup;
use crate::steps::{checkpoint, prepare};
use ralph_loop_domain::decide::NextSession;
use ralph_loop_domain::model::Pricing;
use ralph_loop_domain::ports::{AgentRequests, Ask, SessionReport, SessionRequest};
use ralph_loop_domain::text::change_text;
use ralph_loop_domain::text::claim::{Claim, claim};
use ralph_loop_journal::folder::artifacts;
use ralph_loop_protocol::display::text::{head, one_line, tail};
use ralph_loop_protocol::event::{CommitPart, EventBody, SessionEnd};
use ralph_loop_protocol::money::{CostBasis, Usage, Usd};
use ralph_loop_task::config::{OutputFormat, Role};
use ralph_loop_task::spec::RunSpec;

/// Journaled characters of the final message: its start, plus the last paragraph if that would be cut.
const MESSAGE_MAX: usize = 700;
const LAST_WORDS_MAX: usize = 300;
/// Length limit of an agent's commit message.
const COMMIT_MESSAGE_MAX: usize = 2000;
/// Size limit of findings that a reviewer, tester or documenter leaves for the builder.
const FINDINGS_MAX: usize = 8000;

pub(crate) fn work(run: &mut Run, session: NextSession) -> Result<(), DriveError> {
    let NextSession { iteration, attempt, agent: name, model, role, skipped } = session;
    run.boundary("work.before");
    run.ports.workspace.check_place(run.state.spec.commits_on_branch())?;
    checkpoint::pull_user_edits(run)?;
    guardrails::sync_guardrails(&run.ledger);
    prepare::link_record(run);
    if !workspace_setup::set_up_workspace(run)? {
        return Ok(());
    }
    let at = run
        .ports
        .agents
        .iter()
        .position(|agent| *agent.name() == name)
        .ok_or_else(|| DriveError::Wiring(format!("agent `{name}` was not wired")))?;
    let config = run
        .state
        .spec
        .settings
        .agent(&name)
        .cloned()
        .ok_or_else(|| DriveError::Wiring(format!("agent `{name}` is not configured")))?;
    run.session.read_only_from = match role {
        Some(role) if role.only_reads() => Some(run.ports.workspace.tree()?),
        _ => None,
    };
    run.session.submodules_before = Some(run.ports.workspace.submodule_files()?);
    let folder = run.ledger.iteration_dir(iteration)?;
    let files = prompt::PromptFiles::read(&run.ledger.dir, &run.ledger.record_dir, &run.ledger.state);
    let prompt =
        prompt::assemble(&run.ledger.state, &files, config.kind, role, &run.ports.agents[at].preamble());
    let prompt::Prompt { text, stable } = prompt.redacted(&run.ledger.redactor);
    let prompt_file = folder.join("prompt.md");
    let digest = artifacts::write(&prompt_file, text.as_bytes())?;
    prepare::write_marker(run, iteration, attempt)?;
    run.record(EventBody::IterationStarted {
        iteration,
        attempt,
        agent: name,
        model: model.clone(),
        prompt: digest,
        skipped,
        role,
    })?;
    // Sync everything journaled before spending money again.
    run.ledger.journal.barrier()?;
    run.boundary("work.started");
    run.ledger.check_lease()?;
    let watch = integrity::watch_files(&run.ledger);
    let spec = &run.ledger.state.spec;
    let run_id = spec.run_id.clone();
    let promise = spec.settings.completion_promise.clone();
    let left = spec.settings.budgets.max_cost.saturating_sub(run.state.spent().cost);
    let cwd = spec.task.working_dir.clone().map(std::path::PathBuf::from).unwrap_or_default();
    let protected = session_protected(spec);
    let request = SessionRequest {
        run: &run_id,
        iteration,
        attempt,
        prompt: &text,
        prompt_file: &prompt_file,
        cwd: &cwd,
        model: model.as_deref(),
        timeout: config.timeout().min(run.state.time_left()),
        budget_left: (left > Usd::ZERO).then_some(left),
        config: &config,
        now: run.clock.now(),
        stable: &stable,
        protected: &protected,
        folder: &folder,
    };
    let log = run.ledger.open_log(&folder.join("output.log"))?;
    let actions = run.ledger.file(&folder.join("actions.jsonl"))?;
    let model = model.clone().or_else(|| {
        let named = config.profile.as_deref().unwrap_or_else(|| spec.settings.models.default_name());
        let profile = config.kind.calls_model().then(|| spec.settings.models.get(named)).flatten();
        config.model.clone().or_else(|| profile.map(|profile| profile.litellm_model))
    });
    let pricing = run.ports.helpers.pricing.clone().zip(model);
    let agent = &*run.ports.agents[at];
    let mut recorder =
        Recorder::new(&mut run.ledger, log, actions, iteration).priced_by(pricing).of_agent(agent);
    let report = agent.session(&request, &*run.ports.sandbox, &mut recorder);
    recorder.finish()?;
    resources::note_resources(&mut run.ledger, agent);
    run.boundary("work.session");
    let mut report = report?;
    // A session that changed files did something, even if its output is empty or looks like a refused
    // login.
    if needs_tree_check(&report, config.output_format)
        && Some(run.ports.workspace.tree()?) != run.state.work.tree
    {
        report.end = match (report.exit_code, report.end) {
            (Some(0), _) | (_, SessionEnd::Empty) => SessionEnd::Completed,
            (_, end) => SessionEnd::Failed { reason: end.reason().unwrap_or_default().to_owned() },
        };
    }
    end_session(run, iteration, &promise, report)?;
    integrity::check_files(&mut run.ledger, &watch)?;
    guardrails::sync_guardrails(&run.ledger);
    run.boundary("work.after");
    Ok(())
}

fn end_session(
    run: &mut Run,
    iteration: u32,
    promise: &str,
    report: SessionReport,
) -> Result<(), DriveError> {
    let folder = run.ledger.iteration_dir(iteration)?;
    let mut response = report.response;
    let denials = response["permission_denials"].as_array().map_or(0, |all| all.len() as u32);
    run.redactor.json(&mut response);
    let response =
        artifacts::write(&folder.join("response.json"), &serde_json::to_vec(&response).unwrap_or_default())?;
    // An incomplete session can't claim anything: its text may be cut anywhere.
    let completed = report.end == SessionEnd::Completed;
    let claimed = claim(&report.final_message, promise);
    let promised = completed && (report.wishes.done || claimed == Claim::Promised);
    if completed && !promised && claimed == Claim::NotOnOwnLine {
        run.notice("the promise was not alone on its line, so it does not count")?;
    }
    let wishes = if completed { report.wishes } else { AgentRequests::default() };
    let message = report.final_message.replace(&format!("<promise>{promise}</promise>"), "");
    let message = session_summary(&run.ledger.redactor.text(&message));
    if !matches!(report.end, SessionEnd::Completed | SessionEnd::Stopped { .. } | SessionEnd::Interrupted) {
        let words = report.end.reason().unwrap_or("").to_owned();
        run.error_entry(&format!("iteration {iteration}: session ended: {}", report.end.word()), &words);
    }
    let role = run.state.iterations.current.as_ref().and_then(|c| c.role);
    let findings = role
        .filter(|role| completed && *role != Role::Builder)
        .map(|_| tail(run.redactor.text(&report.final_message).trim(), FINDINGS_MAX).to_owned());
    run.record(EventBody::SessionEnded {
        iteration,
        end: clean(report.end),
        promised,
        message,
        usage: priced(report.usage, run.ports.helpers.pricing.as_ref()),
        duration_ms: report.duration.as_millis() as u64,
        exit_code: report.exit_code,
        response: Some(response),
        survivors: report.survivors,
        claims: task_book::bounded(&run.ledger.state.spec.task, wishes.claims).into_iter().collect(),
        ask: wishes.ask.map(clean_ask),
        commit_message: wishes
            .commit_message
            .map(|m| head(&run.ledger.redactor.text(&m), COMMIT_MESSAGE_MAX).to_owned()),
        commit_parts: wishes
            .commit_parts
            .into_iter()
            .map(|part| CommitPart {
                message: head(&run.ledger.redactor.text(&part.message), COMMIT_MESSAGE_MAX).to_owned(),
                ..part
            })
            .collect(),
        findings,
        denials,
    })?;
    Ok(())
}

/// Whether an end was inferred only from printed text: none, or that of a command without an error format.
fn needs_tree_check(report: &SessionReport, format: OutputFormat) -> bool {
    match report.end {
        SessionEnd::Empty => true,
        SessionEnd::Auth { .. } | SessionEnd::Billing { .. } => format == OutputFormat::Text,
        _ => false,
    }
}

/// A session's cost: the agent's report, or the price list's estimate if that is higher.
pub(super) fn priced(mut usage: Usage, pricing: Option<&Pricing>) -> Usage {
    let (Some(tokens), Some(model), Some(pricing)) = (&usage.tokens, &usage.model, pricing) else {
        return usage;
    };
    let Some((cost, saved)) = pricing(model, tokens) else { return usage };
    if usage.cost.is_none_or(|reported| cost > reported) {
        usage.cost = Some(cost);
        usage.basis = CostBasis::Estimated;
    }
    usage.saved.get_or_insert(saved);
    usage
}

/// Bounds and cleans reasons from outside.
fn clean(end: SessionEnd) -> SessionEnd {
    let cut = |reason: String| one_line(&reason, 500);
    match end {
        SessionEnd::Failed { reason } => SessionEnd::Failed { reason: cut(reason) },
        SessionEnd::RateLimited { reset_at, reason } => {
            SessionEnd::RateLimited { reset_at, reason: cut(reason) }
        }
        SessionEnd::Overloaded { reason } => SessionEnd::Overloaded { reason: cut(reason) },
        SessionEnd::Unreachable { reason } => SessionEnd::Unreachable { reason: cut(reason) },
        SessionEnd::Auth { reason } => SessionEnd::Auth { reason: cut(reason) },
        SessionEnd::Billing { reason } => SessionEnd::Billing { reason: cut(reason) },
        SessionEnd::ContextTooLong { reason } => SessionEnd::ContextTooLong { reason: cut(reason) },
        SessionEnd::Refused { reason } => SessionEnd::Refused { reason: cut(reason) },
        SessionEnd::Unfinished { reason } => SessionEnd::Unfinished { reason: cut(reason) },
        end => end,
    }
}

fn clean_ask(ask: Ask) -> Ask {
    let cut = |reason: String| one_line(&reason, 500);
    match ask {
        Ask::Rotate { reason } => Ask::Rotate { reason: cut(reason) },
        Ask::Pause { reason } => Ask::Pause { reason: cut(reason) },
        Ask::GiveUp { reason } => Ask::GiveUp { reason: cut(reason) },
    }
}

/// Paths that managed actions must not change. A task file with marks isn't included: changes to it are
/// reviewed.
fn session_protected(spec: &RunSpec) -> Vec<String> {
    let mut patterns = super::prepare::protected_patterns(spec);
    if task_book::has_book(&spec.task) {
        patterns.retain(|p| *p != spec.task.source);
    }
    patterns.push(".ralph/config.json".to_owned());
    patterns
}

/// The useful part of a final message: its start, and of a long one the last paragraph, where questions are.
fn session_summary(message: &str) -> String {
    let (whole, last) = (change_text::first_prose(message), change_text::last_paragraph(message));
    if whole.chars().count() <= MESSAGE_MAX {
        return one_line(&whole, MESSAGE_MAX);
    }
    format!("{} {}", one_line(&whole, MESSAGE_MAX), one_line(&last, LAST_WORDS_MAX))
}
