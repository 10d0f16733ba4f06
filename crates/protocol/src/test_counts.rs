//! Tests as they were counted.

use serde::{Deserialize, Serialize};

/// Tests as a runner counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestCounts {
    /// Passed.
    pub passed: u64,
    /// Failed.
    pub failed: u64,
}

impl TestCounts {
    /// Executed in all; skipped and filtered tests were not executed.
    pub fn executed(self) -> u64 {
        self.passed + self.failed
    }
}
