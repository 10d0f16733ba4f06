//! E2B: <https://e2b.dev>. Sandboxes are found by their metadata. Their lifetime must be extended while they are
//! needed; then they pause with their files, and connecting wakes them.

mod connect;
mod machine;
mod wire;

use crate::cloud::{CloudProvider, Vendor, filled, pages};
use crate::error::ProviderError;
use crate::http::{VendorClient, VendorRequest, never_stop};
use crate::price::Prices;
use crate::sandbox::{CloudSandbox, ORPHAN_AFTER};
use machine::E2bMachine;
use ralph_loop_domain::ports::{LABEL_OURS, LABEL_RUN, ManagedSandbox, Resources, SandboxInfo, SandboxSpec};
use ralph_loop_http::{Method, ProxySettings};
use ralph_loop_protocol::display::text::percent_encoded;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::Usd;
use serde_json::json;
use std::time::Duration;
use wire::{Access, Known};

pub(crate) const VENDOR: &str = "e2b";

/// Creates E2B sandboxes.
pub type E2b = CloudProvider<E2bOptions>;

/// Connection settings for E2B.
#[derive(Clone)]
pub struct E2bOptions {
    pub key: String,
    pub api_url: String,
    /// The sandboxes' URL; default: the vendor's.
    pub sandbox_url: Option<String>,
    /// The domain for ports, if a sandbox has none.
    pub domain: String,
    pub template: String,
    /// How long a sandbox lives without contact, unless the spec says otherwise.
    pub lifetime: Duration,
    /// The first wait between tries; later ones double.
    pub backoff: Duration,
    /// A command inside is ended after this long without contact.
    pub orphan_after: Duration,
    /// The vendor's list prices, if known.
    pub prices: Option<Prices>,
    pub proxy: ProxySettings,
}

impl std::fmt::Debug for E2bOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("E2bOptions")
            .field("api_url", &self.api_url)
            .field("template", &self.template)
            .finish_non_exhaustive()
    }
}

impl E2bOptions {
    /// The vendor's URL and default settings.
    pub fn new(key: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            api_url: "https://api.e2b.app".into(),
            sandbox_url: None,
            domain: "e2b.app".into(),
            template: "base".into(),
            lifetime: Duration::from_secs(15 * 60),
            backoff: Duration::from_secs(1),
            orphan_after: ORPHAN_AFTER,
            prices: None,
            proxy: ProxySettings::NONE,
        }
    }

    /// From the variables of the vendor's SDK: `E2B_API_KEY`, `E2B_DOMAIN`, `E2B_API_URL`, `E2B_SANDBOX_URL`.
    pub fn from_env(look: &dyn Fn(&str) -> Option<String>) -> Result<Self, ProviderError> {
        let said = |name: &str| filled(look, name);
        let variable = "E2B_API_KEY";
        let mut options = Self::new(said(variable).ok_or(ProviderError::NoKey { vendor: VENDOR, variable })?);
        if let Some(domain) = said("E2B_DOMAIN") {
            options.api_url = format!("https://api.{domain}");
            options.domain = domain;
        }
        if let Some(url) = said("E2B_API_URL") {
            options.api_url = url;
        }
        options.proxy = ProxySettings::from_vars(look);
        options.sandbox_url = said("E2B_SANDBOX_URL");
        Ok(options)
    }
}

impl E2bOptions {
    fn call(&self, what: &str, method: Method, path: &str) -> VendorRequest {
        wire::call(self, what, method, path)
    }

    fn all(&self, http: &VendorClient, filter: &[(&str, &str)]) -> Result<Vec<Known>, ProviderError> {
        // A query within a query: escape names and values, then all of it again.
        let pairs: Vec<String> =
            filter.iter().map(|(k, v)| format!("{}={}", percent_encoded(k), percent_encoded(v))).collect();
        let filter = percent_encoded(&pairs.join("&"));
        let mut found = pages(|cursor| {
            let mut path = format!("/v2/sandboxes?metadata={filter}&state=running,paused&limit=100");
            if let Some(next) = cursor {
                path.push_str(&format!("&nextToken={}", percent_encoded(next)));
            }
            let call = self.call("list sandboxes", Method::GET, &path);
            let answer = http.send(&call, &mut never_stop)?;
            let page: Vec<Known> = http.understood(&call.what, &answer.body)?;
            Ok((page, answer.header("x-next-token").map(str::to_owned)))
        })?;
        found.retain(Known::is_ours);
        Ok(found)
    }

    /// Creates a volume if missing.
    fn volume(&self, http: &VendorClient, name: &str) -> Result<(), ProviderError> {
        let all: Vec<wire::Volume> = http.json(&self.call("list volumes", Method::GET, "/volumes"))?;
        if all.iter().any(|volume| volume.name == name) {
            return Ok(());
        }
        let call = self.call("make a volume", Method::POST, "/volumes").json(json!({ "name": name }));
        http.send(&call, &mut never_stop).map(drop)
    }
}

impl Vendor for E2bOptions {
    const NAME: &'static str = VENDOR;
    /// The template defines the size.
    const SIZES: bool = false;
    type Found = Known;
    type Awake = Access;

    fn client(&self) -> Result<VendorClient, ProviderError> {
        VendorClient::new(VENDOR, vec![self.key.clone()], self.backoff, self.proxy.clone())
    }

    fn find(&self, http: &VendorClient, id: &str) -> Result<Option<Known>, ProviderError> {
        let path = format!("/sandboxes/{}", percent_encoded(id));
        let found: Option<Known> = http.json_or_none(self.call("look for a sandbox", Method::GET, &path))?;
        Ok(found.filter(Known::is_ours))
    }

    fn of_run(&self, http: &VendorClient, run: &RunId) -> Result<Option<Known>, ProviderError> {
        let all = self.all(http, &[(LABEL_OURS, "true"), (LABEL_RUN, run.as_str())])?;
        Ok(all.into_iter().find(|found| found.run().as_ref() == Some(run)))
    }

    fn wake(
        &self,
        http: &VendorClient,
        found: Known,
        lifetime: Option<Duration>,
    ) -> Result<Option<Access>, ProviderError> {
        machine::connect(http, self, &found.id, lifetime.unwrap_or(self.lifetime))
    }

    fn creation(&self, http: &VendorClient, spec: &SandboxSpec) -> Result<VendorRequest, ProviderError> {
        for (name, _) in &spec.volumes {
            self.volume(http, name)?;
        }
        let body = wire::create(spec, self, spec.auto_stop.unwrap_or(self.lifetime))?;
        Ok(self.call("create a sandbox", Method::POST, "/sandboxes").json(body))
    }

    fn open(
        &self,
        mut http: VendorClient,
        access: Access,
        lifetime: Option<Duration>,
    ) -> Result<Box<dyn ManagedSandbox>, ProviderError> {
        for secret in [&access.envd_access_token, &access.traffic_access_token].into_iter().flatten() {
            http.hide(secret);
        }
        let machine = E2bMachine::new(self.clone(), access, lifetime.unwrap_or(self.lifetime));
        let home = machine.home(&http)?;
        Ok(Box::new(CloudSandbox::open(machine, http, &home, self.orphan_after)?))
    }

    fn list(&self, http: &VendorClient) -> Result<Vec<SandboxInfo>, ProviderError> {
        let all = self.all(http, &[(LABEL_OURS, "true")])?;
        Ok(all.into_iter().map(Known::info).collect())
    }

    fn destroy(&self, http: &VendorClient, found: &Known) -> Result<(), ProviderError> {
        machine::destroy(http, self, &found.id)
    }

    fn hourly(&self, resources: &Resources) -> Option<Usd> {
        let usual = Resources { vcpu: Some(2.0), memory_gib: Some(0.5), disk_gib: None };
        self.prices.map(|prices| prices.hourly(resources, &usual))
    }
}
