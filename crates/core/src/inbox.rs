//! Reads controls from the inbox, journals them with their sender, and applies them.

use crate::context::Context;
use crate::error::DriveError;
use crate::record::guardrails::{GUARDRAILS, MEMORY_MAX};
use ralph_loop_domain::ports::StopCause;
use ralph_loop_domain::repo::guardrail;
use ralph_loop_domain::state::Stage;
use ralph_loop_journal::folder::{artifacts, snapshot};
use ralph_loop_journal::inbox;
use ralph_loop_protocol::control::{Control, Letter};
use ralph_loop_protocol::event::{EventBody, SpecChanged};
use ralph_loop_protocol::id::Digest;
use ralph_loop_task::dialect::adopt::edited;
use ralph_loop_task::dialect::{Dialect, TaskTexts};
use ralph_loop_task::lint::{LintFacts, lint};

impl Context {
    /// Reads new controls. Returns what they mean for the current session.
    pub fn read_inbox(&mut self) -> Result<Option<StopCause>, DriveError> {
        let mut stop = None;
        if let Some(by) = self.cancel.get() {
            self.suspend_by.get_or_insert_with(|| by.to_owned());
            // A repeated request is urgent: no more time to end cleanly.
            stop = Some(if self.cancel.times() > 1 { StopCause::Cancelled } else { StopCause::Suspended });
        }
        let new = std::fs::metadata(self.run.inbox()).is_ok_and(|m| m.len() > self.state.people.inbox);
        if !new {
            return Ok(stop);
        }
        for (letter, after) in inbox::read(&self.run, self.state.people.inbox)? {
            match letter {
                Ok(letter) if self.state.has_letter(&letter.id) => self.state.pass_over_inbox(after),
                Ok(letter) => {
                    let cause = self.stop_cause(&letter.control);
                    self.take(letter, after)?;
                    stop = stop.or(cause);
                }
                Err(reason) => {
                    let id = format!("unreadable-{after}");
                    self.record(EventBody::ControlRefused { id, reason, inbox: after })?;
                }
            }
        }
        self.flush()?;
        Ok(stop)
    }

    /// Ends a suspending run permanently, because the user asked for that.
    pub fn cancel_instead(&mut self, by: &str) -> Result<(), DriveError> {
        let letter =
            Letter { id: format!("signal-{}", self.state.seq), from: by.into(), control: Control::Cancel };
        let inbox = self.state.people.inbox;
        self.record(EventBody::ControlReceived { letter, inbox })?;
        Ok(())
    }

    fn stop_cause(&self, control: &Control) -> Option<StopCause> {
        let current = self.state.iterations.current.as_ref().filter(|c| c.stage == Stage::Working)?;
        match control {
            Control::Cancel => Some(StopCause::Cancelled),
            Control::Rotate => Some(StopCause::Rotated),
            Control::Skip { agent: None } => Some(StopCause::Skipped),
            Control::Skip { agent: Some(agent) } if *agent == current.agent => Some(StopCause::Skipped),
            Control::Cooldown { agent, seconds } if *seconds > 0 && *agent == current.agent => {
                Some(StopCause::Skipped)
            }
            _ => None,
        }
    }

    fn take(&mut self, letter: Letter, inbox: u64) -> Result<(), DriveError> {
        if let Control::Skip { agent: Some(agent) }
        | Control::Cooldown { agent, .. }
        | Control::Model { agent: Some(agent), .. } = &letter.control
            && self.state.spec.settings.agent(agent).is_none()
        {
            let reason = format!("there is no agent `{agent}` in this run");
            self.record(EventBody::ControlRefused { id: letter.id, reason, inbox })?;
            return Ok(());
        }
        if let Control::Model { model: Some(model), agent, .. } = &letter.control
            && let Some((problem, known)) = self.state.spec.settings.unknown_model(agent.as_ref(), model)
        {
            let reason = format!("{problem}: {known}");
            self.record(EventBody::ControlRefused { id: letter.id, reason, inbox })?;
            return Ok(());
        }
        if let Control::Edit { task } = &letter.control
            && let Err(reason) = self.check_edit(task)
        {
            self.record(EventBody::ControlRefused { id: letter.id, reason, inbox })?;
            return Ok(());
        }
        let event = self.record(EventBody::ControlReceived { letter, inbox })?;
        let EventBody::ControlReceived { letter, .. } = event.body else { return Ok(()) };
        self.carry_out(&letter)
    }

    /// Rejects an edit for whatever would reject a run of that task.
    fn check_edit(&self, text: &str) -> Result<(), String> {
        let spec = &self.state.spec;
        edited(&spec.task, text)?;
        // A plan's other files stay; the edit doesn't include them.
        if spec.task.dialect == Dialect::Plan {
            return Ok(());
        }
        let facts = LintFacts {
            verifiers: Some(spec.settings.required_verifiers.clone()),
            budget_set: Some(true),
            has_forge: spec.settings.handover.pushes(),
            ..LintFacts::default()
        };
        let report = lint(spec.task.dialect, &TaskTexts::new(&spec.task.source, text), &facts);
        match report.diagnostics.iter().find(|found| found.is_error()) {
            Some(first) => Err(format!("{}:{}: {}; {}", first.file, first.line, first.message, first.fix)),
            None => Ok(()),
        }
    }

    /// Performs effects outside the state. Each is repeatable, so that a crash between journal and effect
    /// loses nothing.
    fn carry_out(&mut self, letter: &Letter) -> Result<(), DriveError> {
        match &letter.control {
            Control::Note { text } => self.note(text, letter),
            Control::Guardrail { text } => {
                let rule = guardrail::written(text, self.state.iterations.count, &letter.from);
                self.add_guardrail(&rule, letter)?;
                self.sync_guardrails();
                Ok(())
            }
            Control::Cooldown { .. } => self.save_cooldowns(),
            Control::Edit { .. } => self.new_spec_version(),
            _ => Ok(()),
        }
    }

    /// Repeats the effects of recent controls, which a crash may have prevented.
    pub fn redo_controls(&mut self) -> Result<(), DriveError> {
        let letters: Vec<Letter> = self.state.people.letters.iter().cloned().collect();
        for letter in letters {
            if matches!(letter.control, Control::Note { .. } | Control::Guardrail { .. }) {
                self.carry_out(&letter)?;
            }
        }
        Ok(())
    }

    fn add_guardrail(&mut self, rule: &str, letter: &Letter) -> Result<(), DriveError> {
        let marker = format!("<!-- {} {} -->", letter.id, letter.from);
        let before = self.dir.read_text(GUARDRAILS, MEMORY_MAX);
        if before.contains(&marker) {
            return Ok(());
        }
        let head = if before.is_empty() { "# Guardrails\n" } else { "" };
        let text = self.redactor.text(rule);
        self.dir.append(GUARDRAILS, &format!("{head}\n{}\n{marker}\n", text.trim_end()))?;
        Ok(())
    }

    /// Stores a note in the run's record: sessions can't change it there and other runs don't read it.
    fn note(&mut self, text: &str, letter: &Letter) -> Result<(), DriveError> {
        let marker = format!("<!-- {} {} -->", letter.id, letter.from);
        let path = self.run.notes();
        let mut notes = std::fs::read_to_string(&path).unwrap_or_default();
        if notes.contains(&marker) {
            return Ok(());
        }
        let text = self.redactor.text(text);
        notes.push_str(&format!(
            "{}{}\n{marker}\n",
            if notes.is_empty() { "" } else { "\n" },
            text.trim_end()
        ));
        artifacts::write_atomic(&path, notes.as_bytes())?;
        Ok(())
    }

    /// Freezes the edited task as the next version. The state already has the new text.
    pub fn new_spec_version(&mut self) -> Result<(), DriveError> {
        let version = self.state.spec.spec_version + 1;
        let mut spec = self.state.spec.clone();
        spec.spec_version = version;
        // Keeps the earlier version, so that each iteration's task can be looked up.
        let old = self.run.path().join(format!("spec.v{}.json", version - 1));
        if !old.exists() {
            let _ = std::fs::copy(self.run.spec(), &old);
        }
        let task = Digest::of(spec.task.text.as_bytes());
        let spec = snapshot::write_spec(self.journal.places(), &spec)?;
        self.record(EventBody::SpecChanged(SpecChanged { version, spec, task }))?;
        Ok(())
    }
}
