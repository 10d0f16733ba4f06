//! Files of a run's record: logs, prompts, screenshots. Never served as a page.

use crate::auth::Caller;
use crate::http::extract::Answer;
use crate::http::problem::Problem;
use crate::server::Server;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use ralph_loop_safe_fs::{Kind, Links, SafeDir};
use serde::Serialize;
use std::path::{Component, Path as FilePath};
use std::sync::Arc;

/// Limits for listed files and for the size of a served one.
const LISTED: usize = 5000;
const BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Parts of the record not served here: available elsewhere, or git's.
const HIDDEN: &[&str] =
    &["git", "copy-git", "grown", "wake", "lock", "inbox.jsonl", "trust.json", "place.json"];

/// A file of the record.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ArtifactInfo {
    /// Its path in the record.
    pub(crate) name: String,
    /// Bytes.
    size: u64,
    /// `text`, `image` or `other`.
    pub(crate) kind: &'static str,
}

/// The files of the record.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Artifacts {
    /// By path.
    artifacts: Vec<ArtifactInfo>,
}

/// Files below a folder of the record, by path.
pub(in crate::routes) fn artifacts_in(record: &FilePath, below: &str) -> Vec<ArtifactInfo> {
    let mut found = Vec::new();
    if let Ok(dir) = SafeDir::open(record) {
        walk(&dir, below, 0, &mut found);
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn walk(dir: &SafeDir, below: &str, depth: u32, found: &mut Vec<ArtifactInfo>) {
    let Ok(entries) = dir.entries(if below.is_empty() { "." } else { below }, LISTED) else { return };
    for entry in entries {
        let Some(name) = entry.name.to_str() else { continue };
        if depth == 0 && below.is_empty() && HIDDEN.contains(&name) {
            continue;
        }
        let path = if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
        match entry.kind {
            Kind::Folder if depth < 3 => walk(dir, &path, depth + 1, found),
            Kind::File if found.len() < LISTED => {
                let size = dir.facts(&path).map_or(0, |facts| facts.length);
                let kind = kind(&path);
                found.push(ArtifactInfo { name: path, size, kind });
            }
            _ => {}
        }
    }
}

/// Whether a path in the record is served.
pub(super) fn is_served(name: &str) -> bool {
    // Skips meaningless components (`./`); the first real one decides.
    let first = FilePath::new(name).components().find(|part| !matches!(part, Component::CurDir));
    let hidden = matches!(first, Some(Component::Normal(part)) if HIDDEN.iter().any(|name| part == *name));
    !hidden && ralph_loop_task::config::is_inside(name)
}

fn kind(path: &str) -> &'static str {
    match FilePath::new(path).extension().and_then(|end| end.to_str()) {
        Some("png") => "image",
        Some("md" | "log" | "json" | "jsonl" | "txt" | "patch") => "text",
        _ => "other",
    }
}

pub(crate) async fn list(
    State(server): State<Arc<Server>>,
    _: Caller,
    Path(run): Path<String>,
) -> Answer<Json<Artifacts>> {
    let entry = server.entry(&run)?;
    let artifacts = server.blocking(move || Ok(artifacts_in(entry.run_dir().path(), ""))).await?;
    Ok(Json(Artifacts { artifacts }))
}

pub(crate) async fn file(
    State(server): State<Arc<Server>>,
    _: Caller,
    Path((run, name)): Path<(String, String)>,
) -> Answer<Response> {
    let entry = server.entry(&run)?;
    if !is_served(&name) {
        return Err(Problem::missing("no such file in the record"));
    }
    let kind = match kind(&name) {
        "image" => "image/png",
        "text" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    };
    let bytes = server
        .blocking(move || {
            let read = SafeDir::open(entry.run_dir().path())
                .and_then(|dir| dir.read(&name, Links::Refused, BYTES_MAX));
            read.map_err(|_| Problem::missing("no such file in the record"))
        })
        .await?;
    let headers = [
        (header::CONTENT_TYPE, kind),
        // Prevents any content from acting as a page of this server.
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        (header::CONTENT_DISPOSITION, "inline"),
    ];
    Ok((headers, bytes).into_response())
}
