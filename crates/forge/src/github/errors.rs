//! The host's errors, with fixes.

use super::client::{ApiRequest, ApiResponse};
use crate::error::{auth, not_found, refused, unavailable};
use ralph_loop_domain::ports::ForgeError;
use serde_json::Value;

/// Required permissions of a token.
pub(crate) const NEEDED: &str = "it needs, for this repo: Contents, Pull requests, Issues and Commit statuses (read and write), Checks and Actions (read); a classic token needs the scope `repo`";

/// Redacts a token in a text and joins its lines.
pub(crate) fn clean(text: &str, token: &str) -> String {
    ralph_loop_protocol::display::text::one_line(&ralph_loop_http::redact(text, [token], "[token]"), 400)
}

/// The host's message, including field errors.
pub(crate) fn said(body: &[u8]) -> String {
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        return String::from_utf8_lossy(body.get(..400).unwrap_or(body)).into_owned();
    };
    let mut text = value["message"].as_str().unwrap_or_default().to_owned();
    for error in value["errors"].as_array().into_iter().flatten().take(5) {
        let word = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
        let one = match error {
            Value::String(text) => text.clone(),
            _ if error["message"].is_string() => word("message"),
            _ => format!("{} {}", word("field"), word("code")).trim().to_owned(),
        };
        if !one.is_empty() {
            text = if text.is_empty() { one } else { format!("{text}: {one}") };
        }
    }
    if text.is_empty() { value.to_string() } else { text }
}

/// Turns an error answer into an error.
pub(crate) fn error(
    request: &ApiRequest,
    answer: &ApiResponse,
    repo: &str,
    token: &str,
    app: bool,
) -> ForgeError {
    let what = request.what.clone();
    let said = clean(&said(&answer.body), token);
    let lower = said.to_lowercase();
    let reason =
        if said.is_empty() { answer.status.to_string() } else { format!("{} {said}", answer.status) };
    match answer.status {
        401 if app => auth(
            what,
            reason,
            "check GITHUB_APP_ID, GITHUB_APP_PRIVATE_KEY_PEM and the clock of this machine",
        ),
        401 => auth(what, reason, "the token is wrong or has expired: set GITHUB_TOKEN to a new one"),
        403 if lower.contains("saml") => auth(
            what,
            reason,
            "the organisation uses single sign-on: authorise the token for it (token settings, \"Configure SSO\")",
        ),
        403 if lower.contains("archived") => {
            refused(what, reason, "the repo is archived, so it can't be changed")
        }
        403 if lower.contains("not permitted to create") => auth(
            what,
            reason,
            "allow it in the repo's settings: Actions, General, \"Allow GitHub Actions to create and approve pull requests\"",
        ),
        403 if app => auth(what, reason, format!("the App may not do this in {repo}: {NEEDED}")),
        403 => auth(what, reason, format!("the token may not do this in {repo}: {NEEDED}")),
        404 => not_found(
            what,
            format!("the token lacks access to {repo}, or it does not exist"),
            format!("check the address; if it is right, give the token access: {NEEDED}"),
        ),
        410 => not_found(what, reason, format!("issues are switched off in {repo}, or this one was deleted")),
        500.. => unavailable(what, reason),
        _ => refused(what, reason, "GitHub rejects the request: the message names the field"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_errors_are_reported() {
        let body = r#"{"message":"Validation Failed","errors":[{"resource":"PullRequest","field":"base","code":"invalid"},{"code":"custom","message":"A pull request already exists for o:b."}]}"#;
        assert_eq!(
            said(body.as_bytes()),
            "Validation Failed: base invalid: A pull request already exists for o:b."
        );
        assert_eq!(said(b"<html>bad gateway"), "<html>bad gateway");
    }

    #[test]
    fn token_is_redacted() {
        assert_eq!(clean("no such\ntoken tok-1234", "tok-1234"), "no such token [token]");
    }
}
