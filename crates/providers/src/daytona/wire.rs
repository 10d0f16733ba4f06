//! The data types of Daytona's API.

use super::{DaytonaOptions, VENDOR};
use crate::cloud::{addresses_and_domains, sandbox_name};
use crate::error::ProviderError;
use crate::http::VendorRequest;
use ralph_loop_domain::ports::{LABEL_OURS, LABEL_RUN, SandboxInfo, SandboxSpec};
use ralph_loop_http::Method;
use ralph_loop_protocol::id::RunId;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A sandbox in the API; only used fields.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxDto {
    pub id: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The vendor's word; there may be new ones.
    #[serde(default)]
    pub state: Option<String>,
    #[serde(default)]
    pub error_reason: Option<String>,
    #[serde(default)]
    pub created_at: Option<String>,
    pub toolbox_proxy_url: String,
}

impl SandboxDto {
    pub fn is_ours(&self) -> bool {
        self.labels.contains_key(LABEL_OURS)
    }
    pub fn state(&self) -> &str {
        self.state.as_deref().unwrap_or("unknown")
    }
    pub fn is_gone(&self) -> bool {
        matches!(self.state(), "destroyed" | "destroying")
    }
    pub fn info(self) -> SandboxInfo {
        let state = match self.state() {
            "started" => "running".to_owned(),
            "archived" | "paused" => "stopped".to_owned(),
            other => other.to_owned(),
        };
        SandboxInfo {
            run: self.labels.get(LABEL_RUN).and_then(|run| RunId::parse(run).ok()),
            provider: VENDOR.into(),
            state,
            created_at: self.created_at.as_deref().and_then(|at| at.parse().ok()),
            id: self.id,
        }
    }
    pub fn unusable(&self) -> ProviderError {
        let reason = self.error_reason.as_deref().unwrap_or_default();
        let reason = if reason.is_empty() {
            String::new()
        } else {
            format!(": {}", ralph_loop_protocol::display::text::one_line(reason, 300))
        };
        ProviderError::State { vendor: VENDOR, id: self.id.clone(), state: self.state().to_owned(), reason }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page {
    pub items: Vec<SandboxDto>,
    pub next_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Volume {
    pub id: String,
    pub state: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Ran {
    #[serde(rename = "exitCode", default)]
    pub exit_code: i32,
    pub result: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Folder {
    pub dir: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    pub name: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PreviewUrl {
    pub url: String,
    pub token: String,
}

pub(crate) fn call(options: &DaytonaOptions, what: &str, method: Method, path: &str) -> VendorRequest {
    let url = if path.starts_with("http") {
        path.to_owned()
    } else {
        format!("{}{path}", options.api_url.trim_end_matches('/'))
    };
    let call = VendorRequest::new(what, method, url)
        .header("authorization", format!("Bearer {}", options.key))
        .header("x-daytona-source", "ralph");
    match &options.organization {
        Some(organization) => call.header("x-daytona-organization-id", organization.clone()),
        None => call,
    }
}

/// The body that creates a sandbox. `volumes` are ids with their paths inside.
pub(crate) fn create(
    spec: &SandboxSpec,
    options: &DaytonaOptions,
    volumes: &[(String, String)],
) -> Result<Value, ProviderError> {
    let unsupported =
        |what: &str, hint| Err(ProviderError::Unsupported { vendor: VENDOR, what: what.to_owned(), hint });
    let sized = spec.resources != ralph_loop_domain::ports::Resources::default();
    let mut body = json!({ "name": sandbox_name(&spec.run), "labels": spec.all_labels(), "env": spec.env });
    let image = match (&spec.image, &spec.snapshot) {
        (Some(_), Some(_)) => return unsupported("take an image and a snapshot", "name one of them"),
        (None, None) => options.dockerfile.as_ref(),
        (image, _) => image.as_ref(),
    };
    match (image, &spec.snapshot) {
        (Some(image), _) => body["buildInfo"] = json!({ "dockerfileContent": dockerfile(image) }),
        (None, Some(_)) if sized => {
            return unsupported("choose the size of a snapshot", "name a snapshot of that size, or an image");
        }
        (None, None) if sized => {
            return unsupported(
                "choose the size without an image",
                "name an image, or a snapshot of that size",
            );
        }
        (None, Some(snapshot)) => body["snapshot"] = json!(snapshot),
        (None, None) => {}
    }
    let whole = |value: f64| json!(value.ceil().clamp(1.0, 1e6) as u64);
    for (key, value) in [
        ("cpu", spec.resources.vcpu),
        ("memory", spec.resources.memory_gib),
        ("disk", spec.resources.disk_gib),
    ] {
        if let Some(value) = value {
            body[key] = whole(value);
        }
    }
    if let Some(target) = &options.target {
        body["target"] = json!(target);
    }
    if let Some(idle) = spec.auto_stop {
        body["autoStopInterval"] = json!(idle.as_secs().div_ceil(60));
    }
    let (addresses, domains) = addresses_and_domains(&spec.allowed_hosts);
    for (key, hosts) in [("networkAllowList", addresses), ("domainAllowList", domains)] {
        if !hosts.is_empty() {
            body[key] = json!(hosts.join(","));
        }
    }
    if !volumes.is_empty() {
        let list = volumes.iter().map(|(id, path)| json!({ "volumeId": id, "mountPath": path }));
        body["volumes"] = Value::Array(list.collect());
    }
    Ok(body)
}

/// An image by its name, or a complete Dockerfile without `COPY`.
fn dockerfile(image: &str) -> String {
    let written = image.lines().any(|line| line.trim_start().to_ascii_uppercase().starts_with("FROM "));
    if written { image.to_owned() } else { format!("FROM {}\n", image.trim()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_domain::ports::Resources;

    fn spec() -> SandboxSpec {
        SandboxSpec::of_run(RunId::new("r1"))
    }

    #[test]
    fn everything_of_a_spec_is_asked_for() {
        let mut spec = spec();
        spec.image = Some("debian:12".into());
        spec.resources = Resources { vcpu: Some(1.5), memory_gib: Some(4.0), disk_gib: None };
        spec.allowed_hosts = vec!["*.github.com".into(), "10.0.0.0/8".into()];
        spec.auto_stop = Some(std::time::Duration::from_secs(61));
        let mut options = DaytonaOptions::new("k");
        options.target = Some("eu".into());
        let body = create(&spec, &options, &[("v1".into(), "/cache".into())]).unwrap();
        assert_eq!(
            body,
            json!({
                "name": "ralph-r1", "labels": { "ralph": "true", "ralph.run": "r1" }, "env": {},
                "buildInfo": { "dockerfileContent": "FROM debian:12\n" }, "cpu": 2, "memory": 4, "target": "eu",
                "autoStopInterval": 2, "networkAllowList": "10.0.0.0/8", "domainAllowList": "*.github.com",
                "volumes": [{ "volumeId": "v1", "mountPath": "/cache" }]
            })
        );
    }

    #[test]
    fn a_whole_dockerfile_is_built_as_it_is() {
        assert_eq!(dockerfile("# mine\nfrom a\nRUN b"), "# mine\nfrom a\nRUN b");
        assert_eq!(dockerfile("a:1"), "FROM a:1\n");
    }

    #[test]
    fn our_own_image_is_the_default_and_has_any_size() {
        let mut options = DaytonaOptions::new("k");
        options.dockerfile = Some("FROM ours\n".into());
        let mut spec = spec();
        spec.resources.memory_gib = Some(8.0);
        let body = create(&spec, &options, &[]).unwrap();
        assert_eq!(
            (&body["buildInfo"]["dockerfileContent"], &body["memory"]),
            (&json!("FROM ours\n"), &json!(8))
        );
        spec.image = Some("debian:12".into());
        let body = create(&spec, &options, &[]).unwrap();
        assert_eq!(body["buildInfo"]["dockerfileContent"], "FROM debian:12\n");
        (spec.image, spec.snapshot) = (None, Some("mine".into()));
        let error = create(&spec, &options, &[]).unwrap_err().to_string();
        assert!(error.contains("snapshot of that size"), "{error}");
        spec.resources = Resources::default();
        let body = create(&spec, &options, &[]).unwrap();
        assert_eq!((&body["snapshot"], &body["buildInfo"]), (&json!("mine"), &Value::Null));
    }

    #[test]
    fn unsupported_specs_are_refused_with_a_hint() {
        let mut spec = spec();
        spec.resources.vcpu = Some(2.0);
        let error = create(&spec, &DaytonaOptions::new("k"), &[]).unwrap_err();
        assert!(error.to_string().contains("name an image"), "{error}");
    }
}
