//! What the numbers of tests say against a pass.

use crate::proof::findings::HarnessFindings;
use ralph_loop_evidence::harness;
use ralph_loop_protocol::event::CheckResult;
use ralph_loop_protocol::text::count;
use ralph_loop_task::config::VerifierConfig;

/// Whether a check ended well though all that its runner reports are failures, and at the start such an end was none.
fn is_refuted_by_its_report(result: &CheckResult, before: &[CheckResult]) -> bool {
    let failed =
        |result: &CheckResult| result.tests.is_some_and(|tests| tests.failed > 0 && tests.passed == 0);
    let first = before.iter().find(|first| first.name == result.name);
    failed(result) && first.is_some_and(|first| !(first.passed && failed(first)))
}

/// What the numbers of tests say against a pass: `before` is how the checks ended at the start.
pub(crate) fn counts(
    verifiers: &[&VerifierConfig],
    before: &[CheckResult],
    now: &[CheckResult],
    explained: bool,
    found: &mut HarnessFindings,
) {
    for result in now.iter().filter(|result| result.passed) {
        let name = &result.name;
        let ran = result.tests.map(|tests| tests.executed());
        let first = before.iter().find(|b| b.name == *name).and_then(|b| b.tests).map_or(0, |t| t.executed());
        let reports = verifiers.iter().any(|v| v.name == *name && harness::always_reports(&v.command_argv));
        match ran {
            None if first > 0 => found
                .failed
                .push(format!("{name}: it ended without a report of its tests; at the start it ran {first}")),
            None if reports => {
                found
                    .failed
                    .push(format!("{name}: it ended without the report that its runner always makes"));
            }
            Some(_) if is_refuted_by_its_report(result, before) => found.failed.push(format!(
                "{name}: its own report says that {} failed, though it ended with 0",
                count(result.tests.map_or(0, |tests| tests.failed) as usize, "test")
            )),
            Some(ran) if ran < first && explained => {
                found.lower_test(name, None, format!("it ran {ran} tests; at the start it ran {first}"));
            }
            Some(ran) if ran < first => found.failed.push(format!(
                "{name}: it ran {ran} of the {first} tests that it ran at the start, and no test was changed"
            )),
            _ => {}
        }
    }
}
