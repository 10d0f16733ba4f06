//! `ralph.json` and `tasks.json`: readers never panic, and setting `passes` keeps the file readable.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_domain::dialect::{Dialect, TaskTexts, parse, plan_edit, prd_tasks};

fuzz_target!(|text: &str| {
    let _ = parse(Dialect::RalphJson, &TaskTexts::new("ralph.json", text));
    if let Ok(plan) = prd_tasks::parse_text(text) {
        for story in &plan.user_stories {
            if let Ok(set) = plan_edit::set_passes(text, &story.id, !story.passes) {
                assert!(prd_tasks::parse_text(&set).is_ok());
            }
        }
    }
});
