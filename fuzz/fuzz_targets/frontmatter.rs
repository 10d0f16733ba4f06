//! A whole `ralph_task.md`: splitter, YAML, boxes and linter never panic, and fixes come to an end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_domain::dialect::{Dialect, TaskTexts};
use ralph_domain::lint::{LintFacts, apply_fixes, lint};

fuzz_target!(|text: &str| {
    let mut text = text.to_owned();
    for _ in 0..4 {
        let report = lint(Dialect::RalphTaskMd, &TaskTexts::new("ralph_task.md", &text), &LintFacts::default());
        let fixed = apply_fixes(&text, &report.diagnostics);
        if fixed == text {
            break;
        }
        text = fixed;
    }
});
