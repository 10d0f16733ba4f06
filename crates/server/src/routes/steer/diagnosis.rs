//! A run's last diagnosis.

use crate::auth::Caller;
use crate::http::extract::Answer;
use crate::http::problem::Problem;
use crate::server::Server;
use axum::Json;
use axum::extract::{Path, State};
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::trust::repo_file;
use ralph_loop_protocol::event::EventBody;
use ralph_loop_protocol::id::Seq;
use ralph_loop_protocol::stuck::diagnosis::Report;
use serde::Serialize;
use std::sync::Arc;

/// The last diagnosis.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DiagnosisAnswer {
    /// The report; null if the run wasn't diagnosed.
    report: Option<Report>,
    /// Who wrote it: a model, or rules.
    by: Option<String>,
    /// After how many iterations.
    at: Option<u32>,
    /// The report as Markdown.
    markdown: Option<String>,
    /// Controls that `apply` would send.
    controls: Vec<&'static str>,
}

/// The last report.
pub(in crate::routes) fn latest(reading: &RunSnapshot) -> Result<Option<Report>, Problem> {
    let Some(at) = reading.state.stuck.diagnosed_at else { return Ok(None) };
    let path = reading.entry.run_dir().path().join(format!("diagnosis-{at}.json"));
    let bytes = match repo_file::read_record(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Problem::internal(format!("can't read the report: {e}"))),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|e| {
        Problem::internal(format!("the report is damaged: {e}"))
            .hint("ask the doctor again: it writes a new one")
    })
}

pub(crate) async fn diagnosis(
    State(server): State<Arc<Server>>,
    _: Caller,
    Path(run): Path<String>,
) -> Answer<Json<DiagnosisAnswer>> {
    let entry = server.entry(&run)?;
    let own = server.clone();
    let answer = server
        .blocking(move || {
            let reading = RunSnapshot::load(own.app.environment(), entry)?;
            let Some(report) = latest(&reading)? else {
                return Ok(DiagnosisAnswer {
                    report: None,
                    by: None,
                    at: None,
                    markdown: None,
                    controls: Vec::new(),
                });
            };
            let events = own.app.handle(&reading.entry).follow(Seq(0)).poll()?;
            let by = events.into_iter().rev().find_map(|event| match event.body {
                EventBody::Diagnosed(news) => Some(news.by),
                _ => None,
            });
            let at = reading.state.stuck.diagnosed_at;
            let heading = format!("After {} iterations.", at.unwrap_or_default());
            let controls = report.controls(reading.state.spec.task.file_text());
            Ok(DiagnosisAnswer {
                markdown: Some(report.markdown(&heading)),
                controls: controls.iter().map(|control| control.name()).collect(),
                report: Some(report),
                by,
                at,
            })
        })
        .await?;
    Ok(Json(answer))
}
