//! A run's task: read and edited without overwriting other edits.

use crate::auth::Caller;
use crate::http::extract::{Answer, Body};
use crate::http::problem::Problem;
use crate::people::Role;
use crate::server::Server;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::task::lint::lint_task;
use ralph_loop_app::task::task_source::TaskSource;
use ralph_loop_core::handle::{ControlOutcome, RunHandle};
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_journal::inbox;
use ralph_loop_protocol::control::{Control, Letter};
use ralph_loop_protocol::id::Digest;
use ralph_loop_task::dialect::TaskTexts;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Size limit of a task.
const TEXT_MAX: usize = 160 * 1024;
/// How long to wait for the run to accept an edit.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The task of a run.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TaskAnswer {
    /// Its text.
    pub(in crate::routes) text: String,
    /// The file it came from.
    source: String,
    /// The task format.
    dialect: String,
    /// 1 at the start; each accepted edit adds one.
    version: u32,
    /// The text of an edit that the run hasn't read yet.
    pending: Option<String>,
    #[serde(skip)]
    etag: String,
}

/// A new text.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct TextBody {
    /// The whole text.
    pub(in crate::routes) text: String,
}

/// The outcome of an edit.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SavedTask {
    /// `received` by the run, or `saved` until the run reads it.
    outcome: &'static str,
    /// The version of the task now.
    version: u32,
}

/// The current task with the mark that edits refer to.
fn read(server: &Server, entry: &Registration) -> Result<(TaskAnswer, RunSnapshot), Problem> {
    let reading = RunSnapshot::load(server.app.environment(), entry.clone())?;
    let state = &reading.state;
    let task = &state.spec.task;
    let edits: Vec<(Letter, u64)> = inbox::read(&entry.run_dir(), 0)?
        .into_iter()
        .filter_map(|(letter, after)| Some((letter.ok()?, after)))
        .filter(|(letter, _)| matches!(letter.control, Control::Edit { .. }))
        .collect();
    let pending = edits.last().filter(|(_, after)| *after > state.people.inbox).and_then(|(letter, _)| {
        match &letter.control {
            Control::Edit { task } => Some(task.clone()),
            _ => None,
        }
    });
    let text = task.file_text().to_owned();
    // A pending edit counts, because the next edit must build on it. The mark stays when the run accepts it.
    let mark = Digest::of(pending.as_deref().unwrap_or(&text).as_bytes());
    let answer = TaskAnswer {
        text,
        source: task.source.clone(),
        dialect: task.dialect.as_str().to_owned(),
        version: state.spec.spec_version,
        pending,
        etag: format!("\"{}\"", mark.short()),
    };
    Ok((answer, reading))
}

/// The mark that edits refer to.
pub(in crate::routes) fn mark_of(server: &Server, entry: &Registration) -> Result<String, Problem> {
    Ok(read(server, entry)?.0.etag)
}

pub(crate) async fn get(
    State(server): State<Arc<Server>>,
    _: Caller,
    Path(run): Path<String>,
) -> Answer<Response> {
    let entry = server.entry(&run)?;
    let own = server.clone();
    let answer = server.blocking(move || Ok(read(&own, &entry)?.0)).await?;
    Ok(([(header::ETAG, answer.etag.clone())], Json(answer)).into_response())
}

pub(crate) async fn put(
    State(server): State<Arc<Server>>,
    caller: Caller,
    Path(run): Path<String>,
    headers: HeaderMap,
    Body(body): Body<TextBody>,
) -> Answer<Response> {
    save(server, caller, &run, &headers, body.text).await
}

/// Saves a new text if it was based on the current one.
pub(in crate::routes) async fn save(
    server: Arc<Server>,
    caller: Caller,
    run: &str,
    headers: &HeaderMap,
    text: String,
) -> Answer<Response> {
    caller.may(Role::Operator)?;
    let wanted = if_match(headers)?;
    if text.trim().is_empty() || text.len() > TEXT_MAX {
        return Err(Problem::refused(format!("the task is empty or longer than {} kB", TEXT_MAX / 1024)));
    }
    let entry = server.entry(run)?;
    let _alone = server.edit_alone(&entry.run_id).await;
    let own = server.clone();
    let saved = server.blocking(move || edit(&own, &caller, &entry, &wanted, &text)).await?;
    server.live.touch(&ralph_loop_protocol::id::RunId::new(run));
    Ok(saved)
}

/// The mark in a request, which is required.
pub(in crate::routes) fn if_match(headers: &HeaderMap) -> Result<String, Problem> {
    let named = headers.get(header::IF_MATCH).and_then(|value| value.to_str().ok());
    named.map(|mark| mark.trim().trim_start_matches("W/").to_owned()).ok_or_else(|| {
        Problem::new(StatusCode::PRECONDITION_REQUIRED, "the header `If-Match` is missing")
            .hint("send the `ETag` of the version you edited")
    })
}

/// The response to an edit based on an old text.
pub(in crate::routes) fn outdated(current: &str) -> Problem {
    Problem::new(StatusCode::PRECONDITION_FAILED, "another user saved it since you opened it")
        .hint("compare your text with `current`, then save again with the new `ETag`")
        .with("current", current)
}

fn edit(
    server: &Server,
    caller: &Caller,
    entry: &Registration,
    wanted: &str,
    text: &str,
) -> Result<Response, Problem> {
    let (before, reading) = read(server, entry)?;
    if wanted != before.etag {
        return Err(outdated(before.pending.as_deref().unwrap_or(&before.text)));
    }
    if let Some(end) = &reading.state.result.finished {
        return Err(Problem::conflict(format!("the run is over: {}", end.summary)));
    }
    refuse_faults(server, &reading, text)?;
    caller.note(server, "edit", Some(entry.run_id.as_str()), None)?;
    let task = server.app.environment().redactor(&entry.origin).text(text).into_owned();
    let handle = RunHandle::new(entry.run_dir(), caller.actor());
    let letter = handle.send(Control::Edit { task })?;
    let outcome = match handle.wait_for_outcome(&letter, ANSWER_TIMEOUT)? {
        ControlOutcome::Received => "received",
        ControlOutcome::NotYet => "saved",
        ControlOutcome::Refused(reason) => {
            return Err(
                Problem::refused(format!("the run refused the edit: {reason}")).hint("nothing was changed")
            );
        }
    };
    let (after, _) = read(server, entry)?;
    let body = SavedTask { outcome, version: after.version };
    Ok(([(header::ETAG, after.etag)], Json(body)).into_response())
}

/// Texts with lint errors never reach the run.
fn refuse_faults(server: &Server, reading: &RunSnapshot, text: &str) -> Result<(), Problem> {
    let task = &reading.state.spec.task;
    let source = TaskSource {
        dialect: task.dialect,
        folder: reading.entry.origin.clone(),
        files: TaskTexts::new(task.source.clone(), text.to_owned()),
    };
    let report = lint_task(server.app.environment(), &source).report;
    if !report.refuses() {
        return Ok(());
    }
    let findings = crate::routes::prepare::findings(&report);
    Err(Problem::refused("the linter refuses this text")
        .hint("fix what it names; nothing was changed")
        .with("findings", serde_json::to_value(findings).unwrap_or_default()))
}
