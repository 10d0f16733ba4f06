//! Reads the files a prompt uses, bounded.

use ralph_loop_domain::state::RunState;
use ralph_loop_journal::folder::layout::{RalphDir, RunDir};
use ralph_loop_protocol::display::text::{one_line, tail};
use ralph_loop_safe_fs::{Kind, Links, SafeDir};
use std::fmt::Write as _;
use std::path::Path;

use super::{CHECK_MAX, PART_MAX, instructions, plan};

const CONTEXT_MAX: usize = 50 * 1024;
const TREE_MAX: usize = 200;
/// Limit for the last session's action results.
const RESULTS_MAX: usize = 16 * 1024;
/// Step for the start of the quoted errors: the prefix stays stable over many sessions, so provider caches
/// hit.
const ERRORS_GRID: u64 = 8 * 1024;

/// File contents for a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptFiles {
    /// The task's context files that the run hasn't changed.
    pub context: Vec<(String, String)>,
    /// Those the run has changed.
    pub changed_context: Vec<(String, String)>,
    /// The repo's agent instructions, quoted, and whether the run changed them.
    pub instructions: (String, bool),
    /// File names in the workspace or the task's working folder, for sessions that can't look around or are
    /// limited to that folder.
    pub tree: String,
    /// A plan's next story with its criteria, or why there isn't one.
    pub story: String,
    /// `.ralph/guardrails.md`.
    pub guardrails: String,
    /// `.ralph/progress.md`, or a plan's `progress.txt`.
    pub progress: String,
    /// `.ralph/notes.md`, and notes for this run.
    pub notes: String,
    /// The end of this run's errors.
    pub errors: String,
    /// Results of the last session's actions: sessions of kind `actions` see no output.
    pub results: String,
    /// The end of each failing check's log: name, reason, log path, text.
    pub failing: Vec<(String, String, String, String)>,
}

impl PromptFiles {
    /// Reads the files; missing ones are empty.
    pub fn read(dir: &RalphDir, run: &RunDir, state: &RunState) -> Self {
        let text = |name: &str| dir.read_text(name, PART_MAX as u64 * 2);
        let (context, changed_context) = context(state);
        let mut names = Vec::new();
        if let Ok(top) = SafeDir::open(&state.spec.workspace) {
            let folder = state.spec.task.working_dir.as_deref().unwrap_or(".");
            tree(&top, Path::new(folder), "", &mut names);
        }
        Self {
            context,
            changed_context,
            instructions: instructions::read(state),
            tree: names.join("\n"),
            story: plan::next_story(state),
            guardrails: text("guardrails.md"),
            progress: plan::progress(state).unwrap_or_else(|| text("progress.md")),
            notes: notes(&text("notes.md"), run),
            errors: recent_errors(run),
            results: state
                .iterations
                .history
                .back()
                .map(|last| results(run, last.iteration))
                .unwrap_or_default(),
            failing: failing(run, state),
        }
    }

    /// Only what the record has: logs of failing checks.
    pub fn of_record(run: &RunDir, state: &RunState) -> Self {
        Self { failing: failing(run, state), ..Self::default() }
    }
}

/// The end of each failing check's log: of the last results, or of those on the original files.
fn failing(run: &RunDir, state: &RunState) -> Vec<(String, String, String, String)> {
    let at_start = state.baseline_checks.iter().flat_map(|checks| &checks.results);
    let at_start = at_start.filter(|_| state.work.checks.is_empty());
    let failing = state.work.checks.values().chain(at_start).filter(|r| !r.passed);
    failing
        .map(|r| {
            let output = crate::record::log_tail::read_tail(&run.path().join(&r.log), CHECK_MAX as u64);
            (r.name.clone(), r.why.clone().unwrap_or_default(), r.log.clone(), output)
        })
        .filter(|(.., output)| !output.trim().is_empty())
        .collect()
}

/// Results of an `actions` session, with the end of each output.
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

/// Notes of the repo without the template's text, and notes for this run.
fn notes(of_repo: &str, run: &RunDir) -> String {
    let of_run = crate::record::log_tail::read_tail(&run.notes(), PART_MAX as u64);
    [of_repo.trim_end(), of_run.trim_end()].join("\n\n").trim_end().to_owned()
}

/// Context files below 50 kB in total: unchanged ones, and those the run changed.
type ContextFiles = Vec<(String, String)>;

fn context(state: &RunState) -> (ContextFiles, ContextFiles) {
    let task = &state.spec.task;
    let Ok(top) = SafeDir::open(&state.spec.workspace) else { return Default::default() };
    let mut left = CONTEXT_MAX;
    let (mut shown, mut changed) = (Vec::new(), Vec::new());
    for name in &task.context_files {
        let text = top.read_text(name, Links::Inside, left as u64).unwrap_or_default();
        left = left.saturating_sub(text.len());
        let text =
            if left == 0 { format!("{text}\n\n[cut here; the whole text is in `{name}`]") } else { text };
        let list = if state.work.touched.contains(name) { &mut changed } else { &mut shown };
        list.push((name.clone(), text));
        if left == 0 {
            break;
        }
    }
    (shown, changed)
}

/// Sorted file names below a folder, folders first; bounded, links not followed.
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

/// The last 8 to 16 kB of errors (about 200 lines), from the start of an entry.
fn recent_errors(run: &RunDir) -> String {
    use std::io::{Read as _, Seek as _, SeekFrom};
    // The one in `.ralph/` holds those of all runs.
    let Ok(mut file) = std::fs::File::open(run.errors()) else { return String::new() };
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
    format!("[the beginning is cut]\n\n{whole}")
}
