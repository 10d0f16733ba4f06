//! Labelled trajectories: runs that circle and runs that only look like it, each made by a small seeded program and played in
//! a real git repo, with outputs of the test runners of five ecosystems.
//!
//! They are split in two halves by a hash of their name. Weights were chosen while looking at one half; the other half is what
//! the numbers of the benchmark and of the test are taken from. Some families were written last, when most rules stood; they
//! are held out as a whole. Both halves come from the same hands as the rules: they show that the rules do what they are
//! meant to, and a run of yours may still be of a kind that nobody thought of.

pub mod detectors;
mod fresh;
mod healthy_tests;
mod healthy_work;
mod numbers;
pub mod play;
pub mod report;
pub mod rng;
pub mod runner;
pub mod scene;
mod stuck_edits;
mod stuck_sessions;

use rng::Rng;
use runner::Ecosystem;
use scene::Scene;

/// Which half a trajectory belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// Looked at while rules and weights were chosen.
    Tune,
    /// Not looked at.
    HeldOut,
}

impl Split {
    /// By the name alone.
    pub fn of(name: &str) -> Self {
        if Rng::named(&format!("split {name}")).word().is_multiple_of(2) { Self::Tune } else { Self::HeldOut }
    }
}

/// A family: its name, whether it circles, and its program.
type Family = (&'static str, bool, fn(&mut Scene));

const FAMILIES: &[Family] = &[
    ("same failure, rewritten", true, stuck_edits::same_failure_rewrite),
    ("same failure, growing", true, stuck_edits::same_failure_growing),
    ("same failure, scattered", true, stuck_edits::same_failure_scattered),
    ("one line tweaks", true, stuck_edits::one_line_tweaks),
    ("abab", true, stuck_edits::abab),
    ("abcabc", true, stuck_edits::abcabc),
    ("abcdabcd", true, stuck_edits::abcdabcd),
    ("abab with notes", true, stuck_edits::abab_with_notes),
    ("agents undo each other", true, stuck_edits::agents_undo_each_other),
    ("comments only", true, stuck_edits::comments_only),
    ("whitespace", true, stuck_edits::whitespace),
    ("test skipping", true, stuck_edits::test_skipping),
    ("whack a mole", true, stuck_edits::whack_a_mole),
    ("notes only", true, stuck_edits::notes_only),
    ("noisy failure", true, stuck_edits::noisy_failure),
    ("endless polish", true, stuck_edits::endless_polish),
    ("broken build", true, stuck_edits::broken_build),
    ("late wall", true, stuck_edits::late_wall),
    ("same plan", true, stuck_edits::same_plan),
    ("worse and worse", true, stuck_edits::worse_and_worse),
    ("limit out of reach", true, stuck_edits::limit_out_of_reach),
    ("silent, passing", true, stuck_sessions::silent_passing),
    ("silent, failing", true, stuck_sessions::silent_failing),
    ("empty sessions", true, stuck_sessions::empty_sessions),
    ("refused", true, stuck_sessions::refused),
    ("denied", true, stuck_sessions::denied),
    ("crashes", true, stuck_sessions::crashes),
    ("cost burn", true, stuck_sessions::cost_burn),
    ("monologue", true, stuck_sessions::monologue),
    ("repeated calls", true, stuck_sessions::repeated_calls),
    ("failing calls", true, stuck_sessions::failing_calls),
    ("alternating calls", true, stuck_sessions::alternating_calls),
    ("false promises", true, stuck_sessions::false_promises),
    ("slow and steady", false, healthy_tests::slow_and_steady),
    ("slower", false, healthy_tests::slower),
    ("refactor, red", false, healthy_tests::refactor_red),
    ("refactor, broken", false, healthy_tests::refactor_broken),
    ("one by one", false, healthy_tests::one_by_one),
    ("flaky", false, healthy_tests::flaky),
    ("step by step", false, healthy_tests::step_by_step),
    ("test first", false, healthy_tests::test_first),
    ("fewer problems", false, healthy_tests::fewer_problems),
    ("broken in between", false, healthy_tests::broken_in_between),
    ("rewrite of a file", false, healthy_tests::rewrite_of_a_file),
    ("many tests first", false, healthy_tests::many_tests_first),
    ("towards a limit", false, healthy_tests::towards_a_limit),
    ("planning", false, healthy_work::planning),
    ("formatting", false, healthy_work::formatting),
    ("format after work", false, healthy_work::format_after_work),
    ("generated flips", false, healthy_work::generated_flips),
    ("regenerated", false, healthy_work::regenerated),
    ("turns", false, healthy_work::turns),
    ("waits for ci", false, healthy_work::waits_for_ci),
    ("only waits", false, healthy_work::only_waits),
    ("runs tests again", false, healthy_work::runs_tests_again),
    ("criteria", false, healthy_work::criteria),
    ("one revert", false, healthy_work::one_revert),
    ("manual", false, healthy_work::manual),
    ("doc comments", false, healthy_work::doc_comments),
    ("reads first", false, healthy_work::reads_first),
    ("feature", false, healthy_work::feature),
    ("hiccups", false, healthy_work::hiccups),
    ("small fixes", false, healthy_work::small_fixes),
    ("refines its own", false, healthy_work::refines_its_own),
    ("new files, uncounted", true, numbers::new_files),
    ("trembling number", true, numbers::trembling),
    ("refused at the end", true, numbers::refused_at_the_end),
    ("missing tool", true, numbers::missing_tool),
    ("cases ok", false, numbers::cases_ok),
    ("accuracy", false, numbers::accuracy),
    ("latency", false, numbers::latency),
    ("own counts", false, numbers::own_counts),
];

/// Written after the rules were fixed: held out as a whole.
const FRESH: &[Family] = &[
    ("debug prints", true, fresh::debug_prints),
    ("version roulette", true, fresh::version_roulette),
    ("copies", true, fresh::copies),
    ("timeouts", true, fresh::timeouts),
    ("half silence", true, fresh::half_silence),
    ("tests come and go", true, fresh::tests_come_and_go),
    ("asks and stops", true, fresh::asks_and_stops),
    ("migration", false, fresh::migration),
    ("two reverts", false, fresh::two_reverts),
    ("polls a build", false, fresh::polls_a_build),
    ("old tests go", false, fresh::old_tests_go),
    ("many reasons", false, fresh::many_reasons),
    ("snapshots", false, fresh::snapshots),
    ("stumbles", false, fresh::stumbles),
    ("counts its own runs", true, numbers::counter),
    ("items left", false, numbers::items_left),
    ("two up, one down", false, numbers::two_up_one_down),
];

/// Variants of each family; each plays in another ecosystem.
const VARIANTS: usize = 5;

/// A labelled trajectory, before it is played.
#[derive(Debug)]
pub struct Trajectory {
    /// Family, ecosystem and variant.
    pub name: String,
    /// Whether it circles.
    pub stuck: bool,
    /// Its half.
    pub split: Split,
    /// The project and its iterations.
    pub scene: Scene,
}

/// Every trajectory.
pub fn all() -> Vec<Trajectory> {
    let mut all = Vec::new();
    for (family, stuck, program) in FAMILIES.iter().chain(FRESH) {
        for (variant, eco) in Ecosystem::ALL.into_iter().enumerate().take(VARIANTS) {
            let name = format!("{family}/{}/{}", eco.name(), variant + 1);
            let mut scene = Scene::new(&name, eco);
            program(&mut scene);
            let fresh = FRESH.iter().any(|(known, ..)| known == family);
            let split = if fresh { Split::HeldOut } else { Split::of(&name) };
            all.push(Trajectory { split, name, stuck: *stuck, scene });
        }
    }
    all
}
