//! The data types of E2B's API.

use super::{E2bOptions, VENDOR};
use crate::error::ProviderError;
use crate::http::VendorRequest;
use ralph_loop_domain::ports::{LABEL_OURS, LABEL_RUN, Resources, SandboxInfo, SandboxSpec};
use ralph_loop_http::Method;
use ralph_loop_protocol::id::RunId;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug, Clone, Deserialize)]
pub struct Known {
    #[serde(rename = "sandboxID")]
    pub id: String,
    #[serde(default)]
    pub metadata: Option<BTreeMap<String, String>>,
    pub state: String,
    #[serde(rename = "startedAt", default)]
    pub started_at: Option<String>,
}

impl Known {
    fn label(&self, name: &str) -> Option<&String> {
        self.metadata.as_ref()?.get(name)
    }
    pub fn is_ours(&self) -> bool {
        self.label(LABEL_OURS).is_some()
    }
    pub fn run(&self) -> Option<RunId> {
        self.label(LABEL_RUN).and_then(|run| RunId::parse(run).ok())
    }
    pub fn info(self) -> SandboxInfo {
        SandboxInfo {
            run: self.run(),
            provider: VENDOR.into(),
            state: if self.state == "paused" { "stopped".into() } else { self.state.clone() },
            created_at: self.started_at.as_deref().and_then(|at| at.parse().ok()),
            id: self.id,
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Access {
    #[serde(rename = "sandboxID")]
    pub id: String,
    #[serde(default)]
    pub envd_access_token: Option<String>,
    #[serde(default)]
    pub traffic_access_token: Option<String>,
    #[serde(default)]
    pub domain: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Volume {
    pub name: String,
}

pub(crate) fn call(options: &E2bOptions, what: &str, method: Method, path: &str) -> VendorRequest {
    let url = format!("{}{path}", options.api_url.trim_end_matches('/'));
    VendorRequest::new(what, method, url).header("x-api-key", options.key.clone())
}

/// The body that creates a sandbox. Its ports aren't public: requests need the token of a preview.
pub(crate) fn create(
    spec: &SandboxSpec,
    options: &E2bOptions,
    lifetime: Duration,
) -> Result<Value, ProviderError> {
    let unsupported =
        |what: &str, hint| Err(ProviderError::Unsupported { vendor: VENDOR, what: what.to_owned(), hint });
    if spec.resources != Resources::default() {
        return unsupported("choose the size of a sandbox", "name a template of that size as the image");
    }
    let template = match (&spec.image, &spec.snapshot) {
        (Some(_), Some(_)) => return unsupported("take an image and a snapshot", "name one of them"),
        (Some(image), None) if image.trim().contains(char::is_whitespace) => {
            return unsupported(
                "build an image",
                "build a template with the vendor's tool and name it as the image",
            );
        }
        (Some(name), None) | (None, Some(name)) => name.trim(),
        (None, None) => options.template.as_str(),
    };
    let mut network = json!({ "allowPublicTraffic": false });
    if !spec.allowed_hosts.is_empty() {
        network["allowOut"] = json!(spec.allowed_hosts);
        network["denyOut"] = json!(["0.0.0.0/0"]);
    }
    let mut body = json!({
        "templateID": template, "timeout": lifetime.as_secs(), "autoPause": true, "secure": true,
        "metadata": spec.all_labels(), "envVars": spec.env, "network": network,
    });
    if !spec.volumes.is_empty() {
        let mounts = spec.volumes.iter().map(|(name, path)| json!({ "name": name, "path": path }));
        body["volumeMounts"] = Value::Array(mounts.collect());
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_of_a_spec_is_asked_for() {
        let mut spec = SandboxSpec::of_run(RunId::new("r1"));
        spec.image = Some("mine".into());
        spec.allowed_hosts = vec!["github.com".into()];
        spec.volumes = vec![("cache".into(), "/c".into())];
        let body = create(&spec, &E2bOptions::new("k"), Duration::from_secs(60)).unwrap();
        assert_eq!(
            body,
            json!({
                "templateID": "mine", "timeout": 60, "autoPause": true, "secure": true, "envVars": {},
                "metadata": { "ralph": "true", "ralph.run": "r1" }, "volumeMounts": [{ "name": "cache", "path": "/c" }],
                "network": { "allowPublicTraffic": false, "allowOut": ["github.com"], "denyOut": ["0.0.0.0/0"] },
            })
        );
    }

    #[test]
    fn a_size_is_refused_with_a_hint() {
        let mut spec = SandboxSpec::of_run(RunId::new("r1"));
        spec.resources.vcpu = Some(2.0);
        let error = create(&spec, &E2bOptions::new("k"), Duration::ZERO).unwrap_err().to_string();
        assert!(error.contains("name a template"), "{error}");
    }
}
