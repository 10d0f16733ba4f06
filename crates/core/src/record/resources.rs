//! Records what agents keep alive between sessions. Failures never fail a run.

use crate::ledger::Ledger;
use ralph_loop_domain::ports::{Agent, AgentResources};
use ralph_loop_journal::folder::artifacts;

/// Records an agent's live resources if they changed.
pub(crate) fn note_resources(ledger: &mut Ledger, agent: &dyn Agent) {
    let mut now = agent.resources();
    for process in &mut now.processes {
        process.command = ledger.redactor.text(&process.command).into_owned();
    }
    for browser in &mut now.browsers {
        browser.url = ledger.redactor.text(&browser.url).into_owned();
    }
    let before = ledger.kept_alive.agents.get(agent.name());
    if before.map_or(now == AgentResources::default(), |before| is_same(before, &now)) {
        return;
    }
    ledger.kept_alive.at = ledger.clock.now();
    ledger.kept_alive.agents.insert(agent.name().clone(), now);
    let text = serde_json::to_vec(&ledger.kept_alive).unwrap_or_default();
    let _ = artifacts::write_atomic(&ledger.record_dir.resources(), &text);
}

/// Whether the same things are alive, ignoring their age.
fn is_same(a: &AgentResources, b: &AgentResources) -> bool {
    let ageless = |one: &AgentResources| {
        let mut one = one.clone();
        one.processes.iter_mut().for_each(|process| process.uptime_seconds = 0);
        one
    };
    ageless(a) == ageless(b)
}
