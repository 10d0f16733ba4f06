//! A real Chromium on a page of our own.
#![allow(clippy::disallowed_methods, reason = "a test asks what it was started with")]

use crate::agents::tools::support::{Script, Stage, alive, calls, fine, refused, says};
use ralph_loop_domain::ports::{Agent as _, ReleaseWhen};
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

const PAGE: &str = r#"<!doctype html><html><head><title>A page</title><style>body { margin: 0 }
#box { width: 120px; height: 60px; background: teal } #tall { height: 3000px }</style></head><body>
<h1>Hello</h1><div id="box"></div>
<button id="go" onclick="document.querySelector('h1').textContent = 'Clicked ' + document.querySelector('#name').value">Go</button>
<input id="name" value="old"><p id="hover" onmouseover="this.textContent = 'hovered'">plain</p>
<button id="alarm" onclick="alert('careful'); document.querySelector('h1').textContent = 'Alarmed'">Alarm</button>
<select id="pick" onchange="document.querySelector('h1').textContent = 'Picked ' + this.value"><option value="r">Red</option><option value="g">Green</option></select>
<a id="away" href="/second">away</a><div id="none"></div>
<div id="tall"></div>
<script>
document.querySelector('#name').addEventListener('keydown', e => { if (e.key === 'Enter') document.title = 'Entered'; });
addEventListener('scroll', () => { document.title = 'at ' + Math.round(scrollY); });
console.error('something is wrong', 42); fetch('/missing'); null.boom();
</script></body></html>"#;

/// A page that logs errors faster than they can be read.
const LOUD: &str = "<title>Loud</title><p>noise</p><script>let n = 0; setInterval(() => { \
    for (let i = 0; i < 2000; i++) console.error('no ' + n++) }, 0)</script>";

/// Serves the page, and a second one, until the test ends.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            for line in lines.map_while(Result::ok) {
                if line.is_empty() {
                    break;
                }
            }
            let (status, body) = match first.split_whitespace().nth(1) {
                Some("/") => ("200 OK", PAGE),
                Some("/loud") => ("200 OK", LOUD),
                Some("/second") => ("200 OK", "<title>Second</title><h1>Another page</h1>"),
                _ => ("404 Not Found", "no"),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(format!("{head}{body}").as_bytes()).ok();
        }
    });
    address
}

fn chromium() -> bool {
    let paths = std::env::var("PATH").unwrap_or_default();
    let found = std::env::var_os("RALPH_CHROMIUM").is_some()
        || paths.split(':').any(|p| {
            ["chromium", "chromium-browser", "google-chrome"]
                .iter()
                .any(|n| std::path::Path::new(p).join(n).exists())
        });
    if !found {
        ralph_loop_testkit::skip("there is no Chromium here; `scripts/setup --tests` installs it");
    }
    found
}

/// Width and height from a PNG header.
fn size(stage: &Stage, number: u32) -> (u32, u32) {
    let bytes = std::fs::read(stage.folder().join(format!("screenshot-{number}.png"))).unwrap();
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

/// Finds processes whose command line has this text.
fn with_argument(text: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else { continue };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(text) && alive(pid) {
            found.push(pid);
        }
    }
    found
}

/// A part of the arguments that only our browsers have.
fn browser_argument() -> String {
    format!("ralph-browser-{}-", std::process::id())
}

#[test]
fn browser_shows_page_errors_and_handles_clicks_and_typing() {
    if !chromium() {
        return;
    }
    let stage = Stage::new();
    let url = serve();
    let touch = |input| ("interact", input);
    let script = Script::of(vec![
        calls(&[("openBrowser", json!({"url": format!("{url}/")}))]),
        calls(&[
            touch(json!({"action": "type", "selector": "#name", "value": "Ada"})),
            touch(json!({"action": "click", "selector": "#go"})),
            touch(json!({"action": "hover", "selector": "#hover"})),
            touch(json!({"action": "press", "selector": "#name", "value": "Enter"})),
            touch(json!({"action": "scroll", "value": "500"})),
            touch(json!({"action": "wait", "selector": "h1"})),
            touch(json!({"action": "click", "selector": "#missing"})),
            touch(json!({"action": "click", "selector": "#none"})),
            touch(json!({"action": "click", "selector": "!!"})),
            touch(json!({"action": "click"})),
            touch(json!({"action": "press", "value": "Hyper"})),
            touch(json!({"action": "dance"})),
            touch(json!({"action": "click", "selector": "h1", "name": "other"})),
            touch(json!({"action": "click", "selector": "#alarm"})),
            touch(json!({"action": "type", "selector": "#pick", "value": "Green"})),
            touch(json!({"action": "type", "selector": "#pick", "value": "Blue"})),
        ]),
        calls(&[
            ("screenshot", json!({"selector": "#box"})),
            ("screenshot", json!({"fullPage": true})),
            ("screenshot", json!({})),
            ("screenshot", json!({"selector": "#missing"})),
            touch(json!({"action": "click", "selector": "#away"})),
        ]),
        calls(&[("closeBrowser", json!({})), ("closeBrowser", json!({})), ("screenshot", json!({}))]),
        says("ok"),
    ]);
    let agent = stage.agent(&script);
    stage.session(&agent, "the task");

    let opened = script.results(1).remove(0);
    let text = fine(&opened);
    for part in
        ["“A page”", "console: something is wrong 42", "uncaught: TypeError", "404 for", "/missing", "Hello"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!((opened.images.len(), opened.images[0].media_type.as_str()), (1, "image/png"));
    assert!(opened.images[0].base64.starts_with("iVBORw0KGgo"));
    assert_eq!(size(&stage, 1), (1280, 800));

    let touched = script.results(2);
    assert!(fine(&touched[0]).contains("no errors in the console"), "told once: {}", touched[0].text);
    assert!(fine(&touched[1]).contains("Clicked Ada"), "{}", touched[1].text);
    assert!(fine(&touched[2]).contains("hovered"), "{}", touched[2].text);
    assert!(fine(&touched[3]).contains("“Entered”"), "{}", touched[3].text);
    assert!(fine(&touched[4]).contains("“at 500”"), "{}", touched[4].text);
    fine(&touched[5]);
    assert!(refused(&touched[6]).starts_with("no element matches `#missing`"), "{}", touched[6].text);
    assert!(refused(&touched[7]).contains("has no size"), "{}", touched[7].text);
    assert!(refused(&touched[8]).contains("not a valid selector"), "{}", touched[8].text);
    assert!(refused(&touched[9]).contains("needs a `selector`"), "{}", touched[9].text);
    assert!(refused(&touched[10]).contains("no key `Hyper`"), "{}", touched[10].text);
    assert!(refused(&touched[11]).contains("must be one of click"), "{}", touched[11].text);
    assert_eq!(refused(&touched[12]), "no browser `other` is open; there are: main");

    assert!(
        fine(&touched[13]).contains("Alarmed")
            && touched[13].text.contains("the page asked with alert: careful"),
        "{}",
        touched[13].text
    );
    assert!(fine(&touched[14]).contains("Picked g"), "{}", touched[14].text);
    assert!(
        refused(&touched[15]).ends_with("has no choice `Blue`; there are: Red, Green"),
        "{}",
        touched[15].text
    );

    let shots = script.results(3);
    fine(&shots[0]);
    assert_eq!(size(&stage, 18), (120, 60), "the element, to the pixel");
    let (width, height) = size(&stage, 19);
    assert!(width == 1280 && height > 3000, "{width}×{height}");
    assert_eq!(size(&stage, 20), (1280, 800));
    assert!(refused(&shots[3]).starts_with("no element matches"), "{}", shots[3].text);
    assert!(
        fine(&shots[4]).contains("Another page") && shots[4].text.contains("/second"),
        "{}",
        shots[4].text
    );

    let closed = script.results(4);
    assert_eq!(fine(&closed[0]), "browser `main` is closed");
    assert_eq!(refused(&closed[1]), "no browser `main` is open; openBrowser opens one");
    refused(&closed[2]);
    assert_eq!(with_argument(&browser_argument()), Vec::<i32>::new(), "a closed browser leaves no process");
}

#[test]
fn bad_urls_are_errors_and_browsers_end_with_the_iteration() {
    if !chromium() {
        return;
    }
    let stage = Stage::new();
    stage.write("page.html", "<title>From a file</title><p>text</p>");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let open = |url: &str| ("openBrowser", json!({"url": url}));
    let script = Script::of(vec![
        calls(&[
            open(&format!("http://127.0.0.1:{free}/")),
            open("file:///etc/passwd"),
            open("javascript:alert(1)"),
            open("file://page.html"),
            open(&format!("{}/loud", serve())),
        ]),
        says("ok"),
    ]);
    let agent = stage.agent(&script);
    stage.session(&agent, "the task");
    let results = script.results(1);
    assert!(refused(&results[0]).contains("ERR_CONNECTION_REFUSED"), "{}", results[0].text);
    assert!(refused(&results[1]).contains("leads out"), "{}", results[1].text);
    assert!(refused(&results[2]).contains("isn't a URL"), "{}", results[2].text);
    assert!(fine(&results[3]).contains("“From a file”"), "{}", results[3].text);
    let loud = fine(&results[4]);
    assert!(
        loud.contains("“Loud”") && loud.contains("- console: no 0\n") && loud.contains(" more\n"),
        "{loud}"
    );
    assert!(!with_argument(&browser_argument()).is_empty());
    agent.release_resources(ReleaseWhen::Idle);
    assert_eq!(with_argument(&browser_argument()), Vec::<i32>::new());
    let left = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    assert!(
        !left.into_iter().any(|e| e.file_name().to_string_lossy().starts_with(&browser_argument())),
        "no profile is left"
    );
}
