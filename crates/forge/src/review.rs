//! Which of a reviewer's reviews counts.

use ralph_loop_domain::ports::{Review, ReviewState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Approved,
    ChangesRequested,
    Commented,
    /// Withdrawn; the reviewer has no other decision.
    Dismissed,
}

impl Verdict {
    pub fn state(self) -> ReviewState {
        match self {
            Self::Approved => ReviewState::Approved,
            Self::ChangesRequested => ReviewState::ChangesRequested,
            Self::Commented | Self::Dismissed => ReviewState::Commented,
        }
    }
}

/// The latest decision of each reviewer, oldest first; `given` is oldest first. A comment doesn't replace a decision,
/// and authors can't review themselves.
pub(crate) fn latest(given: Vec<(Verdict, Review)>, author: &str) -> Vec<Review> {
    let mut counting: BTreeMap<String, (usize, Verdict, Review)> = BTreeMap::new();
    for (order, (verdict, review)) in given.into_iter().enumerate() {
        let person = review.author.to_lowercase();
        if person == author.to_lowercase() {
            continue;
        }
        let decided = counting
            .get(&person)
            .is_some_and(|(_, last, _)| matches!(last, Verdict::Approved | Verdict::ChangesRequested));
        if verdict == Verdict::Commented && decided {
            continue;
        }
        counting.insert(person, (order, verdict, review));
    }
    let mut found: Vec<_> =
        counting.into_values().filter(|(_, verdict, _)| *verdict != Verdict::Dismissed).collect();
    found.sort_by_key(|(order, ..)| *order);
    found.into_iter().map(|(_, _, review)| review).collect()
}

/// Dismissed reviews of reviewers without a later decision; `given` is oldest first.
pub(crate) fn last_dismissed(given: &[(Verdict, Review)]) -> Vec<&Review> {
    let mut last: BTreeMap<String, (Verdict, &Review)> = BTreeMap::new();
    for (verdict, review) in given.iter().filter(|(verdict, _)| *verdict != Verdict::Commented) {
        last.insert(review.author.to_lowercase(), (*verdict, review));
    }
    last.into_values()
        .filter(|(verdict, _)| *verdict == Verdict::Dismissed)
        .map(|(_, review)| review)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latest_states(given: &[(&str, Verdict)]) -> Vec<(String, ReviewState)> {
        let given = given.iter().zip(1..).map(|((who, verdict), id)| {
            let review = Review {
                id,
                author: (*who).into(),
                state: verdict.state(),
                body: String::new(),
                commit: None,
                at: None,
            };
            (*verdict, review)
        });
        latest(given.collect(), "me").into_iter().map(|r| (r.author, r.state)).collect()
    }

    #[test]
    fn the_latest_decision_of_each_person_counts() {
        use Verdict::{Approved, ChangesRequested, Commented, Dismissed};
        let told = latest_states(&[
            ("ann", ChangesRequested),
            ("bob", Approved),
            ("ann", Approved),
            ("ann", Commented),
            ("me", Approved),
            ("cy", ChangesRequested),
            ("cy", Dismissed),
            ("dan", Commented),
        ]);
        let told: Vec<_> = told.iter().map(|(who, state)| (who.as_str(), *state)).collect();
        assert_eq!(
            told,
            [("bob", ReviewState::Approved), ("ann", ReviewState::Approved), ("dan", ReviewState::Commented)]
        );
    }
}
