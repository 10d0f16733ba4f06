//! Where a run's result is, and the next command.

use ralph_loop_app::Environment;
use ralph_loop_app::read::taking_home::{is_own_checkout, knows_start};
use ralph_loop_domain::state::RunState;
use ralph_loop_protocol::display::text::count;
use ralph_loop_protocol::outcome::RunResult;
use ralph_loop_task::spec::{RunSpec, WorkspaceKind};

/// The result's branch; internal refs don't count.
fn branch(result: &RunResult) -> Option<&str> {
    result.branch.as_deref().filter(|name| !name.starts_with("refs/"))
}

/// Label and text of the result's location.
pub fn row(result: &RunResult, spec: &RunSpec, state: Option<&RunState>) -> (&'static str, String) {
    // Files of which the user's version was kept.
    let kept = state.map(|state| state.work.kept_back.as_slice()).unwrap_or_default();
    let here = result.files_changed.iter().filter(|file| !kept.contains(file)).count();
    if was_cut(spec, state) {
        return (
            "result",
            "what the session that was cut has written is kept, and not in your folder".to_owned(),
        );
    }
    if spec.place == WorkspaceKind::InPlace && spec.branch.is_none() && here < result.files_changed.len() {
        let kept = count(result.files_changed.len() - here, "file");
        let here = if here == 0 { "no file".to_owned() } else { count(here, "file") };
        return ("result", format!("{here} changed in this folder, {kept} of yours kept"));
    }
    let apart = state.is_some_and(|state| !state.work.in_submodules.is_empty());
    let files = match result.files_changed.len() {
        0 if apart => "no file changed outside of submodules".to_owned(),
        0 if spec.forked_from.is_some() => "no further file changed".to_owned(),
        0 => "no file changed".to_owned(),
        files => format!("{} changed", count(files, "file")),
    };
    match (&spec.place, &spec.branch) {
        (WorkspaceKind::InPlace, None) if result.files_changed.is_empty() => ("result", files),
        (WorkspaceKind::InPlace, None) => ("result", format!("{files} in this folder, not committed")),
        (WorkspaceKind::InPlace, Some(own)) => {
            ("branch", format!("{} ({files}), checked out in this folder", branch(result).unwrap_or(own)))
        }
        (_, own) => {
            let own = own.as_deref().unwrap_or_default();
            ("branch", format!("{} ({files})", branch(result).unwrap_or(own)))
        }
    }
}

/// Whether the run's files are in a separate folder: next to the user's, or fetched from another machine.
pub fn is_apart(spec: &RunSpec) -> bool {
    spec.home() != spec.origin || spec.place != WorkspaceKind::InPlace
}

/// The git command for the run's refs: a clone has its own.
pub fn git(spec: &RunSpec) -> String {
    match &spec.place {
        WorkspaceKind::Clone { .. } => format!("git -C {}", spec.home().display()),
        WorkspaceKind::InPlace | WorkspaceKind::Worktree => "git".to_owned(),
    }
}

/// Whether the user ended the run within a session whose files weren't handed back.
fn was_cut(spec: &RunSpec, state: Option<&RunState>) -> bool {
    spec.hands_back() && state.is_some_and(|state| state.work.cut)
}

/// What to do with the result.
pub fn next(
    result: &RunResult,
    (spec, state): (&RunSpec, Option<&RunState>),
    env: &Environment,
) -> Option<String> {
    let run = &spec.run_id;
    if let Some(url) = result.pr_url.as_deref().filter(|_| result.success) {
        return Some(format!("review {url} (`ralph open {run}`)"));
    }
    if result.files_changed.is_empty() {
        // A fork's result includes the first run's work.
        let whole = spec.forked_from.is_some() && result.success;
        return whole.then(|| {
            format!(
                "`ralph apply {run}` copies the result (that of the first run up to the fork) into your own folder; `ralph diff {run}` shows it first"
            )
        });
    }
    if was_cut(spec, state) {
        return Some(format!("`ralph diff {run}` shows it, `ralph apply {run}` copies it into your folder"));
    }
    let stranger = is_own_checkout(env, &spec.origin)
        || matches!(spec.place, WorkspaceKind::Clone { .. })
            && state.is_some_and(|state| !knows_start(env, state));
    Some(match (&spec.place, &spec.branch) {
        (WorkspaceKind::InPlace, None) => format!(
            "`ralph diff {run}` shows the changes, new files too; `ralph apply {run} --squash` commits them, `ralph restore {run}` undoes them"
        ),
        (WorkspaceKind::InPlace, Some(_)) => format!("`ralph diff {run}` shows the changes, new files too"),
        _ if stranger || spec.origin == spec.home() => format!(
            "`ralph diff {run}` shows the changes, `ralph open {run} --files` the files; `ralph apply {run} --into DIR` copies them into a clone of yours"
        ),
        (WorkspaceKind::Worktree | WorkspaceKind::Clone { .. }, _) => format!(
            "`ralph apply {run}` copies the changes into your own folder; `ralph diff {run}` shows them first"
        ),
    })
}
