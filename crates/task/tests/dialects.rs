//! Property tests: no text makes a parser panic, and a change of one mark changes one byte.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::collection::vec;
use proptest::prelude::*;
use ralph_loop_task::dialect::plan::plan_edit::{changed_illegally, set_all_passes};
use ralph_loop_task::dialect::{Dialect, TaskTexts, checkbox, detect_text, frontmatter, parse, template};
use ralph_loop_task::lint::{LintFacts, apply_fixes, lint, prompt_sections};
use std::collections::BTreeMap;

/// Text built from the tokens that the parsers look for: it reaches more corner cases than random text.
fn markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("---\n".to_owned()),
        Just("\u{feff}".to_owned()),
        Just("## Success criteria\n".to_owned()),
        Just("### Milestone M2 — x\n".to_owned()),
        Just("# ".to_owned()),
        Just("- [ ] ".to_owned()),
        Just("* [x] ".to_owned()),
        Just("1. [\t] ".to_owned()),
        Just("- [] ".to_owned()),
        Just("- [ ]".to_owned()),
        Just("\\[ ] ".to_owned()),
        Just("  - verify: `cmd`\n".to_owned()),
        Just("  - verify:".to_owned()),
        Just("M1.1 ".to_owned()),
        Just("M2.1: ".to_owned()),
        Just("> ".to_owned()),
        Just("```\n".to_owned()),
        Just("    ".to_owned()),
        Just("\t".to_owned()),
        Just("\r\n".to_owned()),
        Just("\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("task_id: a\n".to_owned()),
        Just("verify_commands: [x]\n".to_owned()),
        Just("pr:\n\tdraft: true\n".to_owned()),
        Just("[x]: http://x\n".to_owned()),
        Just("[2026-01-01] ".to_owned()),
        Just("<div>\n".to_owned()),
        Just("|a|b|\n".to_owned()),
        Just("é→𝒳 ".to_owned()),
        "[ -~]{0,8}",
        any::<char>().prop_map(String::from),
    ];
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn json_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just(",".to_owned()),
        Just(":".to_owned()),
        Just("\"task\":\"t\"".to_owned()),
        Just("\"userStories\":[{\"id\":\"a\",\"passes\":false}]".to_owned()),
        Just("\"acceptance_criteria\":[{\"type\":\"file_exists\",\"path\":\"x\"}]".to_owned()),
        Just("\"\\ud800\"".to_owned()),
        Just("\"é\\\"".to_owned()),
        Just("1e999".to_owned()),
        Just("null".to_owned()),
        Just("\n".to_owned()),
        "[ -~]{0,6}",
    ];
    vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

fn read_everything(text: &str) {
    let _ = frontmatter::split(text);
    let _ = checkbox::read(text, 0);
    let _ = checkbox::set_all(text, &BTreeMap::from([("M1.1", true)]));
    let _ = set_all_passes(text, &BTreeMap::from([("a", true)]));
    let _ = changed_illegally(text, text);
    let _ = template::fill(text, &template::Vars::new().with("task_id", "x"));
    let _ = (template::open_names(text), template::unknown_names(text), prompt_sections(text));
    let _ = detect_text("x", text);
    for dialect in Dialect::ALL {
        let files = TaskTexts::new(dialect.main_file(), text)
            .with("ralph/prd.md", text)
            .with("ralph/prompt.md", text);
        let report = lint(dialect, &files, &LintFacts::default());
        assert!(report.task.is_some() || report.refuses(), "no task, no reason");
        let again = lint(dialect, &files, &LintFacts::default());
        assert_eq!(report, again, "the same text, the same findings");
        let _ = apply_fixes(text, &report.diagnostics);
        assert!(report.refuses() || parse(dialect, &files).is_ok(), "what the linter takes can be parsed");
    }
}

fn with_section(text: &str) -> String {
    format!("---\ntask_id: t\n---\n## Success criteria\n{text}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_a_reader_panic(text in any::<String>()) {
        read_everything(&text);
    }

    #[test]
    fn no_markdown_makes_a_reader_panic(text in markdown()) {
        read_everything(&text);
        read_everything(&with_section(&text));
    }

    #[test]
    fn no_json_makes_a_reader_panic(text in json_text()) {
        read_everything(&text);
        read_everything(&format!("{{{text}}}"));
    }

    #[test]
    fn a_tick_changes_exactly_one_byte_and_nothing_else_that_is_read(text in markdown()) {
        let text = with_section(&text);
        let from = frontmatter::split(&text).unwrap().body.start;
        let before = checkbox::read(&text, from);
        for (at, entry) in before.boxes.iter().enumerate() {
            let changed = checkbox::set_all(&text, &BTreeMap::from([(entry.id.as_str(), !entry.ticked)]));
            if before.boxes.iter().filter(|other| other.id == entry.id).count() > 1 {
                prop_assert_eq!(&changed, &text, "an id with two boxes");
                continue;
            }
            prop_assert_eq!(changed.len(), text.len());
            let differ: Vec<usize> =
                (0..text.len()).filter(|i| text.as_bytes()[*i] != changed.as_bytes()[*i]).collect();
            prop_assert_eq!(differ, vec![entry.mark]);
            let mut expected = before.clone();
            expected.boxes[at].ticked = !entry.ticked;
            prop_assert_eq!(checkbox::read(&changed, from), expected);
        }
    }

    #[test]
    fn safe_edits_terminate(text in markdown()) {
        let mut text = with_section(&text);
        let mut left = Vec::new();
        for _ in 0..6 {
            let report = lint(Dialect::RalphTaskMd, &TaskTexts::new("ralph_task.md", text.as_str()), &LintFacts::default());
            left = report.diagnostics.into_iter().filter(|d| d.edit.is_some()).collect();
            text = apply_fixes(&text, &left);
        }
        prop_assert!(left.is_empty(), "{:?}\n{}", left, text);
    }

    #[test]
    fn setting_and_resetting_passes_restores_the_file(flags in vec(any::<bool>(), 1..6), at in 0usize..6, blank in "[ \t\r\n]{0,3}") {
        let at = at % flags.len();
        let stories: Vec<String> = flags
            .iter()
            .enumerate()
            .map(|(i, passes)| format!("{{{blank}\"title\":\"é \\\"passes\\\": true\",\"passes\"{blank}:{blank}{passes}{blank},\"id\":\"S{i}\"}}"))
            .collect();
        let text = format!("\u{feff}{{\"userStories\":{blank}[{}]{blank}}}{blank}", stories.join(","));
        let id = format!("S{at}");
        let changed = set_all_passes(&text, &BTreeMap::from([(id.as_str(), !flags[at])])).unwrap();
        let task = parse(Dialect::Plan, &TaskTexts::new("tasks.json", changed.as_str())).unwrap();
        for (i, story) in task.stories.iter().enumerate() {
            prop_assert_eq!(story.passes, flags[i] != (i == at));
        }
        prop_assert!(changed_illegally(&text, &changed).is_empty());
        prop_assert_eq!(set_all_passes(&changed, &BTreeMap::from([(id.as_str(), flags[at])])).unwrap(), text);
    }
}

#[test]
fn hostile_files_are_read_or_refused_in_bounded_time() {
    let laughs: String = std::iter::once("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned())
        .chain((1..60).map(|i| format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 10].join(", "))))
        .collect();
    let story =
        |i: usize| format!("{{\"id\":\"é{i}\",\"title\":\"t\",\"passes\":false,\"dependsOn\":[\"x{i}\"]}}");
    let stories: Vec<String> = (0..12_000).map(story).collect();
    for (dialect, text) in [
        (Dialect::RalphTaskMd, format!("---\n{laughs}---\n")),
        (Dialect::RalphTaskMd, format!("---\npr: {}\n---\n", "{a: ".repeat(50_000))),
        (Dialect::RalphTaskMd, with_section(&"> ".repeat(50_000))),
        (Dialect::RalphTaskMd, with_section(&"- ".repeat(5_000))),
        (Dialect::RalphTaskMd, with_section(&"*a **a ".repeat(50_000))),
        (Dialect::RalphTaskMd, with_section(&"- [ ] M1.1 a\n".repeat(40_000))),
        (Dialect::RalphTaskMd, with_section(&"### Milestone A\n- [ ] a\n".repeat(20_000))),
        (Dialect::RalphTaskMd, with_section(&"[".repeat(50_000))),
        (Dialect::RalphJson, format!("{{\"task\":{}}}", "[".repeat(1_000_000))),
        (Dialect::RalphJson, format!("{{{}}}", vec!["\"tsk\":1"; 40_000].join(","))),
        (Dialect::Plan, format!("{{\"userStories\":[{}]}}", stories.join(","))),
        (Dialect::RalphTaskMd, "x".repeat(10_000_000)),
        (Dialect::PromptMd, "x".repeat(10_000_000)),
    ] {
        let report = lint(dialect, &TaskTexts::new("task", text), &LintFacts::default());
        assert!(report.refuses());
    }
}

/// The findings for the worst file that can still be parsed, as users see them.
#[test]
fn a_bad_task_is_explained_line_by_line() {
    let text = "---\r\nmax_iterations: 5\r\nsandbox_provider: dokcer\r\n---\r\n# Task: Bad\r\n\r\n## Context\r\n- [ ] not here\r\n\r\n## Success criteria\r\n- [ ] M1.1 It works correctly\r\n- [ ] Ünï\r\n  - verify: `a` or `b`\r\n- [] M1.3 almost\r\n- [ ] M1.1 again\r\n  - verify: `npm test`\r\n";
    let report = lint(Dialect::RalphTaskMd, &TaskTexts::new("ralph_task.md", text), &LintFacts::default());
    let shown: Vec<String> = report
        .diagnostics
        .iter()
        .map(|d| {
            let fixable = if d.edit.is_some() { " [--fix]" } else { "" };
            format!(
                "{}:{}:{}: {} {}: {}\n    {}{fixable}",
                d.file,
                d.line,
                d.column,
                d.severity.as_str(),
                d.rule,
                d.message,
                d.fix
            )
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}
