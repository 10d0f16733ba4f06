//! Session costs of a run, from its receipts.

use jiff::Timestamp;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::trust::repo_file;
use ralph_loop_protocol::money::receipt::Receipt;

/// Smaller amounts are rounding errors.
const NOTHING: f64 = 0.000_001;
/// Costs outside counted sessions: doctors, critics, interrupted sessions.
const OTHER: &str = "other";

/// Cost of one session, or of everything without a receipt.
#[derive(Debug, Clone, PartialEq)]
pub struct Spend {
    /// The iteration, or `other`.
    pub part: String,
    pub at: Timestamp,
    pub agent: String,
    pub model: String,
    pub cost_usd: f64,
    pub tokens: i64,
    pub sessions: i64,
    /// Sessions with unknown cost.
    pub unpriced: i64,
}

impl Spend {
    /// All parts of a run; their sum is the run's reported cost.
    pub fn of(reading: &RunSnapshot) -> Vec<Self> {
        let dir = reading.entry.run_dir();
        let receipt = |number: u32| {
            let bytes = repo_file::read_record(&dir.iteration(number).join("receipt.json")).ok()?;
            serde_json::from_slice::<Receipt>(&bytes).ok()
        };
        let receipts = (1..=reading.state.iterations.count).filter_map(receipt);
        let mut parts: Vec<Self> = receipts.map(|receipt| Self::session(&receipt)).collect();
        let totals = &reading.state.spending.totals;
        let told: f64 = parts.iter().map(|part| part.cost_usd).sum();
        let sessions = i64::from(totals.sessions) - i64::try_from(parts.len()).unwrap_or(0);
        let rest = totals.cost.at_least().dollars() - told;
        if rest > NOTHING || sessions > 0 {
            let tokens: i64 = parts.iter().map(|part| part.tokens).sum();
            parts.push(Self {
                part: OTHER.to_owned(),
                at: reading.last_event,
                agent: OTHER.to_owned(),
                model: OTHER.to_owned(),
                cost_usd: rest.max(0.0),
                tokens: (i64::try_from(totals.tokens.at_least()).unwrap_or(i64::MAX) - tokens).max(0),
                sessions: sessions.max(0),
                unpriced: if rest > NOTHING || totals.cost.whole().is_some() { 0 } else { sessions.max(0) },
            });
        }
        parts
    }

    fn session(receipt: &Receipt) -> Self {
        Self {
            part: receipt.iteration.to_string(),
            at: receipt.ended_at,
            agent: receipt.agent.to_string(),
            model: receipt.model.clone().unwrap_or_else(|| "not known".to_owned()),
            cost_usd: receipt.cost.at_least().dollars(),
            tokens: i64::try_from(receipt.tokens.map_or(0, |t| t.total())).unwrap_or(i64::MAX),
            sessions: 1,
            unpriced: i64::from(receipt.cost.known().is_none()),
        }
    }
}
