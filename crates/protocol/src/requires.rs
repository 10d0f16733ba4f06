//! Keys that a schema requires beyond what reading an old file needs.

use schemars::Schema;
use serde_json::json;

fn also_required(schema: &mut Schema, keys: &[&str]) {
    let required = schema.ensure_object().entry("required").or_insert_with(|| json!([]));
    if let Some(list) = required.as_array_mut() {
        list.extend(keys.iter().map(|key| json!(key)));
    }
}

/// Proofs of the first version may lack it; none is written without it.
pub(crate) fn requires_loop_score(schema: &mut Schema) {
    also_required(schema, &["loop_score"]);
}

/// The signals that every version has written.
pub(crate) fn requires_first_signals(schema: &mut Schema) {
    also_required(schema, &["repeated_failure", "stagnation", "thrash", "loop_score"]);
}

/// A sketch is written whole or not at all.
pub(crate) fn requires_whole_sketch(schema: &mut Schema) {
    also_required(schema, &["substance", "added", "removed"]);
}
