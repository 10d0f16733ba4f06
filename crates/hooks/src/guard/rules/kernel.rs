//! Kernel, firewall, shutting down.

use super::Call;
use crate::guard::category::{Category, Refusal};

const MODULES: &[&str] = &[
    "insmod",
    "rmmod",
    "modprobe",
    "kexec",
    "depmod",
    "bpftool",
    "kmod",
    "grub-install",
    "efibootmgr",
    "nvram",
    "csrutil",
    "setenforce",
    "aa-teardown",
    "aa-disable",
];
const DOWN: &[&str] = &["shutdown", "reboot", "poweroff", "halt", "telinit"];
const FIREWALLS: &[&str] =
    &["iptables", "ip6tables", "nft", "ufw", "firewall-cmd", "pfctl", "ipset", "ebtables"];

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    let refuse = |why: &str| call.refuse(Category::Kernel, why);
    let lists = call.has(&[
        "-l",
        "-L",
        "list",
        "status",
        "--list",
        "-S",
        "--version",
        "--help",
        "-n",
        "--show-depends",
    ]);
    match call.name {
        name if MODULES.contains(&name) && !lists => {
            refuse("It changes the running kernel or how the machine starts.")
        }
        name if DOWN.contains(&name) => refuse("It shuts the machine down."),
        "init" if call.operands().next().is_some_and(|arg| ["0", "1", "6"].contains(&arg.text.as_str())) => {
            refuse("It shuts the machine down.")
        }
        name if FIREWALLS.contains(&name) && !lists && !call.args.is_empty() => {
            refuse("It changes the firewall.")
        }
        "sysctl"
            if call.option(&["-w", "--write", "-p", "--load", "--system"])
                || call.operands().any(|arg| arg.text.contains('=')) =>
        {
            refuse("It changes the running kernel.")
        }
        "ip" if call.args.iter().any(|arg| {
            ["add", "del", "delete", "set", "flush", "replace", "change"].contains(&arg.text.as_str())
        }) =>
        {
            refuse("It changes the network of the machine.")
        }
        "ifconfig" | "route" if call.has(&["down", "add", "del", "up"]) => {
            refuse("It changes the network of the machine.")
        }
        "date" | "hwclock" | "timedatectl"
            if call.option(&["-s", "--set", "--systohc", "set-time", "set-timezone"]) =>
        {
            refuse("It changes the clock of the machine.")
        }
        "hostnamectl" | "swapon" if !call.args.is_empty() && !lists => refuse("It changes the machine."),
        _ => None,
    }
}
