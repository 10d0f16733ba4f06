//! Classifies servers by URL.

use std::net::IpAddr;

/// Whether a host, with or without brackets, is this machine: requests to it never use a proxy and may do without
/// TLS.
pub fn is_loopback(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        for host in ["localhost", "127.0.0.1", "127.3.2.1", "::1", "[::1]", "LOCALHOST"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in
            ["127.0.0.1.evil.example", "127.evil.example", "localhost.example", "10.0.0.1", "[::2]", ""]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
