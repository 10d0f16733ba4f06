//! Where a run works: its sandbox, what is shown of it, who drives it.

use super::artifacts::artifacts_in;
use crate::auth::Caller;
use crate::extract::Answer;
use crate::server::Server;
use axum::Json;
use axum::extract::{Path, State};
use jiff::Timestamp;
use ralph_domain::event::EventBody;
use ralph_domain::id::Seq;
use ralph_protocol::view::SandboxView;
use serde::Serialize;
use std::sync::Arc;

/// Where a run works.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SandboxAnswer {
    /// Who makes the sandbox.
    provider: String,
    /// How strongly it is fenced on this machine.
    isolation: String,
    /// In place, a worktree or a clone.
    place: String,
    /// The folder of its files.
    workspace: String,
    /// The image.
    image: Option<String>,
    /// Its size.
    resources: SandboxSize,
    /// Sandboxes that exist, as far as is known.
    sandboxes: Vec<SandboxView>,
    /// Addresses that something in the sandbox listens on, as agents and checks printed them.
    previews: Vec<PreviewLink>,
    /// Pictures that agents took, by their names among the artifacts.
    screenshots: Vec<String>,
    /// Hosts that commands were refused.
    refused: Vec<String>,
    /// The process that drives the run.
    driver: Option<DriverInfo>,
}

/// Size of a sandbox.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SandboxSize {
    /// Processors.
    cpus: Option<f64>,
    /// Memory.
    memory_mb: Option<f64>,
    /// Disk.
    disk_gb: Option<f64>,
}

/// An address.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PreviewLink {
    /// The port.
    port: u16,
    /// The address.
    url: String,
}

/// A process.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DriverInfo {
    /// Its id on this machine.
    pid: u32,
    /// Since when.
    since: Timestamp,
}

pub(crate) async fn sandbox(
    State(server): State<Arc<Server>>,
    _: Caller,
    Path(run): Path<String>,
) -> Answer<Json<SandboxAnswer>> {
    let entry = server.entry(&run)?;
    let own = server.clone();
    let answer = server
        .blocking(move || {
            let dir = entry.run_dir();
            let refused = refused(&own, &entry);
            let screenshots = artifacts_in(dir.path(), "iterations").into_iter();
            let screenshots = screenshots.filter(|a| a.kind == "image").map(|a| a.name).collect();
            let previews = previews(&dir);
            Ok(own.live.with(&entry.run_id, |run| {
                let reading = run.reading();
                let spec = &reading.state.spec;
                let sandbox = &spec.settings.sandbox;
                let isolation = serde_json::to_value(spec.settings.isolation).unwrap_or_default();
                SandboxAnswer {
                    provider: sandbox.provider().as_str().to_owned(),
                    isolation: isolation.as_str().unwrap_or_default().to_owned(),
                    place: spec.place.as_str().to_owned(),
                    workspace: spec.home().display().to_string(),
                    image: sandbox.image.clone(),
                    resources: SandboxSize {
                        cpus: sandbox.vcpu,
                        memory_mb: sandbox.memory_gib.map(|gib| gib * 1024.0),
                        disk_gb: sandbox.disk_gib,
                    },
                    sandboxes: run.view().spent.sandboxes,
                    previews,
                    screenshots,
                    refused,
                    driver: reading.driver.as_ref().map(|d| DriverInfo { pid: d.pid, since: d.since }),
                }
            })?)
        })
        .await?;
    Ok(Json(answer))
}

fn refused(server: &Server, entry: &ralph_journal::registry::Registration) -> Vec<String> {
    let events = server.app.handle(entry).follow(Seq(0)).poll().unwrap_or_default();
    let mut hosts: Vec<String> = events
        .into_iter()
        .filter_map(|event| match event.body {
            EventBody::EgressRefused(refused) => {
                serde_json::to_value(&refused).ok()?["host"].as_str().map(str::to_owned)
            }
            _ => None,
        })
        .collect();
    hosts.sort();
    hosts.dedup();
    hosts.truncate(100);
    hosts
}

/// Addresses of this machine that stand in what the run shows.
fn previews(dir: &ralph_journal::layout::RunDir) -> Vec<PreviewLink> {
    const LIVE_MAX: u64 = 2 * 1024 * 1024;
    let bytes = ralph_safe_fs::read_plain(dir.live(), LIVE_MAX).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut ports: Vec<u16> = Vec::new();
    for host in ["http://localhost:", "http://127.0.0.1:"] {
        for (at, _) in text.match_indices(host) {
            let rest = &text[at + host.len()..];
            let digits: String = rest.chars().take_while(char::is_ascii_digit).take(5).collect();
            ports.extend(digits.parse::<u16>().ok().filter(|port| *port > 0));
        }
    }
    ports.sort_unstable();
    ports.dedup();
    ports.truncate(20);
    ports.into_iter().map(|port| PreviewLink { port, url: format!("http://127.0.0.1:{port}/") }).collect()
}
