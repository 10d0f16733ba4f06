//! Vercel Sandbox: <https://vercel.com/docs/vercel-sandbox>. A named sandbox keeps its files; a session is one run of
//! its machine. Sessions must be extended while they are needed; requesting the sandbox begins the next one.

mod machine;
mod options;
mod tar;
mod wire;

pub use options::VercelOptions;

use crate::error::ProviderError;
use crate::http::{VendorClient, VendorRequest, never_stop};
use crate::sandbox::CloudSandbox;
use machine::VercelMachine;
use ralph_loop_domain::ports::{
    Capabilities, LABEL_OURS, ManagedSandbox, Resources, SandboxError, SandboxInfo, SandboxProvider,
    SandboxSpec,
};
use ralph_loop_http::Method;
use ralph_loop_protocol::display::text::percent_encoded;
use ralph_loop_protocol::money::Usd;
use serde_json::json;
use std::time::Duration;
use wire::{Page, SandboxDto, SandboxWithSession};

pub(crate) const VENDOR: &str = "vercel";
const PAGES_MAX: usize = 50;

/// The provider.
#[derive(Debug)]
pub struct Vercel {
    options: VercelOptions,
}

impl Vercel {
    /// Stores the options; makes no calls yet.
    pub fn new(options: VercelOptions) -> Self {
        Self { options }
    }

    fn http(&self) -> Result<VendorClient, ProviderError> {
        VendorClient::new(
            VENDOR,
            vec![self.options.token.clone()],
            self.options.backoff,
            self.options.proxy.clone(),
        )
    }

    fn call(&self, what: &str, method: Method, path: &str) -> VendorRequest {
        wire::call(&self.options, what, method, path)
    }

    fn find(
        &self,
        http: &VendorClient,
        name: &str,
        resume: bool,
    ) -> Result<Option<SandboxWithSession>, ProviderError> {
        let found: Option<SandboxWithSession> =
            http.json_or_none(machine::get_sandbox(&self.options, name, resume))?;
        Ok(found.filter(|found| found.sandbox.is_ours()))
    }

    /// Creates or wakes a sandbox. A failed try may have created it, so each begins with a lookup.
    fn make(&self, http: &VendorClient, spec: &SandboxSpec) -> Result<SandboxWithSession, ProviderError> {
        for (name, _) in &spec.volumes {
            let call = self.call(
                "make a drive",
                Method::POST,
                &format!("/v2/sandboxes/drives/{}", percent_encoded(name)),
            );
            http.send(&call.json(json!({ "projectId": self.options.project })), &mut never_stop)?;
        }
        let (path, body) = wire::create(spec, &self.options)?;
        let name = wire::name(&spec.run);
        let mut tries = 0;
        loop {
            // The lookup doesn't wake: foreign sandboxes must not be touched.
            if self.find(http, &name, false)?.is_some()
                && let Some(found) = self.find(http, &name, true)?
            {
                return Ok(found);
            }
            tries += 1;
            let call = self.call("create a sandbox", Method::POST, path).json(body.clone());
            match http.json(&call.limit(Duration::from_secs(120)).once()) {
                Ok(made) => return Ok(made),
                Err(error) if error.passes() && tries < 5 => http.pause_after(&error, tries)?,
                Err(error) => return Err(error),
            }
        }
    }

    fn open(
        &self,
        http: VendorClient,
        found: SandboxWithSession,
    ) -> Result<Box<dyn ManagedSandbox>, ProviderError> {
        let name = found.sandbox.name.clone();
        let machine = VercelMachine::new(self.options.clone(), name);
        let home = machine.ready(&http, found)?;
        Ok(Box::new(CloudSandbox::open(machine, http, &home, self.options.orphan_after)?))
    }
}

impl SandboxProvider for Vercel {
    fn name(&self) -> &'static str {
        VENDOR
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            streaming: true,
            separate_stderr: true,
            stdin: true,
            parallel: true,
            stop_start: true,
            preview: true,
            network_policy: true,
            snapshots: true,
            volumes: true,
            resources: true,
            file_modes: true,
        }
    }

    fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn ManagedSandbox>, SandboxError> {
        let http = self.http()?;
        let found = self.make(&http, spec)?;
        Ok(self.open(http, found)?)
    }

    /// Wakes it if it was stopped.
    fn attach(&self, id: &str) -> Result<Option<Box<dyn ManagedSandbox>>, SandboxError> {
        let http = self.http()?;
        if self.find(&http, id, false)?.is_none() {
            return Ok(None);
        }
        match self.find(&http, id, true)? {
            None => Ok(None),
            Some(found) => Ok(Some(self.open(http, found)?)),
        }
    }

    fn list(&self) -> Result<Vec<SandboxInfo>, SandboxError> {
        let http = self.http()?;
        let mut found = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let mut path = format!(
                "/v2/sandboxes?project={}&limit=50&tags={}",
                percent_encoded(&self.options.project),
                percent_encoded(&format!("{LABEL_OURS}:true"))
            );
            if let Some(cursor) = &cursor {
                path.push_str(&format!("&cursor={}", percent_encoded(cursor)));
            }
            let page: Page = http.json(&self.call("list sandboxes", Method::GET, &path))?;
            found.extend(page.sandboxes.into_iter().filter(SandboxDto::is_ours));
            cursor = page.pagination.next.filter(|next| !next.is_empty());
            if cursor.is_none() {
                break;
            }
        }
        Ok(found.into_iter().map(SandboxDto::info).collect())
    }

    fn destroy(&self, id: &str) -> Result<(), SandboxError> {
        let http = self.http()?;
        match self.find(&http, id, false)? {
            None => Ok(()),
            Some(found) => Ok(machine::destroy(&http, &self.options, &found.sandbox.name)?),
        }
    }

    /// The processor is billed by use: this is the maximum.
    fn hourly(&self, resources: &Resources) -> Option<Usd> {
        let vcpus = wire::vcpus(resources).unwrap_or(2);
        let machine = Resources {
            vcpu: Some(f64::from(vcpus)),
            memory_gib: Some(f64::from(vcpus) * 2.0),
            disk_gib: None,
        };
        self.options.prices.map(|prices| prices.hourly(&machine, &Resources::default()))
    }
}
