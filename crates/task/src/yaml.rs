//! How much YAML is read.

/// Limits of YAML far above any real file, so that a few lines cannot become a gigabyte of values.
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
