//! Stuck detection in the configuration: how many iterations make a pattern, how far the rules look back, and the
//! weight of each signal.

use ralph_loop_protocol::stuck::signals::Signal;
use serde::{Deserialize, Serialize};

pub const WINDOW: usize = 12;

/// Stuck detection, with the names of the library.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct StuckConfig {
    /// Iterations that make a pattern.
    #[serde(default = "default_threshold")]
    pub threshold: u32,
    /// Turns the detection off.
    #[serde(default)]
    pub disabled: bool,
    /// How many iterations the rules look back, at most 12.
    #[serde(default = "default_window")]
    pub window: u32,
    /// The iterations in which a repeated failure is counted.
    #[serde(default = "default_failure_window")]
    pub failure_window: u32,
    /// Fewer changed lines count as nearly none.
    #[serde(default = "default_min_lines")]
    pub min_lines: u64,
    /// From this share of common words on, two final messages have the same plan.
    #[serde(default = "default_similarity")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub plan_similarity: f64,
    /// What each signal adds to the `loop_score`, from 0 (ignored) to 1.
    #[serde(default)]
    pub weights: StuckWeights,
}

fn default_threshold() -> u32 {
    3
}
fn default_window() -> u32 {
    WINDOW as u32
}
fn default_failure_window() -> u32 {
    5
}
fn default_min_lines() -> u64 {
    3
}
fn default_similarity() -> f64 {
    0.8
}

impl Default for StuckConfig {
    fn default() -> Self {
        Self {
            threshold: default_threshold(),
            disabled: false,
            window: default_window(),
            failure_window: default_failure_window(),
            min_lines: default_min_lines(),
            plan_similarity: default_similarity(),
            weights: StuckWeights::default(),
        }
    }
}

impl StuckConfig {
    /// What is wrong with it, if anything: a negative or missing weight would distort every score.
    pub fn fault(&self) -> Option<String> {
        let bad = Signal::ALL.into_iter().find(|s| {
            let weight = self.weights.of(*s);
            !(0.0..=1.0).contains(&weight)
        });
        if let Some(signal) = bad {
            return Some(format!("the weight `{}` must be between 0 and 1", signal.name()));
        }
        if !(0.0..=1.0).contains(&self.plan_similarity) {
            return Some("`plan_similarity` must be between 0 and 1".into());
        }
        None
    }
}

/// What each signal adds to the `loop_score`, from 0 (ignored) to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct StuckWeights {
    /// The same failure 3 times in 5 iterations.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub repeated_failure: f64,
    /// 3 iterations in a row change fewer than `min_lines` lines.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub stagnation: f64,
    /// A file alternates between two contents.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub thrash: f64,
    /// Trees, files or failures repeat with a period of 2 to 4, or tests are switched off and on.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub cycle: f64,
    /// 3 iterations change nothing, or 5 only notes, formatting and generated files.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub idle: f64,
    /// The same files change and the same failure stays.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub churn: f64,
    /// 6 iterations with the same failing tests, 10 if the work reaches new files.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub plateau: f64,
    /// The same plan and the same results; wording alone never counts.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub same_plan: f64,
    /// 3 sessions in a row without an answer or a change.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub empty: f64,
    /// One session repeats the same calls with the same results.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub session_loop: f64,
}

impl Default for StuckWeights {
    fn default() -> Self {
        Self {
            repeated_failure: 0.5,
            stagnation: 0.3,
            thrash: 0.2,
            cycle: 0.7,
            idle: 0.7,
            churn: 0.3,
            plateau: 0.3,
            same_plan: 0.2,
            empty: 0.7,
            session_loop: 0.7,
        }
    }
}

impl StuckWeights {
    pub fn of(&self, signal: Signal) -> f64 {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_form_still_reads_and_the_new_one_is_laid_over_the_defaults() {
        let old: StuckConfig = serde_json::from_str(r#"{"threshold":4}"#).unwrap();
        assert_eq!(old, StuckConfig { threshold: 4, ..StuckConfig::default() });
        let new: StuckConfig = serde_json::from_str(r#"{"weights":{"cycle":0.4},"window":6}"#).unwrap();
        assert_eq!((new.weights.cycle, new.weights.idle, new.window), (0.4, 0.7, 6));
        let refused = serde_json::from_str::<StuckConfig>(r#"{"weights":{"cycles":0.4}}"#).unwrap_err();
        assert!(refused.to_string().starts_with("unknown field `cycles`"), "{refused}");
    }

    #[test]
    fn weight_outside_zero_to_one_is_refused() {
        let mut config = StuckConfig::default();
        assert_eq!(config.fault(), None);
        config.weights.churn = -0.1;
        assert!(config.fault().unwrap().contains("`churn`"));
    }
}
