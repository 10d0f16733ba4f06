//! The doctor: a strong model reads the record and answers by schema; built-in rules if no model can.

use super::record::RunRecord;
use super::{add, rules};
use jiff::Timestamp;
use ralph_loop_domain::ports::{AskSink, AskTarget, Asker, EarlierAnswer, Question};
use ralph_loop_domain::state::RunState;
use ralph_loop_protocol::money::Usage;
use ralph_loop_protocol::stuck::diagnosis::{Report, SCHEMA};
use ralph_loop_task::config::Profile;
use std::time::Duration;

const SYSTEM: &str = include_str!("../../templates/doctor.md");
/// Calls to repair an answer that violates the schema.
const REPAIRS: usize = 1;
const TIMEOUT: Duration = Duration::from_secs(15 * 60);

#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    pub report: Report,
    /// The model profile, or `rules`.
    pub by: String,
    pub usage: Usage,
    /// Why the rules answered instead of a model.
    pub note: Option<String>,
}

/// Reads the record with a model, or by rules if there is none or it fails.
pub fn diagnose(
    state: &RunState,
    record: &RunRecord,
    model: Option<(&dyn Asker, &Profile)>,
    now: Timestamp,
    sink: &mut dyn AskSink,
) -> Diagnosis {
    let by_rules =
        |usage, note| Diagnosis { report: rules::report(state, record), by: "rules".into(), usage, note };
    let Some((asker, profile)) = model else { return by_rules(Usage::free(), None) };
    let (system, prompt) = (SYSTEM.replace("{{schema}}", SCHEMA), record.text());
    let schema = serde_json::from_str(SCHEMA).ok();
    let mut usage: Option<Usage> = None;
    let mut earlier = Vec::new();
    let mut problem = String::new();
    for _ in 0..=REPAIRS {
        let question = Question {
            whom: AskTarget::Profile(profile),
            system: &system,
            prompt: &prompt,
            earlier: &earlier,
            schema: schema.as_ref(),
            max_output_tokens: None,
            max_cost: None,
            timeout: TIMEOUT,
            stream: false,
            now,
        };
        let answer = match asker.ask(&question, sink) {
            Ok(answer) => answer,
            Err(error) => {
                let used = usage.unwrap_or_else(Usage::free);
                return by_rules(used, Some(format!("{} could not answer: {error}", profile.name)));
            }
        };
        usage = Some(match usage {
            Some(before) => add(before, answer.usage),
            None => answer.usage,
        });
        match Report::parse(&answer.text) {
            Ok(report) => {
                let usage = usage.unwrap_or_default();
                return Diagnosis { report, by: profile.name.clone(), usage, note: None };
            }
            Err(error) => {
                let then = format!("That answer is invalid: {error}. Answer again with the whole object.");
                earlier.push(EarlierAnswer { answer: answer.text, then });
                problem = error;
            }
        }
    }
    let note = format!("{} did not keep to the schema: {problem}", profile.name);
    by_rules(usage.unwrap_or_default(), Some(note))
}
