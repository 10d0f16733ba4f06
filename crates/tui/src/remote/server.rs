//! One request to a server.

use super::address::ServerAddress;
use ralph_loop_app::{AppError, Environment};
use ralph_loop_http::{
    Client, ClientOptions, Failure, HeaderName, HeaderValue, Method, ProxySettings, Request, Url, never_stop,
};
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::display::race::RaceView;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::display::view::RunView;
use serde_json::{Value, json};
use std::time::Duration;

/// Timeout.
const LIMIT: Duration = Duration::from_secs(30);
/// Size limit of an answer.
const ANSWER_MAX: usize = 16 * 1024 * 1024;

/// A server whose runs are watched.
#[derive(Debug, Clone)]
pub struct Server {
    address: ServerAddress,
    proxy: ProxySettings,
}

impl Server {
    /// Connects through the proxy that the environment names.
    pub fn new(address: ServerAddress, env: &Environment) -> Self {
        let proxy = ProxySettings::from_vars(&|name| env.vars().get(name));
        Self { address, proxy }
    }

    pub fn address(&self) -> &ServerAddress {
        &self.address
    }

    /// A separate client per thread.
    pub(super) fn client(&self) -> Result<Client, AppError> {
        let options = ClientOptions { proxy: self.proxy.clone(), ..ClientOptions::default() };
        Client::new(options)
            .map_err(|error| AppError::environment(format!("no connection can be made: {error}")))
    }

    /// Builds a request; each part of `path` is one segment.
    pub(super) fn request(&self, method: Method, path: &[&str], query: &[(&str, String)]) -> Request {
        let mut url: Url = self.address.base.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().extend(["api", "v1"]).extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query.iter().map(|(name, value)| (*name, value.as_str())));
        }
        let request = Request::new(method, url);
        match HeaderValue::from_str(&format!("Bearer {}", self.address.token)) {
            Ok(mut bearer) => {
                bearer.set_sensitive(true);
                request.header(HeaderName::from_static("authorization"), bearer)
            }
            // A valid URL only has tokens of plain characters.
            Err(_) => request,
        }
    }

    fn answer(&self, request: &Request) -> Result<Value, AppError> {
        let client = self.client()?;
        let (status, _, body) = client
            .fetch(request, LIMIT, ANSWER_MAX, &mut never_stop)
            .map_err(|failure| self.failed(failure))?;
        if !(200..300).contains(&status) {
            return Err(self.refused(status, &body));
        }
        serde_json::from_slice(&body).map_err(|_| self.strange())
    }

    pub fn get(&self, path: &[&str], query: &[(&str, String)]) -> Result<Value, AppError> {
        self.answer(&self.request(Method::GET, path, query))
    }

    /// Sends a control and returns the outcome as one word.
    pub fn control(&self, run: &str, control: &Control) -> Result<String, AppError> {
        let body = control_body(control);
        let request = self
            .request(Method::POST, &["runs", run, "control"], &[])
            .body(HeaderValue::from_static("application/json"), body.to_string());
        let answer = self.answer(&request)?;
        Ok(one_line(answer["outcome"].as_str().unwrap_or("sent"), 40))
    }

    /// A run's view; `None` if it is queued.
    pub fn view(&self, run: &str) -> Result<Option<RunView>, AppError> {
        let mut answer = self.get(&["runs", run], &[])?;
        match answer["view"].take() {
            Value::Null => Ok(None),
            view => serde_json::from_value(view).map(Some).map_err(|_| self.strange()),
        }
    }

    /// A run's race; `None` outside a race, or if the server doesn't know races.
    pub fn race(&self, run: &str) -> Result<Option<RaceView>, AppError> {
        let request = self.request(Method::GET, &["races", run], &[]);
        let (status, _, body) = self
            .client()?
            .fetch(&request, LIMIT, ANSWER_MAX, &mut never_stop)
            .map_err(|failure| self.failed(failure))?;
        match status {
            200..300 => serde_json::from_slice(&body).map(Some).map_err(|_| self.strange()),
            404 => Ok(None),
            _ => Err(self.refused(status, &body)),
        }
    }

    /// The default run: the newest active one, else the newest.
    pub fn newest(&self) -> Result<String, AppError> {
        for status in [Some("open"), None] {
            let mut query = vec![("limit", "1".to_owned())];
            query.extend(status.map(|status| ("status", status.to_owned())));
            let page = self.get(&["runs"], &query)?;
            if let Some(id) = page["runs"][0]["id"].as_str() {
                return Ok(one_line(id, 100));
            }
        }
        Err(AppError::usage(format!("there is no run on {}", self.address.shown()))
            .hint("start one on its page, or with `POST /api/v1/runs`"))
    }

    /// Why there was no answer.
    pub(super) fn failed(&self, failure: Failure) -> AppError {
        let error = AppError::environment(format!("{} does not answer", self.address.shown()));
        let error = match failure {
            Failure::TimedOut => error.cause("it was waited for, and nothing came"),
            Failure::Transport(why) => error.cause(one_line(&why.to_string(), 300)),
            Failure::Stopped(never) => match never {},
        };
        error.hint(
            "is `ralph serve` running there, and is the address right? `curl URL/healthz` asks the same",
        )
    }

    /// Turns an error response into an error.
    pub(super) fn refused(&self, status: u16, body: &[u8]) -> AppError {
        let said: Value = serde_json::from_slice(body).unwrap_or_default();
        let detail = said["detail"].as_str().map(|detail| one_line(detail, 300));
        let hint = said["hint"].as_str().map(|hint| one_line(hint, 300));
        let server = self.address.shown();
        match status {
            401 => AppError::usage(format!("{server} does not know the token")).hint(
                "pass `--token-file FILE` or set RALPH_SERVER_TOKEN; the server's admin creates tokens",
            ),
            404 if detail.is_none() => AppError::usage(format!("{server} isn't a `ralph` server"))
                .hint("`--server` takes the address that `ralph serve` prints"),
            _ => {
                let words = detail.unwrap_or_else(|| format!("{server} answered with {status}"));
                // A server error may be temporary.
                let error = if status >= 500 { AppError::environment(words) } else { AppError::usage(words) };
                error.hint(hint.unwrap_or_else(|| format!("{server}/api/docs tells what it takes")))
            }
        }
    }

    fn strange(&self) -> AppError {
        AppError::environment(format!("{} answers something that is not understood", self.address.shown()))
            .hint("is it the same version as this program? `ralph --version` on both sides tells")
    }
}

/// A control as a request body.
fn control_body(control: &Control) -> Value {
    let mut body = json!({ "kind": control.name() });
    match control {
        Control::Skip { agent } => body["agent"] = json!(agent),
        Control::Cooldown { agent, seconds } => {
            body["agent"] = json!(agent);
            body["seconds"] = json!(seconds);
        }
        Control::Model { model, agent, always } => {
            body["model"] = json!(model);
            body["agent"] = json!(agent);
            body["always"] = json!(always);
        }
        Control::Note { text } | Control::Guardrail { text } | Control::Nudge { text } => {
            body["text"] = json!(text);
        }
        Control::Edit { task } => body["text"] = json!(task),
        _ => {}
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_protocol::id::AgentName;

    fn server(url: &str) -> Server {
        let address = ServerAddress::new(url, "t0ken", false).unwrap();
        Server { address, proxy: ProxySettings::NONE }
    }

    #[test]
    fn controls_match_the_api() {
        assert_eq!(control_body(&Control::Pause), json!({ "kind": "pause" }));
        let note = Control::Note { text: "a\nb".into() };
        assert_eq!(control_body(&note), json!({ "kind": "note", "text": "a\nb" }));
        let cooldown = Control::Cooldown { agent: AgentName::new("codex"), seconds: 900 };
        assert_eq!(control_body(&cooldown), json!({ "kind": "cooldown", "agent": "codex", "seconds": 900 }));
    }

    #[test]
    fn run_names_are_escaped_in_server_paths() {
        let request = server("https://a.example/x").request(Method::GET, &["runs", "../people?a=b"], &[]);
        let shown = format!("{request:?}");
        assert!(shown.contains("/x/api/v1/runs/..%2Fpeople%3Fa=b"), "{shown}");
        assert!(!shown.contains("t0ken"), "{shown}");
    }

    #[test]
    fn server_refusals_are_shown_verbatim() {
        let server = server("https://a.example");
        let said = br#"{"detail":"this needs the role operator","hint":"ask an \u001b[31madmin"}"#;
        let error = server.refused(403, said);
        assert_eq!((error.message.as_str(), error.next()), ("this needs the role operator", "ask an admin"));
        assert!(server.refused(401, b"").message.contains("does not know the token"));
        assert!(server.refused(404, b"<html>").message.contains("isn't a `ralph` server"));
        assert!(server.refused(500, b"\xff").message.contains("500"));
    }
}
