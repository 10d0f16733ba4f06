//! Sandboxes and drives.

use super::{FakeVercel, NOW, Sandbox, State, refusal};
use crate::fake_cloud::{Inside, Query, Reply};
use crate::model_server::http::Request;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn answer(state: &mut State, request: &Request, path: &[&str], query: &Query) -> Reply {
    let body = serde_json::from_slice::<Value>(&request.body).unwrap_or_default();
    match (request.method.as_str(), path) {
        ("POST", []) => create(state, body),
        ("GET", []) => list(state, query),
        ("POST", ["drives", name]) => {
            state.drives.insert((*name).to_owned());
            let drive = json!({ "id": format!("drv_{name}"), "name": name, "projectId": body["projectId"], "region": "iad1",
                "maxSizeBytes": 1_u64 << 30, "createdAt": NOW, "updatedAt": NOW });
            Reply::json(200, &json!({ "drive": drive }))
        }
        (method, [name]) if query.get("projectId") == Some(FakeVercel::PROJECT) => {
            if method == "DELETE" {
                return match state.sandboxes.remove(*name) {
                    None => refusal(404, "Sandbox not found"),
                    Some(gone) => {
                        gone.inside.end();
                        Reply::json(200, &json!({ "sandbox": shown(&gone) }))
                    }
                };
            }
            let Some(sandbox) = state.sandboxes.get_mut(*name) else {
                return refusal(404, "Sandbox not found");
            };
            match method {
                "GET" => {
                    sandbox.look();
                    let resumed = query.get("resume") == Some("true") && sandbox.status() == "stopped";
                    if resumed {
                        sandbox.sessions += 1;
                        sandbox.states = vec!["pending", "running"];
                    }
                    let mut whole = whole(sandbox);
                    whole["resumed"] = json!(resumed);
                    Reply::json(200, &whole)
                }
                "PATCH" => {
                    if let Some(ports) = body["ports"].as_array() {
                        if ports.len() > 4 {
                            return refusal(400, "A maximum of 4 ports is allowed");
                        }
                        sandbox.ports = ports.iter().filter_map(Value::as_u64).collect();
                    }
                    Reply::json(200, &json!({ "sandbox": shown(sandbox), "routes": routes(sandbox) }))
                }
                _ => refusal(404, "no such route"),
            }
        }
        _ => refusal(404, "no such route"),
    }
}

pub(super) fn create(state: &mut State, body: Value) -> Reply {
    if body["projectId"] != FakeVercel::PROJECT {
        return refusal(404, "Project not found");
    }
    state.made += 1;
    let name = body["name"].as_str().map_or_else(|| format!("sandbox-{}", state.made), str::to_owned);
    if state.sandboxes.contains_key(&name) {
        return refusal(400, &format!("A sandbox named {name} already exists"));
    }
    let mounts = body["mounts"].as_object().into_iter().flatten();
    if mounts.into_iter().any(|(_, m)| m["drive"].as_str().is_none_or(|d| !state.drives.contains(d))) {
        return refusal(400, "Drive not found");
    }
    let env = serde_json::from_value(body["env"].clone()).unwrap_or_default();
    let Ok(inside) = Inside::new(env) else { return refusal(500, "no folder can be made") };
    let ports = body["ports"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    let timeout = body["timeout"].as_u64().unwrap_or(300_000);
    let inside = Arc::new(inside);
    // The vendor's SDK assumes that a returned sandbox is running.
    let sandbox = Sandbox {
        name: name.clone(),
        asked: body,
        sessions: 1,
        states: vec!["running"],
        ports,
        timeout,
        extended: 0,
        commands: 0,
        inside,
    };
    let reply = Reply::json(200, &whole(&sandbox));
    state.sandboxes.insert(name, sandbox);
    reply
}

fn list(state: &State, query: &Query) -> Reply {
    let tag = query.get("tags").and_then(|tag| tag.split_once(':'));
    let fits = |sandbox: &&Sandbox| {
        tag.is_none_or(|(name, value)| sandbox.asked["tags"][name] == *value)
            && query.get("namePrefix").is_none_or(|prefix| sandbox.name.starts_with(prefix))
    };
    let all: Vec<Value> = state.sandboxes.values().filter(fits).map(shown).collect();
    let from = query.get("cursor").and_then(|c| c.parse().ok()).unwrap_or(0_usize);
    let limit = query.get("limit").and_then(|c| c.parse().ok()).unwrap_or(100_usize).min(state.page);
    let page: Vec<&Value> = all.iter().skip(from).take(limit).collect();
    let next = (from + limit < all.len()).then(|| (from + limit).to_string());
    Reply::json(200, &json!({ "pagination": { "count": page.len(), "next": next }, "sandboxes": page }))
}

pub(super) fn session(sandbox: &Sandbox) -> Value {
    let vcpus = sandbox.asked["resources"]["vcpus"].as_u64().unwrap_or(2);
    json!({ "id": sandbox.session(), "memory": vcpus * 2048, "vcpus": vcpus, "region": "iad1", "timeout": sandbox.timeout,
        "status": sandbox.status(), "requestedAt": NOW, "startedAt": NOW, "createdAt": NOW, "updatedAt": NOW,
        "cwd": sandbox.inside.home() })
}

fn routes(sandbox: &Sandbox) -> Value {
    let route = |port: &u64| {
        let subdomain = format!("{}-{port}", sandbox.name);
        json!({ "url": format!("https://{subdomain}.vercel.invalid"), "subdomain": subdomain, "port": port })
    };
    Value::Array(sandbox.ports.iter().map(route).collect())
}

fn shown(sandbox: &Sandbox) -> Value {
    let tags = if sandbox.asked["tags"].is_object() { sandbox.asked["tags"].clone() } else { json!({}) };
    json!({ "name": sandbox.name, "persistent": sandbox.asked["persistent"].as_bool().unwrap_or(true), "status": sandbox.status(),
        "currentSessionId": sandbox.session(), "createdAt": NOW, "updatedAt": NOW, "timeout": sandbox.timeout, "tags": tags })
}

fn whole(sandbox: &Sandbox) -> Value {
    json!({ "sandbox": shown(sandbox), "session": session(sandbox), "routes": routes(sandbox) })
}
