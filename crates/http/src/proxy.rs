//! Proxies from a run's variables.

use crate::redact;
use reqwest::{NoProxy, Proxy};

/// Which proxy requests use. Calls to this machine never use one.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProxySettings {
    http: Option<String>,
    https: Option<String>,
    exceptions: Option<String>,
}

/// A proxy's URL may hold a password.
impl std::fmt::Debug for ProxySettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxySettings")
            .field("http", &self.http.is_some())
            .field("https", &self.https.is_some())
            .finish_non_exhaustive()
    }
}

impl ProxySettings {
    /// No proxy at all.
    pub const NONE: Self = Self { http: None, https: None, exceptions: None };

    /// From the usual variables: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` for both, `NO_PROXY` for exceptions; each
    /// also in lower case.
    pub fn from_vars(look: &dyn Fn(&str) -> Option<String>) -> Self {
        let first = |names: [&str; 2]| {
            names.iter().find_map(|name| look(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty()))
        };
        let all = first(["ALL_PROXY", "all_proxy"]);
        Self {
            http: first(["HTTP_PROXY", "http_proxy"]).or_else(|| all.clone()),
            https: first(["HTTPS_PROXY", "https_proxy"]).or(all),
            exceptions: first(["NO_PROXY", "no_proxy"]),
        }
    }

    /// The proxies for the HTTP library. Invalid URLs are skipped, as other programs do.
    pub(crate) fn rules(&self) -> Vec<Proxy> {
        let exceptions = || self.exceptions.as_deref().and_then(NoProxy::from_string);
        let http = self.http.as_ref().and_then(|address| Proxy::http(address).ok());
        let https = self.https.as_ref().and_then(|address| Proxy::https(address).ok());
        http.into_iter().chain(https).map(|proxy| proxy.no_proxy(exceptions())).collect()
    }

    /// Redacts the proxies' passwords in a text.
    pub(crate) fn redact(&self, text: &str) -> String {
        let password = |address: &String| {
            let user = address.rsplit_once('@')?.0;
            Some(user.rsplit_once(':').map_or(user, |(_, password)| password).to_owned())
        };
        redact(text, [&self.http, &self.https].into_iter().flatten().filter_map(password), "[password]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(vars: &[(&str, &str)]) -> ProxySettings {
        ProxySettings::from_vars(&|name| {
            vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn usual_proxy_variables_are_read() {
        assert_eq!(of(&[]), ProxySettings::NONE);
        assert_eq!(of(&[("HTTP_PROXY", " ")]), ProxySettings::NONE);
        let both =
            of(&[("ALL_PROXY", "http://p:1"), ("https_proxy", "http://s:2"), ("NO_PROXY", "x.example")]);
        assert_eq!((both.http.as_deref(), both.https.as_deref()), (Some("http://p:1"), Some("http://s:2")));
        assert_eq!(both.exceptions.as_deref(), Some("x.example"));
        assert_eq!((both.rules().len(), of(&[("HTTP_PROXY", "http://")]).rules().len()), (2, 0));
    }

    #[test]
    fn proxy_password_is_never_shown() {
        let settings = of(&[("HTTPS_PROXY", "http://me:hunter2@p:1")]);
        assert!(!format!("{settings:?}").contains("hunter2"));
        assert_eq!(settings.redact("no hunter2 here"), "no [password] here");
    }
}
