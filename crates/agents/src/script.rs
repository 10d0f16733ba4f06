//! The script of a scripted agent: JSON with the actions and text of each turn.

use ralph_loop_protocol::money::Usd;
use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the script: {message}")]
pub struct ScriptError {
    pub message: String,
    /// The line, from 1.
    pub line: usize,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    pub(crate) version: u32,
    pub(crate) turns: Vec<Turn>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Turn {
    #[serde(rename = "do")]
    pub(crate) actions: Vec<Action>,
    pub(crate) say: String,
    pub(crate) tokens: Option<TurnTokens>,
    pub(crate) cost_usd: Option<Usd>,
    pub(crate) end: Option<TurnEnd>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TurnTokens {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cached: u64,
    pub(crate) cache_write: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Action {
    Write { path: String, content: String },
    Append { path: String, content: String },
    Replace { path: String, from: String, to: String },
    Remove { path: String },
    Run { argv: Vec<String> },
    PauseMs(u64),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum TurnEnd {
    RateLimited {
        #[serde(default)]
        reset_after_seconds: Option<u32>,
        #[serde(default)]
        reason: String,
    },
    Fail(String),
    Empty(bool),
    Auth(String),
}

impl Script {
    pub(crate) fn parse(text: &str) -> Result<Self, ScriptError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let script: Self = serde_json::from_str(text).map_err(|error| {
            let full = error.to_string();
            let message = full.split(" at line ").next().unwrap_or(&full).to_owned();
            ScriptError { message, line: error.line().max(1) }
        })?;
        let wrong = |key: &str, message: String| ScriptError { message, line: line_of(text, key) };
        if script.version != 1 {
            return Err(wrong("version", format!("`version` is {}, but only 1 exists", script.version)));
        }
        if script.turns.is_empty() {
            return Err(wrong("turns", "`turns` is empty: a script needs at least one".into()));
        }
        for action in script.turns.iter().flat_map(|turn| &turn.actions) {
            match action {
                Action::Run { argv } if argv.first().is_none_or(String::is_empty) => {
                    return Err(wrong("run", "`run` has no command in its `argv`".into()));
                }
                Action::Replace { from, .. } if from.is_empty() => {
                    return Err(wrong("replace", "`replace` has an empty `from`".into()));
                }
                _ => {}
            }
        }
        Ok(script)
    }

    /// The turn of an iteration (from 1): the last one repeats. Stateless, so a killed and resumed run continues
    /// correctly.
    pub(crate) fn turn(&self, iteration: u32) -> Option<(usize, &Turn)> {
        let wanted = usize::try_from(iteration.saturating_sub(1)).unwrap_or(usize::MAX);
        let at = wanted.min(self.turns.len().saturating_sub(1));
        self.turns.get(at).map(|turn| (at + 1, turn))
    }
}

fn line_of(text: &str, key: &str) -> usize {
    let quoted = format!("\"{key}\"");
    text.lines().position(|line| line.contains(&quoted)).map_or(1, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> (usize, String) {
        let error = Script::parse(text).unwrap_err();
        (error.line, error.message)
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        assert_eq!(
            wrong("{\n\"version\":1,\n\"turn\":[]}"),
            (3, "unknown field `turn`, expected `version` or `turns`".into())
        );
        assert!(
            wrong("{\"version\":1,\n\"turns\":[{\"do\":[\n{\"wriet\":{}}]}]}")
                .1
                .contains("unknown variant `wriet`")
        );
        assert_eq!(
            wrong("{\"version\":1,\n\"turns\":[{\"do\":[\n{\"remove\":{\"path\":\"a\",\"x\":1}}]}]}").0,
            3
        );
        assert_eq!(wrong("{\n\"version\":2,\"turns\":[{}]}").0, 2);
        assert_eq!(wrong("{\"version\":1,\n\"turns\":[]}").0, 2);
        assert!(wrong("{\"version\":1,\"turns\":[{\"cost_usd\":-1}]}").1.contains("at least 0"));
        assert!(
            wrong("{\"version\":1,\"turns\":[{\"do\":[{\"run\":{\"argv\":[]}}]}]}").1.contains("no command")
        );
        assert_eq!(wrong("").0, 1);
    }

    #[test]
    fn the_last_turn_repeats() {
        let script = Script::parse(r#"{"version":1,"turns":[{"say":"a"},{"say":"b"}]}"#).unwrap();
        let said: Vec<&str> = [0, 1, 2, 9].iter().map(|i| script.turn(*i).unwrap().1.say.as_str()).collect();
        assert_eq!(said, ["a", "a", "b", "b"]);
    }
}
