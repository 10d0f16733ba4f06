//! Totals costs of this machine's runs from their session receipts.

use crate::environment::Environment;
use crate::error::AppError;
use crate::read::facts::RunSnapshot;
use crate::trust::repo_file;
use jiff::Timestamp;
use ralph_loop_journal::folder::registry;
use ralph_loop_protocol::money::receipt::Receipt;
use ralph_loop_protocol::money::{Cost, CostBasis, Usd};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CostsBy {
    Agent,
    Model,
    Repo,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostRow {
    pub name: String,
    /// Number of runs.
    pub runs: usize,
    pub sessions: u64,
    #[serde(flatten)]
    pub cost: Cost,
    /// `None` if no session reported tokens.
    pub tokens: Option<u64>,
    /// Sessions with unknown cost.
    pub unknown_sessions: u64,
}

/// All rows, most expensive first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Costs {
    pub since: Timestamp,
    pub by: CostsBy,
    pub rows: Vec<CostRow>,
    /// Number of runs.
    pub runs: usize,
    /// Total over all rows.
    #[serde(flatten)]
    pub cost: Cost,
    /// Sessions with unknown cost.
    pub unknown_sessions: u64,
    /// Tokens of prompts, and those of them that the providers' caches held.
    pub prompt_tokens: u64,
    pub cached_tokens: u64,
    /// What the caches saved, where prices are known.
    pub saved_usd: Option<Usd>,
}

/// Name for doctor and critic calls, which aren't agent sessions.
const HELPERS: &str = "doctor and critic";

/// Totals the sessions that ended after `since`, over every run on this machine.
pub fn costs(env: &Environment, since: Timestamp, by: CostsBy) -> Result<Costs, AppError> {
    let mut sums: BTreeMap<String, (BTreeSet<String>, CostRow)> = BTreeMap::new();
    let mut all_runs = BTreeSet::new();
    let (mut prompts, mut cached, mut saved) = (0u64, 0u64, None);
    for entry in registry::all(&env.state_home()?) {
        let Ok(reading) = RunSnapshot::load(env, entry) else { continue };
        if reading.last_event < since {
            continue;
        }
        let run = reading.entry.run_id.to_string();
        let repo = reading.state.spec.origin.display().to_string();
        let receipts = receipts(&reading);
        let mut add = |name: String, sessions: u64, cost: Cost, tokens: Option<u64>| {
            let (runs, row) = sums.entry(name.clone()).or_insert_with(|| {
                let row = CostRow {
                    name,
                    runs: 0,
                    sessions: 0,
                    cost: Cost::default(),
                    tokens: None,
                    unknown_sessions: 0,
                };
                (BTreeSet::new(), row)
            });
            runs.insert(run.clone());
            all_runs.insert(run.clone());
            row.sessions += sessions;
            row.tokens = row.tokens.map_or(tokens, |sum| Some(sum + tokens.unwrap_or(0)));
            row.cost += cost;
            if cost.known().is_none() {
                row.unknown_sessions += sessions;
            }
        };
        for receipt in receipts.iter().filter(|receipt| receipt.ended_at >= since) {
            let name = match by {
                CostsBy::Agent => receipt.agent.to_string(),
                CostsBy::Model => receipt.model.clone().unwrap_or_else(|| "not known".to_owned()),
                CostsBy::Repo => repo.clone(),
            };
            if let Some(tokens) = receipt.tokens {
                prompts = prompts.saturating_add(tokens.total().saturating_sub(tokens.output));
                cached = cached.saturating_add(tokens.cached);
            }
            saved = match (saved, receipt.saved_usd) {
                (Some(sum), Some(more)) => Some(sum + more),
                (sum, more) => sum.or(more),
            };
            add(name, 1, receipt.cost, receipt.tokens.map(|tokens| tokens.total()));
        }
        // Interrupted sessions have no receipt, but the agents' totals include them.
        let mut of_sessions = 0.0;
        for (agent, used) in &reading.state.agents.by_agent {
            let own: Vec<&Receipt> = receipts.iter().filter(|receipt| receipt.agent == *agent).collect();
            let told: f64 = own.iter().map(|receipt| receipt.cost.at_least().dollars()).sum();
            let tokens: u64 = own.iter().filter_map(|r| r.tokens).map(|tokens| tokens.total()).sum();
            let all = used.cost.at_least().dollars();
            of_sessions += all.max(told);
            let cut = u64::from(used.sessions).saturating_sub(own.len() as u64);
            let cost = all - told;
            if cut == 0 && cost <= 0.000_001 {
                continue;
            }
            let name = match by {
                CostsBy::Agent => agent.to_string(),
                CostsBy::Model => model_of(&own).unwrap_or_else(|| "not known".to_owned()),
                CostsBy::Repo => repo.clone(),
            };
            let cost = Cost::new(Usd::from_dollars(cost.max(0.0)), used.cost.basis());
            let more = used.tokens.known().map(|used| used.total().saturating_sub(tokens));
            add(name, cut, cost, more);
        }
        let all = reading.state.spending.totals.cost;
        let more = all.at_least().dollars() - of_sessions;
        if more > 0.000_001 {
            let name = if by == CostsBy::Repo { repo.clone() } else { HELPERS.to_owned() };
            add(name, 0, Cost::new(Usd::from_dollars(more), all.basis().min(CostBasis::Estimated)), None);
        }
    }
    let mut rows: Vec<CostRow> =
        sums.into_values().map(|(runs, row)| CostRow { runs: runs.len(), ..row }).collect();
    rows.sort_by(|a, b| b.cost.at_least().cmp(&a.cost.at_least()).then_with(|| a.name.cmp(&b.name)));
    Ok(Costs {
        since,
        by,
        runs: all_runs.len(),
        cost: rows.iter().map(|row| row.cost).sum(),
        unknown_sessions: rows.iter().map(|row| row.unknown_sessions).sum(),
        prompt_tokens: prompts,
        cached_tokens: cached,
        saved_usd: saved,
        rows,
    })
}

/// The model of an agent's sessions, if they used only one.
fn model_of(receipts: &[&Receipt]) -> Option<String> {
    let first = receipts.first()?.model.clone()?;
    receipts.iter().all(|receipt| receipt.model.as_ref() == Some(&first)).then_some(first)
}

fn receipts(reading: &RunSnapshot) -> Vec<Receipt> {
    let dir = reading.entry.run_dir();
    let read = |number: u32| {
        let bytes = repo_file::read_record(&dir.iteration(number).join("receipt.json")).ok()?;
        serde_json::from_slice::<Receipt>(&bytes).ok()
    };
    (1..=reading.iteration()).filter_map(read).collect()
}
