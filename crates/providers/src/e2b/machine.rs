//! An E2B sandbox: lifecycle over the API, files and commands over `envd` inside.

use super::connect;
use super::wire::{self, Access, Known};
use super::{E2bOptions, VENDOR};
use crate::error::ProviderError;
use crate::http::{VendorClient, VendorRequest, Watch, never_stop};
use crate::machine::{Machine, SHORT, Shell};
use ralph_loop_domain::ports::Preview;
use ralph_loop_http::Method;
use ralph_loop_http::random_word;
use ralph_loop_protocol::display::text::percent_encoded;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The port of `envd`.
const ENVD: &str = "49983";
/// The user of commands and files, as `Authorization: Basic` expects it (`user:`).
const USER: &str = "Basic dXNlcjo=";

pub(crate) struct E2bMachine {
    options: E2bOptions,
    id: String,
    access: Mutex<Access>,
    lifetime: Duration,
}

impl E2bMachine {
    pub fn new(options: E2bOptions, access: Access, lifetime: Duration) -> Self {
        Self { options, id: access.id.clone(), access: Mutex::new(access), lifetime }
    }

    fn access(&self) -> Access {
        self.access.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn home(&self, http: &VendorClient) -> Result<String, ProviderError> {
        let out = self.done(http, "read a sandbox's state", "printf %s \"$HOME\"")?;
        if out.starts_with('/') {
            Ok(out)
        } else {
            Err(http.garbled("read a sandbox's state", "it has no home"))
        }
    }

    fn api(&self, what: &str, method: Method, rest: &str) -> VendorRequest {
        wire::call(&self.options, what, method, &format!("/sandboxes/{}{rest}", percent_encoded(&self.id)))
    }

    fn envd(&self, what: &str, method: Method, path: &str) -> VendorRequest {
        let access = self.access();
        let domain = access.domain.filter(|d| !d.is_empty()).unwrap_or_else(|| self.options.domain.clone());
        let base = self.options.sandbox_url.clone().unwrap_or_else(|| format!("https://sandbox.{domain}"));
        let call = VendorRequest::new(what, method, format!("{}{path}", base.trim_end_matches('/')))
            .header("e2b-sandbox-id", self.id.clone())
            .header("e2b-sandbox-port", ENVD)
            .header("authorization", USER);
        match access.envd_access_token {
            Some(token) => call.header("x-access-token", token),
            None => call,
        }
    }

    /// A call to the file service; `also` are statuses that are an answer.
    fn filesystem(
        &self,
        http: &VendorClient,
        what: &str,
        method: &str,
        body: Value,
        also: &'static [u16],
    ) -> Result<Value, ProviderError> {
        let call = self
            .envd(what, Method::POST, &format!("/filesystem.Filesystem/{method}"))
            .header("connect-protocol-version", "1")
            .json(body)
            .also(also);
        let answer = http.send(&call, &mut never_stop)?;
        http.understood(what, &answer.body)
    }
}

/// Wakes a sandbox if it is paused and extends its lifetime; `None` if it is gone.
pub(crate) fn connect(
    http: &VendorClient,
    options: &E2bOptions,
    id: &str,
    lifetime: Duration,
) -> Result<Option<Access>, ProviderError> {
    let call = wire::call(
        options,
        "connect to a sandbox",
        Method::POST,
        &format!("/sandboxes/{}/connect", percent_encoded(id)),
    );
    http.json_or_none(call.json(json!({ "timeout": lifetime.as_secs() })))
}

/// Removes a sandbox, if it exists.
pub(crate) fn destroy(http: &VendorClient, options: &E2bOptions, id: &str) -> Result<(), ProviderError> {
    let call = wire::call(
        options,
        "destroy a sandbox",
        Method::DELETE,
        &format!("/sandboxes/{}", percent_encoded(id)),
    );
    http.send(&call.also(&[404]), &mut never_stop).map(drop)
}

impl Machine for E2bMachine {
    fn kind(&self) -> &'static str {
        VENDOR
    }

    fn id(&self) -> &str {
        &self.id
    }

    fn server(&self) -> &str {
        &self.options.api_url
    }

    fn shell(&self, http: &VendorClient, script: &str, watch: Watch<'_>) -> Result<Shell, ProviderError> {
        let body = json!({ "process": { "cmd": "/bin/sh", "args": ["-c", script] }, "stdin": false });
        let call = self
            .envd("run a command", Method::POST, "/process.Process/Start")
            .header("connect-protocol-version", "1")
            .header("connect-timeout-ms", SHORT.as_millis().to_string())
            .header("keepalive-ping-interval", "50")
            .bytes("application/connect+json", connect::framed(&body))
            .limit(SHORT + Duration::from_secs(15));
        let answer = http.send(&call, watch)?;
        let ended = connect::ended(&answer.body).map_err(|reason| http.garbled(&call.what, reason))?;
        Ok(Shell { code: ended.code, out: String::from_utf8_lossy(&ended.stdout).into_owned() })
    }

    fn put(
        &self,
        http: &VendorClient,
        path: &str,
        bytes: &[u8],
        _: Option<u32>,
    ) -> Result<(), ProviderError> {
        let boundary = format!("ralph-{}", random_word());
        let mut body = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        )
        .into_bytes();
        body.extend_from_slice(bytes);
        body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        let call = self
            .envd(
                "write a file",
                Method::POST,
                &format!("/files?path={}&username=user", percent_encoded(path)),
            )
            .bytes(format!("multipart/form-data; boundary={boundary}"), body)
            .limit(Duration::from_secs(300));
        http.send(&call, &mut never_stop).map(drop)
    }

    fn get(&self, http: &VendorClient, path: &str) -> Result<Vec<u8>, ProviderError> {
        let path = format!("/files?path={}&username=user", percent_encoded(path));
        let call = self.envd("read a file", Method::GET, &path).limit(Duration::from_secs(300)).file();
        Ok(http.send(&call, &mut never_stop)?.body)
    }

    fn names(&self, http: &VendorClient, folder: &str) -> Result<Vec<String>, ProviderError> {
        let listed =
            self.filesystem(http, "list a folder", "ListDir", json!({ "path": folder, "depth": 1 }), &[])?;
        let entries = listed["entries"].as_array().into_iter().flatten();
        Ok(entries.filter_map(|entry| entry["name"].as_str()).map(str::to_owned).collect())
    }

    fn make_dir(&self, http: &VendorClient, path: &str) -> Result<(), ProviderError> {
        // 409: it already exists.
        self.filesystem(http, "make a folder", "MakeDir", json!({ "path": path }), &[409]).map(drop)
    }

    fn delete(&self, http: &VendorClient, path: &str) -> Result<(), ProviderError> {
        self.filesystem(http, "remove a file", "Remove", json!({ "path": path }), &[404]).map(drop)
    }

    fn start(&self, http: &VendorClient) -> Result<(), ProviderError> {
        match connect(http, &self.options, &self.id, self.lifetime)? {
            Some(access) => {
                *self.access.lock().unwrap_or_else(PoisonError::into_inner) = access;
                Ok(())
            }
            None => {
                let state = "gone".to_owned();
                Err(ProviderError::State {
                    vendor: VENDOR,
                    id: self.id.clone(),
                    state,
                    reason: String::new(),
                })
            }
        }
    }

    fn stop(&self, http: &VendorClient) -> Result<(), ProviderError> {
        let look = || http.json::<Known>(&self.api("read a sandbox's state", Method::GET, ""));
        if look()?.state == "paused" {
            return Ok(());
        }
        let call = self.api("pause a sandbox", Method::POST, "/pause").json(json!({ "memory": false }));
        match http.send(&call.limit(Duration::from_secs(180)), &mut never_stop) {
            // Repeating a pause whose answer was lost is refused.
            Err(error) if error.status() == Some(409) && look()?.state == "paused" => Ok(()),
            other => other.map(drop),
        }
    }

    fn destroy(&self, http: &VendorClient) -> Result<(), ProviderError> {
        destroy(http, &self.options, &self.id)
    }

    fn preview(&self, _: &VendorClient, port: u16) -> Result<Preview, ProviderError> {
        let access = self.access();
        let domain = access.domain.filter(|d| !d.is_empty()).unwrap_or_else(|| self.options.domain.clone());
        let headers = access.traffic_access_token.map(|token| ("e2b-traffic-access-token".to_owned(), token));
        Ok(Preview {
            url: format!("https://{port}-{}.{domain}", self.id),
            headers: BTreeMap::from_iter(headers),
        })
    }

    fn keep_alive(&self, http: &VendorClient) -> Result<(), ProviderError> {
        let call = self.api("keep a sandbox alive", Method::POST, "/timeout");
        http.send(&call.json(json!({ "timeout": self.lifetime.as_secs() })), &mut never_stop).map(drop)
    }

    fn keep_alive_every(&self) -> Duration {
        (self.lifetime / 3).min(Duration::from_secs(240))
    }
}
