//! What the runs of this machine have cost, counted from the receipts of their sessions.

use crate::environment::Environment;
use crate::error::AppError;
use crate::facts::RunReading;
use crate::repo_file;
use jiff::Timestamp;
use ralph_domain::money::{CostBasis, Usd};
use ralph_domain::receipt::Receipt;
use ralph_journal::registry;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What costs are added up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CostsBy {
    /// Who worked.
    Agent,
    /// With which model.
    Model,
    /// In which repo.
    Repo,
}

/// One sum.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostRow {
    /// The agent, model or repo.
    pub name: String,
    /// Runs that took part.
    pub runs: usize,
    /// Sessions.
    pub sessions: u64,
    /// What is known of their cost.
    pub cost_usd: Usd,
    /// Tokens, where they are known.
    pub tokens: u64,
    /// Sessions whose cost nobody knows.
    pub unknown_sessions: u64,
}

/// All sums, the dearest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Costs {
    /// Since when.
    pub since: Timestamp,
    /// What they are added up by.
    pub by: CostsBy,
    /// The sums.
    pub rows: Vec<CostRow>,
    /// Runs that took part.
    pub runs: usize,
    /// Everything that is known.
    pub cost_usd: Usd,
    /// Sessions whose cost nobody knows.
    pub unknown_sessions: u64,
}

/// Who is named where a doctor or a critic was asked: no session of an agent.
const HELPERS: &str = "doctor and critic";

/// Adds up the sessions that ended after `since`, of every run on this machine.
pub fn costs(env: &Environment, since: Timestamp, by: CostsBy) -> Result<Costs, AppError> {
    let mut sums: BTreeMap<String, (BTreeSet<String>, CostRow)> = BTreeMap::new();
    let mut all_runs = BTreeSet::new();
    for entry in registry::all(&env.state_home()?) {
        let Ok(reading) = RunReading::load(env, entry) else { continue };
        if reading.last_event < since {
            continue;
        }
        let run = reading.entry.run_id.to_string();
        let repo = reading.state.spec.origin.display().to_string();
        let receipts = receipts(&reading);
        let mut add = |name: String, sessions: u64, cost: Option<Usd>, tokens: u64| {
            let (runs, row) = sums.entry(name.clone()).or_insert_with(|| {
                let row = CostRow {
                    name,
                    runs: 0,
                    sessions: 0,
                    cost_usd: Usd::ZERO,
                    tokens: 0,
                    unknown_sessions: 0,
                };
                (BTreeSet::new(), row)
            });
            runs.insert(run.clone());
            all_runs.insert(run.clone());
            row.sessions += sessions;
            row.tokens += tokens;
            match cost {
                Some(cost) => row.cost_usd += cost,
                None => row.unknown_sessions += sessions,
            }
        };
        for receipt in receipts.iter().filter(|receipt| receipt.ended_at >= since) {
            let name = match by {
                CostsBy::Agent => receipt.agent.to_string(),
                CostsBy::Model => receipt.model.clone().unwrap_or_else(|| "not known".to_owned()),
                CostsBy::Repo => repo.clone(),
            };
            add(name, 1, receipt.cost_usd, receipt.tokens.map_or(0, |tokens| tokens.total()));
        }
        // Sessions that were cut short count as no iteration and have no receipt; the agents' own sums know them.
        let mut of_sessions = 0.0;
        for (agent, used) in &reading.state.agents.by_agent {
            let own: Vec<&Receipt> = receipts.iter().filter(|receipt| receipt.agent == *agent).collect();
            let told: f64 =
                own.iter().filter_map(|receipt| receipt.cost_usd).map(|cost| cost.dollars()).sum();
            let tokens: u64 = own.iter().filter_map(|r| r.tokens).map(|tokens| tokens.total()).sum();
            of_sessions += used.cost.dollars().max(told);
            let cut = u64::from(used.sessions).saturating_sub(own.len() as u64);
            let cost = used.cost.dollars() - told;
            if cut == 0 && cost <= 0.000_001 {
                continue;
            }
            let name = match by {
                CostsBy::Agent => agent.to_string(),
                CostsBy::Model => model_of(&own).unwrap_or_else(|| "not known".to_owned()),
                CostsBy::Repo => repo.clone(),
            };
            let known = cost > 0.000_001 || used.basis != CostBasis::Unknown;
            let cost = known.then(|| Usd::from_dollars(cost.max(0.0)));
            add(name, cut, cost, used.tokens.total().saturating_sub(tokens));
        }
        let more = reading.state.spending.totals.cost.dollars() - of_sessions;
        if more > 0.000_001 {
            let name = if by == CostsBy::Repo { repo.clone() } else { HELPERS.to_owned() };
            add(name, 0, Some(Usd::from_dollars(more)), 0);
        }
    }
    let mut rows: Vec<CostRow> =
        sums.into_values().map(|(runs, row)| CostRow { runs: runs.len(), ..row }).collect();
    rows.sort_by(|a, b| b.cost_usd.cmp(&a.cost_usd).then_with(|| a.name.cmp(&b.name)));
    Ok(Costs {
        since,
        by,
        runs: all_runs.len(),
        cost_usd: rows.iter().fold(Usd::ZERO, |sum, row| sum + row.cost_usd),
        unknown_sessions: rows.iter().map(|row| row.unknown_sessions).sum(),
        rows,
    })
}

/// The one model of an agent's sessions, where there is one.
fn model_of(receipts: &[&Receipt]) -> Option<String> {
    let first = receipts.first()?.model.clone()?;
    receipts.iter().all(|receipt| receipt.model.as_ref() == Some(&first)).then_some(first)
}

fn receipts(reading: &RunReading) -> Vec<Receipt> {
    let dir = reading.entry.run_dir();
    let read = |number: u32| {
        let bytes = repo_file::read_record(&dir.iteration(number).join("receipt.json")).ok()?;
        serde_json::from_slice::<Receipt>(&bytes).ok()
    };
    (1..=reading.iteration()).filter_map(read).collect()
}
