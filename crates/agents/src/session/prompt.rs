//! Splits a prompt at its stable parts, so that a provider can cache them.

use ralph_loop_domain::model::{Message, TextPart, UserPart};

/// A prompt as sent to a model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SplitPrompt {
    /// What never changes in a run.
    pub(crate) system: Vec<TextPart>,
    /// What changes slowly, then what changes each time.
    pub(crate) user: Message,
}

/// Splits `prompt` at the first two offsets of `stable`: the first part becomes the system prompt, the second a
/// cached part of the message, the rest stays plain. Skips invalid offsets; without any, all is one message.
pub(crate) fn split(prompt: &str, stable: &[usize]) -> SplitPrompt {
    let mut system = Vec::new();
    let mut parts = Vec::new();
    let mut from = 0;
    for (nth, &to) in stable.iter().take(2).enumerate() {
        let Some(part) = prompt.get(from..to) else { continue };
        from = to;
        if part.trim().is_empty() {
            continue;
        }
        match nth {
            0 => system.push(TextPart::cached(part)),
            _ => parts.push(UserPart::Text(TextPart::cached(part))),
        }
    }
    let rest = prompt.get(from..).unwrap_or_default();
    if !rest.trim().is_empty() {
        parts.push(UserPart::Text(TextPart::plain(rest)));
    }
    if parts.is_empty() {
        // Providers require at least one word from us.
        parts.push(UserPart::Text(TextPart::plain("Continue.")));
    }
    SplitPrompt { system, user: Message::User { parts } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(prompt: &str, stable: &[usize]) -> (Vec<String>, Vec<(String, bool)>) {
        let split = split(prompt, stable);
        assert!(split.system.iter().all(|part| part.cache));
        let Message::User { parts } = split.user else { panic!("a user's message") };
        let user = parts
            .into_iter()
            .map(|part| match part {
                UserPart::Text(part) => (part.text, part.cache),
                UserPart::Image(_) => panic!("no picture"),
            })
            .collect();
        (split.system.into_iter().map(|part| part.text).collect(), user)
    }

    #[test]
    fn three_parts_as_the_offsets_say() {
        let (system, user) = parts("rules\nslow\nnow\n", &[6, 11]);
        assert_eq!(system, ["rules\n"]);
        assert_eq!(user, [("slow\n".to_owned(), true), ("now\n".to_owned(), false)]);
    }

    #[test]
    fn offsets_that_fit_nowhere_lose_no_text() {
        for stable in [&[][..], &[99], &[0, 0], &[1, 2, 3], &[2], &[5, 3], &[usize::MAX, 1]] {
            let (system, user) = parts("añbc\ndé", stable);
            let all: String = system.into_iter().chain(user.into_iter().map(|(text, _)| text)).collect();
            assert_eq!(all, "añbc\ndé", "{stable:?}");
        }
        assert_eq!(parts("", &[]).1, [("Continue.".to_owned(), false)]);
    }
}
