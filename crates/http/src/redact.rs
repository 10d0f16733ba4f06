//! Removes secrets from server messages.

/// Shorter ones would be found in ordinary words.
const SECRET_MIN: usize = 4;

/// `text` with `mark` instead of each secret. Of nested secrets the longest is replaced first, so that no part of one
/// is left.
pub fn redact<S: AsRef<str>>(text: &str, secrets: impl IntoIterator<Item = S>, mark: &str) -> String {
    let mut secrets: Vec<S> =
        secrets.into_iter().filter(|secret| secret.as_ref().len() >= SECRET_MIN).collect();
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.as_ref().len()));
    secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_ref(), mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out_the_longest_first() {
        let said = "bad key sk-12345 (and sk-1234567), abc";
        assert_eq!(
            redact(said, ["sk-12345", "sk-1234567", "abc"], "[key]"),
            "bad key [key] (and [key]), abc"
        );
        assert_eq!(redact("as it is", [""; 0], "[key]"), "as it is");
    }
}
