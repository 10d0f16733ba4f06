//! The doctor: a strong model reads the record and answers by schema; rules speak where no model can.

use super::record::Record;
use super::{add, rules, usage_of};
use ralph_domain::config::Profile;
use ralph_domain::model::{Message, ModelClient, ModelRequest, ModelSink, Pricing, TextPart, UserPart};
use ralph_domain::money::Usage;
use ralph_domain::state::RunState;
use ralph_protocol::diagnosis::{Report, SCHEMA};

const SYSTEM: &str = include_str!("../../templates/doctor.md");
/// Calls that may mend an answer which breaks the schema.
const REPAIRS: usize = 1;

/// A report and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// The report.
    pub report: Report,
    /// The profile that spoke, or `rules`.
    pub by: String,
    /// What it used.
    pub usage: Usage,
    /// Why the rules had to speak, where a model was to.
    pub note: Option<String>,
}

/// Reads the record with the given model; by rules where there is none or it cannot answer.
pub fn diagnose(
    state: &RunState,
    record: &Record,
    model: Option<(&dyn ModelClient, &Profile)>,
    pricing: Option<&Pricing>,
    sink: &mut dyn ModelSink,
) -> Diagnosis {
    let by_rules =
        |usage, note| Diagnosis { report: rules::report(state, record), by: "rules".into(), usage, note };
    let Some((client, profile)) = model else { return by_rules(Usage::free(), None) };
    let mut usage: Option<Usage> = None;
    let mut messages = vec![user(&record.text())];
    let mut problem = String::new();
    for _ in 0..=REPAIRS {
        let request = ModelRequest {
            system: vec![TextPart::cached(SYSTEM.replace("{{schema}}", SCHEMA))],
            messages: messages.clone(),
            json_schema: serde_json::from_str(SCHEMA).ok(),
            ..ModelRequest::default()
        };
        let reply = match client.call(profile, &request, sink) {
            Ok(reply) => reply,
            Err(error) => {
                let used = usage.unwrap_or_else(Usage::free);
                return by_rules(used, Some(format!("{} could not answer: {error}", profile.name)));
            }
        };
        let used = usage_of(profile, &reply, pricing);
        usage = Some(match usage {
            Some(before) => add(before, used),
            None => used,
        });
        match Report::parse(&reply.text()) {
            Ok(report) => {
                let usage = usage.unwrap_or_default();
                return Diagnosis { report, by: profile.name.clone(), usage, note: None };
            }
            Err(error) => {
                messages.push(Message::Assistant { parts: reply.parts });
                messages.push(user(&format!(
                    "That answer cannot be used: {error}. Answer again with the whole object."
                )));
                problem = error;
            }
        }
    }
    let note = format!("{} did not keep to the schema: {problem}", profile.name);
    by_rules(usage.unwrap_or_default(), Some(note))
}

fn user(text: &str) -> Message {
    Message::User { parts: vec![UserPart::Text(TextPart::plain(text))] }
}
