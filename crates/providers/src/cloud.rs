//! A provider over any vendor's API: what finding, creating, listing and removing sandboxes have in common.

use crate::error::ProviderError;
use crate::http::{VendorClient, VendorRequest};
use ralph_loop_domain::ports::{
    Capabilities, ManagedSandbox, Resources, SandboxError, SandboxInfo, SandboxProvider, SandboxSpec,
};
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::Usd;
use serde::de::DeserializeOwned;
use std::time::Duration;

const PAGES_MAX: usize = 50;
const CREATE_TRIES: u32 = 5;

/// The calls of one vendor's API, implemented by its connection settings.
pub trait Vendor: std::fmt::Debug + Send + Sync {
    const NAME: &'static str;
    /// Whether a spec may choose the size of a sandbox.
    const SIZES: bool;
    /// A sandbox of ours that may be asleep.
    type Found;
    /// A sandbox as the vendor returns it when it was created or woken.
    type Awake: DeserializeOwned;

    fn client(&self) -> Result<VendorClient, ProviderError>;
    /// Finds a sandbox of ours without waking it.
    fn find(&self, http: &VendorClient, id: &str) -> Result<Option<Self::Found>, ProviderError>;
    /// Finds the sandbox of a run without waking it.
    fn of_run(&self, http: &VendorClient, run: &RunId) -> Result<Option<Self::Found>, ProviderError>;
    /// Wakes a sandbox; `None` if it is gone.
    fn wake(
        &self,
        http: &VendorClient,
        found: Self::Found,
        lifetime: Option<Duration>,
    ) -> Result<Option<Self::Awake>, ProviderError>;
    /// The call that creates a sandbox, after creating its volumes.
    fn creation(&self, http: &VendorClient, spec: &SandboxSpec) -> Result<VendorRequest, ProviderError>;
    /// Makes an awake sandbox ready for commands.
    fn open(
        &self,
        http: VendorClient,
        awake: Self::Awake,
        lifetime: Option<Duration>,
    ) -> Result<Box<dyn ManagedSandbox>, ProviderError>;
    fn list(&self, http: &VendorClient) -> Result<Vec<SandboxInfo>, ProviderError>;
    fn destroy(&self, http: &VendorClient, found: &Self::Found) -> Result<(), ProviderError>;
    /// The price of an hour, if known.
    fn hourly(&self, resources: &Resources) -> Option<Usd>;
}

#[derive(Debug)]
pub struct CloudProvider<V> {
    vendor: V,
}

impl<V: Vendor> CloudProvider<V> {
    /// Stores the connection settings; makes no calls yet.
    pub fn new(vendor: V) -> Self {
        Self { vendor }
    }

    /// Creates or wakes a sandbox. A failed try may have created it, so each begins with a lookup.
    fn make(&self, http: &VendorClient, spec: &SandboxSpec) -> Result<V::Awake, ProviderError> {
        let creation = self.vendor.creation(http, spec)?.limit(Duration::from_secs(120)).once();
        let mut tries = 0;
        loop {
            if let Some(found) = self.vendor.of_run(http, &spec.run)?
                && let Some(awake) = self.vendor.wake(http, found, spec.auto_stop)?
            {
                return Ok(awake);
            }
            tries += 1;
            match http.json(&creation) {
                Ok(made) => return Ok(made),
                Err(error) if error.passes() && tries < CREATE_TRIES => http.pause_after(&error, tries)?,
                Err(error) => return Err(error),
            }
        }
    }
}

impl<V: Vendor> SandboxProvider for CloudProvider<V> {
    fn name(&self) -> &'static str {
        V::NAME
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
            resources: V::SIZES,
            file_modes: true,
        }
    }

    fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn ManagedSandbox>, SandboxError> {
        let http = self.vendor.client()?;
        let awake = self.make(&http, spec)?;
        Ok(self.vendor.open(http, awake, spec.auto_stop)?)
    }

    fn attach(&self, id: &str) -> Result<Option<Box<dyn ManagedSandbox>>, SandboxError> {
        let http = self.vendor.client()?;
        let Some(found) = self.vendor.find(&http, id)? else { return Ok(None) };
        match self.vendor.wake(&http, found, None)? {
            None => Ok(None),
            Some(awake) => Ok(Some(self.vendor.open(http, awake, None)?)),
        }
    }

    fn list(&self) -> Result<Vec<SandboxInfo>, SandboxError> {
        Ok(self.vendor.list(&self.vendor.client()?)?)
    }

    fn destroy(&self, id: &str) -> Result<(), SandboxError> {
        let http = self.vendor.client()?;
        match self.vendor.find(&http, id)? {
            None => Ok(()),
            Some(found) => Ok(self.vendor.destroy(&http, &found)?),
        }
    }

    fn hourly(&self, resources: &Resources) -> Option<Usd> {
        self.vendor.hourly(resources)
    }
}

pub(crate) fn sandbox_name(run: &RunId) -> String {
    format!("ralph-{run}")
}

/// Collects a list in pages; `page` takes a cursor and returns the next one.
pub(crate) fn pages<T>(
    mut page: impl FnMut(Option<&str>) -> Result<(Vec<T>, Option<String>), ProviderError>,
) -> Result<Vec<T>, ProviderError> {
    let (mut all, mut cursor) = (Vec::new(), None::<String>);
    for _ in 0..PAGES_MAX {
        let (items, next) = page(cursor.as_deref())?;
        all.extend(items);
        cursor = next.filter(|next| !next.is_empty());
        if cursor.is_none() {
            break;
        }
    }
    Ok(all)
}

/// The value of a variable, if it has one.
pub(crate) fn filled(look: &dyn Fn(&str) -> Option<String>, name: &str) -> Option<String> {
    look(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Splits allowed hosts into addresses (of one machine or a network) and domains.
pub(crate) fn addresses_and_domains(hosts: &[String]) -> (Vec<&str>, Vec<&str>) {
    let is_address =
        |host: &&str| host.split('/').next().is_some_and(|it| it.parse::<std::net::IpAddr>().is_ok());
    hosts.iter().map(String::as_str).partition(is_address)
}
