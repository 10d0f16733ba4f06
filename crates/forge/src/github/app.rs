//! A GitHub App: its JWT, and installation tokens that are renewed before they expire.

use super::client::{ApiClient, ApiRequest, TokenSource};
use super::errors;
use crate::error::{Result, auth};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use ralph_loop_domain::ports::ForgeError;
use ralph_loop_http::Method;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::Deserialize;
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A token with less time left is renewed before the next call.
const MARGIN: SignedDuration = SignedDuration::from_mins(5);

#[derive(Clone)]
pub struct AppKey {
    pub id: String,
    /// Its private key: PEM, PKCS#1 as GitHub gives it, or PKCS#8.
    pub pem: String,
    /// Its installation; looked up by the repo if missing.
    pub installation: Option<u64>,
}

impl std::fmt::Debug for AppKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AppKey")
            .field("id", &self.id)
            .field("installation", &self.installation)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Deserialize)]
struct Issued {
    token: String,
    expires_at: Timestamp,
    #[serde(default)]
    permissions: BTreeMap<String, String>,
}

pub(crate) struct App {
    id: String,
    key: RsaKeyPair,
    repo_url: String,
    api_url: String,
    repo: String,
    /// The repo's name, without its owner.
    name: String,
    installation: RefCell<Option<u64>>,
    issued: RefCell<Option<Issued>>,
}

/// The App itself, with its JWT as the token.
struct Itself<'a>(&'a App);

impl TokenSource for Itself<'_> {
    fn token(&self, http: &ApiClient, _: Option<&str>) -> Result<String> {
        self.0.jwt(http.now())
    }
    fn renews(&self) -> bool {
        true
    }
}

fn bad_key(reason: impl ToString) -> ForgeError {
    auth(
        "cannot use the private key of the GitHub App",
        reason,
        "set GITHUB_APP_PRIVATE_KEY_PEM to the complete file from GitHub, including the `-----BEGIN` line",
    )
}

fn key_pair(pem: &str) -> Result<RsaKeyPair> {
    // Many ways to set a variable don't support line ends.
    let pem = pem.replace("\\n", "\n");
    let of = |label: &str| {
        let (_, rest) = pem.split_once(&format!("-----BEGIN {label}-----"))?;
        let (text, _) = rest.split_once(&format!("-----END {label}-----"))?;
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        Some(STANDARD.decode(text))
    };
    if let Some(der) = of("RSA PRIVATE KEY") {
        return RsaKeyPair::from_der(&der.map_err(bad_key)?).map_err(bad_key);
    }
    match of("PRIVATE KEY") {
        Some(der) => RsaKeyPair::from_pkcs8(&der.map_err(bad_key)?).map_err(bad_key),
        None => Err(bad_key("there is no PEM private key in it")),
    }
}

impl App {
    pub fn new(key: &AppKey, api_url: &str, repo: &super::RepoAddress) -> Result<Self> {
        Ok(Self {
            id: key.id.trim().to_owned(),
            key: key_pair(&key.pem)?,
            repo_url: format!("{api_url}/repos/{}", repo.full_name()),
            api_url: api_url.to_owned(),
            repo: repo.full_name(),
            name: repo.name.clone(),
            installation: RefCell::new(key.installation),
            issued: RefCell::new(None),
        })
    }

    fn jwt(&self, now: Timestamp) -> Result<String> {
        let now = now.as_second();
        let word = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        // A minute back, because clocks differ; ten minutes are the maximum.
        let claims = json!({ "iat": now - 60, "exp": now + 540, "iss": self.id });
        let signed = format!("{}.{}", word(json!({ "alg": "RS256", "typ": "JWT" })), word(claims));
        let mut signature = vec![0; self.key.public().modulus_len()];
        self.key
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
            .map_err(|_| bad_key("it cannot sign"))?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    fn installation(&self, http: &ApiClient) -> Result<u64> {
        #[derive(Deserialize)]
        struct Installation {
            id: u64,
        }
        if let Some(id) = *self.installation.borrow() {
            return Ok(id);
        }
        let what = format!("find the GitHub App's installation for {}", self.repo);
        let ask = ApiRequest::get(what.clone(), format!("{}/installation", self.repo_url)).also(&[404]);
        let answer = http.send(&ask, &Itself(self))?;
        if answer.status == 404 {
            return Err(auth(
                what,
                format!("the App is not installed on {}, or the repo does not exist", self.repo),
                format!("install the App on the repo; {}", errors::NEEDED),
            ));
        }
        let id = answer.json::<Installation>(&what)?.id;
        *self.installation.borrow_mut() = Some(id);
        Ok(id)
    }

    fn issue(&self, http: &ApiClient) -> Result<Issued> {
        let id = self.installation(http)?;
        let what = format!("get a token of the GitHub App for {}", self.repo);
        let url = format!("{}/app/installations/{id}/access_tokens", self.api_url);
        let ask = ApiRequest::with(Method::POST, what.clone(), url, json!({ "repositories": [self.name] }));
        match http.json::<Issued>(&ask, &Itself(self)) {
            Err(ForgeError::NotFound { .. }) => Err(auth(
                what,
                format!("there is no installation {id} of this App"),
                "check GITHUB_APP_INSTALLATION_ID, or leave it unset: `ralph` finds it from the repo",
            )),
            ended => ended,
        }
    }

    fn good(&self, http: &ApiClient, margin: SignedDuration, refused: Option<&str>) -> Result<Issued> {
        let now = http.now();
        let known = self.issued.borrow().clone();
        if let Some(issued) = known
            && refused != Some(issued.token.as_str())
            && issued.expires_at.duration_since(now) > margin
        {
            return Ok(issued);
        }
        let issued = self.issue(http)?;
        *self.issued.borrow_mut() = Some(issued.clone());
        Ok(issued)
    }

    /// A token that stays valid for a while.
    pub fn token_for(&self, http: &ApiClient, margin: SignedDuration) -> Result<String> {
        Ok(self.good(http, margin, None)?.token)
    }

    pub fn may_push(&self, http: &ApiClient) -> Result<bool> {
        let issued = self.good(http, MARGIN, None)?;
        Ok(issued.permissions.get("contents").is_some_and(|level| level == "write"))
    }

    pub fn login(&self, http: &ApiClient) -> Result<Option<String>> {
        #[derive(Deserialize)]
        struct AppInfo {
            slug: Option<String>,
        }
        let ask = ApiRequest::get("ask who the GitHub App is", format!("{}/app", self.api_url));
        let found: AppInfo = http.json(&ask, &Itself(self))?;
        Ok(found.slug.map(|slug| format!("{slug}[bot]")))
    }
}

impl TokenSource for App {
    fn token(&self, http: &ApiClient, refused: Option<&str>) -> Result<String> {
        Ok(self.good(http, MARGIN, refused)?.token)
    }
    fn renews(&self) -> bool {
        true
    }
}
