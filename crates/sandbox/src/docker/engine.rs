//! The calls of the Docker and podman Engine API that are used.

use super::http::{self, Address, Connection, Reply, Request};
use ralph_loop_domain::ports::SandboxError;
use ralph_loop_protocol::display::text::percent_encoded as escape;
use serde_json::{Value, json};
use std::sync::OnceLock;
use std::time::Duration;

/// The newest API version known here; an older engine gets its own.
const KNOWN: (u32, u32) = (1, 44);
/// How long the engine may stay silent, for calls that don't wait for work.
const LIMIT: Duration = Duration::from_secs(60);
/// The same for builds and pulls.
const LONG_LIMIT: Duration = Duration::from_secs(900);

#[derive(Debug)]
pub(super) struct Engine {
    address: Address,
    prefix: OnceLock<String>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ExecState {
    pub(super) running: bool,
    pub(super) code: i32,
}

impl Engine {
    pub(super) fn new(address: Address) -> Self {
        Self { address, prefix: OnceLock::new() }
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    fn broken(&self, error: &std::io::Error) -> SandboxError {
        SandboxError::Broken(format!("the container engine at {} does not answer: {error}", self.address))
    }

    /// `/v1.41`: the newest version that both sides know.
    fn prefix(&self) -> Result<&str, SandboxError> {
        if let Some(prefix) = self.prefix.get() {
            return Ok(prefix);
        }
        let request = Request { method: "GET", path: "/version", body: None, limit: Duration::from_secs(10) };
        let reply = http::ask(&self.address, &request).map_err(|error| self.broken(&error))?;
        let told: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let (theirs, oldest) = (version(&told["ApiVersion"]), version(&told["MinAPIVersion"]));
        let Some(theirs) = theirs else {
            let what = format!("the server at {} isn't a container engine", self.address);
            return Err(SandboxError::Broken(what));
        };
        let (major, minor) = theirs.min(KNOWN).max(oldest.unwrap_or(KNOWN.min(theirs)));
        Ok(self.prefix.get_or_init(|| format!("/v{major}.{minor}")))
    }

    pub(super) fn ping(&self) -> Result<(), SandboxError> {
        self.prefix().map(drop)
    }

    fn raw(
        &self,
        method: &'static str,
        path: &str,
        body: Option<(&'static str, &[u8])>,
        limit: Duration,
    ) -> Result<Reply, SandboxError> {
        let path = format!("{}{path}", self.prefix()?);
        http::ask(&self.address, &Request { method, path: &path, body, limit })
            .map_err(|error| self.broken(&error))
    }

    fn call(&self, method: &'static str, path: &str, body: Option<&Value>) -> Result<Reply, SandboxError> {
        let bytes = body.map(|body| body.to_string().into_bytes());
        self.raw(method, path, bytes.as_deref().map(|bytes| ("application/json", bytes)), LIMIT)
    }

    fn must(
        &self,
        what: &str,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, SandboxError> {
        let reply = self.call(method, path, body)?;
        match reply.status {
            200..=299 | 304 => Ok(serde_json::from_slice(&reply.body).unwrap_or_default()),
            _ => Err(refused(what, &reply)),
        }
    }

    pub(super) fn create(&self, name: &str, body: &Value) -> Result<Option<()>, SandboxError> {
        let reply = self.call("POST", &format!("/containers/create?name={}", escape(name)), Some(body))?;
        match reply.status {
            201 => Ok(Some(())),
            409 => Ok(None),
            _ => Err(refused("the container could not be made", &reply)),
        }
    }

    pub(super) fn inspect(&self, name: &str) -> Result<Option<Value>, SandboxError> {
        let reply = self.call("GET", &format!("/containers/{}/json", escape(name)), None)?;
        match reply.status {
            200 => Ok(serde_json::from_slice(&reply.body).ok()),
            404 | 400 => Ok(None),
            _ => Err(refused("can't read the container's state", &reply)),
        }
    }

    pub(super) fn containers(&self, label: &str) -> Result<Vec<Value>, SandboxError> {
        let filter = escape(&json!({"label": [label]}).to_string());
        let path = format!("/containers/json?all=true&filters={filter}");
        match self.must("the containers could not be listed", "GET", &path, None)? {
            Value::Array(all) => Ok(all),
            _ => Ok(Vec::new()),
        }
    }

    pub(super) fn start(&self, name: &str) -> Result<(), SandboxError> {
        let path = format!("/containers/{}/start", escape(name));
        self.must(&format!("`{name}` could not be started"), "POST", &path, None).map(drop)
    }

    pub(super) fn stop(&self, name: &str) -> Result<(), SandboxError> {
        let path = format!("/containers/{}/stop?t=2", escape(name));
        self.must(&format!("`{name}` could not be stopped"), "POST", &path, None).map(drop)
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), SandboxError> {
        let path = format!("/containers/{}?force=true&v=true", escape(name));
        let reply = self.call("DELETE", &path, None)?;
        match reply.status {
            // 409: another process is removing it.
            200..=299 | 404 | 409 => Ok(()),
            _ => Err(refused(&format!("`{name}` could not be removed"), &reply)),
        }
    }

    /// Creates a volume unless it exists.
    pub(super) fn make_volume(&self, name: &str, labels: &Value) -> Result<(), SandboxError> {
        let body = json!({"Name": name, "Labels": labels});
        self.must(&format!("the volume `{name}` could not be made"), "POST", "/volumes/create", Some(&body))
            .map(drop)
    }

    /// Removes a volume that carries `label`; ignores a missing or foreign one.
    pub(super) fn remove_volume(&self, name: &str, label: &str) -> Result<(), SandboxError> {
        let reply = self.call("GET", &format!("/volumes/{}", escape(name)), None)?;
        let told: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        if reply.status != 200 || told["Labels"][label].is_null() {
            return Ok(());
        }
        let reply = self.call("DELETE", &format!("/volumes/{}?force=true", escape(name)), None)?;
        match reply.status {
            200..=299 | 404 => Ok(()),
            _ => Err(refused(&format!("the volume `{name}` could not be removed"), &reply)),
        }
    }

    pub(super) fn wait(&self, name: &str) -> Result<i64, SandboxError> {
        let path = format!("/containers/{}/wait", escape(name));
        let told = self.must(&format!("`{name}` did not end"), "POST", &path, None)?;
        Ok(told["StatusCode"].as_i64().unwrap_or(-1))
    }

    pub(super) fn limit_processes(&self, name: &str, pids: i64) -> Result<(), SandboxError> {
        let path = format!("/containers/{}/update", escape(name));
        let body = json!({"PidsLimit": pids});
        self.must(&format!("the limits of `{name}` could not be changed"), "POST", &path, Some(&body))
            .map(drop)
    }

    pub(super) fn has_image(&self, image: &str) -> Result<bool, SandboxError> {
        let reply = self.call("GET", &format!("/images/{image}/json"), None)?;
        Ok(reply.status == 200)
    }

    pub(super) fn pull(&self, image: &str) -> Result<(), SandboxError> {
        let (name, tag) = match image.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, tag),
            _ => (image, "latest"),
        };
        let path = format!("/images/create?fromImage={}&tag={}", escape(name), escape(tag));
        let reply = self.raw("POST", &path, None, LONG_LIMIT)?;
        finished(&format!("the image `{image}` could not be fetched"), &reply)
    }

    pub(super) fn build(&self, image: &str, tar: &[u8]) -> Result<(), SandboxError> {
        let path = format!("/build?t={}&rm=true&forcerm=true", escape(image));
        let reply = self.raw("POST", &path, Some(("application/x-tar", tar)), LONG_LIMIT)?;
        finished(&format!("the image `{image}` could not be built"), &reply)
    }

    pub(super) fn exec_create(&self, name: &str, body: &Value) -> Result<String, SandboxError> {
        let path = format!("/containers/{}/exec", escape(name));
        let made = self.must(&format!("no command can run in `{name}`"), "POST", &path, Some(body))?;
        let id = made["Id"].as_str().unwrap_or_default();
        if id.is_empty() {
            return Err(SandboxError::Broken("the engine gave no id for a command".to_owned()));
        }
        Ok(id.to_owned())
    }

    pub(super) fn exec_start(&self, id: &str) -> Result<(Connection, Vec<u8>), SandboxError> {
        let path = format!("{}/exec/{}/start", self.prefix()?, escape(id));
        let body = br#"{"Detach":false,"Tty":false}"#;
        let request =
            Request { method: "POST", path: &path, body: Some(("application/json", body)), limit: LIMIT };
        http::upgrade(&self.address, &request)
            .map_err(|error| self.broken(&error))?
            .map_err(|reply| refused("the command could not be started", &reply))
    }

    pub(super) fn exec_state(&self, id: &str) -> Result<ExecState, SandboxError> {
        let told =
            self.must("can't read a command's state", "GET", &format!("/exec/{}/json", escape(id)), None)?;
        let code = told["ExitCode"].as_i64().and_then(|code| i32::try_from(code).ok());
        Ok(ExecState { running: told["Running"].as_bool().unwrap_or(false), code: code.unwrap_or(-1) })
    }
}

fn version(value: &Value) -> Option<(u32, u32)> {
    let (major, minor) = value.as_str()?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn refused(what: &str, reply: &Reply) -> SandboxError {
    let told: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let text = told["message"]
        .as_str()
        .map_or_else(|| String::from_utf8_lossy(&reply.body).into_owned(), str::to_owned);
    let text: String = text.trim().chars().take(500).collect();
    SandboxError::Broken(format!("{what}: {text} ({})", reply.status))
}

/// Builds and pulls report their failure in the last of many lines.
fn finished(what: &str, reply: &Reply) -> Result<(), SandboxError> {
    if !(200..=299).contains(&reply.status) {
        return Err(refused(what, reply));
    }
    let text = String::from_utf8_lossy(&reply.body);
    let errors = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    match errors.filter_map(|line| line["error"].as_str().map(str::to_owned)).next_back() {
        None => Ok(()),
        Some(error) => {
            let error: String = error.trim().chars().take(500).collect();
            Err(SandboxError::Broken(format!("{what}: {error}")))
        }
    }
}
