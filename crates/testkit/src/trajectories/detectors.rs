//! The detectors that the benchmark compares. Each says at which iteration (from 0) it calls a run stuck.

use super::play::{Played, Seen};
use ralph_loop_domain::stuck::{self, Trace, WINDOW};
use ralph_loop_task::config::StuckConfig;
use std::collections::{BTreeMap, VecDeque};

/// A detector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detector {
    /// The one that ships.
    Ours,
    /// Repeated failure 0.5, stagnation 0.3, ABAB 0.2; stuck from 0.7 on. Nothing else.
    BareFormula,
    /// The rules of OpenHands over actions and observations. The whole run is one history to them, which is more than they get in
    /// life: there every session begins anew.
    OpenHands,
}

impl Detector {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ours, Self::BareFormula, Self::OpenHands];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours => "ralph",
            Self::BareFormula => "bare formula",
            Self::OpenHands => "OpenHands rules",
        }
    }

    /// The first iteration that it calls stuck.
    pub fn detects(self, played: &[Played]) -> Option<usize> {
        match self {
            Self::Ours => ours(played),
            Self::BareFormula => (0..played.len()).find(|at| bare(&played[..=*at]) >= 0.7),
            Self::OpenHands => open_hands(played),
        }
    }
}

fn ours(played: &[Played]) -> Option<usize> {
    let config = StuckConfig::default();
    let mut window: VecDeque<Trace> = VecDeque::new();
    played.iter().position(|p| {
        // What no session can mend is asked about at the second one that leaves it so.
        let fault = &p.trace.evidence.environment;
        if fault.is_some() && window.back().is_some_and(|last| last.evidence.environment == *fault) {
            return true;
        }
        window.push_back(p.trace.clone());
        if window.len() > WINDOW {
            window.pop_front();
        }
        stuck::score(window.make_contiguous(), &config, 0.7).loop_score >= 0.7
    })
}

fn bare(played: &[Played]) -> f64 {
    let traces: Vec<&Trace> = played.iter().map(|p| &p.trace).collect();
    let Some(newest) = traces.last() else { return 0.0 };
    let mut score = 0.0;
    let same =
        traces.iter().rev().take(5).filter(|t| t.failure.is_some() && t.failure == newest.failure).count();
    if same >= 3 {
        score += 0.5;
    }
    if traces.len() >= 3 && traces.iter().rev().take(3).all(|t| t.lines < 3) {
        score += 0.3;
    }
    let mut contents: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for trace in traces.iter().rev().take(8).rev() {
        for (path, blob) in &trace.files {
            contents.entry(path).or_default().push(blob);
        }
    }
    let flips = |path: &String| {
        contents
            .get(path.as_str())
            .is_some_and(|seen| matches!(seen.as_slice(), [.., a, b, c, d] if a == c && b == d && a != b))
    };
    if newest.files.iter().any(|(path, _)| flips(path)) {
        score += 0.2;
    }
    // 0.5 + 0.2 must reach 0.7.
    score + 1e-9
}

fn open_hands(played: &[Played]) -> Option<usize> {
    let mut history: Vec<&Seen> = Vec::new();
    played.iter().position(|p| {
        p.seen.iter().any(|seen| {
            history.push(seen);
            let recent = &history[history.len().saturating_sub(20)..];
            same_four(recent) || failing_four(recent) || monologue(recent) || alternates(recent)
        })
    })
}

fn acts<'a>(recent: &[&'a Seen], count: usize) -> Option<Vec<(&'a str, &'a str, bool)>> {
    let all: Vec<_> = recent
        .iter()
        .filter_map(|seen| match seen {
            Seen::Act { action, observation, failed } => {
                Some((action.as_str(), observation.as_str(), *failed))
            }
            Seen::Message => None,
        })
        .collect();
    all.len().checked_sub(count).map(|start| all[start..].to_vec())
}

fn same_four(recent: &[&Seen]) -> bool {
    acts(recent, 4).is_some_and(|last| last.iter().all(|a| (a.0, a.1) == (last[0].0, last[0].1)))
}

fn failing_four(recent: &[&Seen]) -> bool {
    acts(recent, 4).is_some_and(|last| last.iter().all(|a| a.0 == last[0].0 && a.2))
}

fn monologue(recent: &[&Seen]) -> bool {
    recent.len() >= 3 && recent[recent.len() - 3..].iter().all(|seen| **seen == Seen::Message)
}

fn alternates(recent: &[&Seen]) -> bool {
    acts(recent, 6).is_some_and(|last| {
        (2..6).all(|at| (last[at].0, last[at].1) == (last[at - 2].0, last[at - 2].1))
            && last[0].0 != last[1].0
    })
}
