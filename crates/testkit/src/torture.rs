//! Shared parts of the torture tests: their duration, and reproducible randomness.

/// Whether `RALPH_TORTURE=full` requests the long form.
#[allow(clippy::disallowed_methods, reason = "tests are a border, too")]
pub fn full() -> bool {
    std::env::var("RALPH_TORTURE").is_ok_and(|v| v == "full")
}

/// The number of rounds in the short or the long form.
pub fn rounds(short: u64, whole: u64) -> u64 {
    if full() { whole } else { short }
}

/// A small random generator with a fixed seed, so that failures are reproducible. `RALPH_TORTURE_SEED` sets another seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    #[allow(clippy::disallowed_methods, reason = "tests are a border, too")]
    #[allow(clippy::print_stdout, reason = "a failure is seen again with it")]
    pub fn new(seed: u64) -> Self {
        let asked = std::env::var("RALPH_TORTURE_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = asked.unwrap_or(seed);
        println!("RALPH_TORTURE_SEED={seed}");
        Self(seed)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }

    pub fn one_of<T: Copy>(&mut self, several: &[T]) -> T {
        several[self.below(several.len() as u64) as usize]
    }
}
