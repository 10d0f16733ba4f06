//! Changing the guard itself. Its files are found by their place, whatever touches them; these are the programs.

use super::Call;
use crate::guard::category::{Category, Refusal};

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    let refuse = |why: &str| call.refuse(Category::Guard, why);
    let verbs = call.verbs();
    match call.name {
        "ralph" => {
            let changes = verbs.starts_with(&["plugin", "uninstall"])
                || verbs.starts_with(&["plugin", "install"])
                || verbs.starts_with(&["trust"]) && verbs.len() > 1;
            if changes { refuse("Hooks and trust are the person's to change.") } else { None }
        }
        "claude" => {
            let plugin = verbs.first().is_some_and(|verb| ["plugin", "plugins"].contains(verb))
                && !verbs.get(1).is_some_and(|verb| ["list", "validate"].contains(verb));
            let settings = verbs.first() == Some(&"config")
                || call.option(&[
                    "--settings",
                    "--setting-sources",
                    "--dangerously-skip-permissions",
                    "--safe-mode",
                    "--bare",
                ]);
            if plugin || settings { refuse("Hooks and settings are the person's to change.") } else { None }
        }
        "codex"
            if call.option(&[
                "--dangerously-bypass-hook-trust",
                "--dangerously-bypass-approvals-and-sandbox",
                "--yolo",
            ]) =>
        {
            refuse("Hooks and settings are the person's to change.")
        }
        "gemini" | "qwen"
            if call.option(&["--yolo", "-y"]) || call.value(&["--approval-mode"]) == Some("yolo") =>
        {
            refuse("A session without its guard is the person's to start.")
        }
        "unset"
            if call
                .operands()
                .any(|arg| arg.text.starts_with("RALPH_") || arg.text.starts_with("CLAUDE_")) =>
        {
            refuse("The hooks stand on it.")
        }
        "mv" | "cp" | "ln" | "rm" | "chmod" | "install" | "dd" | "truncate" => {
            let touched = call.operands().map(|arg| (call.resolve)(&arg.text)).find(|path| {
                call.places.writing(path).is_some_and(|(category, _)| category == Category::Guard)
            });
            // Copying one of them is reading it; making one is not.
            let only_read =
                call.name == "cp" && call.operands().last().map(|arg| (call.resolve)(&arg.text)) != touched;
            if touched.is_some() && !only_read { refuse("The guard stands on it.") } else { None }
        }
        _ => None,
    }
}
