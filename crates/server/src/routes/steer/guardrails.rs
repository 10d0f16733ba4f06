//! A repo's guardrails and the notes of a run.

use crate::auth::Caller;
use crate::http::extract::Answer;
use crate::http::problem::Problem;
use crate::server::Server;
use axum::Json;
use axum::extract::{Path, State};
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::trust::repo_file;
use ralph_loop_domain::repo::guardrail;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_journal::inbox;
use ralph_loop_protocol::control::{Control, Letter};
use serde::Serialize;
use std::sync::Arc;

/// Size limit of a file.
const TEXT_MAX: u64 = 1024 * 1024;

/// Guardrails and notes.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Guardrails {
    /// The whole guardrails file.
    text: String,
    /// Each rule.
    rules: Vec<RuleText>,
    /// Notes for the repo and for this run, those that the run hasn't read yet at the end.
    notes: String,
}

/// One rule.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RuleText {
    /// The text.
    text: String,
}

pub(crate) async fn guardrails(
    State(server): State<Arc<Server>>,
    _: Caller,
    Path(run): Path<String>,
) -> Answer<Json<Guardrails>> {
    let entry = server.entry(&run)?;
    let own = server.clone();
    let answer = server
        .blocking(move || {
            let reading = RunSnapshot::load(own.app.environment(), entry)?;
            let spec = &reading.state.spec;
            let place = if spec.workspace.is_dir() { &spec.workspace } else { spec.home() };
            let dir = RalphDir::of(place);
            let redactor = own.app.environment().redactor(&reading.entry.origin);
            let text = redactor.text(&dir.read_text("guardrails.md", TEXT_MAX)).into_owned();
            let of_run = repo_file::read_record(&reading.entry.run_dir().notes()).unwrap_or_default();
            let notes = format!(
                "{}\n{}{}",
                dir.read_text("notes.md", TEXT_MAX),
                String::from_utf8_lossy(&of_run),
                unread_notes(&reading)?
            );
            let rules =
                guardrail::rules(&text).into_iter().map(|rule| RuleText { text: rule.text }).collect();
            Ok(Guardrails { rules, text, notes: redactor.text(notes.trim()).into_owned() })
        })
        .await?;
    Ok(Json(answer))
}

/// Notes that the run hasn't read yet, in the form that it will write them.
fn unread_notes(reading: &RunSnapshot) -> Result<String, Problem> {
    let mut notes = String::new();
    for (letter, _) in inbox::read(&reading.entry.run_dir(), reading.state.people.inbox)? {
        let Ok(Letter { id, from, control: Control::Note { text } }) = letter else { continue };
        notes.push_str(&format!("\n{}\n<!-- {id} {from} -->\n", text.trim_end()));
    }
    Ok(notes)
}
