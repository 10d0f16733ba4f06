//! The critic: one short look by other eyes. Its objections become the next session's nudge.

use super::record::Record;
use super::usage_of;
use ralph_domain::config::Profile;
use ralph_domain::model::{
    Message, ModelClient, ModelError, ModelRequest, ModelSink, Pricing, TextPart, UserPart,
};
use ralph_domain::money::Usage;
use ralph_domain::text::head;

const SYSTEM: &str = include_str!("../../templates/critic.md");
/// Tokens that an answer may have: it is to be short.
const ANSWER_MAX: u64 = 800;
/// Characters of objections that are passed on.
const OBJECTIONS_MAX: usize = 2000;

/// What a critic is asked.
pub(crate) fn prompt(record: &Record) -> String {
    format!("{SYSTEM}\n{}", record.text())
}

/// Asks a model.
pub(crate) fn ask_model(
    client: &dyn ModelClient,
    profile: &Profile,
    record: &Record,
    pricing: Option<&Pricing>,
    sink: &mut dyn ModelSink,
) -> Result<(String, Usage), ModelError> {
    let request = ModelRequest {
        system: vec![TextPart::cached(SYSTEM)],
        messages: vec![Message::User { parts: vec![UserPart::Text(TextPart::plain(record.text()))] }],
        max_output_tokens: Some(ANSWER_MAX),
        ..ModelRequest::default()
    };
    let reply = client.call(profile, &request, sink)?;
    Ok((objections(&reply.text()), usage_of(profile, &reply, pricing)))
}

/// The objections in an answer; empty where there are none.
pub(crate) fn objections(answer: &str) -> String {
    let answer = answer.trim();
    let bare = answer.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    if bare == "no objections" || bare.is_empty() {
        return String::new();
    }
    head(answer, OBJECTIONS_MAX).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_objections_are_none() {
        for answer in ["no objections", "No objections.", "`no objections`", "", " \n"] {
            assert_eq!(objections(answer), "", "{answer:?}");
        }
        assert_eq!(objections(" The seed is wrong. "), "The seed is wrong.");
        assert_eq!(objections(&"x".repeat(9000)).len(), OBJECTIONS_MAX);
    }
}
