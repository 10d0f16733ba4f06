//! Commands against the guard: what somebody would try to get past it, one technique each, and what people type every day. Nothing of
//! it is ever run. `⏎` stands for a line break.

use ralph_loop_hooks::guard::{AllowRules, Guard, Places};

fn guard() -> Guard {
    let places = Places {
        home: "/home/user".into(),
        project: "/home/user/src/app".into(),
        cwd: "/home/user/src/app".into(),
        own: vec!["/usr/local/bin/ralph".into()],
    };
    Guard::new(places, AllowRules::default())
}

fn commands(text: &str) -> impl Iterator<Item = String> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with("## "))
        .map(|line| line.replace('⏎', "\n"))
}

#[test]
fn attacks_are_refused() {
    let guard = guard();
    let missed: Vec<String> = commands(include_str!("guard/attacks.txt"))
        .filter(|command| guard.judge_command(command).is_none())
        .collect();
    assert!(missed.is_empty(), "{} got through:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn everyday_commands_are_let_through() {
    let guard = guard();
    let refused: Vec<String> = commands(include_str!("guard/everyday.txt"))
        .filter_map(|command| Some(format!("{command}\n    {}", guard.judge_command(&command)?.message())))
        .collect();
    assert!(refused.is_empty(), "{} were refused:\n{}", refused.len(), refused.join("\n"));
}
