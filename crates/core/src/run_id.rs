//! Run ids: sortable by time, short enough to type.

use jiff::Timestamp;
use ralph_loop_protocol::id::RunId;

/// In ASCII order, so that ids sort by value.
const ALPHABET: &[u8] = b"23456789abcdefghjkmnpqrstuvwxyz";

/// A new id: `20261115-143307-k3f9`. The last four characters are the sub-second part plus randomness, so
/// that runs started within a second still sort by time.
pub fn new(now: Timestamp) -> RunId {
    let letter = |n: usize| ALPHABET[n % ALPHABET.len()] as char;
    let millis = usize::try_from(now.subsec_millisecond()).unwrap_or(0);
    let part = millis * ALPHABET.len() * ALPHABET.len() / 1000;
    let mut random = [0u8; 2];
    // Without randomness, time must do; the folder lock prevents two simultaneous starts.
    let _ = getrandom::fill(&mut random);
    let tail: String = [part / ALPHABET.len(), part, usize::from(random[0]), usize::from(random[1])]
        .map(letter)
        .iter()
        .collect();
    RunId::new(format!("{}-{tail}", now.strftime("%Y%m%d-%H%M%S")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_valid_and_sort_by_time() {
        let early = new(Timestamp::UNIX_EPOCH);
        assert!(RunId::parse(early.as_str()).is_ok());
        assert!(early.as_str().starts_with("19700101-000000-"));
        for millis in [0, 1, 500, 997] {
            let at = |ms: i64| new(Timestamp::from_millisecond(ms).unwrap());
            assert!(at(millis) < at(millis + 2), "{millis}");
        }
    }
}
