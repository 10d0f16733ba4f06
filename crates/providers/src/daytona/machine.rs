//! A Daytona sandbox: lifecycle over the API, files and commands over the toolbox inside.
#![allow(clippy::disallowed_methods, reason = "waits for a machine have a deadline")]

use super::wire::{self, Entry, Folder, PreviewUrl, Ran, SandboxDto};
use super::{DaytonaOptions, VENDOR};
use crate::error::ProviderError;
use crate::http::{VendorClient, VendorRequest, Watch, never_stop};
use crate::machine::{Machine, SHORT, Shell};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ralph_loop_domain::ports::Preview;
use ralph_loop_http::Method;
use ralph_loop_http::random_word;
use ralph_loop_protocol::display::text::percent_encoded;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub(crate) struct DaytonaMachine {
    options: DaytonaOptions,
    id: String,
    toolbox: String,
}

impl DaytonaMachine {
    pub fn new(options: DaytonaOptions, found: &SandboxDto) -> Self {
        let toolbox = format!("{}/{}", found.toolbox_proxy_url.trim_end_matches('/'), found.id);
        Self { options, id: found.id.clone(), toolbox }
    }

    /// The working folder of the vendor's image.
    pub fn home(&self, http: &VendorClient) -> Result<String, ProviderError> {
        let folder: Folder = http.json(&self.toolbox("read a sandbox's state", Method::GET, "/work-dir"))?;
        Ok(folder.dir)
    }

    fn api(&self, what: &str, method: Method, rest: &str) -> VendorRequest {
        wire::call(&self.options, what, method, &format!("/sandbox/{}{rest}", percent_encoded(&self.id)))
    }

    fn toolbox(&self, what: &str, method: Method, rest: &str) -> VendorRequest {
        wire::call(&self.options, what, method, &format!("{}{rest}", self.toolbox))
    }

    fn fetch(&self, http: &VendorClient) -> Result<SandboxDto, ProviderError> {
        http.json(&self.api("read a sandbox's state", Method::GET, ""))
    }

    /// Waits until it runs, starting it if it is stopped.
    pub fn start_from(&self, http: &VendorClient, mut now: SandboxDto) -> Result<(), ProviderError> {
        let begun = Instant::now();
        loop {
            match now.state() {
                "started" => return Ok(()),
                "stopped" | "archived" | "paused" => {
                    now = http.json(&self.api("start a sandbox", Method::POST, "/start"))?;
                    if now.state() == "started" {
                        return Ok(());
                    }
                }
                "error" | "build_failed" | "destroyed" | "destroying" => return Err(now.unusable()),
                _ => {}
            }
            http.tick(begun, self.options.start_limit, "start a sandbox")?;
            now = self.fetch(http)?;
        }
    }
}

/// Removes a sandbox, if it exists.
pub(crate) fn destroy(http: &VendorClient, options: &DaytonaOptions, id: &str) -> Result<(), ProviderError> {
    let call = wire::call(
        options,
        "destroy a sandbox",
        Method::DELETE,
        &format!("/sandbox/{}", percent_encoded(id)),
    );
    http.send(&call.also(&[404]), &mut never_stop).map(drop)
}

impl Machine for DaytonaMachine {
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
        // Older daemons split the command into words without escapes, newer ones pass it to a shell: encoded, it is
        // the same for both. Both streams come back as one text, so the shell's own errors are dropped.
        let coded = STANDARD.encode(script);
        let command = format!("sh -c \"echo {coded} | base64 -d | sh 2>/dev/null\"");
        let call = self
            .toolbox("run a command", Method::POST, "/process/execute")
            .json(json!({ "command": command, "timeout": SHORT.as_secs() }))
            .limit(SHORT + Duration::from_secs(15));
        let answer = http.send(&call, watch)?;
        let ran: Ran = http.understood(&call.what, &answer.body)?;
        Ok(Shell { code: ran.exit_code, out: ran.result })
    }

    fn put(
        &self,
        http: &VendorClient,
        path: &str,
        bytes: &[u8],
        _: Option<u32>,
    ) -> Result<(), ProviderError> {
        let boundary = format!("ralph-{}", random_word());
        let mut body = Vec::with_capacity(bytes.len() + 512);
        let mut part = |head: &str, content: &[u8]| {
            body.extend_from_slice(
                format!("--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n").as_bytes(),
            );
            body.extend_from_slice(content);
            body.extend_from_slice(b"\r\n");
        };
        part(r#"name="files[0].path""#, path.as_bytes());
        part("name=\"files[0].file\"; filename=\"file\"\r\nContent-Type: application/octet-stream", bytes);
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        let call = self
            .toolbox("write a file", Method::POST, "/files/bulk-upload")
            .bytes(format!("multipart/form-data; boundary={boundary}"), body)
            .limit(Duration::from_secs(300));
        http.send(&call, &mut never_stop).map(drop)
    }

    fn get(&self, http: &VendorClient, path: &str) -> Result<Vec<u8>, ProviderError> {
        let rest = format!("/files/download?path={}", percent_encoded(path));
        let call = self.toolbox("read a file", Method::GET, &rest).limit(Duration::from_secs(300)).file();
        Ok(http.send(&call, &mut never_stop)?.body)
    }

    fn names(&self, http: &VendorClient, folder: &str) -> Result<Vec<String>, ProviderError> {
        let rest = format!("/files?path={}", percent_encoded(folder));
        let entries: Vec<Entry> = http.json(&self.toolbox("list a folder", Method::GET, &rest))?;
        Ok(entries.into_iter().map(|entry| entry.name).collect())
    }

    fn make_dir(&self, http: &VendorClient, path: &str) -> Result<(), ProviderError> {
        let rest = format!("/files/folder?path={}&mode=0755", percent_encoded(path));
        http.send(&self.toolbox("make a folder", Method::POST, &rest), &mut never_stop).map(drop)
    }

    fn delete(&self, http: &VendorClient, path: &str) -> Result<(), ProviderError> {
        let rest = format!("/files?path={}", percent_encoded(path));
        let call = self.toolbox("remove a file", Method::DELETE, &rest).also(&[404]);
        http.send(&call, &mut never_stop).map(drop)
    }

    fn set_mode(&self, http: &VendorClient, path: &str, mode: u32) -> Result<(), ProviderError> {
        let rest = format!("/files/permissions?path={}&mode={mode:04o}", percent_encoded(path));
        http.send(&self.toolbox("set permissions", Method::POST, &rest), &mut never_stop).map(drop)
    }

    fn start(&self, http: &VendorClient) -> Result<(), ProviderError> {
        let now = self.fetch(http)?;
        self.start_from(http, now)
    }

    fn stop(&self, http: &VendorClient) -> Result<(), ProviderError> {
        let begun = Instant::now();
        let mut asked = false;
        loop {
            let now = self.fetch(http)?;
            match now.state() {
                "stopped" | "archived" | "archiving" => return Ok(()),
                "error" | "build_failed" | "destroyed" => return Err(now.unusable()),
                "started" if !asked => {
                    asked = true;
                    let call = self.api("stop a sandbox", Method::POST, "/stop");
                    http.send(&call, &mut never_stop)?;
                    continue;
                }
                _ => {}
            }
            http.tick(begun, self.options.start_limit, "stop a sandbox")?;
        }
    }

    fn destroy(&self, http: &VendorClient) -> Result<(), ProviderError> {
        destroy(http, &self.options, &self.id)
    }

    fn preview(&self, http: &VendorClient, port: u16) -> Result<Preview, ProviderError> {
        let call = self.api("open a port", Method::GET, &format!("/ports/{port}/preview-url"));
        let found: PreviewUrl = http.json(&call)?;
        let headers =
            [("X-Daytona-Preview-Token", found.token), ("X-Daytona-Skip-Preview-Warning", "true".into())];
        let headers = headers.map(|(name, value)| (name.to_owned(), value));
        Ok(Preview { url: found.url, headers: BTreeMap::from(headers) })
    }

    fn keep_alive(&self, http: &VendorClient) -> Result<(), ProviderError> {
        let call = self.api("keep a sandbox alive", Method::POST, "/last-activity");
        http.send(&call.json(json!({ "activityType": "toolbox" })), &mut never_stop).map(drop)
    }

    /// Calls to the toolbox count as activity; this is for vendors' proxies that don't track them.
    fn keep_alive_every(&self) -> Duration {
        Duration::from_secs(240)
    }
}
