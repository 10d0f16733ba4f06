//! Work: one fresh agent session, from prompt to report.

use super::recorder::Recorder;
use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::prompt;
use crate::record::task_book;
use ralph_loop_domain::decide::consequences;
use ralph_loop_domain::model::Pricing;
use ralph_loop_domain::ports::{AgentRequests, Ask, SessionReport, SessionRequest};
use ralph_loop_domain::text::change_text;
use ralph_loop_domain::text::claim::{Claim, claim};
use ralph_loop_protocol::display::text::{head, one_line, tail};
use ralph_loop_protocol::event::{EventBody, SessionEnd};
use ralph_loop_protocol::id::AgentName;
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

impl Driver {
    pub(crate) fn work(
        &mut self,
        iteration: u32,
        attempt: u32,
        name: &AgentName,
        model: Option<&str>,
        role: Option<Role>,
        skipped: Vec<String>,
    ) -> Result<(), DriveError> {
        self.ctx.boundary("work.before");
        self.workspace.check_place(self.ctx.state.spec.commits_on_branch())?;
        self.pull_user_edits()?;
        self.ctx.sync_guardrails();
        self.show();
        if !self.set_up_workspace()? {
            return Ok(());
        }
        let agent = self
            .agents
            .iter()
            .find(|a| a.name() == name)
            .ok_or_else(|| DriveError::Wiring(format!("agent `{name}` was not wired")))?;
        let config = self
            .ctx
            .state
            .spec
            .settings
            .agent(name)
            .cloned()
            .ok_or_else(|| DriveError::Wiring(format!("agent `{name}` is not configured")))?;
        self.read_only_from = match role {
            Some(role) if role.only_reads() => Some(self.workspace.tree()?),
            _ => None,
        };
        self.submodules_before = Some(self.workspace.submodule_files()?);
        let folder = self.ctx.iteration_dir(iteration)?;
        let files = prompt::PromptFiles::read(&self.ctx.dir, &self.ctx.run, &self.ctx.state);
        let prompt = prompt::assemble(&self.ctx.state, &files, config.kind, role, &agent.preamble());
        let prompt::Prompt { text, stable } = prompt.redacted(&self.ctx.redactor);
        let prompt_file = folder.join("prompt.md");
        let digest = self.ctx.files.write(&prompt_file, text.as_bytes())?;
        self.write_marker(iteration, attempt)?;
        self.ctx.record(EventBody::IterationStarted {
            iteration,
            attempt,
            agent: name.clone(),
            model: model.map(str::to_owned),
            prompt: digest,
            skipped,
            role,
        })?;
        // Sync everything journaled before spending money again.
        self.ctx.journal.barrier()?;
        self.ctx.boundary("work.started");
        self.ctx.check_lease()?;
        let watch = self.ctx.watch_files();
        let spec = &self.ctx.state.spec;
        let run_id = spec.run_id.clone();
        let promise = spec.settings.completion_promise.clone();
        let left = spec.settings.budgets.max_cost.saturating_sub(self.ctx.state.spent().cost);
        let cwd = spec.task.working_dir.clone().map(std::path::PathBuf::from).unwrap_or_default();
        let protected = session_protected(spec);
        let request = SessionRequest {
            run: &run_id,
            iteration,
            attempt,
            prompt: &text,
            prompt_file: &prompt_file,
            cwd: &cwd,
            model,
            timeout: config.timeout().min(self.ctx.state.time_left()),
            budget_left: (left > Usd::ZERO).then_some(left),
            config: &config,
            now: self.ctx.clock.now(),
            stable: &stable,
            protected: &protected,
            folder: &folder,
        };
        let log = self.ctx.log(&folder.join("output.log"))?;
        let actions = self.ctx.file(&folder.join("actions.jsonl"))?;
        let model = model.map(str::to_owned).or_else(|| {
            let named = config.profile.as_deref().unwrap_or_else(|| spec.settings.models.default_name());
            let profile = config.kind.calls_model().then(|| spec.settings.models.get(named)).flatten();
            config.model.clone().or_else(|| profile.map(|profile| profile.litellm_model))
        });
        let pricing = self.helpers.pricing.clone().zip(model);
        let mut recorder =
            Recorder::new(&mut self.ctx, log, actions, iteration).priced_by(pricing).of_agent(&**agent);
        let report = agent.session(&request, &*self.sandbox, &mut recorder);
        recorder.finish()?;
        self.ctx.note_resources(&**agent);
        self.ctx.boundary("work.session");
        let mut report = report?;
        // A session that changed files did something, even if its output is empty or looks like a refused
        // login.
        if needs_tree_check(&report, config.output_format)
            && Some(self.workspace.tree()?) != self.ctx.state.work.tree
        {
            report.end = match (report.exit_code, report.end) {
                (Some(0), _) | (_, SessionEnd::Empty) => SessionEnd::Completed,
                (_, end) => SessionEnd::Failed { reason: end.reason().unwrap_or_default().to_owned() },
            };
        }
        self.end_session(iteration, &promise, report)?;
        self.ctx.check_files(&watch)?;
        self.ctx.sync_guardrails();
        self.ctx.boundary("work.after");
        Ok(())
    }

    fn end_session(
        &mut self,
        iteration: u32,
        promise: &str,
        report: SessionReport,
    ) -> Result<(), DriveError> {
        let folder = self.ctx.iteration_dir(iteration)?;
        let mut response = report.response;
        let denials = response["permission_denials"].as_array().map_or(0, |all| all.len() as u32);
        self.ctx.redactor.json(&mut response);
        let response = self
            .ctx
            .files
            .write(&folder.join("response.json"), &serde_json::to_vec(&response).unwrap_or_default())?;
        // An incomplete session can't claim anything: its text may be cut anywhere.
        let completed = report.end == SessionEnd::Completed;
        let claimed = claim(&report.final_message, promise);
        let promised = completed && (report.wishes.done || claimed == Claim::Promised);
        if completed && !promised && claimed == Claim::NotOnOwnLine {
            self.ctx.notice("the promise was not alone on its line, so it does not count")?;
        }
        let wishes = if completed { report.wishes } else { AgentRequests::default() };
        let message = report.final_message.replace(&format!("<promise>{promise}</promise>"), "");
        let message = session_summary(&self.ctx.redactor.text(&message));
        if !matches!(report.end, SessionEnd::Completed | SessionEnd::Stopped { .. } | SessionEnd::Interrupted)
        {
            let words = report.end.reason().unwrap_or("").to_owned();
            self.ctx
                .error_entry(&format!("iteration {iteration}: session ended: {}", report.end.word()), &words);
        }
        let role = self.ctx.state.iterations.current.as_ref().and_then(|c| c.role);
        let findings = role
            .filter(|role| completed && *role != Role::Builder)
            .map(|_| tail(self.ctx.redactor.text(&report.final_message).trim(), FINDINGS_MAX).to_owned());
        self.ctx.record(EventBody::SessionEnded {
            iteration,
            end: clean(report.end),
            promised,
            message,
            usage: priced(report.usage, self.helpers.pricing.as_ref()),
            duration_ms: report.duration.as_millis() as u64,
            exit_code: report.exit_code,
            response: Some(response),
            survivors: report.survivors,
            claims: task_book::bounded(&self.ctx.state.spec.task, wishes.claims).into_iter().collect(),
            ask: wishes.ask.map(clean_ask),
            commit_message: wishes
                .commit_message
                .map(|m| head(&self.ctx.redactor.text(&m), COMMIT_MESSAGE_MAX).to_owned()),
            findings,
            denials,
        })?;
        Ok(())
    }

    /// Closes a session during which the engine died. Its cost is unknown; it doesn't count as an iteration.
    pub(crate) fn close_interrupted(&mut self) -> Result<(), DriveError> {
        let Some(current) = &self.ctx.state.iterations.current else { return Ok(()) };
        let iteration = current.iteration;
        self.ctx.record(EventBody::SessionEnded {
            iteration,
            end: SessionEnd::Interrupted,
            promised: false,
            message: String::new(),
            usage: Usage::unknown(),
            duration_ms: 0,
            exit_code: None,
            response: None,
            survivors: 0,
            claims: Vec::new(),
            ask: None,
            commit_message: None,
            findings: None,
            denials: 0,
        })?;
        Ok(())
    }

    /// Handles a session that wasn't an iteration.
    pub(crate) fn void(&mut self) -> Result<(), DriveError> {
        self.ctx.boundary("void.before");
        let events = consequences(&self.ctx.state, self.ctx.clock.now());
        let rests = events.iter().any(|e| matches!(e, EventBody::CooldownSet { .. }));
        for body in events {
            self.ctx.record(body)?;
        }
        if rests {
            self.ctx.save_cooldowns()?;
        }
        self.ctx.flush()?;
        self.ctx.boundary("void.after");
        Ok(())
    }
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
fn priced(mut usage: Usage, pricing: Option<&Pricing>) -> Usage {
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
