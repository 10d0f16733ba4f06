//! Consult: asks the doctor, the critic, or the library's caller.

use crate::error::DriveError;
use crate::help::{self, RunRecord, StuckContext};
use crate::inbox;
use crate::ledger::Ledger;
use crate::observers::SessionProgress;
use crate::run::Run;
use crate::steps::prepare;
use ralph_loop_domain::ports::{
    Agent, AskAnswer, AskError, AskErrorKind, AskSink, AskTarget, AskedAgent, Asker, StopCause,
};
use ralph_loop_domain::recovery;
use ralph_loop_domain::redact::RedactStream;
use ralph_loop_domain::stuck::StuckKind;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::inbox as letters;
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

/// Runs the doctor on a stopped run without resuming it.
pub fn consult_doctor(mut run: Run, profile: Option<&str>) -> Result<(), DriveError> {
    diagnose_with(&mut run, profile)?;
    run.ledger.settle()?;
    prepare::clear_marker(&run);
    Ok(())
}

/// Runs the doctor and writes its report.
pub(crate) fn diagnose(run: &mut Run) -> Result<(), DriveError> {
    diagnose_with(run, None)
}

/// Runs the doctor with the user's choice of a profile.
fn diagnose_with(run: &mut Run, profile: Option<&str>) -> Result<(), DriveError> {
    run.boundary("diagnose.before");
    let state = &run.ledger.state;
    let record = RunRecord::read(&run.ledger.dir, &run.ledger.record_dir, state, &run.ledger.redactor);
    let doctor = &state.spec.settings.doctor;
    let wanted = profile.or(doctor.profile.as_deref());
    let profile = wanted.and_then(|name| state.spec.settings.models.get(name)).map(hasty);
    let asker = run.ports.helpers.asker.clone();
    let model = asker.as_deref().zip(profile.as_ref());
    let (iteration, apply) = (state.iterations.count, doctor.apply);
    let snapshot = state.clone();
    let now = run.clock.now();
    let mut sink = ConsultSink::new(&mut run.ledger, "the doctor reads the run");
    let diagnosis = help::diagnose(&snapshot, &record, model, now, &mut sink);
    sink.done()?;
    if let Some(note) = &diagnosis.note {
        run.notice(format!("the doctor's rules speak: {}", one_line(note, 300)))?;
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
    let text = run.ledger.redact_for_display(&diagnosis.report.markdown(&heading));
    write_report(&run.ledger, &text)?;
    let json = serde_json::to_vec_pretty(&diagnosis.report).unwrap_or_default();
    let digest = artifacts::write(
        &run.ledger.record_dir.path().join(format!("diagnosis-{iteration}.json")),
        &run.ledger.redactor.bytes(&json),
    )?;
    run.boundary("diagnose.report");
    // Sent before the event: a crash in between sends the same controls again, and the inbox deduplicates
    // by id.
    if apply == Apply::Auto {
        let controls = diagnosis.report.controls(snapshot.spec.task.file_text());
        send(&run.ledger, iteration, controls)?;
    }
    run.record(EventBody::Diagnosed(Diagnosed {
        iteration,
        by: diagnosis.by,
        summary: one_line(&run.ledger.redactor.text(&diagnosis.report.summary), 1000),
        report: digest,
        usage: diagnosis.usage,
        suggestions: diagnosis.report.suggestions(),
    }))?;
    inbox::read(&mut run.ledger)?;
    run.flush()?;
    run.boundary("diagnose.after");
    Ok(())
}

/// Runs the critic on the last changes. If it fails, there are no objections.
pub(crate) fn criticise(run: &mut Run) -> Result<(), DriveError> {
    run.boundary("criticise.before");
    let state = &run.ledger.state;
    let record = RunRecord::read(&run.ledger.dir, &run.ledger.record_dir, state, &run.ledger.redactor);
    let critic = state.spec.settings.critic.clone();
    let iteration = state.iterations.count;
    let eyes = recovery::critic(state).cloned();
    let profile = critic.profile.as_deref().and_then(|name| state.spec.settings.models.get(name)).map(hasty);
    let record = record.text();
    let (by, objections, usage) = match (run.ports.helpers.asker.clone(), profile) {
        (Some(asker), Some(profile)) => {
            let question = help::critic_question(AskTarget::Profile(&profile), &record, run.clock.now());
            let mut sink = ConsultSink::new(&mut run.ledger, "a critic looks at the last changes");
            let answer = asker.ask(&question, &mut sink);
            sink.done()?;
            critic_result(run, profile.name, answer)?
        }
        (asker, _) => match eyes.and_then(|name| run.ports.agents.iter().position(|a| *a.name() == name)) {
            Some(at) => {
                let name = run.ports.agents[at].name().to_string();
                let answer = ask_agent(run, asker.as_deref(), at, &record)?;
                critic_result(run, name, answer)?
            }
            None => ("nobody".to_owned(), String::new(), Usage::free()), // words: ok (a value in journals)
        },
    };
    let objections = run.redactor.text(&objections).into_owned();
    run.record(EventBody::Criticised(Criticised { iteration, by, objections, usage }))?;
    run.flush()?;
    run.boundary("criticise.after");
    Ok(())
}

fn critic_result(
    run: &mut Run,
    by: String,
    answer: Result<AskAnswer, AskError>,
) -> Result<(String, String, Usage), DriveError> {
    Ok(match answer {
        Ok(answer) => (by, help::objections(&answer.text), answer.usage),
        Err(error) => {
            let problem = one_line(&error.message, 300);
            run.notice(format!("the critic {by} failed: {problem}"))?;
            (by, String::new(), *error.usage)
        }
    })
}

/// Runs an agent as critic in a throwaway checkout.
fn ask_agent(
    run: &mut Run,
    asker: Option<&dyn Asker>,
    at: usize,
    record: &str,
) -> Result<Result<AskAnswer, AskError>, DriveError> {
    let state = &run.ledger.state;
    let agent: &dyn Agent = &*run.ports.agents[at];
    let unavailable = |why: &str| Ok(Err(AskError::free(AskErrorKind::NotAvailable, why)));
    let Some(asker) = asker else { return unavailable("questions can't be answered here") };
    let Some(config) = state.spec.settings.agent(agent.name()).cloned() else {
        return unavailable("it is not configured");
    };
    let Some(commit) = state.work.commit.clone().or_else(|| state.baseline.as_ref().map(|b| b.head.clone()))
    else {
        return unavailable("there is nothing to look at yet");
    };
    let folder = run.ports.proof_dir.with_extension("critic");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)
        .map_err(|e| ralph_loop_journal::JournalError::file("make the folder", &folder, e))?;
    run.ports.workspace.checkout_clean(&commit, &folder)?;
    let sandbox = run.ports.sandbox.with_root(&folder)?;
    let prompt_file = run.record_dir.path().join("critic-prompt.md");
    let run_id = state.spec.run_id.clone();
    let model = state.model_for(agent.name());
    let asked = AskedAgent {
        agent,
        config: &config,
        model: model.as_deref(),
        sandbox: &*sandbox,
        run: &run_id,
        iteration: state.iterations.count.max(1),
        prompt_file: &prompt_file,
    };
    let question = help::critic_question(AskTarget::Agent(asked), record, run.clock.now());
    let mut sink = ConsultSink::new(&mut run.ledger, "a critic looks at the last changes");
    let answer = asker.ask(&question, &mut sink);
    sink.done()?;
    let _ = std::fs::remove_dir_all(&folder);
    Ok(answer)
}

/// Asks the calling program for a hint.
pub(crate) fn ask_advisor(
    run: &mut Run,
    kinds: Vec<StuckKind>,
    loop_score: f64,
    evidence: &[String],
    details: &StuckDetails,
) -> Result<(), DriveError> {
    let Some(advisor) = run.ports.helpers.on_stuck.clone() else { return Ok(()) };
    let context = StuckContext::of(&run.ledger.state, kinds, loop_score, evidence, details);
    let text = match advisor.ask(&context) {
        Ok(Some(text)) => text,
        Ok(None) => return Ok(()),
        Err(why) => return run.notice(format!("No hint for the next session: {why}")),
    };
    let id = format!("on-stuck-{}", run.state.iterations.count);
    letters::send_as(&run.ledger.record_dir, &id, "on_stuck", Control::Nudge { text })?;
    inbox::read(&mut run.ledger)?;
    Ok(())
}

/// Limits a helper to one retry.
fn hasty(profile: Profile) -> Profile {
    Profile { max_retries: profile.max_retries.or(Some(1)), ..profile }
}

fn write_report(ledger: &Ledger, text: &str) -> Result<(), DriveError> {
    let before = ledger.dir.read_text("diagnostics.md", DIAGNOSTICS_MAX as u64);
    // Keeps older reports below the newest as space allows, without the template's empty parts.
    let older = before.strip_prefix("# Diagnostics\n").unwrap_or("").trim();
    let older = if older.starts_with("Each report has these parts") { "" } else { older };
    let whole = match older.is_empty() {
        true => text.to_owned(),
        false => format!("{}\n---\n\n{older}\n", text.trim_end()),
    };
    ledger.dir.write(
        "diagnostics.md",
        ralph_loop_protocol::display::text::head(&whole, DIAGNOSTICS_MAX).as_bytes(),
    )?;
    Ok(())
}

fn send(ledger: &Ledger, iteration: u32, controls: Vec<Control>) -> Result<(), DriveError> {
    for (n, control) in controls.into_iter().enumerate() {
        letters::send_as(&ledger.record_dir, &format!("doctor-{iteration}-{n}"), "doctor", control)?;
    }
    Ok(())
}

/// Makes a helper call cancelable and shows its text live.
struct ConsultSink<'a> {
    ledger: &'a mut Ledger,
    what: &'static str,
    started: Duration,
    words: RedactStream,
    error: Option<DriveError>,
}

impl<'a> ConsultSink<'a> {
    fn new(ledger: &'a mut Ledger, what: &'static str) -> Self {
        let started = ledger.clock.elapsed();
        Self { ledger, what, started, words: RedactStream::default(), error: None }
    }

    fn done(mut self) -> Result<(), DriveError> {
        let rest = self.words.finish(&self.ledger.redactor);
        self.ledger.show_text(&LiveStream::Agent, &rest);
        self.error.map_or(Ok(()), Err)
    }

    fn listen(&mut self) -> ControlFlow<StopCause> {
        let live = SessionProgress {
            now: self.ledger.clock.now(),
            elapsed: self.ledger.clock.elapsed() - self.started,
            silent: None,
            activity: self.what,
        };
        self.ledger.observer.live(&self.ledger.state, &live);
        self.ledger.live.keep_pace(self.ledger.clock.elapsed());
        match inbox::read(self.ledger) {
            Ok(_) if self.ledger.ends_now() => ControlFlow::Break(StopCause::Cancelled),
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
        let clean = self.words.push(&self.ledger.redactor, piece.as_bytes());
        self.ledger.show_text(&LiveStream::Agent, &clean);
    }
    fn waiting(&mut self, wait: Duration, reason: &str) {
        let _ = self.ledger.notice(format!(
            "waiting {} for the provider: {}",
            duration(wait),
            one_line(reason, 200)
        ));
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        self.listen()
    }
}
