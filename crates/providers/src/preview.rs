//! Checks a vendor's URLs for ports: users and models see them as links, so only plain web URLs pass, whose host is
//! what it looks like.

use crate::error::ProviderError;
use crate::http::VendorClient;
use ralph_loop_domain::ports::Preview;
use std::net::{IpAddr, Ipv6Addr};

/// Longest URL, and longest value of a header.
const URL_MAX: usize = 1000;
const HEADER_MAX: usize = 4096;

/// The unchanged URL, if it may be shown. `server` is its source.
pub(crate) fn checked(http: &VendorClient, server: &str, preview: Preview) -> Result<Preview, ProviderError> {
    let refused = |why: &str| Err(http.garbled("open a port", why));
    let Some(host) = plain_host(&preview.url) else {
        return refused("its address isn't a plain http(s) URL");
    };
    if is_near(&host) && !plain_host(server).is_some_and(|host| is_near(&host)) {
        return refused("the address it gives is one of this machine or its network");
    }
    let is_plain = |value: &String| value.len() <= HEADER_MAX && value.bytes().all(|b| b.is_ascii_graphic());
    match preview.headers.values().all(is_plain) {
        true => Ok(preview),
        false => refused("a header of the address isn't plain text"),
    }
}

/// The host of a web URL without login and without characters that a terminal, a page or a shell would interpret.
fn plain_host(url: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\\\"'`<>@^{|}".contains(&byte);
    if url.len() > URL_MAX || !url.bytes().all(is_plain) {
        return None;
    }
    let rest = ["https://", "http://"].into_iter().find_map(|scheme| url.strip_prefix(scheme))?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            host.parse::<Ipv6Addr>().ok()?;
            (host, after.strip_prefix(':').or_else(|| after.is_empty().then_some("0")))
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, Some("0")),
        },
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    let is_host =
        host.starts_with(|c: char| c.is_ascii_alphanumeric() || c == ':') && host.chars().all(is_part);
    (is_host && port?.parse::<u16>().is_ok()).then(|| host.to_ascii_lowercase())
}

/// Whether a host is this machine or in its network, where no cloud's port is.
fn is_near(host: &str) -> bool {
    let name = host.trim_end_matches('.');
    if name == "localhost" || [".localhost", ".local", ".internal"].iter().any(|end| name.ends_with(end)) {
        return true;
    }
    match name.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => {
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified()
        }
        Ok(IpAddr::V6(ip)) => {
            let unique = ip.segments()[0] & 0xfe00 == 0xfc00;
            let link = ip.segments()[0] & 0xffc0 == 0xfe80;
            let mapped = ip.to_ipv4_mapped().is_some_and(|ip| is_near(&ip.to_string()));
            ip.is_loopback() || ip.is_unspecified() || unique || link || mapped
        }
        // Numbers that some programs read as an address: `127.1`, `2130706433`, `0x7f.1`.
        Err(_) => name.rsplit('.').next().is_some_and(|last| last.starts_with(|c: char| c.is_ascii_digit())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_web_urls_pass() {
        for (url, host) in [
            ("https://3000-abc.proxy.daytona.work", "3000-abc.proxy.daytona.work"),
            ("https://sb-1.vercel.run/path?x=1#y", "sb-1.vercel.run"),
            ("http://127.0.0.1:3000/", "127.0.0.1"),
            ("http://[::1]:80/x", "::1"),
        ] {
            assert_eq!(plain_host(url).as_deref(), Some(host), "{url}");
        }
        let long = format!("https://h.org/{}", "x".repeat(URL_MAX));
        for url in [
            "",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "HTTPS:evil.example",
            "https:///x",
            "https://a@evil.example/",
            "https://vendor.com\\@evil.example/",
            "https://h.org:99999/",
            "https://h.org:/",
            "https://h.org/\u{1b}]8;;x",
            "https://h.org/\r\nx",
            "https://h.org/ x",
            "https://h\u{202e}gro.org/",
            "https://-x.org/",
            "https://[::1",
            "https://[h.org]/",
            "https://h.org/\"><script>",
            &long,
        ] {
            assert_eq!(plain_host(url), None, "{url}");
        }
    }

    #[test]
    fn private_hosts_are_refused() {
        for host in [
            "localhost",
            "x.localhost",
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f.0x1",
            "10.1.2.3",
            "169.254.169.254",
            "::1",
            "fd00::1",
            "::ffff:10.0.0.1",
            "metadata.google.internal",
        ] {
            assert!(is_near(host), "{host}");
        }
        for host in ["3000-abc.proxy.daytona.work", "8.8.8.8", "2606:4700::1111", "x.invalid", "h.org."] {
            assert!(!is_near(host), "{host}");
        }
    }
}
