//! `ProcessManager` and `BrowserManager` without an agent, with real processes and a real browser.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

use ralph_loop_agents::tools::{BrowserManager, NewProcess, PageAction, PageShot, ProcessManager};
use ralph_loop_protocol::outcome::ErrorCode;
use ralph_loop_sandbox::{LocalOptions, LocalSandbox};
use ralph_loop_testkit::env::until;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const TESTS: &[(&str, fn())] = &[
    ("processes_are_started_listed_read_and_stopped", processes_are_started_listed_read_and_stopped),
    ("a_process_that_is_never_ready_says_so", a_process_that_is_never_ready_says_so),
    ("nothing_of_a_process_manager_outlives_it", nothing_of_a_process_manager_outlives_it),
    ("a_browser_is_opened_used_and_closed", a_browser_is_opened_used_and_closed),
];

fn sandbox() -> (tempfile::TempDir, PathBuf, LocalSandbox) {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let run = format!("managers-{}", std::process::id());
    let sandbox = LocalSandbox::start(&work, LocalOptions::new(run, &ralph_loop_testkit::vars())).unwrap();
    (dir, work, sandbox)
}

/// The process id in the file.
fn pid(file: &Path) -> u32 {
    std::fs::read_to_string(file).unwrap().trim().parse().unwrap()
}

/// Whether it runs; a zombie doesn't count.
fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).is_some_and(|state| state != "Z")
}

/// Prints that it is up, with a child process, and stays.
const SERVER: &str = "sleep 600 & echo $! > child.pid; echo $$ > own.pid; echo one; echo listening on http://127.0.0.1:4321/; wait";

fn processes_are_started_listed_read_and_stopped() {
    let (_dir, work, sandbox) = sandbox();
    let manager = ProcessManager::default();
    assert_eq!((manager.list(), manager.get("web")), (Vec::new(), None));
    let web = NewProcess::new("web", SERVER).ready_signal("listening");
    let started = manager.start(&sandbox, &web).unwrap();
    assert_eq!((started.name.as_str(), started.url.as_deref()), ("web", Some("http://127.0.0.1:4321/")));
    assert_eq!((manager.list().len(), manager.get("web").and_then(|one| one.ended)), (1, None));
    assert_eq!(manager.output("web", 50).unwrap(), "one\nlistening on http://127.0.0.1:4321/");
    assert_eq!(manager.output("web", 1).unwrap(), "listening on http://127.0.0.1:4321/");
    let first = [pid(&work.join("own.pid")), pid(&work.join("child.pid"))];

    // One per name: the older one ends, with everything that it started.
    manager.start(&sandbox, &web).unwrap();
    assert_eq!(manager.list().len(), 1);
    assert!(!first.into_iter().any(alive), "the first one is gone");
    let second = [pid(&work.join("own.pid")), pid(&work.join("child.pid"))];
    manager.cleanup();
    assert!(second.into_iter().all(alive), "what is in use stays");

    manager.stop("web").unwrap();
    assert!(!second.into_iter().any(alive), "stopped, with its child");
    let unknown = manager.stop("missing").unwrap_err();
    assert_eq!(unknown.code, ErrorCode::ProcessFailed);
    assert!(unknown.to_string().contains("missing"), "{unknown}");
    assert!(manager.output("missing", 5).is_err());
}

fn a_process_that_is_never_ready_says_so() {
    let (_dir, _, sandbox) = sandbox();
    let manager = ProcessManager::default();
    let ends = NewProcess::new("ends", "echo the port is taken; exit 7").ready_signal("listening");
    let error = manager.start(&sandbox, &ends).unwrap_err();
    assert_eq!(error.code, ErrorCode::ProcessFailed);
    assert!(
        error.message.contains("before it was ready") && error.message.contains("the port is taken"),
        "{error}"
    );
    let mut silent = NewProcess::new("silent", "echo starting; sleep 600").ready_signal("listening");
    silent.ready_timeout = Duration::from_millis(300);
    let error = manager.start(&sandbox, &silent).unwrap_err();
    assert!(error.message.contains("it still runs"), "{error}");
    assert_eq!(manager.get("silent").unwrap().ended, None, "the caller decides what to do with it");
    manager.stop_all();
    assert!(manager.list().iter().all(|one| one.ended.is_some()), "{:?}", manager.list());
}

fn nothing_of_a_process_manager_outlives_it() {
    let (_dir, work, sandbox) = sandbox();
    let manager = ProcessManager::default();
    manager.start(&sandbox, &NewProcess::new("web", SERVER).ready_signal("listening")).unwrap();
    // It ignores SIGTERM.
    let stubborn = "trap '' TERM; echo $$ > stubborn.pid; echo up; while :; do sleep 1; done";
    manager.start(&sandbox, &NewProcess::new("stubborn", stubborn).ready_signal("up")).unwrap();
    let all = ["own.pid", "child.pid", "stubborn.pid"].map(|name| pid(&work.join(name)));
    assert!(all.into_iter().all(alive));
    drop(manager);
    assert_eq!(all.map(alive), [false; 3], "gone when the drop is done");
}

/// A local page, for as long as the test runs.
fn serve() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut asked = [0; 2048];
            let _ = stream.read(&mut asked);
            let page = "<!doctype html><title>A page</title><h1>Hello</h1><input id=name><button id=go onclick=\"document.title='Clicked '+document.getElementById('name').value\">go</button><div id=box style='width:120px;height:60px'></div><script>console.error('something is wrong')</script>";
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
                page.len()
            );
        }
    });
    address
}

fn browser_is_here() -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = std::env::var_os("RALPH_CHROMIUM").is_some()
        || std::env::split_paths(&paths).any(|folder| names.iter().any(|name| folder.join(name).exists()));
    if !found {
        ralph_loop_testkit::skip("there is no Chromium here; `scripts/setup --tests` installs it");
    }
    found
}

/// Browser processes whose profile is below this folder.
fn browsers_below(folder: &Path) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.map(|entry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default());
    lines.filter(|line| String::from_utf8_lossy(line).contains(&*folder.to_string_lossy())).count()
}

fn a_browser_is_opened_used_and_closed() {
    if !browser_is_here() {
        return;
    }
    let (dir, _, sandbox) = sandbox();
    let profiles = dir.path().join("profiles");
    std::fs::create_dir(&profiles).unwrap();
    let manager = BrowserManager::in_folder(&profiles);
    let url = serve();
    let seen = manager.open(&sandbox, "main", &url).unwrap();
    assert!(seen.text.contains("“A page”") && seen.text.contains("something is wrong"), "{}", seen.text);
    assert!(seen.png_base64.starts_with("iVBORw0KGgo"), "a PNG");
    let open = manager.list();
    assert_eq!((open.len(), open[0].name.as_str(), open[0].url.as_str()), (1, "main", url.as_str()));
    manager.interact("main", PageAction::Type("#name", "Ada")).unwrap();
    let clicked = manager.interact("main", PageAction::Click("#go")).unwrap();
    assert!(clicked.text.contains("Clicked Ada"), "{}", clicked.text);
    assert_eq!(manager.screenshot("main", PageShot::Element("#box")).unwrap().size, (120, 60));
    let missing = manager.screenshot("main", PageShot::Element("#missing")).unwrap_err();
    assert_eq!(missing.code, ErrorCode::BrowserFailed);
    assert!(browsers_below(&profiles) > 0);

    manager.close("main").unwrap();
    assert_eq!(manager.list(), Vec::new());
    assert_eq!(manager.close("main").unwrap_err().code, ErrorCode::BrowserFailed);
    manager.open(&sandbox, "again", &url).unwrap();
    drop(manager);
    // A killed browser's children end a moment after it.
    until("no process to be left", || (browsers_below(&profiles) == 0).then_some(()));
    assert_eq!(std::fs::read_dir(&profiles).unwrap().count(), 0, "no profile is left");
}
