//! The detector against labelled trajectories: on the half that no rule was chosen on, and against two others.

use ralph_loop_testkit::trajectories::detectors::Detector;
use ralph_loop_testkit::trajectories::report::{Score, judge, play_all};
use ralph_loop_testkit::trajectories::{Split, Trajectory, all};

#[test]
fn circling_runs_of_the_held_out_half_are_noticed_and_healthy_ones_left_alone() {
    let every = all();
    let held_out: Vec<&Trajectory> = every.iter().filter(|t| t.split == Split::HeldOut).collect();
    let played = play_all(&held_out);
    let [ours, bare, hands]: [Score; 3] = Detector::ALL.map(|d| judge(d, &held_out, &played));
    assert!(ours.recall() >= 0.95, "recall {:.3}: {:#?}", ours.recall(), ours.misses);
    assert!(ours.precision() >= 0.98, "precision {:.3}: {:#?}", ours.precision(), ours.misses);
    assert!(ours.median() <= 4, "median delay {}", ours.median());
    for other in [bare, hands] {
        assert!(ours.recall() >= other.recall() && ours.precision() >= other.precision());
    }
}

#[test]
fn the_corpus_is_large_labelled_and_split() {
    let every = all();
    let count = |wanted: &dyn Fn(&Trajectory) -> bool| every.iter().filter(|t| wanted(t)).count();
    assert!(every.len() >= 120, "{}", every.len());
    for split in [Split::Tune, Split::HeldOut] {
        assert!(count(&|t| t.split == split && t.stuck) >= 40);
        assert!(count(&|t| t.split == split && !t.stuck) >= 40);
    }
    for t in &every {
        assert_eq!(t.stuck, t.scene.onset.is_some(), "{}", t.name);
        assert!(t.scene.onset.is_none_or(|at| at > 0 && at + 3 <= t.scene.steps.len()), "{}", t.name);
        assert!(t.scene.steps.len() >= 4, "{}: {}", t.name, t.scene.steps.len());
    }
}

#[test]
fn a_trajectory_is_the_same_every_time() {
    let (first, second) = (all(), all());
    for (a, b) in first.iter().zip(&second).step_by(37) {
        let (a, b) = (play_all(&[a]), play_all(&[b]));
        let traces = |played: &[Vec<_>]| -> Vec<_> {
            played
                .iter()
                .flatten()
                .map(|p: &ralph_loop_testkit::trajectories::play::Played| p.trace.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(traces(&a), traces(&b));
    }
}
