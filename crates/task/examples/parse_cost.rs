//! Prints what reading large tasks costs: `cargo run --release -p ralph-loop-task --example parse_cost`.
#![allow(clippy::print_stdout, reason = "an example that prints its measurements")]

use ralph_loop_task::dialect::plan::plan_edit;
use ralph_loop_task::dialect::{Dialect, TaskTexts, checkbox, parse};
use ralph_loop_task::lint::{LintFacts, lint};
use std::time::Instant;

fn main() {
    for (name, dialect, text) in [
        ("ralph_task.md", Dialect::RalphTaskMd, task_md()),
        ("ralph.json", Dialect::RalphJson, ralph_json()),
        ("tasks.json", Dialect::Plan, tasks_json()),
        ("PROMPT.md", Dialect::PromptMd, format!("# Task\n{}", "word ".repeat(200_000))),
    ] {
        let size = text.len() as f64 / 1e6;
        let files = TaskTexts::new(name, text);
        let parsed = time(|| parse(dialect, &files).is_ok());
        let linted = time(|| !lint(dialect, &files, &LintFacts::default()).refuses());
        println!("{name:14} {size:.2} MB   parse {parsed}   lint {linted}");
    }
    let (md, json) = (task_md(), tasks_json());
    println!("tick           {}", time(|| checkbox::tick(&md, "M1.9").is_ok()));
    println!("set_passes     {}", time(|| plan_edit::set_passes(&json, "US-9", true).is_ok()));
}

fn time(mut work: impl FnMut() -> bool) -> String {
    let rounds = 10;
    let start = Instant::now();
    let fine = (0..rounds).all(|_| work());
    let each = start.elapsed().as_secs_f64() * 1e3 / f64::from(rounds);
    format!("{each:6.2} ms{}", if fine { "" } else { " (refused)" })
}

fn task_md() -> String {
    let mut text = String::from(
        "---\ntask_id: big\ntest_command: make test\nmax_iterations: 5\nmax_wall_time_minutes: 5\nmax_tokens_total: 5\n---\n# Task: Big\n\n## Success criteria\n### Milestone M1 — all\n",
    );
    for i in 1..=9_000 {
        let line = format!(
            "- [ ] M1.{i} The file `src/part_{i}.rs` answers request {i} with the right bytes\n  - verify: `cargo test part_{i}`\n"
        );
        text.push_str(&line);
    }
    text
}

fn ralph_json() -> String {
    let entry = |i: usize| {
        format!(
            "{{\"type\": \"command_succeeds\", \"command\": \"cargo test part_{i}\", \"description\": \"Part {i} answers its request with the right bytes\"}}"
        )
    };
    let entries: Vec<String> = (0..8_000).map(entry).collect();
    format!("{{\"task\": \"Big\", \"acceptance_criteria\": [{}]}}", entries.join(","))
}

fn tasks_json() -> String {
    let story = |i: usize| {
        let needs = if i == 0 { String::new() } else { format!("\"US-{}\"", i - 1) };
        format!(
            "{{\"id\": \"US-{i}\", \"title\": \"Part {i}\", \"description\": \"It answers its request.\", \"acceptanceCriteria\": [\"`cargo test part_{i}` passes\"], \"priority\": {i}, \"passes\": false, \"notes\": \"\", \"dependsOn\": [{needs}]}}"
        )
    };
    let stories: Vec<String> = (0..5_000).map(story).collect();
    format!("{{\"verifyCommands\": [\"cargo test\"], \"userStories\": [{}]}}", stories.join(",\n"))
}
