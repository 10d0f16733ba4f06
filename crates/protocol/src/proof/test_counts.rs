//! Test counts.

use serde::{Deserialize, Serialize};

/// Tests as counted by a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestCounts {
    /// Passed.
    pub passed: u64,
    /// Failed.
    pub failed: u64,
}

impl TestCounts {
    /// Executed tests; skipped and filtered ones don't count.
    pub fn executed(self) -> u64 {
        self.passed + self.failed
    }
}
