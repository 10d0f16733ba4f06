//! A model's answer and a diff in it: both readers never panic, and what they take holds to their bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_agents::actions::{Action, intake, patch};
use std::path::Path;

fuzz_target!(|text: &str| {
    if let Ok((contract, _)) = intake::read(text) {
        assert!(!contract.summary.is_empty() && contract.actions.len() <= 200);
        for action in &contract.actions {
            if let Action::Patch { path, patch, .. } = action {
                let _ = patch::apply(Path::new(path), patch, Some(text.as_bytes()));
            }
        }
    }
    let (file, diff) = text.split_at(text.floor_char_boundary(text.len() / 2));
    let _ = patch::apply(Path::new("a"), diff, Some(file.as_bytes()));
});
