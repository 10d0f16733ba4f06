//! Evidence: what the stuck rules want to know of an iteration and no event says, read from its files. Every read is
//! bounded, so that an iteration costs the same however much it printed.

use crate::step::judge::read_tail;
use crate::step::tick;
use ralph_domain::state::{Current, RunState};
use ralph_domain::stuck::patch::{PATCH_MAX, PatchSketch};
use ralph_domain::stuck::{Call, Evidence, SessionLoop, SessionWatch, failing, plan};
use serde_json::Value;
use std::path::Path;

/// Bytes of each check's output.
const OUTPUT_MAX: u64 = 64 * 1024;
/// Bytes of the actions (their end).
const ACTIONS_MAX: u64 = 128 * 1024;

/// What the iteration in `folder` shows.
pub(crate) fn read(state: &RunState, current: &Current, run_dir: &Path, folder: &Path) -> Evidence {
    let mut output = String::new();
    for result in state.checks.values().filter(|r| !r.passed && Some(&r.tree) == state.tree.as_ref()) {
        output.push_str(&read_tail(&run_dir.join(&result.log), OUTPUT_MAX));
        output.push('\n');
    }
    let message = current.session.as_ref().map_or("", |s| s.message.as_str());
    let changed = current.change.as_ref().is_some_and(|c| c.files > 0);
    Evidence {
        failing: failing::failing_tests(&output),
        problems: failing::problems(&output),
        gap: failing::gap(&output),
        met: tick::met(state).len() as u32,
        plan: plan::shingles(message),
        patch: changed.then(|| sketch(&folder.join("git_diff.patch"))).flatten(),
        session: circles(&read_tail(&folder.join("actions.jsonl"), ACTIONS_MAX)),
    }
}

/// What the patch is made of; one that was lost, or of which too little was read, says nothing.
fn sketch(path: &Path) -> Option<PatchSketch> {
    let patch = read_head(path);
    if patch.trim().is_empty() {
        return None;
    }
    let sketch = PatchSketch::read(&patch);
    // Behind a flood of generated lines there may be work that was not read.
    let cut = patch.len() >= PATCH_MAX;
    (!cut || sketch.substance > 0).then_some(sketch)
}

/// Feeds the session's actions to the watch. A line that also tells the result of its call is weighed with it.
fn circles(actions: &str) -> Option<SessionLoop> {
    let mut watch = SessionWatch::default();
    for line in actions.lines() {
        let Ok(action) = serde_json::from_str::<Value>(line) else { continue };
        let Some(name) = action["name"].as_str() else { continue };
        let result = match &action["result"] {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        let failed = action["is_error"].as_bool().unwrap_or(false);
        watch.call(Call::of(name, &action["input"].to_string(), result.as_deref(), failed));
    }
    watch.finish()
}

fn read_head(path: &Path) -> String {
    use std::io::Read as _;
    let Ok(file) = std::fs::File::open(path) else { return String::new() };
    let mut bytes = Vec::new();
    if file.take(PATCH_MAX as u64).read_to_end(&mut bytes).is_err() {
        return String::new();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_with_results_circle_at_the_fourth_and_without_at_the_eighth() {
        let line =
            |result: &str| format!("{{\"type\":\"tool\",\"name\":\"Read\",\"input\":{{\"p\":1}}{result}}}\n");
        assert_eq!(circles(&line("").repeat(7)), None);
        assert_eq!(circles(&line("").repeat(8)), Some(SessionLoop::Repeated { times: 8 }));
        assert_eq!(circles(&line(",\"result\":\"x\"").repeat(4)), Some(SessionLoop::Repeated { times: 4 }));
        assert_eq!(
            circles(&line(",\"result\":\"x\",\"is_error\":true").repeat(3)),
            Some(SessionLoop::Failing { times: 3 })
        );
        assert_eq!(circles("no json\n{}\n"), None);
    }
}
