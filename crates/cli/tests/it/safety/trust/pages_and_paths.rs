//! Pages, scripts and names from a repo or a fetched state: opened, read or shown only if they are valid.

use super::fetched::{Pushed, pushed, tamper};
use super::{Place, program};
use ralph_loop_testkit::TestEnv;
use serde_json::{Value, json};

/// Adds a pull request at `url` to the journal of a pushed state.
fn add_pull_request_url(pushed: &Pushed, url: &str) {
    let name = format!("runs/{}/events.jsonl", pushed.run);
    let text = pushed.git(&["cat-file", "blob", &format!("refs/ralph/{}/state:{name}", pushed.run)]);
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let forged = json!({
        "seq": last["seq"].as_u64().unwrap() + 1, "at": last["at"], "kind": "pr_written",
        "number": 7, "url": url, "draft": true, "why": "opened",
    });
    tamper(pushed, &name, &format!("{text}\n{forged}\n"));
}

/// The browser arguments of `ralph open`, and its output.
fn opened(pushed: &Pushed) -> (String, String) {
    let env = &pushed.place.env;
    let seen = env.path("opened");
    let _ = std::fs::remove_file(&seen);
    program(&env.path("bin/browser"), &format!("printf '%s\\n' \"$@\" > {}", seen.display()));
    let mut command = pushed.place.command(&env.path("elsewhere"), &["open", &pushed.run]);
    let done = TestEnv::finish(command.env("BROWSER", "browser").env("DISPLAY", ":9")).exits(0);
    (std::fs::read_to_string(seen).unwrap_or_default(), done.stdout)
}

#[test]
fn fetched_page_opens_only_if_it_is_a_web_url() {
    for (url, opens) in [
        ("https://code.example/octo/app/pull/7", true),
        ("http://code.example:8080/pull/7", true),
        ("javascript:alert(1)", false),
        ("file:///tmp/evil.desktop", false),
        ("/tmp/evil.desktop", false),
        ("--version", false),
        ("https://--version", false),
        ("https://code.example/ --new-window", false),
        ("https://code.example/\u{1b}]0;x\u{7}", false),
    ] {
        let pushed = pushed(&json!({}));
        add_pull_request_url(&pushed, url);
        // The next push detects the changed state.
        pushed.resume(&["--isolation", "none"]);
        let (given, printed) = opened(&pushed);
        match opens {
            true => assert_eq!(given, format!("{url}\n"), "{printed}"),
            false => assert_eq!(given, "", "{url} was opened"),
        }
        assert!(!printed.contains(['\u{1b}', '\u{7}']), "{url}: {printed:?}");
    }
}

/// The script of a scripted agent must be a regular file of the repo: `ralph` neither runs nor shows any other file.
#[test]
fn agent_script_path_stays_in_the_repo() {
    let place = Place::new();
    let made = place.env.path("made");
    let run = format!("touch {}", made.display());
    let script = json!({"version": 1, "turns": [{
        "do": [{"run": {"argv": ["sh", "-c", run]}}, {"write": {"path": "part.txt", "content": "x"}}],
        "say": "done\n<promise>COMPLETE</promise>",
    }]});
    std::fs::write(place.env.path("outside.json"), script.to_string()).unwrap();
    std::fs::write(place.env.path("words.txt"), "marked words of the user's\n").unwrap();
    std::os::unix::fs::symlink("../outside.json", place.env.path("repo/link.json")).unwrap();
    std::fs::create_dir(place.env.path("repo/folder.json")).unwrap();
    TestEnv::finish(place.env.command("mkfifo", &place.env.path("repo")).arg("pipe.json")).exits(0);
    let absolute = place.env.path("outside.json").display().to_string();
    let agent = |script: &str| {
        place.config(&json!({"agents": [{"name": "actor", "kind": "scripted", "script": script}]}));
    };
    for script in [
        "../outside.json",
        &absolute,
        "link.json",
        "pipe.json",
        "folder.json",
        "a/../../outside.json",
        "../words.txt",
        "",
    ] {
        agent(script);
        let refused = place.run(&[]).exits(2);
        assert!(!made.exists(), "{script} was run");
        assert!(!refused.stderr.contains("marked"), "{script}: {}", refused.stderr);
        assert!(refused.stderr.contains("script"), "{script}: {}", refused.stderr);
    }
    // The honest twin.
    place.write("script.json", &script.to_string());
    agent("script.json");
    place.run(&[]).exits(0);
    assert!(made.exists());
}

/// Names become file names: `ralph` refuses one that is too long with a short error, wherever it appears.
#[test]
fn overlong_names_are_refused_with_a_short_error() {
    let place = Place::new();
    let check =
        |name: &str| json!({"verifiers": [{"name": name, "command_argv": ["sh", "-c", "test -f part.txt"]}]});
    let agent = |name: &str| json!({"agents": [{"name": name, "command_argv": ["claude", "-p"]}]});
    let before = place.read(".ralph/config.json");
    for length in [101, 5_000, 1_000_000] {
        let name = "n".repeat(length);
        for config in [check(&name), agent(&name)] {
            place.write(".ralph/config.json", &before);
            place.config(&config);
            let refused = place.run(&[]).exits(2);
            assert!(refused.stderr.contains("up to 100 letters"), "{length}: {}", refused.stderr);
            assert!(refused.stderr.len() < 2_000, "{length}: {} bytes", refused.stderr.len());
        }
    }
    // The honest twin: the longest permitted names.
    place.write(".ralph/config.json", &before);
    let name = "n".repeat(100);
    place.config(&check(&name));
    place.config(&json!({"required_verifiers": [name]}));
    place.run(&[]).exits(0);
}
