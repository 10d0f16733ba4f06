//! Files of a run's workspace: read by path within bounds, written only where allowed, and never over another
//! edit. Paths in `.ralph/` that the engine keeps in the run's record are read there.

use super::artifacts::is_served;
use super::shown_path::shown_path;
use crate::auth::Caller;
use crate::http::extract::{Answer, Body, QueryParams};
use crate::http::problem::Problem;
use crate::people::Role;
use crate::routes::steer::task::{TextBody, if_match, mark_of, outdated, save};
use crate::server::Server;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ralph_loop_app::Environment;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::read::taking_home::{RunChanges, RunResultFiles};
use ralph_loop_core::handle::{ControlOutcome, RunHandle};
use ralph_loop_fleet::mirror::is_mirrored;
use ralph_loop_fleet::result::ResultSoFar;
use ralph_loop_git::Repo;
use ralph_loop_journal::folder::layout::RunDir;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::id::Digest;
use ralph_loop_safe_fs::{Kind, Links, SafeDir};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Limits for a file's size and for names in a folder.
const BYTES_MAX: u64 = 2 * 1024 * 1024;
const NAMES_MAX: usize = 5000;
/// Append-only files whose additions become controls.
const NOTES: &str = ".ralph/notes.md";
const GUARDRAILS: &str = ".ralph/guardrails.md";
/// The logs: one in the record, one in the run's own folder, not in the agent's copy of it.
const ERRORS: &str = ".ralph/errors.log";
const ACTIVITY: &str = ".ralph/activity.log";
const ITERATIONS: &str = ".ralph/iterations";
/// How long to wait for the run to read an addition.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// Which folder.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FolderQuery {
    /// The path; the top of the workspace by default.
    path: String,
}

/// A folder's entries.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Folder {
    /// Its path.
    path: String,
    /// By name, folders first.
    entries: Vec<FolderEntry>,
}

/// One entry.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FolderEntry {
    /// The name.
    name: String,
    /// `file`, `folder` or `link`.
    kind: &'static str,
    /// Bytes of a file.
    size: Option<u64>,
    /// Whether it can be edited here.
    writable: bool,
}

/// A file.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FileAnswer {
    /// Its path.
    path: String,
    /// The text, or its beginning.
    text: String,
    /// Total bytes.
    size: u64,
    /// Whether the text is cut.
    cut: bool,
    /// Whether it can be edited here.
    writable: bool,
}

/// A run's local workspace.
struct Workspace {
    dir: SafeDir,
    /// The run's record.
    record: RunDir,
    /// The folder that the run belongs to.
    home: PathBuf,
    task: String,
    /// What git tracks and what the run changed. Other files are private to the machine's owner.
    known: BTreeSet<String>,
}

impl Workspace {
    fn open(server: &Server, entry: &Registration) -> Result<Self, Problem> {
        let reading = RunSnapshot::load(server.app.environment(), entry.clone())?;
        let spec = &reading.state.spec;
        let record = entry.run_dir();
        if is_mirrored(&record) {
            let gone = || {
                Problem::missing("no files of this run have come from its worker yet")
                    .hint("they come with its first iteration")
            };
            let found = ResultSoFar::read(&record).ok_or_else(gone)?;
            let home = ResultSoFar::folder(&record);
            let dir = SafeDir::open(&home).map_err(|_| gone())?;
            let known = found.files.into_iter().map(|file| file.path).collect();
            return Ok(Self { dir, record, home, task: spec.task.source.clone(), known });
        }
        let place = [&spec.workspace, &spec.home().to_owned(), &spec.origin]
            .into_iter()
            .find(|place| place.is_dir())
            .cloned();
        let gone = || {
            Problem::new(StatusCode::GONE, "the workspace of this run is gone")
                .hint("its record is still there: events, logs, patches")
        };
        let dir = SafeDir::open(place.ok_or_else(gone)?).map_err(|_| gone())?;
        let (task, home) = (spec.task.source.clone(), spec.home().to_owned());
        let known = known_files(server.app.environment(), &reading);
        Ok(Self { dir, record, home, task, known })
    }

    /// The place in the record of a path that is kept there.
    fn in_record<'a>(&self, path: &'a str) -> Option<&'a str> {
        if path == ITERATIONS || path == ERRORS || path.starts_with(&format!("{ITERATIONS}/")) {
            return path.strip_prefix(".ralph/");
        }
        let run = self.record.path().file_name()?.to_str()?;
        let below = path.strip_prefix(".ralph/runs/")?.strip_prefix(run)?.strip_prefix('/')?;
        is_served(below).then_some(below)
    }

    /// Where a file or folder really is: the folder to open it in, if that isn't the workspace, and its path there.
    fn place<'a>(&self, path: &'a str) -> std::io::Result<(Option<SafeDir>, &'a str)> {
        match self.in_record(path) {
            Some(below) => Ok((Some(SafeDir::open(self.record.path())?), below)),
            None if path == ACTIVITY => Ok((Some(SafeDir::open(&self.home)?), path)),
            None => Ok((None, path)),
        }
    }

    /// Whether a file may be shown: a known one, the task, or one of `ralph`'s own.
    fn shows(&self, path: &str) -> bool {
        let is_own = path.strip_prefix(".ralph/").is_some_and(|name| !name.contains('/'));
        is_own || path == self.task || self.known.contains(path) || self.in_record(path).is_some()
    }

    /// Whether a folder holds a file that may be shown.
    fn shows_in(&self, folder: &str) -> bool {
        let prefix = format!("{folder}/");
        let first = self.known.range(prefix.clone()..).next();
        folder == ".ralph"
            || self.task.starts_with(&prefix)
            || first.is_some_and(|one| one.starts_with(&prefix))
    }

    fn is_writable(&self, path: &str) -> bool {
        path == self.task || path == NOTES || path == GUARDRAILS
    }

    fn read(&self, path: &str) -> Result<(Vec<u8>, u64), Problem> {
        if !self.shows(path) {
            return Err(Problem::missing("no such file among those that git tracks or the run changed"));
        }
        // No links: a harmless name could lead to a hidden file of the workspace.
        let read = self.place(path).and_then(|(dir, path)| {
            use std::io::Read as _;
            let file = dir.as_ref().unwrap_or(&self.dir).open_file(path, Links::Refused)?;
            let size = file.metadata()?.len();
            let mut bytes = Vec::new();
            file.take(BYTES_MAX).read_to_end(&mut bytes)?;
            Ok((bytes, size))
        });
        let read = match read {
            Ok((bytes, size)) if path == NOTES => Ok(self.with_notes_of_run(bytes, size)),
            // Nothing failed so far.
            Err(e) if path == ERRORS && e.kind() == ErrorKind::NotFound => Ok(Default::default()),
            read => read,
        };
        read.map_err(|e| match e.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Problem::missing("no such file"),
            // Links are listed as links. Their target is judged by its own name.
            _ => Problem::forbidden("not a regular file in the workspace"),
        })
    }
}

impl Workspace {
    /// The repo's notes and those for this run, which its record keeps.
    fn with_notes_of_run(&self, mut notes: Vec<u8>, size: u64) -> (Vec<u8>, u64) {
        let of_run = ralph_loop_safe_fs::read_plain(self.record.notes(), BYTES_MAX).unwrap_or_default();
        if of_run.is_empty() {
            return (notes, size);
        }
        notes.truncate(notes.trim_ascii_end().len());
        notes.extend_from_slice(b"\n\n");
        notes.extend_from_slice(&of_run);
        let size = notes.len() as u64;
        (notes, size)
    }
}

/// The files that git tracks in the run's folder, and those that the run changed.
fn known_files(env: &Environment, reading: &RunSnapshot) -> BTreeSet<String> {
    let spec = &reading.state.spec;
    let repo = Repo::discover(env.vars(), spec.home()).or_else(|_| Repo::discover(env.vars(), &spec.origin));
    let tracked = repo.and_then(|repo| Ok(repo.git().call(["ls-files", "-z"]).run()?.text()));
    let mut known: BTreeSet<String> = match &tracked {
        Ok(names) => names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        Err(_) => BTreeSet::new(),
    };
    if reading.state.iterations.count > 0
        && let Ok(RunChanges::Recorded(found)) =
            RunResultFiles::open(env, &reading.entry.origin, Some(reading.entry.run_id.as_str()))
    {
        known.extend(found.work.files(&found.repo).into_iter().flatten().map(|file| file.path));
    }
    known
}

fn text_of(path: &FilePath) -> String {
    path.display().to_string()
}

fn etag(bytes: &[u8]) -> String {
    format!("\"{}\"", Digest::of(bytes).short())
}

pub(crate) async fn folder(
    State(server): State<Arc<Server>>,
    _: Caller,
    Path(run): Path<String>,
    QueryParams(query): QueryParams<FolderQuery>,
) -> Answer<Json<Folder>> {
    let entry = server.entry(&run)?;
    let own = server.clone();
    let path = query.path.trim_matches('/').to_owned();
    let below = if path.is_empty() { PathBuf::from(".") } else { shown_path(&path)? };
    let folder = server
        .blocking(move || {
            let space = Workspace::open(&own, &entry)?;
            let text = text_of(&below);
            let (dir, at) = space.place(&text).map_err(|_| no_folder())?;
            let dir = dir.as_ref().unwrap_or(&space.dir);
            let found = dir.entries(at, NAMES_MAX).map_err(|_| no_folder())?;
            let mut entries: Vec<FolderEntry> =
                found.iter().filter_map(|entry| listed(&space, dir, (&path, at), entry)).collect();
            if path == ".ralph" {
                entries.retain(|entry| entry.name != "iterations");
                entries.push(FolderEntry {
                    name: "iterations".to_owned(),
                    kind: "folder",
                    size: None,
                    writable: false,
                });
            }
            entries.sort_by(|a, b| (a.kind != "folder", &a.name).cmp(&(b.kind != "folder", &b.name)));
            Ok(Folder { path, entries })
        })
        .await?;
    Ok(Json(folder))
}

fn no_folder() -> Problem {
    Problem::missing("no such folder in the workspace")
}

/// An entry of `folder`, which is `at` in `dir`.
fn listed(
    space: &Workspace,
    dir: &SafeDir,
    (folder, at): (&str, &str),
    entry: &ralph_loop_safe_fs::Entry,
) -> Option<FolderEntry> {
    let name = entry.name.to_str()?.to_owned();
    let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
    shown_path(&path).ok()?;
    if !(space.shows(&path) || entry.kind == Kind::Folder && space.shows_in(&path)) {
        return None;
    }
    let kind = match entry.kind {
        Kind::File => "file",
        Kind::Folder => "folder",
        Kind::Link => "link",
        Kind::Special => return None,
    };
    let inside = FilePath::new(at).join(&name);
    let size = (kind == "file").then(|| dir.facts(&inside).map_or(0, |facts| facts.length));
    Some(FolderEntry { writable: space.is_writable(&path), name, kind, size })
}

pub(crate) async fn get(
    State(server): State<Arc<Server>>,
    _: Caller,
    Path((run, path)): Path<(String, String)>,
) -> Answer<Response> {
    let entry = server.entry(&run)?;
    let path = text_of(&shown_path(&path)?);
    let own = server.clone();
    let (answer, mark) = server
        .blocking(move || {
            let space = Workspace::open(&own, &entry)?;
            let (bytes, size) = space.read(&path)?;
            // A task edit is compared with the run's text, because agents tick boxes in the file.
            let mark = if path == space.task { mark_of(&own, &entry)? } else { etag(&bytes) };
            let cut = size > bytes.len() as u64;
            let end = match std::str::from_utf8(&bytes) {
                Ok(text) => text.len(),
                // The cut may split a character.
                Err(error) if cut && error.error_len().is_none() => error.valid_up_to(),
                Err(_) => {
                    return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the file isn't text"));
                }
            };
            let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let text = own.app.environment().redactor(&entry.origin).text(&text).into_owned();
            let writable = space.is_writable(&path);
            Ok((FileAnswer { path, text, size, cut, writable }, mark))
        })
        .await?;
    Ok(([(header::ETAG, mark)], Json(answer)).into_response())
}

pub(crate) async fn put(
    State(server): State<Arc<Server>>,
    caller: Caller,
    Path((run, path)): Path<(String, String)>,
    headers: HeaderMap,
    Body(body): Body<TextBody>,
) -> Answer<Response> {
    caller.may(Role::Operator)?;
    let entry = server.entry(&run)?;
    let path = text_of(&shown_path(&path)?);
    let (own, of_run) = (server.clone(), entry.clone());
    let space = server.blocking(move || Workspace::open(&own, &of_run)).await?;
    if !space.is_writable(&path) {
        return Err(Problem::forbidden("this file can only be read here")
            .hint(format!("the task, `{NOTES}` and `{GUARDRAILS}` can be written; agents write the rest")));
    }
    if path == space.task {
        return save(server, caller, &run, &headers, body.text).await;
    }
    let wanted = if_match(&headers)?;
    let _alone = server.edit_alone(&entry.run_id).await;
    let own = server.clone();
    server.blocking(move || append(&own, &caller, &entry, &space, (&path, &wanted, &body.text))).await
}

/// Sends an addition to an append-only file as a control.
fn append(
    server: &Server,
    caller: &Caller,
    entry: &Registration,
    space: &Workspace,
    (path, wanted, text): (&str, &str, &str),
) -> Result<Response, Problem> {
    let (before, _) = space.read(path).unwrap_or_default();
    let before_text = String::from_utf8_lossy(&before);
    if wanted != etag(&before) {
        return Err(outdated(&before_text));
    }
    let Some(added) =
        text.strip_prefix(before_text.trim_end()).map(str::trim).filter(|added| !added.is_empty())
    else {
        return Err(Problem::refused(format!("`{path}` may only grow")).hint("add your text at the end"));
    };
    let added = server.app.environment().redactor(&entry.origin).text(added).into_owned();
    let control = match path {
        NOTES => Control::Note { text: added },
        _ => Control::Guardrail { text: added },
    };
    caller.note(server, control.name(), Some(entry.run_id.as_str()), None)?;
    let handle = RunHandle::new(entry.run_dir(), caller.actor());
    let letter = handle.send(control)?;
    let outcome = match handle.wait_for_outcome(&letter, ANSWER_TIMEOUT)? {
        ControlOutcome::Received => "received",
        ControlOutcome::NotYet => "saved",
        ControlOutcome::Refused(reason) => {
            return Err(Problem::conflict(format!("the run refused it: {reason}")));
        }
    };
    let (after, _) = space.read(path).unwrap_or_default();
    Ok(([(header::ETAG, etag(&after))], Json(serde_json::json!({ "outcome": outcome }))).into_response())
}
