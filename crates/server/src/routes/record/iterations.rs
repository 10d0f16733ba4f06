//! A run's iterations, and one in detail.

use crate::auth::Caller;
use crate::http::extract::Answer;
use crate::http::problem::Problem;
use crate::routes::record::artifacts::{ArtifactInfo, artifacts_in};
use crate::server::Server;
use axum::Json;
use axum::extract::{Path, State};
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::read::timeline::{MetricValue, RunTimeline};
use ralph_loop_app::trust::repo_file;
use ralph_loop_domain::state::IterationSummary;
use ralph_loop_protocol::display::text::head;
use ralph_loop_protocol::display::view::IterationView;
use ralph_loop_protocol::event::FileChange;
use ralph_loop_protocol::money::Tokens;
use ralph_loop_protocol::money::receipt::Receipt;
use serde::Serialize;
use serde_json::Value;
use std::path::Path as FilePath;
use std::sync::Arc;

/// Size limit of a prompt and of a patch.
const TEXT_MAX: usize = 512 * 1024;

/// Every finished iteration.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Iterations {
    /// Oldest first.
    iterations: Vec<IterationRow>,
}

/// One finished iteration.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct IterationRow {
    /// The iteration's view.
    #[serde(flatten)]
    view: IterationView,
    /// The model.
    model: Option<String>,
    /// Tokens of its session, if known.
    tokens: Option<Tokens>,
    /// The score.
    score: f64,
    /// The task's goal metric, if it has one.
    metric: Option<f64>,
    /// Name of that metric.
    metric_label: Option<String>,
    /// Its receipt.
    receipt: Option<Receipt>,
}

/// One iteration in detail.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct IterationAnswer {
    /// Its number.
    iteration: u32,
    /// Its receipt; null while it is active.
    receipt: Option<Receipt>,
    /// Changed files.
    files: Vec<ChangedFile>,
    /// Stuck signals.
    signals: Value,
    /// Its artifacts.
    artifacts: Vec<ArtifactInfo>,
    /// The prompt of its session.
    prompt: String,
    /// Its patch.
    patch: String,
}

/// A changed file.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ChangedFile {
    /// Its path.
    pub(crate) path: String,
    /// `new`, `deleted` or `changed`.
    pub(crate) status: &'static str,
    /// Lines added.
    pub(crate) added: Option<u64>,
    /// Lines removed.
    pub(crate) removed: Option<u64>,
}

impl From<&FileChange> for ChangedFile {
    fn from(change: &FileChange) -> Self {
        let status = match change.status {
            'A' => "new",
            'D' => "deleted",
            _ => "changed",
        };
        Self { path: change.path.clone(), status, added: change.added, removed: change.removed }
    }
}

fn receipt(folder: &FilePath) -> Option<Receipt> {
    serde_json::from_slice(&repo_file::read_record(&folder.join("receipt.json")).ok()?).ok()
}

pub(crate) async fn iterations(
    State(server): State<Arc<Server>>,
    _: Caller,
    Path(run): Path<String>,
) -> Answer<Json<Iterations>> {
    let entry = server.entry(&run)?;
    let own = server.clone();
    let iterations = server
        .blocking(move || {
            let env = own.app.environment();
            let reading = RunSnapshot::load(env, entry)?;
            let story = RunTimeline::read(env, &reading, None)?;
            let dir = reading.entry.run_dir();
            let row_of = |it: &IterationSummary| {
                row(it, story.metric.get(&it.iteration), &dir.iteration(it.iteration))
            };
            Ok(story.iterations.iter().map(row_of).collect())
        })
        .await?;
    Ok(Json(Iterations { iterations }))
}

fn row(summary: &IterationSummary, metric: Option<&MetricValue>, folder: &FilePath) -> IterationRow {
    let receipt = receipt(folder);
    IterationRow {
        view: IterationView {
            iteration: summary.iteration,
            agent: summary.agent.clone(),
            verdict: summary.verdict,
            end: summary.end.clone(),
            message: summary.message.clone(),
            files: summary.files,
            added: summary.added,
            removed: summary.removed,
            cost: summary.cost(),
            duration_ms: summary.duration_ms,
            loop_score: summary.loop_score,
            tests: summary.tests,
            commit: summary.commit.clone(),
            ended_at: summary.ended_at,
        },
        model: receipt.as_ref().and_then(|receipt| receipt.model.clone()),
        tokens: receipt.as_ref().and_then(|receipt| receipt.tokens),
        score: summary.loop_score,
        metric: metric.map(|metric| metric.value),
        metric_label: metric.map(|metric| metric.label.clone()).filter(|label| !label.is_empty()),
        receipt,
    }
}

pub(crate) async fn iteration(
    State(server): State<Arc<Server>>,
    _: Caller,
    Path((run, number)): Path<(String, u32)>,
) -> Answer<Json<IterationAnswer>> {
    let entry = server.entry(&run)?;
    let own = server.clone();
    let answer = server
        .blocking(move || {
            let env = own.app.environment();
            let reading = RunSnapshot::load(env, entry)?;
            if number == 0 || number > reading.iteration() {
                return Err(Problem::missing(format!("no iteration {number}")));
            }
            let story = RunTimeline::read(env, &reading, Some(number))?;
            let dir = reading.entry.run_dir();
            let folder = dir.iteration(number);
            let text = |name: &str| {
                let bytes = repo_file::read_record(&folder.join(name)).unwrap_or_default();
                head(&String::from_utf8_lossy(&bytes), TEXT_MAX).to_owned()
            };
            Ok(IterationAnswer {
                iteration: number,
                receipt: receipt(&folder),
                files: story.files.iter().map(ChangedFile::from).collect(),
                signals: serde_json::to_value(&story.signals).unwrap_or_default(),
                artifacts: artifacts_in(dir.path(), &format!("iterations/{number}")),
                prompt: text("prompt.md"),
                patch: text("git_diff.patch"),
            })
        })
        .await?;
    Ok(Json(answer))
}
