//! The API: sandboxes and volumes.

use super::{ENVD, NOW, Sandbox, State, refusal};
use crate::fake_cloud::{Inside, Query, Reply};
use crate::model_server::http::Request;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn answer(state: &mut State, request: &Request, path: &[&str], query: &Query) -> Reply {
    let body = serde_json::from_slice::<Value>(&request.body).unwrap_or_default();
    // The newer paths of the vendor's SDK do the same.
    let newer = path.first() == Some(&"v2");
    let path = if newer { &path[1..] } else { path };
    match (request.method.as_str(), path) {
        ("POST", ["sandboxes"]) => create(state, body),
        ("GET", ["sandboxes"]) => list(state, query),
        ("GET", ["volumes"]) => {
            let all =
                state.volumes.iter().map(|name| json!({ "volumeID": format!("vol-{name}"), "name": name }));
            Reply::json(200, &Value::Array(all.collect()))
        }
        ("POST", ["volumes"]) => {
            let name = body["name"].as_str().unwrap_or_default().to_owned();
            state.volumes.push(name.clone());
            Reply::json(
                201,
                &json!({ "volumeID": format!("vol-{name}"), "name": name, "token": "volume-token" }),
            )
        }
        ("DELETE", ["sandboxes", id]) => match state.sandboxes.remove(*id) {
            None => refusal(404, "Sandbox not found"),
            Some(gone) => {
                gone.inside.end();
                Reply::empty(204)
            }
        },
        (method, ["sandboxes", id, rest @ ..]) => match state.sandboxes.get_mut(*id) {
            None => refusal(404, "Sandbox not found"),
            // The older path requires it.
            Some(_) if !newer && rest == ["connect"] && body["timeout"].as_u64().is_none() => {
                refusal(400, "timeout is required")
            }
            Some(sandbox) => one(sandbox, (method, rest), &body),
        },
        _ => refusal(404, "no such route"),
    }
}

pub(super) fn create(state: &mut State, body: Value) -> Reply {
    if body["templateID"].as_str().is_none() {
        return refusal(400, "templateID is required");
    }
    let mounts = body["volumeMounts"].as_array().into_iter().flatten();
    if let Some(missing) =
        mounts.filter_map(|m| m["name"].as_str()).find(|n| !state.volumes.iter().any(|v| v == n))
    {
        return refusal(400, &format!("volume {missing} does not exist"));
    }
    let env = serde_json::from_value(body["envVars"].clone()).unwrap_or_default();
    let Ok(inside) = Inside::new(env) else { return refusal(500, "no folder can be made") };
    state.made += 1;
    let id = format!("i{:019}", state.made);
    let timeout = body["timeout"].as_u64().unwrap_or(15);
    let sandbox = Sandbox {
        id: id.clone(),
        paused: false,
        asked: body,
        timeout,
        extended: 0,
        wakes: 1,
        inside: Arc::new(inside),
    };
    let reply = Reply::json(201, &access(&sandbox));
    state.sandboxes.insert(id, sandbox);
    reply
}

fn list(state: &State, query: &Query) -> Reply {
    let (_, wanted) = Query::split(&format!("?{}", query.get("metadata").unwrap_or_default()));
    let states: Vec<&str> = query.get("state").unwrap_or("running").split(',').collect();
    let fits = |sandbox: &&Sandbox| {
        let metadata = &sandbox.asked["metadata"];
        wanted.pairs().all(|(name, value)| metadata[name] == *value) && states.contains(&word(sandbox))
    };
    let all: Vec<Value> = state.sandboxes.values().filter(fits).map(known).collect();
    let from = query.get("nextToken").and_then(|c| c.parse().ok()).unwrap_or(0_usize);
    let limit = query.get("limit").and_then(|c| c.parse().ok()).unwrap_or(100_usize).min(state.page);
    let page: Vec<Value> = all.iter().skip(from).take(limit).cloned().collect();
    let reply = Reply::json(200, &Value::Array(page));
    if from + limit < all.len() { reply.header("x-next-token", (from + limit).to_string()) } else { reply }
}

fn one(sandbox: &mut Sandbox, route: (&str, &[&str]), body: &Value) -> Reply {
    match route {
        ("GET", []) => {
            let mut shown = known(sandbox);
            shown["envdAccessToken"] = json!(sandbox.token());
            shown["domain"] = json!("e2b.invalid");
            Reply::json(200, &shown)
        }
        ("POST", ["pause"]) if sandbox.paused => refusal(409, "Sandbox is already paused"),
        ("POST", ["pause"]) => {
            sandbox.inside.kill_all();
            sandbox.paused = true;
            Reply::empty(204)
        }
        ("POST", ["timeout"]) if body["timeout"].as_u64().is_none() => refusal(400, "timeout is required"),
        ("POST", ["connect"]) => {
            let status = if sandbox.paused { 201 } else { 200 };
            sandbox.wakes += u32::from(sandbox.paused);
            sandbox.paused = false;
            sandbox.timeout = body["timeout"].as_u64().unwrap_or(300);
            Reply::json(status, &access(sandbox))
        }
        ("POST", ["timeout"]) => {
            sandbox.timeout = body["timeout"].as_u64().unwrap_or_default();
            sandbox.extended += 1;
            Reply::empty(204)
        }
        _ => refusal(404, "no such route"),
    }
}

fn word(sandbox: &Sandbox) -> &'static str {
    if sandbox.paused { "paused" } else { "running" }
}

fn access(sandbox: &Sandbox) -> Value {
    let public = sandbox.asked["network"]["allowPublicTraffic"] != json!(false);
    let traffic = (!public).then(|| format!("traffic-{}", sandbox.id));
    json!({ "templateID": sandbox.asked["templateID"], "sandboxID": sandbox.id, "clientID": "c", "envdVersion": ENVD,
        "envdAccessToken": sandbox.token(), "trafficAccessToken": traffic, "domain": "e2b.invalid" })
}

fn known(sandbox: &Sandbox) -> Value {
    let metadata =
        if sandbox.asked["metadata"].is_object() { sandbox.asked["metadata"].clone() } else { json!({}) };
    json!({ "templateID": sandbox.asked["templateID"], "sandboxID": sandbox.id, "clientID": "c", "startedAt": NOW, "endAt": NOW,
        "cpuCount": 2, "memoryMB": 512, "diskSizeMB": 1024, "metadata": metadata, "state": word(sandbox), "envdVersion": ENVD })
}
