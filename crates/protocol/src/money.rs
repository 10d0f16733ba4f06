//! Money and tokens: what a session used, its cost, and how reliable that number is.

pub mod budget;
pub mod in_session;
pub mod receipt;

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

    /// Converts dollars; anything but a finite number counts as zero.
    pub fn from_dollars(dollars: f64) -> Self {
        if dollars.is_finite() { Self((dollars * 1e9).round() as i64) } else { Self::ZERO }
    }
    /// The amount in dollars.
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
    /// `$1.34`, with more digits only if two would hide the amount.
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

/// How a cost is known, from most to least certain: a sum is as uncertain as its most uncertain part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum CostBasis {
    /// Reported by the agent, at list prices.
    #[default]
    Reported,
    /// Computed from tokens and a price table.
    Estimated,
    /// Neither: the run used money or a plan that `ralph` can't see.
    Unknown,
}

impl CostBasis {
    /// The word in files and on screens.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reported => "reported",
            Self::Estimated => "estimated",
            Self::Unknown => "unknown",
        }
    }
}

/// A cost, as far as it is known. Reading the number requires deciding what an unknown cost means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "CostFields", into = "CostFields")]
pub struct Cost {
    /// The sum of what is known.
    sum: Usd,
    basis: CostBasis,
}

impl Cost {
    /// A completely unknown cost.
    pub const UNKNOWN: Self = Self { sum: Usd::ZERO, basis: CostBasis::Unknown };

    /// A cost with this basis.
    pub const fn new(sum: Usd, basis: CostBasis) -> Self {
        Self { sum, basis }
    }

    /// A cost reported by an agent.
    pub const fn reported(sum: Usd) -> Self {
        Self::new(sum, CostBasis::Reported)
    }

    /// A lower bound, for budgets and sums.
    pub fn at_least(self) -> Usd {
        self.sum
    }

    /// The known part; `None` if nothing is known. With [`Self::basis`], the value for programs.
    pub fn known(self) -> Option<Usd> {
        (self != Self::UNKNOWN).then_some(self.sum)
    }

    /// The full cost; `None` if any part is unknown. For comparing costs.
    pub fn whole(self) -> Option<Usd> {
        (self.basis != CostBasis::Unknown).then_some(self.sum)
    }

    /// How it is known.
    pub fn basis(self) -> CostBasis {
        self.basis
    }

    /// With its basis: `$1.34 (reported)`, `at least $1.34`, `unknown`.
    pub fn with_basis(self) -> String {
        match self.whole() {
            Some(sum) => format!("{sum} ({})", self.basis.as_str()),
            None => self.to_string(),
        }
    }

    /// For use without context: `$1.34`, `at least $1.34`, `cost unknown`.
    pub fn alone(self) -> String {
        if self.known().is_none() { "cost unknown".to_owned() } else { self.to_string() }
    }
}

impl fmt::Display for Cost {
    /// `$1.34`, `≈ $1.34` if estimated, `at least $1.34`, `unknown`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.basis, self.known()) {
            (CostBasis::Reported, _) => self.sum.fmt(f),
            (CostBasis::Estimated, _) if self.sum == Usd::ZERO => self.sum.fmt(f),
            (CostBasis::Estimated, _) => write!(f, "≈ {}", self.sum),
            (CostBasis::Unknown, Some(sum)) => write!(f, "at least {sum}"),
            (CostBasis::Unknown, None) => f.write_str("unknown"),
        }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.sum += other.sum;
        self.basis = self.basis.max(other.basis);
    }
}

impl std::iter::Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |mut sum, part| {
            sum += part;
            sum
        })
    }
}

/// A [`Cost`] in JSON, next to the keys of what it is the cost of.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CostFields {
    /// Cost in USD, as far as it is known: `null` if unknown, and a lower bound if `cost_basis` is `unknown`.
    #[serde(default)]
    cost_usd: Option<Usd>,
    /// How the cost is known.
    #[serde(default)]
    cost_basis: CostBasis,
}

impl From<CostFields> for Cost {
    fn from(fields: CostFields) -> Self {
        fields.cost_usd.map_or(Self::UNKNOWN, |sum| Self::new(sum, fields.cost_basis))
    }
}

impl From<Cost> for CostFields {
    fn from(cost: Cost) -> Self {
        Self { cost_usd: cost.known(), cost_basis: cost.basis }
    }
}

/// A [`Cost`] in JSON under the names `cost` and `basis`, for `#[serde(flatten, with = "short_cost")]`.
pub mod short_cost {
    use super::{Cost, CostBasis, CostFields, Usd};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub struct ShortFields {
        /// Cost in USD, as far as it is known: `null` if unknown, and a lower bound if `basis` is `unknown`.
        #[serde(default)]
        cost: Option<Usd>,
        /// How the cost is known.
        #[serde(default)]
        basis: CostBasis,
    }

    pub fn serialize<S: Serializer>(cost: &Cost, serializer: S) -> Result<S::Ok, S::Error> {
        ShortFields { cost: cost.known(), basis: cost.basis }.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cost, D::Error> {
        let ShortFields { cost, basis } = ShortFields::deserialize(deserializer)?;
        Ok(CostFields { cost_usd: cost, cost_basis: basis }.into())
    }
}

/// Tokens of one or more sessions. `input` excludes cache reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "tokens"))]
pub struct Tokens {
    /// Fresh input tokens.
    pub input: u64,
    /// Output tokens, including reasoning.
    pub output: u64,
    /// Input tokens served from a cache.
    #[serde(default)]
    pub cached: u64,
    /// Input tokens written to a cache.
    #[serde(default)]
    pub cache_write: u64,
}

impl Tokens {
    /// All tokens that passed through the model.
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

/// Tokens of several sessions; `null` in JSON if no session reported them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(inline))]
#[serde(transparent)]
pub struct TokenSum(Option<Tokens>);

impl TokenSum {
    /// Unknown tokens.
    pub const UNKNOWN: Self = Self(None);

    /// The known tokens.
    pub fn known(self) -> Option<Tokens> {
        self.0
    }

    /// The known total, a lower bound for budgets.
    pub fn at_least(self) -> u64 {
        self.0.map_or(0, Tokens::total)
    }
}

impl Default for TokenSum {
    fn default() -> Self {
        Self(Some(Tokens::default()))
    }
}

impl From<Tokens> for TokenSum {
    fn from(tokens: Tokens) -> Self {
        Self(Some(tokens))
    }
}

impl fmt::Display for TokenSum {
    /// `1200`, or `unknown`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(tokens) => tokens.total().fmt(f),
            None => f.write_str("unknown"),
        }
    }
}

impl AddAssign<Option<Tokens>> for TokenSum {
    fn add_assign(&mut self, part: Option<Tokens>) {
        match (&mut self.0, part) {
            (Some(sum), Some(part)) => *sum += part,
            (sum @ None, Some(_)) => *sum = part,
            // An empty sum with a missing part is unknown.
            (sum, None) => *sum = sum.filter(|sum| *sum != Tokens::default()),
        }
    }
}

/// One session's usage. `tokens: None` means that the agent reported none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Tokens, if the agent reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Cost, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Usd>,
    /// How the cost is known.
    pub basis: CostBasis,
    /// Savings by cache reads against the price of fresh input, less the cost of cache writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<Usd>,
    /// The model that the agent reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Usage {
    /// Its cost.
    pub fn spent(&self) -> Cost {
        self.cost.map_or(Cost::UNKNOWN, |sum| Cost::new(sum, self.basis))
    }
    /// A session with unknown usage.
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
    #[serde(flatten, with = "short_cost")]
    #[cfg_attr(feature = "schema", schemars(with = "short_cost::ShortFields"))]
    pub cost: Cost,
    /// Tokens.
    pub tokens: TokenSum,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_cost_is_never_a_zero() {
        let some = Usd::from_dollars(1.5);
        let partly = [Cost::reported(some), Cost::UNKNOWN].into_iter().sum::<Cost>();
        let estimated = Cost::new(some, CostBasis::Estimated);
        let all = [Cost::UNKNOWN, partly, estimated, Cost::reported(some), Cost::default()];
        let words = all.map(|cost| (cost.to_string(), cost.alone(), cost.with_basis()));
        let words = words.each_ref().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str()));
        assert_eq!(words[0], ("unknown", "cost unknown", "unknown"));
        assert_eq!(words[1], ("at least $1.50", "at least $1.50", "at least $1.50"));
        assert_eq!(words[2], ("≈ $1.50", "≈ $1.50", "$1.50 (estimated)"));
        assert_eq!(words[3], ("$1.50", "$1.50", "$1.50 (reported)"));
        assert_eq!(words[4], ("$0", "$0", "$0 (reported)"));
        assert_eq!((partly.known(), partly.whole()), (Some(some), None));
        for cost in all {
            let json = serde_json::to_value(cost).unwrap();
            assert_eq!(json["cost_usd"].is_null(), cost == Cost::UNKNOWN, "{json}");
            assert_eq!(serde_json::from_value::<Cost>(json).unwrap(), cost);
        }
    }

    #[test]
    fn files_of_earlier_versions_have_a_zero_for_an_unknown_cost() {
        let old = r#"{"sessions":2,"cost":0.0,"basis":"unknown","tokens":{"input":1,"output":2}}"#;
        let totals: AgentTotals = serde_json::from_str(old).unwrap();
        assert_eq!((totals.cost, totals.tokens.at_least()), (Cost::UNKNOWN, 3));
        let json = serde_json::to_value(totals).unwrap();
        assert_eq!((&json["cost"], &json["basis"]), (&serde_json::Value::Null, &"unknown".into()));
    }

    #[test]
    fn unknown_tokens_are_never_a_zero() {
        let five = Tokens { input: 5, ..Tokens::default() };
        let of = |parts: &[Option<Tokens>]| {
            let mut sum = TokenSum::default();
            parts.iter().for_each(|part| sum += *part);
            serde_json::to_value(sum).unwrap()["input"].as_u64()
        };
        assert_eq!(of(&[]), Some(0));
        assert_eq!(of(&[None]), None);
        assert_eq!(of(&[None, Some(five)]), Some(5));
        assert_eq!(of(&[Some(five), None]), Some(5));
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
    fn amounts_have_two_digits_or_as_many_as_needed() {
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
