//! Processes that outlive a call and a session.

use crate::agents::tools::support::{Script, Stage, alive, calls, children, fine, opening, refused, says};
use ralph_loop_domain::model::Message;
use ralph_loop_domain::ports::{Agent as _, ReleaseWhen};
use serde_json::{Value, json};

/// A server that prints its address, with a grandchild in a separate session.
const SERVER: &str = "echo $$ > main; setsid sh -c 'echo $$ > far; exec sleep 1000' & \
    until [ -s far ]; do sleep 0.01; done; echo ready at http://localhost:4567/app; wait";

fn start(name: &str, command: &str, signal: Option<&str>) -> (&'static str, Value) {
    let mut input = json!({"name": name, "command": command});
    if let Some(signal) = signal {
        input["readySignal"] = json!(signal);
    }
    ("startProcess", input)
}

#[test]
fn background_server_is_listed_and_stopped_with_its_children() {
    let stage = Stage::new();
    let script = Script::of(vec![
        calls(&[start("web", SERVER, Some("ready at"))]),
        calls(&[("getProcessOutput", json!({"name": "web", "lines": 1})), ("listProcesses", json!({}))]),
        calls(&[("stopProcess", json!({"name": "web"})), ("stopProcess", json!({"name": "web"}))]),
        says("ok"),
    ]);
    let agent = stage.agent(&script);
    stage.session(&agent, "the task");
    let first = script.results(1).remove(0);
    assert!(fine(&first).starts_with("`web` runs at http://localhost:4567/app\n"), "{}", first.text);
    let seen = script.results(2);
    assert!(fine(&seen[0]).ends_with("ready at http://localhost:4567/app\n"), "{}", seen[0].text);
    assert!(fine(&seen[1]).starts_with("`web` running for "), "{}", seen[1].text);
    let stopped = script.results(3);
    assert_eq!(fine(&stopped[0]), "`web` is stopped");
    assert_eq!(refused(&stopped[1]), "there is no process `web`; none was started");
    for pid in ["main", "far"] {
        assert!(!alive(stage.pid(pid)), "{pid}");
    }
}

#[test]
fn starting_the_same_name_again_ends_the_first_process() {
    let stage = Stage::new();
    let again = SERVER.replace("> main", "> main2").replace("far", "far2");
    let script = Script::of(vec![
        calls(&[start("web", SERVER, Some("ready"))]),
        calls(&[start("web", &again, Some("ready"))]),
        calls(&[("listProcesses", json!({}))]),
        says("ok"),
    ]);
    let agent = stage.agent(&script);
    stage.session(&agent, "the task");
    let second = script.results(2).remove(0);
    assert!(fine(&second).contains("the old one of this name is ended"), "{}", second.text);
    assert_eq!(script.results(3)[0].text.lines().count(), 1);
    assert!(!alive(stage.pid("main")) && !alive(stage.pid("far")));
    assert!(alive(stage.pid("main2")) && alive(stage.pid("far2")));
    drop(agent);
    assert!(!alive(stage.pid("main2")) && !alive(stage.pid("far2")), "nothing outlives its agent");
    assert_eq!(children(), ["ralph-guard"], "only the sandbox's own guard is left, and no zombie");
}

#[test]
fn process_that_never_becomes_ready_reports_its_last_output() {
    let stage = Stage::new();
    let slow = json!({"name": "slow", "command": "echo still compiling; exec sleep 1000", "readySignal": "Ready in \\d+", "readyTimeout": 1});
    let played = stage.play(vec![
        calls(&[
            ("startProcess", slow),
            start("broken", "echo port 80 is taken >&2; exit 3", Some("ready")),
            start("missing", "no-such-program-here", None),
            ("startProcess", json!({"name": "x", "command": "true", "cwd": "../.."})),
            ("getProcessOutput", json!({"name": "unknown"})),
        ]),
        says("ok"),
    ]);
    let text = |at: usize| played.result(1, at).text;
    let never = "`slow` never became ready: `Ready in \\d+` is not in its output after 1 s. It still runs";
    assert!(
        refused(&played.result(1, 0)).starts_with(never) && text(0).ends_with("still compiling"),
        "{}",
        text(0)
    );
    let broken = "`broken` exited with code 3 before it was ready; last output:\nport 80 is taken";
    assert_eq!(refused(&played.result(1, 1)), broken);
    assert!(refused(&played.result(1, 2)).contains("exited with code 127"), "{}", text(2));
    assert!(refused(&played.result(1, 3)).contains("leads out"), "{}", text(3));
    assert!(refused(&played.result(1, 4)).contains("there are: broken, missing, slow"), "{}", text(4));
}

#[test]
fn process_gets_sigterm_then_sigkill() {
    let stage = Stage::new();
    let polite = "trap 'echo bye > bye; exit 0' TERM; echo up; while :; do sleep 0.02; done";
    let stubborn = "trap '' TERM; echo $$ > stubborn; echo up; while :; do sleep 0.02; done";
    let stop = |name: &str| ("stopProcess", json!({"name": name}));
    let played = stage.play(vec![
        calls(&[
            start("polite", polite, Some("up")),
            start("stubborn", stubborn, Some("up")),
            stop("polite"),
            stop("stubborn"),
        ]),
        says("ok"),
    ]);
    assert_eq!(fine(&played.result(1, 2)), "`polite` is stopped");
    assert_eq!(stage.read("bye"), "bye\n");
    assert_eq!(fine(&played.result(1, 3)), "`stubborn` is stopped");
    assert!(!alive(stage.pid("stubborn")));
}

#[test]
fn ready_text_is_found_in_split_and_flooded_output() {
    let stage = Stage::new();
    let flood = "printf 'Rea'; sleep 0.05; printf 'dy now'; seq 1 200000; exec sleep 1000";
    let result =
        stage.call("startProcess", json!({"name": "loud", "command": flood, "readySignal": "Ready now"}));
    fine(&result);
}

#[test]
fn process_gets_its_variables_and_folder() {
    let stage = Stage::new();
    stage.write("web/x", "");
    let input = json!({"name": "env", "command": "echo $GREETING from ${PWD##*/}; exec sleep 1000", "cwd": "web",
        "env": {"GREETING": "hello"}, "readySignal": "from"});
    let result = stage.call("startProcess", input);
    assert!(fine(&result).ends_with("hello from web"), "{}", result.text);
}

#[test]
fn next_session_sees_running_and_failed_processes() {
    let stage = Stage::new();
    // Waits until it sees the end of the second process.
    let script = Script::answering(|_, _, asked| {
        let heard = match asked.messages.last() {
            Some(Message::ToolResults { results }) => results[0].text.as_str(),
            _ if asked.messages.len() == 1 => "a task",
            other => panic!("{other:?}"),
        };
        Ok(match heard {
            _ if opening(asked).starts_with("stop") => says("ok"),
            "a task" => calls(&[
                start("web", SERVER, Some("ready")),
                start("brittle", "echo up; until [ -e go ]; do sleep 0.01; done; exit 7", Some("up")),
            ]),
            text if text.contains("exited with code 7") => says("ok"),
            _ => calls(&[
                ("getProcessOutput", json!({"name": "brittle"})),
                ("exec", json!({"command": "touch go; sleep 0.02"})),
            ]),
        })
    });
    let agent = stage.agent(&script);
    stage.session(&agent, "the task");
    agent.release_resources(ReleaseWhen::Idle);
    let next = || {
        stage.session(&agent, "stop");
        opening(&script.asked(script.turns() - 1))
    };
    let told = next();
    assert!(told.starts_with("stop") && told.contains("## Processes of earlier sessions"), "{told}");
    assert!(told.contains("- `brittle` exited with code 7 and is gone"), "{told}");
    assert!(told.contains("- `web` running for ") && told.contains("at http://localhost:4567/app"), "{told}");
    assert!(alive(stage.pid("main")), "a server keeps running");
    agent.release_resources(ReleaseWhen::Everything);
    assert!(!alive(stage.pid("main")) && !alive(stage.pid("far")));
    assert_eq!(next(), "stop");
}

#[test]
fn session_cancelled_while_waiting_ends_at_once() {
    let mut stage = Stage::new();
    stage.cancel_at = Some("> startProcess");
    let played = stage.play(vec![calls(&[start("slow", "exec sleep 1000", Some("never"))])]);
    assert!(matches!(played.report.end, ralph_loop_protocol::event::SessionEnd::Stopped { .. }));
}
