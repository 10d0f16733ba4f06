//! Sending files and secrets away.

use super::Call;
use crate::guard::category::{Category, Refusal};

/// Options of `curl` that send something.
const SENDS: &[&str] = &[
    "-d",
    "--data",
    "--data-binary",
    "--data-raw",
    "--data-ascii",
    "--data-urlencode",
    "-F",
    "--form",
    "-T",
    "--upload-file",
    "--json",
    "-H",
    "--header",
    "-u",
    "--user",
    "-b",
    "--cookie",
];

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    if at_home(call) {
        return None;
    }
    match call.name {
        "ssh" | "http" | "https" | "xh" | "openssl"
            if (call.stdin.taint.secret || call.stdin.taint.archive && call.name != "ssh")
                && (call.name != "openssl" || call.is("openssl", &["s_client"])) =>
        {
            call.refuse(Category::Exfiltration, "It sends what holds secrets to another machine.")
        }
        "socat" if call.args.iter().any(|arg| sends_file(call, &arg.text)) => {
            call.refuse(Category::Exfiltration, "It sends a file that holds secrets.")
        }
        "kubectl" | "docker" | "podman"
            if call.has(&["cp"])
                && call.operands().any(|arg| call.places.holds_secrets(&(call.resolve)(&arg.text))) =>
        {
            call.refuse(Category::Exfiltration, "It takes a file that holds secrets elsewhere.")
        }
        "curl" | "http" | "https" | "xh" | "wget" | "fetch" => web(call),
        "nc" | "ncat" | "netcat" | "socat" | "telnet" => {
            let listens = call.short('l') || call.short('z');
            let sends = !call.stdin.text.is_empty() && !listens && call.operands().count() >= 1;
            let harmless = call.stdin.taint == crate::guard::value::Taint::default()
                && call.stdin.text.len() < 64
                && !call.stdin.text.contains(crate::guard::value::UNKNOWN);
            if sends && !harmless {
                call.refuse(Category::Exfiltration, "It sends what is piped into it to another machine.")
            } else {
                None
            }
        }
        "scp" | "rsync" | "sftp" | "rclone" | "ftp" | "lftp" => copies(call),
        "git" => pushes(call),
        "dig" | "nslookup" | "host" | "ping" | "drill" => {
            let told = call.args.iter().any(|arg| {
                arg.taint.secret
                    || arg.text.contains(crate::guard::value::UNKNOWN)
                        && arg.text.contains('.')
                        && arg.taint.decoded
            });
            if told {
                call.refuse(Category::Exfiltration, "The name that is looked up holds a secret.")
            } else {
                None
            }
        }
        "mail" | "mailx" | "sendmail" | "mutt" if !call.stdin.text.is_empty() || call.short('a') => {
            call.refuse(Category::Exfiltration, "It sends mail.")
        }
        name if serves_files(name, call) => {
            let folder = call.value(&["-d", "--directory"]).unwrap_or(".");
            if call.places.holds_home(&(call.resolve)(folder)) {
                call.refuse(Category::Exfiltration, "It shows the whole home folder to the network.")
            } else {
                None
            }
        }
        "aws" if call.is("aws", &["s3", "cp"]) || call.is("aws", &["s3", "sync"]) => secret_operand(call),
        "gh" if call.is("gh", &["gist", "create"]) => {
            call.refuse(Category::Exfiltration, "It publishes a file.")
        }
        _ => None,
    }
}

/// `FILE:.env` of socat.
fn sends_file(call: &Call<'_>, text: &str) -> bool {
    let file = text
        .split_once(':')
        .filter(|(kind, _)| ["FILE", "OPEN", "GOPEN"].contains(&kind.to_uppercase().as_str()));
    file.is_some_and(|(_, file)| {
        call.places.holds_secrets(&(call.resolve)(file.split(',').next().unwrap_or(file)))
    })
}

fn serves_files(name: &str, call: &Call<'_>) -> bool {
    name.starts_with("python")
        && call.value(&["-m"]).is_some_and(|module| ["http.server", "SimpleHTTPServer"].contains(&module))
}

fn web(call: &Call<'_>) -> Option<Refusal> {
    let secret = |why| call.refuse(Category::Exfiltration, why);
    // Where a login belongs into a request, its own server gets it.
    let login = call.args.iter().any(|arg| arg.taint.secret && !in_header(call, arg));
    if login {
        return secret("A secret would be part of the request.");
    }
    let sends = call.args.iter().enumerate().any(|(at, arg)| {
        let value = call.args.get(at + 1).map(|next| next.text.as_str()).unwrap_or_default();
        SENDS.contains(&arg.text.as_str())
            && file_of(&arg.text, value).is_some_and(|file| is_secret(call, file))
            || arg.text.split_once('=').is_some_and(|(name, value)| {
                SENDS.contains(&name) && file_of(name, value).is_some_and(|file| is_secret(call, file))
            })
    });
    if sends {
        return secret("It sends a file that holds secrets.");
    }
    if let Some(file) = call.value(&["--post-file", "--body-file"])
        && is_secret(call, file)
    {
        return secret("It sends a file that holds secrets.");
    }
    let reads_stdin = call.args.iter().any(|arg| {
        ["@-", "=-", "=@-"].iter().any(|end| arg.text.ends_with(end))
            || ["-", "-T-", "-T."].contains(&arg.text.as_str())
            || arg.text == "--upload-file"
    });
    match (reads_stdin, call.stdin.taint) {
        (true, taint) if taint.secret => secret("It sends what holds secrets."),
        (true, taint) if taint.archive => secret("It sends a whole folder to another machine."),
        _ => None,
    }
}

/// A push to an address that is no remote of the repository.
fn pushes(call: &Call<'_>) -> Option<Refusal> {
    let words = super::git_history::words(call);
    if words.first() != Some(&"push") {
        return None;
    }
    let to = call.value(&["--repo"]).or_else(|| words.get(1).copied()).unwrap_or_default();
    let turned = call.args.windows(2).any(|pair| {
        let setting = pair[1].text.to_lowercase();
        pair[0].text == "-c"
            && (setting.starts_with("remote.")
                && (setting.contains(".url=") || setting.contains(".pushurl="))
                || setting.starts_with("url.") && setting.contains("insteadof="))
    });
    if turned || is_address(to) {
        let why = "It pushes to an address of its own; a remote of the repository has a name.";
        return call.refuse(Category::Exfiltration, why);
    }
    None
}

/// `https://host/x`, `git@host:x`; a folder is none.
fn is_address(text: &str) -> bool {
    let scp = text.split_once(':').is_some_and(|(host, path)| {
        host.len() > 1
            && !host.contains('/')
            && !path.is_empty()
            && (host.contains('@') || host.contains('.'))
    });
    !text.starts_with("file://") && (text.contains("://") || text.contains("::") || scp)
}

/// The file that an option's value names.
fn file_of<'a>(option: &str, value: &'a str) -> Option<&'a str> {
    match option {
        "-T" | "--upload-file" => Some(value),
        "-H" | "--header" | "-u" | "--user" | "-b" | "--cookie" => value.strip_prefix('@'),
        _ => value
            .split_once("=<")
            .or_else(|| value.split_once('@'))
            .map(|(_, file)| file.split(';').next().unwrap_or(file)),
    }
}

fn is_secret(call: &Call<'_>, file: &str) -> bool {
    let path = (call.resolve)(file);
    call.places.holds_secrets(&path)
        || !call.places.below_project(&path) && !path.starts_with("/tmp/") && file != "-"
}

/// A token in a header of a request is how requests are allowed.
fn in_header(call: &Call<'_>, arg: &crate::guard::value::Field) -> bool {
    let headers = ["-H", "--header", "-u", "--user", "--oauth2-bearer"];
    call.args.windows(2).any(|pair| headers.contains(&pair[0].text.as_str()) && &pair[1] == arg)
}

fn copies(call: &Call<'_>) -> Option<Refusal> {
    let remote =
        |text: &str| text.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'));
    let to = call.operands().last().is_some_and(|arg| remote(&arg.text));
    if to { secret_operand(call) } else { None }
}

fn secret_operand(call: &Call<'_>) -> Option<Refusal> {
    let secret = call.operands().any(|arg| {
        !arg.text.contains(':')
            && is_secret(call, &arg.text)
            && !["s3", "cp", "sync"].contains(&arg.text.as_str())
    });
    if secret {
        call.refuse(
            Category::Exfiltration,
            "It sends files away that hold secrets, or are not the project's.",
        )
    } else {
        None
    }
}

/// Whether everything that is named is this machine.
fn at_home(call: &Call<'_>) -> bool {
    let here = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"];
    let named: Vec<bool> = call
        .args
        .iter()
        .filter(|arg| arg.text.contains("://") || here.contains(&arg.text.as_str()))
        .map(|arg| {
            let rest = arg.text.split_once("://").map_or(arg.text.as_str(), |(_, rest)| rest);
            here.iter().any(|host| rest.starts_with(host))
        })
        .collect();
    !named.is_empty() && named.iter().all(|here| *here)
}
