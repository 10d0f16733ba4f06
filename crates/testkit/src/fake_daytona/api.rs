//! The API: sandboxes and volumes.

use super::{NOW, Sandbox, State, refusal};
use crate::fake_cloud::{Inside, Query, Reply};
use crate::model_server::http::Request;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn answer(state: &mut State, request: &Request, path: &[&str], query: &Query) -> Reply {
    let no = |status, message: &str| refusal(status, &request.target, message);
    let body = || serde_json::from_slice::<Value>(&request.body).unwrap_or_default();
    match (request.method.as_str(), path) {
        ("POST", ["sandbox"]) => create(state, body(), &no),
        ("GET", ["sandbox"]) => list(state, query),
        ("POST", ["volumes"]) => {
            let name = body()["name"].as_str().unwrap_or_default().to_owned();
            state.volumes.insert(name.clone(), false);
            Reply::json(200, &volume(&name, false))
        }
        ("GET", ["volumes", "by-name", name]) => match state.volumes.get_mut(*name) {
            None => no(404, "Volume not found"),
            Some(ready) => {
                let shown = volume(name, *ready);
                *ready = true;
                Reply::json(200, &shown)
            }
        },
        (method, ["sandbox", id, rest @ ..]) => {
            let by_name = state.sandboxes.values().find(|s| s.name == **id).map(|s| s.id.clone());
            let id = by_name.unwrap_or_else(|| (*id).to_owned());
            let toolbox = state.toolbox_url.clone();
            if method == "DELETE" && rest.is_empty() {
                return match state.sandboxes.remove(&id) {
                    None => no(404, "Sandbox not found"),
                    Some(mut gone) => {
                        gone.inside.end();
                        gone.states = vec!["destroyed"];
                        Reply::json(200, &shown(&gone, &toolbox))
                    }
                };
            }
            match state.sandboxes.get_mut(&id) {
                None => no(404, "Sandbox not found"),
                Some(sandbox) => one(sandbox, &toolbox, (method, rest), &body, &no),
            }
        }
        _ => no(404, "Cannot find this route"),
    }
}

pub(super) fn create(state: &mut State, body: Value, no: &dyn Fn(u16, &str) -> Reply) -> Reply {
    let has = |key: &str| !body[key].is_null();
    if has("buildInfo") && has("snapshot") {
        return no(400, "Cannot specify a snapshot when using a build info entry");
    }
    if !has("buildInfo") && ["cpu", "gpu", "memory", "disk"].iter().any(|key| has(key)) {
        return no(400, "Cannot specify Sandbox resources when using a snapshot");
    }
    state.made += 1;
    let id = format!("00000000-0000-4000-8000-{:012}", state.made);
    let name = body["name"].as_str().unwrap_or(&id).to_owned();
    if state.sandboxes.values().any(|s| s.name == name) {
        return no(409, &format!("Sandbox with name {name} already exists"));
    }
    let env = serde_json::from_value(body["env"].clone()).unwrap_or_default();
    let Ok(inside) = Inside::new(env) else { return no(500, "no folder can be made") };
    let states = if has("buildInfo") {
        vec!["pending_build", "building_snapshot", "started"]
    } else {
        vec!["creating", "started"]
    };
    let labels = if has("labels") { body["labels"].clone() } else { json!({}) };
    let auto_stop = body["autoStopInterval"].as_f64().unwrap_or(15.0);
    let inside = Arc::new(inside);
    let sandbox = Sandbox {
        id: id.clone(),
        name,
        states,
        labels,
        auto_stop,
        asked: body,
        starts: 1,
        activity: 0,
        inside,
    };
    let shown = shown(&sandbox, &state.toolbox_url);
    state.sandboxes.insert(id, sandbox);
    Reply::json(200, &shown)
}

fn list(state: &mut State, query: &Query) -> Reply {
    let wanted: Value = query.get("labels").and_then(|l| serde_json::from_str(l).ok()).unwrap_or_default();
    let fits = |sandbox: &&Sandbox| {
        wanted.as_object().into_iter().flatten().all(|(name, value)| sandbox.labels[name] == *value)
    };
    let all: Vec<Value> =
        state.sandboxes.values().filter(fits).map(|s| shown(s, &state.toolbox_url)).collect();
    let from = query.get("cursor").and_then(|c| c.parse().ok()).unwrap_or(0_usize);
    let limit = query.get("limit").and_then(|c| c.parse().ok()).unwrap_or(100_usize).min(state.page);
    let items: Vec<&Value> = all.iter().skip(from).take(limit).collect();
    let next = (from + limit < all.len()).then(|| (from + limit).to_string());
    Reply::json(200, &json!({ "items": items, "nextCursor": next }))
}

fn one(
    sandbox: &mut Sandbox,
    toolbox: &str,
    (method, rest): (&str, &[&str]),
    body: &dyn Fn() -> Value,
    no: &dyn Fn(u16, &str) -> Reply,
) -> Reply {
    let is = sandbox.states.first().copied().unwrap_or("unknown");
    match (method, rest) {
        ("GET", []) => {
            // Each request shows the next state of a change in progress.
            if sandbox.states.len() > 1 {
                sandbox.states.remove(0);
            }
        }
        ("POST", ["start"]) if is == "stopped" => {
            sandbox.states = vec!["starting", "started"];
            sandbox.starts += 1;
        }
        ("POST", ["start"]) => return no(400, "Sandbox is not in valid state"),
        ("POST", ["stop"]) if is == "started" => {
            sandbox.inside.kill_all();
            sandbox.states = vec!["stopping", "stopped"];
        }
        ("POST", ["stop"]) => return no(400, "Sandbox is not started"),
        ("POST", ["last-activity"]) => {
            sandbox.activity += 1;
            return Reply::empty(201);
        }
        ("POST", ["autostop", minutes]) => sandbox.auto_stop = minutes.parse().unwrap_or(15.0),
        ("PUT", ["labels"]) => {
            sandbox.labels = body()["labels"].clone();
            return Reply::json(200, &json!({ "labels": sandbox.labels }));
        }
        ("GET", ["ports", port, "preview-url"]) => {
            let url = format!("https://{port}-{}.proxy.daytona.invalid", sandbox.id);
            let token = format!("token-{}", sandbox.starts);
            return Reply::json(200, &json!({ "sandboxId": sandbox.id, "url": url, "token": token }));
        }
        ("GET", ["toolbox-proxy-url"]) => return Reply::json(200, &json!({ "url": toolbox })),
        _ => return no(404, "Cannot find this route"),
    }
    Reply::json(200, &shown(sandbox, toolbox))
}

fn shown(sandbox: &Sandbox, toolbox: &str) -> Value {
    let asked = |key: &str, usual: Value| {
        if sandbox.asked[key].is_null() { usual } else { sandbox.asked[key].clone() }
    };
    let state = sandbox.states.first().copied().unwrap_or("unknown");
    let desired = match state {
        "stopping" | "stopped" => "stopped",
        "destroyed" => "destroyed",
        _ => "started",
    };
    json!({
        "id": sandbox.id, "organizationId": "org-1", "name": sandbox.name, "user": "daytona", "env": asked("env", json!({})),
        "labels": sandbox.labels, "public": false, "networkBlockAll": asked("networkBlockAll", json!(false)),
        "target": asked("target", json!("us")), "cpu": asked("cpu", json!(1)), "gpu": 0, "memory": asked("memory", json!(1)),
        "disk": asked("disk", json!(3)), "state": state, "desiredState": desired, "backupState": "None",
        "autoStopInterval": sandbox.auto_stop, "autoArchiveInterval": 10080, "autoDeleteInterval": -1,
        "volumes": asked("volumes", json!([])), "createdAt": NOW, "updatedAt": NOW, "lastActivityAt": NOW,
        "sandboxClass": "container", "daemonVersion": "0.205.1", "toolboxProxyUrl": toolbox,
    })
}

fn volume(name: &str, ready: bool) -> Value {
    let state = if ready { "ready" } else { "pending_create" };
    json!({ "id": format!("vol-{name}"), "name": name, "organizationId": "org-1", "state": state, "createdAt": NOW,
        "updatedAt": NOW, "lastUsedAt": null, "errorReason": null })
}
