//! Handover: what is pushed where, the pull request, and what to wait for.

use super::ConfigFile;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What happens to the proven work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Publish {
    /// It stays local.
    None,
    /// The branch is pushed.
    Push,
    /// The branch is pushed and a pull request is opened or updated.
    Pr,
}

/// The pull request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct PrConfig {
    /// Keep it a draft at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<bool>,
    /// Its labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Its title, a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title_template: Option<String>,
    /// Its text, a template; the evidence follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_template: Option<String>,
    /// Its target branch; default: the branch that the work started from, or the host's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// What to do if other open pull requests touch the same files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Overlap {
    /// Don't check.
    Off,
    /// Report it.
    #[default]
    Warn,
    /// Report it and ask the user.
    Pause,
}

/// How a run hands its result over, with defaults filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Handover {
    pub publish: Publish,
    pub pr: PrConfig,
    /// The git remote that names the code host.
    pub remote: String,
    /// Folder of a local code host, if used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_forge: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// What to do about other pull requests on the same files.
    pub overlap: Overlap,
    /// Whether the run ends only when the checks of the pull request are green.
    pub wait_for_checks: bool,
    /// Longest wait for the first check.
    #[serde(skip_serializing_if = "is_usual_appear")]
    pub ci_appear: Duration,
    /// Longest wait for all checks.
    pub ci_timeout: Duration,
    /// Longest wait for an approval.
    pub review_timeout: Duration,
    /// First wait between two polls of the code host, if set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issue: Option<u64>,
    /// The message of each iteration's commit, a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_template: Option<String>,
}

const USUAL_APPEAR: Duration = Duration::from_secs(300);

fn is_usual_appear(wait: &Duration) -> bool {
    *wait == USUAL_APPEAR
}

impl Default for Handover {
    fn default() -> Self {
        Self {
            publish: Publish::None,
            pr: PrConfig::default(),
            remote: "origin".into(),
            local_forge: None,
            branch: None,
            overlap: Overlap::default(),
            wait_for_checks: false,
            ci_appear: USUAL_APPEAR,
            ci_timeout: Duration::from_secs(3600),
            review_timeout: Duration::from_secs(72 * 3600),
            poll: None,
            issue: None,
            commit_template: None,
        }
    }
}

impl Handover {
    pub(super) fn of(file: &mut ConfigFile) -> Self {
        let usual = Self::default();
        let seconds = |value: Option<f64>, unit: f64, usual: Duration| {
            value.map_or(usual, |v| Duration::from_secs_f64((v * unit).clamp(0.0, 1e12)))
        };
        Self {
            publish: file.publish.unwrap_or(usual.publish),
            pr: file.pr.take().unwrap_or_default(),
            remote: file.remote.take().unwrap_or(usual.remote),
            local_forge: file.local_forge.take(),
            branch: None,
            overlap: file.overlap.unwrap_or_default(),
            wait_for_checks: file.wait_for_checks.unwrap_or(false),
            ci_appear: seconds(file.ci_appear_minutes, 60.0, usual.ci_appear),
            ci_timeout: seconds(file.ci_timeout_minutes, 60.0, usual.ci_timeout),
            review_timeout: seconds(file.review_timeout_hours, 3600.0, usual.review_timeout),
            poll: file.poll_seconds.map(|s| Duration::from_secs_f64(s.clamp(0.01, 86_400.0))),
            issue: None,
            commit_template: file.commit_template.take(),
        }
    }
    pub fn pushes(&self) -> bool {
        self.publish != Publish::None
    }
    pub fn has_pr(&self) -> bool {
        self.publish == Publish::Pr
    }
}
