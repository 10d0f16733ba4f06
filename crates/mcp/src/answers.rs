//! Tool answers, cut to a size that models can use.

use ralph_loop_app::AppError;
use ralph_loop_protocol::display::text::head;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

pub(crate) const ANSWER_MAX: usize = 60_000;
const TEXT_MAX: usize = 4_000;
const LIST_MAX: usize = 100;

pub(crate) type Outcome = Result<Value, AppError>;

pub(crate) fn result(outcome: Outcome) -> CallToolResult {
    match outcome {
        Ok(mut value) => {
            bound(&mut value);
            CallToolResult::success(vec![ContentBlock::text(text(&value))])
        }
        Err(error) => CallToolResult::error(vec![ContentBlock::text(words(&error))]),
    }
}

/// What failed, why, and how to fix it.
pub(crate) fn words(error: &AppError) -> String {
    let mut lines = vec![error.message.clone()];
    lines.extend(error.cause.clone());
    let next = error.next();
    if !next.is_empty() {
        lines.push(next.to_owned());
    }
    lines.join("\n")
}

pub(crate) fn text(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        value => serde_json::to_string_pretty(value).unwrap_or_default(),
    };
    cut(text)
}

/// Cuts a text to the size limit of an answer, and says so.
pub(crate) fn cut(text: String) -> String {
    if text.len() <= ANSWER_MAX {
        return text;
    }
    format!("{}\n… cut: {} bytes in all", head(&text, ANSWER_MAX), text.len())
}

/// Cuts long texts and lists within a value.
fn bound(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > TEXT_MAX => *text = format!("{}…", head(text, TEXT_MAX)),
        Value::Array(list) => {
            let left_out = list.len().saturating_sub(LIST_MAX);
            list.truncate(LIST_MAX);
            list.iter_mut().for_each(bound);
            if left_out > 0 {
                list.push(Value::String(format!("… {left_out} more")));
            }
        }
        Value::Object(map) => map.values_mut().for_each(bound),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_are_cut_where_they_would_be_too_long() {
        let mut value = json!({"a": "x".repeat(10_000), "b": vec![1; 500]});
        bound(&mut value);
        assert_eq!(value["a"].as_str().unwrap().chars().count(), TEXT_MAX + 1);
        assert_eq!(value["b"].as_array().unwrap().len(), LIST_MAX + 1);
        assert!(cut("y".repeat(100_000)).len() < ANSWER_MAX + 100);
    }
}
