//! Becoming somebody else, or giving a file the rights of somebody else.

use super::Call;
use crate::guard::category::{Category, Refusal};

const BECOMES: &[&str] =
    &["sudo", "doas", "pkexec", "su", "sudoedit", "visudo", "runas", "gosu", "su-exec", "kdesu", "gksudo"];
const ACCOUNTS: &[&str] = &[
    "useradd", "adduser", "usermod", "userdel", "groupadd", "gpasswd", "passwd", "chpasswd", "vipw",
    "newusers", "chsh", "addgroup", "deluser",
];

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    if BECOMES.contains(&call.name) && !call.has(&["--version", "--help"]) {
        return call.refuse(Category::Privilege, "It takes the rights of another user.");
    }
    if ACCOUNTS.contains(&call.name) {
        return call.refuse(Category::Privilege, "It changes accounts of this machine.");
    }
    if call.name == "setcap" {
        return call.refuse(Category::Privilege, "It gives a program rights beyond its user's.");
    }
    if call.name == "chmod" || call.name == "install" {
        let mode = call.operands().map(|arg| arg.text.as_str()).chain(call.value(&["-m", "--mode"]));
        let grants = |mode: &str| {
            let octal = mode.len() >= 4 && mode.bytes().all(|b| (b'0'..=b'7').contains(&b));
            let special = octal && mode.as_bytes()[mode.len() - 4] >= b'4';
            let letters = mode.contains(['+', '=']) && mode.len() < 16 && !mode.contains('/');
            let whose = mode.split(['+', '=']).next().unwrap_or_default();
            let users = whose.is_empty() || whose.contains(['u', 'a']);
            special || letters && users && mode.split(['+', '=']).skip(1).any(|rights| rights.contains('s'))
        };
        if mode.take(2).any(grants) {
            return call.refuse(Category::Privilege, "It lets a program run with its owner's rights.");
        }
    }
    None
}
