//! Looking for machines and ports.

use super::Call;
use crate::guard::category::{Category, Refusal};

const SCANNERS: &[&str] = &[
    "nmap",
    "masscan",
    "zmap",
    "rustscan",
    "arp-scan",
    "fping",
    "hping3",
    "unicornscan",
    "netdiscover",
    "nikto",
    "sqlmap",
    "hydra",
    "gobuster",
    "dirb",
    "ffuf",
    "wfuzz",
    "medusa",
    "ncrack",
    "enum4linux",
    "nbtscan",
    "angryip",
    "naabu",
    "tcpdump",
    "tshark",
    "ettercap",
    "bettercap",
    "responder",
    "aircrack-ng",
    "dsniff",
    "zenmap",
    "nuclei",
];

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    let refuse = || call.refuse(Category::NetworkScan, "It looks for machines, ports or weaknesses.");
    if SCANNERS.contains(&call.name) && !call.has(&["--version", "-h", "--help", "-V"]) {
        return refuse();
    }
    let range = |text: &str| {
        text.split_once('-').is_some_and(|(a, b)| {
            let ports = a.parse::<u16>().ok().zip(b.parse::<u16>().ok());
            ports.is_some_and(|(a, b)| b.saturating_sub(a) > 1)
        })
    };
    if ["nc", "ncat", "netcat"].contains(&call.name)
        && call.short('z')
        && call.operands().any(|arg| range(&arg.text))
    {
        return refuse();
    }
    None
}
