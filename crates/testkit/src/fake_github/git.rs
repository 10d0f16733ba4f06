//! Git over HTTP: the real `git http-backend` behind GitHub's access rules.
#![allow(clippy::disallowed_methods, reason = "starts git")]

use super::state::{Reach, State};
use crate::fake_cloud::Reply;
use crate::model_server::http::Request;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs git on a bare repo; `None` if it fails.
pub(crate) fn git(bare: &Path, args: &[&str]) -> Option<String> {
    let output = clean(Command::new("git").arg("--git-dir").arg(bare).args(args)).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned())
}

fn clean(command: &mut Command) -> &mut Command {
    for (key, _) in std::env::vars_os() {
        if key.to_str().is_some_and(|key| key.starts_with("GIT_")) {
            command.env_remove(key);
        }
    }
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "GitHub")
        .env("GIT_AUTHOR_EMAIL", "noreply@example.com")
        .env("GIT_COMMITTER_NAME", "GitHub")
        .env("GIT_COMMITTER_EMAIL", "noreply@example.com")
}

pub(crate) fn make(bare: &Path) -> io::Result<()> {
    std::fs::create_dir_all(bare)?;
    let made = git(bare, &["init", "-q", "--bare", "-b", "main"]);
    made.and_then(|_| git(bare, &["config", "http.receivepack", "true"]))
        .map(|_| ())
        .ok_or_else(|| io::Error::other("git init failed"))
}

pub(crate) fn branch(bare: &Path, name: &str) -> Option<String> {
    git(bare, &["rev-parse", "--verify", "--quiet", &format!("refs/heads/{name}^{{commit}}")])
}

pub(crate) fn merge(bare: &Path, base: &str, head: &str) -> Option<()> {
    let old = branch(bare, base)?;
    let tree = git(bare, &["merge-tree", "--write-tree", &old, head])?;
    let new = git(bare, &["commit-tree", &tree, "-p", &old, "-p", head, "-m", "Merge"])?;
    git(bare, &["update-ref", &format!("refs/heads/{base}"), &new, &old]).map(|_| ())
}

/// Status, name, previous name of each file between two commits.
pub(crate) fn files(bare: &Path, from: &str, to: &str) -> Vec<(char, String, Option<String>)> {
    let text = git(bare, &["diff", "--name-status", "-z", "-M", from, to]).unwrap_or_default();
    let mut words = text.split('\0');
    let mut found = Vec::new();
    while let Some(status) = words.next().and_then(|word| word.chars().next()) {
        let first = words.next().unwrap_or_default().to_owned();
        let second = if status == 'R' { words.next() } else { None };
        found.push(match second {
            Some(new) => (status, new.to_owned(), Some(first)),
            None => (status, first, None),
        });
    }
    found
}

/// The token in a `Basic` login; GitHub takes it as the password.
fn basic_token(request: &Request) -> Option<String> {
    let coded = request.header("authorization")?.strip_prefix("Basic ")?;
    let text = String::from_utf8(STANDARD.decode(coded.trim()).ok()?).ok()?;
    text.split_once(':').map(|(_, password)| password.to_owned())
}

pub(crate) fn answer(state: &State, request: &Request, now: i64) -> Reply {
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let plain = |status, text: &str| Reply::bytes(status, "text/plain", text.as_bytes().to_vec());
    let door =
        || plain(401, "Invalid username or token.").header("www-authenticate", "Basic realm=\"GitHub\"");
    let Some(token) = basic_token(request) else { return door() };
    let holder = match state.holders.get(&token) {
        Some(holder) if holder.expires.is_none_or(|end| end > now) => holder,
        _ => return door(),
    };
    let pushes = path.ends_with("/git-receive-pack") || query.contains("service=git-receive-pack");
    if !path.starts_with(&format!("/{}.git/", state.full_name())) {
        return plain(404, "Repository not found.");
    }
    match holder.reach {
        Reach::Nothing if state.private => return plain(404, "Repository not found."),
        Reach::Nothing | Reach::Read if pushes => {
            return plain(
                403,
                &format!("Permission to {}.git denied to {}.", state.full_name(), holder.login),
            );
        }
        Reach::SingleSignOn => {
            return plain(403, "The organization has enabled or enforced SAML SSO.");
        }
        _ => {}
    }
    backend(state, request, path, query, &holder.login).unwrap_or_else(|error| plain(500, &error.to_string()))
}

fn backend(state: &State, request: &Request, path: &str, query: &str, login: &str) -> io::Result<Reply> {
    let mut command = Command::new("git");
    clean(&mut command)
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", &state.root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("REQUEST_METHOD", &request.method)
        .env("CONTENT_TYPE", request.header("content-type").unwrap_or_default())
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", request.header("content-encoding").unwrap_or_default())
        .env("GIT_PROTOCOL", request.header("git-protocol").unwrap_or_default())
        .env("REMOTE_USER", login)
        .env("REMOTE_ADDR", "127.0.0.1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn()?;
    let (stdin, body) = (child.stdin.take(), request.body.clone());
    let feeding = std::thread::spawn(move || {
        if let Some(mut stdin) = stdin {
            // A backend that refuses doesn't read the whole body.
            let _ = stdin.write_all(&body);
        }
    });
    let output = child.wait_with_output()?;
    let _ = feeding.join();
    let end = output.stdout.windows(4).position(|w| w == b"\r\n\r\n");
    let end = end.ok_or_else(|| io::Error::other("git http-backend said nothing"))?;
    let head = String::from_utf8_lossy(&output.stdout[..end]).into_owned();
    let mut reply = Reply::empty(200);
    for (name, value) in head.lines().filter_map(|line| line.split_once(": ")) {
        if name.eq_ignore_ascii_case("status") {
            reply.status = value.split(' ').next().and_then(|code| code.parse().ok()).unwrap_or(500);
        } else {
            reply = reply.header(name, value);
        }
    }
    reply.body = output.stdout[end + 4..].to_vec();
    Ok(reply)
}
