//! Daytona: <https://www.daytona.io>. Sandboxes are found by name and labels. The vendor stops idle ones; calls to
//! the sandbox prevent that.

mod machine;
mod wire;

use crate::cloud::{CloudProvider, Vendor, filled, pages, sandbox_name};
use crate::error::ProviderError;
use crate::http::{VendorClient, VendorRequest, never_stop};
use crate::price::Prices;
use crate::sandbox::{CloudSandbox, ORPHAN_AFTER};
use machine::DaytonaMachine;
use ralph_loop_domain::ports::{LABEL_OURS, LABEL_RUN, ManagedSandbox, Resources, SandboxInfo, SandboxSpec};
use ralph_loop_http::{Method, ProxySettings};
use ralph_loop_protocol::display::text::percent_encoded;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::Usd;
use serde_json::json;
use std::time::Duration;
use wire::{Page, SandboxDto, Volume};

pub(crate) const VENDOR: &str = "daytona";

pub type Daytona = CloudProvider<DaytonaOptions>;

#[derive(Clone)]
pub struct DaytonaOptions {
    pub key: String,
    pub api_url: String,
    /// The organization; required if the key is a personal token.
    pub organization: Option<String>,
    pub target: Option<String>,
    /// What a sandbox is built from if a spec names neither an image nor a snapshot: a complete Dockerfile without
    /// `COPY` from a context. Default: the vendor's snapshot.
    pub dockerfile: Option<String>,
    /// The first wait between tries; later ones double.
    pub backoff: Duration,
    /// How long a sandbox may take to start, including its build.
    pub start_limit: Duration,
    /// A command inside is ended after this long without contact.
    pub orphan_after: Duration,
    /// The vendor's list prices, if known.
    pub prices: Option<Prices>,
    pub proxy: ProxySettings,
}

impl std::fmt::Debug for DaytonaOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DaytonaOptions")
            .field("api_url", &self.api_url)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl DaytonaOptions {
    /// The vendor's URL and default settings.
    pub fn new(key: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            api_url: "https://app.daytona.io/api".into(),
            organization: None,
            target: None,
            dockerfile: None,
            backoff: Duration::from_secs(1),
            start_limit: Duration::from_secs(600),
            orphan_after: ORPHAN_AFTER,
            prices: None,
            proxy: ProxySettings::NONE,
        }
    }

    /// From the variables of the vendor's SDK: `DAYTONA_API_KEY`, `DAYTONA_API_URL` (or `DAYTONA_SERVER_URL`),
    /// `DAYTONA_ORGANIZATION_ID`, `DAYTONA_TARGET`.
    pub fn from_env(look: &dyn Fn(&str) -> Option<String>) -> Result<Self, ProviderError> {
        let said = |name: &str| filled(look, name);
        let variable = "DAYTONA_API_KEY";
        let mut options = Self::new(said(variable).ok_or(ProviderError::NoKey { vendor: VENDOR, variable })?);
        if let Some(url) = said("DAYTONA_API_URL").or_else(|| said("DAYTONA_SERVER_URL")) {
            options.api_url = url;
        }
        options.proxy = ProxySettings::from_vars(look);
        options.organization = said("DAYTONA_ORGANIZATION_ID");
        options.target = said("DAYTONA_TARGET");
        Ok(options)
    }
}

impl DaytonaOptions {
    fn call(&self, what: &str, method: Method, path: &str) -> VendorRequest {
        wire::call(self, what, method, path)
    }

    fn all(&self, http: &VendorClient, labels: &serde_json::Value) -> Result<Vec<SandboxDto>, ProviderError> {
        let filter = percent_encoded(&labels.to_string());
        let mut found = pages(|cursor| {
            let mut path = format!("/sandbox?limit=100&labels={filter}");
            if let Some(cursor) = cursor {
                path.push_str(&format!("&cursor={}", percent_encoded(cursor)));
            }
            let page: Page = http.json(&self.call("list sandboxes", Method::GET, &path))?;
            Ok((page.items, page.next_cursor))
        })?;
        found.retain(|one| one.is_ours() && !one.is_gone());
        Ok(found)
    }

    /// The id of a volume, which is created if missing.
    fn volume(&self, http: &VendorClient, name: &str) -> Result<String, ProviderError> {
        let path = format!("/volumes/by-name/{}", percent_encoded(name));
        let look = || self.call("look for a volume", Method::GET, &path);
        let mut volume: Option<Volume> = http.json_or_none(look())?;
        if volume.is_none() {
            let call = self.call("make a volume", Method::POST, "/volumes").json(json!({ "name": name }));
            volume = Some(http.json(&call)?);
        }
        for _ in 0..120 {
            match volume {
                Some(Volume { id, state }) if state == "ready" => return Ok(id),
                Some(Volume { id, state }) if state == "error" || state.contains("delet") => {
                    return Err(ProviderError::State {
                        vendor: VENDOR,
                        id,
                        state,
                        reason: " (a volume)".into(),
                    });
                }
                _ => {}
            }
            http.pause(self.backoff.min(Duration::from_secs(1)), &mut never_stop)?;
            volume = http.json_or_none(look())?;
        }
        let limit = Duration::from_secs(120);
        Err(ProviderError::TimedOut { vendor: VENDOR, what: format!("make the volume `{name}`"), limit })
    }
}

impl Vendor for DaytonaOptions {
    const NAME: &'static str = VENDOR;
    const SIZES: bool = true;
    type Found = SandboxDto;
    type Awake = SandboxDto;

    fn client(&self) -> Result<VendorClient, ProviderError> {
        VendorClient::new(VENDOR, vec![self.key.clone()], self.backoff, self.proxy.clone())
    }

    fn find(&self, http: &VendorClient, id: &str) -> Result<Option<SandboxDto>, ProviderError> {
        let path = format!("/sandbox/{}", percent_encoded(id));
        let found: Option<SandboxDto> =
            http.json_or_none(self.call("look for a sandbox", Method::GET, &path))?;
        Ok(found.filter(|found| found.is_ours() && !found.is_gone()))
    }

    /// By name, or by label if it has another name.
    fn of_run(&self, http: &VendorClient, run: &RunId) -> Result<Option<SandboxDto>, ProviderError> {
        let is_its =
            |found: &SandboxDto| found.labels.get(LABEL_RUN).map(String::as_str) == Some(run.as_str());
        if let Some(found) = self.find(http, &sandbox_name(run))?.filter(is_its) {
            return Ok(Some(found));
        }
        let labels = json!({ LABEL_OURS: "true", LABEL_RUN: run.as_str() });
        Ok(self.all(http, &labels)?.into_iter().find(is_its))
    }

    /// [`Vendor::open`] starts it.
    fn wake(
        &self,
        _: &VendorClient,
        found: SandboxDto,
        _: Option<Duration>,
    ) -> Result<Option<SandboxDto>, ProviderError> {
        Ok(Some(found))
    }

    fn creation(&self, http: &VendorClient, spec: &SandboxSpec) -> Result<VendorRequest, ProviderError> {
        let volumes = spec.volumes.iter().map(|(name, path)| Ok((self.volume(http, name)?, path.clone())));
        let volumes = volumes.collect::<Result<Vec<_>, ProviderError>>()?;
        let body = wire::create(spec, self, &volumes)?;
        Ok(self.call("create a sandbox", Method::POST, "/sandbox").json(body))
    }

    fn open(
        &self,
        http: VendorClient,
        found: SandboxDto,
        _: Option<Duration>,
    ) -> Result<Box<dyn ManagedSandbox>, ProviderError> {
        let machine = DaytonaMachine::new(self.clone(), &found);
        machine.start_from(&http, found)?;
        let home = machine.home(&http)?;
        Ok(Box::new(CloudSandbox::open(machine, http, &home, self.orphan_after)?))
    }

    fn list(&self, http: &VendorClient) -> Result<Vec<SandboxInfo>, ProviderError> {
        let all = self.all(http, &json!({ LABEL_OURS: "true" }))?;
        Ok(all.into_iter().map(SandboxDto::info).collect())
    }

    fn destroy(&self, http: &VendorClient, found: &SandboxDto) -> Result<(), ProviderError> {
        machine::destroy(http, self, &found.id)
    }

    fn hourly(&self, resources: &Resources) -> Option<Usd> {
        let usual = Resources { vcpu: Some(1.0), memory_gib: Some(1.0), disk_gib: Some(3.0) };
        self.prices.map(|prices| prices.hourly(resources, &usual))
    }
}
