//! `envd`, the service inside: files over HTTP, processes and folders over Connect.

use super::{NOW, refusal};
use crate::fake_cloud::{Inside, Job, Query, Reply, parts, write};
use crate::model_server::http::Request;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

pub(super) fn answer(inside: &Inside, request: &Request, path: &[&str], query: &Query) -> Reply {
    match (request.method.as_str(), path) {
        ("GET", ["health"]) => Reply::empty(204),
        ("GET", ["files"]) => match fs::read(inside.path(query.get("path").unwrap_or_default())) {
            Ok(bytes) => Reply::bytes(200, "application/octet-stream", bytes),
            Err(error) => {
                refusal(if error.kind() == io::ErrorKind::NotFound { 404 } else { 400 }, &error.to_string())
            }
        },
        ("POST", ["files"]) => upload(inside, request, query),
        ("POST", ["process.Process", "Start"]) => start(inside, request),
        ("POST", ["filesystem.Filesystem", method]) => filesystem(inside, method, &request.body)
            .unwrap_or_else(|error| {
                let (status, code) = match error.kind() {
                    io::ErrorKind::NotFound => (404, "not_found"),
                    io::ErrorKind::AlreadyExists => (409, "already_exists"),
                    _ => (400, "invalid_argument"),
                };
                Reply::json(status, &json!({ "code": code, "message": error.to_string() }))
            }),
        _ => refusal(404, "no such route"),
    }
}

fn upload(inside: &Inside, request: &Request, query: &Query) -> Reply {
    let kind = request.header("content-type").unwrap_or_default();
    let files = if kind.starts_with("multipart/") {
        parts(kind, &request.body)
    } else {
        vec![("file".to_owned(), None, request.body.clone())]
    };
    let mut written = Vec::new();
    for (name, filename, bytes) in files {
        if name != "file" {
            return refusal(400, "the part must be called `file`");
        }
        let path = query.get("path").map(str::to_owned).or(filename).unwrap_or_default();
        if let Err(error) = write(&inside.path(&path), &bytes) {
            return refusal(400, &error.to_string());
        }
        let name = path.rsplit('/').next().unwrap_or_default();
        written.push(json!({ "path": inside.path(&path), "name": name, "type": "file" }));
    }
    Reply::json(200, &Value::Array(written))
}

fn frame(out: &mut Vec<u8>, flags: u8, value: &Value) {
    let text = value.to_string();
    out.push(flags);
    out.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn start(inside: &Inside, request: &Request) -> Reply {
    let mut out = Vec::new();
    let failed = |mut out: Vec<u8>, code: &str, message: &str| {
        frame(&mut out, 2, &json!({ "error": { "code": code, "message": message } }));
        Reply::bytes(200, "application/connect+json", out)
    };
    if !request.header("content-type").is_some_and(|kind| kind.starts_with("application/connect+json")) {
        return refusal(415, "expected a connect+json stream");
    }
    let Some(body) = request.body.get(5..).and_then(|b| serde_json::from_slice::<Value>(b).ok()) else {
        return failed(out, "invalid_argument", "the frame is not understood");
    };
    let process = &body["process"];
    let mut argv = vec![process["cmd"].as_str().unwrap_or_default().to_owned()];
    argv.extend(
        process["args"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned),
    );
    let env = serde_json::from_value(process["envs"].clone()).unwrap_or_default();
    let timeout =
        request.header("connect-timeout-ms").and_then(|ms| ms.parse().ok()).map(Duration::from_millis);
    let job = Job { argv, cwd: process["cwd"].as_str(), env, stdin: Vec::new(), timeout };
    let ran = match inside.run(&job) {
        Ok(ran) => ran,
        Err(error) => return failed(out, "invalid_argument", &error.to_string()),
    };
    frame(&mut out, 0, &json!({ "event": { "start": { "pid": 42 } } }));
    for (stream, bytes) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
        for piece in bytes.chunks(32 * 1024) {
            frame(&mut out, 0, &json!({ "event": { "data": { stream: base64(piece) } } }));
        }
    }
    if ran.timed_out {
        return failed(out, "deadline_exceeded", "context deadline exceeded");
    }
    let mut end = json!({ "exited": true, "status": format!("exit status {}", ran.code) });
    if ran.code != 0 {
        end["exitCode"] = json!(ran.code);
        end["error"] = json!(format!("exit status {}", ran.code));
    }
    frame(&mut out, 0, &json!({ "event": { "keepalive": {} } }));
    frame(&mut out, 0, &json!({ "event": { "end": end } }));
    frame(&mut out, 2, &json!({}));
    Reply::bytes(200, "application/connect+json", out)
}

fn filesystem(inside: &Inside, method: &str, body: &[u8]) -> io::Result<Reply> {
    let body: Value = serde_json::from_slice(body)?;
    let path = inside.path(body["path"].as_str().ok_or(io::ErrorKind::InvalidInput)?);
    let answer = match method {
        "Stat" => json!({ "entry": entry(&path)? }),
        "ListDir" => {
            let mut entries = Vec::new();
            for found in fs::read_dir(&path)? {
                entries.push(entry(&found?.path())?);
            }
            json!({ "entries": entries })
        }
        "MakeDir" if path.is_dir() => return Err(io::ErrorKind::AlreadyExists.into()),
        "MakeDir" => {
            fs::create_dir_all(&path)?;
            json!({ "entry": entry(&path)? })
        }
        "Remove" => {
            if fs::symlink_metadata(&path)?.is_dir() {
                fs::remove_dir_all(&path)?
            } else {
                fs::remove_file(&path)?
            }
            json!({})
        }
        _ => return Err(io::ErrorKind::NotFound.into()),
    };
    Ok(Reply::json(200, &answer))
}

fn entry(path: &Path) -> io::Result<Value> {
    let found = fs::symlink_metadata(path)?;
    let kind = if found.is_dir() {
        "FILE_TYPE_DIRECTORY"
    } else if found.is_symlink() {
        "FILE_TYPE_SYMLINK"
    } else {
        "FILE_TYPE_FILE"
    };
    Ok(
        json!({ "name": path.file_name().map(|n| n.to_string_lossy()), "type": kind, "path": path, "size": found.len().to_string(),
        "mode": found.mode() & 0o7777, "permissions": "-rw-r--r--", "owner": "user", "group": "user", "modifiedTime": NOW }),
    )
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word = three.iter().fold(0_u32, |word, b| word << 8 | u32::from(*b)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= three.len() { char::from(letter) } else { '=' });
        }
    }
    out
}
