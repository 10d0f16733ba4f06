//! The screens: each shows its part of the model and handles its keys.

pub mod details;
pub mod finalize;
mod prompts;
pub mod review;
pub mod run;
mod run_race;
mod run_tabs;
pub mod setup;
pub mod start;
pub mod studio;
pub mod summary;
pub mod welcome;

pub use prompts::{REVIEW_SYSTEM, STUDIO_SYSTEM, review_prompt, studio_prompt};

use crate::data::{Problem, Screen};
use crate::keys::{Action, Binding};
use crate::model::Model;
use crate::widget::draw::Canvas;
use crate::widget::theme::{Role, Sign};
use ratatui::layout::Rect;

/// Shows a problem's three parts; returns the row after it.
pub(crate) fn problem(canvas: &mut Canvas<'_>, area: Rect, row: u16, problem: &Problem) -> u16 {
    let sign = canvas.theme.sign(Sign::Bad);
    let mut row = canvas.text(area, row, Role::Bad, &format!("{sign} {}", problem.what));
    for line in &problem.why {
        row = canvas.text(area, row, Role::Text, &format!("  {line}"));
    }
    canvas.text(area, row, Role::Accent, &format!("next: {}", problem.fix))
}

/// A heading; returns the row after it.
pub(crate) fn heading(canvas: &mut Canvas<'_>, area: Rect, row: u16, text: &str) -> u16 {
    canvas.line(area, row, &[(Role::Strong, text.to_owned())]);
    row + 1
}

/// Whether an action has an effect now. Key bar, help and palette show only these.
pub fn offers(model: &Model, action: Action) -> bool {
    match model.screen {
        Screen::Run => run::offers(model, action),
        Screen::Summary => summary::offers(model, action),
        _ => true,
    }
}

/// The word for a binding in the key bar; `None` leaves it out.
pub fn short(model: &Model, binding: &Binding) -> Option<&'static str> {
    let offered = binding.short.is_some() && offers(model, binding.action);
    match model.screen {
        Screen::Run if offered => run::short(model, binding),
        _ if offered => binding.short,
        _ => None,
    }
}
