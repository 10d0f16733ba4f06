//! Other repos and other accounts: what a task names, where a login goes, and what an agent leaves for the next run.

use super::{Place, program};
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

/// A machine with a private user repo; returns its URL, too.
fn with_private() -> (Place, String) {
    let place = Place::new();
    let private = TestRepo::new(&place.env, "private", &[("passwords.txt", "TOPSECRET-canary\n")]);
    let private = private.dir.display().to_string();
    (place, private)
}

/// A repo whose task names another.
fn naming<'a>(place: &'a Place, name: &str, url: &str) -> TestRepo<'a> {
    let task = json!({"task": "Improve it", "repository": {"url": url},
        "acceptance_criteria": [{"type": "command_succeeds", "command": "cat passwords.txt; test -f part.txt"}]});
    TestRepo::new(&place.env, name, &[("ralph.json", &task.to_string())])
}

const RUN: [&str; 5] = ["run", "--new", "--isolation", "none", "--json"];

#[test]
fn task_cannot_use_another_user_repo_without_permission() {
    let (place, private) = with_private();
    for (number, url) in
        [private.clone(), format!("file://{private}"), "../private".to_owned()].iter().enumerate()
    {
        let repo = naming(&place, &format!("evil{number}"), url);
        for publish in ["none", "push"] {
            let refused = place.ralph_in(&repo.dir, &[&RUN[..], &["--publish", publish]].concat()).exits(3);
            for word in ["work on a clone of", "`ralph trust`", "RALPH_TRUST="] {
                assert!(refused.stderr.contains(word), "{url}: no `{word}` in {}", refused.stderr);
            }
        }
        place.ralph_in(&repo.dir, &["trust", "--show"]).exits(3);
    }
    assert!(!place.env.path("state/ralph/sources").exists(), "something was fetched");
    assert_eq!(place.runs(), 0);
    // A link in a user folder doesn't make the repo's task the user's.
    let plain = place.env.path("plain");
    std::fs::create_dir(&plain).unwrap();
    std::os::unix::fs::symlink(place.env.path("evil0/ralph.json"), plain.join("ralph.json")).unwrap();
    assert_eq!(place.ralph_in(&plain, &[&RUN[..], &["--publish", "none"]].concat()).code, Some(3));
}

/// The honest twins: the user allows it, or writes it.
#[test]
fn permission_for_another_repo_is_per_task() {
    let (place, private) = with_private();
    let (good, evil) = (naming(&place, "good", &private), naming(&place, "evil", &private));
    let run = [&RUN[..], &["--publish", "none"]].concat();
    let shown = place.ralph_in(&good.dir, &["trust", "--show", "--json"]).exits(3).json();
    assert_eq!(shown["asks"][0]["kind"], "clone", "{shown}");
    place.ralph_in(&good.dir, &["trust", "--yes"]).exits(0);
    place.ralph_in(&good.dir, &["trust", "--show"]).exits(0);
    place.ralph_in(&good.dir, &run).exits(0);
    // A permission of one repo doesn't apply to another with the same request.
    place.ralph_in(&evil.dir, &run).exits(3);
    place.ralph_in(&good.dir, &["trust", "--revoke"]).exits(0);
    let refused = place.ralph_in(&good.dir, &run).exits(3);
    // For one run, and for CI.
    place.ralph_in(&evil.dir, &[&run[..], &["--yes"]].concat()).exits(0);
    let hash = refused.stderr.split("RALPH_TRUST=").nth(1).unwrap().split_whitespace().next().unwrap();
    TestEnv::finish(place.command(&good.dir, &run).env("RALPH_TRUST", hash)).exits(0);
    TestEnv::finish(place.command(&good.dir, &run).env("RALPH_TRUST", format!("{},{hash}", "0".repeat(64))))
        .exits(0);
    // A task in a folder outside a repo is the user's own.
    let plain = place.env.path("mine");
    std::fs::create_dir(&plain).unwrap();
    std::fs::copy(good.dir.join("ralph.json"), plain.join("ralph.json")).unwrap();
    place.ralph_in(&plain, &run).exits(0);
}

/// A server with one fixed response; records its requests.
fn server(answer: impl Fn(&str) -> String + Send + 'static) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (told, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(count) if count > 0 => request.extend_from_slice(&buffer[..count]),
                    _ => break,
                }
            }
            let request = String::from_utf8_lossy(&request).into_owned();
            let _ = stream.write_all(answer(&request).as_bytes());
            if told.send(request).is_err() {
                return;
            }
        }
    });
    (port, heard)
}

fn wants_login(_: &str) -> String {
    "HTTP/1.0 401 no\r\nWWW-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n".to_owned()
}

#[test]
fn task_urls_are_not_contacted_without_permission() {
    let place = Place::new();
    let (port, heard) = server(wants_login);
    let repo = naming(&place, "evil", &format!("http://127.0.0.1:{port}/latest/meta-data.git"));
    for args in [&["trust", "--show"][..], &RUN, &["lint"], &["status"], &["trust", "--revoke"]] {
        let mut command = place.command(&repo.dir, args);
        TestEnv::finish(command.env("GITHUB_TOKEN", "ghp_canarycanarycanarycanarycanarycanary12"));
        assert!(heard.try_recv().is_err(), "{args:?} has connected");
    }
    // With the user's permission the connection is made.
    place.ralph_in(&repo.dir, &[&RUN[..], &["--yes"]].concat()).exits(4);
    assert!(heard.try_recv().is_ok());
}

#[test]
fn url_login_goes_only_to_its_host() {
    let place = Place::new();
    let (other, heard_there) = server(wants_login);
    let (port, _heard) = server(move |_| {
        format!(
            "HTTP/1.0 302 x\r\nLocation: http://localhost:{other}/x.git/info/refs?service=git-upload-pack\r\nContent-Length: 0\r\n\r\n"
        )
    });
    let clone = |port: u16| {
        let url = format!("http://me:hunter-canary@127.0.0.1:{port}/x.git");
        let done = place.ralph_in(&place.env.path("tmp"), &["trust", "--show", "--clone", &url]).exits(4);
        assert!(!done.stderr.contains("hunter-canary"), "{}", done.stderr);
    };
    clone(port);
    let asked: Vec<String> = heard_there.try_iter().collect();
    assert!(!asked.is_empty(), "it was led there");
    assert!(asked.iter().all(|request| !request.contains("Authorization")), "{asked:?}");
    // The host itself gets the login.
    let (own, heard) = server(wants_login);
    clone(own);
    assert!(heard.try_iter().any(|request| request.contains("Authorization: Basic")));
}

#[test]
fn url_passwords_are_never_shown() {
    let place = Place::new();
    let canary = "Hunter2Canary7719xQ";
    for url in [
        format!("https://me:{canary}@127.0.0.1:1/x.git"),
        format!("HTTPS://me:{canary}@127.0.0.1:1/x.git"),
        format!("https://{canary}@127.0.0.1:1/x.git"),
        format!("ssh://me:{canary}@127.0.0.1:1/x.git"),
        format!("git+https://me:{canary}@127.0.0.1:1/x"),
        format!("ftp://me:{canary}@127.0.0.1:1/x.git"),
        format!("http://127.0.0.1:1/x.git?private_token={canary}"),
        format!("me:{canary}@127.0.0.1:x.git"),
        format!(" https://me:{canary}@127.0.0.1:1/x.git"),
    ] {
        let args = ["trust", "--show", &format!("--clone={url}")];
        let done = place.ralph_in(&place.env.path("tmp"), &args).exits(4);
        let said = format!("{}{}", done.stdout, done.stderr);
        assert!(!said.contains(canary) && said.contains("127.0.0.1"), "{url}: {said}");
        let repo = naming(&place, "naming", &url);
        let refused = place.ralph_in(&repo.dir, &RUN);
        assert!(matches!(refused.code, Some(2 | 3)), "{url}: {}", refused.stderr);
        assert!(
            !format!("{}{}", refused.stdout, refused.stderr).contains(canary),
            "{url}: {}",
            refused.stderr
        );
        std::fs::remove_dir_all(&repo.dir).unwrap();
    }
}

#[test]
fn task_authors_and_branches_are_not_options() {
    let place = Place::new();
    let work = "cat > /dev/null\necho x > part.txt; echo '<promise>COMPLETE</promise>'";
    program(&place.env.path("bin/claude"), work);
    let bare = place.env.path("bare.git").display().to_string();
    place.git(&["clone", "-q", "--bare", ".", &bare]);
    place.git(&["remote", "add", "origin", &bare]);
    place.git(&["rm", "-q", "PROMPT.md"]);
    place.git(&["commit", "-q", "-m", "another task"]);
    let task = |branch: &str| {
        let task = json!({"task": "Write part.txt", "git": {"feature_branch": branch, "create_pr": false,
                "commit_author": "E\u{1b}[2J\u{202e}vil <x>", "commit_email": "a@b>\nevil: x"},
            "acceptance_criteria": [{"type": "file_exists", "path": "part.txt"}]});
        place.write("ralph.json", &task.to_string());
        place.run(&["--publish", "push", "--worktree"])
    };
    for branch in ["refs/heads/main", "refs/x"] {
        let refused = task(branch).exits(2);
        assert!(refused.stderr.contains("name the branch alone"), "{}", refused.stderr);
    }
    task("fine/x").exits(0);
    let log = place.git(&["--git-dir", &bare, "log", "--all", "--format=%an|%ae|%cn|%ce|%B"]);
    assert!(!log.contains(['\u{1b}', '\u{202e}']) && log.contains("Evil x|a@b evil: x"), "{log:?}");
}

#[test]
fn key_written_by_an_agent_needs_permission() {
    let place = Place::new();
    let evil = "cat > /dev/null\necho ANTHROPIC_API_KEY=sk-ant-evil-account >> .env\n\
        echo x > part.txt; echo '<promise>COMPLETE</promise>'";
    program(&place.env.path("bin/mine"), evil);
    place.agent("mine", &["mine"], &json!({}));
    place.run(&[]).exits(0);
    assert!(place.read(".env").contains("evil-account"));
    // The user has no key in the environment, so the one in `.env` would count.
    let mut next = Place { vars: Vec::new(), ..place };
    next.agent("claude", &["claude", "-p"], &json!({}));
    let refused = next.run(&[]).exits(3);
    assert!(refused.stderr.contains("that was added to `.env` during a run"), "{}", refused.stderr);
    // Neither an unrelated edit nor a killed run makes it the user's.
    next.write(".env", &format!("OTHER=1\n{}", next.read(".env")));
    next.run(&[]).exits(3);
    next.ralph(&["trust", "--yes"]).exits(0);
    next.run(&[]).exits(0);
    assert!(next.read(".ralph/seen.txt").contains("ANTHROPIC_API_KEY=sk-ant-evil-account"));
    // The honest twin: a key that the user writes is used, before and after runs.
    next.write(".env", "ANTHROPIC_API_KEY=sk-ant-my-account\n");
    next.run(&[]).exits(0);
    assert!(next.read(".ralph/seen.txt").contains("ANTHROPIC_API_KEY=sk-ant-my-account"));
    let mut fresh = Place::new();
    fresh.vars.clear();
    fresh.write(".env", "ANTHROPIC_API_KEY=sk-ant-my-account\n");
    fresh.run(&[]).exits(0);
    fresh.run(&[]).exits(0);
    next.vars.clear();
}
