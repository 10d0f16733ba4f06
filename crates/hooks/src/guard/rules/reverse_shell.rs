//! A shell for somebody far away.

use super::Call;
use crate::guard::category::{Category, Refusal};

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    let why = "It gives a shell to whoever is at the other end.";
    match call.name {
        "nc" | "ncat" | "netcat" | "nc.traditional" | "nc.openbsd" | "cryptcat" => {
            let runs =
                call.short('e') || call.short('c') || call.option(&["--exec", "--sh-exec", "--lua-exec"]);
            if runs { call.refuse(Category::ReverseShell, why) } else { None }
        }
        "socat" => {
            let runs = call.args.iter().any(|arg| {
                let text = arg.text.to_uppercase();
                text.starts_with("EXEC:") || text.starts_with("SYSTEM:") || text.starts_with("SHELL:")
            });
            if runs { call.refuse(Category::ReverseShell, why) } else { None }
        }
        "telnet" if call.stdin.text.contains("sh") && !call.args.is_empty() => {
            call.refuse(Category::ReverseShell, why)
        }
        "openssl" if call.is("openssl", &["s_client"]) && !call.stdin.text.is_empty() && call.short('q') => {
            call.refuse(Category::ReverseShell, why)
        }
        "ssh" if call.short('R') => {
            call.refuse(Category::ReverseShell, "It lets a machine far away connect to this one.")
        }
        "ztcp" => call.refuse(Category::ReverseShell, why),
        "cloudflared" if call.has(&["tunnel", "access"]) => {
            call.refuse(Category::ReverseShell, "It lets machines far away connect to this one.")
        }
        "ngrok" | "localtunnel" | "chisel" | "frpc" | "bore" => {
            call.refuse(Category::ReverseShell, "It lets machines far away connect to this one.")
        }
        "gotty" | "ttyd" | "tmate" => call.refuse(Category::ReverseShell, why),
        _ => None,
    }
}
