//! Keys that a schema requires although reading old files doesn't.

use schemars::Schema;
use serde_json::json;

fn also_required(schema: &mut Schema, keys: &[&str]) {
    let required = schema.ensure_object().entry("required").or_insert_with(|| json!([]));
    if let Some(list) = required.as_array_mut() {
        list.extend(keys.iter().map(|key| json!(key)));
    }
}

/// Proofs of the first version may lack it; it is always written.
pub(crate) fn requires_loop_score(schema: &mut Schema) {
    also_required(schema, &["loop_score"]);
}

/// The signals that every version has written.
pub(crate) fn requires_first_signals(schema: &mut Schema) {
    also_required(schema, &["repeated_failure", "stagnation", "thrash", "loop_score"]);
}

/// A sketch is written completely or not at all.
pub(crate) fn requires_whole_sketch(schema: &mut Schema) {
    also_required(schema, &["substance", "added", "removed"]);
}
