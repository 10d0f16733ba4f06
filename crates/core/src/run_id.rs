//! Names for runs: sortable by time, short enough to type.

use jiff::Timestamp;
use ralph_domain::id::RunId;

/// A new id for a run that starts now: `20261115-143307-k3f9`.
pub fn new(now: Timestamp) -> RunId {
    const ALPHABET: &[u8] = b"abcdefghjkmnpqrstuvwxyz23456789";
    let mut random = [0u8; 4];
    // Without randomness the time alone must do; two starts in one second and folder are refused by the lock anyway.
    let _ = getrandom::fill(&mut random);
    let tail: String = random.iter().map(|b| ALPHABET[usize::from(*b) % ALPHABET.len()] as char).collect();
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
    }
}
