//! A session: commands and files.

use super::{NOW, State, api, lock, refusal};
use crate::fake_cloud::{Inside, Job, Reply};
use crate::model_server::http::Request;
use serde_json::{Value, json};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(super) fn answer(state: &Mutex<State>, request: &Request, id: &str, path: &[&str]) -> Reply {
    let body = serde_json::from_slice::<Value>(&request.body).unwrap_or_default();
    let (inside, number) = {
        let mut state = lock(state);
        let Some(sandbox) =
            state.sandboxes.values_mut().find(|s| id.starts_with(&format!("sbx_{}_", s.name)))
        else {
            return refusal(404, "Session not found");
        };
        // A starting session accepts commands, because the vendor's SDK doesn't wait for it.
        if sandbox.status() == "pending" {
            sandbox.look();
        }
        if id != sandbox.session() || sandbox.status() != "running" {
            return refusal(410, "The sandbox has stopped");
        }
        match (request.method.as_str(), path) {
            ("GET", []) => {
                return Reply::json(200, &json!({ "session": api::session(sandbox), "routes": [] }));
            }
            ("POST", ["stop"]) => {
                sandbox.inside.kill_all();
                // The files are kept in a snapshot, which takes a moment.
                sandbox.states = vec!["stopping", "snapshotting", "stopped"];
                return Reply::json(200, &json!({ "session": api::session(sandbox) }));
            }
            ("POST", ["extend-timeout"]) => {
                let Some(more) = body["duration"].as_u64() else {
                    return refusal(400, "duration is required");
                };
                sandbox.timeout += more;
                sandbox.extended += 1;
                return Reply::json(200, &json!({ "session": api::session(sandbox) }));
            }
            _ => {}
        }
        sandbox.commands += 1;
        (Arc::clone(&sandbox.inside), sandbox.commands)
    };
    let done = match (request.method.as_str(), path) {
        ("POST", ["cmd"]) => command(&inside, &body, id, number),
        ("POST", ["fs", "write"]) => unpack(&inside, request),
        ("POST", ["fs", "read"]) => {
            let path = inside
                .path(body["cwd"].as_str().unwrap_or_default())
                .join(body["path"].as_str().unwrap_or_default());
            std::fs::read(path).map(|bytes| Reply::bytes(200, "application/octet-stream", bytes))
        }
        ("POST", ["fs", "mkdir"]) => {
            let path = inside
                .path(body["cwd"].as_str().unwrap_or_default())
                .join(body["path"].as_str().unwrap_or_default());
            std::fs::create_dir(path).map(|()| Reply::json(200, &json!({})))
        }
        _ => return refusal(404, "no such route"),
    };
    done.unwrap_or_else(|error| {
        refusal(if error.kind() == io::ErrorKind::NotFound { 404 } else { 400 }, &error.to_string())
    })
}

fn command(inside: &Inside, body: &Value, session: &str, number: u32) -> io::Result<Reply> {
    let mut argv = vec![body["command"].as_str().unwrap_or_default().to_owned()];
    argv.extend(body["args"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
    let shown = |code: Option<i32>| {
        json!({ "command": { "id": format!("cmd_{number}"), "name": body["command"], "args": argv[1..], "sessionId": session,
            "cwd": body["cwd"].as_str().map_or_else(|| inside.home(), |cwd| inside.path(cwd)), "exitCode": code, "startedAt": NOW } })
    };
    let env = serde_json::from_value(body["env"].clone()).unwrap_or_default();
    let timeout = body["timeout"].as_u64().map(Duration::from_millis);
    let job = Job { argv: argv.clone(), cwd: body["cwd"].as_str(), env, stdin: Vec::new(), timeout };
    let ran = inside.run(&job)?;
    let mut lines = vec![shown(None)];
    if body["logs"] == true {
        for (stream, bytes) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
            // Lines are UTF-8 text; other bytes are lost, as with the vendor.
            for piece in String::from_utf8_lossy(bytes).split_inclusive('\n') {
                lines.push(json!({ "stream": stream, "data": piece }));
            }
        }
    }
    lines.push(shown(Some(ran.code)));
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    Ok(Reply::bytes(200, "application/x-ndjson", text.into_bytes()))
}

fn unpack(inside: &Inside, request: &Request) -> io::Result<Reply> {
    if request.header("content-type") != Some("application/gzip") {
        return Ok(refusal(415, "expected an archive"));
    }
    // The real service also refuses folders that are files.
    let argv = ["tar", "-xzf", "-", "--no-same-owner"].map(String::from).to_vec();
    let job = Job {
        argv,
        cwd: Some(request.header("x-cwd").unwrap_or("/")),
        stdin: request.body.clone(),
        ..Job::default()
    };
    let ran = inside.run(&job)?;
    if ran.code != 0 {
        return Ok(refusal(400, &String::from_utf8_lossy(&ran.stderr)));
    }
    Ok(Reply::json(200, &json!({})))
}
