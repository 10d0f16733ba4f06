//! Vercel Sandbox: <https://vercel.com/docs/vercel-sandbox>. A named sandbox keeps its files; a session is one run of
//! its machine. Sessions must be extended while they are needed; requesting the sandbox begins the next one.

mod machine;
mod options;
mod tar;
mod wire;

pub use options::VercelOptions;

use crate::cloud::{CloudProvider, Vendor, pages, sandbox_name};
use crate::error::ProviderError;
use crate::http::{VendorClient, VendorRequest, never_stop};
use crate::sandbox::CloudSandbox;
use machine::VercelMachine;
use ralph_loop_domain::ports::{LABEL_OURS, ManagedSandbox, Resources, SandboxInfo, SandboxSpec};
use ralph_loop_http::Method;
use ralph_loop_protocol::display::text::percent_encoded;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::Usd;
use serde_json::json;
use std::time::Duration;
use wire::{Page, SandboxDto, SandboxWithSession};

pub(crate) const VENDOR: &str = "vercel";

pub type Vercel = CloudProvider<VercelOptions>;

impl VercelOptions {
    fn call(&self, what: &str, method: Method, path: &str) -> VendorRequest {
        wire::call(self, what, method, path)
    }

    fn get(
        &self,
        http: &VendorClient,
        name: &str,
        resume: bool,
    ) -> Result<Option<SandboxWithSession>, ProviderError> {
        let found: Option<SandboxWithSession> =
            http.json_or_none(machine::get_sandbox(self, name, resume))?;
        Ok(found.filter(|found| found.sandbox.is_ours()))
    }
}

impl Vendor for VercelOptions {
    const NAME: &'static str = VENDOR;
    const SIZES: bool = true;
    type Found = SandboxWithSession;
    type Awake = SandboxWithSession;

    fn client(&self) -> Result<VendorClient, ProviderError> {
        VendorClient::new(VENDOR, vec![self.token.clone()], self.backoff, self.proxy.clone())
    }

    fn find(&self, http: &VendorClient, name: &str) -> Result<Option<SandboxWithSession>, ProviderError> {
        self.get(http, name, false)
    }

    fn of_run(&self, http: &VendorClient, run: &RunId) -> Result<Option<SandboxWithSession>, ProviderError> {
        self.find(http, &sandbox_name(run))
    }

    fn wake(
        &self,
        http: &VendorClient,
        found: SandboxWithSession,
        _: Option<Duration>,
    ) -> Result<Option<SandboxWithSession>, ProviderError> {
        self.get(http, &found.sandbox.name, true)
    }

    fn creation(&self, http: &VendorClient, spec: &SandboxSpec) -> Result<VendorRequest, ProviderError> {
        for (name, _) in &spec.volumes {
            let path = format!("/v2/sandboxes/drives/{}", percent_encoded(name));
            let call = self.call("make a drive", Method::POST, &path);
            http.send(&call.json(json!({ "projectId": self.project })), &mut never_stop)?;
        }
        let (path, body) = wire::create(spec, self)?;
        Ok(self.call("create a sandbox", Method::POST, path).json(body))
    }

    fn open(
        &self,
        http: VendorClient,
        found: SandboxWithSession,
        _: Option<Duration>,
    ) -> Result<Box<dyn ManagedSandbox>, ProviderError> {
        let machine = VercelMachine::new(self.clone(), found.sandbox.name.clone());
        let home = machine.ready(&http, found)?;
        Ok(Box::new(CloudSandbox::open(machine, http, &home, self.orphan_after)?))
    }

    fn list(&self, http: &VendorClient) -> Result<Vec<SandboxInfo>, ProviderError> {
        let found = pages(|cursor| {
            let mut path = format!(
                "/v2/sandboxes?project={}&limit=50&tags={}",
                percent_encoded(&self.project),
                percent_encoded(&format!("{LABEL_OURS}:true"))
            );
            if let Some(cursor) = cursor {
                path.push_str(&format!("&cursor={}", percent_encoded(cursor)));
            }
            let page: Page = http.json(&self.call("list sandboxes", Method::GET, &path))?;
            Ok((page.sandboxes, page.pagination.next))
        })?;
        Ok(found.into_iter().filter(SandboxDto::is_ours).map(SandboxDto::info).collect())
    }

    fn destroy(&self, http: &VendorClient, found: &SandboxWithSession) -> Result<(), ProviderError> {
        machine::destroy(http, self, &found.sandbox.name)
    }

    /// The processor is billed by use: this is the maximum.
    fn hourly(&self, resources: &Resources) -> Option<Usd> {
        let vcpus = f64::from(wire::vcpus(resources).unwrap_or(2));
        let machine = Resources { vcpu: Some(vcpus), memory_gib: Some(vcpus * 2.0), disk_gib: None };
        self.prices.map(|prices| prices.hourly(&machine, &Resources::default()))
    }
}
