//! The critic: one short review by another model. Its objections become the next session's nudge.

use jiff::Timestamp;
use ralph_loop_domain::ports::{AskTarget, Question};
use ralph_loop_protocol::display::text::head;
use std::time::Duration;

const SYSTEM: &str = include_str!("../../templates/critic.md");
/// Token limit of an answer, to keep it short.
const ANSWER_MAX: u64 = 800;
/// Length limit of the objections passed on.
const OBJECTIONS_MAX: usize = 2000;

const TIMEOUT: Duration = Duration::from_secs(300);

pub(crate) fn question<'a>(whom: AskTarget<'a>, record: &'a str, now: Timestamp) -> Question<'a> {
    Question {
        whom,
        system: SYSTEM,
        prompt: record,
        earlier: &[],
        schema: None,
        max_output_tokens: Some(ANSWER_MAX),
        max_cost: None,
        timeout: TIMEOUT,
        stream: false,
        now,
    }
}

/// The objections in an answer; empty if there are none.
pub(crate) fn objections(answer: &str) -> String {
    let answer = answer.trim();
    let bare = answer.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    if bare == "no objections" || bare.is_empty() {
        return String::new();
    }
    head(answer, OBJECTIONS_MAX).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_objections_are_none() {
        for answer in ["no objections", "No objections.", "`no objections`", "", " \n"] {
            assert_eq!(objections(answer), "", "{answer:?}");
        }
        assert_eq!(objections(" The seed is wrong. "), "The seed is wrong.");
        assert_eq!(objections(&"x".repeat(9000)).len(), OBJECTIONS_MAX);
    }
}
