//! The data types of Vercel's API.

use super::{VENDOR, VercelOptions};
use crate::cloud::{addresses_and_domains, sandbox_name};
use crate::error::ProviderError;
use crate::http::VendorRequest;
use jiff::Timestamp;
use ralph_loop_domain::ports::{LABEL_OURS, LABEL_RUN, Resources, SandboxInfo, SandboxSpec};
use ralph_loop_http::Method;
use ralph_loop_protocol::display::text::percent_encoded;
use ralph_loop_protocol::id::RunId;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Memory of one processor.
const GIB_PER_VCPU: f64 = 2.0;
/// The vendor's limit.
const TAGS_MAX: usize = 5;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxDto {
    pub name: String,
    pub status: String,
    #[serde(default)]
    pub tags: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub created_at: Option<i64>,
}

impl SandboxDto {
    pub fn is_ours(&self) -> bool {
        self.tags.as_ref().is_some_and(|tags| tags.contains_key(LABEL_OURS))
    }
    pub fn info(self) -> SandboxInfo {
        let run =
            self.tags.as_ref().and_then(|tags| tags.get(LABEL_RUN)).and_then(|run| RunId::parse(run).ok());
        let created_at = self.created_at.and_then(|ms| Timestamp::from_millisecond(ms).ok());
        SandboxInfo { id: self.name, provider: VENDOR.into(), run, state: self.status, created_at }
    }
}

#[derive(Debug, Clone, Deserialize)]
pub struct Session {
    pub id: String,
    pub status: String,
    pub cwd: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Route {
    pub url: String,
    pub port: u16,
}

#[derive(Debug, Clone, Deserialize)]
pub struct SandboxWithSession {
    pub sandbox: SandboxDto,
    pub session: Session,
    #[serde(default)]
    pub routes: Vec<Route>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Updated {
    #[serde(default)]
    pub routes: Vec<Route>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Page {
    pub sandboxes: Vec<SandboxDto>,
    pub pagination: Pagination,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Pagination {
    pub next: Option<String>,
}

pub(crate) fn call(options: &VercelOptions, what: &str, method: Method, path: &str) -> VendorRequest {
    let mark = if path.contains('?') { '&' } else { '?' };
    let url = format!(
        "{}{path}{mark}teamId={}",
        options.api_url.trim_end_matches('/'),
        percent_encoded(&options.team)
    );
    VendorRequest::new(what, method, url).header("authorization", format!("Bearer {}", options.token))
}

/// Processors for a size: each has its memory.
pub(crate) fn vcpus(resources: &Resources) -> Option<u32> {
    let of_memory = resources.memory_gib.map(|gib| gib / GIB_PER_VCPU);
    let wanted = match (resources.vcpu, of_memory) {
        (None, None) => return None,
        (a, b) => a.unwrap_or(1.0).max(b.unwrap_or(1.0)),
    };
    Some(wanted.ceil().clamp(1.0, 1024.0) as u32)
}

/// The URL and body that create a sandbox.
pub(crate) fn create(
    spec: &SandboxSpec,
    options: &VercelOptions,
) -> Result<(&'static str, Value), ProviderError> {
    let unsupported =
        |what: &str, hint| Err(ProviderError::Unsupported { vendor: VENDOR, what: what.to_owned(), hint });
    if spec.resources.disk_gib.is_some() {
        return unsupported("choose the size of a disk", "leave it out");
    }
    let tags = spec.all_labels();
    if tags.len() > TAGS_MAX {
        return unsupported("take more than 5 labels", "leave some out: two of them are ours");
    }
    let lifetime = spec.auto_stop.unwrap_or(options.lifetime);
    let mut body = json!({
        "projectId": options.project, "name": sandbox_name(&spec.run), "persistent": true, "tags": tags, "env": spec.env,
        "ports": options.ports, "timeout": u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX),
    });
    let mut path = "/v3/sandboxes";
    match (&spec.image, &spec.snapshot) {
        (Some(_), Some(_)) => return unsupported("take an image and a snapshot", "name one of them"),
        (Some(image), None) if image.trim().contains(char::is_whitespace) => {
            return unsupported("build an image", "build it elsewhere and name it");
        }
        (Some(image), None) if is_runtime(image) => {
            body["runtime"] = json!(image);
            path = "/v2/sandboxes";
        }
        (Some(image), None) => body["image"] = json!(image),
        (None, Some(snapshot)) => body["source"] = json!({ "type": "snapshot", "snapshotId": snapshot }),
        (None, None) => {}
    }
    if let Some(vcpus) = vcpus(&spec.resources) {
        body["resources"] = json!({ "vcpus": vcpus });
    }
    if !spec.allowed_hosts.is_empty() {
        let (addresses, domains) = addresses_and_domains(&spec.allowed_hosts);
        body["networkPolicy"] = json!({ "allow": domains });
        if !addresses.is_empty() {
            body["networkPolicy"]["subnets"] = json!({ "allow": addresses });
        }
    }
    if !spec.volumes.is_empty() {
        let mounts = spec
            .volumes
            .iter()
            .map(|(name, path)| (path.clone(), json!({ "drive": name, "mode": "read-write" })));
        body["mounts"] = Value::Object(mounts.collect());
    }
    Ok((path, body))
}

/// `node24`, `python3.13`: a vendor runtime instead of an image.
fn is_runtime(image: &str) -> bool {
    let rest = image.strip_prefix("node").or_else(|| image.strip_prefix("python"));
    rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> VercelOptions {
        VercelOptions::new("t", "team", "prj")
    }

    #[test]
    fn everything_of_a_spec_is_asked_for() {
        let mut spec = SandboxSpec::of_run(RunId::new("r1"));
        spec.image = Some("node24".into());
        spec.resources = Resources { vcpu: Some(1.0), memory_gib: Some(7.0), disk_gib: None };
        spec.allowed_hosts = vec!["github.com".into(), "10.0.0.0/8".into()];
        spec.volumes = vec![("cache".into(), "/c".into())];
        let (path, body) = create(&spec, &options()).unwrap();
        assert_eq!(path, "/v2/sandboxes");
        assert_eq!(
            body,
            json!({
                "projectId": "prj", "name": "ralph-r1", "persistent": true, "tags": { "ralph": "true", "ralph.run": "r1" },
                "env": {}, "ports": [3000, 8080], "timeout": 900_000, "runtime": "node24", "resources": { "vcpus": 4 },
                "networkPolicy": { "allow": ["github.com"], "subnets": { "allow": ["10.0.0.0/8"] } },
                "mounts": { "/c": { "drive": "cache", "mode": "read-write" } },
            })
        );
        spec.image = Some("node:24".into());
        let (path, body) = create(&spec, &options()).unwrap();
        assert_eq!((path, &body["image"]), ("/v3/sandboxes", &json!("node:24")));
    }

    #[test]
    fn too_many_labels_are_refused_with_a_hint() {
        let mut spec = SandboxSpec::of_run(RunId::new("r1"));
        spec.labels = (0..4).map(|n| (format!("l{n}"), "x".into())).collect();
        let error = create(&spec, &options()).unwrap_err().to_string();
        assert!(error.contains("5 labels"), "{error}");
    }
}
