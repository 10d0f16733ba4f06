//! A Vercel sandbox and its present session.
#![allow(clippy::disallowed_methods, reason = "waits for a machine have a deadline")]

use super::wire::{self, Route, SandboxWithSession, Updated};
use super::{VENDOR, VercelOptions, tar};
use crate::error::ProviderError;
use crate::http::{VendorClient, VendorRequest, Watch, never_stop};
use crate::machine::{Machine, SHORT, Shell};
use ralph_loop_domain::ports::Preview;
use ralph_loop_http::Method;
use ralph_loop_protocol::display::text::percent_encoded;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(crate) struct VercelMachine {
    options: VercelOptions,
    name: String,
    now: Mutex<Now>,
}

/// Changes with every session.
#[derive(Debug, Default)]
struct Now {
    session: String,
    routes: Vec<Route>,
}

/// Reads a sandbox; with `resume` a stopped one begins its next session.
pub(crate) fn get_sandbox(options: &VercelOptions, name: &str, resume: bool) -> VendorRequest {
    let path = format!(
        "/v2/sandboxes/{}?projectId={}&resume={resume}",
        percent_encoded(name),
        percent_encoded(&options.project)
    );
    wire::call(options, "look for a sandbox", Method::GET, &path).limit(Duration::from_secs(120))
}

/// Removes a sandbox, if it exists.
pub(crate) fn destroy(http: &VendorClient, options: &VercelOptions, name: &str) -> Result<(), ProviderError> {
    let path = format!(
        "/v2/sandboxes/{}?projectId={}&deleteOrphanSnapshots=true",
        percent_encoded(name),
        percent_encoded(&options.project)
    );
    http.send(&wire::call(options, "destroy a sandbox", Method::DELETE, &path).also(&[404]), &mut never_stop)
        .map(drop)
}

impl VercelMachine {
    pub fn new(options: VercelOptions, name: String) -> Self {
        Self { options, name, now: Mutex::default() }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self, what: &str, rest: &str) -> VendorRequest {
        let session = self.now().session.clone();
        wire::call(
            &self.options,
            what,
            Method::POST,
            &format!("/v2/sandboxes/sessions/{}{rest}", percent_encoded(&session)),
        )
    }

    /// Waits until the session runs; returns its folder.
    pub fn ready(&self, http: &VendorClient, mut found: SandboxWithSession) -> Result<String, ProviderError> {
        let begun = Instant::now();
        loop {
            match found.session.status.as_str() {
                "running" => {
                    *self.now() = Now { session: found.session.id, routes: found.routes };
                    return Ok(found.session.cwd);
                }
                "failed" | "aborted" => {
                    let (id, state) = (self.name.clone(), found.session.status);
                    return Err(ProviderError::State { vendor: VENDOR, id, state, reason: String::new() });
                }
                _ => http.tick(begun, self.options.start_limit, "start a sandbox")?,
            }
            found = http.json(&get_sandbox(&self.options, &self.name, true))?;
        }
    }
}

impl Machine for VercelMachine {
    fn kind(&self) -> &'static str {
        VENDOR
    }

    fn id(&self) -> &str {
        &self.name
    }

    fn server(&self) -> &str {
        &self.options.api_url
    }

    fn shell(&self, http: &VendorClient, script: &str, watch: Watch<'_>) -> Result<Shell, ProviderError> {
        let body = json!({ "command": "sh", "args": ["-c", script], "env": {}, "sudo": false, "wait": true, "logs": true,
            "timeout": SHORT.as_millis() as u64 });
        let call = self.session("run a command", "/cmd").json(body).limit(SHORT + Duration::from_secs(15));
        let answer = http.send(&call, watch)?;
        ran(&answer.body).map_err(|reason| http.garbled(&call.what, reason))
    }

    fn put(
        &self,
        http: &VendorClient,
        path: &str,
        bytes: &[u8],
        mode: Option<u32>,
    ) -> Result<(), ProviderError> {
        let archive = tar::gzipped(path, bytes, mode.unwrap_or(0o644))
            .map_err(|e| http.garbled("write a file", e.to_string()))?;
        let call = self
            .session("write a file", "/fs/write")
            .header("x-cwd", "/")
            .bytes("application/gzip", archive)
            .limit(Duration::from_secs(300));
        http.send(&call, &mut never_stop).map(drop)
    }

    fn get(&self, http: &VendorClient, path: &str) -> Result<Vec<u8>, ProviderError> {
        let call = self
            .session("read a file", "/fs/read")
            .json(json!({ "path": path }))
            .limit(Duration::from_secs(300))
            .file();
        Ok(http.send(&call, &mut never_stop)?.body)
    }

    fn start(&self, http: &VendorClient) -> Result<(), ProviderError> {
        let found = http.json(&get_sandbox(&self.options, &self.name, true))?;
        self.ready(http, found).map(drop)
    }

    fn stop(&self, http: &VendorClient) -> Result<(), ProviderError> {
        let begun = Instant::now();
        let mut asked = false;
        loop {
            let found: SandboxWithSession = http.json(&get_sandbox(&self.options, &self.name, false))?;
            match found.session.status.as_str() {
                "stopped" | "failed" | "aborted" => return Ok(()),
                "running" if !asked => {
                    asked = true;
                    let path = format!("/v2/sandboxes/sessions/{}/stop", percent_encoded(&found.session.id));
                    let call = wire::call(&self.options, "stop a sandbox", Method::POST, &path);
                    http.send(&call.limit(Duration::from_secs(180)), &mut never_stop)?;
                }
                _ => http.tick(begun, self.options.start_limit, "stop a sandbox")?,
            }
        }
    }

    fn destroy(&self, http: &VendorClient) -> Result<(), ProviderError> {
        destroy(http, &self.options, &self.name)
    }

    /// Adds undeclared ports, of which the vendor allows few.
    fn preview(&self, http: &VendorClient, port: u16) -> Result<Preview, ProviderError> {
        let (known, mut ports) = {
            let now = self.now();
            let known = now.routes.iter().find(|route| route.port == port).map(|route| route.url.clone());
            (known, now.routes.iter().map(|route| route.port).collect::<Vec<_>>())
        };
        let url = match known {
            Some(url) => url,
            None => {
                ports.push(port);
                let path = format!(
                    "/v2/sandboxes/{}?projectId={}",
                    percent_encoded(&self.name),
                    percent_encoded(&self.options.project)
                );
                let call = wire::call(&self.options, "open a port", Method::PATCH, &path)
                    .json(json!({ "ports": ports }));
                let updated: Updated = http.json(&call)?;
                self.now().routes = updated.routes.clone();
                let found = updated.routes.into_iter().find(|route| route.port == port);
                found.ok_or_else(|| http.garbled("open a port", "the port has no address"))?.url
            }
        };
        Ok(Preview { url, headers: BTreeMap::new() })
    }

    /// Extends the session by the time until the next call.
    fn keep_alive(&self, http: &VendorClient) -> Result<(), ProviderError> {
        let duration = self.keep_alive_every().as_millis() as u64;
        // Retrying would only extend it further.
        let call =
            self.session("keep a sandbox alive", "/extend-timeout").json(json!({ "duration": duration }));
        http.send(&call, &mut never_stop).map(drop)
    }

    fn keep_alive_every(&self) -> Duration {
        (self.options.lifetime / 3).min(Duration::from_secs(240)).max(Duration::from_secs(1))
    }
}

/// Parses the output of a finished command.
fn ran(body: &[u8]) -> Result<Shell, String> {
    let mut shell = Shell { code: 0, out: String::new() };
    let mut over = false;
    for line in body.split(|b| *b == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        let line: Value =
            serde_json::from_slice(line).map_err(|e| format!("a line isn't valid JSON: {e}"))?;
        if let Some(code) = line["command"]["exitCode"].as_i64() {
            shell.code = i32::try_from(code).unwrap_or(-1);
            over = true;
        }
        match line["stream"].as_str() {
            Some("stdout") => shell.out.push_str(line["data"].as_str().unwrap_or_default()),
            Some("error") => {
                let data = &line["data"];
                return Err(format!(
                    "{} {}",
                    data["code"].as_str().unwrap_or("error"),
                    data["message"].as_str().unwrap_or_default()
                ));
            }
            _ => {}
        }
    }
    if over { Ok(shell) } else { Err("the command has no end".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_to_the_end() {
        let body = b"{\"command\":{\"id\":\"c\",\"exitCode\":null}}\n{\"stream\":\"stdout\",\"data\":\"a\\n\"}\n{\"stream\":\"stderr\",\"data\":\"no\"}\n\n{\"stream\":\"stdout\",\"data\":\"b\"}\n{\"command\":{\"exitCode\":3}}\n";
        let shell = ran(body).unwrap();
        assert_eq!((shell.code, shell.out.as_str()), (3, "a\nb"));
        assert_eq!(ran(b"{\"command\":{\"exitCode\":null}}\n").unwrap_err(), "the command has no end");
        let failed = b"{\"stream\":\"error\",\"data\":{\"code\":\"sandbox_stopped\",\"message\":\"over\"}}";
        assert_eq!(ran(failed).unwrap_err(), "sandbox_stopped over");
    }
}
