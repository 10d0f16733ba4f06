//! The smallest model request.

use ralph_loop_domain::model::{Message, ModelRequest, TextPart, UserPart};

/// The smallest request that shows whether a model answers.
pub fn tiny_question() -> ModelRequest {
    let question = TextPart::plain("Answer with the one word: ok");
    ModelRequest {
        messages: vec![Message::User { parts: vec![UserPart::Text(question)] }],
        max_output_tokens: Some(256),
        stream: true,
        ..ModelRequest::default()
    }
}
