//! The cost of calls: list prices of models, overlaid by configured ones. Pure arithmetic over tokens.

use ralph_loop_protocol::money::{Tokens, Usd};
use ralph_loop_task::config::{Models, PriceConfig, Profile};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const BUILTIN: &str = include_str!("../prices.txt");

#[derive(Debug, Clone, Default)]
pub struct PriceTable {
    models: BTreeMap<String, ModelPrice>,
    /// Names without their provider, if the table has the model only with one.
    bare: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelPrice {
    /// Prices from an input length on; the first starts at 0, in ascending order.
    pub tiers: Vec<Tier>,
    /// Longest input in tokens, if known.
    pub max_input_tokens: Option<u64>,
}

/// Prices of calls whose whole input is longer than `above` tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tier {
    /// Tokens of input, including cached ones.
    pub above: u64,
    /// The prices, in USD per million tokens.
    pub rates: PriceConfig,
    pub cache_write_1h: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    pub cost: Usd,
    /// Savings by cache reads against fresh input, less the extra cost of cache writes. Never below zero.
    pub saved: Usd,
}

/// Why a list of prices was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    #[error("the prices are not a JSON object of models: {0}")]
    NotLitellm(String),
    #[error("none of the {0} entries has a price per token")]
    NoPrices(usize),
}

impl PriceTable {
    pub fn builtin() -> Self {
        let mut table = Self::default();
        for line in BUILTIN.lines().filter(|line| !line.starts_with('#')) {
            if let Some((name, price)) = row(line) {
                table.insert(name, price);
            }
        }
        table
    }

    /// Overlays a list in LiteLLM's format. Skips entries without prices per token.
    pub fn with_litellm(mut self, text: &str) -> Result<Self, PriceError> {
        let all: Map<String, Value> =
            serde_json::from_str(text).map_err(|e| PriceError::NotLitellm(e.to_string()))?;
        let mut found = 0;
        for (name, entry) in &all {
            if let Some(price) = entry.as_object().and_then(litellm_entry) {
                self.insert(name, price);
                found += 1;
            }
        }
        if found == 0 { Err(PriceError::NoPrices(all.len())) } else { Ok(self) }
    }

    pub fn with_profiles(mut self, models: &Models) -> Self {
        for profile in models.profiles.values() {
            if let Some(prices) = profile.prices {
                self.insert(&profile.litellm_model, flat(prices));
            }
        }
        self
    }

    /// The cost of a model's call; `None` without a known price. Pass the tokens of one call: some prices depend on
    /// its length.
    pub fn cost(&self, model: &str, tokens: &Tokens) -> Option<Cost> {
        Some(self.price(model)?.cost(tokens))
    }

    /// The cost of a profile's call: its own prices come before the table's.
    pub fn cost_of(&self, profile: &Profile, tokens: &Tokens) -> Option<Cost> {
        match profile.prices {
            Some(prices) => Some(flat(prices).cost(tokens)),
            None => self.cost(&profile.litellm_model, tokens),
        }
    }

    /// The price of a model, named with or without its provider, a date or `-latest`.
    pub fn price(&self, model: &str) -> Option<ModelPrice> {
        // Local models are free.
        if model.starts_with("ollama/") || model.starts_with("ollama_chat/") {
            return Some(flat(PriceConfig::default()));
        }
        let mut name = model;
        loop {
            if let Some(price) = self.named(name).or_else(|| self.named(undated(name))) {
                return Some(price.clone());
            }
            name = name.split_once('/')?.1;
        }
    }

    pub fn len(&self) -> usize {
        self.models.len()
    }

    pub fn is_empty(&self) -> bool {
        self.models.is_empty()
    }

    fn named(&self, name: &str) -> Option<&ModelPrice> {
        self.models.get(name).or_else(|| self.models.get(self.bare.get(name)?))
    }

    fn insert(&mut self, name: &str, price: ModelPrice) {
        if let Some((_, bare)) = name.rsplit_once('/') {
            self.bare.entry(bare.to_owned()).or_insert_with(|| name.to_owned());
        }
        self.models.insert(name.to_owned(), price);
    }
}

impl ModelPrice {
    /// The cost of a call with these tokens.
    pub fn cost(&self, tokens: &Tokens) -> Cost {
        let whole = tokens.input.saturating_add(tokens.cached).saturating_add(tokens.cache_write);
        let Some(tier) = self.tiers.iter().rev().find(|t| t.above == 0 || whole > t.above) else {
            return Cost::default();
        };
        let rates = tier.rates;
        let dollars = |tokens: u64, per_million: f64| tokens as f64 * per_million / 1e6;
        let cached = dollars(tokens.cached, rates.cache_read.unwrap_or(rates.input));
        let written = dollars(tokens.cache_write, rates.cache_write.unwrap_or(rates.input));
        let fresh = dollars(tokens.cached, rates.input) + dollars(tokens.cache_write, rates.input);
        let cost =
            dollars(tokens.input, rates.input) + dollars(tokens.output, rates.output) + cached + written;
        Cost { cost: Usd::from_dollars(cost), saved: Usd::from_dollars((fresh - cached - written).max(0.0)) }
    }

    pub fn rates(&self) -> PriceConfig {
        self.tiers.first().map(|t| t.rates).unwrap_or_default()
    }
}

fn flat(rates: PriceConfig) -> ModelPrice {
    ModelPrice { tiers: vec![Tier { above: 0, rates, cache_write_1h: None }], max_input_tokens: None }
}

/// The name without `-latest` and without a date: `-20250929`, `-2025-09-29`, `@20250929`.
fn undated(name: &str) -> &str {
    let name = name.strip_suffix("-latest").unwrap_or(name);
    let digits = |text: &str, count: usize| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    if let Some((start, end)) = name.rsplit_once(['-', '@'])
        && digits(end, 8)
    {
        return start;
    }
    let mut parts = name.rsplitn(4, '-');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(day), Some(month), Some(year), Some(start))
            if digits(day, 2) && digits(month, 2) && digits(year, 4) =>
        {
            start
        }
        _ => name,
    }
}

fn row(line: &str) -> Option<(&str, ModelPrice)> {
    let mut words = line.split_whitespace().peekable();
    let name = words.next()?;
    let max_input_tokens = words.next()?.parse().ok();
    let mut tiers = Vec::new();
    let mut above = 0;
    while words.peek().is_some() {
        let mut number = || words.next().and_then(|word| word.parse::<f64>().ok());
        let (input, output) = (number()?, number()?);
        let (cache_read, cache_write) = (number(), number());
        // Only the first group has a one-hour price.
        let cache_write_1h = if above == 0 { number() } else { None };
        let rates = PriceConfig { input, output, cache_read, cache_write };
        tiers.push(Tier { above, rates, cache_write_1h });
        match words.next() {
            Some(next) => above = next.strip_prefix('>')?.parse().ok()?,
            None => break,
        }
    }
    Some((name, ModelPrice { tiers, max_input_tokens }))
}

/// An entry of LiteLLM's list, whose prices are per token.
fn litellm_entry(entry: &Map<String, Value>) -> Option<ModelPrice> {
    let max_input_tokens = entry.get("max_input_tokens").and_then(Value::as_u64);
    if let Some(list) = entry.get("tiered_pricing").and_then(Value::as_array) {
        let mut tiers: Vec<Tier> = list
            .iter()
            .filter_map(|tier| {
                let start = tier.get("range").and_then(|r| r.get(0)).and_then(Value::as_f64).unwrap_or(0.0);
                litellm_tier(tier.as_object()?, "", start.max(0.0) as u64)
            })
            .collect();
        tiers.sort_by_key(|t| t.above);
        if let Some(first) = tiers.first_mut() {
            first.above = 0;
            return Some(ModelPrice { tiers, max_input_tokens });
        }
    }
    let mut tiers = vec![litellm_tier(entry, "", 0)?];
    for key in entry.keys() {
        let length = key.strip_prefix("input_cost_per_token_above_").and_then(|k| k.strip_suffix("k_tokens"));
        if let Some(thousands) = length.and_then(|l| l.parse::<u64>().ok()).filter(|l| *l > 0) {
            let above = thousands.saturating_mul(1000);
            tiers.extend(litellm_tier(entry, &format!("_above_{thousands}k_tokens"), above));
        }
    }
    tiers.sort_by_key(|t| t.above);
    Some(ModelPrice { tiers, max_input_tokens })
}

/// The prices whose keys end in `suffix`; a longer tier takes missing ones from the base.
fn litellm_tier(entry: &Map<String, Value>, suffix: &str, above: u64) -> Option<Tier> {
    let price = |key: &str| {
        let of = |key: &str| entry.get(key).and_then(Value::as_f64).filter(|p| p.is_finite() && *p >= 0.0);
        let found = of(&format!("{key}{suffix}")).or_else(|| of(key))?;
        // Removes the noise of binary fractions; no price is below a millionth of a dollar.
        Some((found * 1e12).round() / 1e6)
    };
    Some(Tier {
        above,
        rates: PriceConfig {
            input: price("input_cost_per_token")?,
            output: price("output_cost_per_token")?,
            cache_read: price("cache_read_input_token_cost"),
            cache_write: price("cache_creation_input_token_cost"),
        },
        cache_write_1h: entry
            .get("cache_creation_input_token_cost_above_1hr")
            .and_then(Value::as_f64)
            .map(|p| (p * 1e12).round() / 1e6),
    })
}

#[cfg(test)]
mod tests;
