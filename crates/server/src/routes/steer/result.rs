//! Taking the result of a run that has ended: into the checkout, as a branch, or as a pull request.

use crate::auth::Caller;
use crate::http::extract::{Answer, Body};
use crate::http::problem::Problem;
use crate::people::Role;
use crate::routes::record::iterations::ChangedFile;
use crate::server::Server;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use ralph_loop_app::PublishRequest;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::read::taking_home::{RunChanges, RunResultFiles};
use ralph_loop_app::start::handover;
use ralph_loop_core::handover::text;
use ralph_loop_git::{ApplyMode, Repo};
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::event::PrOccasion;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A way to take the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum WayKind {
    /// Its files in the checkout, not committed.
    Apply,
    /// A local branch with its commits.
    Branch,
    /// A branch on the remote.
    Push,
    /// A pull request.
    Pr,
}

/// The result of a run, and the ways to take it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ResultAnswer {
    /// The commit with the work.
    commit: Option<String>,
    /// The commit at the start.
    base: Option<String>,
    /// The changed files.
    files: Vec<ChangedFile>,
    /// The ways to take it.
    ways: Vec<Way>,
    /// What a pull request would say.
    pr_draft: PrDraft,
    /// The pull request that exists.
    pr_url: Option<String>,
}

/// One way to take the result.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Way {
    /// Which.
    kind: WayKind,
    /// Whether it can be used now.
    possible: bool,
    /// Why not.
    why: Option<String>,
    /// The folder, branch or address where the result goes.
    target: String,
    /// Files of the checkout whose own changes conflict with the result.
    conflicts: Vec<String>,
}

/// Title and text of a pull request.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PrDraft {
    /// The title.
    title: String,
    /// The text.
    body: String,
}

/// How to take the result.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct TakeBody {
    /// The way.
    kind: WayKind,
    /// With `apply`: make one commit.
    #[serde(default)]
    squash: bool,
    /// The message of that commit.
    #[serde(default)]
    message: Option<String>,
    /// The name of the branch.
    #[serde(default)]
    branch: Option<String>,
    /// The branch that the pull request goes to.
    #[serde(default)]
    base: Option<String>,
    /// The title of the pull request.
    #[serde(default)]
    title: Option<String>,
    /// The text of the pull request.
    #[serde(default)]
    body: Option<String>,
    /// Keep the pull request a draft.
    #[serde(default)]
    draft: bool,
}

/// What became of it.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Taken {
    /// `applied`, `already_there`, or `started`: the run's events show the push and the pull request.
    outcome: &'static str,
    /// The commits that were made.
    commits: Vec<String>,
    /// The files that were changed.
    files: Vec<String>,
    /// Files that were merged with changes in the checkout.
    merged: Vec<String>,
}

pub(crate) async fn get(
    State(server): State<Arc<Server>>,
    _: Caller,
    Path(run): Path<String>,
) -> Answer<Json<ResultAnswer>> {
    let entry = server.entry(&run)?;
    let own = server.clone();
    Ok(Json(server.blocking(move || answer(&own, entry)).await?))
}

pub(crate) async fn post(
    State(server): State<Arc<Server>>,
    caller: Caller,
    Path(run): Path<String>,
    Body(body): Body<TakeBody>,
) -> Answer<(StatusCode, Json<Taken>)> {
    caller.may(Role::Operator)?;
    let entry = server.entry(&run)?;
    let kind = match body.kind {
        WayKind::Apply => "apply",
        WayKind::Branch => "branch",
        WayKind::Push => "push",
        WayKind::Pr => "pull request",
    };
    caller.note(&server, "take_result", Some(&run), Some(kind.to_owned()))?;
    let _alone = server.edit_alone(&entry.run_id).await;
    let (own, id) = (server.clone(), entry.run_id.clone());
    let taken = server.apart(move || take(&own, &entry, body)).await?;
    server.live.touch(&id);
    let status = if taken.outcome == "started" { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, Json(taken)))
}

fn answer(server: &Server, entry: Registration) -> Answer<ResultAnswer> {
    let env = server.app.environment();
    let reading = RunSnapshot::load(env, entry)?;
    let (state, run) = (&reading.state, &reading.entry.run_id);
    let over = match state.result.finished {
        Some(_) if reading.driver.is_none() => None,
        _ => Some("the run hasn't ended"),
    };
    let found = match over {
        Some(_) => None,
        None => match RunResultFiles::open(env, &reading.entry.origin, Some(run.as_str()))? {
            RunChanges::Recorded(found) => Some(found),
            RunChanges::Nothing(_) => None,
        },
    };
    let none = over.or(found.is_none().then_some("the run changed no files"));
    let way = |kind, why: Option<String>, target: String| {
        let why = none.map(str::to_owned).or(why);
        Way { kind, possible: why.is_none(), why, target, conflicts: Vec::new() }
    };
    let own = state.spec.settings.handover.branch.clone().or_else(|| state.spec.branch.clone());
    let branch = own.unwrap_or_else(|| format!("ralph/{run}"));
    let checkout = Repo::discover(env.vars(), &state.spec.origin).ok();
    let remote = &state.spec.settings.handover.remote;
    let url = checkout.as_ref().and_then(|repo| handover::remote_url(repo, remote));
    let no_remote = url.is_none().then(|| format!("the repo has no remote `{remote}`"));
    let is_known = checkout.as_ref().is_some_and(|repo| handover::is_known(env, &state.spec.settings, repo));
    let no_host = (!is_known).then(|| "no code host is known for this repo".to_owned());
    let shown = url.as_deref().map(ralph_loop_git::checkout::shown).unwrap_or_default();
    let folder = state.spec.origin.display().to_string();
    let mut ways = vec![
        way(WayKind::Apply, None, folder),
        way(WayKind::Branch, None, branch),
        way(WayKind::Push, no_remote, shown.clone()),
        way(WayKind::Pr, no_host, shown),
    ];
    let mut files = Vec::new();
    if let Some(found) = &found {
        files = found.work.files(&found.repo)?.iter().map(ChangedFile::from).collect();
        if let (Some(repo), Some(apply)) = (&checkout, ways.first_mut()) {
            apply.conflicts = found.work.conflicts(repo, run).unwrap_or_default();
        }
    }
    let proof = std::fs::read(reading.entry.run_dir().proof()).unwrap_or_default();
    let proven = state.result.proof.as_ref().is_some_and(|proof| proof.passed);
    let why = if proven { PrOccasion::Proven } else { PrOccasion::Stopped };
    let redactor = env.redactor(&reading.entry.origin);
    let clean = |text: String| redactor.text(&text).into_owned();
    Ok(ResultAnswer {
        commit: found.as_ref().map(|found| found.work.work.to_string()),
        base: found.as_ref().map(|found| found.work.start.to_string()),
        files,
        ways,
        pr_draft: PrDraft { title: clean(text::title(state)), body: clean(text::body(state, why, &proof)) },
        pr_url: state.handover.pr.as_ref().map(|pr| pr.url.clone()),
    })
}

fn take(server: &Server, entry: &Registration, body: TakeBody) -> Answer<Taken> {
    let env = server.app.environment();
    if matches!(body.kind, WayKind::Push | WayKind::Pr) {
        let request = PublishRequest {
            push_only: body.kind == WayKind::Push,
            branch: body.branch,
            base: body.base,
            title: body.title,
            body: body.body,
            draft: body.draft,
        };
        server.app.spawn_publish(entry, &request)?;
        return Ok(Taken { outcome: "started", ..Taken::default() });
    }
    let found = match RunResultFiles::open(env, &entry.origin, Some(entry.run_id.as_str()))? {
        RunChanges::Recorded(found) => found,
        RunChanges::Nothing(_) => return Err(Problem::conflict("the run changed no files")),
    };
    let message = body.message.clone().unwrap_or_else(|| found.message());
    let message = env.redactor(&entry.origin).text(&message).into_owned();
    let name = body.branch.clone().unwrap_or_else(|| format!("ralph/{}", entry.run_id));
    let how = match (body.kind, body.squash) {
        (WayKind::Branch, _) => ApplyMode::Branch(&name),
        (_, true) => ApplyMode::Squash(&message),
        (_, false) => ApplyMode::Files,
    };
    let (done, _) = found.apply(env, None, how)?;
    found.reading.mark_seen();
    let there = done.branch_had_it || (done.files_had_it && how == ApplyMode::Files);
    Ok(Taken {
        outcome: if there { "already_there" } else { "applied" },
        commits: done.commits,
        files: done.files,
        merged: done.merged,
    })
}
