//! Which addresses a name may resolve to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address isn't dialed; `None` for one on the public internet.
pub(super) fn forbidden(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => forbidden_v4(v4),
        IpAddr::V6(v6) => forbidden_v6(v6),
    }
}

/// Whether an address is in a private network, where a company's own servers are. Clouds serve credentials at some.
pub(super) fn is_private_network(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            v4.is_private() || (a == 100 && (64..=127).contains(&b) && (b, c) != (100, 100))
        }
        IpAddr::V6(v6) => {
            let [first, second, ..] = v6.segments();
            (0xfc00..=0xfdff).contains(&first) && (first, second) != (0xfd00, 0xec2)
        }
    }
}

fn forbidden_v4(v4: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = v4.octets();
    match (a, b, c) {
        _ if v4.is_loopback() => Some("it is a loopback address"),
        // Clouds serve credentials there.
        (169, 254, _) => Some("it is a link-local or metadata address"),
        (100, 100, 100) => Some("it is a metadata address"),
        _ if v4.is_private() => Some("it is a private address"),
        (0, _, _) => Some("it means this machine"),
        (100, 64..=127, _) => Some("it is a carrier's private address"),
        (192, 0, 0 | 2) | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113) => {
            Some("it is a reserved address")
        }
        (192, 88, 99) => Some("it is a relay address"),
        (224..=239, _, _) => Some("it is a multicast address"),
        (240..=255, _, _) => Some("it is a reserved or broadcast address"),
        _ => None,
    }
}

fn forbidden_v6(v6: Ipv6Addr) -> Option<&'static str> {
    let [first, second, third, .., seventh, eighth] = v6.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        forbidden_v4(Ipv4Addr::new(a, b, c, d))
    };
    if v6.is_loopback() || v6.is_unspecified() {
        return Some("it means this machine");
    }
    // An embedded IPv4 address is judged as IPv4, and never needed in this form.
    if v6.to_ipv4_mapped().is_some() {
        return Some("it is an IPv4 address in IPv6 form");
    }
    match (first, second) {
        (0, 0) => Some("it is an IPv4 address in IPv6 form"),
        (0x64, 0xff9b) => {
            // NAT64: networks without IPv4 reach public servers this way.
            if third == 0 { embedded(seventh, eighth) } else { Some("it is a local translation address") }
        }
        (0x100, 0) => Some("it is a discard address"),
        (0x2001, 0) => Some("it is a tunnel address"),
        (0x2001, 0xdb8) => Some("it is a reserved address"),
        (0x2002, _) => Some("it is a tunnel address"),
        (0xfc00..=0xfdff, _) => Some("it is a private address"),
        (0xfe80..=0xfebf, _) => Some("it is a link-local address"),
        (0xfec0..=0xfeff, _) => Some("it is a private address"),
        (0xff00..=0xffff, _) => Some("it is a multicast address"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_pass() {
        for bad in [
            "127.0.0.1",
            "127.9.9.9",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "100.64.0.1",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "239.1.1.1",
            "255.255.255.255",
            "240.0.0.1",
            "198.18.0.1",
            "192.0.2.1",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "2002:7f00:1::",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "fec0::1",
            "2001:db8::1",
        ] {
            assert!(forbidden(bad.parse().unwrap()).is_some(), "{bad}");
        }
        for good in
            ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::101:101"]
        {
            assert_eq!(forbidden(good.parse().unwrap()), None, "{good}");
        }
    }
}
