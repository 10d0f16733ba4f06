//! Running what the network sends. Pipes into shells are found where the shell is walked; these are the rest.

use super::Call;
use crate::guard::category::{Category, Refusal};

const RUNS: &[&str] =
    &["python", "python3", "node", "perl", "ruby", "php", "lua", "deno", "bun", "osascript"];

/// Options of installers whose value is an address of packages, and none that is installed.
const INDEXES: &[&str] = &[
    "-i",
    "--index-url",
    "--extra-index-url",
    "--index",
    "--default-index",
    "-f",
    "--find-links",
    "--proxy",
    "--registry",
    "--trusted-host",
    "--cache-dir",
    "--prefix",
    "--target",
    "-t",
    "--cwd",
    "--filter",
];

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    if installs_from_address(call) {
        return call.refuse(Category::RemoteCode, "It installs, and so runs, what an address sends.");
    }
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

/// `pip install git+https://…`, `npm i https://…`, `cargo install --git …`: no package of an index, which has a name and a version.
fn installs_from_address(call: &Call<'_>) -> bool {
    let verbs = call.verbs();
    let name = call.name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let module = || name == "python" && call.value(&["-m"]) == Some("pip");
    let is = |wanted: &[&str]| verbs.iter().any(|verb| wanted.contains(verb));
    let installs = match name {
        "cargo" => return is(&["install"]) && call.value(&["--git"]).is_some_and(elsewhere),
        "pip" | "pipx" | "uv" | "poetry" | "pdm" | "rye" => is(&["install", "add", "run", "inject"]),
        "uvx" | "npx" | "bunx" => true,
        "python" if module() => is(&["install"]),
        "npm" | "pnpm" | "yarn" | "bun" => {
            is(&["i", "in", "ins", "install", "add", "link", "exec", "x", "dlx", "isntall"])
        }
        "gem" => is(&["specific_install"]),
        _ => false,
    };
    let named = call.args.iter().enumerate().filter(|(at, _)| {
        let before = at.checked_sub(1).and_then(|at| call.args.get(at));
        before.is_none_or(|before| !INDEXES.contains(&before.text.as_str()))
    });
    installs && named.map(|(_, arg)| arg.text.as_str()).any(|text| address(text).is_some_and(elsewhere))
}

/// The address in an argument of an installer: as it is, behind a name (`x @ git+https://…`), or of an option for a file of them.
fn address(text: &str) -> Option<&str> {
    let text = text.rsplit_once(" @ ").map_or(text, |(_, address)| address.trim());
    let text = match text.split_once('=') {
        Some((option, value))
            if ["--requirement", "--constraint", "--editable", "--from"].contains(&option) =>
        {
            value
        }
        Some((option, _)) if option.starts_with("--") => return None,
        _ => text,
    };
    let starts = [
        "git+",
        "hg+",
        "svn+",
        "bzr+",
        "git://",
        "git@",
        "ssh://",
        "http://",
        "https://",
        "github:",
        "gitlab:",
        "bitbucket:",
        "gist:",
    ];
    let bare = text.rsplit_once("@git+").map_or(text, |(_, rest)| rest);
    (bare.len() < text.len() || starts.iter().any(|start| text.starts_with(start))).then_some(text)
}

/// Whether an address is none of this machine.
fn elsewhere(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let here = ["localhost", "127.0.0.1", "[::1]", "/"];
    !here.iter().any(|host| rest.starts_with(host))
        && !address.starts_with("file:")
        && !address.contains("+file:")
}
