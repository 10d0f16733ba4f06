//! The sentences in which an end is told.

use crate::state::RunState;
use ralph_loop_protocol::control::RACE_PREFIX;
use ralph_loop_protocol::event::Verdict;
use ralph_loop_protocol::level::ProofLevel;
use ralph_loop_protocol::text;

/// How many iterations there were, in words.
pub(crate) fn iterations(state: &RunState) -> String {
    text::count(state.iterations.count as usize, "iteration")
}

/// Who cancelled it; a race says what it lost.
pub(crate) fn cancelled(by: &str, when: &str) -> String {
    match by.strip_prefix(RACE_PREFIX) {
        Some(why) => format!("Ended by the race {when}: {why}."),
        None => format!("Cancelled by {by} {when}."),
    }
}

/// The same words at the beginning of a sentence.
fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The sentence about a run that reached its goal.
pub(crate) fn success(state: &RunState) -> String {
    let checks: Vec<&str> = state.spec.settings.required_verifiers.iter().map(String::as_str).collect();
    let place = match state.result.proof.as_ref().is_some_and(|p| p.clean) {
        true => "in a clean checkout",
        false => "in place",
    };
    let look = match state.result.proof.as_ref().map_or(0, |p| p.weakened) {
        0 => String::new(),
        n => format!(" {}.", ralph_loop_protocol::weakened::summary_of(n as usize)),
    };
    let proof = state.result.proof.as_ref();
    let level = proof.and_then(|p| p.level);
    let (verdict, checks) = (ProofLevel::verdict(level), checks.join(", "));
    let told = match (level, proof) {
        (Some(level), Some(proof)) => format!(" Level: {}, {}.", level.words(), proof.watched.words()),
        _ => String::new(),
    };
    let own = proof.map_or(&[][..], |p| p.harness.as_slice());
    let own = match (level, own) {
        (Some(ProofLevel::OwnTests), [first, rest @ ..]) => {
            let more = if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
            format!(" Changed by the run: {}{more}.", text::one_line(first, 160))
        }
        _ => String::new(),
    };
    let approved =
        proof.and_then(|p| p.approved_by.as_deref()).map(|by| by.split(" via ").next().unwrap_or(by));
    let approved =
        approved.map_or_else(String::new, |by| format!(" The changed tests are approved by {by}."));
    let verdict = capital(verdict);
    let best = crate::best::best(state).map_or_else(String::new, |best| format!(" Best: {}.", best.words()));
    format!(
        "{verdict} after {}: {checks} passed {place}.{best}{look}{told}{own}{approved}",
        iterations(state)
    )
}

/// What only a person can fix, behind the reason of an end.
pub(crate) fn refusal_hint(state: &RunState) -> String {
    state
        .result
        .setup_hint
        .as_ref()
        .map_or_else(String::new, |(hint, _)| format!(" The final check failed: {hint}."))
}

/// What stood in the way at the end, where no failing check says it.
pub(crate) fn obstacle(state: &RunState) -> String {
    let hint = refusal_hint(state);
    if !hint.is_empty() {
        return hint;
    }
    if let Some(command) = state.baseline_checks.as_ref().and_then(|checks| checks.setup_failed.as_deref()) {
        return format!(
            " The setup `{}` failed at the start, so that nothing could be proven.",
            text::one_line(command, 160)
        );
    }
    match state.iterations.history.back().map(|last| last.verdict) {
        Some(Verdict::ProtectedChanged) => {
            " Protected paths differ from the start, so that the work does not count.".to_owned()
        }
        Some(Verdict::NotPromised) if state.unclaimed_iterations() > 0 => format!(
            " The checks pass, but no session said that the task is done (`<promise>{}</promise>`, alone on a line).",
            state.spec.settings.completion_promise
        ),
        _ => String::new(),
    }
}

/// Which time it is, in words.
pub(crate) fn ordinal(n: u32) -> String {
    match n {
        1 => "first".into(),
        2 => "second".into(),
        3 => "third".into(),
        n => format!("{n}th"),
    }
}
