//! Signals: what the stuck rules saw in one iteration, with weights and as text.

use serde::{Deserialize, Serialize};

/// One stuck rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// The same failure again and again.
    RepeatedFailure,
    /// No or nearly no change.
    Stagnation,
    /// A file that flips between two contents.
    Thrash,
    /// Trees, files or failures that recur.
    Cycle,
    /// Nothing of substance for a while.
    Idle,
    /// The same lines are edited while the same failure stays.
    Churn,
    /// Tests don't improve.
    Plateau,
    /// The same plan with the same result.
    SamePlan,
    /// Sessions that end without an answer, or refuse.
    Empty,
    /// A session that repeats itself.
    SessionLoop,
}

impl Signal {
    /// Every signal, in the order of [`Signals`].
    pub const ALL: [Self; 10] = [
        Self::RepeatedFailure,
        Self::Stagnation,
        Self::Thrash,
        Self::Cycle,
        Self::Idle,
        Self::Churn,
        Self::Plateau,
        Self::SamePlan,
        Self::Empty,
        Self::SessionLoop,
    ];

    /// Its name in configuration, events and `metrics.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::RepeatedFailure => "repeated_failure",
            Self::Stagnation => "stagnation",
            Self::Thrash => "thrash",
            Self::Cycle => "cycle",
            Self::Idle => "idle",
            Self::Churn => "churn",
            Self::Plateau => "plateau",
            Self::SamePlan => "same_plan",
            Self::Empty => "empty",
            Self::SessionLoop => "session_loop",
        }
    }

    /// The kind of being stuck that it indicates.
    pub fn kind(self) -> StuckKind {
        match self {
            Self::RepeatedFailure => StuckKind::ErrorLoop,
            Self::Thrash | Self::Cycle => StuckKind::Oscillation,
            Self::SamePlan | Self::SessionLoop => StuckKind::Repetitive,
            Self::Empty => StuckKind::Empty,
            Self::Stagnation | Self::Idle | Self::Churn | Self::Plateau => StuckKind::NoProgress,
        }
    }
}

/// The five ways of being stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum StuckKind {
    /// The same actions or plans with the same results.
    Repetitive,
    /// The same failure again and again.
    ErrorLoop,
    /// Back and forth.
    Oscillation,
    /// Work, or none, without progress.
    NoProgress,
    /// Sessions without an answer.
    Empty,
}

impl StuckKind {
    /// Its name in events and for the library.
    pub fn name(self) -> &'static str {
        match self {
            Self::Repetitive => "repetitive",
            Self::ErrorLoop => "error_loop",
            Self::Oscillation => "oscillation",
            Self::NoProgress => "no_progress",
            Self::Empty => "empty",
        }
    }
}

/// The signals of one iteration. A field is 0 if its rule saw nothing, else the rule's weight.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(feature = "schema", schemars(transform = crate::requires::requires_first_signals))]
pub struct Signals {
    /// The same failure three times within five iterations.
    pub repeated_failure: f64,
    /// No or nearly no change for three iterations.
    pub stagnation: f64,
    /// A file that flips between two contents.
    pub thrash: f64,
    /// Trees, files or failures that recur.
    #[serde(skip_serializing_if = "is_zero")]
    pub cycle: f64,
    /// Nothing of substance for a while.
    #[serde(skip_serializing_if = "is_zero")]
    pub idle: f64,
    /// The same lines are edited while the same failure stays.
    #[serde(skip_serializing_if = "is_zero")]
    pub churn: f64,
    /// Tests don't improve.
    #[serde(skip_serializing_if = "is_zero")]
    pub plateau: f64,
    /// The same plan with the same result.
    #[serde(skip_serializing_if = "is_zero")]
    pub same_plan: f64,
    /// Sessions that end without an answer, or refuse.
    #[serde(skip_serializing_if = "is_zero")]
    pub empty: f64,
    /// A session that repeats itself.
    #[serde(skip_serializing_if = "is_zero")]
    pub session_loop: f64,
    /// How certainly the run is stuck, from 0 to 1.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub loop_score: f64,
    /// One sentence for each signal that isn't 0, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// Only a number that a check prints improved.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub measured: bool,
    /// What improved in this iteration. Earlier signals no longer count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
}

fn is_zero(n: &f64) -> bool {
    *n == 0.0
}

impl Signals {
    /// The value of one signal.
    pub fn get(&self, signal: Signal) -> f64 {
        match signal {
            Signal::RepeatedFailure => self.repeated_failure,
            Signal::Stagnation => self.stagnation,
            Signal::Thrash => self.thrash,
            Signal::Cycle => self.cycle,
            Signal::Idle => self.idle,
            Signal::Churn => self.churn,
            Signal::Plateau => self.plateau,
            Signal::SamePlan => self.same_plan,
            Signal::Empty => self.empty,
            Signal::SessionLoop => self.session_loop,
        }
    }

    /// Sets the value of one signal.
    pub fn set(&mut self, signal: Signal, value: f64) {
        let field = match signal {
            Signal::RepeatedFailure => &mut self.repeated_failure,
            Signal::Stagnation => &mut self.stagnation,
            Signal::Thrash => &mut self.thrash,
            Signal::Cycle => &mut self.cycle,
            Signal::Idle => &mut self.idle,
            Signal::Churn => &mut self.churn,
            Signal::Plateau => &mut self.plateau,
            Signal::SamePlan => &mut self.same_plan,
            Signal::Empty => &mut self.empty,
            Signal::SessionLoop => &mut self.session_loop,
        };
        *field = value;
    }

    /// What was seen: each signal with its value and sentence.
    pub fn seen(&self) -> impl Iterator<Item = (Signal, f64, &str)> {
        Signal::ALL
            .into_iter()
            .map(|signal| (signal, self.get(signal)))
            .filter(|(_, value)| *value > 0.0)
            .zip(&self.evidence)
            .map(|((signal, value), words)| (signal, value, words.as_str()))
    }

    /// The kinds that were seen, each once.
    pub fn kinds(&self) -> Vec<StuckKind> {
        let mut kinds: Vec<StuckKind> =
            Signal::ALL.into_iter().filter(|signal| self.get(*signal) > 0.0).map(Signal::kind).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_an_older_version_still_reads() {
        let old =
            r#"{"repeated_failure":0.5,"stagnation":0.3,"thrash":0.0,"loop_score":0.8,"evidence":["a","b"]}"#;
        let signals: Signals = serde_json::from_str(old).unwrap();
        assert_eq!((signals.loop_score, signals.cycle), (0.8, 0.0));
        assert_eq!(signals.kinds(), [StuckKind::ErrorLoop, StuckKind::NoProgress]);
        let seen: Vec<_> = signals.seen().collect();
        assert_eq!(seen, [(Signal::RepeatedFailure, 0.5, "a"), (Signal::Stagnation, 0.3, "b")]);
    }

    #[test]
    fn each_signal_has_a_field_of_its_name() {
        for signal in Signal::ALL {
            let mut signals = Signals::default();
            signals.set(signal, 0.25);
            assert_eq!(signals.get(signal), 0.25);
            assert_eq!(serde_json::to_value(&signals).unwrap()[signal.name()], 0.25);
        }
    }
}
