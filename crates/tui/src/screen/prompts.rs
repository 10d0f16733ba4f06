//! Prompts for the Spec Studio and for reviews.

use crate::data::Message;
use ralph_loop_protocol::display::text::{head, tail};

/// Limits for the conversation, the draft and the repo facts.
const TALK_MAX: usize = 24 * 1024;
const DRAFT_MAX: usize = 24 * 1024;
const REPO_MAX: usize = 24 * 1024;

/// System prompt of the Spec Studio.
pub const STUDIO_SYSTEM: &str = include_str!("studio.md");
/// System prompt of a review.
pub const REVIEW_SYSTEM: &str = include_str!("review.md");

/// The Spec Studio's prompt: conversation, draft, repo facts, each bounded.
pub fn studio_prompt(messages: &[Message], draft: &str, repo: &str) -> String {
    let mut talk = String::new();
    for message in messages {
        talk.push_str(&format!("\n{}: {}\n", message.who, message.text));
    }
    let draft = if draft.trim().is_empty() { "(nothing yet)" } else { head(draft, DRAFT_MAX) };
    format!(
        "# The repository\n\n{}\n\n# The draft as it is now (a person may have edited it: keep what they wrote)\n\n{draft}\n\n# The talk so far\n{}\n\nAnswer the last message.\n",
        head(repo, REPO_MAX),
        tail(&talk, TALK_MAX)
    )
}

/// The prompt of a review.
pub fn review_prompt(draft: &str, repo: &str) -> String {
    format!(
        "# The repository\n\n{}\n\n# The task to review\n\n{}\n",
        head(repo, REPO_MAX),
        head(draft, DRAFT_MAX)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn studio_prompt_is_bounded_and_ends_with_the_last_message() {
        let long = Message { who: "you".into(), text: "x".repeat(100_000), draft: String::new() };
        let last = Message { who: "you".into(), text: "and the last".into(), draft: String::new() };
        let prompt = studio_prompt(&[long, last], &"d".repeat(100_000), &"r".repeat(100_000));
        assert!(prompt.len() < TALK_MAX + DRAFT_MAX + REPO_MAX + 1000, "{}", prompt.len());
        assert!(prompt.contains("you: and the last"));
    }
}
