//! How well circling runs are noticed, and what noticing costs.
//!
//! `cargo run --release -p ralph-loop-testkit --bin ralph-stuck-bench [-- --tune]`: plays the labelled trajectories and prints precision,
//! recall and delay of this detector, of the bare formula and of the rules of OpenHands, for both halves. `--tune` shows only
//! the half that rules may be chosen on, `--verbose` also the misses of the others and the delays of every family.
#![allow(clippy::print_stdout, reason = "a benchmark prints a table")]

use ralph_loop_domain::stuck::{self, Trace, WINDOW};
use ralph_loop_task::config::StuckConfig;
use ralph_loop_testkit::trajectories::detectors::Detector;
use ralph_loop_testkit::trajectories::report::{judge, play_all};
use ralph_loop_testkit::trajectories::{Split, Trajectory, all};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

fn main() {
    let tune_only = std::env::args().any(|a| a == "--tune");
    let verbose = std::env::args().any(|a| a == "--verbose");
    let every = all();
    let stuck = every.iter().filter(|t| t.stuck).count();
    println!("{} trajectories: {stuck} circle, {} do not\n", every.len(), every.len() - stuck);
    let halves: &[(Split, &str)] = match tune_only {
        true => &[(Split::Tune, "tune")],
        false => &[(Split::Tune, "tune"), (Split::HeldOut, "held out")],
    };
    println!(
        "{:<10} {:<16} {:>6} {:>10} {:>8} {:>8} {:>8}",
        "half", "detector", "runs", "precision", "recall", "median", "longest"
    );
    let mut misses = Vec::new();
    let mut sample = Vec::new();
    let mut families = Vec::new();
    for (split, name) in halves {
        let part: Vec<&Trajectory> = every.iter().filter(|t| t.split == *split).collect();
        let played = play_all(&part);
        for detector in Detector::ALL {
            let score = judge(detector, &part, &played);
            println!(
                "{name:<10} {:<16} {:>6} {:>10.3} {:>8.3} {:>8} {:>8}",
                detector.name(),
                part.len(),
                score.precision(),
                score.recall(),
                score.median(),
                score.longest()
            );
            if detector == Detector::Ours || verbose {
                misses.extend(score.misses.iter().map(|m| format!("{name}, {}: {m}", detector.name())));
            }
        }
        if verbose {
            let score = judge(Detector::Ours, &part, &played);
            families
                .extend(score.by_family.into_iter().map(|(f, delays)| format!("{name}, {f}: {delays:?}")));
        }
        sample.extend(played.into_iter().flatten().map(|p| p.trace));
    }
    println!("\nmedian and longest: iterations from the first circling one (1) to the alarm");
    println!("\nmisses: {}", misses.len());
    misses.iter().for_each(|m| println!("  {m}"));
    if verbose {
        println!("\niterations until the alarm, by family");
        families.iter().for_each(|line| println!("  {line}"));
    }
    cost(&sample, 100);
    let [short, full, long] = [10, 20, 2000].map(|length| micros(cost(&sample, length)).max(0.001));
    println!(
        "\ncost of an iteration's score: {short:.1} µs in a run of 10, {full:.1} in one of 20, {long:.1} in one of 2,000"
    );
    println!(
        "2,000 against 10: {:.2}; against 20, where the window is full: {:.2}",
        long / short,
        long / full
    );
    println!("reading the evidence of 64 KiB of patch and of output: {:.1} µs", micros(reading()));
}

/// The median cost of reading the largest evidence that an iteration can have.
fn reading() -> Duration {
    let lines: String = (0..1700).map(|n| format!("+    let order_{n} = merge_order({n});\n")).collect();
    let patch = format!("diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1,3 +1,3 @@\n{lines}");
    let output: String = (0..1000)
        .map(|n| format!("test suite::order_case_{n} in /tmp/x{n}/a.rs:{n}:9 ... FAILED\n"))
        .collect();
    let mut times: Vec<Duration> = (0..40)
        .map(|_| {
            let started = Instant::now();
            std::hint::black_box(stuck::patch::sketch(&patch));
            std::hint::black_box(stuck::failure::signature("tests", Some(1), &output));
            std::hint::black_box((
                ralph_loop_proof::report::failing::failing_tests(&output),
                ralph_loop_proof::report::failing::problems(&output),
            ));
            std::hint::black_box(ralph_loop_proof::report::failing::gap(&output));
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The median cost of one score at the end of a run of that length. The last iterations are the same for every length.
fn cost(sample: &[Trace], length: usize) -> Duration {
    let config = StuckConfig::default();
    let mut times: Vec<Duration> = (0..sample.len().min(300))
        .map(|end| {
            let end = end * 7 + length * sample.len();
            let mut window: VecDeque<Trace> = VecDeque::new();
            for at in end - length..end {
                push(&mut window, sample[at % sample.len()].clone());
            }
            let newest = sample[end % sample.len()].clone();
            // As the engine does it; the first time only warms the caches, whatever the length was.
            let score = || {
                let mut traces: Vec<Trace> = window.iter().cloned().collect();
                traces.push(newest.clone());
                std::hint::black_box(stuck::score(&traces, &config, 0.7));
            };
            score();
            let started = Instant::now();
            score();
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn push(window: &mut VecDeque<Trace>, trace: Trace) {
    window.push_back(trace);
    if window.len() > WINDOW {
        window.pop_front();
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
