//! The JSON object that a CLI sends with an event.

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct HookInput {
    pub session_id: String,
    pub transcript_path: Option<String>,
    pub cwd: Option<String>,
    pub hook_event_name: String,
    pub tool_name: Option<String>,
    pub tool_input: Value,
    pub stop_hook_active: bool,
    pub source: Option<String>,
}

impl HookInput {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err("stdin is empty".to_owned());
        }
        serde_json::from_slice(bytes).map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_hook_inputs_are_parsed() {
        let stop = r#"{"session_id":"f8b2","transcript_path":"/t.jsonl","cwd":"/r","prompt_id":"b","permission_mode":"bypassPermissions","hook_event_name":"Stop","stop_hook_active":true,"last_assistant_message":"x","background_tasks":[],"session_crons":[]}"#;
        let read = HookInput::parse(stop.as_bytes()).unwrap();
        assert!(read.stop_hook_active);
        assert_eq!(read.cwd.as_deref(), Some("/r"));
        let tool = r#"{"session_id":"b8","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm -rf ./x","description":"d"},"tool_use_id":"t"}"#;
        let read = HookInput::parse(tool.as_bytes()).unwrap();
        assert_eq!(read.tool_input["command"], "rm -rf ./x");
        assert!(HookInput::parse(b" \n").is_err());
        assert!(HookInput::parse(b"[1]").is_err());
    }
}
