//! Pull requests: one per branch, whatever answers get lost.

use super::GitHub;
use super::client::{ApiRequest, once};
use super::wire::{WireFile, WirePr};
use crate::error::{Result, auth};
use crate::mark;
use ralph_loop_domain::ports::{ForgeError, NewPr, PrChange, PrState, PullRequest};
use ralph_loop_http::Method;
use ralph_loop_protocol::display::text::percent_encoded;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// GitHub's limit for titles.
const TITLE_MAX: usize = 250;
/// GraphQL reports its limit without a duration.
const LIMITED: Duration = Duration::from_secs(60);

impl GitHub {
    pub(super) fn wire_pr(&self, number: u64) -> Result<WirePr> {
        let ask = ApiRequest::get(
            format!("look at pull request {number} of {}", self.name),
            self.url(&format!("/pulls/{number}")),
        );
        self.http.json(&ask, self.tokens())
    }

    /// The pull request from a branch of this repo: the open one, else the latest.
    pub(super) fn pr_of(&self, head: &str) -> Result<Option<PullRequest>> {
        let label = format!("{}:{head}", self.options.address.owner);
        let query = format!(
            "/pulls?state=all&head={}&sort=created&direction=desc&per_page=100",
            percent_encoded(&label)
        );
        let ask = ApiRequest::get(
            format!("look for a pull request from `{head}` in {}", self.name),
            self.url(&query),
        );
        let found: Vec<WirePr> = self.http.json(&ask, self.tokens())?;
        // A host ignores filters that it doesn't know.
        let ours = |pr: &WirePr| {
            pr.head.name == head && pr.head.label.as_ref().is_none_or(|l| l.eq_ignore_ascii_case(&label))
        };
        let mut found: Vec<PullRequest> = found.into_iter().filter(ours).map(WirePr::seen).collect();
        found.sort_by_key(|pr| (pr.state != PrState::Open, std::cmp::Reverse(pr.number)));
        Ok(found.into_iter().next())
    }

    fn open_of(&self, head: &str) -> Result<Option<PullRequest>> {
        Ok(self.pr_of(head)?.filter(|pr| pr.state == PrState::Open))
    }

    pub(super) fn open(&self, new: &NewPr) -> Result<PullRequest> {
        if let Some(pr) = self.open_of(&new.head)? {
            return Ok(pr);
        }
        once(&self.http, || self.make(new, new.draft), || self.open_of(&new.head))
    }

    fn make(&self, new: &NewPr, draft: bool) -> Result<PullRequest> {
        let what = format!("open a pull request from `{}` to `{}` in {}", new.head, new.base, self.name);
        let body = json!({
            "title": title(&new.title),
            "head": new.head,
            "base": new.base,
            "body": mark::fit(&new.body),
            "draft": draft,
        });
        let ask = ApiRequest::with(Method::POST, what, self.url("/pulls"), body).once();
        let error = match self.http.json::<WirePr>(&ask, self.tokens()) {
            Ok(pr) => return Ok(pr.seen()),
            Err(error) => error,
        };
        let ForgeError::Refused { what, reason, .. } = &error else { return Err(error) };
        let lower = reason.to_lowercase();
        if lower.contains("already exists")
            && let Some(pr) = self.open_of(&new.head)?
        {
            return Ok(pr);
        }
        // Not every plan has drafts: then it opens a plain one, and says so.
        if draft && lower.contains("draft") {
            return self.make(new, false);
        }
        let hint = if lower.contains("no commits between") {
            "push a commit first".to_owned()
        } else if lower.contains("base") {
            format!("is there a branch `{}` in {}?", new.base, self.name)
        } else if lower.contains("head") {
            format!("is the branch `{}` pushed to {}?", new.head, self.name)
        } else {
            "GitHub rejects the request: the message says why".to_owned()
        };
        Err(ForgeError::Refused { what: what.clone(), reason: reason.clone(), hint })
    }

    pub(super) fn update(&self, number: u64, change: &PrChange) -> Result<PullRequest> {
        let mut fields = Map::new();
        if let Some(text) = &change.title {
            fields.insert("title".into(), title(text).into());
        }
        if let Some(text) = &change.body {
            fields.insert("body".into(), mark::fit(text).into());
        }
        let pr = if fields.is_empty() {
            self.wire_pr(number)?
        } else {
            let what = format!("update pull request {number} of {}", self.name);
            let url = self.url(&format!("/pulls/{number}"));
            self.http
                .json(&ApiRequest::with(Method::PATCH, what, url, Value::Object(fields)), self.tokens())?
        };
        let node = pr.node_id.clone();
        let mut pr = pr.seen();
        if let Some(draft) = change.draft.filter(|draft| *draft != pr.draft && pr.state == PrState::Open) {
            pr.draft = self.set_draft(number, &node, draft)?.unwrap_or(pr.draft);
        }
        Ok(pr)
    }

    /// Only GraphQL supports this. `None` if the host doesn't: nothing changes.
    fn set_draft(&self, number: u64, node: &str, draft: bool) -> Result<Option<bool>> {
        let name = if draft { "convertPullRequestToDraft" } else { "markPullRequestReadyForReview" };
        let query = format!(
            "mutation($id: ID!) {{ {name}(input: {{ pullRequestId: $id }}) {{ pullRequest {{ isDraft }} }} }}"
        );
        let to = if draft { "a draft" } else { "ready for review" };
        let what = format!("make pull request {number} of {} {to}", self.name);
        let body = json!({ "query": query, "variables": { "id": node } });
        let ask =
            ApiRequest::with(Method::POST, what.clone(), self.options.graphql_url.clone(), body).also(&[404]);
        let answer = self.http.send(&ask, self.tokens())?;
        if answer.status == 404 {
            return Ok(None);
        }
        let value: Value = answer.json(&what)?;
        if let Some(now) = value["data"][name]["pullRequest"]["isDraft"].as_bool() {
            return Ok(Some(now));
        }
        let error = &value["errors"][0];
        if error["type"] == "RATE_LIMITED" {
            return Err(ForgeError::RateLimited { what, wait: LIMITED });
        }
        if error["type"] == "FORBIDDEN" {
            let said = super::errors::clean(error["message"].as_str().unwrap_or("forbidden"), "");
            return Err(auth(what, said, super::errors::NEEDED));
        }
        Ok(None)
    }

    pub(super) fn label(&self, number: u64, labels: &[String]) -> Result<()> {
        if labels.is_empty() {
            return Ok(());
        }
        let what = format!("label pull request {number} of {}", self.name);
        let url = self.url(&format!("/issues/{number}/labels"));
        self.http
            .send(&ApiRequest::with(Method::POST, what, url, json!({ "labels": labels })), self.tokens())?;
        Ok(())
    }

    pub(super) fn touched(&self, number: u64) -> Result<Vec<String>> {
        let what = format!("list the files of pull request {number} of {}", self.name);
        let ask = ApiRequest::get(what, self.url(&format!("/pulls/{number}/files?per_page=100")));
        let files: Vec<WireFile> = self.http.pages(&ask, None, self.tokens())?;
        let mut paths: Vec<String> = files
            .into_iter()
            .flat_map(|file| std::iter::once(file.filename).chain(file.previous_filename))
            .collect();
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    pub(super) fn all_open(&self) -> Result<Vec<PullRequest>> {
        let query = "/pulls?state=open&sort=created&direction=desc&per_page=100";
        let ask = ApiRequest::get(format!("list the open pull requests of {}", self.name), self.url(query));
        let found: Vec<WirePr> = self.http.json(&ask, self.tokens())?;
        Ok(found.into_iter().map(WirePr::seen).collect())
    }
}

fn title(text: &str) -> String {
    ralph_loop_protocol::display::text::one_line(text, TITLE_MAX)
}
