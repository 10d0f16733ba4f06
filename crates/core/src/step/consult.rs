//! Consult: asks the doctor, the critic, or the library's caller.

use crate::context::Context;
use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::help::{self, RunRecord, StuckContext};
use crate::observers::SessionProgress;
use ralph_loop_domain::ports::{
    Agent, AskAnswer, AskError, AskErrorKind, AskSink, AskTarget, AskedAgent, Asker, StopCause,
};
use ralph_loop_domain::recovery;
use ralph_loop_domain::redact::RedactStream;
use ralph_loop_domain::stuck::StuckKind;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::inbox;
use ralph_loop_journal::live::LiveStream;
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::display::text::{duration, one_line};
use ralph_loop_protocol::event::{Criticised, Diagnosed, EventBody};
use ralph_loop_protocol::money::Usage;
use ralph_loop_protocol::stuck::StuckDetails;
use ralph_loop_task::config::{Apply, Profile};
use std::ops::ControlFlow;
use std::time::Duration;

/// Size limit of `diagnostics.md`.
const DIAGNOSTICS_MAX: usize = 64 * 1024;

impl Driver {
    /// Runs the doctor on a stopped run without resuming it.
    pub fn consult_doctor(mut self, profile: Option<&str>) -> Result<(), DriveError> {
        if let Some(name) = profile {
            self.doctor_profile = Some(name.to_owned());
        }
        self.diagnose()?;
        self.ctx.settle()?;
        self.clear_marker();
        Ok(())
    }

    /// Runs the doctor and writes its report.
    pub(crate) fn diagnose(&mut self) -> Result<(), DriveError> {
        self.ctx.boundary("diagnose.before");
        let state = &self.ctx.state;
        let record = RunRecord::read(&self.ctx.dir, &self.ctx.run, state, &self.ctx.redactor);
        let doctor = &state.spec.settings.doctor;
        let wanted = self.doctor_profile.as_deref().or(doctor.profile.as_deref());
        let profile = wanted.and_then(|name| state.spec.settings.models.get(name)).map(hasty);
        let asker = self.helpers.asker.clone();
        let model = asker.as_deref().zip(profile.as_ref());
        let (iteration, apply) = (state.iterations.count, doctor.apply);
        let snapshot = state.clone();
        let now = self.ctx.clock.now();
        let mut sink = ConsultSink::new(&mut self.ctx, "the doctor reads the run");
        let diagnosis = help::diagnose(&snapshot, &record, model, now, &mut sink);
        sink.done()?;
        if let Some(note) = &diagnosis.note {
            self.ctx.notice(format!("the doctor's rules speak: {}", one_line(note, 300)))?;
        }
        let heading = format!(
            "Run {} after {} iterations, by {} ({}).",
            snapshot.spec.run_id,
            iteration,
            diagnosis.by,
            match apply {
                Apply::Ask => "not applied: `ralph diagnose --apply`",
                Apply::Auto => "applied",
            }
        );
        let text = self.ctx.redact_for_display(&diagnosis.report.markdown(&heading));
        write_report(&self.ctx, &text)?;
        let json = serde_json::to_vec_pretty(&diagnosis.report).unwrap_or_default();
        let digest = artifacts::write(
            &self.ctx.run.path().join(format!("diagnosis-{iteration}.json")),
            &self.ctx.redactor.bytes(&json),
        )?;
        self.ctx.boundary("diagnose.report");
        // Sent before the event: a crash in between sends the same controls again, and the inbox deduplicates
        // by id.
        if apply == Apply::Auto {
            let controls = diagnosis.report.controls(&snapshot.spec.task.text);
            send(&self.ctx, iteration, controls)?;
        }
        self.ctx.record(EventBody::Diagnosed(Diagnosed {
            iteration,
            by: diagnosis.by,
            summary: one_line(&self.ctx.redactor.text(&diagnosis.report.summary), 1000),
            report: digest,
            usage: diagnosis.usage,
            suggestions: diagnosis.report.suggestions(),
        }))?;
        self.ctx.read_inbox()?;
        self.ctx.flush()?;
        self.ctx.boundary("diagnose.after");
        Ok(())
    }

    /// Runs the critic on the last changes. If it fails, there are no objections.
    pub(crate) fn criticise(&mut self) -> Result<(), DriveError> {
        self.ctx.boundary("criticise.before");
        let state = &self.ctx.state;
        let record = RunRecord::read(&self.ctx.dir, &self.ctx.run, state, &self.ctx.redactor);
        let critic = state.spec.settings.critic.clone();
        let iteration = state.iterations.count;
        let eyes = recovery::critic(state).cloned();
        let profile =
            critic.profile.as_deref().and_then(|name| state.spec.settings.models.get(name)).map(hasty);
        let record = record.text();
        let (by, objections, usage) = match (self.helpers.asker.clone(), profile) {
            (Some(asker), Some(profile)) => {
                let question =
                    help::critic_question(AskTarget::Profile(&profile), &record, self.ctx.clock.now());
                let mut sink = ConsultSink::new(&mut self.ctx, "a critic looks at the last changes");
                let answer = asker.ask(&question, &mut sink);
                sink.done()?;
                self.critic_result(profile.name, answer)?
            }
            (asker, _) => match eyes.and_then(|name| self.agents.iter().position(|a| *a.name() == name)) {
                Some(at) => {
                    let name = self.agents[at].name().to_string();
                    let answer = self.ask_agent(asker.as_deref(), at, &record)?;
                    self.critic_result(name, answer)?
                }
                None => ("nobody".to_owned(), String::new(), Usage::free()), // words: ok (a value in journals)
            },
        };
        let objections = self.ctx.redactor.text(&objections).into_owned();
        self.ctx.record(EventBody::Criticised(Criticised { iteration, by, objections, usage }))?;
        self.ctx.flush()?;
        self.ctx.boundary("criticise.after");
        Ok(())
    }

    fn critic_result(
        &mut self,
        by: String,
        answer: Result<AskAnswer, AskError>,
    ) -> Result<(String, String, Usage), DriveError> {
        Ok(match answer {
            Ok(answer) => (by, help::objections(&answer.text), answer.usage),
            Err(error) => {
                let problem = one_line(&error.message, 300);
                self.ctx.notice(format!("the critic {by} failed: {problem}"))?;
                (by, String::new(), *error.usage)
            }
        })
    }

    /// Runs an agent as critic in a throwaway checkout.
    fn ask_agent(
        &mut self,
        asker: Option<&dyn Asker>,
        at: usize,
        record: &str,
    ) -> Result<Result<AskAnswer, AskError>, DriveError> {
        let state = &self.ctx.state;
        let agent: &dyn Agent = &*self.agents[at];
        let unavailable = |why: &str| Ok(Err(AskError::free(AskErrorKind::NotAvailable, why)));
        let Some(asker) = asker else { return unavailable("questions can't be answered here") };
        let Some(config) = state.spec.settings.agent(agent.name()).cloned() else {
            return unavailable("it is not configured");
        };
        let Some(commit) =
            state.work.commit.clone().or_else(|| state.baseline.as_ref().map(|b| b.head.clone()))
        else {
            return unavailable("there is nothing to look at yet");
        };
        let folder = self.ctx.proof_dir.with_extension("critic");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)
            .map_err(|e| ralph_loop_journal::JournalError::file("make the folder", &folder, e))?;
        self.workspace.checkout_clean(&commit, &folder)?;
        let sandbox = self.sandbox.with_root(&folder)?;
        let prompt_file = self.ctx.run.path().join("critic-prompt.md");
        let run = state.spec.run_id.clone();
        let model = state.model_for(agent.name());
        let asked = AskedAgent {
            agent,
            config: &config,
            model: model.as_deref(),
            sandbox: &*sandbox,
            run: &run,
            iteration: state.iterations.count.max(1),
            prompt_file: &prompt_file,
        };
        let question = help::critic_question(AskTarget::Agent(asked), record, self.ctx.clock.now());
        let mut sink = ConsultSink::new(&mut self.ctx, "a critic looks at the last changes");
        let answer = asker.ask(&question, &mut sink);
        sink.done()?;
        let _ = std::fs::remove_dir_all(&folder);
        Ok(answer)
    }

    /// Asks the calling program for a hint.
    pub(crate) fn ask_advisor(
        &mut self,
        kinds: Vec<StuckKind>,
        loop_score: f64,
        evidence: &[String],
        details: &StuckDetails,
    ) -> Result<(), DriveError> {
        let Some(advisor) = self.helpers.on_stuck.clone() else { return Ok(()) };
        let context = StuckContext::of(&self.ctx.state, kinds, loop_score, evidence, details);
        let text = match advisor.ask(&context) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(()),
            Err(why) => return self.ctx.notice(format!("No hint for the next session: {why}")),
        };
        let id = format!("on-stuck-{}", self.ctx.state.iterations.count);
        inbox::send_as(&self.ctx.run, &id, "on_stuck", Control::Nudge { text })?;
        self.ctx.read_inbox()?;
        Ok(())
    }
}

/// Limits a helper to one retry.
fn hasty(profile: Profile) -> Profile {
    Profile { max_retries: profile.max_retries.or(Some(1)), ..profile }
}

fn write_report(ctx: &Context, text: &str) -> Result<(), DriveError> {
    let before = ctx.dir.read_text("diagnostics.md", DIAGNOSTICS_MAX as u64);
    // Keeps older reports below the newest as space allows, without the template's empty parts.
    let older = before.strip_prefix("# Diagnostics\n").unwrap_or("").trim();
    let older = if older.starts_with("Each report has these parts") { "" } else { older };
    let whole = match older.is_empty() {
        true => text.to_owned(),
        false => format!("{}\n---\n\n{older}\n", text.trim_end()),
    };
    ctx.dir.write(
        "diagnostics.md",
        ralph_loop_protocol::display::text::head(&whole, DIAGNOSTICS_MAX).as_bytes(),
    )?;
    Ok(())
}

fn send(ctx: &Context, iteration: u32, controls: Vec<Control>) -> Result<(), DriveError> {
    for (n, control) in controls.into_iter().enumerate() {
        inbox::send_as(&ctx.run, &format!("doctor-{iteration}-{n}"), "doctor", control)?;
    }
    Ok(())
}

/// Makes a helper call cancelable and shows its text live.
struct ConsultSink<'a> {
    ctx: &'a mut Context,
    what: &'static str,
    started: Duration,
    words: RedactStream,
    error: Option<DriveError>,
}

impl<'a> ConsultSink<'a> {
    fn new(ctx: &'a mut Context, what: &'static str) -> Self {
        let started = ctx.clock.elapsed();
        Self { ctx, what, started, words: RedactStream::default(), error: None }
    }

    fn done(mut self) -> Result<(), DriveError> {
        let rest = self.words.finish(&self.ctx.redactor);
        self.ctx.show_text(&LiveStream::Agent, &rest);
        self.error.map_or(Ok(()), Err)
    }

    fn listen(&mut self) -> ControlFlow<StopCause> {
        let live = SessionProgress {
            now: self.ctx.clock.now(),
            elapsed: self.ctx.clock.elapsed() - self.started,
            silent: None,
            activity: self.what,
        };
        self.ctx.observer.live(&self.ctx.state, &live);
        self.ctx.live.keep_pace(self.ctx.clock.elapsed());
        match self.ctx.read_inbox() {
            Ok(_) if self.ctx.ends_now() => ControlFlow::Break(StopCause::Cancelled),
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => {
                self.error.get_or_insert(error);
                ControlFlow::Break(StopCause::Cancelled)
            }
        }
    }
}

impl AskSink for ConsultSink<'_> {
    fn text(&mut self, piece: &str) {
        let clean = self.words.push(&self.ctx.redactor, piece.as_bytes());
        self.ctx.show_text(&LiveStream::Agent, &clean);
    }
    fn waiting(&mut self, wait: Duration, reason: &str) {
        let _ = self.ctx.notice(format!(
            "waiting {} for the provider: {}",
            duration(wait),
            one_line(reason, 200)
        ));
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        self.listen()
    }
}
