//! The vendor's JSON objects, complete enough for its published specification.

use super::app::{INSTALLATION, SLUG};
use super::git;
use super::state::{CheckRun, Dismissed, Pull, Reach, Reviewed, Said, State, Status, Ticket, moment};
use serde_json::{Map, Value, json};

const REPO_URLS: &str = "archive assignees blobs branches collaborators comments commits compare contents contributors \
    deployments downloads events forks git_commits git_refs git_tags hooks issue_comment issue_events issues keys labels \
    languages merges milestones notifications pulls releases stargazers statuses subscribers subscription tags teams trees";
const USER_URLS: &str =
    "avatar events followers following gists html organizations received_events repos starred subscriptions";

fn with_urls(mut value: Value, names: &str, base: &str) -> Value {
    if let Value::Object(map) = &mut value {
        for name in names.split_whitespace() {
            map.insert(format!("{name}_url"), format!("{base}/{name}").into());
        }
        map.insert("url".into(), base.into());
    }
    value
}

pub(crate) fn user(state: &State, login: &str) -> Value {
    let id = login.bytes().fold(7_u64, |sum, b| sum * 31 % 1_000_003 + u64::from(b));
    let kind = if login.ends_with("[bot]") { "Bot" } else { "User" };
    let value = json!({
        "login": login, "id": id, "node_id": format!("U_{id}"), "gravatar_id": "", "type": kind, "site_admin": false,
    });
    let name: String = login.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    with_urls(value, USER_URLS, &format!("{}/users/{name}", state.url))
}

/// The token's user, as in `/user`.
pub(crate) fn me(state: &State, login: &str) -> Value {
    let mut value = user(state, login);
    let more = json!({
        "name": login, "company": null, "blog": "", "location": null, "email": null, "hireable": null, "bio": null,
        "public_repos": 1, "public_gists": 0, "followers": 0, "following": 0, "created_at": moment(0),
        "updated_at": moment(0), "user_view_type": "public",
    });
    merge(&mut value, more);
    value
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(map), Value::Object(more)) = (into, more) {
        map.extend(more);
    }
}

pub(crate) fn repo(state: &State, reach: Reach) -> Value {
    let web = format!("{}/{}", state.url, state.full_name());
    let push = reach == Reach::Write;
    let mut value = json!({
        "id": 1, "node_id": "R_1", "name": state.name, "full_name": state.full_name(), "owner": user(state, &state.owner),
        "private": state.private, "html_url": web, "description": null, "fork": false, "homepage": null,
        "git_url": format!("git://github.example/{}.git", state.full_name()),
        "ssh_url": format!("git@github.example:{}.git", state.full_name()),
        "clone_url": format!("{web}.git"), "svn_url": web, "mirror_url": null,
    });
    let more = json!({
        "language": null, "forks_count": 0,
        "stargazers_count": 0, "watchers_count": 0, "size": 1, "default_branch": "main", "open_issues_count": 0,
        "has_issues": true, "has_projects": false, "has_wiki": false, "has_pages": false, "has_discussions": false,
        "has_downloads": true, "archived": state.archived, "disabled": false, "pushed_at": moment(0),
        "created_at": moment(0), "updated_at": moment(0), "subscribers_count": 0, "network_count": 0, "license": null,
        "forks": 0, "open_issues": 0, "watchers": 0, "permissions": { "admin": false, "push": push, "pull": true },
        "topics": [], "visibility": if state.private { "private" } else { "public" },
    });
    merge(&mut value, more);
    with_urls(value, REPO_URLS, &format!("{}/repos/{}", state.url, state.full_name()))
}

/// The current `head` of a pull request.
pub(crate) fn head_of(state: &State, pull: &Pull) -> String {
    pull.head_commit
        .clone()
        .or_else(|| git::branch(&state.bare(), &pull.head))
        .unwrap_or_else(|| "0".repeat(40))
}

pub(crate) fn pull(state: &State, pull: &Pull) -> Value {
    let api = format!("{}/repos/{}", state.url, state.full_name());
    let (url, web) = (
        format!("{api}/pulls/{}", pull.number),
        format!("{}/{}/pull/{}", state.url, state.full_name(), pull.number),
    );
    let head = head_of(state, pull);
    let base = git::branch(&state.bare(), &pull.base).unwrap_or_else(|| "0".repeat(40));
    let side = |name: &str, commit: &str| {
        json!({
            "label": format!("{}:{name}", state.owner), "ref": name, "sha": commit,
            "user": user(state, &state.owner), "repo": repo(state, Reach::Read),
        })
    };
    let links =
        ["comments", "commits", "html", "issue", "review_comment", "review_comments", "self", "statuses"];
    let links: Map<String, Value> =
        links.iter().map(|name| ((*name).into(), json!({ "href": url }))).collect();
    let closed = (!pull.open).then(|| moment(pull.number + 1));
    let mut value = json!({
        "url": url, "id": pull.number + 5000, "node_id": format!("PR_{}", pull.number), "html_url": web,
        "diff_url": format!("{web}.diff"), "patch_url": format!("{web}.patch"),
        "issue_url": format!("{api}/issues/{}", pull.number), "commits_url": format!("{url}/commits"),
        "review_comments_url": format!("{url}/comments"), "review_comment_url": format!("{api}/pulls/comments/x"),
        "comments_url": format!("{api}/issues/{}/comments", pull.number), "statuses_url": format!("{api}/statuses/{head}"),
        "number": pull.number, "state": if pull.open { "open" } else { "closed" }, "locked": false, "title": pull.title,
    });
    let more = json!({
        "user": user(state, &pull.author), "body": pull.body, "labels": labels(state, &pull.labels), "milestone": null,
        "created_at": moment(pull.number), "updated_at": moment(pull.number), "closed_at": closed,
        "merged_at": closed.filter(|_| pull.merged), "merge_commit_sha": null, "assignee": null, "assignees": [],
        "requested_reviewers": [], "requested_teams": [], "head": side(&pull.head, &head), "base": side(&pull.base, &base),
        "_links": links, "author_association": "MEMBER", "auto_merge": null, "draft": pull.draft, "merged": pull.merged,
        "mergeable": null, "mergeable_state": "unknown", "merged_by": null, "comments": 0, "review_comments": 0,
        "maintainer_can_modify": false, "commits": 1, "additions": 1, "deletions": 0, "changed_files": 1,
    });
    merge(&mut value, more);
    value
}

pub(crate) fn labels(state: &State, names: &[String]) -> Value {
    let label = |(name, id): (&String, u64)| {
        json!({
            "id": id, "node_id": format!("L_{id}"), "url": format!("{}/repos/{}/labels/{id}", state.url, state.full_name()),
            "name": name, "color": "ededed", "default": false, "description": "",
        })
    };
    names.iter().zip(1..).map(label).collect()
}

pub(crate) fn ticket(state: &State, ticket: &Ticket) -> Value {
    json!({
        "number": ticket.number, "title": ticket.title, "body": ticket.body,
        "state": if ticket.open { "open" } else { "closed" }, "labels": labels(state, &ticket.labels),
        "html_url": format!("{}/{}/issues/{}", state.url, state.full_name(), ticket.number),
        "user": user(state, "ann"), "id": ticket.number + 6000, "node_id": format!("I_{}", ticket.number),
    })
}

pub(crate) fn comment(state: &State, said: &Said) -> Value {
    let api = format!("{}/repos/{}", state.url, state.full_name());
    json!({
        "id": said.id, "node_id": format!("IC_{}", said.id), "url": format!("{api}/issues/comments/{}", said.id),
        "html_url": format!("{}/{}/issues/{}#issuecomment-{}", state.url, state.full_name(), said.number, said.id),
        "body": said.body, "user": user(state, &said.author), "created_at": moment(said.at), "updated_at": moment(said.at),
        "issue_url": format!("{api}/issues/{}", said.number), "author_association": "MEMBER",
    })
}

fn association(state: &State, author: &str) -> &'static str {
    if state.strangers.contains(author) { "NONE" } else { "MEMBER" }
}

pub(crate) fn review(state: &State, review: &Reviewed) -> Value {
    let url = format!("{}/repos/{}/pulls/{}", state.url, state.full_name(), review.number);
    json!({
        "id": review.id, "node_id": format!("PRR_{}", review.id), "user": user(state, &review.author), "body": review.body,
        "state": review.state, "html_url": format!("{url}#r{}", review.id), "pull_request_url": url,
        "_links": { "html": { "href": url }, "pull_request": { "href": url } }, "commit_id": review.commit,
        "submitted_at": moment(review.at), "author_association": association(state, &review.author),
    })
}

pub(crate) fn dismissal(state: &State, taken: &Dismissed) -> Value {
    let url = format!("{}/repos/{}/issues/events/{}", state.url, state.full_name(), taken.review);
    let mut review = json!({
        "state": taken.was, "review_id": taken.review,
        "dismissal_message": Some(&taken.message).filter(|message| !message.is_empty()),
    });
    if let Some(commit) = &taken.stale {
        review["dismissal_commit_id"] = json!(commit);
    }
    json!({
        "id": taken.review, "node_id": format!("RDE_{}", taken.review), "url": url, "actor": user(state, &taken.by),
        "event": "review_dismissed", "commit_id": null, "commit_url": null, "created_at": moment(taken.review),
        "performed_via_github_app": null, "dismissed_review": review,
    })
}

pub(crate) fn lines(state: &State, review: &Reviewed) -> Vec<Value> {
    let url = format!("{}/repos/{}/pulls/{}", state.url, state.full_name(), review.number);
    let line = |(id, path, line, body): &(u64, String, u64, String)| {
        json!({
            "url": format!("{url}/comments/{id}"), "pull_request_review_id": review.id, "id": id,
            "node_id": format!("PRRC_{id}"), "diff_hunk": "@@ -0,0 +1 @@", "path": path, "commit_id": review.commit,
            "original_commit_id": review.commit, "user": user(state, &review.author), "body": body, "line": line,
            "created_at": moment(review.at), "updated_at": moment(review.at), "html_url": format!("{url}#d{id}"),
            "pull_request_url": url, "author_association": association(state, &review.author),
            "_links": { "self": { "href": url }, "html": { "href": url }, "pull_request": { "href": url } },
        })
    };
    review.lines.iter().map(line).collect()
}

fn app_json(state: &State, slug: &str) -> Value {
    json!({
        "id": 1, "slug": slug, "node_id": "A_1", "owner": user(state, &state.owner), "name": slug, "description": null,
        "external_url": state.url, "html_url": format!("{}/apps/{slug}", state.url), "created_at": moment(0),
        "updated_at": moment(0), "permissions": { "contents": "write" }, "events": [],
    })
}

pub(crate) fn app(state: &State) -> Value {
    app_json(state, SLUG)
}

pub(crate) fn installation(state: &State) -> Value {
    json!({
        "id": INSTALLATION, "account": user(state, &state.owner), "access_tokens_url": state.url,
        "repositories_url": state.url, "html_url": state.url, "app_id": 1, "target_id": 1, "target_type": "User",
        "permissions": { "contents": "write" }, "events": [], "created_at": moment(0), "updated_at": moment(0),
        "single_file_name": null, "repository_selection": "selected", "app_slug": SLUG, "suspended_at": null,
        "suspended_by": null,
    })
}

pub(crate) fn check(state: &State, id: u64, run: &CheckRun) -> Value {
    let api = format!("{}/repos/{}", state.url, state.full_name());
    let done = run.conclusion.is_some();
    json!({
        "id": id, "head_sha": run.commit, "node_id": format!("CR_{id}"), "external_id": "", "name": run.name,
        "url": format!("{api}/check-runs/{id}"), "html_url": format!("{}/{}/runs/{id}", state.url, state.full_name()),
        "details_url": format!("{}/{}/actions/runs/{}/job/{id}", state.url, state.full_name(), run.suite),
        "status": if done { "completed" } else { "in_progress" }, "conclusion": run.conclusion,
        "started_at": moment(id), "completed_at": done.then(|| moment(id + 1)),
        "output": {
            "title": if run.title.is_empty() { Value::Null } else { run.title.as_str().into() }, "summary": null,
            "text": null, "annotations_count": run.annotations.len(), "annotations_url": format!("{api}/check-runs/{id}/annotations"),
        },
        "check_suite": { "id": run.suite },
        "app": app_json(state, run.app.as_deref().unwrap_or("github-actions")), "pull_requests": [],
    })
}

pub(crate) fn annotation(path: &str, line: u64, text: &str) -> Value {
    json!({
        "path": path, "start_line": line, "end_line": line, "start_column": null, "end_column": null,
        "annotation_level": "failure", "title": null, "message": text, "raw_details": null, "blob_href": "",
    })
}

pub(crate) fn status(state: &State, status: &Status) -> Value {
    json!({
        "url": format!("{}/repos/{}/statuses/{}", state.url, state.full_name(), status.commit), "id": status.id,
        "avatar_url": null, "node_id": format!("SC_{}", status.id), "state": status.state,
        "description": status.description, "target_url": status.target_url, "context": status.context,
        "created_at": moment(status.at), "updated_at": moment(status.at), "creator": user(state, &state.owner),
    })
}

pub(crate) fn workflow_run(state: &State, run: &CheckRun) -> Value {
    let url = format!("{}/repos/{}/actions/runs/{}", state.url, state.full_name(), run.suite);
    let value = json!({
        "id": run.suite, "name": "CI", "node_id": format!("WR_{}", run.suite), "check_suite_id": run.suite,
        "head_branch": "x", "head_sha": run.commit, "path": ".github/workflows/ci.yml", "run_number": 1,
        "event": "push", "display_title": "CI", "status": "completed", "conclusion": "success",
        "workflow_id": run.workflow, "pull_requests": [], "created_at": moment(0), "updated_at": moment(0),
        "head_commit": null, "repository": repo(state, Reach::Read), "head_repository": repo(state, Reach::Read),
    });
    with_urls(value, "artifacts cancel check_suite html jobs logs rerun workflow", &url)
}

pub(crate) fn file((kind, name, previous): &(char, String, Option<String>)) -> Value {
    let status = match kind {
        'A' => "added",
        'D' => "removed",
        'R' => "renamed",
        _ => "modified",
    };
    let url = "http://127.0.0.1/blob";
    let mut value = json!({
        "sha": "0".repeat(40), "filename": name, "status": status, "additions": 1, "deletions": 0, "changes": 1,
        "blob_url": url, "raw_url": url, "contents_url": url,
    });
    if let Some(previous) = previous {
        value["previous_filename"] = previous.as_str().into();
    }
    value
}
