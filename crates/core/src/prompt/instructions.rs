//! Quotes the repo's agent instructions (`CLAUDE.md`, `AGENTS.md`, `GEMINI.md`). Agent CLIs don't read them:
//! they start without the repo's settings.

use ralph_loop_domain::state::RunState;
use ralph_loop_protocol::display::text::head;
use ralph_loop_safe_fs::{Links, SafeDir};
use std::fmt::Write as _;
use std::path::Path;

const NAMES: [&str; 3] = ["CLAUDE.md", "AGENTS.md", "GEMINI.md"];
/// Limits for one file and for all together.
const FILE_MAX: usize = 16 * 1024;
const ALL_MAX: usize = 32 * 1024;
const ABOUT: &str = "Follow them unless they contradict the task or the rules above.";

/// The instructions from the top of the workspace to the session's folder, and whether the run changed any.
pub(super) fn read(state: &RunState) -> (String, bool) {
    let task = &state.spec.task;
    let Ok(top) = SafeDir::open(&state.spec.workspace) else { return Default::default() };
    let mut folders: Vec<&Path> =
        Path::new(task.working_dir.as_deref().unwrap_or_default()).ancestors().collect();
    folders.reverse();
    let (mut out, mut seen, mut changed) = (String::new(), Vec::new(), false);
    for path in folders.iter().flat_map(|folder| NAMES.map(|name| folder.join(name))) {
        let name = path.display().to_string();
        let text = top.read_text(&path, Links::Inside, FILE_MAX as u64 + 1).unwrap_or_default();
        // Often one file links to or copies the other.
        if text.trim().is_empty() || seen.contains(&text) || task.context_files.contains(&name) {
            continue;
        }
        let left = ALL_MAX.saturating_sub(out.len()).min(FILE_MAX);
        let _ = writeln!(out, "\n## `{name}`\n");
        for line in head(&text, left).lines() {
            let _ = writeln!(out, "> {line}");
        }
        if text.len() > left {
            let _ = writeln!(out, "\n[cut here; the whole text is in `{name}`]");
        }
        changed |= state.work.touched.contains(&name);
        seen.push(text);
    }
    match out.is_empty() {
        true => Default::default(),
        false => (format!("{ABOUT}\n{out}"), changed),
    }
}
