//! What agents keep alive between sessions, recorded for other processes.

use jiff::Timestamp;
use ralph_loop_domain::ports::AgentResources;
use ralph_loop_journal::folder::layout::RunDir;
use ralph_loop_journal::folder::plain;
use ralph_loop_protocol::id::AgentName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const FILE_MAX: u64 = 1024 * 1024;

/// What is alive by agent, and when that was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgentProcesses {
    pub at: Timestamp,
    pub agents: BTreeMap<AgentName, AgentResources>,
}

impl AgentProcesses {
    /// The recorded resources as of `now`.
    pub fn read(run: &RunDir, now: Timestamp) -> AgentResources {
        let text = plain::read_text(&run.resources(), FILE_MAX);
        let Ok(kept) = serde_json::from_str::<Self>(&text) else { return AgentResources::default() };
        let since = u64::try_from(now.duration_since(kept.at).as_secs()).unwrap_or(0);
        let mut all = AgentResources::default();
        for mut one in kept.agents.into_values() {
            one.processes.iter_mut().filter(|p| p.ended.is_none()).for_each(|p| p.uptime_seconds += since);
            all.processes.extend(one.processes);
            all.browsers.extend(one.browsers);
        }
        all
    }
}
