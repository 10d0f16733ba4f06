//! Changes of a run: all, one iteration, or between two.

use super::iterations::ChangedFile;
use crate::auth::Caller;
use crate::http::extract::{Answer, QueryParams};
use crate::http::problem::Problem;
use crate::server::Server;
use axum::Json;
use axum::extract::{Path, State};
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::read::taking_home::{RunChanges, RunResultFiles};
use ralph_loop_app::read::timeline::RunTimeline;
use ralph_loop_app::trust::repo_file;
use ralph_loop_fleet::mirror::is_mirrored;
use ralph_loop_fleet::result::ResultSoFar;
use ralph_loop_git::RunCommits;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::display::text::head;
use ralph_loop_protocol::id::CommitId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Size limit of a patch.
const PATCH_MAX: usize = 2 * 1024 * 1024;

/// Which change.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DiffQuery {
    /// Only this iteration's change; with `against`, the state at its end.
    iteration: Option<u32>,
    /// From the end of this iteration on; 0 is the start.
    against: Option<u32>,
}

/// A change.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DiffAnswer {
    /// The patch.
    patch: String,
    /// The files in it.
    files: Vec<ChangedFile>,
    /// Whether the patch is cut.
    cut: bool,
    /// The commit at the start.
    from: Option<String>,
    /// The commit with the work.
    to: Option<String>,
}

impl From<ResultSoFar> for DiffAnswer {
    fn from(found: ResultSoFar) -> Self {
        Self {
            patch: found.patch,
            files: found.files.iter().map(ChangedFile::from).collect(),
            cut: found.cut,
            from: Some(found.from.to_string()),
            to: Some(found.to.to_string()),
        }
    }
}

pub(crate) async fn diff(
    State(server): State<Arc<Server>>,
    _: Caller,
    Path(run): Path<String>,
    QueryParams(query): QueryParams<DiffQuery>,
) -> Answer<Json<DiffAnswer>> {
    let entry = server.entry(&run)?;
    let own = server.clone();
    let answer = server
        .blocking(move || match (query.iteration, query.against) {
            (number, Some(against)) => between(&own, &entry, against, number),
            (Some(number), None) => of_iteration(&own, entry, number),
            (None, None) => whole(&own, &entry),
        })
        .await?;
    Ok(Json(answer))
}

fn of_iteration(server: &Server, entry: Registration, number: u32) -> Answer<DiffAnswer> {
    let env = server.app.environment();
    let reading = RunSnapshot::load(env, entry)?;
    let story = RunTimeline::read(env, &reading, Some(number))?;
    let path = reading.entry.run_dir().iteration(number).join("git_diff.patch");
    let patch = String::from_utf8_lossy(&repo_file::read_record(&path).unwrap_or_default()).into_owned();
    let commit = |n: u32| {
        let found = story.iterations.iter().find(|it| it.iteration == n)?;
        found.commit.as_ref().map(ToString::to_string)
    };
    Ok(DiffAnswer {
        cut: patch.len() > PATCH_MAX,
        patch: head(&patch, PATCH_MAX).to_owned(),
        files: story.files.iter().map(ChangedFile::from).collect(),
        from: number.checked_sub(1).and_then(commit),
        to: commit(number),
    })
}

fn whole(server: &Server, entry: &Registration) -> Answer<DiffAnswer> {
    if is_mirrored(&entry.run_dir()) {
        return Ok(ResultSoFar::read(&entry.run_dir()).map(DiffAnswer::from).unwrap_or_default());
    }
    let env = server.app.environment();
    let reading = RunSnapshot::load(env, entry.clone())?;
    if reading.state.iterations.count == 0 {
        return Ok(DiffAnswer::default());
    }
    let found = match RunResultFiles::open(env, &entry.origin, Some(entry.run_id.as_str()))? {
        RunChanges::Recorded(found) => found,
        RunChanges::Nothing(_) => return Ok(DiffAnswer::default()),
    };
    let files = found.work.files(&found.repo)?;
    let (patch, cut) = found.work.patch(&found.repo, PATCH_MAX)?;
    let patch = String::from_utf8_lossy(&patch).into_owned();
    Ok(DiffAnswer {
        patch: env.redactor(&entry.origin).text(&patch).into_owned(),
        files: files.iter().map(ChangedFile::from).collect(),
        cut,
        from: Some(found.work.start.to_string()),
        to: Some(found.work.work.to_string()),
    })
}

/// From the end of one iteration to that of a later one, or to the latest state.
fn between(server: &Server, entry: &Registration, from: u32, to: Option<u32>) -> Answer<DiffAnswer> {
    if is_mirrored(&entry.run_dir()) {
        return match (from, to) {
            (0, None) => whole(server, entry),
            _ => Err(Problem::missing("two iterations of another machine's run can't be compared here")
                .hint("each iteration's own change and the whole change are here")),
        };
    }
    let env = server.app.environment();
    let found = match RunResultFiles::open(env, &entry.origin, Some(entry.run_id.as_str()))? {
        RunChanges::Recorded(found) => found,
        RunChanges::Nothing(_) => return Ok(DiffAnswer::default()),
    };
    let story = RunTimeline::read(env, &found.reading, None)?;
    let at_end_of = |number: u32| -> Answer<CommitId> {
        if number == 0 {
            return Ok(found.work.start.clone());
        }
        // An iteration without changes has the files of the one before.
        let until = story.iterations.iter().take_while(|it| it.iteration <= number);
        let last = until.clone().last().filter(|it| it.iteration == number);
        last.ok_or_else(|| Problem::missing(format!("no finished iteration {number}")))?;
        Ok(until.filter_map(|it| it.commit.clone()).last().unwrap_or_else(|| found.work.start.clone()))
    };
    let from = at_end_of(from)?;
    let to = to.map_or_else(|| Ok(found.work.work.clone()), at_end_of)?;
    let (files, patch) = RunCommits::between(&found.repo, &from, &to, PATCH_MAX)?;
    let cut = patch.len() >= PATCH_MAX;
    let patch = String::from_utf8_lossy(&patch).into_owned();
    Ok(DiffAnswer {
        patch: env.redactor(&entry.origin).text(&patch).into_owned(),
        files: files.iter().map(ChangedFile::from).collect(),
        cut,
        from: Some(from.to_string()),
        to: Some(to.to_string()),
    })
}
