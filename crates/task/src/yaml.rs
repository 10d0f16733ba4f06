//! Limits for YAML, and messages for values of the wrong type.

use serde_saphyr::Error;

/// Limits far above any real file, so that a few lines can't expand to a gigabyte of values.
pub(crate) fn yaml_limits() -> serde_saphyr::Options {
    let mut budget = serde_saphyr::Budget::default();
    budget.max_events = 50_000;
    budget.max_nodes = 20_000;
    budget.max_aliases = 100;
    budget.max_anchors = 100;
    budget.max_depth = 16;
    budget.max_documents = 1;
    let mut options = serde_saphyr::options! {
        budget: Some(budget),
        merge_keys: serde_saphyr::MergeKeyPolicy::Error,
        with_snippet: false,
    };
    options.alias_limits.max_total_replayed_events = 10_000;
    options
}

/// What a value should have been, to follow "the value is not"; `None` for other errors.
pub(crate) fn wanted(error: &Error) -> Option<String> {
    match error {
        Error::InvalidScalar { ty, .. } => {
            Some(crate::type_words::of_number(ty).unwrap_or_else(|| "`true` or `false`".into()))
        }
        Error::Unexpected { expected, .. } if expected.contains("scalar") => Some("a single value".into()),
        Error::Unexpected { expected, .. } if expected.contains("sequence") => Some("a list".into()),
        Error::Unexpected { expected, .. } if expected.contains("mapping") => Some("keys with values".into()),
        _ => None,
    }
}
