//! Daytona: <https://www.daytona.io>. Sandboxes are found by name and labels. The vendor stops idle ones; calls to
//! the sandbox prevent that.

mod machine;
mod wire;

use crate::error::ProviderError;
use crate::http::{VendorClient, VendorRequest, never_stop};
use crate::price::Prices;
use crate::sandbox::{CloudSandbox, ORPHAN_AFTER};
use machine::DaytonaMachine;
use ralph_loop_domain::ports::{
    Capabilities, LABEL_OURS, LABEL_RUN, ManagedSandbox, Resources, SandboxError, SandboxInfo,
    SandboxProvider, SandboxSpec,
};
use ralph_loop_http::{Method, ProxySettings};
use ralph_loop_protocol::display::text::percent_encoded;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::Usd;
use serde_json::json;
use std::time::Duration;
use wire::{Page, SandboxDto, Volume};

pub(crate) const VENDOR: &str = "daytona";
const PAGES_MAX: usize = 50;

/// Connection settings for Daytona.
#[derive(Clone)]
pub struct DaytonaOptions {
    /// The key.
    pub key: String,
    /// The API URL.
    pub api_url: String,
    /// The organization; required if the key is a personal token.
    pub organization: Option<String>,
    /// The region.
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
    /// Proxy settings.
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
        let said = |name: &str| look(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty());
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

/// The provider.
#[derive(Debug)]
pub struct Daytona {
    options: DaytonaOptions,
}

impl Daytona {
    /// Stores the options; makes no calls yet.
    pub fn new(options: DaytonaOptions) -> Self {
        Self { options }
    }

    fn http(&self) -> Result<VendorClient, ProviderError> {
        VendorClient::new(
            VENDOR,
            vec![self.options.key.clone()],
            self.options.backoff,
            self.options.proxy.clone(),
        )
    }

    fn call(&self, what: &str, method: Method, path: &str) -> VendorRequest {
        wire::call(&self.options, what, method, path)
    }

    fn find(&self, http: &VendorClient, id: &str) -> Result<Option<SandboxDto>, ProviderError> {
        let path = format!("/sandbox/{}", percent_encoded(id));
        let found: Option<SandboxDto> =
            http.json_or_none(self.call("look for a sandbox", Method::GET, &path))?;
        Ok(found.filter(|found| found.is_ours() && !found.is_gone()))
    }

    fn all(&self, http: &VendorClient, labels: &serde_json::Value) -> Result<Vec<SandboxDto>, ProviderError> {
        let filter = percent_encoded(&labels.to_string());
        let mut found = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let mut path = format!("/sandbox?limit=100&labels={filter}");
            if let Some(cursor) = &cursor {
                path.push_str(&format!("&cursor={}", percent_encoded(cursor)));
            }
            let page: Page = http.json(&self.call("list sandboxes", Method::GET, &path))?;
            found.extend(page.items.into_iter().filter(|one| one.is_ours() && !one.is_gone()));
            cursor = page.next_cursor.filter(|next| !next.is_empty());
            if cursor.is_none() {
                break;
            }
        }
        Ok(found)
    }

    /// The run's sandbox: by name, or by label if it has another name.
    fn of_run(&self, http: &VendorClient, run: &RunId) -> Result<Option<SandboxDto>, ProviderError> {
        let is_its =
            |found: &SandboxDto| found.labels.get(LABEL_RUN).map(String::as_str) == Some(run.as_str());
        if let Some(found) = self.find(http, &wire::name(run))?.filter(is_its) {
            return Ok(Some(found));
        }
        let labels = json!({ LABEL_OURS: "true", LABEL_RUN: run.as_str() });
        Ok(self.all(http, &labels)?.into_iter().find(is_its))
    }

    /// Creates a sandbox. A failed try may have created it, so each begins with a lookup.
    fn make(&self, http: &VendorClient, spec: &SandboxSpec) -> Result<SandboxDto, ProviderError> {
        let volumes = spec.volumes.iter().map(|(name, path)| Ok((self.volume(http, name)?, path.clone())));
        let volumes = volumes.collect::<Result<Vec<_>, ProviderError>>()?;
        let body = wire::create(spec, &self.options, &volumes)?;
        let mut tries = 0;
        loop {
            if let Some(found) = self.of_run(http, &spec.run)? {
                return Ok(found);
            }
            tries += 1;
            let call = self
                .call("create a sandbox", Method::POST, "/sandbox")
                .json(body.clone())
                .limit(Duration::from_secs(120));
            match http.json(&call.once()) {
                Ok(made) => return Ok(made),
                Err(error) if error.passes() && tries < 5 => http.pause_after(&error, tries)?,
                Err(error) => return Err(error),
            }
        }
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
            http.pause(self.options.backoff.min(Duration::from_secs(1)), &mut never_stop)?;
            volume = http.json_or_none(look())?;
        }
        let limit = Duration::from_secs(120);
        Err(ProviderError::TimedOut { vendor: VENDOR, what: format!("make the volume `{name}`"), limit })
    }

    /// A started sandbox, ready for commands.
    fn open(&self, http: VendorClient, found: SandboxDto) -> Result<Box<dyn ManagedSandbox>, ProviderError> {
        let machine = DaytonaMachine::new(self.options.clone(), &found);
        machine.start_from(&http, found)?;
        let home = machine.home(&http)?;
        Ok(Box::new(CloudSandbox::open(machine, http, &home, self.options.orphan_after)?))
    }
}

impl SandboxProvider for Daytona {
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

    /// Starts it if it was stopped.
    fn attach(&self, id: &str) -> Result<Option<Box<dyn ManagedSandbox>>, SandboxError> {
        let http = self.http()?;
        match self.find(&http, id)? {
            None => Ok(None),
            Some(found) => Ok(Some(self.open(http, found)?)),
        }
    }

    fn list(&self) -> Result<Vec<SandboxInfo>, SandboxError> {
        let all = self.all(&self.http()?, &json!({ LABEL_OURS: "true" }))?;
        Ok(all.into_iter().map(SandboxDto::info).collect())
    }

    fn destroy(&self, id: &str) -> Result<(), SandboxError> {
        let http = self.http()?;
        match self.find(&http, id)? {
            None => Ok(()),
            Some(found) => Ok(machine::destroy(&http, &self.options, &found.id)?),
        }
    }

    fn hourly(&self, resources: &Resources) -> Option<Usd> {
        let usual = Resources { vcpu: Some(1.0), memory_gib: Some(1.0), disk_gib: Some(3.0) };
        self.options.prices.map(|prices| prices.hourly(resources, &usual))
    }
}
