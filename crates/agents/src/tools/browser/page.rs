//! A page: opening it, waiting for it, collecting its errors.

use super::wire::DevTools;
use crate::tools::halt::Halt;
use ralph_loop_protocol::display::text;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub(super) const WIDTH: u32 = 1280;
pub(super) const HEIGHT: u32 = 800;
const LOAD: Duration = Duration::from_secs(30);
/// Longest wait for its network to become quiet.
const QUIET: Duration = Duration::from_secs(3);
const TROUBLES_MAX: usize = 40;
const TROUBLE_MAX: usize = 400;
/// Bytes of the page's text that are shown.
const TEXT_MAX: usize = 4 * 1024;
/// A page with more errors is ignored until the next one is opened.
const LOUD: usize = 500;
/// Events still handled after the time limit; a page may send them without end.
const LATE_EVENTS: usize = 2000;
/// How many requests' URLs are kept.
const REQUESTS_MAX: usize = 500;

#[derive(Debug)]
pub(super) struct Page {
    pub(super) wire: DevTools,
    troubles: Vec<String>,
    more: usize,
    requests: BTreeMap<String, String>,
    /// The main frame.
    main: String,
    loading: bool,
    quiet: bool,
    /// Whether its console is ignored.
    silenced: bool,
}

impl Page {
    /// Takes over the first page of a new browser.
    pub(super) fn take(mut wire: DevTools, halt: &Halt) -> Result<Self, String> {
        let targets = wire.call("Target.getTargets", json!({}), halt)?;
        let page = targets
            .get("targetInfos")
            .and_then(Value::as_array)
            .and_then(|all| all.iter().find(|target| target["type"] == "page"))
            .and_then(|target| target["targetId"].as_str().map(str::to_owned));
        let target = match page {
            Some(target) => target,
            None => text_of(
                &wire.call("Target.createTarget", json!({ "url": "about:blank" }), halt)?,
                "/targetId",
            ),
        };
        let attached =
            wire.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }), halt)?;
        // Downloads have no target.
        wire.call("Browser.setDownloadBehavior", json!({ "behavior": "deny" }), halt).ok();
        wire.talk_to(text_of(&attached, "/sessionId"));
        let frames = wire.call("Page.getFrameTree", json!({}), halt)?;
        for domain in ["Page", "Runtime", "Network", "Log", "DOM"] {
            wire.call(&format!("{domain}.enable"), json!({}), halt)?;
        }
        wire.call("Page.setLifecycleEventsEnabled", json!({ "enabled": true }), halt)?;
        let size = json!({ "width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": false });
        wire.call("Emulation.setDeviceMetricsOverride", size, halt)?;
        Ok(Self {
            wire,
            troubles: Vec::new(),
            more: 0,
            requests: BTreeMap::new(),
            main: text_of(&frames, "/frameTree/frame/id"),
            loading: false,
            quiet: true,
            silenced: false,
        })
    }

    /// Opens `url` and waits until it is loaded and its network is quiet.
    pub(super) fn open(&mut self, url: &str, halt: &Halt) -> Result<(), String> {
        if std::mem::take(&mut self.silenced) {
            for method in ["Runtime.discardConsoleEntries", "Runtime.enable"] {
                self.wire.call(method, json!({}), halt)?;
            }
        }
        self.wait_until(Instant::now(), halt, |_| false)?;
        self.loading = true;
        self.quiet = false;
        let went = self.wire.call("Page.navigate", json!({ "url": url }), halt)?;
        if let Some(error) = went.get("errorText").and_then(Value::as_str).filter(|error| !error.is_empty()) {
            self.loading = false;
            return Err(format!("`{url}` cannot be opened: {error}"));
        }
        self.settle(halt)
    }

    /// Waits for a loading page, then for its network.
    pub(super) fn settle(&mut self, halt: &Halt) -> Result<(), String> {
        if !self.wait_until(Instant::now() + LOAD, halt, |page| !page.loading)? {
            self.trouble(format!("the page is still loading after {} s", LOAD.as_secs()));
            return Ok(());
        }
        self.wait_until(Instant::now() + QUIET, halt, |page| page.quiet)?;
        self.calm(halt);
        self.wait_until(Instant::now(), halt, |_| false)?;
        Ok(())
    }

    /// Lets the page render and run pending tasks.
    fn calm(&mut self, halt: &Halt) {
        let script = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))";
        // A page that goes away has nothing to render.
        self.wire
            .call(
                "Runtime.evaluate",
                json!({ "expression": script, "awaitPromise": true, "timeout": 2000 }),
                halt,
            )
            .ok();
    }

    /// Waits for the effect of an action: a new page, or only a moment.
    pub(super) fn after_action(&mut self, halt: &Halt) -> Result<(), String> {
        self.calm(halt);
        self.wait_until(Instant::now(), halt, |_| false)?;
        if self.loading { self.settle(halt) } else { Ok(()) }
    }

    /// The value of a script; the error is what it throws.
    pub(super) fn evaluate(&mut self, script: &str, halt: &Halt) -> Result<Value, String> {
        let asked = json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.wire.call("Runtime.evaluate", asked, halt)?;
        if let Some(thrown) = answer.get("exceptionDetails") {
            let words = thrown.pointer("/exception/description").or(thrown.get("text"));
            let words = words.and_then(Value::as_str).unwrap_or("the script failed");
            return Err(text::one_line(words.lines().next().unwrap_or(words), 300));
        }
        Ok(answer.pointer_mut("/result/value").map(Value::take).unwrap_or_default())
    }

    /// The page's URL, title and visible text, and its unreported errors.
    pub(super) fn describe(&mut self, halt: &Halt) -> Result<String, String> {
        let script = "({ url: location.href, title: document.title, \
             text: (document.body ? document.body.innerText : '').slice(0, 20000) })";
        let page = self.evaluate(script, halt)?;
        self.wait_until(Instant::now(), halt, |_| false)?;
        let body = text_of(&page, "/text");
        let body: Vec<&str> = body.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        let body = body.join("\n");
        let shown = text::head(&body, TEXT_MAX);
        let cut = if shown.len() < body.len() { "\n[text cut]" } else { "" };
        let mut all =
            format!("{} “{}”\n", text_of(&page, "/url"), text::one_line(&text_of(&page, "/title"), 200));
        all.push_str(&self.report_problems());
        all.push_str(&match shown.is_empty() {
            true => "the page shows no text".to_owned(),
            false => format!("text of the page:\n{shown}{cut}"),
        });
        Ok(all)
    }

    fn report_problems(&mut self) -> String {
        let troubles = std::mem::take(&mut self.troubles);
        let more = std::mem::take(&mut self.more);
        if troubles.is_empty() {
            return "no errors in the console\n".to_owned();
        }
        let mut told = String::from("errors:\n");
        for trouble in troubles {
            told.push_str(&format!("- {trouble}\n"));
        }
        if more > 0 {
            told.push_str(&format!("- and {more} more\n"));
        }
        told
    }

    fn trouble(&mut self, words: String) {
        let words = text::one_line(&words, TROUBLE_MAX);
        if self.troubles.contains(&words) {
            return;
        }
        if self.troubles.len() < TROUBLES_MAX { self.troubles.push(words) } else { self.more += 1 }
    }

    /// Handles events until `enough`, or until `until`; returns whether it was enough.
    pub(super) fn wait_until(
        &mut self,
        until: Instant,
        halt: &Halt,
        enough: impl Fn(&Self) -> bool,
    ) -> Result<bool, String> {
        let mut late = 0;
        loop {
            if enough(self) {
                return Ok(true);
            }
            if self.more > LOUD && !self.silenced {
                self.silenced = true;
                self.wire.call("Runtime.disable", json!({}), halt)?;
            }
            late += usize::from(Instant::now() >= until);
            if late > LATE_EVENTS {
                return Ok(false);
            }
            match self.wire.event(until, halt)? {
                Some(event) => self.on_event(&event)?,
                None => return Ok(false),
            }
        }
    }

    fn on_event(&mut self, event: &Value) -> Result<(), String> {
        let text = |pointer: &str| text_of(event, pointer);
        match event["method"].as_str().unwrap_or_default() {
            "Page.frameStartedLoading" if text("/params/frameId") == self.main => {
                self.loading = true;
                self.quiet = false;
            }
            "Page.frameStoppedLoading" if text("/params/frameId") == self.main => self.loading = false,
            "Page.lifecycleEvent" if text("/params/name") == "networkIdle" => self.quiet = true,
            "Page.javascriptDialogOpening" => {
                self.trouble(format!(
                    "the page asked with {}: {}",
                    text("/params/type"),
                    text("/params/message")
                ));
            }
            "Runtime.consoleAPICalled" if ["error", "assert"].contains(&text("/params/type").as_str()) => {
                let words: Vec<String> = event
                    .pointer("/params/args")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .map(console_word)
                    .collect();
                self.trouble(format!("console: {}", words.join(" ")));
            }
            "Runtime.exceptionThrown" => {
                let thrown = match text("/params/exceptionDetails/exception/description") {
                    words if words.is_empty() => text("/params/exceptionDetails/text"),
                    words => words,
                };
                self.trouble(format!("uncaught: {thrown}"));
            }
            "Log.entryAdded"
                if text("/params/entry/level") == "error" && text("/params/entry/source") != "network" =>
            {
                self.trouble(text("/params/entry/text"));
            }
            "Network.requestWillBeSent" => {
                if self.requests.len() >= REQUESTS_MAX {
                    self.requests.clear();
                }
                self.requests.insert(text("/params/requestId"), text("/params/request/url"));
            }
            "Network.responseReceived" => {
                let status = event.pointer("/params/response/status").and_then(Value::as_u64).unwrap_or(0);
                if status >= 400 {
                    self.trouble(format!("request: {status} for {}", text("/params/response/url")));
                }
            }
            "Network.loadingFailed" => {
                let url = self.requests.remove(&text("/params/requestId")).unwrap_or_default();
                let cancelled = event.pointer("/params/canceled").and_then(Value::as_bool).unwrap_or(false);
                if !cancelled {
                    self.trouble(format!("request: {} for {url}", text("/params/errorText")));
                }
            }
            "Inspector.targetCrashed" => return Err("the page has crashed; open it again".to_owned()),
            _ => {}
        }
        Ok(())
    }
}

fn console_word(arg: &Value) -> String {
    match (arg.get("value"), arg["description"].as_str()) {
        (Some(Value::String(text)), _) => text.clone(),
        (Some(value), _) => value.to_string(),
        (None, Some(description)) => description.to_owned(),
        (None, None) => String::new(),
    }
}

/// The text at a JSON pointer, or empty.
pub(super) fn text_of(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}
