//! The sentences that describe how a run ended.

use crate::state::RunState;
use ralph_loop_protocol::control::RACE_PREFIX;
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::Verdict;
use ralph_loop_protocol::money::Usd;
use ralph_loop_protocol::proof::level::ProofLevel;

pub(crate) fn iterations(state: &RunState) -> String {
    text::count(state.iterations.count as usize, "iteration")
}

pub(crate) fn cancelled(by: &str, when: &str) -> String {
    match by.strip_prefix(RACE_PREFIX) {
        Some(why) => format!("Ended by the race {when}: {why}."),
        None => format!("Cancelled by {by} {when}."),
    }
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

pub(crate) fn success(state: &RunState) -> String {
    let checks = state.spec.settings.required_verifiers.join(", ");
    let Some(proof) = &state.result.proof else {
        return format!("Already true: {checks} passed on the original tree, so no session was started.");
    };
    let place = if proof.clean { "in a clean checkout" } else { "in place" };
    let shown = proof.difference.first().into_iter().chain(&proof.level_reason);
    let shown: String = shown.map(|line| format!(" {}.", capital(&text::one_line(line, 200)))).collect();
    let harness = match (proof.level, proof.harness.as_slice()) {
        (Some(ProofLevel::Independent), _) | (_, []) => String::new(),
        (_, [first, rest @ ..]) => {
            let more = if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
            format!(" Changed by the run: {}{more}.", text::one_line(first, 160))
        }
    };
    let best = crate::best::best(state).map_or_else(String::new, |best| format!(" Best: {}.", best.words()));
    format!(
        "{} after {}: {checks} passed {place}.{best}{shown}{harness}",
        capital(&proof.headline()),
        iterations(state)
    )
}

pub(crate) fn no_change(state: &RunState) -> String {
    let checks = match state
        .spec
        .settings
        .required_verifiers
        .iter()
        .all(|name| state.passes_now(name) == Some(true))
    {
        true => "the checks passed before any work as well, so nothing shows that the task is done",
        false => "the checks still fail",
    };
    format!("No change: two sessions in a row left the files as they were, and {checks}.")
}

pub(crate) fn unclaimed(state: &RunState) -> String {
    format!(
        "No change: the checks pass, but two more sessions neither changed a file nor said that the task is done (`<promise>{}</promise>` on its own line).",
        state.spec.settings.completion_promise
    )
}

/// The reasons of sessions that failed twice in a row and changed nothing: the agents don't work.
pub(crate) fn agent_fails(state: &RunState) -> Option<String> {
    let last = state.iterations.history.iter().rev().take(2).rev();
    let mut why = Vec::new();
    for one in last {
        let reason = one.end.reason().filter(|_| one.verdict == Verdict::SessionFailed)?;
        why.push(format!("{}: {}; run `ralph probe {}`", one.agent, text::one_line(reason, 200), one.agent));
    }
    why.dedup();
    Some(format!("No agent can work. {}.", why.join("; ")))
}

/// How far a run went over its cost cap.
pub(crate) fn overshoot(state: &RunState) -> String {
    let over = state.spent().cost.saturating_sub(state.spec.settings.budgets.max_cost);
    match over > Usd::ZERO {
        true => format!(", {over} over: the cost of a session is known when it ends"),
        false => String::new(),
    }
}

/// What only the user can fix, to follow the reason of an end.
pub(crate) fn refusal_hint(state: &RunState) -> String {
    state
        .result
        .setup_hint
        .as_ref()
        .map_or_else(String::new, |(hint, _)| format!(" The final check failed: {hint}."))
}

/// The last obstacle, if no failing check shows it.
pub(crate) fn obstacle(state: &RunState) -> String {
    let hint = refusal_hint(state);
    if !hint.is_empty() {
        return hint;
    }
    if let Some(command) = state.baseline_checks.as_ref().and_then(|checks| checks.setup_failed.as_deref()) {
        return format!(
            " The setup command `{}` failed at the start, so nothing could be proven.",
            text::one_line(command, 160)
        );
    }
    match state.iterations.history.back().map(|last| last.verdict) {
        Some(Verdict::ProtectedChanged) => {
            " Protected paths differ from the original, so the work doesn't count.".to_owned()
        }
        Some(Verdict::NotPromised) if state.unclaimed_iterations() > 0 => format!(
            " The checks pass, but no session said that the task is done (`<promise>{}</promise>` on its own line).",
            state.spec.settings.completion_promise
        ),
        _ => String::new(),
    }
}

pub(crate) fn ordinal(n: u32) -> String {
    match n {
        1 => "first".into(),
        2 => "second".into(),
        3 => "third".into(),
        n => format!("{n}th"),
    }
}
