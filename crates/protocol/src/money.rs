//! Money and tokens: what a session used, what it cost and how far that number can be trusted.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::{Add, AddAssign};

/// US dollars, kept as whole nano-dollars so that sums do not drift. Written as a plain number in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Usd(i64);

impl Usd {
    /// No money.
    pub const ZERO: Self = Self(0);

    /// The largest amount.
    pub const MAX: Self = Self(i64::MAX);

    /// From a number of dollars; anything that is not a finite number counts as zero.
    pub fn from_dollars(dollars: f64) -> Self {
        if dollars.is_finite() { Self((dollars * 1e9).round() as i64) } else { Self::ZERO }
    }
    /// As a number of dollars.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// `self - other`, never below zero.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0).max(0))
    }
}

impl Add for Usd {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl fmt::Display for Usd {
    /// `$1.34`, and more digits only where two would hide the amount.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollars = self.dollars();
        if self.0 != 0 && dollars.abs() < 0.01 {
            write!(f, "${dollars:.4}")
        } else if self.0 % 1_000_000_000 == 0 {
            write!(f, "${dollars:.0}")
        } else {
            write!(f, "${dollars:.2}")
        }
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        if dollars.is_finite() && dollars >= 0.0 {
            Ok(Self::from_dollars(dollars))
        } else {
            Err(serde::de::Error::custom("an amount in USD must be a number of at least 0"))
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Usd {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Usd".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "number", "minimum": 0 })
    }
}

/// How a cost is known. The order is the order of doubt: a sum is as doubtful as its most doubtful part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum CostBasis {
    /// The agent reported it, on list prices.
    #[default]
    Reported,
    /// Computed from tokens and a price table.
    Estimated,
    /// Neither: the run used money or a plan that `ralph` cannot see.
    Unknown,
}

impl CostBasis {
    /// The word used in files and on screens.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reported => "reported",
            Self::Estimated => "estimated",
            Self::Unknown => "unknown",
        }
    }

    /// An amount known this way: `$1.34 (reported)`, `at least $1.34`, `unknown`. What is unknown is never a zero.
    pub fn words(self, cost: Usd) -> String {
        match self {
            Self::Unknown if cost == Usd::ZERO => "unknown".to_owned(),
            Self::Unknown => format!("at least {cost}"),
            known => format!("{cost} ({})", known.as_str()),
        }
    }
}

/// Tokens of one or many sessions. `input` excludes what was read from or written to a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "tokens"))]
pub struct Tokens {
    /// Fresh input tokens.
    pub input: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// Input tokens served from a cache.
    #[serde(default)]
    pub cached: u64,
    /// Input tokens written to a cache.
    #[serde(default)]
    pub cache_write: u64,
}

impl Tokens {
    /// Everything that passed through the model.
    pub fn total(self) -> u64 {
        [self.output, self.cached, self.cache_write].into_iter().fold(self.input, u64::saturating_add)
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }
}

/// What one session used. `tokens: None` means that the agent said nothing about tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Tokens, where the agent reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Cost, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Usd>,
    /// How the cost is known.
    pub basis: CostBasis,
    /// What reading from a cache saved against the price of fresh input, less what writing to it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<Usd>,
    /// The model that the agent says it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Usage {
    /// A session of which nothing is known.
    pub fn unknown() -> Self {
        Self { basis: CostBasis::Unknown, ..Self::default() }
    }
    /// A session that is known to be free (scripted agents).
    pub fn free() -> Self {
        Self {
            tokens: Some(Tokens::default()),
            cost: Some(Usd::ZERO),
            basis: CostBasis::Reported,
            saved: None,
            model: None,
        }
    }
}

/// One agent's part in a run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "agent"))]
pub struct AgentTotals {
    /// Sessions.
    pub sessions: u32,
    /// Money.
    pub cost: Usd,
    /// How it is known.
    pub basis: CostBasis,
    /// Tokens.
    pub tokens: Tokens,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_no_zero() {
        let some = Usd::from_dollars(1.5);
        assert_eq!(CostBasis::Unknown.words(Usd::ZERO), "unknown");
        assert_eq!(CostBasis::Unknown.words(some), "at least $1.50");
        assert_eq!(CostBasis::Estimated.words(some), "$1.50 (estimated)");
        assert_eq!(CostBasis::Reported.words(Usd::ZERO), "$0 (reported)");
    }

    #[test]
    fn sums_of_small_amounts_do_not_drift() {
        let mut sum = Usd::ZERO;
        for _ in 0..1000 {
            sum += Usd::from_dollars(0.1);
        }
        assert_eq!(sum, Usd::from_dollars(100.0));
    }

    #[test]
    fn amounts_read_well() {
        let shown: Vec<String> =
            [0.0, 10.0, 1.344, 0.0055, 0.21].iter().map(|d| Usd::from_dollars(*d).to_string()).collect();
        assert_eq!(shown, ["$0", "$10", "$1.34", "$0.0055", "$0.21"]);
    }

    #[test]
    fn json_keeps_the_value() {
        let usd = Usd::from_dollars(0.016_695);
        let text = serde_json::to_string(&usd).unwrap();
        assert_eq!(text, "0.016695");
        assert_eq!(serde_json::from_str::<Usd>(&text).unwrap(), usd);
        let refused = serde_json::from_str::<Usd>("-1").unwrap_err().to_string();
        assert_eq!(refused, "an amount in USD must be a number of at least 0");
    }
}
