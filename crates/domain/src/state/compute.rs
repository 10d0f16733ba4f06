//! The sandboxes of a run and their cost, from their price per hour and the time between events.

use jiff::Timestamp;
use ralph_loop_protocol::event::{Event, EventBody, SandboxFate};
use ralph_loop_protocol::money::Usd;
use serde::{Deserialize, Serialize};

/// One to work in, one for the final check, one for a critic, and a few lost ones.
const MOST: usize = 8;

/// A run's sandboxes and their cost.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Compute {
    /// An estimate, separate from model costs and not part of the budget.
    pub cost: Usd,
    /// Known existing sandboxes, oldest first.
    pub sandboxes: Vec<SandboxUse>,
    /// The time up to which the cost is counted.
    until: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SandboxUse {
    pub provider: String,
    pub id: String,
    /// Its price per hour, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly: Option<Usd>,
    /// Whether it is stopped, and so costs almost nothing.
    #[serde(default)]
    pub rests: bool,
}

impl Compute {
    /// The estimate, if any sandbox has a price.
    pub fn known_cost(&self) -> Option<Usd> {
        (self.cost > Usd::ZERO).then_some(self.cost)
    }

    pub(super) fn apply(&mut self, event: &Event) {
        // Without a driver the sandbox may have stopped: that time isn't counted.
        if !matches!(event.body, EventBody::DriverStarted { .. }) {
            self.count(event.at);
        }
        self.until = Some(event.at);
        match &event.body {
            EventBody::SandboxReady(made) => {
                self.sandboxes.retain(|known| known.id != made.id);
                if self.sandboxes.len() >= MOST {
                    self.sandboxes.remove(0);
                }
                self.sandboxes.push(SandboxUse {
                    provider: made.provider.clone(),
                    id: made.id.clone(),
                    hourly: made.hourly,
                    rests: false,
                });
            }
            EventBody::SandboxGone(gone) => match gone.fate {
                SandboxFate::Destroyed | SandboxFate::Lost => {
                    self.sandboxes.retain(|known| known.id != gone.id);
                }
                SandboxFate::Stopped => {
                    let own = self.sandboxes.iter_mut().filter(|known| known.id == gone.id);
                    own.for_each(|known| known.rests = true);
                }
                SandboxFate::Kept => {}
            },
            _ => {}
        }
    }

    fn count(&mut self, at: Timestamp) {
        let Some(since) = self.until else { return };
        let hours = at.duration_since(since).as_secs_f64().max(0.0) / 3600.0;
        let hourly = self.sandboxes.iter().filter(|known| !known.rests).filter_map(|known| known.hourly);
        let hourly: f64 = hourly.map(Usd::dollars).sum();
        self.cost += Usd::from_dollars(hourly * hours);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_protocol::event::{SandboxGone, SandboxReady};
    use ralph_loop_protocol::id::Seq;

    fn at(seconds: i64, body: EventBody) -> Event {
        let at = Timestamp::from_second(1_700_000_000 + seconds).unwrap();
        Event { seq: Seq(1), at, body }
    }

    fn ready(id: &str, dollars: f64) -> EventBody {
        let hourly = Some(Usd::from_dollars(dollars));
        EventBody::SandboxReady(SandboxReady { provider: "e2b".into(), id: id.into(), hourly })
    }

    #[test]
    fn sandbox_costs_while_it_runs_with_a_driver() {
        let mut compute = Compute::default();
        let notice = || EventBody::Notice { message: String::new() };
        let gone = |fate| EventBody::SandboxGone(SandboxGone { id: "a".into(), fate });
        compute.apply(&at(0, ready("a", 3.6)));
        compute.apply(&at(100, notice()));
        assert_eq!(compute.cost, Usd::from_dollars(0.1));
        // Killed at 100, resumed at 5000.
        compute
            .apply(&at(5000, EventBody::DriverStarted { pid: 1, torn_bytes: 0, lease: Default::default() }));
        compute.apply(&at(5000, ready("a", 3.6)));
        compute.apply(&at(5100, ready("b", 3.6)));
        compute.apply(&at(5200, gone(SandboxFate::Stopped)));
        assert_eq!(compute.cost, Usd::from_dollars(0.4));
        compute.apply(&at(5300, gone(SandboxFate::Destroyed)));
        assert_eq!(compute.cost, Usd::from_dollars(0.5), "one that rests costs nothing");
        assert_eq!(compute.sandboxes.iter().map(|s| s.id.as_str()).collect::<Vec<_>>(), ["b"]);
    }
}
