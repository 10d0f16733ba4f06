//! Whether a server has connections, from the kernel's list.

/// Connections that are open or were just closed.
const TALKING: [&str; 2] = ["01", "06"];

/// Whether a connection to local `port` is open, or just was. False if the kernel has no such list.
pub(crate) fn any(port: u16) -> bool {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .any(|table| has(&table, port))
}

/// Whether the table (the format of `/proc/net/tcp`) has such a connection.
fn has(table: &str, port: u16) -> bool {
    table.lines().skip(1).any(|line| {
        let mut words = line.split_whitespace().skip(1);
        let local = words.next().and_then(|word| word.rsplit_once(':'));
        let state = words.nth(1).unwrap_or_default();
        local.is_some_and(|(_, hex)| u16::from_str_radix(hex, 16) == Ok(port)) && TALKING.contains(&state)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_alone_is_not_talked_to() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n\
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0\n\
             1: 0100007F:1F91 0100007F:C350 01 00000000:00000000 00:00000000 00000000 0\n\
             2: 00000000000000000000000001000000:1F92 00000000000000000000000001000000:C351 06 0:0\n";
        assert!(!has(table, 0x1F90));
        assert!(has(table, 0x1F91) && has(table, 0x1F92));
        assert!(!has(table, 0xC350), "the other end is not ours");
        assert!(!has("", 1));
    }

    #[test]
    fn a_real_connection_is_seen() {
        if !std::path::Path::new("/proc/net/tcp").exists() {
            println!("skipped: no /proc/net/tcp here");
            return;
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let _client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let _server = listener.accept().unwrap();
        assert!(any(port));
    }
}
