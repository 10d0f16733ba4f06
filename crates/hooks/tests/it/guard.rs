//! The command guard on lists of commands. Nothing in them is ever run; `⏎` stands for a line break.

use ralph_loop_hooks::guard::{AllowRules, Guard, PathRules};

/// Of the 76 dangerous held-out commands, at least this many are refused.
const HELD_OUT_CAUGHT_MIN: usize = 70;
/// Of the 66 harmless held-out commands, at most this many are refused.
const HELD_OUT_ALARMS_MAX: usize = 3;

/// Of 1,000 harmless commands of published packages, at most this many are refused.
const PUBLISHED_ALARMS_MAX: usize = 5;

fn guard() -> Guard {
    let paths = PathRules {
        home: "/home/user".into(),
        project: "/home/user/src/app".into(),
        cwd: "/home/user/src/app".into(),
        own: vec!["/usr/local/bin/ralph".into()],
    };
    Guard::new(paths, AllowRules::default())
}

/// The commands of a list that are refused, and the others.
fn judged(list: &str) -> (Vec<String>, Vec<String>) {
    let guard = guard();
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with("## "));
    lines.map(|line| line.replace('⏎', "\n")).partition(|command| guard.judge_command(command).is_some())
}

#[test]
fn attacks_are_refused() {
    let (_, missed) = judged(include_str!("guard/attacks.txt"));
    assert!(missed.is_empty(), "{} got through:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn everyday_commands_are_let_through() {
    let (refused, _) = judged(include_str!("guard/everyday.txt"));
    assert!(refused.is_empty(), "{} were refused:\n{}", refused.len(), refused.join("\n"));
}

/// These were written before the rules, and rules aren't chosen on them.
#[test]
fn held_out_commands_are_judged_as_promised() {
    let dangerous: Vec<&str> = include_str!("guard/held-out-dangerous.tsv")
        .lines()
        .filter_map(|line| Some(line.split_once('\t')?.1))
        .collect();
    let (caught, missed) = judged(&dangerous.join("\n"));
    assert_eq!(dangerous.len(), 76);
    assert!(caught.len() >= HELD_OUT_CAUGHT_MIN, "{} got through:\n{}", missed.len(), missed.join("\n"));
    let (refused, passed) = judged(include_str!("guard/held-out-harmless.txt"));
    assert_eq!(refused.len() + passed.len(), 66);
    assert!(refused.len() <= HELD_OUT_ALARMS_MAX, "{} were refused:\n{}", refused.len(), refused.join("\n"));
}

/// Scripts, makefiles and CI files of published packages (`scripts/guard-corpus` collects them), every third one.
#[test]
fn commands_of_published_packages_are_let_through() {
    let harmless =
        include_str!("guard/published.tsv").lines().filter_map(|line| line.strip_prefix("harmless\t"));
    let harmless: Vec<&str> = harmless.step_by(3).collect();
    let (refused, _) = judged(&harmless.join("\n"));
    let most = harmless.len() * PUBLISHED_ALARMS_MAX / 1000;
    assert!(refused.len() <= most, "{} were refused:\n{}", refused.len(), refused.join("\n"));
}
