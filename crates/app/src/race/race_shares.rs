//! Splits the budget of a race, so that all runs together never exceed it.

use ralph_loop_protocol::money::Usd;

/// A share is sent again if it changed by a step; this many steps are the whole budget.
const STEPS: f64 = 20.0;

/// Observed state of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ContestantSpend {
    pub(crate) spent: Usd,
    /// It hasn't ended.
    pub(crate) works: bool,
    /// Its limit according to its record.
    pub(crate) recorded: Option<Usd>,
    /// Its iteration: a session keeps the limit it started with.
    pub(crate) iteration: u32,
}

#[derive(Debug, Clone, Copy)]
struct Share {
    /// The limit last sent.
    told: Usd,
    /// The limit in its record at the last poll.
    recorded: Usd,
    /// The highest limit that a session started in this iteration may have.
    held: Usd,
    iteration: u32,
}

/// The shares of all runs.
#[derive(Debug)]
pub(crate) struct BudgetShares {
    budget: Usd,
    all: Vec<Share>,
}

impl BudgetShares {
    /// An equal share for each of `many`.
    pub(crate) fn new(budget: Usd, many: usize) -> Self {
        let told = Usd::from_dollars(budget.dollars() / many.max(1) as f64);
        let share = Share { told, recorded: told, held: told, iteration: 0 };
        Self { budget, all: vec![share; many] }
    }

    /// The first limit of each; `None` without a budget.
    pub(crate) fn first(&self) -> Option<Usd> {
        self.all.first().map(|share| share.told).filter(|told| *told > Usd::ZERO)
    }

    /// Records that a share was sent.
    pub(crate) fn record_share(&mut self, at: usize, share: Usd) {
        if let Some(one) = self.all.get_mut(at) {
            one.told = share;
            one.held = one.held.max(share);
        }
    }

    /// Changed shares worth sending: active runs split the remainder equally. A higher share is taken from
    /// another run first, and becomes available only once no session of that run can spend it.
    pub(crate) fn next(&mut self, seen: &[ContestantSpend]) -> Vec<(usize, Usd)> {
        for (share, seen) in self.all.iter_mut().zip(seen) {
            share.look(seen);
        }
        let step = self.budget.dollars() / STEPS;
        let spent = seen.iter().fold(Usd::ZERO, |sum, one| sum + one.spent);
        let left = self.budget.saturating_sub(spent).dollars();
        let many = seen.iter().filter(|one| one.works).count();
        if many == 0 || step <= 0.0 {
            return Vec::new();
        }
        let most = |(share, seen): (&Share, &ContestantSpend)| match seen.works {
            true => share.held.max(seen.spent).dollars(),
            false => seen.spent.dollars(),
        };
        let mut free = self.budget.dollars() - self.all.iter().zip(seen).map(most).sum::<f64>();
        let mut changes = Vec::new();
        for (at, (share, one)) in self.all.iter().zip(seen).enumerate() {
            if !one.works || one.recorded.is_none() {
                continue;
            }
            let fair = one.spent.dollars() + left / many as f64;
            let held = most((share, one));
            if fair + step <= share.told.dollars() {
                changes.push((at, Usd::from_dollars(fair)));
            } else if fair >= held + step && free >= step {
                let more = free.min(fair - held);
                free -= more;
                changes.push((at, Usd::from_dollars(held + more)));
            }
        }
        changes
    }
}

impl Share {
    fn look(&mut self, seen: &ContestantSpend) {
        let recorded = seen.recorded.unwrap_or(self.told);
        let now = recorded.max(self.told);
        self.held = match seen.iteration == self.iteration {
            true => self.held.max(now),
            // It may have started before this record was written.
            false => now.max(self.recorded),
        };
        self.iteration = seen.iteration;
        self.recorded = recorded;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simulated run: a session may spend the limit it started with.
    #[derive(Clone, Copy)]
    struct Runner {
        spent: f64,
        cap: f64,
        letter: Option<f64>,
        session: Option<f64>,
        iteration: u32,
        works: bool,
    }

    fn draw(random: &mut u64, of: u64) -> u64 {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*random >> 33) % of
    }

    /// Whatever the order of starts, spending and late messages, the total stays within the budget.
    #[test]
    fn whatever_they_do_they_spend_no_more_than_the_budget() {
        let mut random = 11;
        let mut most_of_one: f64 = 0.0;
        for _ in 0..300 {
            let mut shares = BudgetShares::new(Usd::from_dollars(9.0), 3);
            let first = shares.first().unwrap().dollars();
            let begin =
                Runner { spent: 0.0, cap: first, letter: None, session: None, iteration: 0, works: true };
            let mut all = [begin; 3];
            for _ in 0..200 {
                let one = &mut all[draw(&mut random, 3) as usize];
                match draw(&mut random, 4) {
                    0 if one.works && one.session.is_none() && one.spent < one.cap => {
                        one.iteration += 1;
                        one.session = Some(one.cap);
                    }
                    1 => {
                        if let Some(allowed) = one.session.take() {
                            one.spent +=
                                (allowed - one.spent).max(0.0) * draw(&mut random, 101) as f64 / 100.0;
                        }
                    }
                    2 => one.cap = one.letter.take().unwrap_or(one.cap),
                    _ => one.works &= one.session.is_some() || draw(&mut random, 40) > 0,
                }
                let seen = all.map(|one| ContestantSpend {
                    spent: Usd::from_dollars(one.spent),
                    works: one.works,
                    recorded: Some(Usd::from_dollars(one.cap)),
                    iteration: one.iteration,
                });
                for (at, share) in shares.next(&seen) {
                    all[at].letter = Some(share.dollars());
                    shares.record_share(at, share);
                }
                let spent: f64 = all.iter().map(|one| one.spent).sum();
                assert!(spent <= 9.0 + 1e-6, "{spent}");
                most_of_one = all.iter().map(|one| one.spent).fold(most_of_one, f64::max);
            }
        }
        assert!(most_of_one > 3.5, "a contestant that needs more gets what others leave: {most_of_one}");
    }

    #[test]
    fn without_a_limit_there_is_nothing_to_share() {
        let mut shares = BudgetShares::new(Usd::ZERO, 2);
        assert_eq!(shares.first(), None);
        let seen = ContestantSpend { spent: Usd::ZERO, works: true, recorded: Some(Usd::ZERO), iteration: 1 };
        assert!(shares.next(&[seen, seen]).is_empty());
    }
}
