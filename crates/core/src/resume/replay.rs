//! Replays a run from its record and compares today's decisions and prompts with the recorded ones. Asks no
//! model, runs no command, changes nothing.

use crate::prompt::{self, PromptFiles};
use crate::steps::stuck_signals;
use ralph_loop_domain::decide::{DoneReason, Due, Help, Left, NextSession, Step, decide, judge};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::JournalError;
use ralph_loop_journal::folder::layout::RunDir;
use ralph_loop_journal::folder::{plain, snapshot};
use ralph_loop_journal::live::follow::Follower;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::event::{Event, EventBody, Rung, Verdict};
use ralph_loop_protocol::id::{Digest, Seq};
use ralph_loop_task::config::AgentKind;
use ralph_loop_task::spec::RunSpec;
use serde::{Deserialize, Serialize};

/// Size limit of a prompt.
const PROMPT_MAX: u64 = 4 * 1024 * 1024;
/// Reported differences; one changed rule shows everywhere.
const DIFFERENCES_MAX: usize = 200;

/// The result of a replay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// Events read.
    pub events: usize,
    /// Decisions compared.
    pub decisions: usize,
    /// Prompts compared.
    pub prompts: usize,
    /// Differences in run order.
    pub differences: Vec<Difference>,
}

impl Replay {
    /// Whether today's engine behaves the same.
    pub fn is_same(&self) -> bool {
        self.differences.is_empty()
    }
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The recorded event.
    pub seq: Seq,
    /// Its iteration; 0 before the first.
    pub iteration: u32,
    /// `decision`, `verdict`, `loop_score` or `prompt`.
    pub what: String,
    /// The recorded value.
    pub recorded: String,
    /// Today's value.
    pub today: String,
}

/// Replays a run from its record.
pub fn replay(run: &RunDir) -> Result<Replay, JournalError> {
    let spec = snapshot::read_spec(run)?;
    let events = Follower::new(&run.events(), Seq(0)).poll()?;
    Ok(Replayed::new(run, spec, &events).through(&events))
}

struct Replayed<'a> {
    run: &'a RunDir,
    state: RunState,
    found: Replay,
    /// The verdict when the current iteration was first due.
    verdict: Option<Verdict>,
    /// The last task edit: earlier text can't be rebuilt from the newest spec.
    edited: Seq,
}

impl<'a> Replayed<'a> {
    fn new(run: &'a RunDir, spec: RunSpec, events: &[Event]) -> Self {
        let edits = events.iter().filter(|event| matches!(event.body, EventBody::SpecChanged(_)));
        let edited = edits.map(|event| event.seq).max().unwrap_or_default();
        Self { run, state: RunState::new(spec), found: Replay::default(), verdict: None, edited }
    }

    fn through(mut self, events: &[Event]) -> Replay {
        for event in events {
            self.found.events += 1;
            self.look_at(event);
            self.state.apply(event);
            if matches!(event.body, EventBody::IterationStarted { .. } | EventBody::IterationEnded { .. }) {
                self.verdict = None;
            }
        }
        self.found
    }

    fn look_at(&mut self, event: &Event) {
        let step = decide(&self.state);
        if step == Step::Judge && self.verdict.is_none() {
            self.verdict = Some(judge(&self.state));
        }
        if let Some(fits) = expected(&event.body) {
            self.found.decisions += 1;
            // The engine decides before it writes, so ignore differences caused only by the clock.
            let mut later = self.state.clone();
            later.tick(event.at);
            let today = [step, decide(&later)];
            if !today.iter().any(fits) {
                self.differs(event, "decision", words_of(&event.body), words(&today[1]));
            }
        }
        match &event.body {
            EventBody::IterationStarted { iteration, agent, prompt, role, .. } => {
                let kind = self.state.spec.settings.agent(agent).map(|config| config.kind);
                self.prompt(event, *iteration, prompt, kind.unwrap_or_default(), *role);
            }
            EventBody::IterationEnded { verdict, signals, failure, evidence, .. } => {
                self.found.decisions += 1;
                match self.verdict {
                    Some(today) if today != *verdict => {
                        self.differs(event, "verdict", verdict.words().to_owned(), today.words().to_owned());
                    }
                    Some(_) => {}
                    None => {
                        let today = words(&decide(&self.state));
                        self.differs(event, "verdict", verdict.words().to_owned(), today);
                    }
                }
                if let Some(current) = self.state.iterations.current.clone() {
                    let today = stuck_signals::score(&self.state, &current, failure.as_ref(), evidence);
                    if (today.loop_score - signals.loop_score).abs() > 0.001 {
                        let told = |score: f64, why: &[String]| {
                            one_line(&format!("{score:.2}: {}", why.join("; ")), 300)
                        };
                        let (then, now) = (
                            told(signals.loop_score, &signals.evidence),
                            told(today.loop_score, &today.evidence),
                        );
                        self.differs(event, "loop_score", then, now);
                    }
                }
            }
            _ => {}
        }
    }

    /// Compares the recorded prompt with what today's engine would write for the same state.
    fn prompt(
        &mut self,
        event: &Event,
        iteration: u32,
        digest: &Digest,
        kind: AgentKind,
        role: Option<ralph_loop_task::config::Role>,
    ) {
        let recorded = plain::read_text(&self.run.iteration(iteration).join("prompt.md"), PROMPT_MAX);
        // The file belongs to the last try.
        if Digest::of(recorded.as_bytes()) != *digest {
            return;
        }
        self.found.prompts += 1;
        let files = PromptFiles::of_record(self.run, &self.state);
        let redactor = Redactor::default();
        let sections = prompt::state_sections(&self.state, &files, kind, role);
        for (name, text) in &sections {
            let text = redactor.text(text).into_owned();
            let of_spec = ["rules", "task"].contains(name) && event.seq < self.edited;
            if of_spec || stands_in(&recorded, text.trim_end()) {
                continue;
            }
            let (then, now) = first_other_line(&recorded, &text);
            self.differs(event, &format!("prompt: {name}"), then, now);
        }
        for (name, then) in left_out(&recorded, &sections) {
            self.differs(event, &format!("prompt: {name}"), then, "(left out)".to_owned());
        }
    }

    fn differs(&mut self, event: &Event, what: &str, recorded: String, today: String) {
        if self.found.differences.len() < DIFFERENCES_MAX {
            let iteration =
                self.state.iterations.current.as_ref().map_or(self.state.iterations.count, |c| c.iteration);
            let what = what.to_owned();
            self.found.differences.push(Difference { seq: event.seq, iteration, what, recorded, today });
        }
    }
}

/// Whether a prompt contains a section as a whole, followed by another one or the end.
fn stands_in(recorded: &str, section: &str) -> bool {
    recorded.match_indices(section).any(|(at, _)| {
        let rest = &recorded[at + section.len()..];
        rest.trim().is_empty() || (rest.starts_with('\n') && rest.trim_start_matches('\n').starts_with("# "))
    })
}

/// Recorded sections that today's engine doesn't write, with their first lines.
fn left_out(recorded: &str, today: &[(&str, String)]) -> Vec<(&'static str, String)> {
    let written = |name: &str| today.iter().any(|(one, _)| *one == name);
    // User or repo text comes before these and may use the same titles.
    let own = recorded.rfind("\n# Changes so far\n").or_else(|| recorded.rfind("\n# Checks\n"));
    let own = own.map_or("", |at| &recorded[at..]);
    let gone = prompt::STATE_TITLES.iter().filter(|(name, _)| !written(name));
    gone.filter_map(|(name, title)| {
        let (_, body) = own.split_once(&format!("\n# {title}\n\n"))?;
        Some((*name, one_line(body.lines().next().unwrap_or_default(), 200)))
    })
    .collect()
}

/// The first line of `text` missing in `recorded`, with the most similar recorded line; or the first line of
/// a section that `text` lacks.
fn first_other_line(recorded: &str, text: &str) -> (String, String) {
    let new = text.lines().find(|line| !line.trim().is_empty() && !recorded.contains(line.trim()));
    let Some(new) = new else {
        let begins = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let then =
            recorded.split_once(begins).map_or("", |(_, rest)| rest.split("\n# ").next().unwrap_or(rest));
        let gone = then.lines().find(|line| !line.trim().is_empty() && !text.contains(line.trim()));
        return match gone {
            Some(gone) => (one_line(gone, 200), "(left out)".to_owned()),
            None => ("(in another order)".to_owned(), "(in another order)".to_owned()),
        };
    };
    let start: String = new.trim().chars().take(12).collect();
    let old = recorded.lines().find(|line| line.trim().starts_with(&start));
    (one_line(old.unwrap_or("(no such line)"), 200), one_line(new, 200))
}

/// Whether a step matches an event.
type Fits<'a> = Box<dyn Fn(&Step) -> bool + 'a>;

/// Matches events that start a step; `None` for events without a decision.
fn expected(body: &EventBody) -> Option<Fits<'_>> {
    Some(match body {
        EventBody::Prepared { .. } => Box::new(|step| *step == Step::Prepare),
        EventBody::IterationStarted { iteration, attempt, agent, model, role, .. } => {
            Box::new(move |step| match step {
                Step::Work(NextSession { iteration: i, attempt: t, agent: a, model: m, role: r, .. }) => {
                    (i, t, a, m, r) == (iteration, attempt, agent, model, role)
                }
                _ => false,
            })
        }
        EventBody::Checkpointed { again: false, .. } => {
            Box::new(|step| *step == Step::Checkpoint(Left::Work))
        }
        EventBody::CheckFinished { result, .. } => Box::new(move |step| match step {
            Step::Verify { checks } => checks.contains(&result.name),
            _ => false,
        }),
        EventBody::IterationVoided { .. } => Box::new(|step| *step == Step::Checkpoint(Left::Void)),
        EventBody::WaitStarted { .. } => {
            Box::new(|step| matches!(step, Step::Wait { .. } | Step::Publish(Due::Checks | Due::Review)))
        }
        EventBody::Mitigated { rung, .. } => Box::new(move |step| *step == Step::Recover(Help::Rung(*rung))),
        EventBody::Criticised(_) => Box::new(|step| *step == Step::Recover(Help::Critic)),
        EventBody::ProofStarted { .. } => Box::new(|step| *step == Step::Prove),
        EventBody::NeedsHuman { reason, .. } => Box::new(move |step| match step {
            Step::AskUser(need) => need.reason == *reason,
            // A final check that needs the user says so in its event.
            Step::Prove | Step::Publish(Due::Push | Due::HandOver | Due::Checks | Due::Review) => true,
            _ => false,
        }),
        EventBody::Finished { reason, .. } => {
            Box::new(move |step| matches!(step, Step::Finish { reason: today, .. } if today == reason))
        }
        _ => return None,
    })
}

fn rung_word(rung: Rung) -> String {
    format!("{rung:?}").to_lowercase()
}

/// A recorded decision as text.
fn words_of(body: &EventBody) -> String {
    match body {
        EventBody::IterationStarted { iteration, attempt, agent, model, .. } => {
            let model = model.as_deref().map_or_else(String::new, |model| format!(" with {model}"));
            format!("iteration {iteration} (try {attempt}) by {agent}{model}")
        }
        EventBody::CheckFinished { result, .. } => format!("check `{}`", result.name),
        EventBody::Mitigated { rung, .. } => format!("recovery: {}", rung_word(*rung)),
        EventBody::NeedsHuman { message, .. } => format!("ask a person: {}", one_line(message, 120)),
        EventBody::Finished { reason, .. } => format!("end: {}", reason.as_str()),
        body => body.kind().replace('_', " "),
    }
}

/// Today's decision as text.
fn words(step: &Step) -> String {
    match step {
        Step::Work(NextSession { iteration, attempt, agent, model, .. }) => {
            let model = model.as_deref().map_or_else(String::new, |model| format!(" with {model}"));
            format!("iteration {iteration} (try {attempt}) by {agent}{model}")
        }
        Step::Verify { checks } => format!("checks: {}", checks.join(", ")),
        Step::Recover(Help::Rung(rung)) => format!("recovery: {}", rung_word(*rung)),
        Step::AskUser(need) => format!("ask a person: {}", one_line(&need.message, 120)),
        Step::Wait { reason, .. } => format!("wait: {}", one_line(reason, 120)),
        Step::Finish { reason, .. } => format!("end: {}", reason.as_str()),
        Step::Prepare => "prepare".into(),
        Step::Checkpoint(Left::Interruption) => "close the session that was cut off".into(),
        Step::Checkpoint(Left::Void) => "let the session not count".into(),
        Step::Checkpoint(Left::Work) => "record the files".into(),
        Step::Judge => "judge the iteration".into(),
        Step::Recover(Help::Doctor) => "ask the doctor".into(),
        Step::Recover(Help::Critic) => "ask the critic".into(),
        Step::Done(DoneReason::NeedsUser) => "wait for a person's answer".into(),
        Step::Prove => "the final check".into(),
        Step::Publish(Due::Push) => "push".into(),
        Step::Publish(Due::HandOver) => "hand over".into(),
        Step::Publish(Due::Checks) => "look at the checks of the pull request".into(),
        Step::Publish(Due::Review) => "look at the review".into(),
        Step::Publish(Due::Update) => "write into the pull request".into(),
        Step::Done(DoneReason::Ended) => "nothing: it is over".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = "Rules\n- One.\n- Two.\n\n# Task (`t`)\n\nDo it.\n\n# Checks\n\ntests fail\n\n# Read this first\n\nMind the gap.\n";

    #[test]
    fn a_line_at_the_end_of_a_section_that_is_left_out_is_noticed() {
        assert!(stands_in(PROMPT, "Rules\n- One.\n- Two."));
        assert!(!stands_in(PROMPT, "Rules\n- One."));
        let told = first_other_line(PROMPT, "Rules\n- One.\n");
        assert_eq!(told, ("- Two.".to_owned(), "(left out)".to_owned()));
        assert!(stands_in(PROMPT, "\n# Read this first\n\nMind the gap."), "the last one");
    }

    #[test]
    fn a_section_that_is_left_out_is_noticed() {
        let today = [("checks", "\n# Checks\n\ntests fail\n".to_owned())];
        assert_eq!(left_out(PROMPT, &today), [("hints", "Mind the gap.".to_owned())]);
        let own_words = PROMPT.replace("Do it.", "Do it.\n\n# Run budget\n\nMine.");
        assert_eq!(left_out(&own_words, &today).len(), 1, "a title within the task is the task's");
    }
}
