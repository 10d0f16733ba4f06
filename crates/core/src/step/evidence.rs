//! Evidence: data for the stuck rules that no event has, read from an iteration's files. Reads are bounded,
//! so that cost doesn't depend on output size.

use crate::record::log_tail::read_tail;
use crate::step::checks::environment;
use crate::step::{stuck_signs, tick};
use ralph_loop_domain::state::{Current, RunState};
use ralph_loop_domain::stuck::lines::patch::{PATCH_MAX, PatchSketch};
use ralph_loop_domain::stuck::{Evidence, SessionCall, SessionLoop, SessionWatch, plan};
use ralph_loop_proof::report::failing;
use serde_json::Value;
use std::path::Path;

const OUTPUT_MAX: u64 = 64 * 1024;
const ACTIONS_MAX: u64 = 128 * 1024;
/// Calls awaiting results at once.
const OPEN_MAX: usize = 64;

/// The evidence of the iteration in `folder`.
pub(crate) fn read(state: &RunState, current: &Current, run_dir: &Path, folder: &Path) -> Evidence {
    let mut output = String::new();
    for result in
        state.work.checks.values().filter(|r| !r.passed && Some(&r.tree) == state.work.tree.as_ref())
    {
        output.push_str(&read_tail(&run_dir.join(&result.log), OUTPUT_MAX));
        output.push('\n');
    }
    let message = current.session.as_ref().map_or("", |s| s.message.as_str());
    let changed = current.change.as_ref().is_some_and(|c| c.files > 0);
    let mut evidence = Evidence {
        failing: failing::failing_tests(&output),
        problems: failing::problems(&output),
        gap: failing::gap(&output),
        met: tick::met(state).len() as u32,
        plan: plan::shingles(message),
        patch: changed.then(|| sketch(&folder.join("git_diff.patch"))).flatten(),
        session: circles(&read_tail(&folder.join("actions.jsonl"), ACTIONS_MAX)),
        environment: environment::fault_of(state, run_dir),
        ..Evidence::default()
    };
    stuck_signs::add_numbers(&mut evidence, state, run_dir);
    evidence
}

/// A sketch of the patch; `None` if it is lost or was cut.
fn sketch(path: &Path) -> Option<PatchSketch> {
    let patch = read_head(path);
    if patch.trim().is_empty() {
        return None;
    }
    let sketch = ralph_loop_domain::stuck::lines::patch::sketch(&patch);
    // Behind a flood of generated lines there may be unread work.
    let cut = patch.len() >= PATCH_MAX;
    (!cut || sketch.substance > 0).then_some(sketch)
}

/// Detects repeated actions in a session. A line that includes its call's result is weighed with it.
fn circles(actions: &str) -> Option<SessionLoop> {
    let mut watch = SessionWatch::default();
    // Calls whose result comes on a later line, in order.
    let mut open: Vec<(String, String, String)> = Vec::new();
    for line in actions.lines() {
        let Ok(action) = serde_json::from_str::<Value>(line) else { continue };
        let word = |key: &str| action[key].as_str().unwrap_or_default();
        let failed = action["is_error"] == true || action["ok"] == false;
        match word("type") {
            "message" => drop(watch.message(word("text"))),
            "result" => {
                if let Some(at) = open.iter().position(|(id, ..)| id == word("id")) {
                    let (_, name, input) = open.remove(at);
                    watch.call(SessionCall::of(&name, &input, Some(word("result")), failed));
                }
            }
            kind => {
                let name = action["name"].as_str().unwrap_or(kind).to_owned();
                let input = action["input"].to_string();
                let came = if action["output"].is_string() { &action["output"] } else { &action["result"] };
                match (came, word("id")) {
                    (Value::Null, "") => drop(watch.call(SessionCall::of(&name, &input, None, failed))),
                    (Value::Null, id) => {
                        open.push((id.to_owned(), name, input));
                        if open.len() > OPEN_MAX {
                            let (_, name, input) = open.remove(0);
                            watch.call(SessionCall::of(&name, &input, None, false));
                        }
                    }
                    (Value::String(text), _) => {
                        watch.call(SessionCall::of(&name, &input, Some(text), failed));
                    }
                    (other, _) => {
                        watch.call(SessionCall::of(&name, &input, Some(&other.to_string()), failed));
                    }
                }
            }
        }
    }
    for (_, name, input) in open {
        watch.call(SessionCall::of(&name, &input, None, false));
    }
    watch.finish()
}

fn read_head(path: &Path) -> String {
    use std::io::Read as _;
    let Ok(file) = ralph_loop_journal::folder::plain::read(path) else { return String::new() };
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
        assert_eq!(circles("no json\n\n"), None);
    }

    #[test]
    fn a_result_in_a_line_of_its_own_belongs_to_its_call() {
        let pair = |id: usize, call: &str, result: &str| {
            format!(
                "{{\"type\":\"tool_use\",\"name\":\"Bash\",\"input\":\"{call}\",\"id\":\"t{id}\"}}\n\
                 {{\"type\":\"result\",\"id\":\"t{id}\",\"is_error\":false,\"result\":\"{result}\"}}\n"
            )
        };
        let same: String = (0..4).map(|n| pair(n, "make", "error: no rule")).collect();
        assert_eq!(circles(&same), Some(SessionLoop::Repeated { times: 4 }));
        let moving: String = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
            .iter()
            .enumerate()
            .map(|(n, word)| pair(n, "make", word))
            .collect();
        assert_eq!(circles(&moving), None, "the same call with another result each time isn't a circle");
        let turns: String =
            (0..8).map(|n| if n % 2 == 0 { pair(n, "make", "x") } else { pair(n, "cat log", "y") }).collect();
        assert_eq!(circles(&turns), Some(SessionLoop::Alternating { period: 2 }));
    }

    #[test]
    fn words_without_any_action_are_a_monologue_and_actions_of_every_kind_are_read() {
        let words = "{\"type\":\"message\",\"text\":\"let me think\"}\n".repeat(6);
        assert_eq!(circles(&words), Some(SessionLoop::Monologue { messages: 6 }));
        let run =
            "{\"n\":1,\"type\":\"run\",\"input\":{\"command\":\"make\"},\"ok\":false,\"result\":\"boom\"}\n";
        assert_eq!(circles(&run.repeat(3)), Some(SessionLoop::Failing { times: 3 }));
    }
}
