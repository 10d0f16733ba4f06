//! Chooses the next agent from priorities, cooldowns and the user's requests.

use jiff::Timestamp;
use ralph_loop_protocol::id::AgentName;
use ralph_loop_task::config::{AgentConfig, AgentSelection};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cooldown {
    pub until: Timestamp,
    pub reason: String,
    pub observed_at: Timestamp,
}

/// The next agent, or why none can work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentChoice {
    Agent {
        name: AgentName,
        /// `name: reason` of each skipped agent.
        skipped: Vec<String>,
    },
    AllCooling {
        /// The first agent to return.
        name: AgentName,
        until: Timestamp,
    },
    Missing,
}

#[derive(Debug, Clone, Copy)]
pub struct SelectionInput<'a> {
    /// The agents in order of preference.
    pub agents: &'a [AgentConfig],
    pub selection: AgentSelection,
    pub last: Option<&'a AgentName>,
    pub cooldowns: &'a BTreeMap<AgentName, Cooldown>,
    pub dropped: &'a BTreeMap<AgentName, String>,
    pub skip: &'a BTreeSet<AgentName>,
    /// The agent benched because the run is stuck.
    pub benched: Option<&'a AgentName>,
    /// The agent whose turn it is in the pipeline of roles.
    pub first: Option<&'a AgentName>,
    pub now: Timestamp,
}

pub fn choose(field: SelectionInput<'_>) -> AgentChoice {
    let count = field.agents.len();
    let start = match field.selection {
        AgentSelection::Priority | AgentSelection::Roles => 0,
        AgentSelection::RoundRobin => field
            .last
            .and_then(|last| field.agents.iter().position(|a| a.name == *last))
            .map_or(0, |at| (at + 1) % count.max(1)),
    };
    let start =
        field.first.and_then(|first| field.agents.iter().position(|a| a.name == *first)).unwrap_or(start);
    let order = || (0..count).map(|i| &field.agents[(start + i) % count].name);
    let mut skipped = Vec::new();
    let mut passed_over = None;
    let mut earliest: Option<(&AgentName, Timestamp)> = None;
    for name in order() {
        if let Some(reason) = field.dropped.get(name) {
            skipped.push(format!("{name}: {reason}"));
        } else if let Some(rest) = field.cooldowns.get(name).filter(|c| c.until > field.now) {
            skipped.push(format!("{name}: {} until {}", rest.reason, rest.until));
            if earliest.is_none_or(|(_, until)| rest.until < until) {
                earliest = Some((name, rest.until));
            }
        } else if field.skip.contains(name) {
            passed_over.get_or_insert(name);
            skipped.push(format!("{name}: skipped on request"));
        } else if field.benched == Some(name) {
            passed_over.get_or_insert(name);
            skipped.push(format!("{name}: left out while the run is stuck"));
        } else {
            return AgentChoice::Agent { name: name.clone(), skipped };
        }
    }
    // Skipping the only available agent would end the run; a skip is only a preference for this turn.
    if let Some(name) = passed_over {
        skipped.retain(|line| !line.starts_with(&format!("{name}:")));
        return AgentChoice::Agent { name: name.clone(), skipped };
    }
    match earliest {
        Some((name, until)) => AgentChoice::AllCooling { name: name.clone(), until },
        None => AgentChoice::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::ToSpan as _;

    struct Setup {
        agents: Vec<AgentConfig>,
        cooldowns: BTreeMap<AgentName, Cooldown>,
        dropped: BTreeMap<AgentName, String>,
        skip: BTreeSet<AgentName>,
        now: Timestamp,
    }

    fn setup() -> Setup {
        Setup {
            agents: ["a", "b", "c"].map(|n| AgentConfig::command(n, &[n])).to_vec(),
            cooldowns: BTreeMap::new(),
            dropped: BTreeMap::new(),
            skip: BTreeSet::new(),
            now: Timestamp::UNIX_EPOCH,
        }
    }

    impl Setup {
        fn rest(&mut self, name: &str, seconds: i64) {
            let rest = Cooldown {
                until: self.now + seconds.seconds(),
                reason: "limit".into(),
                observed_at: self.now,
            };
            self.cooldowns.insert(name.into(), rest);
        }
        fn choose(&self, selection: AgentSelection, last: Option<&str>) -> AgentChoice {
            let last = last.map(AgentName::from);
            choose(SelectionInput {
                agents: &self.agents,
                selection,
                last: last.as_ref(),
                cooldowns: &self.cooldowns,
                dropped: &self.dropped,
                skip: &self.skip,
                benched: None,
                first: None,
                now: self.now,
            })
        }
        fn name(&self, selection: AgentSelection, last: Option<&str>) -> String {
            match self.choose(selection, last) {
                AgentChoice::Agent { name, .. } => name.to_string(),
                other => format!("{other:?}"),
            }
        }
    }

    #[test]
    fn round_robin_takes_turns_and_priority_does_not() {
        let s = setup();
        assert_eq!(s.name(AgentSelection::RoundRobin, None), "a");
        assert_eq!(s.name(AgentSelection::RoundRobin, Some("a")), "b");
        assert_eq!(s.name(AgentSelection::RoundRobin, Some("c")), "a");
        assert_eq!(s.name(AgentSelection::Priority, Some("a")), "a");
    }

    #[test]
    fn a_resting_agent_is_passed_over_with_the_reason_and_comes_back() {
        let mut s = setup();
        s.rest("b", 60);
        let AgentChoice::Agent { name, skipped } = s.choose(AgentSelection::RoundRobin, Some("a")) else {
            panic!()
        };
        assert_eq!(name.as_str(), "c");
        assert!(skipped[0].starts_with("b: limit until 1970-01-01T00:01:00"), "{skipped:?}");
        s.now += 60.seconds();
        assert_eq!(s.name(AgentSelection::RoundRobin, Some("a")), "b");
    }

    #[test]
    fn all_resting_waits_for_the_first_and_none_left_is_reported() {
        let mut s = setup();
        for (name, seconds) in [("a", 90), ("b", 30), ("c", 60)] {
            s.rest(name, seconds);
        }
        let until = s.now + 30.seconds();
        assert_eq!(
            s.choose(AgentSelection::RoundRobin, None),
            AgentChoice::AllCooling { name: "b".into(), until }
        );
        for name in ["a", "b", "c"] {
            s.dropped.insert(name.into(), "not logged in".into());
        }
        assert_eq!(s.choose(AgentSelection::RoundRobin, None), AgentChoice::Missing);
    }

    #[test]
    fn a_skip_is_a_wish_not_a_ban() {
        let mut s = setup();
        s.skip.insert("a".into());
        assert_eq!(s.name(AgentSelection::Priority, None), "b");
        s.rest("b", 9);
        s.rest("c", 9);
        assert_eq!(s.name(AgentSelection::Priority, None), "a");
    }
}
