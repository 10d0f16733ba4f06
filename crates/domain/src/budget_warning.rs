//! Warnings about budgets that are nearly used, once each.

use crate::state::RunState;
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::EventBody;
use ralph_loop_task::budget::Spent;

pub fn budget_warnings(state: &RunState) -> Vec<EventBody> {
    budget_warnings_with(state, Spent::default())
}

/// Includes what the active session has used.
pub fn budget_warnings_with(state: &RunState, session: Spent) -> Vec<EventBody> {
    let budgets = &state.spec.settings.budgets;
    let before = state.spent();
    let spent = Spent {
        iterations: before.iterations + session.iterations,
        time: before.time + session.time,
        cost: before.cost + session.cost,
        tokens: before.tokens + session.tokens,
    };
    budgets
        .shares(spent)
        .into_iter()
        .filter(|(kind, share)| {
            *share >= ralph_loop_task::budget::WARN_AT && !state.spending.warned.contains(kind)
        })
        .filter(|(kind, _)| {
            *kind != ralph_loop_task::budget::BudgetKind::Cost
                || spent.cost > ralph_loop_protocol::money::Usd::ZERO
        })
        .map(|(budget, share)| {
            use ralph_loop_task::budget::BudgetKind;
            let used = match budget {
                BudgetKind::Iterations => {
                    format!("{} of {} iterations", spent.iterations, budgets.max_iterations)
                }
                BudgetKind::Time => {
                    format!(
                        "{} of {} working time",
                        text::duration(spent.time),
                        text::duration(budgets.max_wall_time)
                    )
                }
                BudgetKind::Cost => format!("{} of {}", spent.cost, budgets.max_cost),
                BudgetKind::Tokens => {
                    format!("{} of {} tokens", spent.tokens, budgets.max_tokens.unwrap_or(0))
                }
            };
            EventBody::BudgetWarning {
                budget,
                message: format!("{used} used ({:.0} %)", share * 100.0),
                cut_ms: 0,
            }
        })
        .collect()
}
