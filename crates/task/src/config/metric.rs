//! Goals that are numbers: a check names the number that it prints, which way is better, and how much is enough.

use crate::criterion::Pattern;
use serde::{Deserialize, Serialize};

/// The number that a verifier measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct MetricConfig {
    /// A regular expression that finds it in the output: its first group, or the whole match; the last match counts.
    pub pattern: Pattern,
    /// Which way is better.
    pub better: Better,
    /// What is enough: the verifier passes only from there on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
}

/// Which way a number gets better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
}

impl MetricConfig {
    /// Whether more is better.
    pub fn rises(&self) -> bool {
        self.better == Better::Higher
    }
    /// What an output says of it, as written there.
    pub fn find(&self, output: &str) -> Option<String> {
        self.pattern.last_group(output)
    }
    /// Why a value is not enough; `None` where it is, or where nothing is asked for.
    pub fn shortfall(&self, value: f64) -> Option<String> {
        let target = self.target?;
        let (enough, word) = match self.better {
            Better::Lower => (value <= target, "at most"),
            Better::Higher => (value >= target, "at least"),
        };
        (!enough).then(|| format!("it measures {value}, and {word} {target} is asked for"))
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
        assert_eq!(metric.shortfall(98.5).unwrap(), "it measures 98.5, and at most 80 is asked for");
        assert_eq!(metric.shortfall(80.0), None);
        let whole =
            MetricConfig { pattern: Pattern::parse("[0-9]+").unwrap(), better: Better::Higher, target: None };
        assert_eq!((whole.find("a 1 b 22").as_deref(), whole.shortfall(0.0)), (Some("22"), None));
    }
}
