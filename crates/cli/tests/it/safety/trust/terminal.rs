//! The permission question on a terminal.

use super::Place;
use serde_json::json;
use std::io::Write as _;
use std::process::Stdio;

/// Runs `ralph` on a separate terminal and types `answer`. Returns the exit code and the screen.
fn on_terminal(place: &Place, args: &str, answer: &str) -> Option<(i32, String)> {
    let line = format!("{} {args}", super::RALPH);
    let command = place.command(&place.env.path("repo"), &[]);
    let mut shell = std::process::Command::new("script");
    shell.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(place.env.path("repo"));
    shell
        .env_clear()
        .envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))))
        .env("TERM", "xterm");
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match shell.spawn() {
        Ok(child) => child,
        Err(error) => {
            ralph_loop_testkit::skip(&format!("`script` makes the terminal: {error}"));
            return None;
        }
    };
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(answer.as_bytes()).unwrap();
    let output = {
        let done = child.wait_with_output().unwrap();
        drop(stdin);
        done
    };
    Some((output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned()))
}

#[test]
fn terminal_asks_the_user_once() {
    let place = Place::new();
    place.config(&json!({"allowed_hosts": ["a.example"]}));
    let run = "run --new --isolation none";
    let Some((code, screen)) = on_terminal(&place, run, "n\n") else { return };
    assert_eq!(code, 3, "{screen}");
    assert!(screen.contains("This repository asks for:"), "{screen}");
    assert!(screen.contains("+ network access to `a.example`"), "{screen}");
    assert!(screen.contains("[y/N]") && screen.contains("not started"), "{screen}");
    assert_eq!(place.runs(), 0);
    let (code, screen) = on_terminal(&place, run, "y\n").unwrap();
    assert_eq!(code, 0, "{screen}");
    std::fs::remove_file(place.env.path("repo/part.txt")).unwrap();
    let (code, screen) = on_terminal(&place, run, "").unwrap();
    assert_eq!(code, 0, "{screen}");
    assert!(!screen.contains("[y/N]"), "asked twice: {screen}");
    place.config(&json!({"allowed_hosts": ["a.example", "b.example"]}));
    let (code, screen) = on_terminal(&place, "trust", "n\n").unwrap();
    assert_eq!(code, 3, "{screen}");
    assert!(
        screen.contains("+ network access to `b.example`") && screen.contains("1 thing already allowed"),
        "{screen}"
    );
    let (code, _) = on_terminal(&place, "trust", "yes\n").unwrap();
    assert_eq!(code, 0);
    place.run(&[]).exits(0);
}
