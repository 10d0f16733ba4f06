//! Sends traces to a collector.

use ralph_loop_domain::vars::Vars;
use ralph_loop_http::{
    Client, ClientOptions, Failure, HeaderName, HeaderValue, Method, ProxySettings, Request, Url, never_stop,
};
use serde_json::Value;
use std::time::Duration;

/// Timeout.
const LIMIT: Duration = Duration::from_secs(10);

/// A collector.
pub(super) struct Collector {
    url: Url,
    headers: Vec<(HeaderName, HeaderValue)>,
    proxy: ProxySettings,
}

impl Collector {
    /// The collector in the standard variables.
    pub(super) fn of(vars: &Vars) -> Option<Self> {
        let whole = vars.filled("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let base = || {
            Some(format!("{}/v1/traces", vars.filled("OTEL_EXPORTER_OTLP_ENDPOINT")?.trim_end_matches('/')))
        };
        let url = Url::parse(&whole.or_else(base)?).ok()?;
        let text = vars.filled("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
        let headers = text.split(',').filter_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            Some((
                HeaderName::from_bytes(name.trim().as_bytes()).ok()?,
                HeaderValue::from_str(value.trim()).ok()?,
            ))
        });
        let proxy = ProxySettings::from_vars(&|name| vars.get(name));
        Some(Self { url, headers: headers.collect(), proxy })
    }

    pub(super) fn send(&self, body: &Value) -> Result<(), String> {
        let kind = HeaderValue::from_static("application/json");
        let mut request = Request::new(Method::POST, self.url.clone()).body(kind, body.to_string());
        for (name, value) in &self.headers {
            request = request.header(name.clone(), value.clone());
        }
        let options = ClientOptions { proxy: self.proxy.clone(), ..ClientOptions::default() };
        let client = Client::new(options).map_err(|e| e.to_string())?;
        let answer = client.send(&request, LIMIT, &mut never_stop).map(|response| response.status());
        client.close();
        match answer {
            Ok(200..=299) => Ok(()),
            Ok(status) => Err(format!("the collector answered {status}")),
            Err(Failure::TimedOut) => Err("the collector does not answer".to_owned()),
            Err(Failure::Transport(error)) => Err(error.to_string()),
        }
    }
}
