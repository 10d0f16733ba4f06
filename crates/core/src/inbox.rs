//! People's controls: read from the inbox, journalled with who sent them, carried out.

use crate::context::Context;
use crate::error::DriveError;
use ralph_domain::control::{Control, Letter};
use ralph_domain::dialect::adopt::edited;
use ralph_domain::dialect::{Dialect, TaskTexts};
use ralph_domain::event::EventBody;
use ralph_domain::id::Digest;
use ralph_domain::lint::{LintFacts, lint};
use ralph_domain::ports::StopCause;
use ralph_domain::state::Stage;
use ralph_journal::{inbox, snapshot};

/// Bytes of notes and guardrails that are looked through.
const MEMORY_MAX: u64 = 16 * 1024 * 1024;

impl Context {
    /// Takes what has come. Returns what it means for a session that runs now.
    pub fn read_inbox(&mut self) -> Result<Option<StopCause>, DriveError> {
        let mut stop = None;
        if let Some(by) = self.cancel.get() {
            self.suspend_by.get_or_insert_with(|| by.to_owned());
            // Asked for again, it is urgent: what runs gets no more time to end in good order.
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

    /// The person in front of a run that is being suspended wants to end it for good.
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

    /// An edit is refused for whatever would refuse a run of that task.
    fn check_edit(&self, text: &str) -> Result<(), String> {
        let spec = &self.state.spec;
        edited(&spec.task, text)?;
        // A plan's other files stand where they are; this edit does not bring them.
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

    /// Effects outside the state. Each can be repeated, so that a crash between journal and effect loses nothing.
    fn carry_out(&mut self, letter: &Letter) -> Result<(), DriveError> {
        match &letter.control {
            Control::Note { text } => self.append_once("notes.md", "# Notes", text, letter),
            Control::Guardrail { text } => {
                let (trigger, instruction) = guardrail_parts(text);
                let rule = format!(
                    "### guardrail: {}\n- trigger: {trigger}\n- instruction: {instruction}\n- added_after: iteration {}\n- evidence: added by {}",
                    ralph_domain::text::one_line(instruction, 60),
                    self.state.iterations.count,
                    letter.from
                );
                self.append_once("guardrails.md", "# Guardrails", &rule, letter)
            }
            Control::Cooldown { .. } => self.save_cooldowns(),
            Control::Edit { .. } => self.new_spec_version(),
            _ => Ok(()),
        }
    }

    /// Redoes the effects of recent controls that a crash may have swallowed.
    pub fn redo_controls(&mut self) -> Result<(), DriveError> {
        let letters: Vec<Letter> = self.state.people.letters.iter().cloned().collect();
        for letter in letters {
            if matches!(letter.control, Control::Note { .. } | Control::Guardrail { .. }) {
                self.carry_out(&letter)?;
            }
        }
        Ok(())
    }

    fn append_once(
        &mut self,
        file: &str,
        title: &str,
        text: &str,
        letter: &Letter,
    ) -> Result<(), DriveError> {
        let marker = format!("<!-- {} {} -->", letter.id, letter.from);
        let before = self.dir.read_text(file, MEMORY_MAX);
        if before.contains(&marker) {
            return Ok(());
        }
        let head = if before.is_empty() { format!("{title}\n") } else { String::new() };
        let text = self.redactor.text(text);
        self.dir.append(file, &format!("{head}\n{}\n{marker}\n", text.trim_end()))?;
        Ok(())
    }

    /// The edited task is frozen as the next version. The state holds the new text already.
    pub fn new_spec_version(&mut self) -> Result<(), DriveError> {
        let version = self.state.spec.spec_version + 1;
        let mut spec = self.state.spec.clone();
        spec.spec_version = version;
        // The earlier version stays: what an iteration was told can always be looked up.
        let old = self.run.path().join(format!("spec.v{}.json", version - 1));
        if !old.exists() {
            let _ = std::fs::copy(self.run.spec(), &old);
        }
        let task = Digest::of(spec.task.text.as_bytes());
        let spec = snapshot::write_spec(self.journal.places(), &spec)?;
        self.record(EventBody::SpecChanged { version, spec, task })?;
        Ok(())
    }
}
/// When a guardrail counts, and what it says: `when a test hangs: end it` is how the doctor suggests one.
fn guardrail_parts(text: &str) -> (&str, &str) {
    let named = text.strip_prefix("when ").and_then(|rest| rest.split_once(": "));
    named
        .filter(|(trigger, rule)| !trigger.contains('\n') && !rule.trim().is_empty())
        .unwrap_or(("always", text))
}

#[cfg(test)]
mod tests {
    use super::guardrail_parts;

    #[test]
    fn a_guardrail_keeps_when_it_counts() {
        assert_eq!(guardrail_parts("when a test hangs: end it first"), ("a test hangs", "end it first"));
        for plain in ["never touch the schema", "when in doubt ask", "when :", "when a: "] {
            assert_eq!(guardrail_parts(plain), ("always", plain));
        }
    }
}
