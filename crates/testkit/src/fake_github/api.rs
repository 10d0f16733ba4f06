//! The REST API, and the two mutations of GraphQL that drafts need.

use super::state::{Holder, Pull, Reach, Said, State, Status};
use super::{app, git, shapes};
use crate::fake_cloud::{Query, Reply};
use crate::model_server::http::Request;
use serde_json::{Value, json};

pub(crate) fn refusal(status: u16, message: &str) -> Reply {
    let body = json!({ "message": message, "documentation_url": "https://docs.github.com/rest", "status": status.to_string() });
    Reply::json(status, &body)
}

fn invalid(errors: &Value) -> Reply {
    let body = json!({ "message": "Validation Failed", "errors": errors, "documentation_url": "https://docs.github.com/rest" });
    Reply::json(422, &body)
}

/// Answers a call; `path` has no Enterprise prefix.
pub(crate) fn answer(state: &mut State, request: &Request, path: &[&str], query: &Query, now: i64) -> Reply {
    if request.header("user-agent").is_none_or(str::is_empty) {
        return refusal(
            403,
            "Request forbidden by administrative rules. Please make sure your request has a User-Agent header",
        );
    }
    if request.header("x-github-api-version") != Some("2022-11-28") {
        return refusal(400, "unsupported API version");
    }
    let bearer = request
        .header("authorization")
        .and_then(|value| value.strip_prefix("Bearer "))
        .unwrap_or_default()
        .to_owned();
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let method = request.method.as_str();
    let of_app = matches!(
        (method, path),
        ("GET", ["app"] | ["repos", _, _, "installation"])
            | ("POST", ["app", "installations", _, "access_tokens"])
    );
    if of_app {
        return match app::check(&bearer, &state.app_id, now) {
            Err(why) => refusal(401, why),
            Ok(()) => as_app(state, path, now),
        };
    }
    let holder = match state.holders.get(&bearer) {
        Some(holder) if holder.expires.is_none_or(|end| end > now) => holder.clone(),
        _ => return refusal(401, "Bad credentials"),
    };
    match path {
        ["user"] if holder.login.ends_with("[bot]") => refusal(403, "Resource not accessible by integration"),
        ["user"] => Reply::json(200, &shapes::me(state, &holder.login)),
        ["graphql"] => graphql(state, &body, &holder),
        ["repos", owner, name, rest @ ..] => {
            let known = state.owner.eq_ignore_ascii_case(owner) && state.name.eq_ignore_ascii_case(name);
            if !known || (state.private && holder.reach == Reach::Nothing) {
                return refusal(404, "Not Found");
            }
            if holder.reach == Reach::SingleSignOn {
                return refusal(
                    403,
                    "Resource protected by organization SAML enforcement. You must grant your Personal Access token access to this organization.",
                );
            }
            if method != "GET" && holder.reach != Reach::Write {
                return refusal(403, "Resource not accessible by personal access token");
            }
            if method != "GET" && state.archived {
                return refusal(403, "Repository was archived so is read-only.");
            }
            of_repo(state, &ApiCall { method, path: rest, query, body: &body, holder: &holder })
        }
        _ => refusal(404, "Not Found"),
    }
}

struct ApiCall<'a> {
    method: &'a str,
    path: &'a [&'a str],
    query: &'a Query,
    body: &'a Value,
    holder: &'a Holder,
}

fn as_app(state: &mut State, path: &[&str], now: i64) -> Reply {
    match path {
        ["app"] => Reply::json(200, &shapes::app(state)),
        ["repos", owner, name, _] if state.installed && *owner == state.owner && *name == state.name => {
            Reply::json(200, &shapes::installation(state))
        }
        ["app", "installations", id, _] if *id == app::INSTALLATION.to_string() => {
            Reply::json(201, &app::issue(state, now))
        }
        _ => refusal(404, "Not Found"),
    }
}

fn of_repo(state: &mut State, call: &ApiCall<'_>) -> Reply {
    let number = |text: &str| text.parse::<u64>().unwrap_or(0);
    match (call.method, call.path) {
        ("GET", []) => Reply::json(200, &shapes::repo(state, call.holder.reach)),
        ("GET", ["pulls"]) => list_pulls(state, call),
        ("POST", ["pulls"]) => open_pull(state, call),
        (_, ["pulls", n, rest @ ..]) => of_pull(state, call, number(n), rest),
        ("GET", ["issues", n]) => match state.tickets.iter().find(|t| t.number == number(n)) {
            Some(ticket) => Reply::json(200, &shapes::ticket(state, ticket)),
            None => refusal(404, "Not Found"),
        },
        ("GET", ["collaborators", login, "permission"]) => permission(state, login),
        (_, ["issues", "comments", id]) => change_comment(state, call, number(id)),
        (_, ["issues", n, _]) if !state.has(number(n)) => refusal(404, "Not Found"),
        ("GET", ["issues", n, "comments"]) => {
            let found = state
                .comments
                .iter()
                .filter(|c| c.number == number(n))
                .map(|c| shapes::comment(state, c))
                .collect();
            page(state, call, found, None)
        }
        ("GET", ["issues", n, "events"]) => {
            let of_it = state.dismissals.iter().filter(|d| d.number == number(n));
            let found = of_it.map(|d| shapes::dismissal(state, d)).collect();
            page(state, call, found, None)
        }
        ("POST", ["issues", n, "comments"]) => {
            let id = state.next_id();
            let author = call.holder.login.clone();
            let body = call.body["body"].as_str().unwrap_or_default().to_owned();
            let said = Said { id, number: number(n), author, body, at: state.count };
            state.comments.push(said.clone());
            Reply::json(201, &shapes::comment(state, &said))
        }
        ("POST", ["issues", n, "labels"]) => {
            let names: Vec<String> = call.body["labels"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|l| Some(l.as_str()?.to_owned()))
                .collect();
            let Some(pull) = state.pull(number(n)) else { return refusal(404, "Not Found") };
            for name in names {
                if !pull.labels.contains(&name) {
                    pull.labels.push(name);
                }
            }
            let names = pull.labels.clone();
            Reply::json(200, &shapes::labels(state, &names))
        }
        (_, ["commits" | "statuses" | "check-runs" | "actions", ..]) => {
            super::checks::answer(state, call.method, call.path, call.query, call.body)
        }
        _ => refusal(404, "Not Found"),
    }
}

/// A user's permission for the repo; users unknown to a public one may read it.
fn permission(state: &State, login: &str) -> Reply {
    let reach = state.holders.values().find(|holder| holder.login == login).map(|holder| holder.reach);
    let word = match reach {
        Some(Reach::Write | Reach::SingleSignOn) => "write",
        Some(Reach::Read) => "read",
        Some(Reach::Nothing) | None if state.private => "none",
        Some(Reach::Nothing) | None => "read",
    };
    Reply::json(200, &json!({ "permission": word, "role_name": word, "user": shapes::user(state, login) }))
}

fn list_pulls(state: &mut State, call: &ApiCall<'_>) -> Reply {
    let wanted = call.query.get("state").unwrap_or("open");
    let head = call.query.get("head");
    let fits = |pull: &&Pull| {
        let fits_state = match wanted {
            "all" => true,
            "closed" => !pull.open,
            _ => pull.open,
        };
        fits_state && head.is_none_or(|head| head == format!("{}:{}", state.owner, pull.head))
    };
    let mut found: Vec<Value> =
        state.pulls.iter().filter(fits).map(|pull| shapes::pull(state, pull)).collect();
    if state.stale_lists > 0 {
        state.stale_lists -= 1;
        found.pop();
    }
    if call.query.get("direction") != Some("asc") {
        found.reverse();
    }
    page(state, call, found, None)
}

fn open_pull(state: &mut State, call: &ApiCall<'_>) -> Reply {
    let word = |key: &str| call.body[key].as_str().unwrap_or_default().to_owned();
    let (head, base, draft) = (word("head"), word("base"), call.body["draft"] == true);
    let bare = state.bare();
    let wrong =
        |field: &str| invalid(&json!([{ "resource": "PullRequest", "field": field, "code": "invalid" }]));
    let custom = |message: String| {
        invalid(&json!([{ "resource": "PullRequest", "code": "custom", "message": message }]))
    };
    if draft && !state.drafts {
        return refusal(422, "Draft pull requests are not supported in this repository.");
    }
    let Some(head_commit) = git::branch(&bare, &head) else { return wrong("head") };
    let Some(base_commit) = git::branch(&bare, &base) else { return wrong("base") };
    if state.pulls.iter().any(|pull| pull.open && pull.head == head && pull.base == base) {
        return custom(format!("A pull request already exists for {}:{head}.", state.owner));
    }
    if git::git(&bare, &["merge-base", "--is-ancestor", &head_commit, &base_commit]).is_some() {
        return custom(format!("No commits between {base} and {head}"));
    }
    let number = state.next_number();
    let pull = Pull {
        number,
        author: call.holder.login.clone(),
        title: word("title"),
        body: word("body"),
        head,
        head_commit: None,
        base,
        base_commit: None,
        draft,
        open: true,
        merged: false,
        labels: Vec::new(),
    };
    state.pulls.push(pull.clone());
    Reply::json(201, &shapes::pull(state, &pull))
}

fn of_pull(state: &mut State, call: &ApiCall<'_>, number: u64, rest: &[&str]) -> Reply {
    let Some(pull) = state.pull(number) else { return refusal(404, "Not Found") };
    match (call.method, rest) {
        ("PATCH", []) => {
            for (key, field) in [("title", &mut pull.title), ("body", &mut pull.body)] {
                if let Some(text) = call.body[key].as_str() {
                    text.clone_into(field);
                }
            }
            let pull = pull.clone();
            Reply::json(200, &shapes::pull(state, &pull))
        }
        ("GET", []) => {
            let pull = pull.clone();
            Reply::json(200, &shapes::pull(state, &pull))
        }
        ("GET", ["files"]) => {
            let pull = pull.clone();
            let (bare, head) = (state.bare(), shapes::head_of(state, &pull));
            let from = pull
                .base_commit
                .or_else(|| git::git(&bare, &["merge-base", &format!("refs/heads/{}", pull.base), &head]));
            let files = git::files(&bare, &from.unwrap_or_default(), &head);
            page(state, call, files.iter().map(shapes::file).collect(), None)
        }
        ("GET", ["reviews"]) => {
            let found = state
                .reviews
                .iter()
                .filter(|r| r.number == number)
                .map(|r| shapes::review(state, r))
                .collect();
            page(state, call, found, None)
        }
        ("GET", ["comments"]) => {
            let found = state
                .reviews
                .iter()
                .filter(|r| r.number == number)
                .flat_map(|r| shapes::lines(state, r))
                .collect();
            page(state, call, found, None)
        }
        _ => refusal(404, "Not Found"),
    }
}

fn change_comment(state: &mut State, call: &ApiCall<'_>, id: u64) -> Reply {
    let Some(said) = state.comments.iter_mut().find(|c| c.id == id) else { return refusal(404, "Not Found") };
    if said.author != call.holder.login {
        return refusal(403, "You can't edit another user's comment here.");
    }
    if call.method == "PATCH" {
        call.body["body"].as_str().unwrap_or_default().clone_into(&mut said.body);
    }
    let said = said.clone();
    Reply::json(200, &shapes::comment(state, &said))
}

/// One page of a list, with a link to the next.
fn page(state: &State, call: &ApiCall<'_>, all: Vec<Value>, key: Option<&str>) -> Reply {
    paged(state, call.path, call.query, all, key.map(|key| (key, json!({}))))
}

/// One page of a list; `within` is the object that holds it.
pub(crate) fn paged(
    state: &State,
    path: &[&str],
    query: &Query,
    all: Vec<Value>,
    within: Option<(&str, Value)>,
) -> Reply {
    let number = |name: &str| query.get(name).and_then(|text| text.parse::<usize>().ok());
    let size = number("per_page").unwrap_or(30).clamp(1, 100).min(state.page);
    let at = number("page").unwrap_or(1).max(1);
    let more = all.len() > at * size;
    let items: Vec<Value> = all.iter().skip((at - 1) * size).take(size).cloned().collect();
    let reply = match within {
        None => Reply::json(200, &items.into()),
        Some((key, mut value)) => {
            value["total_count"] = all.len().into();
            value[key] = items.into();
            Reply::json(200, &value)
        }
    };
    if !more {
        return reply;
    }
    let others: String = query
        .pairs()
        .filter(|(name, _)| *name != "page")
        .map(|(name, value)| format!("&{name}={}", value.replace(':', "%3A").replace('/', "%2F")))
        .collect();
    let url = format!("{}/repositories/1/{}?page={}{others}", state.url, path.join("/"), at + 1);
    reply.header("link", format!("<{url}>; rel=\"next\""))
}

fn graphql(state: &mut State, body: &Value, holder: &Holder) -> Reply {
    let said = |kind: &str, message: &str| {
        Reply::json(200, &json!({ "data": null, "errors": [{ "type": kind, "message": message }] }))
    };
    if std::mem::take(&mut state.graphql_limited) {
        return said("RATE_LIMITED", "API rate limit exceeded");
    }
    let query = body["query"].as_str().unwrap_or_default();
    let (name, draft) = if query.contains("markPullRequestReadyForReview(") {
        ("markPullRequestReadyForReview", false)
    } else if query.contains("convertPullRequestToDraft(") {
        ("convertPullRequestToDraft", true)
    } else {
        return said("undefinedField", "Field doesn't exist on type 'Mutation'");
    };
    if holder.reach != Reach::Write {
        return said("FORBIDDEN", "Resource not accessible by personal access token");
    }
    if !state.drafts {
        return said("UNPROCESSABLE", "Draft pull requests are not supported in this repository.");
    }
    let number = body["variables"]["id"].as_str().and_then(|id| id.strip_prefix("PR_")?.parse::<u64>().ok());
    match number.and_then(|number| state.pull(number)) {
        Some(pull) if pull.open => {
            pull.draft = draft;
            Reply::json(200, &json!({ "data": { name: { "pullRequest": { "isDraft": draft } } } }))
        }
        _ => said("NOT_FOUND", "Could not resolve to a node"),
    }
}

pub(crate) fn put_status(state: &mut State, commit: &str, body: &Value) -> Reply {
    let id = state.next_id();
    let status = Status {
        id,
        commit: commit.to_owned(),
        context: body["context"].as_str().unwrap_or("default").to_owned(),
        state: body["state"].as_str().unwrap_or_default().to_owned(),
        description: body["description"].clone(),
        target_url: body["target_url"].clone(),
        at: state.count,
    };
    if body["description"].as_str().is_some_and(|text| text.chars().count() > 140) {
        return invalid(&json!([{ "resource": "Status", "field": "description", "code": "too_long" }]));
    }
    state.statuses.push(status.clone());
    Reply::json(201, &shapes::status(state, &status))
}
