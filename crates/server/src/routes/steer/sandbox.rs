//! Where a run works: sandbox, previews, driver.

use crate::auth::Caller;
use crate::http::extract::Answer;
use crate::routes::record::artifacts::artifacts_in;
use crate::server::Server;
use axum::Json;
use axum::extract::{Path, State};
use jiff::Timestamp;
use ralph_loop_protocol::display::view::SandboxView;
use ralph_loop_protocol::event::EventBody;
use ralph_loop_protocol::id::Seq;
use ralph_loop_task::config::Isolation;
use serde::Serialize;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Where a run works.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SandboxAnswer {
    /// The sandbox provider.
    provider: String,
    /// Sandbox strength on this machine.
    isolation: String,
    /// In place, a worktree or a clone.
    place: String,
    /// The folder of its files.
    workspace: String,
    /// The image.
    image: Option<String>,
    /// Its size.
    resources: SandboxSize,
    /// Known sandboxes.
    sandboxes: Vec<SandboxView>,
    /// URLs of servers in the sandbox, found in the output of agents and checks.
    previews: Vec<PreviewLink>,
    /// Screenshots by agents, by artifact name.
    screenshots: Vec<String>,
    /// Hosts that the sandbox blocked.
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
            Ok(own.live.with(&entry.run_id, |run| {
                let reading = run.reading();
                let spec = &reading.state.spec;
                let sandbox = &spec.settings.sandbox;
                let sandboxes = run.view().spent.sandboxes;
                let elsewhere = sandbox.provider().is_elsewhere();
                // A local sandbox has a separate network, and its servers end with the run's process.
                let is_reachable = elsewhere || spec.settings.isolation != Isolation::Bwrap;
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
                    previews: match reading.driver.is_some() && is_reachable {
                        true => previews(&dir, elsewhere, &sandboxes),
                        false => Vec::new(),
                    },
                    sandboxes,
                    screenshots,
                    refused,
                    driver: reading.driver.as_ref().map(|d| DriverInfo { pid: d.pid, since: d.since }),
                }
            })?)
        })
        .await?;
    Ok(Json(answer))
}

fn refused(server: &Server, entry: &ralph_loop_journal::folder::registry::Registration) -> Vec<String> {
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

/// Limits for live output searched and URLs listed.
const LIVE_MAX: u64 = 2 * 1024 * 1024;
const PREVIEWS: usize = 20;
/// Precedes the public URL of a sandbox port in engine messages.
const SEEN_AT: &str = "people see it at ";

/// URLs in live output.
fn previews(
    dir: &ralph_loop_journal::folder::layout::RunDir,
    elsewhere: bool,
    sandboxes: &[SandboxView],
) -> Vec<PreviewLink> {
    let bytes = ralph_loop_safe_fs::read_plain(dir.live(), LIVE_MAX).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    // A container's or cloud's `localhost` isn't the user's.
    let mut found = if elsewhere { seen_outside(&text, sandboxes) } else { of_this_machine(&text) };
    found.sort_by(|a, b| (a.port, &a.url).cmp(&(b.port, &b.url)));
    found.dedup_by(|a, b| a.url == b.url);
    found.truncate(PREVIEWS);
    found
}

fn of_this_machine(text: &str) -> Vec<PreviewLink> {
    let mut ports: Vec<u16> = Vec::new();
    for host in ["http://localhost:", "http://127.0.0.1:"] {
        for (at, _) in text.match_indices(host) {
            let rest = &text[at + host.len()..];
            let digits: String = rest.chars().take_while(char::is_ascii_digit).take(5).collect();
            ports.extend(digits.parse::<u16>().ok().filter(|port| *port > 0));
        }
    }
    ports.into_iter().map(|port| PreviewLink { port, url: format!("http://127.0.0.1:{port}/") }).collect()
}

/// Agents can imitate engine messages, so accept only URLs in the local network or of the run's own
/// sandboxes.
fn seen_outside(text: &str, sandboxes: &[SandboxView]) -> Vec<PreviewLink> {
    let link = |at: usize| -> Option<PreviewLink> {
        let rest = &text[at + SEEN_AT.len()..];
        let end = rest.find(|c: char| c.is_whitespace() || "()\"\\<>".contains(c)).unwrap_or(rest.len());
        let (scheme, place) =
            rest[..end].split_once("://").filter(|(s, _)| matches!(*s, "http" | "https"))?;
        let authority = place.split(['/', '?', '#']).next().filter(|authority| !authority.contains('@'))?;
        let (host, port) = authority.rsplit_once(':').unwrap_or((authority, ""));
        let near = host.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback() || ip.is_private());
        let first = host.split('.').next().unwrap_or_default();
        let own = |one: &SandboxView| one.id.len() >= 8 && first.ends_with(&one.id.to_ascii_lowercase());
        if !near && !sandboxes.iter().any(own) {
            return None;
        }
        // Clouds put the port first: `3000-ID.host`.
        let named = host.split(['-', '.']).next().filter(|_| !near).and_then(|first| first.parse().ok());
        let usual = if scheme == "https" { 443 } else { 80 };
        let port = port.parse().ok().or(named).unwrap_or(usual);
        Some(PreviewLink { port, url: format!("{scheme}://{authority}/") })
    };
    text.match_indices(SEEN_AT).filter_map(|(at, _)| link(at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_to_this_network_or_to_a_sandbox_of_the_run() {
        let own = [SandboxView { provider: "e2b".into(), id: "iabc123def456".into(), rests: false }];
        let found = |text: &str| -> Vec<(u16, String)> {
            seen_outside(text, &own).into_iter().map(|one| (one.port, one.url)).collect()
        };
        let seen =
            |url: &str| format!("{{\"text\":\"`web` runs at http://localhost:3000 ({SEEN_AT}{url})\"}}");
        assert_eq!(found(&seen("http://172.17.0.2:8123")), [(8123, "http://172.17.0.2:8123/".to_owned())]);
        let cloud = "https://3000-iabc123def456.e2b.app";
        assert_eq!(found(&seen(cloud)), [(3000, format!("{cloud}/"))]);
        for other in [
            "https://evil.example",
            "https://evil.example/3000-iabc123def456.e2b.app",
            "https://3000-iabc123def456.e2b.app@evil.example",
            "https://evil.example?x=3000-iabc123def456",
            "http://8.8.8.8:80",
            "javascript:alert(1)",
            "",
        ] {
            assert_eq!(found(&seen(other)), [], "{other}");
        }
        let here =
            of_this_machine("at http://localhost:5173/ and http://127.0.0.1:99999 and http://127.0.0.1:0");
        assert_eq!(here.iter().map(|one| one.port).collect::<Vec<_>>(), [5173]);
    }
}
