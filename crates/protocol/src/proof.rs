//! The proof of a run, `proof.json`: everything a reader needs to believe the result, or to see why not.

use crate::event::CheckResult;
pub use crate::event::TestsQuestion;
use crate::id::{AgentName, CommitId, RunId, TreeId};
pub use crate::level::{HarnessChange, ProofLevel, Watching};
use crate::money::{AgentTotals, Cost, TokenSum};
use crate::protected::ProtectedChange;
use crate::weakened::Finding;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name of the place that a proof in a checkout of its own carries.
pub const CLEAN_CHECKOUT: &str = "clean checkout";
/// The format that is written.
pub const VERSION: u32 = 1;

/// The evidence of a final check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = crate::requires::requires_loop_score))]
pub struct Proof {
    /// Format version.
    #[cfg_attr(feature = "schema", schemars(extend("const" = VERSION)))]
    pub version: u32,
    /// The run.
    pub run_id: RunId,
    /// Whether everything held.
    pub passed: bool,
    /// The commit that was judged, and that is handed over.
    pub commit: CommitId,
    /// The recorded tree of the workspace.
    pub tree: TreeId,
    /// The commit that the run started from.
    pub base: CommitId,
    /// Where the checks ran: [`CLEAN_CHECKOUT`].
    #[cfg_attr(feature = "schema", schemars(extend("enum" = [CLEAN_CHECKOUT])))]
    pub place: String,
    /// Changes of the user's own, not committed, that were checked along because the checks need them: the commit alone
    /// does not pass. Bounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
    /// Who decided what a pass means; absent where it did not pass, and in proofs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<ProofLevel>,
    /// Whether the checks were watched.
    #[serde(default)]
    pub watched: Watching,
    /// What lowers the level, or may: changed tests, their configuration, what runs them, and files that a runner opened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub harness: Vec<HarnessChange>,
    /// How the checks ended at the start, before the first session; empty where they were not run then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baseline: Vec<CheckResult>,
    /// Every required check.
    pub checks: Vec<ProofCheck>,
    /// Results of the original checks on the work, if the run changed some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<CheckResult>,
    /// The question for the user, if only that prevents a pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<TestsQuestion>,
    /// Who approved the changed tests, if anyone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// What had to stay as it was.
    pub protected: ProtectedEvidence,
    /// Changes that make tests say less, for a person to look at. They do not fail a proof by themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weakened: Vec<Finding>,
    /// What did not hold.
    pub failed: Vec<String>,
    /// What only a person can fix, where that is why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Finished iterations.
    pub iterations: u32,
    /// Who worked.
    pub agents: BTreeMap<AgentName, AgentTotals>,
    /// Tokens of the whole run.
    pub tokens: TokenSum,
    /// Money of the whole run.
    #[serde(flatten)]
    pub cost: Cost,
    /// How much the run went in circles.
    #[serde(default)]
    pub loop_score: ScoreFacts,
    /// When.
    pub at: Timestamp,
}

/// One required check and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "check"))]
pub struct ProofCheck {
    /// What ran, in one line.
    pub command: String,
    /// The commit that it ran on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// What came of it; its name is the id of the criterion, or of the verifier.
    #[serde(flatten)]
    pub result: CheckResult,
}

/// Protected paths.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProtectedEvidence {
    /// What was protected.
    pub patterns: Vec<String>,
    /// What differs from the base.
    pub changed: Vec<ProtectedChange>,
}

/// What the `loop_score` did over the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScoreFacts {
    /// The highest.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub max: f64,
    /// The last.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub last: f64,
    /// Gutters, those that were left again included.
    pub gutters: u32,
}

impl Proof {
    /// The same, once a person has accepted the changed tests that were all that stood in the way.
    pub fn approved(self, by: &str) -> Self {
        Self {
            passed: true,
            level: Some(ProofLevel::OwnTests),
            failed: Vec::new(),
            approved_by: Some(by.to_owned()),
            ..self
        }
    }

    /// Reads `proof.json`; files of earlier versions are fine.
    pub fn parse(text: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text)
    }
}
