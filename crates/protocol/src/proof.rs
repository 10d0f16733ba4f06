//! The proof of a run, `proof.json`: everything that a reader needs to trust the result, or to see why not.

pub mod level;
pub mod protected;
pub mod test_counts;

use crate::event::CheckResult;
pub use crate::event::TestsQuestion;
use crate::id::{AgentName, CommitId, RunId, TreeId};
use crate::money::{AgentTotals, Cost, TokenSum};
pub use crate::proof::level::{HarnessChange, HarnessSource, ProofLevel, Watching};
use crate::proof::protected::ProtectedChange;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The place named by a proof from a clean checkout.
pub const CLEAN_CHECKOUT: &str = "clean checkout";
/// The written format version.
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
    /// Whether everything passed.
    pub passed: bool,
    /// The commit that was judged and handed over.
    pub commit: CommitId,
    /// The recorded tree of the workspace.
    pub tree: TreeId,
    /// The commit that the run started from.
    pub base: CommitId,
    /// Where the checks ran: [`CLEAN_CHECKOUT`].
    #[cfg_attr(feature = "schema", schemars(extend("enum" = [CLEAN_CHECKOUT])))]
    pub place: String,
    /// Your uncommitted changes that were checked as well, because the commit alone doesn't pass. Bounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
    /// The strength of the result; absent if it didn't pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<ProofLevel>,
    /// Why the level isn't higher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What failed without the work and passes with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub difference: Vec<Difference>,
    /// Whether the checks were watched.
    #[serde(default)]
    pub watched: Watching,
    /// Every change of the harness.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub harness: Vec<HarnessChange>,
    /// The diff of these files, bounded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub harness_diff: String,
    /// Suppression comments that the run added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suppressions: Vec<Suppression>,
    /// Check results on the original tree, before the first session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baseline: Vec<CheckResult>,
    /// The criteria or stories of the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<ProofCriterion>,
    /// Run B: every required check on the commit.
    pub checks: Vec<ProofCheck>,
    /// Run A: the commit with the original harness.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub original_harness: Vec<CheckResult>,
    /// Run C: the original product with the new harness.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub original_product: Vec<CheckResult>,
    /// The question that needs your approval, if only that prevents a pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<TestsQuestion>,
    /// Who approved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// Paths that had to stay unchanged.
    pub protected: ProtectedEvidence,
    /// What didn't pass.
    pub failed: Vec<String>,
    /// What only you can fix, if that is why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Finished iterations.
    pub iterations: u32,
    /// The agents that worked.
    pub agents: BTreeMap<AgentName, AgentTotals>,
    /// Tokens of the whole run.
    pub tokens: TokenSum,
    /// Money of the whole run.
    #[serde(flatten)]
    pub cost: Cost,
    /// How stuck the run was.
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
    /// The command, in one line.
    pub command: String,
    /// The commit that it ran on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// Its result, named after the criterion or the verifier.
    #[serde(flatten)]
    pub result: CheckResult,
}

/// A criterion or story, and whether it is met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "proofCriterion"))]
pub struct ProofCriterion {
    /// Its id: also the name of its check, if it has one.
    pub id: String,
    /// What it says.
    pub text: String,
    /// How it is decided, in words.
    pub decided_by: String,
    /// Whether its check passed, or an agent claimed it and every check passed.
    pub met: bool,
}

/// What failed without the work and passes with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "difference"))]
pub struct Difference {
    /// The check.
    pub check: String,
    /// Names of tests, or of the files with new tests. Bounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
    /// How it was shown.
    pub kind: DifferenceKind,
}

/// How a difference was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum DifferenceKind {
    /// The check failed on the original tree.
    RedToGreen,
    /// New or changed tests fail on the original product.
    NewTests,
    /// The original product doesn't build with the new tests.
    DoesNotBuild,
}

impl Difference {
    /// One line: `tests: failed before, passes now (test_a, test_b)`.
    pub fn line(&self) -> String {
        const SHOWN: usize = 3;
        let mut names = self.tests.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
        if self.tests.len() > SHOWN {
            names = format!("{names} and {} more", self.tests.len() - SHOWN);
        }
        let names = if names.is_empty() { names } else { format!(" ({names})") };
        let what = match self.kind {
            DifferenceKind::RedToGreen => "failed before, passes now",
            DifferenceKind::NewTests => "new tests fail without the work",
            DifferenceKind::DoesNotBuild => "the original doesn't build with the new tests",
        };
        format!("{}: {what}{names}", self.check)
    }
}

/// A suppression comment that a run added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "suppression"))]
pub struct Suppression {
    /// The file.
    pub path: String,
    /// The line number.
    pub line: u64,
    /// Its text, shortened.
    pub text: String,
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

/// The `loop_score` over the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScoreFacts {
    /// The highest score.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub max: f64,
    /// The last score.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub last: f64,
    /// How often the run was stuck, including recovered times.
    pub gutters: u32,
}

impl Proof {
    /// The proof after your approval.
    pub fn approved(self, by: &str) -> Self {
        let shown = !self.difference.is_empty();
        let level =
            self.question.as_ref().map_or(ProofLevel::OwnTests, |asked| asked.level_if_approved(shown));
        Self {
            passed: true,
            level: Some(level),
            failed: Vec::new(),
            approved_by: Some(by.to_owned()),
            ..self
        }
    }

    /// The headline, the same on every surface.
    pub fn headline(&self) -> String {
        let by = self.approved_by.as_deref().filter(|_| self.passed);
        let by = self.question.as_ref().map_or(by, |asked| asked.accepted(self.level, by));
        ProofLevel::headline(self.level.filter(|_| self.passed), by, self.reason.as_deref())
    }

    /// Parses `proof.json`.
    pub fn parse(text: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text)
    }
}
