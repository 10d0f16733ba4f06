//! Message signatures: HMAC with SHA-256 (RFC 2104), like webhooks of code hosts.

use ::hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// `sha256=` and the hexadecimal signature of `body`.
pub fn signature(key: &[u8], body: &[u8]) -> String {
    // Keys of any length are accepted, so there is no error; `None` would sign nothing.
    let mac = Hmac::<Sha256>::new_from_slice(key).map(|mac| mac.chain_update(body).finalize().into_bytes());
    let digits: String = mac.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_match_rfc_4231() {
        // RFC 4231, cases 2 and 6.
        assert_eq!(
            signature(b"Jefe", b"what do ya want for nothing?"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            signature(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First"),
            "sha256=60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }
}
