//! The strength of a proof: its level, the harness behind it, and whether the checks were watched.

use serde::{Deserialize, Serialize};

/// What a final check shows. A higher level ranks first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum ProofLevel {
    /// Every written criterion passed at the start; no session ran.
    AlreadyTrue,
    /// The checks pass and nothing shows a difference.
    Unverified,
    /// New or changed tests fail on the original product and pass on the work.
    OwnTests,
    /// Something that failed passes, judged by the original harness.
    Independent,
}

/// How a reason begins if the work passes only with the run's own version of harness files that the task names.
pub const NAMED_ORIGINALS: &str = "the run changed files that the task names";

impl ProofLevel {
    /// The level for display: `independent`, `own tests`, `unverified`, `already true`.
    pub fn words(self) -> &'static str {
        match self {
            Self::AlreadyTrue => "already true",
            Self::Unverified => "unverified",
            Self::OwnTests => "own tests",
            Self::Independent => "independent",
        }
    }

    /// Whether the result counts as proven.
    pub fn is_proven(self) -> bool {
        matches!(self, Self::OwnTests | Self::Independent)
    }

    /// The headline of a result, the same on every surface. `approved_by` accepted changes of original tests;
    /// `reason` says why the level isn't higher.
    pub fn headline(level: Option<Self>, approved_by: Option<&str>, reason: Option<&str>) -> String {
        let named = reason.is_some_and(|reason| reason.starts_with(NAMED_ORIGINALS));
        match (level, approved_by) {
            (Some(Self::Unverified), Some(by)) => format!("done, unverified (approved by {})", who(by)),
            (_, Some(by)) => format!("own tests, originals changed (approved by {})", who(by)),
            (Some(Self::Independent), None) => "proven, independent".to_owned(),
            (Some(Self::OwnTests), None) if named => {
                "own tests, originals changed (named in the task)".to_owned()
            }
            (Some(Self::OwnTests), None) => "proven by its own tests (original tests pass)".to_owned(),
            (Some(Self::Unverified), None) => "done, unverified".to_owned(),
            (Some(Self::AlreadyTrue), None) => "already true".to_owned(),
            (None, None) => "not proven".to_owned(),
        }
    }
}

/// `ana via cli` is `ana`.
pub(crate) fn who(by: &str) -> &str {
    by.split(" via ").next().unwrap_or(by)
}

/// Whether the checks were watched: which files their script runners executed and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Watching {
    /// Every check that runs a command was watched to its end.
    Watched,
    /// Only the list of globs decided.
    #[default]
    NotWatched,
}

impl Watching {
    /// Whether the checks ran unwatched.
    pub fn is_not_watched(&self) -> bool {
        *self == Self::NotWatched
    }

    /// `watched`, `not watched`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Watched => "watched",
            Self::NotWatched => "not watched",
        }
    }
}

/// Which rule makes a file part of the harness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum HarnessSource {
    /// The published list of globs.
    Glob,
    /// A glob of the configuration.
    Config,
    /// A script runner executed or read it while the checks ran on the original tree.
    Watched,
    /// Inline tests of a Rust source.
    InlineTests,
    /// A new module with the name of an installed one.
    Shadow,
}

/// A change of the harness.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "harness_change"))]
pub struct HarnessChange {
    /// The file.
    pub path: String,
    /// Whether the run added it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub added: bool,
    /// The rule that makes it part of the harness.
    pub source: HarnessSource,
    /// Whether the task names it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
    /// What happened, and why the file counts.
    pub what: String,
}

impl HarnessChange {
    /// `tests/a.py: changed: tests`.
    pub fn line(&self) -> String {
        format!("{}: {}", self.path, self.what)
    }

    /// Whether the file may be part of the product: only its name, the watcher or the task makes it harness. Its
    /// change is listed but doesn't block.
    pub fn is_soft(&self) -> bool {
        self.named || self.may_be_product()
    }

    /// Whether nothing but the watcher, or the name of an installed module, speaks against the product.
    pub fn may_be_product(&self) -> bool {
        matches!(self.source, HarnessSource::Watched | HarnessSource::Shadow)
    }

    /// Whether it is a build file, a manifest or settings, which may describe the product as well as its checks.
    pub fn describes_product(&self) -> bool {
        let (_, reason) = self.what.split_once(": ").unwrap_or_default();
        self.source == HarnessSource::Glob
            && ["build", "manifest", "settings"].iter().any(|word| reason.starts_with(word))
    }

    /// Whether it is a manifest, which also describes the product.
    pub fn is_manifest(&self) -> bool {
        self.what.ends_with("manifest, without its dependencies")
    }

    /// How to undo it.
    pub fn cure(&self) -> &'static str {
        if self.added { "remove it" } else { "restore the original" }
    }
}
