//! The toolbox inside a sandbox: files and commands.

use super::{NOW, refusal};
use crate::fake_cloud::{Inside, Job, Query, Reply, parts, write};
use crate::model_server::http::Request;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

pub(super) fn answer(inside: &Inside, request: &Request, path: &[&str], query: &Query) -> Reply {
    let done = match (request.method.as_str(), path) {
        ("GET", ["version"]) => Ok(Reply::json(200, &json!({ "version": "0.205.1" }))),
        ("GET", ["work-dir" | "user-home-dir"]) => Ok(Reply::json(200, &json!({ "dir": inside.home() }))),
        ("POST", ["process", "execute"]) => execute(inside, request),
        ("POST", ["files", "bulk-upload"]) => upload(inside, request),
        ("POST", ["files", "bulk-download"]) => download_many(inside, request),
        (_, ["files", ..]) => {
            let Some(name) = query.get("path") else {
                return refusal(400, &request.target, "path is required");
            };
            files(inside, (request.method.as_str(), &path[1..]), &inside.path(name), query)
        }
        _ => return refusal(404, &request.target, "404 page not found"),
    };
    done.unwrap_or_else(|error| {
        let status = match error.kind() {
            io::ErrorKind::NotFound => 404,
            io::ErrorKind::PermissionDenied => 403,
            _ => 400,
        };
        refusal(status, &request.target, &error.to_string())
    })
}

fn execute(inside: &Inside, request: &Request) -> io::Result<Reply> {
    let body: Value = serde_json::from_slice(&request.body)?;
    let Some(command) = body["command"].as_str() else {
        return Ok(refusal(400, &request.target, "command is required"));
    };
    let env: BTreeMap<String, String> = serde_json::from_value(body["envs"].clone()).unwrap_or_default();
    let timeout = body["timeout"].as_u64().filter(|t| *t > 0).map(Duration::from_secs);
    // The daemon passes the command to a shell's standard input.
    let job = Job {
        argv: vec!["sh".into()],
        cwd: body["cwd"].as_str(),
        env,
        stdin: command.as_bytes().to_vec(),
        timeout,
    };
    let ran = inside.run(&job)?;
    if ran.timed_out {
        return Ok(refusal(408, &request.target, "command execution timeout"));
    }
    let mut output = ran.stdout;
    output.extend(ran.stderr);
    Ok(Reply::json(200, &json!({ "exitCode": ran.code, "result": String::from_utf8_lossy(&output) })))
}

/// Like an older daemon: splits words at blanks and quotes, without escapes.
pub(super) fn execute_words(inside: &Inside, request: &Request) -> Reply {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let (mut argv, mut word, mut quote) = (Vec::new(), String::new(), None);
    for letter in body["command"].as_str().unwrap_or_default().chars().chain([' ']) {
        match (letter, quote) {
            ('"' | '\'', None) => quote = Some(letter),
            (_, Some(open)) if open == letter => quote = None,
            (' ', None) if word.is_empty() => {}
            (' ', None) => argv.push(std::mem::take(&mut word)),
            _ => word.push(letter),
        }
    }
    match inside.run(&Job { argv, ..Job::default() }) {
        Ok(ran) => {
            let result = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
            Reply::json(200, &json!({ "exitCode": ran.code, "result": result }))
        }
        Err(error) => Reply::json(200, &json!({ "exitCode": -1, "result": error.to_string() })),
    }
}

fn upload(inside: &Inside, request: &Request) -> io::Result<Reply> {
    let all = parts(request.header("content-type").unwrap_or_default(), &request.body);
    let mut written = Vec::new();
    for pair in all.chunks(2) {
        let [(path_name, _, path), (file_name, _, bytes)] = pair else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        if path_name.strip_suffix(".path") != file_name.strip_suffix(".file") {
            return Ok(refusal(400, &request.target, "parts do not pair"));
        }
        let path = String::from_utf8_lossy(path).into_owned();
        write(&inside.path(&path), bytes)?;
        written.push(json!({ "path": path, "bytes": bytes.len() }));
    }
    if written.is_empty() {
        return Ok(refusal(400, &request.target, "no files"));
    }
    Ok(Reply::json(200, &json!({ "files": written })))
}

fn download_many(inside: &Inside, request: &Request) -> io::Result<Reply> {
    let body: Value = serde_json::from_slice(&request.body)?;
    let boundary = "fake-daytona-boundary";
    let mut out = Vec::new();
    for path in body["paths"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let (name, kind, bytes) = match fs::read(inside.path(path)) {
            Ok(bytes) => ("file", "application/octet-stream", bytes),
            Err(error) => {
                let body = json!({ "statusCode": 404, "message": error.to_string(), "code": "FILE_NOT_FOUND", "timestamp": NOW,
                    "path": "/files/bulk-download", "method": "POST", "source": "DAYTONA_DAEMON" });
                ("error", "application/json", body.to_string().into_bytes())
            }
        };
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{path}\"\r\nContent-Type: {kind}\r\n\r\n"
        );
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(&bytes);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok(Reply::bytes(200, &format!("multipart/form-data; boundary={boundary}"), out))
}

fn files(inside: &Inside, (method, rest): (&str, &[&str]), path: &Path, query: &Query) -> io::Result<Reply> {
    match (method, rest) {
        ("GET", []) => {
            let mut entries = Vec::new();
            for entry in fs::read_dir(path)? {
                entries.push(info(&entry?.path())?);
            }
            Ok(Reply::json(200, &Value::Array(entries)))
        }
        ("GET", ["info"]) => Ok(Reply::json(200, &info(path)?)),
        ("GET", ["download"]) => Ok(Reply::bytes(200, "application/octet-stream", fs::read(path)?)),
        ("DELETE", []) => {
            match fs::symlink_metadata(path)?.is_dir() {
                true if query.get("recursive") == Some("true") => fs::remove_dir_all(path)?,
                true => return Err(io::Error::other("cannot delete directory without recursive flag")),
                false => fs::remove_file(path)?,
            }
            Ok(Reply::empty(204))
        }
        ("POST", ["folder"]) => {
            fs::create_dir_all(path)?;
            set_mode(path, query)?;
            Ok(Reply::empty(201))
        }
        ("POST", ["permissions"]) => {
            set_mode(path, query)?;
            Ok(Reply::empty(200))
        }
        _ => {
            let _ = inside;
            Err(io::ErrorKind::NotFound.into())
        }
    }
}

fn set_mode(path: &Path, query: &Query) -> io::Result<()> {
    let Some(mode) = query.get("mode") else { return Ok(()) };
    let mode = u32::from_str_radix(mode, 8).map_err(|_| io::Error::other("invalid mode"))?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

fn info(path: &Path) -> io::Result<Value> {
    let found = fs::symlink_metadata(path)?;
    let bits = found.mode() & 0o7777;
    let letters: String =
        (0..9).rev().map(|bit| if bits >> bit & 1 == 1 { ['x', 'w', 'r'][bit % 3] } else { '-' }).collect();
    let kind = if found.is_dir() { 'd' } else { '-' };
    Ok(json!({
        "name": path.file_name().map(|n| n.to_string_lossy()), "isDir": found.is_dir(), "size": found.len(),
        "mode": format!("{kind}{letters}"), "permissions": format!("{bits:04o}"), "owner": found.uid().to_string(),
        "group": found.gid().to_string(), "modTime": "2026-11-15 12:00:00 +0000 UTC", "modifiedAt": NOW, "path": path,
    }))
}
