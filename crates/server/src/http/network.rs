//! Networks of trusted proxies, and the client's address behind one.

use axum::http::HeaderMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// An address, or a range of them such as `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    first: u128,
    mask: u128,
}

fn number(address: IpAddr) -> u128 {
    let six: Ipv6Addr = match address {
        IpAddr::V4(four) => four.to_ipv6_mapped(),
        IpAddr::V6(six) => six,
    };
    six.to_bits()
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is neither an address nor a range such as `10.0.0.0/8`");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u32>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let free = u32::checked_sub(all, bits.unwrap_or(all)).ok_or_else(wrong)?;
        let mask = u128::MAX.checked_shl(free).unwrap_or(0);
        Ok(Self { first: number(address) & mask, mask })
    }
}

impl Network {
    /// Whether the address is one of these.
    pub fn contains(&self, address: IpAddr) -> bool {
        number(address) & self.mask == self.first
    }
}

/// Whether the address is a trusted proxy's.
pub(crate) fn is_trusted(proxies: &[Network], address: IpAddr) -> bool {
    proxies.iter().any(|network| network.contains(address))
}

/// The client's address: that of the connection, or what trusted proxies say of it. The last entry is the nearest proxy's;
/// a client can only invent those before it.
pub(crate) fn client(peer: IpAddr, headers: &HeaderMap, proxies: &[Network]) -> IpAddr {
    let mut client = peer.to_canonical();
    let said: Vec<&str> = headers
        .get_all("x-forwarded-for")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .collect();
    let mut said = said.into_iter().rev();
    while is_trusted(proxies, client) {
        let Some(before) = said.next().and_then(|text| address(text.trim())) else { break };
        client = before.to_canonical();
    }
    client
}

/// An address, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|with_port| with_port.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_contains_its_addresses() {
        let contains = |network: &str, address: &str| {
            network.parse::<Network>().unwrap().contains(address.parse().unwrap())
        };
        assert!(contains("10.0.0.0/8", "10.200.3.4") && !contains("10.0.0.0/8", "11.0.0.1"));
        assert!(contains("127.0.0.1", "127.0.0.1") && !contains("127.0.0.1", "127.0.0.2"));
        assert!(contains("fd00::/8", "fd12::1") && !contains("fd00::/8", "fe80::1"));
        assert!(contains("0.0.0.0/0", "1.2.3.4") && !contains("0.0.0.0/0", "fd00::1"));
        assert!(contains("::/0", "fd00::1"));
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0.0/x", "proxy"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_a_trusted_proxy_names_the_client() {
        let proxies = ["10.0.0.0/8".parse().unwrap()];
        let client = |peer: &str, said: &[&str]| {
            let mut headers = HeaderMap::new();
            for one in said {
                headers.append("x-forwarded-for", one.parse().unwrap());
            }
            client(peer.parse().unwrap(), &headers, &proxies).to_string()
        };
        assert_eq!(client("9.9.9.9", &["1.1.1.1"]), "9.9.9.9", "not a proxy");
        assert_eq!(client("10.0.0.1", &["1.1.1.1"]), "1.1.1.1");
        assert_eq!(client("10.0.0.1", &["6.6.6.6, 1.1.1.1"]), "1.1.1.1", "the client invented the first");
        assert_eq!(client("10.0.0.1", &["6.6.6.6", "1.1.1.1, 10.0.0.2"]), "1.1.1.1");
        assert_eq!(client("10.0.0.1", &["[fd00::7]:443"]), "fd00::7");
        assert_eq!(client("10.0.0.1", &["unknown"]), "10.0.0.1");
        assert_eq!(client("::ffff:10.0.0.1", &[]), "10.0.0.1");
    }
}
