//! Connections to this machine: in a sandbox with its own network, a server of the machine doesn't answer.

use nix::libc;
use nix::unistd::Pid;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The state of a listening socket in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// The port of a socket address that means this machine: family, port, and at 4 or 8 the address.
pub(super) fn port(address: [u8; 28]) -> Option<u16> {
    let [family_low, family_high, high, low, rest @ ..] = address;
    let is_local = match libc::c_int::from(u16::from_ne_bytes([family_low, family_high])) {
        libc::AF_INET => Ipv4Addr::from(*rest.first_chunk()?).is_loopback(),
        libc::AF_INET6 => {
            let v6 = Ipv6Addr::from(*rest[4..].first_chunk()?);
            v6.is_loopback() || v6.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback())
        }
        _ => false,
    };
    is_local.then_some(u16::from_be_bytes([high, low]))
}

/// Whether a server of this machine listens on `port`, and none in the network of `pid`.
pub(super) fn kept_out(pid: Pid, port: u16) -> bool {
    let listens = |process: &str| {
        ["tcp", "tcp6"].iter().any(|table| {
            let table = std::fs::read_to_string(format!("/proc/{process}/net/{table}")).unwrap_or_default();
            has_listener(&table, port)
        })
    };
    listens("self") && !listens(&pid.to_string())
}

/// `0: 0100007F:1538 00000000:0000 0A …`
fn has_listener(table: &str, port: u16) -> bool {
    table.lines().skip(1).any(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let own = fields.next().and_then(|own| own.rsplit(':').next());
        own.is_some_and(|own| u16::from_str_radix(own, 16) == Ok(port)) && fields.nth(1) == Some(LISTENS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_have_a_local_port() {
        let v4 = |address: [u8; 4]| {
            let mut all = [0; 28];
            all[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
            all[2..4].copy_from_slice(&5432u16.to_be_bytes());
            all[4..8].copy_from_slice(&address);
            port(all)
        };
        assert_eq!((v4([127, 0, 0, 1]), v4([10, 0, 0, 1])), (Some(5432), None));
        let v6 = |address: &str| {
            let mut all = [0; 28];
            all[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
            all[2..4].copy_from_slice(&6379u16.to_be_bytes());
            all[8..24].copy_from_slice(&address.parse::<Ipv6Addr>().unwrap().octets());
            port(all)
        };
        assert_eq!([v6("::1"), v6("::ffff:127.0.0.1"), v6("fd00::1")], [Some(6379), Some(6379), None]);
        assert_eq!(port([1; 28]), None, "a socket in the file system");
    }

    #[test]
    fn a_table_tells_listeners_from_connections() {
        let table = "  sl  local_address rem_address   st\n   0: 0100007F:1538 00000000:0000 0A 0\n   1: 0100007F:1F90 0100007F:1538 01 0\n";
        assert!(has_listener(table, 5432) && !has_listener(table, 8080) && !has_listener("", 5432));
    }
}
