//! How the result is handed over: what is pushed where, how the pull request looks, what is waited for.

use super::ConfigFile;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What becomes of the proven work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Publish {
    /// It stays where it is.
    None,
    /// The branch is pushed.
    Push,
    /// The branch is pushed and a pull request opened or updated.
    Pr,
}

/// How the pull request looks, as a file writes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct PrConfig {
    /// It stays a draft at the end, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<bool>,
    /// Its labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Its title, a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title_template: Option<String>,
    /// Its text, a template; the evidence follows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_template: Option<String>,
    /// The branch it goes to; the one that the work started from, or the host's default, where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// What happens where other open pull requests touch the same files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Overlap {
    /// Nobody looks.
    Off,
    /// It is told.
    #[default]
    Warn,
    /// It is told, and a person is asked.
    Pause,
}

/// How a run hands its result over, every default filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Handover {
    /// What becomes of the work.
    pub publish: Publish,
    /// The pull request.
    pub pr: PrConfig,
    /// The git remote that names the code host.
    pub remote: String,
    /// Folder of a local forge, where one is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_forge: Option<String>,
    /// The branch on the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Other pull requests on the same files.
    pub overlap: Overlap,
    /// The run ends only when the checks of the pull request are green.
    pub wait_for_checks: bool,
    /// Longest wait for the first of them to appear.
    #[serde(skip_serializing_if = "is_usual_appear")]
    pub ci_appear: Duration,
    /// Longest wait for them.
    pub ci_timeout: Duration,
    /// Longest wait for an approval.
    pub review_timeout: Duration,
    /// First wait between two looks at the code host, where told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll: Option<Duration>,
    /// The issue that the run works on.
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
    /// From what the files say.
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
    /// Whether anything is pushed.
    pub fn pushes(&self) -> bool {
        self.publish != Publish::None
    }
    /// Whether there is a pull request.
    pub fn has_pr(&self) -> bool {
        self.publish == Publish::Pr
    }
}
