//! How well a detector does: precision, recall, and how soon after the onset.

use super::Trajectory;
use super::detectors::Detector;
use super::play::{Played, play};
use std::collections::BTreeMap;

/// The result of one detector on some trajectories.
#[derive(Debug, Clone, Default)]
pub struct Score {
    /// Circling runs that were noticed, at or after their onset.
    pub noticed: usize,
    /// Circling runs.
    pub stuck: usize,
    /// Alarms without a reason: in a healthy run, or before the onset.
    pub false_alarms: usize,
    /// Iterations from the onset until the alarm, sorted; 1 is the first circling iteration itself.
    pub delays: Vec<usize>,
    /// What went wrong, in words.
    pub misses: Vec<String>,
    /// The delays of each family that was noticed.
    pub by_family: BTreeMap<String, Vec<usize>>,
}

impl Score {
    /// Share of alarms that were right.
    pub fn precision(&self) -> f64 {
        share(self.noticed, self.noticed + self.false_alarms)
    }
    /// Share of circling runs that were noticed.
    pub fn recall(&self) -> f64 {
        share(self.noticed, self.stuck)
    }
    /// The middle of the delays.
    pub fn median(&self) -> usize {
        self.delays.get(self.delays.len() / 2).copied().unwrap_or(0)
    }
    /// The longest delay.
    pub fn longest(&self) -> usize {
        self.delays.last().copied().unwrap_or(0)
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

/// Plays trajectories, on two threads.
pub fn play_all(trajectories: &[&Trajectory]) -> Vec<Vec<Played>> {
    let half = trajectories.len().div_ceil(2).max(1);
    std::thread::scope(|scope| {
        let parts: Vec<_> = trajectories
            .chunks(half)
            .map(|part| scope.spawn(move || part.iter().map(|t| play(&t.scene)).collect::<Vec<_>>()))
            .collect();
        parts.into_iter().flat_map(|part| part.join().unwrap_or_default()).collect()
    })
}

/// Judges a detector.
pub fn judge(detector: Detector, trajectories: &[&Trajectory], played: &[Vec<Played>]) -> Score {
    let mut score = Score::default();
    for (trajectory, played) in trajectories.iter().zip(played) {
        let alarm = detector.detects(played);
        let onset = trajectory.scene.onset.unwrap_or(usize::MAX);
        score.stuck += usize::from(trajectory.stuck);
        match alarm {
            Some(at) if trajectory.stuck && at >= onset => {
                score.noticed += 1;
                score.delays.push(at - onset + 1);
                let family = trajectory.name.split('/').next().unwrap_or_default().to_owned();
                score.by_family.entry(family).or_default().push(at - onset + 1);
            }
            Some(at) => {
                score.false_alarms += 1;
                score.misses.push(format!("false alarm at iteration {} of {}", at + 1, trajectory.name));
            }
            None if trajectory.stuck => score.misses.push(format!("not noticed: {}", trajectory.name)),
            None => {}
        }
    }
    score.delays.sort_unstable();
    score
}
