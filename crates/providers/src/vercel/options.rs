//! Connection settings for Vercel.

use super::VENDOR;
use crate::cloud::filled;
use crate::error::ProviderError;
use crate::price::Prices;
use crate::sandbox::ORPHAN_AFTER;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ralph_loop_http::ProxySettings;
use serde_json::Value;
use std::time::Duration;

#[derive(Clone)]
pub struct VercelOptions {
    pub token: String,
    pub team: String,
    pub project: String,
    pub api_url: String,
    /// Published ports; the vendor allows few.
    pub ports: Vec<u16>,
    /// How long a session lives without contact, unless the spec says otherwise.
    pub lifetime: Duration,
    /// The first wait between tries; later ones double.
    pub backoff: Duration,
    pub start_limit: Duration,
    /// A command inside is ended after this long without contact.
    pub orphan_after: Duration,
    /// The vendor's list prices, if known.
    pub prices: Option<Prices>,
    pub proxy: ProxySettings,
}

impl std::fmt::Debug for VercelOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VercelOptions")
            .field("api_url", &self.api_url)
            .field("project", &self.project)
            .finish_non_exhaustive()
    }
}

impl VercelOptions {
    /// The vendor's URL and default settings.
    pub fn new(token: impl Into<String>, team: impl Into<String>, project: impl Into<String>) -> Self {
        Self {
            token: token.into(),
            team: team.into(),
            project: project.into(),
            api_url: "https://vercel.com/api".into(),
            ports: vec![3000, 8080],
            lifetime: Duration::from_secs(15 * 60),
            backoff: Duration::from_secs(1),
            start_limit: Duration::from_secs(300),
            orphan_after: ORPHAN_AFTER,
            prices: None,
            proxy: ProxySettings::NONE,
        }
    }

    /// From the variables: `VERCEL_TOKEN` with `VERCEL_TEAM_ID` and `VERCEL_PROJECT_ID`, or `VERCEL_OIDC_TOKEN`,
    /// which names both.
    pub fn from_env(look: &dyn Fn(&str) -> Option<String>) -> Result<Self, ProviderError> {
        let said = |name: &str| filled(look, name);
        let proxy = || ProxySettings::from_vars(look);
        if let Some(token) = said("VERCEL_TOKEN") {
            let wanted = |variable| said(variable).ok_or(ProviderError::NoKey { vendor: VENDOR, variable });
            let mut options = Self::new(token, wanted("VERCEL_TEAM_ID")?, wanted("VERCEL_PROJECT_ID")?);
            options.proxy = proxy();
            if let Some(url) = said("VERCEL_SANDBOX_API_URL") {
                options.api_url = url;
            }
            return Ok(options);
        }
        let oidc = said("VERCEL_OIDC_TOKEN")
            .and_then(|token| claims(&token).map(|(team, project)| (token, team, project)));
        match oidc {
            Some((token, team, project)) => Ok(Self { proxy: proxy(), ..Self::new(token, team, project) }),
            None => Err(ProviderError::NoKey { vendor: VENDOR, variable: "VERCEL_TOKEN" }),
        }
    }
}

/// Team and project of a token that names them. Not verified: the vendor does that.
fn claims(token: &str) -> Option<(String, String)> {
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let payload: Value = serde_json::from_slice(&payload).ok()?;
    Some((payload["owner_id"].as_str()?.to_owned(), payload["project_id"].as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn team_and_project_come_from_variables_or_from_the_token() {
        let plain = |name: &str| match name {
            "VERCEL_TOKEN" => Some("t".into()),
            "VERCEL_TEAM_ID" => Some("team".into()),
            "VERCEL_PROJECT_ID" => Some("prj".into()),
            _ => None,
        };
        let options = VercelOptions::from_env(&plain).unwrap();
        assert_eq!((options.team.as_str(), options.project.as_str()), ("team", "prj"));
        let payload = URL_SAFE_NO_PAD.encode(r#"{"owner_id":"o","project_id":"p"}"#);
        let oidc = |name: &str| (name == "VERCEL_OIDC_TOKEN").then(|| format!("h.{payload}.s"));
        let options = VercelOptions::from_env(&oidc).unwrap();
        assert_eq!((options.team.as_str(), options.project.as_str()), ("o", "p"));
        let error =
            VercelOptions::from_env(&|name| (name == "VERCEL_TOKEN").then(|| "t".into())).unwrap_err();
        assert!(error.to_string().contains("VERCEL_TEAM_ID"), "{error}");
    }
}
