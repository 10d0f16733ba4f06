//! Server metrics in Prometheus format.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::Duration;

/// Histogram buckets in seconds.
const CLASSES: [f64; 8] = [0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0];
/// Methods counted separately.
const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"];
/// Distinct routes and statuses.
const KINDS: usize = 2000;

#[derive(Debug, Default)]
pub struct Metrics {
    requests: Mutex<Requests>,
}

#[derive(Debug, Default)]
struct Requests {
    answered: BTreeMap<(String, String, u16), u64>,
    classes: [u64; CLASSES.len()],
    seconds: f64,
    count: u64,
}

impl Metrics {
    pub fn answered(&self, method: &str, route: &str, status: u16, took: Duration) {
        let mut requests = self.requests.lock().unwrap_or_else(|e| e.into_inner());
        // Clients can invent any number of methods.
        let method = if METHODS.contains(&method) { method } else { "other" };
        let key = (method.to_owned(), route.to_owned(), status);
        if requests.answered.len() < KINDS || requests.answered.contains_key(&key) {
            *requests.answered.entry(key).or_default() += 1;
        }
        let seconds = took.as_secs_f64();
        for (class, most) in requests.classes.iter_mut().zip(CLASSES) {
            *class += u64::from(seconds <= most);
        }
        requests.seconds += seconds;
        requests.count += 1;
    }

    pub fn text(&self) -> String {
        let requests = self.requests.lock().unwrap_or_else(|e| e.into_inner());
        let mut text = head("ralph_http_requests_total", "counter", "Requests that were answered.");
        for ((method, route, status), count) in &requests.answered {
            let (method, route) = (label(method), label(route));
            let _ = writeln!(
                text,
                "ralph_http_requests_total{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}} {count}"
            );
        }
        let name = "ralph_http_request_duration_seconds";
        text.push_str(&head(name, "histogram", "How long answers took."));
        for (class, most) in requests.classes.iter().zip(CLASSES) {
            let _ = writeln!(text, "{name}_bucket{{le=\"{most}\"}} {class}");
        }
        let (count, seconds) = (requests.count, requests.seconds);
        let _ = writeln!(
            text,
            "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {seconds}\n{name}_count {count}"
        );
        text
    }
}

/// A metric's header.
pub(crate) fn head(name: &str, kind: &str, help: &str) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} {kind}\n")
}

/// Escapes a label value.
pub(crate) fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A single gauge.
pub(crate) fn gauge(name: &str, help: &str, value: f64) -> String {
    format!("{}{name} {value}\n", head(name, "gauge", help))
}
