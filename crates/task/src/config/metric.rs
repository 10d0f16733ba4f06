//! Numeric goals: a check defines the number that it prints, which direction is better, and how much is enough.

use crate::criterion::Pattern;
use serde::{Deserialize, Serialize};

/// The number that a verifier measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct MetricConfig {
    /// A regular expression that finds the number in the output: its first group, or the whole match; the last match
    /// counts.
    pub pattern: Pattern,
    /// Which direction is better.
    pub better: Better,
    /// The verifier passes only from this value on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// How often to run the command: the median counts, and the spread is the noise. A change within the noise
    /// doesn't count.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 25), extend("default" = once())))]
    pub repeat: u32,
}

/// Most runs of one measurement.
pub const REPEAT_MAX: u32 = 25;

fn once() -> u32 {
    1
}

fn is_once(repeat: &u32) -> bool {
    *repeat <= 1
}

/// Which direction is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Better {
    /// Lower is better.
    Lower,
    /// Higher is better.
    Higher,
}

impl MetricConfig {
    /// A number that is measured once, without a target.
    pub fn new(pattern: Pattern, better: Better) -> Self {
        Self { pattern, better, target: None, repeat: 1 }
    }
    #[must_use]
    pub fn target(mut self, target: f64) -> Self {
        self.target = Some(target);
        self
    }
    #[must_use]
    pub fn repeat(mut self, times: u32) -> Self {
        self.repeat = times.clamp(1, REPEAT_MAX);
        self
    }
    /// The number in an output; the error says why there is none.
    pub fn value(&self, output: &str) -> Result<f64, String> {
        let Some(found) = self.find(output) else {
            return Err(format!("its output has no match of the metric /{}/", self.pattern.as_str()));
        };
        let number: Option<f64> = found.trim().replace(['_', ','], "").parse().ok();
        number.filter(|n| n.is_finite()).ok_or_else(|| format!("`{found}` isn't a number"))
    }
    pub fn rises(&self) -> bool {
        self.better == Better::Higher
    }
    pub fn find(&self, output: &str) -> Option<String> {
        self.pattern.last_group(output)
    }
    /// Why a value isn't enough; `None` if it is, or without a target.
    pub fn shortfall(&self, value: f64) -> Option<String> {
        let target = self.target?;
        let (enough, word) = match self.better {
            Better::Lower => (value <= target, "at most"),
            Better::Higher => (value >= target, "at least"),
        };
        (!enough).then(|| format!("it measures {value}; the target is {word} {target}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_match_counts_and_a_target_is_met_at_its_value() {
        let metric: MetricConfig =
            serde_json::from_str(r#"{"pattern":"p99 ([0-9.]+)","better":"lower","target":80}"#).unwrap();
        assert_eq!(metric.find("p99 120 ms\np99 98.5 ms\n").as_deref(), Some("98.5"));
        assert_eq!(metric.find("nothing"), None);
        assert_eq!(metric.shortfall(98.5).unwrap(), "it measures 98.5; the target is at most 80");
        assert_eq!(metric.shortfall(80.0), None);
        let whole = MetricConfig::new(Pattern::parse("[0-9]+").unwrap(), Better::Higher);
        assert_eq!((whole.value("n 12"), whole.value("x").is_err()), (Ok(12.0), true));
        assert_eq!((whole.find("a 1 b 22").as_deref(), whole.shortfall(0.0)), (Some("22"), None));
    }
}
