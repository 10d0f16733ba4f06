//! The framing of Connect streams: a byte of flags, four of length, JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

const LAST: u8 = 2;

pub(crate) fn framed(value: &Value) -> Vec<u8> {
    let text = value.to_string();
    let mut bytes = vec![0];
    bytes.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    pub code: i32,
    pub stdout: Vec<u8>,
}

/// Reads the complete stream of `process.Process/Start`.
pub(crate) fn ended(mut bytes: &[u8]) -> Result<Ended, String> {
    let mut ended = Ended::default();
    let mut over = false;
    loop {
        let Some((head, rest)) = bytes.split_at_checked(5) else {
            return Err(if bytes.is_empty() {
                "the stream has no end".into()
            } else {
                "a frame is cut off".into()
            });
        };
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let Some((body, rest)) = rest.split_at_checked(length) else {
            return Err("a frame is cut off".into());
        };
        bytes = rest;
        let value: Value =
            serde_json::from_slice(body).map_err(|e| format!("a frame isn't valid JSON: {e}"))?;
        if head[0] & LAST != 0 {
            return match &value["error"] {
                Value::Null if over => Ok(ended),
                Value::Null => Err("the process has no end".into()),
                error => Err(format!(
                    "{} {}",
                    error["code"].as_str().unwrap_or("error"),
                    error["message"].as_str().unwrap_or_default()
                )),
            };
        }
        let event = &value["event"];
        if let Some(text) = event["data"]["stdout"].as_str() {
            ended.stdout.extend(STANDARD.decode(text).map_err(|e| format!("output is garbled: {e}"))?);
        }
        if let Some(end) = event["end"].as_object() {
            over = true;
            // A zero is left out.
            ended.code = end
                .get("exitCode")
                .and_then(Value::as_i64)
                .and_then(|code| i32::try_from(code).ok())
                .unwrap_or(0);
            if let Some(error) = end.get("error").and_then(Value::as_str).filter(|_| ended.code == 0) {
                return Err(format!("the process failed: {error}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stream(events: &[Value], trailer: &Value) -> Vec<u8> {
        let mut bytes: Vec<u8> = events.iter().flat_map(|e| framed(&json!({ "event": e }))).collect();
        let mut last = framed(trailer);
        last[0] = LAST;
        bytes.extend(last);
        bytes
    }

    #[test]
    fn a_stream_is_read_to_its_end() {
        let events = [
            json!({ "start": { "pid": 42 } }),
            json!({ "data": { "stdout": "aGkK" } }),
            json!({ "keepalive": {} }),
            json!({ "data": { "stderr": "aGkK" } }),
            json!({ "end": { "exited": true, "status": "exit status 0" } }),
        ];
        let got = ended(&stream(&events, &json!({}))).unwrap();
        assert_eq!(got, Ended { code: 0, stdout: b"hi\n".to_vec() });
        let events = [json!({ "end": { "exitCode": 7 } })];
        assert_eq!(ended(&stream(&events, &json!({}))).unwrap().code, 7);
    }

    #[test]
    fn truncated_or_failed_streams_are_errors() {
        let whole = stream(&[json!({ "end": {} })], &json!({}));
        // A frame is its flags, its length in four bytes, and that many bytes.
        let first = 5 + usize::from(whole[4]);
        for length in 0..whole.len() {
            let why =
                if [0, first].contains(&length) { "the stream has no end" } else { "a frame is cut off" };
            assert_eq!(ended(&whole[..length]).unwrap_err(), why, "{length} bytes");
        }
        let failed = stream(&[], &json!({ "error": { "code": "not_found", "message": "gone" } }));
        assert_eq!(ended(&failed).unwrap_err(), "not_found gone");
        let started = stream(&[json!({ "start": {} })], &json!({}));
        assert_eq!(ended(&started).unwrap_err(), "the process has no end");
    }
}
