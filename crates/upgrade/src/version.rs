//! Versions and their order.

use crate::error::UpgradeError;
use std::cmp::Ordering;

/// A version: three numbers, and what comes before its release (`0.2.0-rc.1`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    numbers: [u64; 3],
    before: Vec<Part>,
}

/// A piece of what comes before a release.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(String),
}

impl Version {
    /// Reads one, with or without a `v` before it.
    pub fn parse(text: &str) -> Result<Self, UpgradeError> {
        let wrong = || UpgradeError::Version { text: text.chars().take(60).collect() };
        let bare = text.strip_prefix('v').unwrap_or(text);
        let (numbers, before) = bare.split_once('-').map_or((bare, None), |(n, b)| (n, Some(b)));
        let number = |word: &str| match word.bytes().all(|b| b.is_ascii_digit()) {
            true => word.parse::<u64>().ok(),
            false => None,
        };
        let found: Option<Vec<u64>> = numbers.split('.').map(number).collect();
        let numbers: [u64; 3] = found.and_then(|all| all.try_into().ok()).ok_or_else(wrong)?;
        let part = |word: &str| {
            let known = !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric());
            known.then(|| number(word).map_or_else(|| Part::Word(word.to_owned()), Part::Number))
        };
        let before: Option<Vec<Part>> = before.map_or(Some(Vec::new()), |b| b.split('.').map(part).collect());
        Ok(Self { numbers, before: before.ok_or_else(wrong)? })
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        // What comes before a release is older than the release.
        let finished = |version: &Self| version.before.is_empty();
        self.numbers
            .cmp(&other.numbers)
            .then(finished(self).cmp(&finished(other)))
            .then_with(|| self.before.cmp(&other.before))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        for (at, part) in self.before.iter().enumerate() {
            f.write_str(if at == 0 { "-" } else { "." })?;
            match part {
                Part::Number(number) => write!(f, "{number}")?,
                Part::Word(word) => f.write_str(word)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_the_order_that_people_expect() {
        let sorted = ["0.1.9", "0.1.10", "0.2.0-rc.1", "0.2.0-rc.2", "0.2.0-rc.10", "0.2.0", "1.0.0"];
        for pair in sorted.windows(2) {
            assert!(Version::parse(pair[0]).unwrap() < Version::parse(pair[1]).unwrap(), "{pair:?}");
        }
        assert_eq!(Version::parse("v0.2.0-rc.1").unwrap().to_string(), "0.2.0-rc.1");
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in
            ["", "1", "1.2", "1.2.3.4", "1.2.x", "../1.2.3", "1.2.3-", "1.2.3-a/b", "+1.2.3", "1.2.-3"]
        {
            assert!(Version::parse(text).is_err(), "{text}");
        }
    }
}
