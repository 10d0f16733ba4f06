//! Reading what logs in somewhere.

use super::Call;
use crate::guard::category::{Category, Refusal};

/// Programs that read, copy or search the files that they name.
const READERS: &[&str] = &[
    "cat",
    "less",
    "more",
    "head",
    "tail",
    "bat",
    "tac",
    "nl",
    "od",
    "xxd",
    "hexdump",
    "strings",
    "base64",
    "base32",
    "cp",
    "mv",
    "ln",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "ag",
    "awk",
    "gawk",
    "sed",
    "cut",
    "sort",
    "uniq",
    "diff",
    "cmp",
    "tar",
    "zip",
    "gzip",
    "7z",
    "rsync",
    "scp",
    "dd",
    "openssl",
    "vim",
    "vi",
    "nano",
    "emacs",
    "view",
    "tee",
    "jq",
    "yq",
    "xargs",
    "find",
    "file",
    "stat",
    "md5sum",
    "sha256sum",
    "ssh-keygen",
    "curl",
    "wget",
    "python",
    "python3",
    "node",
    "perl",
    "ruby",
    "php",
    "install",
    "paste",
    "fold",
    "rev",
    "tr",
    "source",
    "pr",
    "expand",
    "comm",
    "join",
    "look",
    "split",
    "csplit",
    "iconv",
    "gpg",
    "age",
    "nc",
    "socat",
    "code",
    "open",
];
/// Programs that print a login.
const PRINTS: &[(&str, &[&str])] = &[
    ("gh", &["auth", "token"]),
    ("git", &["credential", "fill"]),
    ("gcloud", &["auth", "print-access-token"]),
    ("gcloud", &["auth", "print-identity-token"]),
    ("gcloud", &["auth", "application-default", "print-access-token"]),
    ("az", &["account", "get-access-token"]),
    ("aws", &["configure", "get"]),
    ("aws", &["configure", "export-credentials"]),
    ("aws", &["sts", "get-session-token"]),
    ("heroku", &["auth:token"]),
    ("npm", &["token"]),
    ("docker-credential-desktop", &["get"]),
    ("vault", &["token"]),
    ("op", &["read"]),
    ("op", &["item", "get"]),
    ("pass", &["show"]),
    ("secret-tool", &["lookup"]),
    ("security", &["find-generic-password"]),
    ("security", &["find-internet-password"]),
    ("security", &["dump-keychain"]),
    ("keyctl", &["print"]),
    ("kubectl", &["get", "secret"]),
    ("kubectl", &["get", "secrets"]),
    ("kubectl", &["config", "view"]),
    ("terraform", &["state", "pull"]),
];

/// Where the clouds hand out the login of a machine.
const METADATA: &[&str] =
    &["169.254.169.254", "169.254.170.2", "metadata.google.internal", "100.100.100.200", "[fd00:ec2::254]"];

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    if PRINTS.iter().any(|(name, verbs)| call.is(name, verbs)) {
        return call.refuse(Category::Credentials, "It prints a login.");
    }
    if call.name.starts_with("gpg") && call.args.iter().any(|arg| arg.text.starts_with("--export-secret")) {
        return call.refuse(Category::Credentials, "It prints a private key.");
    }
    if call.name.starts_with("docker-credential-") || call.name.starts_with("git-credential-") {
        return call.refuse(Category::Credentials, "It prints a login.");
    }
    if ["mimikatz", "lazagne", "trufflehog"].contains(&call.name) {
        return call.refuse(Category::Credentials, "It looks for logins.");
    }
    let asks_cloud = call.args.iter().any(|arg| METADATA.iter().any(|host| arg.text.contains(host)));
    if asks_cloud && ["curl", "wget", "http", "https", "xh", "fetch", "nc"].contains(&call.name) {
        return call.refuse(Category::Credentials, "It asks the cloud for the login of this machine.");
    }
    let hashes = call.name == "git" && call.has(&["hash-object", "--no-index"]);
    if !READERS.contains(&call.name) && !hashes {
        return None;
    }
    // `tar -C FOLDER NAME` means a name in that folder.
    let folder = if call.name == "tar" { call.value(&["-C", "--directory"]) } else { None };
    call.args.iter().find_map(|arg| {
        let text = arg.text.trim_start_matches('@').trim_start_matches("if=").trim_start_matches("file=@");
        let text = text.split_once("=@").map_or(text, |(_, file)| file);
        let text = text.strip_prefix("file://").unwrap_or(text);
        if text.starts_with('-') || text.contains("://") {
            return None;
        }
        let below = folder.filter(|_| !text.starts_with('/')).map(|folder| format!("{folder}/{text}"));
        let (category, why) = call.places.reading(&(call.resolve)(below.as_deref().unwrap_or(text)))?;
        call.refuse(category, why)
    })
}
