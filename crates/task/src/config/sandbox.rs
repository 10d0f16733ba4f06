//! Where a run's commands run: on this machine, or in a provider's sandbox.

use ralph_loop_protocol::money::Usd;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The provider of a run's sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline, transform = crate::schema_parts::provider_aliases))]
pub enum ProviderName {
    /// None: commands run in a sandbox on this machine.
    #[default]
    Local,
    /// A Docker or podman container.
    Docker,
    /// A microVM of Docker Sandboxes.
    #[serde(alias = "docker-sandbox")]
    Sbx,
    /// A machine of Daytona.
    Daytona,
    /// A machine of E2B.
    E2b,
    /// A machine of Vercel.
    Vercel,
}

impl ProviderName {
    pub const NAMES: &str = "local, docker, sbx (or docker-sandbox), daytona, e2b, vercel";

    /// Parses a name in flags, variables and task files.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "local" => Ok(Self::Local),
            "docker" => Ok(Self::Docker),
            "sbx" | "docker-sandbox" => Ok(Self::Sbx),
            "daytona" => Ok(Self::Daytona),
            "e2b" => Ok(Self::E2b),
            "vercel" => Ok(Self::Vercel),
            _ => Err(format!("unknown sandbox provider `{text}`; use one of {}", Self::NAMES)),
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Docker => "docker",
            Self::Sbx => "sbx",
            Self::Daytona => "daytona",
            Self::E2b => "e2b",
            Self::Vercel => "vercel",
        }
    }

    /// Whether commands run elsewhere than directly on this machine.
    pub fn is_elsewhere(self) -> bool {
        self != Self::Local
    }

    /// Whether it is a third-party service, which receives the code.
    pub fn is_cloud(self) -> bool {
        !self.mounts()
    }

    /// Whether its sandboxes mount a local folder instead of a copy.
    pub fn mounts(self) -> bool {
        matches!(self, Self::Local | Self::Docker | Self::Sbx)
    }
}

/// The key `sandbox`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct SandboxConfig {
    /// The provider; default: this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "local")))]
    pub provider: Option<ProviderName>,
    /// The image, in the provider's notation; default: the provider's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// A snapshot to start from, if the provider supports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub vcpu: Option<f64>,
    /// Memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub memory_gib: Option<f64>,
    /// Disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub disk_gib: Option<f64>,
    /// Volumes for shared caches: name and path inside. Only works in the user's config.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(transform = crate::schema_parts::absolute_values))]
    pub volumes: BTreeMap<String, String>,
    /// Keep it when the run ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub keep: Option<bool>,
    /// Its price per hour, overriding the provider's list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hourly_usd: Option<Usd>,
}

impl SandboxConfig {
    /// Lays `over` on top, key by key.
    pub fn overlaid(mut self, over: Self) -> Self {
        macro_rules! take {
            ($($key:ident),*) => { $( if over.$key.is_some() { self.$key = over.$key; } )* };
        }
        take!(provider, image, snapshot, vcpu, memory_gib, disk_gib, keep, hourly_usd);
        self.volumes.extend(over.volumes);
        self
    }

    pub fn provider(&self) -> ProviderName {
        self.provider.unwrap_or_default()
    }

    pub fn resources(&self) -> Resources {
        Resources { vcpu: self.vcpu, memory_gib: self.memory_gib, disk_gib: self.disk_gib }
    }

    /// Keys that are set but that the provider ignores. The clouds refuse what they don't support.
    pub fn ignored(&self) -> Vec<&'static str> {
        let set = [
            ("image", self.image.is_some()),
            ("snapshot", self.snapshot.is_some()),
            ("vcpu", self.vcpu.is_some()),
            ("memory_gib", self.memory_gib.is_some()),
            ("disk_gib", self.disk_gib.is_some()),
            ("volumes", !self.volumes.is_empty()),
            ("keep", self.keep == Some(true)),
            ("hourly_usd", self.hourly_usd.is_some()),
        ];
        let unused: &[&str] = match self.provider() {
            ProviderName::Local => &set.map(|(key, _)| key),
            ProviderName::Docker => &["snapshot", "disk_gib"],
            ProviderName::Sbx => &["snapshot", "disk_gib", "volumes"],
            ProviderName::Daytona | ProviderName::E2b | ProviderName::Vercel => &[],
        };
        set.into_iter().filter(|(key, is_set)| *is_set && unused.contains(key)).map(|(key, _)| key).collect()
    }

    pub(super) fn fault(&self) -> Option<String> {
        let sizes = [("vcpu", self.vcpu), ("memory_gib", self.memory_gib), ("disk_gib", self.disk_gib)];
        if let Some((key, _)) = sizes.iter().find(|(_, v)| v.is_some_and(|v| !v.is_finite() || v <= 0.0)) {
            return Some(format!("`{key}` of `sandbox` must be more than 0"));
        }
        let bad = self.volumes.iter().find(|(name, place)| name.is_empty() || !place.starts_with('/'));
        bad.map(|(name, place)| format!("the path `{place}` of volume `{name}` in `sandbox` isn't absolute"))
    }
}

/// The size of a sandbox; default: the provider's.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Resources {
    pub vcpu: Option<f64>,
    pub memory_gib: Option<f64>,
    pub disk_gib: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigFile;

    #[test]
    fn a_repo_changes_one_key_and_keeps_the_users_others() {
        let user = ConfigFile::parse(r#"{"sandbox":{"provider":"docker-sandbox","vcpu":2}}"#).unwrap();
        let repo = ConfigFile::parse(r#"{"sandbox":{"image":"x","volumes":{"c":"/c"}}}"#).unwrap();
        let sandbox = user.overlaid(repo).resolve().sandbox;
        assert_eq!(
            (sandbox.provider(), sandbox.vcpu, sandbox.image.as_deref()),
            (ProviderName::Sbx, Some(2.0), Some("x"))
        );
        assert!(ConfigFile::parse(r#"{"sandbox":{"vcpu":0}}"#).unwrap_err().message.contains("vcpu"));
        let refused = |text: &str| ConfigFile::parse(text).unwrap_err().message;
        assert!(refused(r#"{"sandbox":{"volumes":{"c":"c"}}}"#).contains("isn't absolute"));
        assert_eq!(refused(r#"{"sandbox":{"provider":"dockr"}}"#), "unknown variant `dockr`");
        assert!(!ConfigFile::default().resolve().sandbox.provider().is_elsewhere());
    }

    #[test]
    fn ignored_sandbox_keys_are_reported() {
        let set = r#"{"sandbox":{"provider":"PROVIDER","image":"x","vcpu":2,"disk_gib":5,"keep":false}}"#;
        let ignored = |provider: &str| {
            ConfigFile::parse(&set.replace("PROVIDER", provider)).unwrap().resolve().sandbox.ignored()
        };
        assert_eq!(ignored("local"), ["image", "vcpu", "disk_gib"]);
        assert_eq!(ignored("docker"), ["disk_gib"]);
        assert_eq!(ignored("e2b"), [""; 0], "a cloud refuses what it cannot do");
        assert_eq!(ConfigFile::default().resolve().sandbox.ignored(), [""; 0]);
    }
}
