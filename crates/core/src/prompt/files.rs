//! What a prompt takes from files: read once, bounded.

use ralph_domain::state::RunState;
use ralph_domain::text::{one_line, tail};
use ralph_journal::layout::{RalphDir, RunDir};
use ralph_safe_fs::{Kind, Links, SafeDir};
use std::fmt::Write as _;
use std::path::Path;

use super::{CHECK_MAX, PART_MAX};

const CONTEXT_MAX: usize = 50 * 1024;
const TREE_MAX: usize = 200;
/// What a session is shown of the last one's actions.
const RESULTS_MAX: usize = 16 * 1024;
/// The errors of a long run are shown from a place of this grid on, so that their beginning stays the same over many
/// sessions and a provider's cache holds.
const ERRORS_GRID: u64 = 8 * 1024;

/// What the prompt takes from files, read once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptFiles {
    /// Files that the task wants shown, and the list of files of its working folder.
    pub context: Vec<(String, String)>,
    /// Names of the workspace's files, for sessions that cannot look around.
    pub tree: String,
    /// `.ralph/guardrails.md`.
    pub guardrails: String,
    /// `.ralph/progress.md`.
    pub progress: String,
    /// `.ralph/notes.md`.
    pub notes: String,
    /// The end of `.ralph/errors.log`.
    pub errors: String,
    /// What the last session's actions came to, where it was one of kind `actions`: such a session sees no output itself.
    pub results: String,
    /// The end of each failing check's log: name, why, log path, text.
    pub failing: Vec<(String, String, String, String)>,
}

impl PromptFiles {
    /// Reads them; what is not there is empty.
    pub fn read(dir: &RalphDir, run: &RunDir, state: &RunState) -> Self {
        let text = |name: &str| dir.read_text(name, PART_MAX as u64 * 2);
        let failing = state
            .work
            .checks
            .values()
            .filter(|r| !r.passed)
            .map(|r| {
                let output = crate::log_tail::read_tail(&run.path().join(&r.log), CHECK_MAX as u64);
                (r.name.clone(), r.why.clone().unwrap_or_default(), r.log.clone(), output)
            })
            .collect();
        Self {
            context: context(state),
            tree: match state.spec.task.working_dir {
                Some(_) => String::new(),
                None => {
                    let mut names = Vec::new();
                    if let Ok(top) = SafeDir::open(&state.spec.workspace) {
                        tree(&top, Path::new("."), "", &mut names);
                    }
                    names.join("\n")
                }
            },
            guardrails: text("guardrails.md"),
            progress: text("progress.md"),
            notes: text("notes.md"),
            errors: recent_errors(dir),
            results: state
                .iterations
                .history
                .back()
                .map(|last| results(run, last.iteration))
                .unwrap_or_default(),
            failing,
        }
    }
}

/// The results of an `actions` session, each with the end of its output.
fn results(run: &RunDir, iteration: u32) -> String {
    let path = run.iteration(iteration).join("response.json");
    let Ok(text) = std::fs::read_to_string(path) else { return String::new() };
    let Ok(response) = serde_json::from_str::<serde_json::Value>(&text) else { return String::new() };
    if response["format"] != "actions" {
        return String::new();
    }
    let results = response["results"].as_array().map(Vec::as_slice).unwrap_or_default();
    let each = RESULTS_MAX / results.len().max(1);
    let mut out = String::new();
    for (at, result) in results.iter().enumerate() {
        let input = &response["answer"]["actions"][at];
        let word = |key: &str| result[key].as_str().unwrap_or_default();
        let what = ["command", "path", "message", "reason"]
            .iter()
            .find_map(|key| input[*key].as_str())
            .unwrap_or_default();
        let end = match (result["ok"].as_bool(), result["exit_code"].as_i64()) {
            (Some(true), _) => "done".to_owned(),
            (_, Some(code)) => format!("exit code {code}"),
            _ => "failed or skipped".to_owned(),
        };
        let heading = format!("{}. {} `{}`: {end}", result["n"], word("type"), one_line(what, 160));
        let _ = writeln!(out, "{heading}");
        for line in tail(word("result").trim_end(), each.max(200)).lines() {
            let _ = writeln!(out, "    {line}");
        }
    }
    out
}

/// Context files, together below 50 kB, and what is in the working folder.
fn context(state: &RunState) -> Vec<(String, String)> {
    let task = &state.spec.task;
    let Ok(top) = SafeDir::open(&state.spec.workspace) else { return Vec::new() };
    let mut left = CONTEXT_MAX;
    let mut shown = Vec::new();
    for name in &task.context_files {
        let text = top.read_text(name, Links::Inside, left as u64).unwrap_or_default();
        left = left.saturating_sub(text.len());
        let text =
            if left == 0 { format!("{text}\n\n[cut here; the whole text is in `{name}`]") } else { text };
        shown.push((name.clone(), text));
        if left == 0 {
            break;
        }
    }
    if let Some(folder) = &task.working_dir {
        let mut names = Vec::new();
        tree(&top, Path::new(folder), "", &mut names);
        shown.push((format!("{folder}/"), names.join("\n")));
    }
    shown
}

/// Names of files below a folder of the workspace, sorted, folders before what is in them; bounded. Links are named, not
/// followed.
fn tree(folder: &SafeDir, path: &Path, below: &str, names: &mut Vec<String>) {
    let Ok(found) = folder.entries(path, TREE_MAX) else { return };
    for entry in found {
        let Ok(name) = entry.name.into_string() else { continue };
        if name.starts_with('.') || name == "node_modules" || name == "target" {
            continue;
        }
        if names.len() >= TREE_MAX {
            return;
        }
        let is_dir = entry.kind == Kind::Folder;
        names.push(format!("{below}{name}{}", if is_dir { "/" } else { "" }));
        if is_dir {
            tree(folder, &path.join(&name), &format!("{below}{name}/"), names);
        }
    }
}

/// The last 8 to 16 kB of the errors (about 200 lines), from the start of an entry.
fn recent_errors(dir: &RalphDir) -> String {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let Ok(mut file) = dir.open_file("errors.log") else { return String::new() };
    let length = file.metadata().map_or(0, |m| m.len());
    let from = match length / ERRORS_GRID {
        0 | 1 => 0,
        cells => (cells - 1) * ERRORS_GRID,
    };
    if file.seek(SeekFrom::Start(from)).is_err() {
        return String::new();
    }
    let mut bytes = Vec::new();
    if file.take(2 * ERRORS_GRID).read_to_end(&mut bytes).is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if from == 0 {
        return text;
    }
    let whole = text.split_once('\n').map_or(text.as_str(), |(_, rest)| rest);
    format!("[the beginning is cut; the whole text is in `.ralph/errors.log`]\n\n{whole}")
}
