//! Running what the network sends. Pipes into shells are found where the shell is walked; these are the rest.

use super::Call;
use crate::guard::category::{Category, Refusal};

const RUNS: &[&str] =
    &["python", "python3", "node", "perl", "ruby", "php", "lua", "deno", "bun", "osascript"];

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    let hidden = call.stdin.text.contains(crate::guard::value::UNKNOWN)
        && (call.stdin.taint.fetched || call.stdin.taint.decoded);
    let reads_code = call.operands().next().is_none_or(|arg| arg.text == "-");
    let asked = call
        .args
        .iter()
        .any(|arg| ["-c", "-e", "-m", "-r", "-p", "--version", "-V"].contains(&arg.text.as_str()));
    if RUNS.contains(&call.name) && hidden && reads_code && !asked {
        return call.refuse(Category::RemoteCode, "It runs what the network sends.");
    }
    let script = call.args.iter().any(|arg| arg.text.starts_with("/dev/fd/") && arg.taint.fetched);
    if (RUNS.contains(&call.name) || call.name == "source") && script {
        return call.refuse(Category::RemoteCode, "It runs what the network sends.");
    }
    let url = |arg: &str| arg.starts_with("http://") || arg.starts_with("https://");
    let by_url = matches!(call.name, "deno" | "bun" | "mshta" | "regsvr32")
        && call.operands().any(|arg| url(&arg.text));
    if by_url && !call.has(&["install", "cache", "add", "doc"]) {
        return call.refuse(Category::RemoteCode, "It runs what the network sends.");
    }
    None
}
