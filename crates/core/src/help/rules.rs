//! The doctor's rules, used without a model.

use super::record::RunRecord;
use ralph_loop_domain::recovery::{Fallback, fallback};
use ralph_loop_domain::state::RunState;
use ralph_loop_domain::stuck::{self, StuckKind};
use ralph_loop_protocol::stuck::diagnosis::{Guardrail, ModelSuggestion, Pattern, Report};

pub(super) fn report(state: &RunState, record: &RunRecord) -> Report {
    let traces: Vec<_> = state.stuck.traces.iter().cloned().collect();
    let settings = &state.spec.settings;
    let signals = stuck::score(&traces, &settings.stuck_detection, settings.gutter_score);
    let kinds = signals.kinds();
    let failing: Vec<&str> =
        state.work.checks.values().filter(|r| !r.passed).map(|r| r.name.as_str()).collect();
    let evidence = if record.evidence.is_empty() {
        vec!["no sign of being stuck".to_owned()]
    } else {
        record.evidence.clone()
    };
    let mut guardrails: Vec<Guardrail> = kinds.iter().take(2).map(|kind| advice(*kind)).collect();
    if let Some(name) = failing.first() {
        guardrails.push(Guardrail {
            trigger: format!("the check `{name}` fails"),
            instruction: "run it first, read its whole output, and name the cause in the progress file before you change \
                          anything"
                .into(),
        });
    }
    if guardrails.is_empty() {
        guardrails.push(advice(StuckKind::NoProgress));
    }
    let root_causes = kinds.iter().map(|kind| cause(*kind).to_owned()).collect();
    let model_suggestion = match fallback(state) {
        Some(Fallback::Model { agent, model }) => Some(ModelSuggestion {
            agent: Some(agent.to_string()),
            model,
            why: "the present one gets nowhere".into(),
        }),
        _ => None,
    };
    let summary = match (kinds.is_empty(), failing.as_slice()) {
        (true, []) => "Nothing in the record shows that the run is stuck.".to_owned(),
        (true, names) => format!("Failing: {}. Nothing shows that the run is stuck yet.", names.join(", ")),
        (false, _) => format!("{}.", evidence.join("; ")),
    };
    Report {
        summary,
        failure_patterns: evidence
            .into_iter()
            .map(|pattern| Pattern { pattern, evidence: String::new() })
            .collect(),
        root_causes,
        guardrails,
        task_edits: Vec::new(),
        model_suggestion,
    }
}

fn cause(kind: StuckKind) -> &'static str {
    match kind {
        StuckKind::Repetitive => "sessions make the same plan, because nothing tells them that it was tried",
        StuckKind::ErrorLoop => "the same error comes back: its cause is not where sessions look for it",
        StuckKind::Oscillation => {
            "two requirements seem to exclude each other, or each session undoes the last one"
        }
        StuckKind::NoProgress => "the next step is unclear, too large, or cannot be checked",
        StuckKind::Empty => "the agent cannot act: permissions, limits or its own refusal",
    }
}

fn advice(kind: StuckKind) -> Guardrail {
    let (trigger, instruction) = match kind {
        StuckKind::Repetitive => (
            "a plan looks like the last one",
            "write down why it did not work and choose a step that tests another cause",
        ),
        StuckKind::ErrorLoop => (
            "an error was seen before",
            "reproduce it in the smallest form, prove the cause with a test or a print, then fix that and nothing else",
        ),
        StuckKind::Oscillation => (
            "you are about to undo an earlier change",
            "find what both versions were for and make one that serves both; do not switch back and forth",
        ),
        StuckKind::NoProgress => (
            "it is unclear what comes next",
            "take the smallest criterion that is not met, and do only what makes its check pass",
        ),
        StuckKind::Empty => (
            "a tool or a permission is denied",
            "name it in the progress file and continue with what works without it",
        ),
    };
    Guardrail { trigger: trigger.into(), instruction: instruction.into() }
}
